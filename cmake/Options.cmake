# Compiler settings that every target of hone shares.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

# All files below the pattern's folder, found anew at each build.
function(hone_glob result)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS LIST_DIRECTORIES false ${ARGN})
  set(${result} ${files} PARENT_SCOPE)
endfunction()

# Tells a source the version of folders and files of src/: one macro, a hash of all that is in them.
function(hone_version source macro)
  set(hashes)
  foreach(part IN LISTS ARGN)
    if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/src/${part})
      hone_glob(files src/${part}/*.cc src/${part}/*.h src/${part}/*.def)
    else()
      set(files ${PROJECT_SOURCE_DIR}/src/${part})  # One that is gone stops the configuration.
    endif()
    foreach(file IN LISTS files)
      file(SHA256 ${file} hash)
      string(APPEND hashes ${hash})
    endforeach()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  endforeach()
  string(SHA256 version "${hashes}")
  set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS
    ${macro}="${PROJECT_VERSION}-${version}")
endfunction()

find_program(HONE_CCACHE ccache)
if(HONE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness is what ccache needs to cache files that use a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${HONE_CCACHE})
endif()

if(HONE_SANITIZE STREQUAL thread)
  set(HONE_SANITIZERS -fsanitize=thread -fno-omit-frame-pointer)
elseif(HONE_SANITIZE)
  # fuzzer-no-link adds the coverage that guides the fuzz targets.
  set(HONE_SANITIZERS -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer)
endif()

set(HONE_FLAGS
  -Wall -Wextra -Wpedantic
  -ffp-contract=off  # The same bits on every machine, fused multiply-add or not.
  -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)  # __FILE__ starts at src/ everywhere.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  list(APPEND HONE_FLAGS
    -Wno-gnu-statement-expression -Wno-gnu-statement-expression-from-macro-expansion  # HONE_TRY
    -Xclang=-fno-pch-timestamp)  # So that ccache can tell that a precompiled header is unchanged.
endif()
if(HONE_WERROR)
  list(APPEND HONE_FLAGS -Werror)
endif()

function(hone_target target)
  target_compile_options(${target} PRIVATE ${HONE_FLAGS} ${HONE_SANITIZERS})
  target_link_options(${target} PRIVATE ${HONE_SANITIZERS})
  if(HONE_UNITY)
    hone_unity(${target})
  endif()
endfunction()

# For what reads, decides and prints: to inline less saves a fifth of the time that it compiles, and
# costs it nothing that a user would see. What runs in each inner loop stays as it is.
function(hone_inline_less target)
  target_compile_options(${target} PRIVATE
    "$<$<AND:$<CXX_COMPILER_ID:Clang>,$<CONFIG:Release>>:SHELL:-mllvm -inline-threshold=50>")
endfunction()

# Those of SOURCES that have a planted fault: the target `planted` compiles them once more.
function(hone_planted result)
  set(planted)
  foreach(source IN LISTS ARGN)
    file(STRINGS ${source} places REGEX "HONE_PLANT\\(" LIMIT_COUNT 1)
    if(places)
      list(APPEND planted ${source})
    endif()
  endforeach()
  set(${result} ${planted} PARENT_SCOPE)
endfunction()

# Compiles the sources of a folder of src/ together, in batches of at most 100 KB, since most of the
# time goes into headers. CMake leaves out sources with definitions or options of their own. Names
# that are local to a file must be unique in its folder: `./dev sweep` compiles each folder as one.
# Tests and benchmarks have short names, so each has a namespace of its own: HONE_FILE, which a
# batch defines anew for each file.
# Sources with planted faults have batches of their own, so that `planted` can replace a batch.
set(HONE_BATCH_BYTES 100000 CACHE STRING "Bytes of a batch of sources")
function(hone_unity target)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "(^|/)(src/.*|tests/fuzz/.*|tests/.*_test|bench/[^/]+)\\.cc$")
  if(NOT sources OR target MATCHES "^(bench|hone_bench)_" AND NOT target STREQUAL "bench_sources")
    return()
  endif()
  hone_planted(planted ${sources})
  list(REMOVE_ITEM sources ${planted})
  hone_batches(${target} ${sources})
  hone_batches(${target}_planted ${planted})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(target MATCHES "^(test_|fuzz$|bench_sources$)")
    set_target_properties(${target} PROPERTIES UNITY_BUILD_UNIQUE_ID HONE_FILE)
  endif()
endfunction()

# Says of each source in which batch it is: NAME_1, NAME_2, ...
function(hone_batches name)
  set(folder "")
  set(batch 0)
  set(bytes 0)
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE path)
    string(REGEX MATCH "(src|tests)/[^/]+|/bench/" top ${path})
    file(SIZE ${path} size)
    math(EXPR bytes "${bytes} + ${size}")
    if(NOT top STREQUAL folder OR bytes GREATER HONE_BATCH_BYTES)
      math(EXPR batch "${batch} + 1")
      set(bytes ${size})
      set(folder ${top})
    endif()
    # A source of several targets stays in the batch that it has.
    get_source_file_property(group ${source} UNITY_GROUP)
    if(NOT group)
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${name}_${batch})
    endif()
  endforeach()
endfunction()

# The files of a pattern as texts in a source: cmake/NAME.cc.in, with a row for each of them. A text
# is far below the 64 KiB that every compiler takes.
function(hone_embed result name pattern)
  hone_glob(files ${PROJECT_SOURCE_DIR}/${pattern})
  set(rows)
  foreach(file IN LISTS files)
    cmake_path(GET file FILENAME file_name)
    file(READ ${file} text)
    string(APPEND rows "    {\"${file_name}\", R\"HONE_FILE(${text})HONE_FILE\"},\n")
  endforeach()
  set(source ${PROJECT_BINARY_DIR}/${name}.cc)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${name}.cc.in ${source} @ONLY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set(${result} ${source} PARENT_SCOPE)
endfunction()

# The same of files that are no text. The linker finds them between two symbols.
function(hone_embed_binary result name pattern)
  hone_glob(all ${PROJECT_SOURCE_DIR}/${pattern})
  set(files)
  set(rows)
  set(count 0)
  foreach(file IN LISTS all)
    cmake_path(GET file FILENAME file_name)
    set(symbol hone_${name}_${count})
    string(APPEND files
      "asm(\".pushsection .rodata\\n.balign 16\\n${symbol}:\\n.incbin \\\"${file}\\\"\\n\"\n"
      "    \"${symbol}_end:\\n.popsection\");\n"
      "extern const std::byte ${symbol}[] asm(\"${symbol}\"),\n"
      "    ${symbol}_end[] asm(\"${symbol}_end\");\n")
    string(APPEND rows "      {\"${file_name}\", std::span(${symbol}, ${symbol}_end)},\n")
    math(EXPR count "${count} + 1")
  endforeach()
  set(source ${PROJECT_BINARY_DIR}/${name}.cc)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${name}.cc.in ${source} @ONLY)
  set_property(SOURCE ${source} APPEND PROPERTY OBJECT_DEPENDS "${all}")
  set(${result} ${source} PARENT_SCOPE)
endfunction()
