# Fails unless the exported target states its include path outside any header set.
file(READ ${TARGETS} text)
string(FIND "${text}" "INTERFACE_INCLUDE_DIRECTORIES \"\${_IMPORT_PREFIX}/include\"" at)
if(at EQUAL -1)
  message(FATAL_ERROR "${TARGETS} has no INTERFACE_INCLUDE_DIRECTORIES: CMake 3.22 finds no header")
endif()
