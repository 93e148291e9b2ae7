# The Python package, in build/PRESET/python: the target `python` builds it, `PYTHONPATH` finds it
# there, and python/backend.py makes a wheel of it. It has two modules: `_runtime` loads and runs
# compiled models, `_compiler` has all of hone and LLVM, and is loaded when it is first needed.

find_program(HONE_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(HONE_PYTHON NAMES python3)
find_path(HONE_PYBIND11 pybind11/pybind11.h)
mark_as_advanced(HONE_PYTHON HONE_PYBIND11)
if(NOT HONE_PYTHON OR NOT HONE_PYBIND11)
  message(STATUS "no Python package: python3 or pybind11 is missing")
  return()
endif()
execute_process(COMMAND ${HONE_PYTHON} -c
  "import sysconfig as s; print(s.get_path('include'), s.get_config_var('EXT_SUFFIX'), sep=';')"
  OUTPUT_VARIABLE python OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
list(GET python 0 python_include)
list(GET python 1 python_suffix)
if(NOT EXISTS ${python_include}/Python.h)
  message(STATUS "no Python package: ${HONE_PYTHON} has no headers")
  return()
endif()

set(package ${PROJECT_BINARY_DIR}/python/hone)
# The target TARGET makes the module NAME in FOLDER.
function(hone_python_module target name folder library)
  add_library(${target} MODULE EXCLUDE_FROM_ALL ${ARGN})
  target_include_directories(${target} SYSTEM PRIVATE ${python_include} ${HONE_PYBIND11})
  target_link_libraries(${target} PRIVATE ${library})
  target_compile_definitions(${target} PRIVATE HONE_VERSION="${PROJECT_VERSION}")
  target_compile_options(${target} PRIVATE -fvisibility=hidden)
  hone_target(${target})
  # Nothing but the module's own symbol is seen: other libraries may have an LLVM of their own. It
  # also lets the linker take objects that were not compiled for shared libraries.
  target_link_options(${target} PRIVATE -fuse-ld=lld
    -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/python.map -Wl,--gc-sections -Wl,-s)
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME ${name} SUFFIX ${python_suffix} LLVM_IS_STATIC ON
    LIBRARY_OUTPUT_DIRECTORY ${folder})
endfunction()
set(python_shared_sources
  src/python/array.cc src/python/core.cc src/python/dlpack.cc src/python/error.cc
  src/python/gpu_array.cc)
hone_python_module(python_runtime _runtime ${package} hone_runtime
  src/python/runtime_module.cc ${python_shared_sources})
hone_glob(compiler_sources src/python/*.cc)
list(FILTER compiler_sources EXCLUDE REGEX "/runtime_module\\.cc$")
hone_python_module(python_compiler _compiler ${package} hone ${compiler_sources})

file(GLOB python_files CONFIGURE_DEPENDS python/hone/*.py python/hone/*.pyi python/hone/py.typed)
add_custom_command(OUTPUT ${package}.stamp
  COMMAND ${CMAKE_COMMAND} -E copy_if_different ${python_files} ${package}
  COMMAND ${CMAKE_COMMAND} -E touch ${package}.stamp
  DEPENDS ${python_files})
add_custom_target(python DEPENDS ${package}.stamp)
add_dependencies(python python_runtime python_compiler)
