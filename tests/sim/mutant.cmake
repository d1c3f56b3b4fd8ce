# Writes FILE to OUT with FROM, which stands in it just once, replaced by TO.
file(READ ${FILE} text)
string(FIND "${text}" "${FROM}" first)
string(FIND "${text}" "${FROM}" last REVERSE)
if(first EQUAL -1 OR NOT first EQUAL last)
  message(FATAL_ERROR "\"${FROM}\" should stand in ${FILE} once")
endif()
string(REPLACE "${FROM}" "${TO}" text "${text}")
file(WRITE ${OUT} "${text}")
