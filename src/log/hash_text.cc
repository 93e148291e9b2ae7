#include "log/hash_text.h"

#include <fmt/format.h>

namespace hone {

std::string hash_text(uint64_t hash) { return fmt::format("0x{:016x}", hash); }

std::optional<uint64_t> parse_hash(std::string_view text) {
  if (text.size() != 18 || !text.starts_with("0x")) return std::nullopt;
  uint64_t hash = 0;
  for (char c : text.substr(2)) {
    const size_t digit = std::string_view("0123456789abcdef").find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    hash = hash << 4 | digit;
  }
  return hash;
}

}  // namespace hone
