#pragma once

#include <cstddef>
#include <span>
#include <string_view>

// The files of src/place/shipped, which `hone train placement` makes.

namespace hone {

struct ShippedPolicy {
  std::string_view name;  // of the file
  std::span<const std::byte> file;
};
std::span<const ShippedPolicy> shipped_policies();

}  // namespace hone
