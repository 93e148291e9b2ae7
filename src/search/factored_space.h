#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"

namespace hone {

// A space whose points are assignments of values to variables, and whose prices, up to a constant,
// are sums of local prices over few variables each. For layouts, the price of a kernel depends on
// the layouts of its operands and results alone. Dynamic programming stands on it.
class FactoredSpace {
 public:
  virtual ~FactoredSpace() = default;
  // For each variable, the number of its values, at least 1. Values are numbers from 0.
  virtual std::span<const uint32_t> domains() const = 0;
  // For each factor, the variables that its price depends on, each once.
  virtual std::span<const std::vector<uint32_t>> scopes() const = 0;
  // The local price of a factor, of values in the order of its scope. Infinity: refused.
  virtual Result<double> local(size_t factor, std::span<const uint32_t> values) = 0;

  // The value of each variable of a point.
  virtual std::vector<uint32_t> values(uint32_t point) const = 0;
  virtual uint32_t point(std::span<const uint32_t> values) = 0;
};

}  // namespace hone
