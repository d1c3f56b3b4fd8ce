# Makes a C function that returns the bytes of a file: cmake -DIN=file -DOUT=file.c -DFUNCTION=name
# -P embed.cmake. IN may be a list of files, which are joined in that order. -DCOMMENT=-- leaves out
# the lines that begin with these characters.
set(bytes "")
foreach(file ${IN})
  if(DEFINED COMMENT)
    file(READ ${file} text)
    string(REGEX REPLACE "(^|\n)${COMMENT}[^\n]*" "" text "${text}")
    string(REGEX REPLACE "^\n" "" text "${text}")
    string(HEX "${text}" hex)
  else()
    file(READ ${file} hex HEX)
  endif()
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
  string(APPEND bytes "${hex}")
endforeach()
file(WRITE ${OUT} "#include \"base/str.h\"\n\nstruct mr_str ${FUNCTION}(void);\nstatic const unsigned char bytes[] = {${bytes}};\n\n"
  "struct mr_str ${FUNCTION}(void)\n{\n    return mr_str_of(bytes, sizeof bytes);\n}\n")
