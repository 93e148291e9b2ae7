#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

// Where the members of a zip archive lie in the file, which libzip does not tell.

namespace hone {

struct ZipMember {
  std::string name;
  bool stored;  // neither compressed nor encrypted: the data are the member's bytes
  std::span<const std::byte> data;
};

// In the order of the central directory. Empty if anything is unusual; then libzip must read the
// members, and says what is wrong.
std::vector<ZipMember> zip_layout(std::span<const std::byte> file);

}  // namespace hone
