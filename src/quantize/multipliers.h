#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "tensor/tensor.h"

// Multipliers of 8 bits by all of their products.

namespace hone::quantize {

struct Multiplier {
  std::string name;
  bool is_signed = false;  // of both operands: i8, else u8
  double power = 0;        // watts
  double area = 0;         // square micrometers
  // i32[256, 256]: the row is the pattern of the data, the column that of the weight.
  Tensor products = {};
  // Over all pairs.
  double mean_error = 0;
  int64_t worst_error = 0;

  bool is_exact() const { return worst_error == 0; }
};
// Larger products would leave no room for sums in i32.
inline constexpr int64_t kMostProduct = int64_t{1} << 17;

// Its errors follow from the products. Refuses another type, other dims and products that are too
// large.
Result<Multiplier> multiplier_of(std::string name, bool is_signed, double power, double area,
                                 Tensor products);
// The list in the text of a Target, with the files that it names; empty if there is none.
// One of them must be exact, since energy is compared with its energy. All must be signed, or none.
Result<std::vector<Multiplier>> load_multipliers(const std::filesystem::path& target);

}  // namespace hone::quantize
