#include <algorithm>
#include <cmath>
#include <limits>

#include "front/onnx/write/registry.h"

namespace hone::onnx_io {

// ---- Unary -------------------------------------------------------------------------------------

#define HONE_SAME_UNARY(name, op) \
  bool export_##name(Emit& e) { return e.result(op, {e.in(0)}); }
HONE_SAME_UNARY(abs, "Abs")
HONE_SAME_UNARY(sign, "Sign")
HONE_SAME_UNARY(floor, "Floor")
HONE_SAME_UNARY(ceil, "Ceil")
HONE_SAME_UNARY(round, "Round")
HONE_SAME_UNARY(exp, "Exp")
HONE_SAME_UNARY(log, "Log")
HONE_SAME_UNARY(sqrt, "Sqrt")
HONE_SAME_UNARY(sin, "Sin")
HONE_SAME_UNARY(cos, "Cos")
HONE_SAME_UNARY(tan, "Tan")
HONE_SAME_UNARY(asin, "Asin")
HONE_SAME_UNARY(acos, "Acos")
HONE_SAME_UNARY(atan, "Atan")
HONE_SAME_UNARY(sinh, "Sinh")
HONE_SAME_UNARY(cosh, "Cosh")
HONE_SAME_UNARY(tanh, "Tanh")
HONE_SAME_UNARY(asinh, "Asinh")
HONE_SAME_UNARY(acosh, "Acosh")
HONE_SAME_UNARY(atanh, "Atanh")
HONE_SAME_UNARY(logistic, "Sigmoid")
HONE_SAME_UNARY(erf, "Erf")
HONE_SAME_UNARY(is_nan, "IsNaN")
HONE_SAME_UNARY(is_inf, "IsInf")
#undef HONE_SAME_UNARY

namespace {

// Unsigned integers, which Neg does not take, wrap.
std::string negated(Emit& e, const std::string& x, DType dtype) {
  if (is_signed(dtype)) return e.node("Neg", {x});
  return e.node("Sub", {e.scalar(dtype, 0), x});
}

}  // namespace

bool export_neg(Emit& e) {
  const DType dtype = e.type(0).dtype();
  if (is_signed(dtype)) return e.result("Neg", {e.in(0)});
  return e.result("Sub", {e.scalar(dtype, 0), e.in(0)});
}

// Toward zero.
bool export_trunc(Emit& e) {
  std::string size = e.node("Floor", {e.node("Abs", {e.in(0)})});
  return e.result("Mul", {e.node("Sign", {e.in(0)}), size});
}

// exp(x) - 1 loses the digits of small x; 2 sinh(x/2) exp(x/2) keeps them.
bool export_expm1(Emit& e) {
  std::string half = e.node("Mul", {e.in(0), e.scalar(e.type(0).dtype(), 0.5)});
  std::string product = e.node("Mul", {e.node("Sinh", {half}), e.node("Exp", {half})});
  return e.result("Mul", {product, e.scalar(e.type(0).dtype(), 2)});
}

// log(1 + x) loses the digits of small x; 2 atanh(x / (2 + x)) keeps them.
bool export_log1p(Emit& e) {
  DType dtype = e.type(0).dtype();
  std::string ratio = e.node("Div", {e.in(0), e.node("Add", {e.in(0), e.scalar(dtype, 2)})});
  std::string precise = e.node("Mul", {e.node("Atanh", {ratio}), e.scalar(dtype, 2)});
  std::string plain = e.node("Log", {e.node("Add", {e.in(0), e.scalar(dtype, 1)})});
  std::string is_small = e.node("Less", {e.node("Abs", {e.in(0)}), e.scalar(dtype, 0.5)});
  return e.result("Where", {is_small, precise, plain});
}

bool export_rsqrt(Emit& e) { return e.result("Reciprocal", {e.node("Sqrt", {e.in(0)})}); }

bool export_is_finite(Emit& e) {
  std::string bad = e.node("Or", {e.node("IsNaN", {e.in(0)}), e.node("IsInf", {e.in(0)})});
  return e.result("Not", {bad});
}

bool export_not(Emit& e) {
  if (e.type(0).dtype() == DType::boolean) return e.result("Not", {e.in(0)});
  if (e.opset() < 18) e.unsupported("bitwise ops need opset 18");
  return e.result("BitwiseNot", {e.in(0)});
}

// ---- Binary ------------------------------------------------------------------------------------

#define HONE_SAME_BINARY(name, op) \
  bool export_##name(Emit& e) { return e.result(op, e.elementwise()); }
HONE_SAME_BINARY(add, "Add")
HONE_SAME_BINARY(sub, "Sub")
HONE_SAME_BINARY(mul, "Mul")
HONE_SAME_BINARY(max, "Max")
HONE_SAME_BINARY(min, "Min")
HONE_SAME_BINARY(pow, "Pow")
#undef HONE_SAME_BINARY

namespace {

// True if no element of an integer divisor is 0 or -1.
bool divides_safely(Emit& e) {
  const std::optional<Dims> known = e.known(1);
  return known && std::all_of(known->begin(), known->end(),
                              [](Dim d) { return provably_lt(0, d) || provably_lt(d, -1); });
}

// x/0 and lowest/-1 are defined here and, in ONNX, are not; they even stop some runtimes.
struct SafeDivision {
  std::string divisor, by_zero, by_minus_one;  // "" for an unsigned type

  explicit SafeDivision(Emit& e) {
    const DType dtype = e.type(1).dtype();
    const std::string one = e.scalar(dtype, 1);
    by_zero = e.node("Equal", {e.in(1), e.scalar(dtype, 0)});
    divisor = e.node("Where", {by_zero, one, e.in(1)});
    if (!is_signed(dtype)) return;
    by_minus_one = e.node("Equal", {e.in(1), e.scalar(dtype, -1)});
    divisor = e.node("Where", {by_minus_one, one, divisor});
  }
};

}  // namespace

bool export_div(Emit& e) {
  const DType dtype = e.type(0).dtype();
  if (export_average(e) || export_softmax_in_steps(e)) return true;
  if (is_real(dtype) || divides_safely(e)) return e.result("Div", e.elementwise());
  const SafeDivision safe(e);
  std::string y = e.node("Div", {e.in(0), safe.divisor});
  if (is_signed(dtype)) y = e.node("Where", {safe.by_minus_one, negated(e, e.in(0), dtype), y});
  const Tensor ones = Tensor::from_integers(Type::scalar(dtype), Ints{wrap_to(dtype, -1)});
  return e.result("Where", {safe.by_zero, e.constant(ones), y});
}

bool export_rem(Emit& e) {
  const DType dtype = e.type(0).dtype();
  const Attributes attributes = {{"fmod", int64_t{1}}};
  if (is_real(dtype) || divides_safely(e)) return e.result("Mod", e.elementwise(), attributes);
  const SafeDivision safe(e);
  std::string y = e.node("Mod", {e.in(0), safe.divisor}, attributes);
  return e.result("Where", {safe.by_zero, e.in(0), y});
}

bool export_atan2(Emit& e) {
  DType dtype = e.type(0).dtype();
  const std::string zero = e.scalar(dtype, 0), one = e.scalar(dtype, 1);
  const std::string pi = e.scalar(dtype, M_PI), minus_pi = e.scalar(dtype, -M_PI);
  const std::string infinity = e.scalar(dtype, std::numeric_limits<double>::infinity());
  auto is_negative = [&](const std::string& v) {
    const std::string inverse = e.node("Div", {one, v});  // tells the zeros apart
    const std::string is_minus_zero =
        e.node("And", {e.node("Equal", {v, zero}), e.node("Less", {inverse, zero})});
    return e.node("Or", {e.node("Less", {v, zero}), is_minus_zero});
  };
  auto both = [&](const std::string& a, const std::string& b, const std::string& value) {
    return e.node("And", {e.node("Equal", {a, value}), e.node("Equal", {b, value})});
  };
  std::string y = e.in(0), x = e.in(1);
  // The signs of two infinities decide, and those of two zeros.
  const std::string are_infinite = both(e.node("Abs", {y}), e.node("Abs", {x}), infinity);
  y = e.node("Where", {are_infinite, e.node("Sign", {y}), y});
  x = e.node("Where", {are_infinite, e.node("Sign", {x}), x});
  const std::string slope = e.node("Atan", {e.node("Div", {y, x})});
  const std::string angle = e.node("Where", {both(y, x, zero), y, slope});
  const std::string turn = e.node("Where", {is_negative(y), minus_pi, pi});
  return e.result("Where", {is_negative(x), e.node("Add", {angle, turn}), angle});
}

namespace {

bool logic(Emit& e, std::string_view of_bools, std::string_view of_integers) {
  if (e.type(0).dtype() == DType::boolean) return e.result(of_bools, e.elementwise());
  if (e.opset() < 18) e.unsupported("bitwise ops need opset 18");
  return e.result(of_integers, e.elementwise());
}

bool is_below_width(const std::optional<Tensor>& amounts, DType dtype) {
  for (int64_t i = 0; amounts && i < amounts->elements(); ++i)
    if (const int64_t amount = amounts->integer_at(i); amount < 0 || amount >= bits(dtype))
      return false;
  return amounts.has_value();
}

// An amount that is not below the width leaves copies of the sign, or zeros; ONNX does not say so.
std::string shifted(Emit& e, const std::string& x, const std::string& amount, DType dtype,
                    std::string_view direction) {
  if (is_below_width(e.repeated_constant(1), dtype))
    return e.node("BitShift", {x, amount}, {{"direction", direction}});
  const double width = bits(dtype);
  const std::string inside = e.node("Less", {amount, e.scalar(dtype, width)});
  const std::string safe = e.node("Min", {amount, e.scalar(dtype, width - 1)});
  const std::string y = e.node("BitShift", {x, safe}, {{"direction", direction}});
  return e.node("Where", {inside, y, e.scalar(dtype, 0)});
}

DType unsigned_type(DType dtype) {
  switch (dtype) {
    case DType::i64: return DType::u64;
    case DType::i32: return DType::u32;
    case DType::i16: return DType::u16;
    case DType::i8: return DType::u8;
    default: return dtype;
  }
}

// ONNX shifts unsigned integers; a negative number is shifted to the right as its complement.
bool shift(Emit& e, std::string_view direction) {
  const DType dtype = e.type(0).dtype(), plain = unsigned_type(dtype);
  if (is_storage_only(dtype)) e.unsupported("ONNX does not compute with {}", name(dtype));
  if (plain == dtype) return e.result_is(shifted(e, e.in(0), e.in(1), dtype, direction));
  const std::string amount = e.cast(e.in(1), plain);
  auto shifted_bits = [&](const std::string& x) {
    return e.cast(shifted(e, e.cast(x, plain), amount, plain, direction), dtype);
  };
  const std::string y = shifted_bits(e.in(0));
  if (direction == "LEFT") return e.result_is(y);
  // -1 - x has the bits of x the other way round.
  const std::string minus_one = e.scalar(dtype, -1);
  const std::string other =
      e.node("Sub", {minus_one, shifted_bits(e.node("Sub", {minus_one, e.in(0)}))});
  return e.result("Where", {e.node("Less", {e.in(0), e.scalar(dtype, 0)}), other, y});
}

}  // namespace

bool export_and(Emit& e) { return logic(e, "And", "BitwiseAnd"); }
bool export_or(Emit& e) { return logic(e, "Or", "BitwiseOr"); }
bool export_xor(Emit& e) { return logic(e, "Xor", "BitwiseXor"); }
bool export_shift_left(Emit& e) { return shift(e, "LEFT"); }
bool export_shift_right(Emit& e) { return shift(e, "RIGHT"); }

bool export_compare(Emit& e) {
  std::string_view direction = e.op().word("direction");
  const Names operands = e.elementwise();
  if (direction == "eq") return e.result("Equal", operands);
  if (direction == "ne") return e.result("Not", {e.node("Equal", operands)});
  if (direction == "lt") return e.result("Less", operands);
  if (direction == "le") return e.result("LessOrEqual", operands);
  if (direction == "gt") return e.result("Greater", operands);
  return e.result("GreaterOrEqual", operands);
}

bool export_select(Emit& e) { return e.result("Where", e.elementwise()); }

// ---- Conversions -------------------------------------------------------------------------------

// A real number beyond an integer type's range saturates here; there nobody says what happens.
bool export_cast(Emit& e) {
  const DType from = e.type(0).dtype(), to = e.result_type().dtype();
  Attributes attributes = {{"to", int64_t{data_type_of(to)}}};
  // Casts to f8 do not saturate here; those to f4 do so everywhere.
  if (is_real(to) && is_storage_only(to) && to != DType::f4e2m1 && from != to)
    attributes.push_back({"saturate", int64_t{0}});
  if (to == DType::f8e8m0) attributes.push_back({"round_mode", "nearest"});
  return e.result("Cast", {e.in(0)}, attributes);
}

}  // namespace hone::onnx_io
