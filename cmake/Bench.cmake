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
# What decides about rows that are kept.
set(compiled planner cost alloc plan program kernel rewrite ir tensor target codegen runtime)
hone_version(bench/tune/tune.cc HONE_TUNER_VERSION tune search measure ${compiled})
hone_version(bench/models/models.cc HONE_COMPILER_VERSION ${compiled})
