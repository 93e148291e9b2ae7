#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/instructions.h"
#include "runtime/image.h"

namespace hone {

// How inputs or outputs are called in C: fields of a struct.
std::vector<std::string> c_fields(std::span<const image::Port> ports);

// The content of a library's header.
struct LibraryInterface {
  std::string_view name;     // of the library, one of C
  std::string_view model;    // its name, any text
  std::string_view version;  // of hone
  std::span<const image::Port> inputs;
  std::span<const image::Port> outputs;
  std::span<const image::Donation> donations;
  std::vector<Instructions> needs;  // by program, the best first
};
std::string library_header(const LibraryInterface& library);

}  // namespace hone
