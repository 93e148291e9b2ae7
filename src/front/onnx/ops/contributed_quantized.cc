#include "front/onnx/ops/quantize.h"
#include "front/onnx/ops/windows.h"
#include "front/onnx/registry.h"

// Ops between quantized tensors, which ONNX Runtime's quantizers write: the operands are
// dequantized, the result is quantized.

namespace hone::onnx_io {

// ---- QuantizeLinear, DequantizeLinear -----------------------------------------------------------

namespace {

// Without the attribute the scale is one number, or stands along dim 1 as in the standard's op.
Granularity contributed_granularity(Node& n, Value x, Value scale) {
  const int64_t axis = n.integer("axis", x.rank() > 1 ? 1 : 0);
  Granularity g;
  if (as_scalar(scale).rank() > 0) g.axis = n.axis_in(axis, x.rank());
  return g;
}

}  // namespace

void map_contributed_quantize_linear(Node& n) {
  Value x = n.in(0), scale = n.in(1), zero = n.optional(2);
  if (!is_real(x.dtype())) n.bad("the input is {}, want reals", name(x.dtype()));
  const Granularity g = contributed_granularity(n, x, scale);
  n.out(quantized(n, x, scale, zero, zero ? zero.dtype() : DType::u8, g));
}

void map_contributed_dequantize_linear(Node& n) {
  Value x = n.in(0), scale = n.in(1);
  const Granularity g = contributed_granularity(n, x, scale);
  n.out(dequantized(n, x, scale, n.optional(2), g));
}

// ---- Elementwise --------------------------------------------------------------------------------

void map_qlinear_add(Node& n) {
  Value sum = dequantized_at(n, 0) + dequantized_at(n, 3);
  n.out(quantized_at(n, sum, 6, n.in(0).dtype()));
}

void map_qlinear_mul(Node& n) {
  Value product = dequantized_at(n, 0) * dequantized_at(n, 3);
  n.out(quantized_at(n, product, 6, n.in(0).dtype()));
}

void map_qlinear_leaky_relu(Node& n) {
  Value x = dequantized_at(n, 0);
  Value y = select(compare("ge", x, 0), x, x * n.real("alpha", 0.01));
  n.out(quantized_at(n, y, 3, n.in(0).dtype()));
}

void map_qlinear_sigmoid(Node& n) {
  n.out(quantized_at(n, logistic(dequantized_at(n, 0)), 3, n.in(0).dtype()));
}

void map_qlinear_where(Node& n) {
  Value condition = n.in(0);
  if (condition.dtype() != DType::boolean) {
    n.bad("the condition is {}, want bool", name(condition.dtype()));
  }
  Value y = select(condition, dequantized_at(n, 1), dequantized_at(n, 4));
  n.out(quantized_at(n, y, 7, n.in(1).dtype()));
}

// From version 13 of the standard's Softmax on along one axis, before over all from it on.
void map_qlinear_softmax(Node& n) {
  Value x = dequantized_at(n, 0);
  n.require_rank(x, "X", 1);
  const bool one_axis = n.integer("opset") >= 13;
  const int axis = n.axis("axis", x.rank(), one_axis ? -1 : 1);
  Value y = one_axis ? softmax(x, axis) : reshape(softmax(flatten(x, axis), -1), x.dims());
  n.out(quantized_at(n, y, 3, n.in(0).dtype()));
}

// ---- Joins and reductions -----------------------------------------------------------------------

void map_qlinear_concat(Node& n) {
  if (n.inputs() < 5 || n.inputs() % 3 != 2) {
    n.bad("{} operands are not a scale, a zero point and triples", n.inputs());
  }
  std::vector<Value> parts;
  for (size_t i = 2; i < n.inputs(); i += 3) parts.push_back(dequantized_at(n, i));
  const int axis = n.axis_in(n.integer("axis"), parts[0].rank());
  n.out(quantized_at(n, concat(parts, axis), 0, n.in(2).dtype()));
}

void map_qlinear_reduce_mean(Node& n) {
  Value x = dequantized_at(n, 0);
  Ints axes = n.axes_in(n.ints("axes"), x.rank());
  if (axes.empty()) {
    for (int64_t i = 0; i < x.rank(); ++i) axes.push_back(i);
  }
  Value y = reduce_mean(x, axes, n.flag("keepdims", true));
  n.out(quantized_at(n, y, 3, n.in(0).dtype()));
}

void map_qlinear_global_average_pool(Node& n) {
  Value x = dequantized_at(n, 0);
  n.require_rank(x, "X", 3);
  const bool last = n.flag("channels_last");
  Ints spatial;
  for (int64_t i = last ? 1 : 2; i < x.rank() - (last ? 1 : 0); ++i) spatial.push_back(i);
  n.out(quantized_at(n, reduce_mean(x, spatial, true), 3, n.in(0).dtype()));
}

void map_qlinear_average_pool(Node& n) {
  Value x = dequantized_at(n, 0);
  n.require_rank(x, "X", 3);
  const bool last = n.flag("channels_last");
  Value y = average_pool(n, last ? channels_first(x) : x, 11);
  n.out(quantized_at(n, last ? channels_last(y) : y, 3, n.in(0).dtype()));
}

void map_nhwc_max_pool(Node& n) {
  Value x = n.in();
  n.require_rank(x, "x", 3);
  n.out(channels_last(max_pool_dilated(n, channels_first(x))));
}

// ---- Products -----------------------------------------------------------------------------------

namespace {

// For columns of a matrix; one element is for all.
Value per_column(Node& n, Value v, std::string_view what) {
  if (!v) return v;
  v = as_scalar(v);
  n.require_rank(v, what, 0);
  return v;
}

// The product of integers, with its scale, that bias and type follow.
Value scaled_product(Node& n, Value a, Value a_zero, Value a_scale, Value b, Value b_zero,
                     Value b_scale) {
  Value sum = matmul(centered(n, a, a_zero), centered(n, b, b_zero));
  return cast(sum, DType::f32) * cast(a_scale * b_scale, DType::f32);
}

}  // namespace

// C has the scale of the product.
void map_qgemm(Node& n) {
  Value a = n.in(0), b = n.in(3), c = n.optional(6);
  n.require_rank(a, "A", 2, 2);
  n.require_rank(b, "B", 2, 2);
  a = centered(n, a, as_scalar(n.in(2)));
  Value b_zero = as_scalar(n.in(5)), b_scale = as_scalar(n.in(4));
  // Zero points stand along the columns of what B becomes.
  b = n.flag("transB") ? transpose(b, {1, 0}) : b;
  if (n.flag("transA")) a = transpose(a, {1, 0});
  Value sum = matmul(a, centered(n, b, b_zero));
  if (c) sum = sum + broadcast_to(c, sum.dims());
  Value y = cast(sum, DType::f32) * (as_scalar(n.in(1)) * b_scale);
  if (const double alpha = n.real("alpha", 1); alpha != 1) y = y * alpha;
  n.out(n.has(7) ? quantized_at(n, y, 7, n.in(0).dtype()) : y);
}

void map_matmul_integer_to_float(Node& n) {
  Value a = n.in(0), b = n.in(1);
  n.require_rank(a, "A", 1);
  n.require_rank(b, "B", 1);
  Value a_scale = as_scalar(n.in(2)), a_zero = n.optional(4);
  if (a_zero) a_zero = as_scalar(a_zero);
  if (a_scale.rank() != 0 || (a_zero && a_zero.rank() != 0)) {
    n.unsupported("a scale of A that is not one number");
  }
  Value b_scale = per_column(n, n.in(3), "the scale of B");
  Value b_zero = per_column(n, n.optional(5), "the zero point of B");
  const DType dtype = a_scale.dtype();
  Value y = cast(scaled_product(n, a, a_zero, a_scale, b, b_zero, b_scale), dtype);
  if (Value bias = n.optional(6)) y = y + bias;
  n.out(y);
}

void map_dynamic_quantize_matmul(Node& n) {
  Value a = n.in(0), b = n.in(1);
  n.require_rank(a, "A", 1);
  n.require_rank(b, "B", 1);
  Value b_scale = per_column(n, n.in(2), "the scale of B");
  Value b_zero = per_column(n, n.optional(3), "the zero point of B");
  const Dynamic d = dynamically_quantized(n, a);
  Value y = scaled_product(n, d.y, d.zero, d.scale, b, b_zero, b_scale);
  if (Value bias = n.optional(4)) y = y + bias;
  n.out(y);
}

}  // namespace hone::onnx_io
