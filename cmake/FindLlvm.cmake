# MLIR and LLVM 19: Llvm_INCLUDE_DIR; Llvm_LIBRARIES, the shared libraries; Llvm_ARCHIVES, the same
# as static libraries, or nothing where there are none. Their own CMake packages take a second at
# each configuration, and need headers that hone does not.
include(FindPackageHandleStandardArgs)
find_path(Llvm_INCLUDE_DIR mlir/IR/MLIRContext.h PATHS /usr/lib/llvm-19/include)
find_library(Llvm_MLIR MLIR PATHS /usr/lib/llvm-19/lib)
find_library(Llvm_LLVM NAMES LLVM-19 LLVM PATHS /usr/lib/llvm-19/lib)
set(Llvm_LIBRARIES ${Llvm_MLIR} ${Llvm_LLVM})
find_package_handle_standard_args(Llvm REQUIRED_VARS Llvm_INCLUDE_DIR Llvm_MLIR Llvm_LLVM)
# What the archives need; the names with .so.1 are where there are no headers.
find_library(Llvm_Z NAMES z libz.so.1)
find_library(Llvm_ZSTD NAMES zstd libzstd.so.1)
find_library(Llvm_TINFO NAMES tinfo libtinfo.so.6)
set(Llvm_ARCHIVES)
if(Llvm_Z AND Llvm_ZSTD AND Llvm_TINFO)
  cmake_path(GET Llvm_MLIR PARENT_PATH folder)
  file(GLOB Llvm_ARCHIVES ${folder}/libMLIR[A-Z]*.a ${folder}/libLLVM*.a)
  if(Llvm_ARCHIVES)
    list(APPEND Llvm_ARCHIVES ${Llvm_Z} ${Llvm_ZSTD} ${Llvm_TINFO})
  endif()
endif()
mark_as_advanced(Llvm_INCLUDE_DIR Llvm_MLIR Llvm_LLVM Llvm_Z Llvm_ZSTD Llvm_TINFO)
