#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/op_def.h"
#include "tensor/demand.h"

// Questions that the inference of several families asks. Their errors name both sides.

namespace hone {

// smaller <= larger for every binding.
inline Status expect_le(Dim smaller, std::string_view smaller_name, Dim larger,
                        std::string_view larger_name, int axis) {
  if (provably_le(smaller, larger)) return {};
  demand(Demand::Kind::at_least, larger, smaller);
  bool known = smaller.is_static() && larger.is_static();
  return bad_input("{} {} {} {} {} on axis {}", smaller_name, smaller.to_string(),
                   known ? "exceeds" : "is not provably at most", larger_name, larger.to_string(),
                   axis);
}

// value >= 0 for every binding.
inline Status expect_not_negative(Dim value, std::string_view value_name, int axis) {
  if (provably_le(0, value)) return {};
  demand(Demand::Kind::at_least, value, 0);
  return bad_input("{} {} {} on axis {}", value_name, value.to_string(),
                   value.is_static() ? "is negative" : "may be negative", axis);
}

// One entry per dim of a tensor.
inline Status expect_per_dim(size_t count, std::string_view list_name, int rank) {
  if (count == static_cast<size_t>(rank)) return {};
  return bad_input("{} has {} entries for rank {}", list_name, count, rank);
}

// 0 <= axis < rank. Axes of primitive ops do not count from the back.
inline Status expect_axis(int64_t axis, std::string_view axis_name, int rank) {
  if (axis >= 0 && axis < rank) return {};
  return bad_input("{} {} is outside rank {}", axis_name, axis, rank);
}

// Axes of a tensor, each at most once.
inline Status expect_distinct_axes(const Ints& axes, std::string_view list_name, int rank) {
  for (size_t i = 0; i < axes.size(); ++i) {
    HONE_TRY(expect_axis(axes[i], list_name, rank));
    if (std::find(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i), axes[i]) !=
        axes.begin() + static_cast<std::ptrdiff_t>(i)) {
      return bad_input("{} names axis {} twice", list_name, axes[i]);
    }
  }
  return {};
}

// Distinct axes in increasing order.
inline Status expect_sorted_axes(const Ints& axes, std::string_view list_name, int rank) {
  HONE_TRY(expect_distinct_axes(axes, list_name, rank));
  if (!std::is_sorted(axes.begin(), axes.end())) {
    return bad_input("{} is not in increasing order", list_name);
  }
  return {};
}

inline bool contains(const Ints& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// The entry of a list in which an empty list stands for `otherwise` everywhere.
inline int64_t entry_or(const Ints& list, int i, int64_t otherwise) {
  return list.empty() ? otherwise : list[static_cast<size_t>(i)];
}

// A rank-0 integer, such as a start index.
inline Status expect_scalar_integer(Type type, std::string_view name) {
  if (type.rank() == 0 && is_integer(type.dtype())) return {};
  return bad_input("{} has type {}, not an integer scalar", name, type.to_string());
}

// The one result of an op, its size limits checked.
inline Result<std::vector<Type>> single_result(DType dtype, const Dims& dims) {
  return std::vector<Type>{HONE_TRY(Type::make(dtype, dims))};
}

}  // namespace hone
