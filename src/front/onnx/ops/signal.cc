#include <cmath>
#include <numbers>

#include "front/onnx/registry.h"

namespace hone::onnx_io {
namespace {

constexpr double kPi = std::numbers::pi;

Value cosine(Value x) { return unary(Opcode::cos, x); }
Value sine(Value x) { return unary(Opcode::sin, x); }

// A size that the file gives as an operand with one element; `most` bounds one that depends on
// data.
Dim size_operand(Node& n, size_t i, std::string_view what, int64_t least,
                 int64_t most = int64_t{1} << 24) {
  Dims sizes = n.sizes(i, most);
  if (sizes.size() != 1) n.bad("{} must be one number, there are {}", what, sizes.size());
  if (sizes[0].range().high < least)
    n.bad("{} is {}, must be at least {}", what, sizes[0].to_string(), least);
  return sizes[0];
}

// The operand's one element as f64.
Value number_operand(Node& n, size_t i, std::string_view what) {
  Value x = n.in(i);
  if (!x.type().elements().is(1)) n.bad("{} is {}, must be a scalar", what, x.type().to_string());
  return cast(reshape(x, {}), DType::f64);
}

// ---- Windows ------------------------------------------------------------------------------------

// Sums a_j cos(2 pi j i / period) for i below the size; the period of a symmetric window is one
// less than its size.
void map_window(Node& n, std::initializer_list<double> coefficients) {
  Dim size = size_operand(n, 0, "the size", 0);
  DType dtype = n.dtype("output_datatype", DType::f32);
  Value period = number_operand(n, 0, "the size");
  if (!n.flag("periodic", true)) period = period - 1;
  Value turn = iota(n.builder(), DType::f64, {size}, 0) * (2 * kPi) / period;
  Value window;
  int j = 0;
  for (double a : coefficients) {
    Value term = cosine(turn * j++) * a;
    window = window ? window + term : term;
  }
  n.out(cast(window, dtype));
}

}  // namespace

void map_hann_window(Node& n) { map_window(n, {0.5, -0.5}); }
void map_hamming_window(Node& n) { map_window(n, {25.0 / 46, -21.0 / 46}); }
void map_blackman_window(Node& n) { map_window(n, {0.42, -0.5, 0.08}); }

// Triangles between three neighbouring points each, which are evenly spaced on the mel scale:
// mel(f) = 2595 log10(1 + f / 700).
void map_mel_weight_matrix(Node& n) {
  Dim bins = size_operand(n, 0, "num_mel_bins", 1);
  Dim length = size_operand(n, 1, "dft_length", 0);
  DType dtype = n.dtype("output_datatype", DType::f32);
  Builder& b = n.builder();
  auto mel = [&](size_t i, std::string_view what) {
    return log(number_operand(n, i, what) / 700 + 1) * (2595 / std::log(10.0));
  };
  Value low = mel(3, "lower_edge_hertz"), high = mel(4, "upper_edge_hertz");
  Value step = (high - low) / (number_operand(n, 0, "num_mel_bins") + 2);
  Value bins_per_hertz =
      (number_operand(n, 1, "dft_length") + 1) / number_operand(n, 2, "sample_rate");
  auto point = [&](int shift) {  // the spectrum's bin of a triangle's corner
    Value at = (iota(b, DType::f64, {1, bins}, 1) + shift) * step + low;
    Value hertz = (binary(Opcode::pow, b.scalar(DType::f64, 10), at / 2595) - 1) * 700;
    return unary(Opcode::floor, hertz * bins_per_hertz);
  };
  Value left = point(0), peak = point(1), right = point(2), zero = b.scalar(DType::f64, 0);
  Value at = iota(b, DType::f64, {floordiv(length, 2) + 1, 1}, 0);
  auto between = [&](Value from, Value to, std::string_view last, Value inside) {
    Value is_inside = binary(Opcode::and_, compare("ge", at, from), compare(last, at, to));
    return select(is_inside, inside, zero);
  };
  // A side without width is the peak alone.
  Value one = b.scalar(DType::f64, 1);
  Value rising = select(compare("eq", left, peak), one, (at - left) / (peak - left));
  Value falling = (right - at) / (right - peak);
  n.out(
      cast(maximum(between(left, peak, "le", rising), between(peak, right, "lt", falling)), dtype));
}

// ---- Fourier transforms -------------------------------------------------------------------------

namespace {

struct Complex {
  Value re;
  Value im;  // absent: 0
};

Complex parts(Node& n, Value x) {
  Dim last = x.dim(-1);
  if (!last.is(1) && !last.is(2))
    n.bad("the last dim of {} must be 1 (real) or 2 (complex)", x.type().to_string());
  Complex c = {squeeze(slice(x, -1, 0, 1), -1), Value()};
  if (last.is(2)) c.im = squeeze(slice(x, -1, 1, 2), -1);
  return c;
}

Value joined(Complex c) { return concat({unsqueeze(c.re, -1), unsqueeze(c.im, -1)}, -1); }

// The first `size` elements along the axis; what is not there counts as 0.
Value cropped(Value x, int axis, Dim size) {
  if (!x || provably_le(x.dim(axis), size)) return x;
  if (provably_le(size, x.dim(axis))) return slice(x, axis, 0, size);
  Builder& b = x.builder();
  Dims dims(static_cast<size_t>(x.rank()), 1);
  dims[static_cast<size_t>(axis)] = x.dim(axis);
  Value inside = compare("lt", iota(b, DType::i64, dims, axis), size_value(b, size));
  return select(inside, x, b.scalar(x.dtype(), 0));
}

struct Table {
  Value cos;
  Value sin;
};

// Cosines and sines of 2 pi j k / length, [rows, columns]. Whole turns are taken off in integers,
// so that the angle is exact.
Table table(Builder& b, DType dtype, Dim rows, Dim columns, Dim length) {
  Value turns = iota(b, DType::i64, {rows, columns}, 0) * iota(b, DType::i64, {rows, columns}, 1);
  Value size = size_value(b, length);
  Value part = cast(binary(Opcode::rem, turns, size), DType::f64) / cast(size, DType::f64);
  Value angle = part * (2 * kPi);
  return {cast(cosine(angle), dtype), cast(sine(angle), dtype)};
}

// The sums over an axis of x with each column of the table, which take the axis's place.
Value contracted(Value x, int axis, Value columns) {
  Value sums = dot_general(x, columns, {}, {}, {axis}, {0});
  Ints order;
  for (int64_t i = 0; i + 1 < sums.rank(); ++i) order.push_back(i);
  order.insert(order.begin() + axis, sums.rank() - 1);
  return transpose(sums, order);
}

// (re + i im) (cos + i sign sin), summed over the axis.
Complex transformed(Complex x, int axis, const Table& t, double sign) {
  Complex y = {contracted(x.re, axis, t.cos), contracted(x.re, axis, t.sin) * sign};
  if (!x.im) return y;
  return {y.re - contracted(x.im, axis, t.sin) * sign, y.im + contracted(x.im, axis, t.cos)};
}

Value forward(Complex x, int axis, Dim length, bool onesided) {
  x = {cropped(x.re, axis, length), cropped(x.im, axis, length)};
  Dim columns = onesided ? floordiv(length, 2) + 1 : length;
  Table t = table(x.re.builder(), x.re.dtype(), x.re.dim(axis), columns, length);
  return joined(transformed(x, axis, t, -1));
}

Value inverse(Complex x, int axis, Dim length) {
  x = {cropped(x.re, axis, length), cropped(x.im, axis, length)};
  Builder& b = x.re.builder();
  Table t = table(b, x.re.dtype(), x.re.dim(axis), length, length);
  return joined(transformed(x, axis, t, 1)) / cast(size_value(b, length), x.re.dtype());
}

// For a spectrum without its mirrored half, which counts through its partner: all bins but the
// first and, for an even length, the one in the middle stand for two.
Value inverse_onesided(Complex x, int axis, Dim length) {
  Dim bins = floordiv(length, 2) + 1;
  x = {cropped(x.re, axis, bins), cropped(x.im, axis, bins)};
  Builder& b = x.re.builder();
  DType dtype = x.re.dtype();
  Dim rows = x.re.dim(axis);
  Value size = size_value(b, length), row = iota(b, DType::i64, {rows, 1}, 0);
  Value alone = binary(Opcode::or_, compare("eq", row, 0), compare("eq", row + row, size));
  Value weight = select(alone, b.scalar(dtype, 1), b.scalar(dtype, 2)) / cast(size, dtype);
  Table t = table(b, dtype, rows, length, length);
  Value sums = contracted(x.re, axis, t.cos * weight) - contracted(x.im, axis, t.sin * weight);
  return unsqueeze(sums, -1);
}

// f16 and bf16 are transformed in f32.
DType working_type(Node& n, Value x) {
  n.require(is_real(x.dtype()), "the signal must have reals");
  return x.dtype() == DType::f64 ? DType::f64 : DType::f32;
}

void map_dft_along(Node& n, int axis) {
  Value input = n.in();
  bool onesided = n.flag("onesided"), inverts = n.flag("inverse");
  if (axis == input.rank() - 1) n.bad("axis {} holds the real and imaginary parts", axis);
  Dim size = input.dim(axis);
  Dim length = onesided && inverts ? (size - 1) * 2 : size;
  if (n.has(1)) length = size_operand(n, 1, "dft_length", 1);
  if (length.range().low < 0) n.bad("{} is too short for a spectrum", input.type().to_string());
  Complex x = parts(n, cast(input, working_type(n, input)));
  if (onesided && inverts != bool{x.im})
    n.bad("with onesided and inverse = {} the input must be {}", inverts ? 1 : 0,
          inverts ? "complex" : "real");
  Value result = !inverts   ? forward(x, axis, length, onesided)
                 : onesided ? inverse_onesided(x, axis, length)
                            : inverse(x, axis, length);
  n.out(cast(result, input.dtype()));
}

}  // namespace

void map_dft_by_attribute(Node& n) {
  n.require_rank(n.in(), "the input", 2);
  map_dft_along(n, n.axis("axis", n.in().rank(), 1));
}

void map_dft(Node& n) {
  n.require_rank(n.in(), "the input", 2);
  Ints axis = n.has(2) ? n.integers(2) : Ints{-2};
  if (axis.size() != 1) n.bad("the axis must be one number, there are {}", axis.size());
  map_dft_along(n, n.axis_in(axis[0], n.in().rank()));
}

// The transforms of frames that begin every `step` samples. Without a last dim the signal is real.
void map_stft(Node& n) {
  Value signal = n.in(0), window = n.optional(2);
  n.require_rank(signal, "the signal", 2, 3);
  if (signal.rank() == 2) signal = unsqueeze(signal, -1);
  Ints steps = n.integers(1);
  if (steps.size() != 1 || steps[0] < 1) n.bad("frame_step must be one number above 0");
  Dim length = window ? window.dim(0) : signal.dim(1);
  if (n.has(3)) {
    if (!n.known(3)) n.integers(3);  // a number, or the node cannot be checked
    length = size_operand(n, 3, "frame_length", 1);
  }
  if (window && (window.rank() != 1 || !(window.dim(0) == length)))
    n.bad("the window is {} for frames of {}", window.type().to_string(), length.to_string());
  if (!provably_le(length, signal.dim(1)))
    n.bad("frames of {} do not fit into {} samples", length.to_string(), signal.dim(1).to_string());

  Complex x = parts(n, cast(signal, working_type(n, signal)));
  bool onesided = n.flag("onesided", true);
  if (onesided && x.im) n.bad("the one-sided transform of a complex signal is not defined");
  Dims dims = {floordiv(signal.dim(1) - length, steps[0]) + 1, length};
  Value index = iota(n.builder(), DType::i64, dims, 0) * static_cast<double>(steps[0]) +
                iota(n.builder(), DType::i64, dims, 1);
  auto framed = [&](Value v) {
    if (!v) return v;
    Value frames = take(v, index, 1);
    return window ? frames * cast(window, v.dtype()) : frames;
  };
  n.out(cast(forward({framed(x.re), framed(x.im)}, 2, length, onesided), signal.dtype()));
}

}  // namespace hone::onnx_io
