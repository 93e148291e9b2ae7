#pragma once

#include <filesystem>
#include <string>

#include "base/progress.h"
#include "compile/library.h"

// Libraries of C for models, by the C compiler of this machine.

namespace hone {

// True if the path names a library that build_library() can make: it ends in .so or .a.
bool is_library_path(const std::filesystem::path& path);
// NAME of a path libNAME.so; a name of C.
std::string library_name(const std::filesystem::path& path);
// NAME.h beside the library.
std::filesystem::path header_path(const std::filesystem::path& library);

struct LibraryBuild {
  std::string compiler = "cc";    // a program; may have arguments behind it
  std::filesystem::path scratch;  // a folder for what is made on the way
  const CancelToken* cancel = nullptr;
};
// Writes the library and its header, each at once or not at all. Errors: ErrorCode::unsupported if
// there is no compiler, bad_input with its message if it fails.
Status build_library(const LibrarySources& sources, const std::filesystem::path& path,
                     const LibraryBuild& build);

}  // namespace hone
