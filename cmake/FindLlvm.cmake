# MLIR and LLVM 19, by their shared libraries: Llvm_INCLUDE_DIR, Llvm_LIBRARIES. Their own CMake
# packages take a second at each configuration, and need headers that hone does not.
include(FindPackageHandleStandardArgs)
find_path(Llvm_INCLUDE_DIR mlir/IR/MLIRContext.h PATHS /usr/lib/llvm-19/include)
find_library(Llvm_MLIR MLIR PATHS /usr/lib/llvm-19/lib)
find_library(Llvm_LLVM NAMES LLVM-19 LLVM PATHS /usr/lib/llvm-19/lib)
set(Llvm_LIBRARIES ${Llvm_MLIR} ${Llvm_LLVM})
find_package_handle_standard_args(Llvm REQUIRED_VARS Llvm_INCLUDE_DIR Llvm_MLIR Llvm_LLVM)
mark_as_advanced(Llvm_INCLUDE_DIR Llvm_MLIR Llvm_LLVM)
