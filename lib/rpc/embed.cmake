# cmake -DIN=file -DOUT=file.c -DFUNCTION=name -P embed.cmake: bytes of a file as a C function.
file(READ ${IN} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE ${OUT} "#include \"base/str.h\"\n\nstruct mr_str ${FUNCTION}(void);\nstatic const unsigned char bytes[] = {${bytes}};\n\n"
  "struct mr_str ${FUNCTION}(void)\n{\n    return mr_str_of(bytes, sizeof bytes);\n}\n")
