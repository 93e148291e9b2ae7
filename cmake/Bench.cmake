# bench/NAME.cc or bench/NAME/*.cc -> bench_NAME. Run them with `./dev bench NAME`.

find_package(benchmark REQUIRED)

add_library(hone_bench_main STATIC bench/main.cc bench/flags.cc bench/onnx_runtime.cc
  bench/real_models.cc bench/rows.cc)
target_include_directories(hone_bench_main PUBLIC ${PROJECT_SOURCE_DIR})  # "bench/onnx_runtime.h"
target_link_libraries(hone_bench_main
  PUBLIC hone_cli benchmark::benchmark PRIVATE nlohmann_json::nlohmann_json)
hone_target(hone_bench_main)

file(GLOB benches CONFIGURE_DEPENDS LIST_DIRECTORIES true bench/*)
list(FILTER benches EXCLUDE REGEX
  "/(main\\.cc|child\\.h|(flags|onnx_runtime|real_models|rows)\\.(cc|h)|.*\\.md)$")
foreach(bench IN LISTS benches)
  cmake_path(GET bench STEM name)
  set(sources ${bench})
  if(IS_DIRECTORY ${bench})
    hone_glob(sources ${bench}/*.cc)
  endif()
  add_executable(bench_${name} ${sources})
  target_link_libraries(bench_${name} PRIVATE hone_bench_main)
  hone_target(bench_${name})
endforeach()

# XGBoost of the distribution, a rival of bench_prices, which says how to get it where it is not.
find_path(HONE_XGBOOST_INCLUDE xgboost/c_api.h)
find_library(HONE_XGBOOST xgboost)
if(HONE_XGBOOST_INCLUDE AND HONE_XGBOOST)
  target_include_directories(bench_prices SYSTEM PRIVATE ${HONE_XGBOOST_INCLUDE})
  target_link_libraries(bench_prices PRIVATE ${HONE_XGBOOST})
  set(left_out bench/prices/no_xgboost.cc)
else()
  set(left_out bench/prices/xgboost.cc)
endif()
set_source_files_properties(${left_out} PROPERTIES HEADER_FILE_ONLY ON)  # not compiled

# What decides about rows that are kept.
set(compiled planner cost alloc plan program kernel rewrite ir tensor target codegen runtime)
hone_version(bench/tune/tune.cc HONE_TUNER_VERSION tune search measure ${compiled})
hone_version(bench/models/models.cc HONE_COMPILER_VERSION ${compiled})
