#include <limits>

#include "front/onnx/flow.h"
#include "front/onnx/ops/forms.h"
#include "front/onnx/ops/helpers.h"
#include "front/onnx/registry.h"
#include "ir/contents.h"

namespace hone::onnx_io {
namespace {

void map_unary(Node& n, Opcode opcode) { n.out(unary(opcode, n.in())); }

struct Pair {
  Value a;
  Value b;
};

// Before version 7 the second operand is stretched if `broadcast` says so. It is one element, or
// its dims are equal to those of the first operand from `axis` on. Without an axis they are equal
// to its last ones.
Pair operands(Node& n) {
  Value a = n.in(0), b = n.in(1);
  if (n.version() >= 7) return {a, b};
  bool stretches = n.flag("broadcast");
  int64_t axis = n.integer("axis", int64_t{a.rank()} - b.rank());
  if (!stretches) return {a, b};
  if (b.type().elements().is(1)) return {a, reshape(b, {})};
  if (axis < 0 || axis > a.rank() - b.rank())
    n.bad("{} does not fit into {} at axis {}", b.type().to_string(), a.type().to_string(), axis);
  Dims dims = b.dims();
  dims.resize(static_cast<size_t>(a.rank() - axis), 1);
  return {a, reshape(b, dims)};
}

void map_binary(Node& n, Opcode opcode) {
  auto [a, b] = operands(n);
  n.out(binary(opcode, a, b));
}

void map_compare(Node& n, std::string_view direction) {
  auto [a, b] = operands(n);
  n.out(compare(direction, a, b));
}

// For bools (hone's op takes integers too), or of integers.
void map_bits(Node& n, Opcode opcode, bool logical) {
  auto [a, b] = operands(n);
  for (Value x : {a, b}) {
    if (logical ? !is_bool(x.dtype()) : !is_integer(x.dtype()))
      n.bad("operands must be {}, one is {}", logical ? "bools" : "integers", x.type().to_string());
  }
  n.out(binary(opcode, a, b));
}

Value folded(Node& n, Opcode opcode) {
  Value result = n.in(0);
  for (size_t i = 1; i < n.inputs(); ++i) result = binary(opcode, result, n.in(i));
  return result;
}

}  // namespace

// ---- One operand --------------------------------------------------------------------------------

void map_abs(Node& n) { map_unary(n, Opcode::abs); }
void map_acos(Node& n) { map_unary(n, Opcode::acos); }
void map_acosh(Node& n) { map_unary(n, Opcode::acosh); }
void map_asin(Node& n) { map_unary(n, Opcode::asin); }
void map_asinh(Node& n) { map_unary(n, Opcode::asinh); }
void map_atan(Node& n) { map_unary(n, Opcode::atan); }
void map_atanh(Node& n) { map_unary(n, Opcode::atanh); }
void map_ceil(Node& n) { map_unary(n, Opcode::ceil); }
void map_cos(Node& n) { map_unary(n, Opcode::cos); }
void map_cosh(Node& n) { map_unary(n, Opcode::cosh); }
void map_erf(Node& n) { map_unary(n, Opcode::erf); }
void map_exp(Node& n) { map_unary(n, Opcode::exp); }
void map_floor(Node& n) { map_unary(n, Opcode::floor); }
void map_log(Node& n) { map_unary(n, Opcode::log); }
void map_neg(Node& n) { map_unary(n, Opcode::neg); }
void map_round(Node& n) { map_unary(n, Opcode::round); }
void map_sign(Node& n) { map_unary(n, Opcode::sign); }
void map_sin(Node& n) { map_unary(n, Opcode::sin); }
void map_sinh(Node& n) { map_unary(n, Opcode::sinh); }
void map_sqrt(Node& n) { map_unary(n, Opcode::sqrt); }
void map_tan(Node& n) { map_unary(n, Opcode::tan); }
void map_tanh(Node& n) { map_unary(n, Opcode::tanh); }

void map_identity(Node& n) {
  Slot& slot = n.slot(0);
  if (slot.form != Slot::Form::tensor) return n.out(0, &slot);
  n.out(n.in());
}

void map_reciprocal(Node& n) { n.out(1.0 / n.in()); }

void map_not(Node& n) {
  n.require(is_bool(n.in().dtype()), "the operand must be bool");
  map_unary(n, Opcode::not_);
}

void map_bitwise_not(Node& n) {
  n.require(is_integer(n.in().dtype()), "the operand must have integers");
  map_unary(n, Opcode::not_);
}

namespace {

// f8 types, which are for storage, as f32.
Value computable(Value x) { return is_storage_only(x.dtype()) ? cast(x, DType::f32) : x; }

}  // namespace

void map_is_nan(Node& n) { n.out(unary(Opcode::is_nan, computable(n.in()))); }

void map_is_inf(Node& n) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  bool negative = n.flag("detect_negative", true), positive = n.flag("detect_positive", true);
  Value x = computable(n.in());
  if (negative && positive) return n.out(unary(Opcode::is_inf, x));
  if (negative) return n.out(compare("eq", x, -kInfinity));
  if (positive) return n.out(compare("eq", x, kInfinity));
  n.out(n.builder().full(DType::boolean, x.dims(), 0));
}

// ---- Two operands -------------------------------------------------------------------------------

void map_add(Node& n) { map_binary(n, Opcode::add); }
void map_sub(Node& n) { map_binary(n, Opcode::sub); }
void map_mul(Node& n) { map_binary(n, Opcode::mul); }
namespace {

// Integers have no quotient and no remainder by 0.
void check_divisor(Node& n) {
  if (Value divisor = n.in(1); n.is_checked() && is_integer(divisor.dtype()))
    n.check(divisor, compare("eq", divisor, 0), "a divisor other than 0");
}

}  // namespace

void map_div(Node& n) {
  check_divisor(n);
  map_binary(n, Opcode::div);
}

void map_and(Node& n) { map_bits(n, Opcode::and_, true); }
void map_or(Node& n) { map_bits(n, Opcode::or_, true); }
void map_xor(Node& n) { map_bits(n, Opcode::xor_, true); }
void map_bitwise_and(Node& n) { map_bits(n, Opcode::and_, false); }
void map_bitwise_or(Node& n) { map_bits(n, Opcode::or_, false); }
void map_bitwise_xor(Node& n) { map_bits(n, Opcode::xor_, false); }

void map_equal(Node& n) { map_compare(n, "eq"); }
void map_less(Node& n) { map_compare(n, "lt"); }
void map_less_or_equal(Node& n) { map_compare(n, "le"); }
void map_greater(Node& n) { map_compare(n, "gt"); }
void map_greater_or_equal(Node& n) { map_compare(n, "ge"); }

void map_bit_shift(Node& n) {
  std::string direction = n.word("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    n.bad("direction is '{}', must be LEFT or RIGHT", direction);
  map_bits(n, direction == "LEFT" ? Opcode::shift_left : Opcode::shift_right, false);
}

// The remainder has the sign of the dividend with fmod, that of the divisor without. A zero has it
// too. Reals without fmod came with version 28.
void map_mod(Node& n) {
  check_divisor(n);
  auto [a, b] = operands(n);
  Value remainder = binary(Opcode::rem, a, b);
  if (n.flag("fmod")) return n.out(remainder);
  const bool is_of_reals = is_real(a.dtype());
  if (is_of_reals && n.version() < 28)
    n.bad("operands of type {} need fmod = 1", a.type().to_string());
  if (!is_of_reals && !is_signed(a.dtype())) return n.out(remainder);
  Value is_below = compare("lt", b, 0);
  Value other_sign = compare("ne", compare("lt", remainder, 0), is_below);
  Value moves = binary(Opcode::and_, compare("ne", remainder, 0), other_sign);
  Value result = select(moves, remainder + b, remainder);
  if (!is_of_reals) return n.out(result);
  const auto zero = [&](double of) {
    return broadcast_to(n.builder().scalar(a.dtype(), of), result.dims());
  };
  n.out(select(compare("eq", remainder, 0), select(is_below, zero(-0.0), zero(0)), result));
}

namespace {

bool same_in(DType dtype, const Tensor& numbers) {
  if (numbers.elements() > Contents::kMaxElements) return false;
  for (int64_t i = 0; i < numbers.elements(); ++i)
    if (round_to(dtype, numbers.real_at(i)) != numbers.real_at(i)) return false;
  return true;
}

// The type in which a power of operands of two types is exact: an exponent must not be rounded.
DType power_type(Node& n, DType base, DType exponent) {
  if (base == exponent) return base;
  if (is_integer(base) && is_integer(exponent))
    return exponent == DType::u64 ? DType::u64 : DType::i64;
  std::optional<Tensor> known = n.maybe_constant(1);
  return is_real(base) && known && same_in(base, *known) ? base : DType::f64;
}

// Squares and cubes, which exporters spell as powers. A square is rounded once, as a power is; a
// cube of few bits would be rounded too often.
std::optional<Value> product_power(Node& n, Value x, Value y) {
  const std::optional<Tensor> known = n.maybe_constant(1);
  if (!is_real(x.dtype()) || y.rank() > x.rank() || !known || known->elements() != 1)
    return std::nullopt;
  const double exponent = known->real_at(0);
  if (exponent == 2) return x * x;
  if (exponent == 3 && bits(x.dtype()) >= 32) return x * x * x;
  return std::nullopt;
}

}  // namespace

// The result has the type of the base, whatever the exponent's is.
void map_pow(Node& n) {
  auto [x, y] = operands(n);
  if (std::optional<Value> product = product_power(n, x, y)) return n.out(*product);
  DType dtype = power_type(n, x.dtype(), y.dtype());
  n.out(cast(binary(Opcode::pow, cast(x, dtype), cast(y, dtype)), x.dtype()));
}

void map_where(Node& n) {
  n.require(is_bool(n.in(0).dtype()), "the condition must be bool");
  n.out(select(n.in(0), n.in(1), n.in(2)));
}

// ---- Any number of operands ---------------------------------------------------------------------

void map_max(Node& n) { n.out(folded(n, Opcode::max)); }
void map_min(Node& n) { n.out(folded(n, Opcode::min)); }
void map_sum(Node& n) { n.out(folded(n, Opcode::add)); }
void map_mean(Node& n) { n.out(folded(n, Opcode::add) / static_cast<double>(n.inputs())); }

// ---- Clip, casts, dropout -----------------------------------------------------------------------

namespace {

Value bound(Node& n, size_t i) {
  Value value = n.in(i);
  if (!value.type().elements().is(1)) n.bad("bound {} must be a scalar", value.type().to_string());
  return reshape(value, {});
}

}  // namespace

// A maximum below the minimum wins.
void map_clip(Node& n) {
  Value x = n.in();
  if (n.has(1)) x = maximum(x, bound(n, 1));
  if (n.has(2)) x = minimum(x, bound(n, 2));
  n.out(x);
}

// Infinities are clipped to the highest finite number where no bound is given.
void map_clip_by_attributes(Node& n) {
  Value x = n.in();
  n.require(is_real(x.dtype()), "the operand must have reals");
  double most = highest_finite(x.dtype());
  n.out(minimum(maximum(x, n.real("min", -most)), n.real("max", most)));
}

namespace {

// Numbers out of range of an f8 type go to its highest finite one. Before version 24 infinities
// are NaN in the types that have none and no sign of zero.
Value saturated(Node& n, Value x, DType to) {
  if (!kReal.contains(x.dtype())) x = cast(x, DType::f32);
  double most = highest_finite(to);
  Value inside = minimum(maximum(x, -most), most);
  bool keeps = n.version() < 24 && (to == DType::f8e4m3fnuz || to == DType::f8e5m2fnuz);
  return keeps ? select(unary(Opcode::is_inf, x), x, inside) : inside;
}

// Reals out of range of an integer type, which the standard leaves open, saturate. From version 24
// on its cases want the lowest bits in types of fewer than 8, as ONNX Runtime gives.
Value through_integers(Node& n, Value x, DType to) {
  const bool wraps = n.version() >= 24 && is_integer(to) && bits(to) < 8;
  return wraps && is_real(x.dtype()) ? cast(x, DType::i32) : x;
}

Value bits_as(Value x, DType dtype) {
  return x.builder().op(Opcode::bitcast, {x}, {{"dtype", dtype}});
}

// The exponent of an f32, and one more with `up` if there are digits behind the leading one.
Value power_of_two_pattern(Node& n, Value x, bool up, bool saturates) {
  auto number = [&](int64_t value) { return n.builder().scalar(DType::i32, value); };
  x = cast(x, DType::f32);
  const Value size = binary(Opcode::and_, bits_as(x, DType::i32), number(0x7fffffff));
  const Value moved = up ? size + number(0x7fffff) : size;
  const Value exponent = binary(Opcode::shift_right, moved, number(23));
  const Value highest = minimum(exponent, number(saturates ? 0xfe : 0xff));
  return select(unary(Opcode::is_nan, x), number(0xff), highest);
}

// f8e8m0 alone can be rounded in several ways.
Value to_f8e8m0(Node& n, Value x, bool saturates) {
  const std::string mode = n.version() >= 24 ? n.word("round_mode", "up") : "up";
  if (mode == "nearest") return cast(saturates ? saturated(n, x, DType::f8e8m0) : x, DType::f8e8m0);
  if (mode != "up" && mode != "down")
    n.bad("round_mode is '{}', must be up, down or nearest", mode);
  const Value pattern = power_of_two_pattern(n, x, mode == "up", saturates);
  return bits_as(cast(pattern, DType::u8), DType::f8e8m0);
}

void map_cast_to(Node& n, DType to) {
  Value x = through_integers(n, n.in(), to);
  bool saturates = n.version() < 19 || n.flag("saturate", true);
  if (to == DType::f8e8m0 && x.dtype() != to) return n.out(to_f8e8m0(n, x, saturates));
  if (n.version() >= 24) n.ignore("round_mode");
  bool is_f8 = is_real(to) && is_storage_only(to);
  n.out(converted(is_f8 && saturates && x.dtype() != to ? saturated(n, x, to) : x, to));
}

}  // namespace

void map_cast(Node& n) {
  n.require(n.has_attribute("to"), "attribute 'to' is missing");
  map_cast_to(n, n.dtype("to", DType::f32));
}

// The type by its name, "FLOAT"; some files have its number, as from version 6 on.
void map_cast_by_name(Node& n) {
  const onnx::AttributeProto* given = n.attribute("to");
  if (given != nullptr && given->type() == onnx::AttributeProto::INT) return map_cast(n);
  std::string to = n.word("to", "");
  onnx::TensorProto::DataType type;
  if (!onnx::TensorProto::DataType_Parse(to, &type)) n.bad("'{}' is not an element type", to);
  map_cast_to(n, n.take(dtype_of(type)));
}

// The same bits in another type of their width. A bool is a byte of 0 or 1.
void map_bit_cast(Node& n) {
  n.require(n.has_attribute("to"), "attribute 'to' is missing");
  const DType to = n.dtype("to", DType::f32);
  Value x = n.in();
  if (bits(x.dtype()) != bits(to))
    n.bad("{} has elements of {} bits, {} of {}", x.type().to_string(), bits(x.dtype()), name(to),
          bits(to));
  if (x.dtype() == to) return n.out(x);
  if (is_bool(x.dtype())) x = cast(x, DType::u8);
  const DType pattern = is_bool(to) ? DType::u8 : to;
  if (x.dtype() != pattern) x = n.builder().op(Opcode::bitcast, {x}, {{"dtype", pattern}});
  n.out(is_bool(to) ? cast(x, DType::boolean) : x);
}

void map_cast_like(Node& n) { map_cast_to(n, n.in(1).dtype()); }

namespace {

// Nothing is dropped.
void map_kept(Node& n, DType mask) {
  n.out(n.in());
  if (n.wants(1)) n.out(1, n.builder().full(mask, n.in().dims(), 1));
}

[[noreturn]] void refuse_draws(Node& n) {
  n.unsupported("in training mode it draws random numbers, which no two runtimes draw alike");
}

}  // namespace

void map_dropout_by_mode(Node& n) {
  if (n.real("ratio", 0.5) != 0 && !n.flag("is_test")) refuse_draws(n);
  map_kept(n, n.in().dtype());
}

// Versions 7 and 10 are for inference alone.
void map_dropout_for_inference(Node& n) {
  n.ignore("ratio");
  map_kept(n, n.version() < 10 ? n.in().dtype() : DType::boolean);
}

void map_dropout(Node& n) {
  n.ignore("seed");
  if (n.has(2) && n.integers(2) != Ints{0} && n.real(1, 0.5) != 0) refuse_draws(n);
  map_kept(n, DType::boolean);
}

// ---- Determinants -------------------------------------------------------------------------------

namespace {

// Row `i` of each of the matrices [count, n, n]; `is_row` [count or 1, n] marks it.
Value row(Value matrices, Value is_row) {
  Value marked =
      select(unsqueeze(is_row, 2), matrices, matrices.builder().scalar(matrices.dtype(), 0));
  return reduce_sum(marked, {1});
}

// One step of Gauss' elimination with the greatest pivot: state is the matrices and the product of
// the pivots so far, `step` the number of the column.
std::vector<Value> eliminate(Value m, Value product, Value step) {
  Builder& b = m.builder();
  Value rows = iota(b, DType::i64, {1, m.dim(1)}, 1), zero = b.scalar(m.dtype(), 0);
  Value is_step = compare("eq", rows, step);
  Value column = reduce_sum(select(unsqueeze(is_step, 1), m, zero), {2});
  Value below =
      select(compare("ge", rows, step), unary(Opcode::abs, column), b.scalar(m.dtype(), -1));
  Value best = argmax(below, 1, true);
  Value is_best = compare("eq", rows, best);

  Value top = row(m, is_best);
  m = select(unsqueeze(is_best, 2), unsqueeze(row(m, is_step), 1), m);
  m = select(unsqueeze(is_step, 2), unsqueeze(top, 1), m);
  column = reduce_sum(select(unsqueeze(is_step, 1), m, zero), {2});
  Value pivot = reduce_sum(select(is_step, top, zero), {1}, true);

  // Without a pivot the determinant is 0 already; what is divided by does not matter.
  Value divisor = select(compare("eq", pivot, 0), b.scalar(m.dtype(), 1), pivot);
  Value factor = select(compare("gt", rows, step), column / divisor, zero);
  m = m - unsqueeze(factor, 2) * unsqueeze(top, 1);
  Value sign = select(compare("eq", best, step), b.scalar(m.dtype(), 1), b.scalar(m.dtype(), -1));
  return {m, product * reshape(pivot * sign, product.dims())};
}

}  // namespace

void map_det(Node& n) {
  Value x = n.in();
  n.require_rank(x, "the operand", 2);
  Dim size = x.dim(-1);
  if (!(x.dim(-2) == size)) n.bad("{} holds no square matrices", x.type().to_string());
  Dims batch = x.dims();
  batch.resize(batch.size() - 2);
  Dim count = 1;
  for (Dim d : batch) count *= d;
  Builder& b = n.builder();
  Value matrices = reshape(x, {count, size, size});
  std::vector<Value> state = {matrices, b.full(x.dtype(), {count}, 1)};
  std::vector<Value> steps = {iota(b, DType::i64, {size}, 0)};
  std::vector<Value> last = scan(state, steps, [](Builder&, std::span<const Value> args) {
    return eliminate(args[0], args[1], args[2]);
  });
  n.out(reshape(last[1], batch));
}

}  // namespace hone::onnx_io
