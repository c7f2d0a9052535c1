# Configures, builds and runs a consumer of the install tree by another CMake.
foreach(step IN ITEMS
    "${CMAKE};-S;${SOURCE};-B;${BUILD};-DCMAKE_PREFIX_PATH=${TREE};-DCMAKE_CXX_COMPILER=${CXX};-DEXPECTED_VERSION=${VERSION}"
    "${CMAKE};--build;${BUILD}"
    "${BUILD}/consumer")
  execute_process(COMMAND ${step} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${step}: ${status}")
  endif()
endforeach()
