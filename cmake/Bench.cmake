# bench/NAME.cc or bench/NAME/*.cc -> bench_NAME. Run them with `./dev bench NAME`, which builds
# what it runs. `./test` needs to know that they compile: bench_sources has them all, in a fraction
# of the time.

find_package(benchmark REQUIRED)

add_library(hone_bench_main STATIC EXCLUDE_FROM_ALL
  bench/main.cc bench/flags.cc bench/onnx_runtime.cc bench/real_models.cc bench/replay.cc
  bench/rows.cc)
target_include_directories(hone_bench_main PUBLIC ${PROJECT_SOURCE_DIR})  # "bench/onnx_runtime.h"
target_link_libraries(hone_bench_main
  PUBLIC hone_cli benchmark::benchmark PRIVATE nlohmann_json::nlohmann_json)
hone_target(hone_bench_main)

file(GLOB benches CONFIGURE_DEPENDS LIST_DIRECTORIES true bench/*)
list(FILTER benches EXCLUDE REGEX
  "/(main\\.cc|child\\.h|(flags|onnx_runtime|real_models|replay|rows)\\.(cc|h)|.*\\.md)$")
set(bench_sources)
foreach(bench IN LISTS benches)
  cmake_path(GET bench STEM name)
  set(sources ${bench})
  if(IS_DIRECTORY ${bench})
    hone_glob(sources ${bench}/*.cc)
  endif()
  list(APPEND bench_sources ${sources})
  add_executable(bench_${name} EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(bench_${name} PRIVATE hone_bench_main)
  hone_target(bench_${name})
endforeach()
add_library(bench_sources OBJECT ${bench_sources})
target_include_directories(bench_sources PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(bench_sources
  PRIVATE hone_cli benchmark::benchmark nlohmann_json::nlohmann_json)
hone_target(bench_sources)
target_compile_options(bench_sources PRIVATE $<$<CONFIG:Release>:-O0>)
target_precompile_headers(bench_sources PRIVATE cmake/pch.h <benchmark/benchmark.h>)

# XGBoost of the distribution, a rival of bench_prices, which says how to get it where it is not.
find_path(HONE_XGBOOST_INCLUDE xgboost/c_api.h)
find_library(HONE_XGBOOST xgboost)
if(HONE_XGBOOST_INCLUDE AND HONE_XGBOOST)
  target_include_directories(bench_prices SYSTEM PRIVATE ${HONE_XGBOOST_INCLUDE})
  target_link_libraries(bench_prices PRIVATE ${HONE_XGBOOST})
  target_include_directories(bench_sources SYSTEM PRIVATE ${HONE_XGBOOST_INCLUDE})
  set(left_out bench/prices/no_xgboost.cc)
else()
  set(left_out bench/prices/xgboost.cc)
endif()
set_source_files_properties(${left_out} PROPERTIES HEADER_FILE_ONLY ON)  # not compiled

# What decides about rows that are kept.
set(compiled planner cost alloc plan program kernel rewrite ir tensor target codegen runtime)
hone_version(bench/tune/tune.cc HONE_TUNER_VERSION tune search measure ${compiled})
hone_version(bench/models/models.cc HONE_COMPILER_VERSION ${compiled})
