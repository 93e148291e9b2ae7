#pragma once

#include <cstdint>

#include "ir/builder.h"

namespace hone {

// Weights of a few bits in groups along the sum, as MatMulNBits of ONNX Runtime has them: number q
// of a group stands for (q - zero) * scale.
struct GroupedWeights {
  Value bytes;              // u8[outputs, groups, bytes of a group], the lowest bits first
  Value scales;             // f32[outputs, groups]
  Value zeros = {};         // an integer or f32[outputs, groups]; absent: 2^(bits - 1)
  int64_t bits = 4;         // 2, 4 or 8
  int64_t numbers() const;  // of a group
};

// The accuracy_level that asks for it.
inline constexpr int64_t kLevelOfBytes = 4;
// Sums of more products of bytes may leave i32.
inline constexpr int64_t kMostInGroup = int64_t{1} << 15;

// x[..., inputs] by such weights, where the data are rounded to i8 as ONNX Runtime does it for
// accuracy_level 4 and weights of 4 or 8 bits. The numbers of a row that meet one group share a
// scale, the largest magnitude over 127, and are rounded to the nearest, ties to even. Products of
// a group are summed as integers. These sums times both scales are summed in f32, as
// f32[..., outputs]. A last group that the inputs do not fill has data of 0.
Value product_of_rounded(Value x, const GroupedWeights& weights);

// Decides if that pays. The sums of all groups are in memory, [groups, ..., outputs]. They may take
// as many bytes as the weights would in f16, so few rows have room, and an unknown number has not.
bool sums_have_room(Value x, int64_t group);

// The same rounded data as f32[..., inputs], each times its scale: for products of any size.
Value rounded_in_groups(Value x, int64_t group);

}  // namespace hone
