#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace hone {

// The coefficients of the analytic price: what it takes for each thing that it counts. The defaults
// were found by hand on servers; a file may have others for a target.
struct Prices {
#define HONE_PRICE(member, value, doc) double member = value;
#include "cost/prices.def"
  bool operator==(const Prices&) const = default;
};

inline constexpr int64_t kMaxPricesText = 64 << 10;  // bytes

// A line per coefficient, each with what it is:
//
//   prices on "avx512-2c" {
//     sum_latency = 8  # from one trip of a sum to the next
//     ...
//   }
std::string print(const Prices& prices, std::string_view target);
// Inverse of print: all coefficients, each once, finite and not negative, for the target of this
// name. Errors have their place as "file:line:column" and list the coefficients that there are.
Result<Prices> parse_prices(std::string_view text, std::string_view target,
                            std::string_view file = "<text>");

}  // namespace hone
