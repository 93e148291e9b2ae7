# `cmake --install` gives the headers, the libraries, the binary, and a config for
# find_package(hone).

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS hone hone_program hone_runtime EXPORT hone_targets)
# MLIR's library is found where it was linked from: it lies outside of the usual folders.
set_target_properties(hone_binary PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS hone_binary)
install(DIRECTORY src/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hone
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def"
  PATTERN cli EXCLUDE PATTERN python EXCLUDE PATTERN lab EXCLUDE PATTERN prove EXCLUDE)
install(FILES src/runtime/hone.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hone)  # <hone.h>, of C

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/hone)
install(EXPORT hone_targets NAMESPACE hone:: DESTINATION ${config_folder})
write_basic_package_version_file(honeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/honeConfig.cmake ${PROJECT_BINARY_DIR}/honeConfigVersion.cmake
  DESTINATION ${config_folder})

# The manual page and completions are what the binary itself prints.
install(CODE [[
  foreach(page
      "man|share/man/man1/hone.1"
      "completions bash|share/bash-completion/completions/hone"
      "completions zsh|share/zsh/vendor-completions/_hone"
      "completions fish|share/fish/vendor_completions.d/hone.fish")
    string(REPLACE "|" ";" parts "${page}")
    list(GET parts 0 words)
    list(GET parts 1 path)
    separate_arguments(words)
    set(file "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${path}")
    cmake_path(GET file PARENT_PATH folder)
    file(MAKE_DIRECTORY "${folder}")
    message(STATUS "Installing: ${file}")
    execute_process(COMMAND "$<TARGET_FILE:hone_binary>" ${words}
      OUTPUT_FILE "${file}" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
]])
