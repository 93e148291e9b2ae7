#pragma once

#include "base/rng.h"
#include "ir/functional.h"

// Quantized graphs, for tests.

namespace hone {

// A few ops on reals with each tensor quantized and dequantized around them, as quantizers leave
// models.
class RandomQuantized {
 public:
  explicit RandomQuantized(Rng& rng) : rng_(rng) {}

  Graph graph() {
    is_image_ = rng_.chance(0.5);
    const Dims dims = is_image_ ? Dims{rng_.between(1, 2), channels(), 7, 6} : Dims{5, channels()};
    const DType dtype = byte();
    Value x = b_.parameter("x", dtype, dims);
    if (rng_.chance(0.2)) x = quantized(b_.parameter("r", DType::f32, dims), dtype);
    x = dequantized(x, zero_of(dtype));
    for (int64_t steps = rng_.between(1, 4); steps > 0; --steps) x = step(x);
    return b_.finish({rng_.chance(0.7) ? quantized(x, byte()) : x}).value();
  }

 private:
  Value step(Value x) {
    Value y = is_image_ ? convolved(x) : multiplied(x);
    if (rng_.chance(0.5)) y = y + broadcast(reals({y.dim(1)}), y.dims(), {1});
    if (rng_.chance(0.3)) y = relu(y);
    if (rng_.chance(0.2) && y.type() == x.type()) y = y + x;
    y = again(y);
    if (is_image_ && y.dim(2).value() > 1 && y.dim(3).value() > 1 && rng_.chance(0.3))
      y = again(max_pool(y, {.window = {2, 2}}));
    if (!is_image_ && rng_.chance(0.2)) y = transpose(transpose(y, {1, 0}), {1, 0});
    return y;
  }

  Value multiplied(Value x) {
    const Dim out = channels();
    if (rng_.chance(0.5)) return matmul(x, weights({x.dim(1), out}, 1));
    return matmul(x, transpose(weights({out, x.dim(1)}, 0), {1, 0}));
  }
  Value convolved(Value x) {
    const int64_t groups = x.dim(1).divisible_by(2) && rng_.chance(0.3) ? 2 : 1;
    const int64_t out = groups * channels();
    const Value w = weights({out, x.dim(1).value() / groups, 3, 3}, 0);
    return conv(x, w,
                {.stride = Ints(2, rng_.between(1, 2)), .padding = Ints(4, 1), .groups = groups});
  }

  // As quantizers write them: bytes, or reals that are quantized on the way.
  Value weights(const Dims& dims, int axis) {
    const bool is_signed = rng_.chance(0.8), is_by_channel = rng_.chance(0.6);
    const DType dtype = is_signed ? DType::i8 : DType::u8;
    const Dims count = is_by_channel ? Dims{dims[static_cast<size_t>(axis)]} : Dims();
    Value zero;
    if (!is_signed || rng_.chance(0.5)) zero = b_.full(dtype, count, is_signed ? 0 : 128);
    const Value scale = scales(count);
    const Attrs attrs = {{"axis", axis}};
    Value w;
    if (rng_.chance(0.3)) {
      Attrs to = attrs;
      to.emplace_back("dtype", dtype);
      w = b_.op(Opcode::quantize, {reals(dims), scale, zero}, to);
    } else {
      const Type type = Type::get(dtype, dims);
      std::vector<int64_t> numbers;
      for (int64_t i = 0; i < type.static_elements(); ++i)
        numbers.push_back(wrap_to(dtype, rng_.between(0, 255)));
      w = b_.constant(Tensor::from_integers(type, numbers));
    }
    return b_.op(Opcode::dequantize, {w, scale, zero}, attrs);
  }

  Value again(Value x) {
    const DType dtype = byte();
    last_scale_ = rng_.chance(0.3) && last_scale_ ? last_scale_ : scales({});
    return dequantized(quantized(x, dtype), last_zero_);
  }
  Value quantized(Value x, DType dtype) {
    last_zero_ = zero_of(dtype);
    if (!last_scale_) last_scale_ = scales({});
    return b_.op(Opcode::quantize, {x, last_scale_, last_zero_}, {{"dtype", dtype}});
  }
  Value dequantized(Value x, Value zero) {
    if (!last_scale_) last_scale_ = scales({});
    return b_.op(Opcode::dequantize, {x, last_scale_, zero});
  }

  Value zero_of(DType dtype) {
    if (rng_.chance(0.3)) return {};
    const double zero = rng_.chance(0.3) ? 0 : dtype == DType::u8 ? 119 : -7;
    return b_.full(dtype, {}, zero);
  }
  Value scales(const Dims& dims) {
    const Type type = Type::get(DType::f32, dims);
    std::vector<double> numbers;
    for (int64_t i = 0; i < type.static_elements(); ++i)
      numbers.push_back(0.01 + 0.1 * rng_.uniform());
    return b_.constant(Tensor::from_reals(type, numbers));
  }
  Value reals(const Dims& dims) {
    const Type type = Type::get(DType::f32, dims);
    std::vector<double> numbers;
    for (int64_t i = 0; i < type.static_elements(); ++i) numbers.push_back(4 * rng_.uniform() - 2);
    return b_.constant(Tensor::from_reals(type, numbers));
  }
  DType byte() { return rng_.chance(0.6) ? DType::u8 : DType::i8; }
  int64_t channels() { return rng_.chance(0.6) ? 4 * rng_.between(1, 5) : rng_.between(1, 9); }

  Rng& rng_;
  Builder b_;
  bool is_image_ = false;
  Value last_scale_, last_zero_;
};

// All bytes, and reals of a few units.
inline std::vector<Tensor> random_bytes(const Graph& graph, Rng& rng) {
  std::vector<Tensor> inputs;
  for (Type type : graph.input_types()) {
    const auto count = static_cast<size_t>(type.static_elements());
    std::vector<double> reals(count);
    std::vector<int64_t> integers(count);
    for (size_t i = 0; i < count; ++i) {
      reals[i] = 4 * rng.normal();
      integers[i] = wrap_to(is_real(type.dtype()) ? DType::i8 : type.dtype(), rng.between(0, 255));
    }
    inputs.push_back(is_real(type.dtype()) ? Tensor::from_reals(type, reals)
                                           : Tensor::from_integers(type, integers));
  }
  return inputs;
}

}  // namespace hone
