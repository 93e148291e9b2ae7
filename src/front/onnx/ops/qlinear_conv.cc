#include "front/onnx/ops/quantize.h"
#include "front/onnx/ops/windows.h"
#include "front/onnx/registry.h"

namespace hone::onnx_io {
namespace {

Value one_number(Node& n, Value v, std::string_view what) {
  v = as_scalar(v);
  n.require_rank(v, what, 0, 0);
  return v;
}

// Sums of integers, which the bias has the scale of: that of x times that of w, which may have one
// per channel of the result.
Value qlinear_convolution(Node& n, Value x) {
  Value w = n.in(3), w_scale = as_scalar(n.in(4)), w_zero = as_scalar(n.in(5));
  n.require_rank(w_scale, "the scale of w", 0, 1);
  n.require_rank(w_zero, "the zero point of w", 0, 1);
  if (w_zero.rank() == 1) w_zero = broadcast(w_zero, w.dims(), {0});
  const DType x_type = x.dtype();
  x = centered(n, x, one_number(n, n.in(2), "the zero point of x"));
  Value sum = convolution(n, x, centered(n, w, w_zero));
  if (Value bias = n.optional(8)) sum = sum + per_channel(bias, sum);
  const Value scale = w_scale * one_number(n, n.in(1), "the scale of x");
  const auto spread = [&](Value v) { return v.rank() == 1 ? per_channel(v, sum) : v; };
  const Value y_zero = n.optional(7);
  const DType dtype = y_zero ? y_zero.dtype() : x_type;
  return requantized(n, cast(sum, DType::f32), scale, spread, n.in(6), y_zero, dtype);
}

}  // namespace

void map_qlinear_conv(Node& n) { n.out(qlinear_convolution(n, n.in(0))); }

void map_contributed_qlinear_conv(Node& n) {
  Value x = n.in(0);
  const bool last = n.flag("channels_last");
  if (!last) return n.out(qlinear_convolution(n, x));
  n.require_rank(x, "x", 3);
  n.out(channels_last(qlinear_convolution(n, channels_first(x))));
}

}  // namespace hone::onnx_io
