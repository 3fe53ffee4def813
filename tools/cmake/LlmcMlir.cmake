# What the compiler's folders share: MLIR's headers, TableGen, and the two shared libraries.
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)

add_library(llmc_mlir INTERFACE)
target_include_directories(llmc_mlir SYSTEM INTERFACE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
# Never the static archives beside them: two copies of a TypeID are two types.
target_link_libraries(llmc_mlir INTERFACE MLIR LLVM)
# The Debian packages have RTTI on and exceptions off.
target_compile_options(llmc_mlir INTERFACE -fno-exceptions)
# TableGen reads .td files from the source root and from MLIR.
include_directories("${CMAKE_SOURCE_DIR}")
include_directories(SYSTEM ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
