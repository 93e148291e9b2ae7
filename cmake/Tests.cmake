# One test binary per folder of tests/, plus scripts. Labels: `fast` is what `./dev test` runs.
# Tests and scripts that compile something find the compiler in $CXX.

find_package(GTest REQUIRED)

# The thread sanitizer is for what compiled models run on: only that is linked and tested with it.
set(tested_library hone_cli)
set(tested_folders ".*")
set(test_headers src/front/onnx/proto.h)
if(HONE_SANITIZE STREQUAL thread)
  set(tested_library hone_runtime)
  set(tested_folders "^(base|tensor|runtime|target|transport)$")
  set(test_headers "")
endif()

# The headers of gtest cost more than most tests; they are precompiled once, for all binaries.
file(WRITE ${PROJECT_BINARY_DIR}/test_pch.cc "")
add_library(hone_test_pch STATIC ${PROJECT_BINARY_DIR}/test_pch.cc)
target_link_libraries(hone_test_pch PUBLIC ${tested_library} GTest::gmock GTest::gtest_main)
target_compile_definitions(hone_test_pch PUBLIC HONE_TEST_DIR="${PROJECT_SOURCE_DIR}/tests")
target_include_directories(hone_test_pch PUBLIC ${PROJECT_SOURCE_DIR})  # "tests/ir/test_graphs.h"
hone_target(hone_test_pch)
# Tests wait for the library, not for themselves: optimizing them would triple their build time.
target_compile_options(hone_test_pch PUBLIC $<$<CONFIG:Release>:-O0>)
target_precompile_headers(hone_test_pch PRIVATE
  cmake/pch.h ${test_headers} <gtest/gtest.h> <gmock/gmock.h>)

# NVIDIA's driver, as far as hone calls it, on a GPU that is a part of the process. Its names beside
# those of the driver are seen by nobody.
hone_glob(fake_cuda_sources tests/fake_cuda/*.cc)
list(FILTER fake_cuda_sources EXCLUDE REGEX "_testing\\.cc$")
add_library(fake_cuda SHARED EXCLUDE_FROM_ALL ${fake_cuda_sources} src/base/hash.cc)
target_include_directories(fake_cuda PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(fake_cuda PRIVATE fmt::fmt)
target_compile_features(fake_cuda PRIVATE cxx_std_20)
hone_target(fake_cuda)
target_link_options(fake_cuda PRIVATE -Wl,-Bsymbolic)

# What tests of several folders share: tests/FOLDER/NAME_testing.cc. All of it is about the
# compiler.
if(HONE_SANITIZE STREQUAL thread)
  add_library(hone_testing INTERFACE)
  target_link_libraries(hone_testing INTERFACE hone_test_pch)
  target_sources(hone_testing INTERFACE ${PROJECT_SOURCE_DIR}/tests/fake_cuda/library_testing.cc)
  target_compile_definitions(hone_testing INTERFACE FAKE_CUDA="$<TARGET_FILE:fake_cuda>")
  add_dependencies(hone_testing fake_cuda)
else()
  hone_glob(testing_sources tests/*_testing.cc)
  add_library(hone_testing STATIC EXCLUDE_FROM_ALL ${testing_sources})
  target_link_libraries(hone_testing PUBLIC hone_test_pch)
  target_compile_definitions(hone_testing PRIVATE FAKE_CUDA="$<TARGET_FILE:fake_cuda>")
  add_dependencies(hone_testing fake_cuda)
  hone_target(hone_testing)
  target_precompile_headers(hone_testing REUSE_FROM hone_test_pch)
endif()

add_custom_target(tests)

set(test_shards 1 2)  # Each binary runs in two halves, side by side.

file(GLOB test_folders CONFIGURE_DEPENDS LIST_DIRECTORIES true tests/*)
foreach(folder IN LISTS test_folders)
  cmake_path(GET folder FILENAME name)
  if(NOT IS_DIRECTORY ${folder} OR name MATCHES "^(fake_cuda|fuzz|install|planted)$" OR
     NOT name MATCHES "${tested_folders}")
    continue()
  endif()
  hone_glob(sources ${folder}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_testing\\.cc$")
  if(NOT sources)
    continue()
  endif()
  add_executable(test_${name} ${sources})
  target_link_libraries(test_${name} PRIVATE hone_testing)
  hone_target(test_${name})
  add_dependencies(tests test_${name})
  target_precompile_headers(test_${name} REUSE_FROM hone_test_pch)
  if(name STREQUAL codegen)
    target_include_directories(test_codegen SYSTEM PRIVATE ${Llvm_INCLUDE_DIR})
  endif()
  list(LENGTH test_shards shards)
  foreach(shard IN LISTS test_shards)
    math(EXPR index "${shard} - 1")
    add_test(NAME ${name}.${shard} COMMAND test_${name} --gtest_brief=1)
    set_tests_properties(${name}.${shard} PROPERTIES LABELS fast
      ENVIRONMENT
      "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${index};CXX=${CMAKE_CXX_COMPILER}")
  endforeach()
endforeach()
if(HONE_SANITIZE STREQUAL thread)
  return()
endif()
add_dependencies(tests hone_binary)

# Scripts run in an empty folder, with the binary in $HONE and the repository in $ROOT. One that
# lacks what it needs says so and exits with 77: ctest tells that it was skipped.
set(script_environment HONE=$<TARGET_FILE:hone_binary> ROOT=${PROJECT_SOURCE_DIR}
  BUILD=${PROJECT_BINARY_DIR} HONE_LOG=${PROJECT_BINARY_DIR}/no.log
  HONE_PRICES=${PROJECT_BINARY_DIR}/no.prices CXX=${CMAKE_CXX_COMPILER} PYTHON=${HONE_PYTHON}
  LLVM_INCLUDE=${Llvm_INCLUDE_DIR})
function(hone_script_test name label script)
  add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/tools/run_script.sh ${script})
  set_tests_properties(${name} PROPERTIES
    LABELS ${label} TIMEOUT 600 SKIP_RETURN_CODE 77 ENVIRONMENT "${script_environment}")
endfunction()

hone_glob(cli_scripts tests/cli/*.sh)
foreach(script IN LISTS cli_scripts)
  cmake_path(GET script STEM name)
  hone_script_test(cli.${name} fast ${script})
endforeach()
hone_glob(onnx_scripts tests/onnx/*.sh)
foreach(script IN LISTS onnx_scripts)
  cmake_path(GET script STEM name)
  hone_script_test(onnx.${name} slow ${script})
endforeach()
hone_glob(python_scripts tests/python/*.py)
foreach(script IN LISTS python_scripts)
  cmake_path(GET script STEM name)
  hone_script_test(python.${name} fast ${script})
endforeach()
# They do much where their packages are installed, and nothing elsewhere.
set_tests_properties(python.of_jax python.of_torch python.of_torch_models PROPERTIES TIMEOUT 3600)
# They run a hundred commands, and end some dozens in the middle.
set_tests_properties(cli.examples cli.signals PROPERTIES LABELS slow TIMEOUT 1200)
hone_script_test(python.install slow ${PROJECT_SOURCE_DIR}/tests/python/install.sh)
set_tests_properties(python.install PROPERTIES TIMEOUT 1800)  # it builds the package once more
hone_script_test(python.numpy2 slow ${PROJECT_SOURCE_DIR}/tests/python/numpy2.sh)
if(TARGET python)
  add_dependencies(tests python)
endif()
hone_script_test(log.kill fast ${PROJECT_SOURCE_DIR}/tests/log/kill.sh)
hone_script_test(learn.kill fast ${PROJECT_SOURCE_DIR}/tests/learn/kill.sh)
hone_script_test(learn.train_gnn fast ${PROJECT_SOURCE_DIR}/tests/learn/train_gnn.sh)
add_dependencies(tests examples)
hone_script_test(lint fast ${PROJECT_SOURCE_DIR}/tools/lint.sh)
hone_script_test(headers slow ${PROJECT_SOURCE_DIR}/tools/headers.sh)
hone_script_test(install slow ${PROJECT_SOURCE_DIR}/tests/install/run.sh)
hone_script_test(package slow ${PROJECT_SOURCE_DIR}/tests/install/package.sh)
# The longest start first, so that no core idles at the end; in seconds.
set_tests_properties(onnx.standard cli.train_cost PROPERTIES COST 100)
set_tests_properties(onnx.standard_native onnx.standard_random headers compile.1 compile.2
  program.1 program.2 learn.1 learn.2 cli.examples cli.signals PROPERTIES COST 60)
set_tests_properties(codegen.1 codegen.2 lab.1 lab.2 oracle.1 oracle.2 tune.1 tune.2 prove.1
  planner.1 language.1 package install python.install cli.memory cli.hosts cli.no_memory
  python.numpy2 PROPERTIES COST 40)
set_tests_properties(headers PROPERTIES TIMEOUT 1200)  # sources that changed, one by one
set_tests_properties(python.graph PROPERTIES COST 20)

# `planted` has the sources with faults of base/planted.def compiled once more, with the faults.
# What it defines itself it does not take from the library. Only who asks for it builds it.
hone_glob(all_sources src/*.cc)
list(FILTER all_sources EXCLUDE REGEX "/src/python/")
hone_planted(planted_sources ${all_sources})
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS src/base/planted.def)
add_executable(planted EXCLUDE_FROM_ALL tests/planted/main.cc tests/planted/messages.cc
  tests/transport/collective_cases.cc ${planted_sources})
target_compile_definitions(planted PRIVATE HONE_PLANTED
  HONE_PYTHON_TEST="${PROJECT_SOURCE_DIR}/tests/planted/python.sh"
  HONE_BUILD="${PROJECT_BINARY_DIR}")
target_include_directories(planted SYSTEM PRIVATE ${Llvm_INCLUDE_DIR})
target_link_libraries(planted PRIVATE hone_testing)
hone_target(planted)
# The Python package with its faults. Both modules have them in the same sources; the one without
# the compiler is linked in a second.
if(TARGET python)
  set(planted_package ${PROJECT_BINARY_DIR}/planted_python/python)
  hone_python_module(planted_runtime _runtime ${planted_package}/hone hone_runtime
    src/python/runtime_module.cc ${python_shared_sources} tests/planted/python.cc)
  target_compile_definitions(planted_runtime PRIVATE HONE_PLANTED)
  add_custom_target(planted_python
    COMMAND ${CMAKE_COMMAND} -E copy_if_different ${python_files} ${planted_package}/hone
    COMMAND ${CMAKE_COMMAND} -E create_symlink
      $<TARGET_FILE:python_compiler> ${planted_package}/hone/$<TARGET_FILE_NAME:python_compiler>
    COMMAND ${CMAKE_COMMAND} -E touch ${planted_package}/hone.stamp)
  add_dependencies(planted_python python planted_runtime)
else()
  add_custom_target(planted_python)
endif()

# Writes the learned guide of the memory planner. Only who asks for it builds it.
add_executable(train_guide EXCLUDE_FROM_ALL tools/train_guide.cc)
target_link_libraries(train_guide PRIVATE hone_program)
hone_target(train_guide)

# All fuzz targets are one binary. `./dev fuzz` runs them with sanitizers, guided by what inputs
# reach. `./test` runs them briefly with the library that is there: seeds, and changes of them.
hone_glob(fuzz_sources tests/fuzz/*.cc)
add_executable(fuzz ${fuzz_sources})
target_link_libraries(fuzz PRIVATE hone_lab hone_prove -fsanitize=fuzzer)
target_include_directories(fuzz PRIVATE ${PROJECT_SOURCE_DIR})
hone_target(fuzz)
if(NOT HONE_SANITIZE)
  target_compile_options(fuzz PRIVATE -fsanitize=fuzzer-no-link -O1)
endif()
add_dependencies(tests fuzz)
foreach(source IN LISTS fuzz_sources)
  cmake_path(GET source STEM name)
  if(NOT name STREQUAL main)
    add_test(NAME fuzz.${name} COMMAND ${PROJECT_SOURCE_DIR}/tools/fuzz.sh ${name} 2 -timeout=8)
    set_tests_properties(fuzz.${name} PROPERTIES LABELS slow ENVIRONMENT FUZZ_PRESET=release)
  endif()
endforeach()
