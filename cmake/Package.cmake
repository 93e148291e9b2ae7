# `cpack` makes a Debian package of what Install.cmake installs; `./dev package` calls it.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME hone)
set(CPACK_PACKAGE_VENDOR hone)
set(CPACK_PACKAGE_CONTACT "hone <hone@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "learning compiler for tensor programs")
set(CPACK_PACKAGE_DESCRIPTION
  "hone compiles models, ONNX files among them, to native code for x86-64, checks the code against a
reference, measures it, and looks for faster code. The package has the command hone, its manual page
and completions, and libraries and headers for C and C++.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)  # xz would take minutes
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Who links the libraries needs what they stand on.
string(JOIN ", " CPACK_DEBIAN_PACKAGE_SUGGESTS libfmt-dev libzip-dev libsqlite3-dev libonnx-dev
  libprotobuf-dev libmlir-19-dev llvm-19-dev)

include(CPack)
