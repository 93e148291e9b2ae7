#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "ir/derivatives/rules.h"
#include "ir/ops/elementwise.h"
#include "ir/reference/elementwise.h"

namespace hone {

// The meaning of the ops for one scalar, as reference/elementwise.h wants it.
namespace {

struct Neg {
  static constexpr bool kRing = true;
  template <class T>
  static T real(T x) {
    return -x;
  }
  template <class T>
  static T integer(T x) {
    return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x));
  }
};

struct Abs {
  template <class T>
  static T real(T x) {
    return std::fabs(x);
  }
  template <class T>
  static T integer(T x) {
    return x < 0 ? Neg::integer(x) : x;
  }
};

struct Sign {
  template <class T>
  static T real(T x) {
    return x > 0 ? T(1) : x < 0 ? T(-1) : x;
  }
  template <class T>
  static T integer(T x) {
    return static_cast<T>(x > 0 ? 1 : x < 0 ? -1 : 0);
  }
};

struct Not {  // bool too
  template <class T>
  static T integer(T x) {
    if constexpr (std::is_same_v<T, bool>)
      return !x;
    else
      return static_cast<T>(~x);
  }
};

struct Popcount {
  template <class T>
  static T integer(T x) {
    if constexpr (std::is_same_v<T, bool>)
      return x;
    else
      return static_cast<T>(std::popcount(static_cast<std::make_unsigned_t<T>>(x)));
  }
};

struct Rsqrt {
  template <class T>
  static T real(T x) {
    return T(1) / std::sqrt(x);
  }
};

// Without overflow, and accurate where the result is close to 0.
struct Logistic {
  template <class T>
  static T real(T x) {
    if (x >= 0) return T(1) / (T(1) + std::exp(-x));
    T e = std::exp(x);
    return e / (T(1) + e);
  }
};

#define HONE_REAL_FUNCTION(Name, formula) \
  struct Name {                           \
    template <class T>                    \
    static auto real(T x) {               \
      return formula;                     \
    }                                     \
  };
HONE_REAL_FUNCTION(Floor, std::floor(x))
HONE_REAL_FUNCTION(Ceil, std::ceil(x))
HONE_REAL_FUNCTION(Trunc, std::trunc(x))
HONE_REAL_FUNCTION(Round, std::nearbyint(x))  // the mode is never changed: ties to even
HONE_REAL_FUNCTION(Exp, std::exp(x))
HONE_REAL_FUNCTION(Expm1, std::expm1(x))
HONE_REAL_FUNCTION(Log, std::log(x))
HONE_REAL_FUNCTION(Log1p, std::log1p(x))
HONE_REAL_FUNCTION(Sqrt, std::sqrt(x))
HONE_REAL_FUNCTION(Sin, std::sin(x))
HONE_REAL_FUNCTION(Cos, std::cos(x))
HONE_REAL_FUNCTION(Tan, std::tan(x))
HONE_REAL_FUNCTION(Asin, std::asin(x))
HONE_REAL_FUNCTION(Acos, std::acos(x))
HONE_REAL_FUNCTION(Atan, std::atan(x))
HONE_REAL_FUNCTION(Sinh, std::sinh(x))
HONE_REAL_FUNCTION(Cosh, std::cosh(x))
HONE_REAL_FUNCTION(Tanh, std::tanh(x))
HONE_REAL_FUNCTION(Asinh, std::asinh(x))
HONE_REAL_FUNCTION(Acosh, std::acosh(x))
HONE_REAL_FUNCTION(Atanh, std::atanh(x))
HONE_REAL_FUNCTION(Erf, std::erf(x))
HONE_REAL_FUNCTION(IsFinite, static_cast<bool>(std::isfinite(x)))
HONE_REAL_FUNCTION(IsNan, static_cast<bool>(std::isnan(x)))
HONE_REAL_FUNCTION(IsInf, static_cast<bool>(std::isinf(x)))
#undef HONE_REAL_FUNCTION

template <class F>
constexpr OpDef unary(Opcode opcode, std::string_view summary, std::string_view semantics,
                      const Derivative* derivative, DTypeSet dtypes = kReal,
                      InferFn infer = &infer_same_type) {
  return {.opcode = opcode,
          .summary = summary,
          .semantics = semantics,
          .operands = "x",
          .dtypes = dtypes,
          .infer = infer,
          .flops_per_point = 1,
          .eval = &kEvalUnary<F>,
          .derivative = derivative};
}

}  // namespace

extern const OpDef op_def_neg;
const OpDef op_def_neg = unary<Neg>(Opcode::neg, "-x",
                                    "Integers wrap: the lowest value is its own negative; unsigned "
                                    "x gives 2^bits - x. The sign of zero and NaN flips.",
                                    &derivative_neg, kNumber);

extern const OpDef op_def_abs;
const OpDef op_def_abs = unary<Abs>(Opcode::abs, "absolute value",
                                    "The lowest signed integer stays as it is (it wraps). Unsigned "
                                    "integers are unchanged. NaN gives NaN.",
                                    &derivative_abs, kNumber);

extern const OpDef op_def_sign;
const OpDef op_def_sign =
    unary<Sign>(Opcode::sign, "-1, 0 or 1", "Zeros keep their sign; NaN gives NaN.",
                &kConstantDerivative, kNumber);

extern const OpDef op_def_floor;
const OpDef op_def_floor =
    unary<Floor>(Opcode::floor, "largest whole number not above x",
                 "Infinities, NaN and -0 are unchanged.", &kConstantDerivative);

extern const OpDef op_def_ceil;
const OpDef op_def_ceil =
    unary<Ceil>(Opcode::ceil, "smallest whole number not below x",
                "Infinities, NaN and -0 are unchanged; (-1, 0) gives -0.", &kConstantDerivative);

extern const OpDef op_def_round;
const OpDef op_def_round =
    unary<Round>(Opcode::round, "nearest whole number, ties to even",
                 "Infinities, NaN and -0 are unchanged.", &kConstantDerivative);

extern const OpDef op_def_trunc;
const OpDef op_def_trunc =
    unary<Trunc>(Opcode::trunc, "x without its fraction, toward zero",
                 "Infinities, NaN and -0 are unchanged.", &kConstantDerivative);

extern const OpDef op_def_exp;
const OpDef op_def_exp = unary<Exp>(
    Opcode::exp, "e^x", "Overflows to infinity; exp(-inf) = 0. NaN gives NaN.", &derivative_exp);

extern const OpDef op_def_expm1;
const OpDef op_def_expm1 =
    unary<Expm1>(Opcode::expm1, "e^x - 1, accurate near 0",
                 "Overflows to infinity; expm1(-inf) = -1. NaN gives NaN.", &derivative_expm1);

extern const OpDef op_def_log;
const OpDef op_def_log =
    unary<Log>(Opcode::log, "natural logarithm",
               "log(0) = -inf for both zeros; negative x gives NaN, as does NaN.", &derivative_log);

extern const OpDef op_def_log1p;
const OpDef op_def_log1p =
    unary<Log1p>(Opcode::log1p, "log(1 + x), accurate near 0",
                 "log1p(-1) = -inf; x < -1 gives NaN, as does NaN.", &derivative_log1p);

extern const OpDef op_def_sqrt;
const OpDef op_def_sqrt =
    unary<Sqrt>(Opcode::sqrt, "square root", "sqrt(-0) = -0; negative x gives NaN, as does NaN.",
                &derivative_sqrt);

extern const OpDef op_def_rsqrt;
const OpDef op_def_rsqrt = unary<Rsqrt>(
    Opcode::rsqrt, "1 / sqrt(x)",
    "rsqrt(0) = inf, rsqrt(-0) = -inf, rsqrt(inf) = 0; negative x gives NaN, as does NaN.",
    &derivative_rsqrt);

extern const OpDef op_def_sin;
const OpDef op_def_sin = unary<Sin>(Opcode::sin, "sine of x in radians",
                                    "Infinite x gives NaN, as does NaN.", &derivative_sin);

extern const OpDef op_def_cos;
const OpDef op_def_cos = unary<Cos>(Opcode::cos, "cosine of x in radians",
                                    "Infinite x gives NaN, as does NaN.", &derivative_cos);

extern const OpDef op_def_tan;
const OpDef op_def_tan = unary<Tan>(Opcode::tan, "tangent of x in radians",
                                    "Infinite x gives NaN, as does NaN.", &derivative_tan);

extern const OpDef op_def_asin;
const OpDef op_def_asin = unary<Asin>(Opcode::asin, "arc sine, in [-pi/2, pi/2]",
                                      "|x| > 1 gives NaN, as does NaN.", &derivative_asin);

extern const OpDef op_def_acos;
const OpDef op_def_acos = unary<Acos>(Opcode::acos, "arc cosine, in [0, pi]",
                                      "|x| > 1 gives NaN, as does NaN.", &derivative_acos);

extern const OpDef op_def_atan;
const OpDef op_def_atan = unary<Atan>(Opcode::atan, "arc tangent, in [-pi/2, pi/2]",
                                      "atan(inf) = pi/2. NaN gives NaN.", &derivative_atan);

extern const OpDef op_def_sinh;
const OpDef op_def_sinh =
    unary<Sinh>(Opcode::sinh, "hyperbolic sine",
                "Overflows to infinity with the sign of x. NaN gives NaN.", &derivative_sinh);

extern const OpDef op_def_cosh;
const OpDef op_def_cosh = unary<Cosh>(Opcode::cosh, "hyperbolic cosine",
                                      "Overflows to infinity. NaN gives NaN.", &derivative_cosh);

extern const OpDef op_def_tanh;
const OpDef op_def_tanh = unary<Tanh>(Opcode::tanh, "hyperbolic tangent",
                                      "tanh(inf) = 1. NaN gives NaN.", &derivative_tanh);

extern const OpDef op_def_asinh;
const OpDef op_def_asinh = unary<Asinh>(Opcode::asinh, "inverse hyperbolic sine",
                                        "asinh(inf) = inf. NaN gives NaN.", &derivative_asinh);

extern const OpDef op_def_acosh;
const OpDef op_def_acosh = unary<Acosh>(Opcode::acosh, "inverse hyperbolic cosine",
                                        "x < 1 gives NaN, as does NaN.", &derivative_acosh);

extern const OpDef op_def_atanh;
const OpDef op_def_atanh =
    unary<Atanh>(Opcode::atanh, "inverse hyperbolic tangent",
                 "atanh(1) = inf; |x| > 1 gives NaN, as does NaN.", &derivative_atanh);

extern const OpDef op_def_logistic;
const OpDef op_def_logistic =
    unary<Logistic>(Opcode::logistic, "1 / (1 + e^-x)",
                    "logistic(-inf) = 0, logistic(inf) = 1. NaN gives NaN.", &derivative_logistic);

extern const OpDef op_def_erf;
const OpDef op_def_erf =
    unary<Erf>(Opcode::erf, "error function", "erf(inf) = 1. NaN gives NaN.", &derivative_erf);

extern const OpDef op_def_is_finite;
const OpDef op_def_is_finite = unary<IsFinite>(Opcode::is_finite, "neither infinite nor NaN", "",
                                               nullptr, kReal, &infer_predicate);

extern const OpDef op_def_is_nan;
const OpDef op_def_is_nan =
    unary<IsNan>(Opcode::is_nan, "whether x is NaN", "", nullptr, kReal, &infer_predicate);

extern const OpDef op_def_is_inf;
const OpDef op_def_is_inf = unary<IsInf>(Opcode::is_inf, "whether x is infinite, of either sign",
                                         "", nullptr, kReal, &infer_predicate);

extern const OpDef op_def_not_;
const OpDef op_def_not_ = unary<Not>(Opcode::not_, "logical not of bool, bitwise not of integers",
                                     "", nullptr, kInteger | kBool);

extern const OpDef op_def_popcount;
const OpDef op_def_popcount =
    unary<Popcount>(Opcode::popcount, "number of one bits",
                    "Counts the bits of the pattern: all bits of -1 are ones. The result has the "
                    "type of x.",
                    nullptr, kInteger);

}  // namespace hone
