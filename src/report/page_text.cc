#include "report/page_text.h"

#include <fmt/format.h>

#include <cstdint>

namespace hone {
namespace {

struct Character {
  uint32_t code = 0;
  size_t bytes = 0;  // 0: none begins there
};

// The shortest form, and neither a surrogate nor beyond Unicode.
Character character_at(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return {};
  uint32_t code = first & (0xffu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[bytes] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {code, bytes};
}

bool is_shown(uint32_t code) {
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
  const bool has_no_shape = (code >= 0x200b && code <= 0x200f) || code == 0x2028 ||
                            code == 0x2029 || code == 0xfeff || code == 0x061c;
  const bool directs = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return !has_no_shape && !directs;
}

}  // namespace

std::string page_text(std::string_view text, size_t most) {
  constexpr std::string_view kGap = "…";
  // Far more than is shown is not looked at.
  const size_t half = most > kGap.size() ? (most - kGap.size()) / 2 : 0;
  std::string safe;
  size_t cut = 0, after = 0;  // the ends of the two parts that are kept, where a character begins
  const std::string_view seen = text.substr(0, 64 << 10);
  for (size_t i = 0; i < seen.size();) {
    if (safe.size() <= half) cut = safe.size();
    const Character one = character_at(seen.substr(i));
    if (one.bytes == 0)
      safe += fmt::format("\\x{:02x}", static_cast<uint8_t>(seen[i]));
    else if (is_shown(one.code))
      safe += seen.substr(i, one.bytes);
    else
      safe += fmt::format("\\u{{{:04x}}}", one.code);
    i += std::max<size_t>(one.bytes, 1);
  }
  if (safe.size() <= most) return safe;
  after = safe.size() - half;
  while (after < safe.size() && (static_cast<uint8_t>(safe[after]) & 0xc0) == 0x80) ++after;
  return safe.substr(0, cut).append(kGap).append(safe.substr(after));
}

std::string html(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '&': safe += "&amp;"; break;
      case '"': safe += "&quot;"; break;
      case '\'': safe += "&#39;"; break;
      default: safe += c;
    }
  }
  return safe;
}

}  // namespace hone
