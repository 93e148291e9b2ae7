# examples/NAME.cc -> NAME, in build/PRESET. The tests run them (tests/learn/*.sh,
# tests/cli/cpp_examples.sh).
hone_glob(examples examples/*.cc)
add_custom_target(examples)
foreach(example IN LISTS examples)
  cmake_path(GET example STEM name)
  add_executable(${name} ${example})
  target_link_libraries(${name} PRIVATE hone)
  hone_target(${name})
  add_dependencies(examples ${name})
endforeach()
