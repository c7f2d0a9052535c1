# Fails when BINARY is linked against a driver, a compiler or a GPU run time, or against the library
# that carries remote caches: what a machine may lack is opened at run time.
execute_process(COMMAND ${READELF} -d ${BINARY} OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "NEEDED[^\n]*" needed "${dynamic}")
if(NOT needed)
  message(FATAL_ERROR "${BINARY}: no NEEDED entry was read")
endif()
foreach(line IN LISTS needed)
  if(line MATCHES "cuda|nvrtc|nvidia|amdhip|hiprtc|hsa|amd_comgr|curl")
    message(FATAL_ERROR "${BINARY} must not need ${line}")
  endif()
endforeach()
message(STATUS "${BINARY}: ${needed}")
