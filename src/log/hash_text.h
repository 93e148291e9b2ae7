#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hone {

// Hashes as people and files see them: 0x and 16 digits, as in 0x9c2b5e3f00d1a764.
std::string hash_text(uint64_t hash);
std::optional<uint64_t> parse_hash(std::string_view text);

}  // namespace hone
