# Writes the seeds twice, which must give the same bytes, and runs them and what was once found
# through every target; each must have had a seed.
foreach(copy IN ITEMS first second)
  file(REMOVE_RECURSE ${SCRATCH}/${copy})
  execute_process(COMMAND ${SEEDS} ${SCRATCH}/${copy} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
file(GLOB_RECURSE seeds RELATIVE ${SCRATCH}/first ${SCRATCH}/first/*)
foreach(seed IN LISTS seeds)
  execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${SCRATCH}/first/${seed}
                          ${SCRATCH}/second/${seed}
                  COMMAND_ERROR_IS_FATAL ANY)
endforeach()
execute_process(COMMAND ${REPLAY} ${SCRATCH}/first ${FOUND} OUTPUT_VARIABLE ran
                COMMAND_ERROR_IS_FATAL ANY)
if(ran MATCHES "([a-z_]+) 0\n")
  message(FATAL_ERROR "no seed for ${CMAKE_MATCH_1}")
endif()
message(STATUS "${ran}")

# A file that reaches a fault ends the run, and is named.
file(WRITE ${SCRATCH}/fault/planted/reached "FALL")
execute_process(COMMAND ${REPLAY} ${SCRATCH}/fault RESULT_VARIABLE status ERROR_VARIABLE said
                OUTPUT_QUIET)
if(status EQUAL 0 OR NOT said MATCHES "planted/reached")
  message(FATAL_ERROR "the planted fault was not found: status ${status}, \"${said}\"")
endif()
