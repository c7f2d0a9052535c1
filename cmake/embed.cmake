# broach_embed(<target> <symbol> <root> <file>...): compiles the files' bytes into <target> as
# `extern const std::span<const broach::EmbeddedFile> broach::<symbol>`, named relative to <root>.
set(BROACH_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/embed_files.cmake)

function(broach_embed target symbol root)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.cpp)
  list(TRANSFORM ARGN PREPEND ${root}/ OUTPUT_VARIABLE inputs)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} "-DSYMBOL=${symbol}" "-DROOT=${root}" "-DFILES=${ARGN}"
            "-DOUTPUT=${output}" -P ${BROACH_EMBED_SCRIPT}
    DEPENDS ${inputs} ${BROACH_EMBED_SCRIPT}
    COMMENT "Embedding ${symbol}"
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
