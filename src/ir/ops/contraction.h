#pragma once

#include "ir/op_def.h"
#include "ir/reference/combine.h"
#include "ir/reference/gemm.h"

// dot and conv share these: their types and how their sums become results.

namespace hone {

inline constexpr AttrSpec kAccumulateAttr = {
    "accumulate", AttrKind::word, "same",
    "The element type of the result and of the sums; 'same': that of the operands."};

inline constexpr AttrSpec kFlushAttr = {
    .name = "flush",
    .kind = AttrKind::flag,
    .default_text = "false",
    .doc =
        "Denormal numbers of bf16, and denormal sums of their products, may count as 0, where "
        "that is faster; of numbers of f32 so may what is below the normal numbers. Preparing a "
        "graph says so on request.",
    .came_later = true};

inline constexpr int64_t kTf32Parts = 1, kRoundedParts = 2, kAllParts = 3;
inline constexpr AttrSpec kPartsAttr = {
    .name = "parts",
    .kind = AttrKind::integer,
    .default_text = "3",
    .doc =
        "The parts of bf16 that a number of f32 is cut into on a matrix unit. 3 parts make up all "
        "of it. 2 parts, if 'flush' permits that, are as accurate as plain sums of f32 if these "
        "are long. Preparing a graph finds out, where 'flush' is asked for. 1 part is for GPUs, "
        "where somebody asked for it: the 11 bits of tf32. Other machines take that as 3.",
    .came_later = true};

// The result's element type for these operands.
inline Result<DType> contraction_type(Op op, DType lhs, DType rhs) {
  const std::string& word = op.word("accumulate");
  const int64_t parts = op.integer("parts");
  if (parts < kTf32Parts || parts > kAllParts)
    return bad_input("parts is {}, not {} to {}", parts, kTf32Parts, kAllParts);
  if (!kNumber.contains(rhs))
    return bad_input("the second operand has element type {}, not a number", name(rhs));
  if (word == "same") {
    if (lhs == rhs) return lhs;
    return bad_input("operands of {} and {} need an 'accumulate' type", name(lhs), name(rhs));
  }
  std::optional<DType> result = dtype_from_name(word);
  if (!result) return bad_input("accumulate '{}' is not an element type", word);
  if (is_real(lhs) ? lhs != rhs : !is_integer(rhs))
    return bad_input("operands of {} and {} cannot be multiplied", name(lhs), name(rhs));
  if (!kNumber.contains(*result) || is_real(*result) != is_real(lhs))
    return bad_input("{} products do not accumulate in {}", name(lhs), word);
  return *result;
}

// Turns sums into elements of the result: integers wrap to its type.
template <class T>
class ContractionResult {
 public:
  explicit ContractionResult(DType dtype) : wrap_(dtype) {}

  T operator()(const Ring<T>& sum) const {
    if constexpr (std::is_same_v<T, int64_t>) {
      return wrap_(sum);
    } else if constexpr (holds_integers<T>) {
      return {wrap_(static_cast<uint64_t>(sum.value)), sum.from};
    } else {
      return sum;
    }
  }

 private:
  IntegerWrap wrap_;
};

}  // namespace hone
