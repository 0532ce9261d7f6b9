# embed_files(OUT.c SYMBOL GLOB...): writes a C file that defines
#     const struct embed_file SYMBOL[];   (common/embed.h; ends with a NULL name)
# holding each file's text under its stem, so that the one binary needs no files beside it.
function(embed_files out symbol)
    file(GLOB files CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} ${ARGN})
    set(inputs)
    foreach(f ${files})
        list(APPEND inputs ${CMAKE_SOURCE_DIR}/${f})
    endforeach()
    embed_list(${out} ${symbol} ${inputs})
endfunction()

# embed_list(OUT.c SYMBOL FILE...): the same of files by their full paths, which may be made by the
# build.
function(embed_list out symbol)
    set(inputs ${ARGN})
    add_custom_command(
        OUTPUT ${out}
        COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DSYMBOL=${symbol} "-DFILES=${inputs}"
                -P ${CMAKE_SOURCE_DIR}/common/embed_write.cmake
        DEPENDS ${inputs} ${CMAKE_SOURCE_DIR}/common/embed_write.cmake
        VERBATIM)
endfunction()
