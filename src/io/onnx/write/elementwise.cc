#include <cmath>

#include "io/onnx/write/registry.h"

namespace hone::onnx_io {

// ---- Unary -------------------------------------------------------------------------------------

#define HONE_SAME_UNARY(name, op) \
  bool export_##name(Emit& e) { return e.result(op, {e.in(0)}); }
HONE_SAME_UNARY(neg, "Neg")
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
  bool export_##name(Emit& e) { return e.result(op, {e.in(0), e.in(1)}); }
HONE_SAME_BINARY(add, "Add")
HONE_SAME_BINARY(sub, "Sub")
HONE_SAME_BINARY(mul, "Mul")
HONE_SAME_BINARY(max, "Max")
HONE_SAME_BINARY(min, "Min")
HONE_SAME_BINARY(pow, "Pow")
#undef HONE_SAME_BINARY

// x/0 of integers is all ones here and anything there; lowest/-1 is the lowest.
bool export_div(Emit& e) { return e.result("Div", {e.in(0), e.in(1)}); }

bool export_rem(Emit& e) { return e.result("Mod", {e.in(0), e.in(1)}, {{"fmod", int64_t{1}}}); }

bool export_atan2(Emit& e) {
  DType dtype = e.type(0).dtype();
  std::string y = e.in(0), x = e.in(1), zero = e.scalar(dtype, 0);
  std::string pi = e.scalar(dtype, M_PI), half = e.scalar(dtype, M_PI / 2);
  std::string angle = e.node("Atan", {e.node("Div", {y, x})});
  std::string is_left = e.node("Less", {x, zero}), is_below = e.node("Less", {y, zero});
  std::string turn = e.node("Where", {is_below, e.node("Neg", {pi}), pi});
  std::string sideways = e.node("Where", {is_left, e.node("Add", {angle, turn}), angle});
  std::string upright = e.node("Mul", {e.node("Sign", {y}), half});
  return e.result("Where", {e.node("Equal", {x, zero}), upright, sideways});
}

namespace {

bool logic(Emit& e, std::string_view of_bools, std::string_view of_integers) {
  if (e.type(0).dtype() == DType::boolean) return e.result(of_bools, {e.in(0), e.in(1)});
  if (e.opset() < 18) e.unsupported("bitwise ops need opset 18");
  return e.result(of_integers, {e.in(0), e.in(1)});
}

bool shift(Emit& e, std::string_view direction) {
  if (is_signed(e.type(0).dtype())) e.unsupported("ONNX shifts unsigned integers only");
  return e.result("BitShift", {e.in(0), e.in(1)}, {{"direction", direction}});
}

}  // namespace

bool export_and(Emit& e) { return logic(e, "And", "BitwiseAnd"); }
bool export_or(Emit& e) { return logic(e, "Or", "BitwiseOr"); }
bool export_xor(Emit& e) { return logic(e, "Xor", "BitwiseXor"); }
bool export_shift_left(Emit& e) { return shift(e, "LEFT"); }
bool export_shift_right(Emit& e) { return shift(e, "RIGHT"); }

bool export_compare(Emit& e) {
  std::string_view direction = e.op().word("direction");
  Names operands = {e.in(0), e.in(1)};
  if (direction == "eq") return e.result("Equal", operands);
  if (direction == "ne") return e.result("Not", {e.node("Equal", operands)});
  if (direction == "lt") return e.result("Less", operands);
  if (direction == "le") return e.result("LessOrEqual", operands);
  if (direction == "gt") return e.result("Greater", operands);
  return e.result("GreaterOrEqual", operands);
}

bool export_select(Emit& e) { return e.result("Where", e.all()); }

// ---- Conversions -------------------------------------------------------------------------------

// A real number beyond an integer type's range saturates here; there nobody says what happens.
bool export_cast(Emit& e) {
  return e.result("Cast", {e.in(0)}, {{"to", int64_t{data_type_of(e.result_type().dtype())}}});
}

}  // namespace hone::onnx_io
