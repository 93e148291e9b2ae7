#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/functional.h"
#include "ir/op_def.h"

// The expansions of composites share these. An expansion checks its operands first, so that the
// error speaks of the composite and not of some primitive inside. A check that fails records the
// error in the builder and says false:
//
//   if (!need_real(b, "x", x) || !need_rank(b, "x", x, 4)) return {};

namespace hone {

// An absent Value for an optional operand that was left out at the end.
inline Value operand_or_none(std::span<const Value> operands, size_t i) {
  return i < operands.size() ? operands[i] : Value();
}

// Records the error; `return failed(b, bad_input(...));`.
std::vector<Value> failed(Builder& b, Error error);

// f64, f32, f16 or bf16.
bool need_real(Builder& b, std::string_view name, Value v);
bool need_integer(Builder& b, std::string_view name, Value v);
// Not storage-only and not bool.
bool need_number(Builder& b, std::string_view name, Value v);
bool need_rank(Builder& b, std::string_view name, Value v, int rank, std::string_view layout = "");
bool need_rank_at_least(Builder& b, std::string_view name, Value v, int rank,
                        std::string_view layout = "");
// Absent values pass.
bool need_type(Builder& b, std::string_view name, Value v, Type type);
// For dims that come from several operands, so that they may be no type at all.
bool need_type(Builder& b, std::string_view name, Value v, DType dtype, const Dims& dims);
// Broadcasting `v` to `dims` as numpy does enlarges nothing but `v`. Absent values pass.
bool need_broadcastable(Builder& b, std::string_view name, Value v, const Dims& dims);
bool need_positive(Builder& b, std::string_view name, int64_t number);
// `axis` counted from the front.
std::optional<int> axis_in(Builder& b, int64_t axis, int rank);

// [begin, end)
Ints int_range(int begin, int end);
Dims dims_from(std::span<const Dim> dims, int begin, int end);
Dim product(std::span<const Dim> dims);
Dims with_dim(Dims dims, int axis, Dim dim);
// A vector (or scalar) laid along one axis of `dims`.
Value along(Value v, const Dims& dims, int axis);
// A constant vector.
Value integers(Builder& b, DType dtype, const Ints& numbers);
Value reals(Builder& b, DType dtype, std::span<const double> numbers);
// The part [index] of an axis, which disappears.
Value part(Value x, int axis, int64_t index);
// Min and max with NaN kept.
Value clamp(Value x, double low, double high);

}  // namespace hone
