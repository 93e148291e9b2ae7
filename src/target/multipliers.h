#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "target/target.h"

// Multipliers of 8 bits that other hardware may have, as the text of a Target lists them. They
// change no plan and no code of this compiler: `hone quantize` chooses among them. So a Target
// itself has none, and print() writes none.

namespace hone {

struct MultiplierLine {
  std::string name;
  bool is_signed = false;  // of both operands
  double power = 0;        // watts
  double area = 0;         // square micrometers
  std::string products;    // a file, beside the text
};
inline constexpr size_t kMaxMultipliers = 64;
inline constexpr double kMaxMultiplierPower = 1e3;
inline constexpr double kMaxMultiplierArea = 1e12;

// The text is that of a Target, which is checked, too.
Result<std::vector<MultiplierLine>> parse_multipliers(std::string_view text, std::string_view file);

}  // namespace hone
