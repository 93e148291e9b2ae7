#include <cstdint>
#include <type_traits>

#include "ir/derivatives/rules.h"
#include "ir/ops/elementwise.h"
#include "ir/reference/elementwise.h"
#include "ir/reference/scalar_functions.h"

namespace hone {

namespace {

template <class F>
constexpr OpDef binary(Opcode opcode, std::string_view summary, std::string_view semantics,
                       const Derivative* derivative, DTypeSet dtypes, OpTraits traits = {}) {
  return {.opcode = opcode,
          .summary = summary,
          .semantics = semantics,
          .operands = "lhs, rhs",
          .dtypes = dtypes,
          .traits = traits,
          .infer = &infer_same_type,
          .flops_per_point = 1,
          .eval = &kEvalBinary<F>,
          .derivative = derivative};
}

constexpr OpTraits combines(Identity identity, std::string_view kind = "") {
  return {.commutative = true, .identity = identity, .kind = kind};
}

}  // namespace

extern const OpDef op_def_add;
const OpDef op_def_add =
    binary<scalar::Add>(Opcode::add, "lhs + rhs", "Integers wrap. inf + -inf gives NaN.",
                        &derivative_add, kNumber, combines(Identity::zero, "sum"));

extern const OpDef op_def_sub;
const OpDef op_def_sub = binary<scalar::Sub>(
    Opcode::sub, "lhs - rhs", "Integers wrap. inf - inf gives NaN.", &derivative_sub, kNumber);

extern const OpDef op_def_mul;
const OpDef op_def_mul =
    binary<scalar::Mul>(Opcode::mul, "lhs * rhs", "Integers wrap. 0 * inf gives NaN.",
                        &derivative_mul, kNumber, combines(Identity::one, "product"));

extern const OpDef op_def_div;
const OpDef op_def_div = binary<scalar::Div>(
    Opcode::div, "lhs / rhs",
    "Reals: x / 0 is an infinity, 0 / 0 is NaN. Integers round toward zero; x / 0 has all "
    "bits set (-1, or the highest unsigned value), and lowest / -1 wraps to lowest.",
    &derivative_div, kNumber);

extern const OpDef op_def_rem;
const OpDef op_def_rem = binary<scalar::Rem>(
    Opcode::rem, "remainder of the division that rounds toward zero",
    "It has the sign of lhs. Reals: exact; x rem 0 and inf rem y are NaN, x rem inf = x. "
    "Integers: x rem 0 = x, and lowest rem -1 = 0.",
    &derivative_rem, kNumber);

extern const OpDef op_def_pow;
const OpDef op_def_pow = binary<scalar::Pow>(
    Opcode::pow, "lhs to the power of rhs",
    "Reals: as pow of C; x^0 = 1 and 1^y = 1 even for NaN, a negative base with a fractional "
    "exponent gives NaN. Integers multiply with wrapping, 0^0 = 1; for a negative exponent 1 "
    "gives 1, -1 gives 1 or -1, and everything else 0.",
    &derivative_pow, kNumber);

extern const OpDef op_def_max;
const OpDef op_def_max = binary<scalar::Max>(Opcode::max, "the greater one",
                                             "NaN if either is NaN. +0 is greater than -0.",
                                             &derivative_max, kNumber, combines(Identity::lowest));

extern const OpDef op_def_min;
const OpDef op_def_min = binary<scalar::Min>(Opcode::min, "the smaller one",
                                             "NaN if either is NaN. -0 is smaller than +0.",
                                             &derivative_min, kNumber, combines(Identity::highest));

extern const OpDef op_def_atan2;
const OpDef op_def_atan2 = binary<scalar::Atan2>(
    Opcode::atan2, "angle of the point (x = rhs, y = lhs), in [-pi, pi]",
    "As atan2 of C, with its signed zeros and infinities. NaN if either is NaN.", &derivative_atan2,
    kReal);

extern const OpDef op_def_and_;
const OpDef op_def_and_ =
    binary<scalar::And>(Opcode::and_, "logical and of bools, bitwise and of integers", "", nullptr,
                        kInteger | kBool, combines(Identity::all_bits));

extern const OpDef op_def_or_;
const OpDef op_def_or_ =
    binary<scalar::Or>(Opcode::or_, "logical or of bools, bitwise or of integers", "", nullptr,
                       kInteger | kBool, combines(Identity::zero));

extern const OpDef op_def_xor_;
const OpDef op_def_xor_ =
    binary<scalar::Xor>(Opcode::xor_, "logical exclusive or of bools, bitwise of integers", "",
                        nullptr, kInteger | kBool, combines(Identity::zero));

extern const OpDef op_def_shift_left;
const OpDef op_def_shift_left = binary<scalar::ShiftLeft>(
    Opcode::shift_left, "lhs shifted left by rhs bits",
    "The amount counts as unsigned; if it is not below the width the result is 0. Bits that "
    "leave are lost.",
    nullptr, kInteger);

extern const OpDef op_def_shift_right;
const OpDef op_def_shift_right = binary<scalar::ShiftRight>(
    Opcode::shift_right, "lhs shifted right by rhs bits",
    "Signed integers copy the sign bit, unsigned ones shift in zeros. The amount counts as "
    "unsigned; if it is not below the width only copies of the sign (or zeros) are left.",
    nullptr, kInteger);

// ---- Comparison and choice ----------------------------------------------------------------------

namespace {

struct EvalCompare {
  template <class D>
  static Status run(EvalCall<D>& call) {
    const std::string& direction = call.op.word("direction");
    if (direction == "eq") return EvalBinary<scalar::Eq>::run(call);
    if (direction == "ne") return EvalBinary<scalar::Ne>::run(call);
    if (direction == "lt") return EvalBinary<scalar::Lt>::run(call);
    if (direction == "le") return EvalBinary<scalar::Le>::run(call);
    if (direction == "gt") return EvalBinary<scalar::Gt>::run(call);
    return EvalBinary<scalar::Ge>::run(call);
  }
};
constexpr EvalTable kEvalCompare = local_eval<EvalCompare>(true);

constexpr AttrSpec kCompareAttrs[] = {{.name = "direction",
                                       .kind = AttrKind::word,
                                       .default_text = "",
                                       .doc = "The comparison.",
                                       .words = "eq|ne|lt|le|gt|ge"}};

struct EvalSelect {
  template <class D>
  static Status run(EvalCall<D>& call) {
    return with_elements(call.operand(1), [&]<class T>(std::type_identity<T>) -> Status {
      using Int = typename D::Int;
      auto choose = [](const Int& predicate, const T& on_true, const T& on_false) {
        return depending_on(plain(predicate) != 0 ? on_true : on_false, predicate);
      };
      map_elements<T>(call.context.pool, call.result().template as<T>(), choose,
                      call.operand(0).ints(), call.operand(1).template as<T>(),
                      call.operand(2).template as<T>());
      return {};
    });
  }
};
constexpr EvalTable kEvalSelect = local_eval<EvalSelect>(true);

Result<std::vector<Type>> infer_select(const Application& app) {
  if (app.operand(1) != app.operand(2)) {
    return bad_input("both choices must have one type, not {} and {}", app.operand(1).to_string(),
                     app.operand(2).to_string());
  }
  if (app.operand(1).with_dtype(DType::boolean) != app.operand(0)) {
    return bad_input("the predicate {} and the choices {} differ in shape",
                     app.operand(0).to_string(), app.operand(1).to_string());
  }
  return std::vector<Type>{app.operand(1)};
}

}  // namespace

extern const OpDef op_def_compare;
const OpDef op_def_compare = {
    .opcode = Opcode::compare,
    .summary = "compares element by element, giving bool",
    .semantics =
        "NaN is unequal to everything, itself included: only ne gives true. -0 equals +0. "
        "false is below true.",
    .operands = "lhs, rhs",
    .attrs = kCompareAttrs,
    .infer = &infer_predicate,
    .flops_per_point = 1,
    .eval = &kEvalCompare};

extern const OpDef op_def_select;
const OpDef op_def_select = {
    .opcode = Opcode::select,
    .summary = "on_true where the predicate holds, on_false elsewhere",
    .semantics = "Copies: what is not chosen does not matter, NaN or not. All have one shape.",
    .operands = "predicate, on_true, on_false",
    .dtypes = kBool,
    .infer = &infer_select,
    .flops_per_point = 1,
    .eval = &kEvalSelect,
    .derivative = &derivative_select};

}  // namespace hone
