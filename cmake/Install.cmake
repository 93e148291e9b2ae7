# `cmake --install` gives the headers, the libraries, the binary, and a config for
# find_package(hone).

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS hone hone_program hone_runtime EXPORT hone_targets)
# MLIR's library is found where it was linked from: it lies outside of the usual folders.
set_target_properties(hone_binary PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS hone_binary)
install(DIRECTORY src/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hone
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN cli EXCLUDE PATTERN python EXCLUDE)
install(FILES src/runtime/hone.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hone)  # <hone.h>, of C

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/hone)
install(EXPORT hone_targets NAMESPACE hone:: DESTINATION ${config_folder})
write_basic_package_version_file(honeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/honeConfig.cmake ${PROJECT_BINARY_DIR}/honeConfigVersion.cmake
  DESTINATION ${config_folder})
