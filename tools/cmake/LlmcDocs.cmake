# The target `docs`: what ops, types and passes say of themselves, as Markdown in the build folder. Never committed.
set(docs_folder "${CMAKE_BINARY_DIR}/docs")
set(docs_outputs)

# llmc_doc(FILE SOURCE ACTION...): mlir-tblgen ACTION over SOURCE into docs/FILE.
function(llmc_doc file source)
  file(GLOB_RECURSE inputs CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/dialects/*.td" "${CMAKE_SOURCE_DIR}/passes/*.td")
  add_custom_command(OUTPUT "${docs_folder}/${file}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${docs_folder}"
    COMMAND "${MLIR_TABLEGEN_EXE}" ${ARGN} "-I${CMAKE_SOURCE_DIR}" "-I${MLIR_INCLUDE_DIRS}" "${CMAKE_SOURCE_DIR}/${source}"
            -o "${docs_folder}/${file}"
    DEPENDS ${inputs}
    VERBATIM)
  set(docs_outputs ${docs_outputs} "${docs_folder}/${file}" PARENT_SCOPE)
endfunction()

llmc_doc(llm.md dialects/llm/LlmAttentionOps.td -gen-dialect-doc -dialect=llm)
llmc_doc(tile.md dialects/tile/TileOps.td -gen-dialect-doc -dialect=tile)
llmc_doc(passes.md passes/Passes.td -gen-pass-doc)
add_custom_target(docs DEPENDS ${docs_outputs})
