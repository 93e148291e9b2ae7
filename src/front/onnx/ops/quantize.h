#pragma once

#include <functional>

#include "front/onnx/node.h"

// Quantized tensors as ONNX describes them, for the standard's ops and the contributed ones.

namespace hone::onnx_io {

// How scales and zero points lie over a tensor.
struct Granularity {
  int64_t axis = 0;   // of a vector of scales, or of blocks
  int64_t block = 0;  // elements that share a scale; 0: no blocks
};

// (x - zero) * scale in the type of the scale; zero may be absent.
Value dequantized(Node& n, Value x, Value scale, Value zero, Granularity g = {});
// The same of a tensor that stands with its scale and zero point at operands first, first + 1, ...
Value dequantized_at(Node& n, size_t first);
// x / scale + zero, rounded and saturated to `dtype`. The division is done in the scale's type.
Value quantized(Node& n, Value x, Value scale, Value zero, DType dtype, Granularity g = {});
// The same by the scale and zero point at operands first, first + 1; without a zero point the
// result has the type `fallback`.
Value quantized_at(Node& n, Value x, size_t first, DType fallback);
// x * scale / y_scale + zero, rounded and saturated, for sums of products: where y_scale is one f32
// number, by one factor, as ONNX Runtime does. `spread` lays numbers like the scale over x.
using Spread = std::function<Value(Value)>;
Value requantized(Node& n, Value x, Value scale, const Spread& spread, Value y_scale, Value zero,
                  DType dtype, Granularity g = {});

// The range of u8 laid over that of x and 0, so that 0 is a number of the grid.
struct Dynamic {
  Value y, scale, zero;
};
Dynamic dynamically_quantized(Node& n, Value x);

// x, integers of at most 8 bits, as i32 with its zero point (absent, a number, or of a shape that
// broadcasts) taken off.
Value centered(Node& n, Value x, Value zero);
// Numbers of 2, 4 or 8 bits that stand in the bytes of an operand, the low bits first, under dims
// whose last one they fill. They share the bytes of a constant, else they are u8.
Value in_bytes(Node& n, size_t operand, int64_t bits, const Dims& dims);
// A scalar of what has one element; other values stay.
Value as_scalar(Value v);

}  // namespace hone::onnx_io
