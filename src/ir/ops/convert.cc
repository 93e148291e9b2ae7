#include <type_traits>

#include "ir/derivatives/rules.h"
#include "ir/op_def.h"
#include "ir/ops/checks.h"
#include "ir/reference/elementwise.h"

// Ops that change the element type: cast by value, bitcast by pattern.

namespace hone {

namespace {

// The number inside of a domain's real scalar.
template <class Real>
using PlainOf = std::conditional_t<is_tracked<Real>, double, Real>;

// result[i] = fn(operand[i]) for scalars In -> Out.
template <class In, class Out, class D, class Fn>
Status convert(EvalCall<D>& call, const Fn& fn) {
  map_elements<Out>(
      call.context.pool, call.result().template as<Out>(),
      [&](const In& x) { return apply<Out>(fn, x); }, call.operand(0).template as<In>());
  return {};
}

// ---- cast ---------------------------------------------------------------------------------------

constexpr AttrSpec kCastAttrs[] = {
    {"dtype", AttrKind::dtype, "", "The result's element type."},
};

Result<std::vector<Type>> infer_cast(const Application& a) {
  return std::vector<Type>{a.operand(0).with_dtype(a.op.dtype("dtype"))};
}

template <class Real>
Real integer_as(DType type, int64_t image) {
  if constexpr (!is_ordered_real<Real>) {
    if (type == DType::u64) return Real::from_residue(static_cast<uint64_t>(image));
    return Real(image);
  } else if (type == DType::u64) {
    return static_cast<Real>(static_cast<uint64_t>(image));  // one rounding
  } else {
    return static_cast<Real>(image);
  }
}

template <class Real>
int64_t real_as_integer(DType type, Real value) {
  if (is_bool(type)) return value != 0 ? 1 : 0;
  return real_to_integer(type, static_cast<double>(value));
}

struct EvalCast {
  template <class D>
  static Status run(EvalCall<D>& call) {
    using Real = typename D::Real;
    using Int = typename D::Int;
    using Plain = PlainOf<Real>;
    DType from = call.operand(0).dtype();
    DType to = call.result().dtype();
    if (is_real(from) && is_real(to)) {
      return convert<Real, Real>(call, [](Plain x) { return x; });
    }
    if (is_real(to)) {
      return convert<Int, Real>(call, [&](int64_t x) { return integer_as<Plain>(from, x); });
    }
    if (!is_real(from)) {
      return convert<Int, Int>(call, [&](int64_t x) { return wrap_to(to, x); });
    }
    if constexpr (is_ordered_real<Real>) {
      return convert<Real, Int>(call, [&](Plain x) { return real_as_integer(to, x); });
    } else {
      return no_field_meaning(call.op);
    }
  }
};

// ---- bitcast ------------------------------------------------------------------------------------

Result<std::vector<Type>> infer_bitcast(const Application& a) {
  Type x = a.operand(0);
  DType to = a.op.dtype("dtype");
  if (is_bool(to)) return bad_input("a bitcast to bool is not defined");
  if (bits(x.dtype()) != bits(to)) {
    return bad_input("{} has {} bits, {} has {}", name(x.dtype()), bits(x.dtype()), name(to),
                     bits(to));
  }
  return std::vector<Type>{x.with_dtype(to)};
}

uint64_t pattern_of(DType type, int64_t image) {
  return bits(type) == 64 ? static_cast<uint64_t>(image)
                          : static_cast<uint64_t>(image) & ((uint64_t{1} << bits(type)) - 1);
}

struct EvalBitcast {
  template <class D>
  static Status run(EvalCall<D>& call) {
    using Real = typename D::Real;
    using Int = typename D::Int;
    DType from = call.operand(0).dtype();
    DType to = call.result().dtype();
    if (!is_real(from) && !is_real(to)) {
      return convert<Int, Int>(call, [&](int64_t x) { return wrap_to(to, x); });
    }
    if constexpr (is_ordered_real<Real>) {
      using Plain = PlainOf<Real>;
      auto pattern = [&](Plain x) { return encode_real(from, static_cast<double>(x)); };
      auto real = [&](uint64_t p) { return static_cast<Plain>(decode_real(to, p)); };
      if (!is_real(from)) {
        return convert<Int, Real>(call, [&](int64_t x) { return real(pattern_of(from, x)); });
      }
      if (is_real(to)) {
        return convert<Real, Real>(call, [&](Plain x) { return real(pattern(x)); });
      }
      return convert<Real, Int>(
          call, [&](Plain x) { return wrap_to(to, static_cast<int64_t>(pattern(x))); });
    } else {
      return no_field_meaning(call.op);
    }
  }
};

constexpr EvalTable kEvalCast = local_eval<EvalCast>(true);
constexpr EvalTable kEvalBitcast = local_eval<EvalBitcast>();

}  // namespace

extern const OpDef op_def_cast;
const OpDef op_def_cast = {
    .opcode = Opcode::cast,
    .summary = "The same numbers in another element type.",
    .semantics =
        "Real to real and integer to real round to nearest, ties to even. Real to integer rounds "
        "toward zero and saturates at the type's limits; NaN gives 0. Integer to integer wraps "
        "modulo 2^bits. To bool is `!= 0` (so NaN gives true); bool is 0 or 1. f8e8m0 has the "
        "powers of two from 2^-127 to 2^127 and NaN. It takes the size of the number: between two "
        "powers the nearer one, else the larger one. Smaller numbers become 2^-127. In f4e2m1 "
        "larger numbers and infinity become 6, NaN -0.",
    .operands = "x",
    .attrs = kCastAttrs,
    .dtypes = kAny,
    .infer = infer_cast,
    .eval = &kEvalCast,
    .derivative = &derivative_cast,
};

extern const OpDef op_def_bitcast;
const OpDef op_def_bitcast = {
    .opcode = Opcode::bitcast,
    .summary = "The same bit patterns read as another element type of equal width.",
    .semantics =
        "Integers are in two's complement. A bool is neither taken nor made. The payload "
        "of a NaN is not kept.",
    .operands = "x",
    .attrs = kCastAttrs,
    .dtypes = kNumber | kStorageOnly,
    .traits = {.may_be_view = true},
    .infer = infer_bitcast,
    .eval = &kEvalBitcast,
};

}  // namespace hone
