#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"
#include "oracle/compare.h"

// Compares outputs with the reference where inputs are special numbers (tensor/special_numbers.h).

namespace hone {

// Each number counts by its own size, however large others are; near zero by the least denormal
// numbers of the type.
Tolerance tolerance_of_each(DType type);

// The first element where the sign of a zero is not that of `expected` and of all `ways`, which
// agree on it. None: there is no such element.
std::optional<int64_t> first_other_zero(const Tensor& actual, const Tensor& expected,
                                        std::span<const Tensor> ways = {});

struct Difference {
  size_t output;
  std::string what;
  // Rounding or order decides: the reference's modes differ there, or some sum or product of many
  // is far smaller than its terms, or overflows on the way.
  bool is_undecided;
};
// Where outputs are not those of the reference, each op rounded to its type.
Result<std::vector<Difference>> differences_of_specials(const Graph& graph,
                                                        std::span<const Tensor> inputs,
                                                        std::span<const Tensor> actual);

}  // namespace hone
