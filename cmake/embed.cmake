# broach_embed(<target> <symbol> ROOTS <root>... FILES <file>...): compiles the files' bytes into
# <target> as `extern const std::span<const broach::EmbeddedFile> broach::<symbol>`. A file is named
# relative to the first root that has it.
set(BROACH_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/embed_files.cmake)

function(broach_embed target symbol)
  cmake_parse_arguments(PARSE_ARGV 2 EMBED "" "" "ROOTS;FILES")
  set(paths "")
  foreach(file IN LISTS EMBED_FILES)
    set(path "")
    foreach(root IN LISTS EMBED_ROOTS)
      if(NOT path AND EXISTS ${root}/${file})
        set(path ${root}/${file})
      endif()
    endforeach()
    if(NOT path)
      message(FATAL_ERROR "broach_embed(${symbol}): ${file} is in none of ${EMBED_ROOTS}")
    endif()
    list(APPEND paths ${path})
  endforeach()
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.cpp)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} "-DSYMBOL=${symbol}" "-DFILES=${EMBED_FILES}" "-DPATHS=${paths}"
            "-DOUTPUT=${output}" -P ${BROACH_EMBED_SCRIPT}
    DEPENDS ${paths} ${BROACH_EMBED_SCRIPT}
    COMMENT "Embedding ${symbol}"
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
