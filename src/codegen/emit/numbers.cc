#include "codegen/emit/numbers.h"

#include <limits>

#include "base/planted.h"
#include "codegen/emit/functions.h"
#include "ir/op_def.h"

namespace hone::code {

namespace {
bool is_small_real(DType dtype) { return is_real(dtype) && bits(dtype) < 32; }

// The value that was widened from 8 bits to this one, and how; null: nothing was. A number that all
// lanes are is widened before it is spread.
struct Widened {
  Value byte = nullptr;
  bool is_signed = false;
  bool is_spread = false;
};

Widened widened(Value x) {
  Widened from;
  if (auto spread = x.getDefiningOp<mlir::vector::BroadcastOp>()) {
    from.is_spread = true;
    x = spread.getSource();
  }
  if (auto extended = x.getDefiningOp<mlir::arith::ExtSIOp>()) {
    from.byte = extended.getIn();
    from.is_signed = true;
  } else if (auto extended = x.getDefiningOp<mlir::arith::ExtUIOp>()) {
    from.byte = extended.getIn();
  }
  if (from.byte && !mlir::getElementTypeOrSelf(from.byte.getType()).isInteger(8))
    from.byte = nullptr;
  return from;
}

// The product of bytes has 16 bits, and so half of the work in vectors. (LLVM 19 makes vpdpbusd of
// wider products of u8 and i8 where lanes are summed, and loses four lanes of eight.)
Value product(Instructions& code, Value a, Value b) {
  const mlir::Type wide = mlir::getElementTypeOrSelf(a.getType());
  const Widened left = widened(a), right = widened(b);
  if (!left.byte || !right.byte || wide.getIntOrFloatBitWidth() <= 16) return code.mul(a, b);
  const auto in_16_bits = [&](const Widened& from) -> Value {
    const Value x = code.resized(from.byte, code.i(16), from.is_signed);
    if (!from.is_spread) return x;
    return code.splat(x, mlir::cast<mlir::VectorType>(a.getType()).getNumElements());
  };
  const bool is_signed = left.is_signed || right.is_signed;
  return code.resized(code.mul(in_16_bits(left), in_16_bits(right)), wide, is_signed);
}
}  // namespace

Numbers::Numbers(Instructions& code, const Machine& machine)
    : code_(code), small_(code, machine.has_f16), has_fma_(machine.has_fma) {}

// ---- Registers and memory -----------------------------------------------------------------------

mlir::Type Numbers::register_type(DType dtype) {
  if (dtype == DType::f64) return code_.f64();
  if (is_real(dtype)) return code_.f32();
  if (is_bool(dtype)) return code_.i(1);
  return code_.i(std::max(bits(dtype), 8));
}

mlir::Type Numbers::memory_type(DType dtype) {
  return is_small_real(dtype) ? code_.i(std::max(bits(dtype), 8))
         : is_bool(dtype)     ? code_.i(8)
                              : register_type(dtype);
}

Value Numbers::from_memory(DType dtype, Value stored) {
  if (is_small_real(dtype)) return small_.decode(dtype, stored);
  if (is_bool(dtype)) return code_.compare(Ints::ne, stored, code_.integer(0, stored));
  return wrapped(dtype, stored);
}

Value Numbers::to_memory(DType dtype, Value number) {
  if (is_small_real(dtype)) return small_.encode(dtype, number);
  if (is_bool(dtype)) return code_.resized(number, code_.i(8), false);
  return number;
}

Value Numbers::number(DType dtype, const std::variant<int64_t, double>& value) {
  const mlir::Type type = register_type(dtype);
  if (const double* real = std::get_if<double>(&value))
    return code_.constant(code_.builder().getFloatAttr(type, round_to(dtype, *real)), type);
  return code_.integer(type, wrap_to(dtype, std::get<int64_t>(value)));
}

Value Numbers::wrapped(DType dtype, Value x) {
  const int unused = 8 - bits(dtype);
  if (is_bool(dtype) || unused <= 0) return x;
  if (is_signed(dtype)) return code_.sar(code_.shl(x, unused), unused);
  return code_.and_(x, code_.integer(0xff >> unused, x));
}

Value Numbers::rounded(DType dtype, Value x) {
  return is_small_real(dtype) ? small_.round(dtype, x) : x;
}

// ---- Ops ----------------------------------------------------------------------------------------

Value Numbers::compute(Op op, std::span<const DType> types, DType result,
                       std::span<const Value> x) {
  switch (op.opcode()) {
    case Opcode::cast: return cast(types[0], result, x[0]);
    case Opcode::bitcast: return bitcast(types[0], result, x[0]);
    case Opcode::compare: return compare(types[0], op.word("direction"), x[0], x[1]);
    case Opcode::select: return code_.select(x[0], x[1], x[2]);
    case Opcode::is_nan: return code_.compare(Reals::UNO, x[0], x[0]);
    case Opcode::is_finite:
    case Opcode::is_inf: {
      const Value size = code_.builder().create<mlir::math::AbsFOp>(x[0]);
      const Value infinity = code_.real(std::numeric_limits<double>::infinity(), size);
      const bool wants_finite = op.opcode() == Opcode::is_finite;
      return code_.compare(wants_finite ? Reals::OLT : Reals::OEQ, size, infinity);
    }
    default: break;
  }
  if (is_real(types[0])) return rounded(result, real(op, types[0], x));
  return wrapped(result, integer(op, types[0], x));
}

Value Numbers::fma(DType dtype, Value a, Value b, Value c) {
  c = HONE_PLANT(fma_sign, c, code_.builder().create<mlir::arith::NegFOp>(c).getResult());
  if (has_fma_ && !is_small_real(dtype)) return code_.builder().create<mlir::math::FmaOp>(a, b, c);
  return rounded(dtype, code_.fadd(code_.fmul(a, b), c));
}

Value Numbers::identity(DType dtype, Opcode combine) {
  const std::variant<int64_t, double> right = identity_of(combine, dtype);
  if (combine != Opcode::max || !is_real(dtype)) return number(dtype, right);
  return number(dtype, HONE_PLANT(identity_max, right, decltype(right)(0.0)));
}

Value Numbers::real(Op op, DType dtype, std::span<const Value> x) {
  mlir::ImplicitLocOpBuilder& b = code_.builder();
  switch (op.opcode()) {
    case Opcode::add: return code_.fadd(x[0], x[1]);
    case Opcode::sub: return code_.fsub(x[0], x[1]);
    case Opcode::mul: return code_.fmul(x[0], x[1]);
    case Opcode::div: return code_.fdiv(x[0], x[1]);
    case Opcode::max: return larger(x[0], x[1]);
    case Opcode::min: return smaller(x[0], x[1]);
    case Opcode::neg: return b.create<mlir::arith::NegFOp>(x[0]);
    case Opcode::abs: {
      const Value size = b.create<mlir::math::AbsFOp>(x[0]);
      return HONE_PLANT(
          nan_lost, size,
          code_.select(code_.compare(Reals::UNO, size, size), code_.real(0, size), size));
    }
    case Opcode::sqrt: return b.create<mlir::math::SqrtOp>(x[0]);
    case Opcode::floor: return b.create<mlir::math::FloorOp>(x[0]);
    case Opcode::ceil: return b.create<mlir::math::CeilOp>(x[0]);
    case Opcode::trunc: return b.create<mlir::math::TruncOp>(x[0]);
    case Opcode::sign: {
      const Value zero = code_.real(0, x[0]);
      const Value below =
          code_.select(code_.compare(Reals::OLT, x[0], zero), code_.real(-1, x[0]), x[0]);
      return code_.select(code_.compare(Reals::OGT, x[0], zero), code_.real(1, x[0]), below);
    }
    default: break;
  }
  if (std::optional<Value> result = function(code_, has_fma_, op.opcode(), x)) return *result;
  HONE_CHECK(false, "{} of {} is no instruction", op.name(), name(dtype));
}

Value Numbers::is_negative(Value real) {
  const Value pattern = code_.bitcast(real, code_.i(Instructions::width(real)));
  return code_.compare(Ints::slt, pattern, code_.integer(0, pattern));
}

// NaN wins, and -0 is below +0.
Value Numbers::larger(Value a, Value b) {
  const Value larger = code_.builder().create<mlir::arith::MaximumFOp>(a, b);
  return HONE_PLANT(zero_sign, larger, code_.select(code_.compare(Reals::OEQ, a, b), a, larger));
}
Value Numbers::smaller(Value a, Value b) {
  return code_.builder().create<mlir::arith::MinimumFOp>(a, b);
}

Value Numbers::integer(Op op, DType dtype, std::span<const Value> x) {
  mlir::ImplicitLocOpBuilder& b = code_.builder();
  switch (op.opcode()) {
    case Opcode::add: return code_.add(x[0], x[1]);
    case Opcode::sub: return code_.sub(x[0], x[1]);
    case Opcode::mul: return product(code_, x[0], x[1]);
    case Opcode::div: return quotient(dtype, x[0], x[1], false);
    case Opcode::rem: return quotient(dtype, x[0], x[1], true);
    case Opcode::pow: return power(dtype, x[0], x[1]);
    case Opcode::max:
    case Opcode::min: {
      const bool wants_max = op.opcode() == Opcode::max;
      const Value wins = compare(dtype, wants_max ? "gt" : "lt", x[0], x[1]);
      return code_.select(wins, x[0], x[1]);
    }
    case Opcode::and_: return code_.and_(x[0], x[1]);
    case Opcode::or_: return code_.or_(x[0], x[1]);
    case Opcode::xor_: return code_.xor_(x[0], x[1]);
    case Opcode::not_: return code_.not_(x[0]);
    case Opcode::shift_left:
    case Opcode::shift_right: return shift(op.opcode(), dtype, x[0], x[1]);
    case Opcode::popcount: return b.create<mlir::math::CtPopOp>(x[0]);
    case Opcode::neg: return code_.sub(code_.integer(0, x[0]), x[0]);
    case Opcode::abs:
    case Opcode::sign: {
      const Value zero = code_.integer(0, x[0]);
      if (!is_signed(dtype)) {
        if (op.opcode() == Opcode::abs) return x[0];
        return flag(code_.compare(Ints::ne, x[0], zero), x[0]);
      }
      const Value is_below = code_.compare(Ints::slt, x[0], zero);
      if (op.opcode() == Opcode::abs) return code_.select(is_below, code_.sub(zero, x[0]), x[0]);
      return code_.select(is_below, code_.integer(-1, x[0]),
                          flag(code_.compare(Ints::ne, x[0], zero), x[0]));
    }
    default: break;
  }
  HONE_CHECK(false, "{} of {} is no instruction", op.name(), name(dtype));
}

// The machine traps where the divisor is 0 and where the quotient overflows.
Value Numbers::quotient(DType dtype, Value a, Value b, bool wants_rest) {
  mlir::ImplicitLocOpBuilder& builder = code_.builder();
  const Value zero = code_.integer(0, b), one = code_.integer(1, b), minus = code_.integer(-1, b);
  const Value is_zero = code_.compare(Ints::eq, b, zero);
  Value divisor = code_.select(is_zero, one, b);
  if (!is_signed(dtype)) {
    if (wants_rest)
      return code_.select(is_zero, a, builder.create<mlir::arith::RemUIOp>(a, divisor));
    return code_.select(is_zero, minus, builder.create<mlir::arith::DivUIOp>(a, divisor));
  }
  const Value negates = code_.compare(Ints::eq, b, minus);
  divisor = code_.select(negates, one, divisor);
  if (wants_rest) {
    const Value rest = builder.create<mlir::arith::RemSIOp>(a, divisor);
    // Dividing by 1 leaves 0, as -1 does.
    return code_.select(is_zero, HONE_PLANT(rest_by_zero, a, zero), rest);
  }
  const Value whole = builder.create<mlir::arith::DivSIOp>(a, divisor);
  const Value signed_whole = code_.select(negates, code_.sub(zero, a), whole);
  return code_.select(is_zero, minus, signed_whole);
}

// The amount counts as unsigned; one of at least the width shifts all out.
Value Numbers::shift(Opcode opcode, DType dtype, Value a, Value by) {
  const Value width = code_.integer(bits(dtype), by);
  const Value is_inside = code_.compare(Ints::ult, by, width);
  if (opcode == Opcode::shift_right && is_signed(dtype))
    return code_.sar(a, code_.select(is_inside, by, code_.integer(bits(dtype) - 1, by)));
  const Value zero = code_.integer(0, a);
  const Value safe = code_.select(is_inside, by, zero);
  const Value shifted = opcode == Opcode::shift_left ? code_.shl(a, safe) : code_.shr(a, safe);
  return HONE_PLANT(shift_out, code_.select(is_inside, shifted, zero), shifted);
}

// Computes by squaring, over all bits of the exponent.
Value Numbers::power(DType dtype, Value a, Value b) {
  mlir::ImplicitLocOpBuilder& builder = code_.builder();
  const Value zero = code_.integer(0, a), one = code_.integer(1, a);
  const mlir::Type counter = code_.i(32);
  auto loop = builder.create<mlir::scf::ForOp>(code_.integer(counter, 0),
                                               code_.integer(counter, bits(dtype)),
                                               code_.integer(counter, 1), ValueRange{one, a, b});
  {
    mlir::OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    const ValueRange carried = loop.getRegionIterArgs();
    const Value is_odd = code_.compare(Ints::ne, code_.and_(carried[2], one), zero);
    const Value next = code_.select(is_odd, code_.mul(carried[0], carried[1]), carried[0]);
    const Value square = code_.mul(carried[1], carried[1]);
    builder.create<mlir::scf::YieldOp>(ValueRange{next, square, code_.shr(carried[2], 1)});
  }
  const Value product = loop.getResult(0);
  if (!is_signed(dtype)) return product;
  const Value minus = code_.integer(-1, a);
  const Value is_odd = code_.compare(Ints::ne, code_.and_(b, one), zero);
  const Value of_minus = code_.select(is_odd, minus, one);
  Value inverse = code_.select(code_.compare(Ints::eq, a, minus), of_minus, zero);
  inverse = code_.select(code_.compare(Ints::eq, a, one), one, inverse);
  return code_.select(code_.compare(Ints::slt, b, zero), inverse, product);
}

Value Numbers::compare(DType dtype, std::string_view direction, Value a, Value b) {
  struct Row {
    std::string_view word;
    Reals real;
    Ints with_sign, without;
  };
  static constexpr Row kRows[] = {
      {"eq", Reals::OEQ, Ints::eq, Ints::eq},   {"ne", Reals::UNE, Ints::ne, Ints::ne},
      {"lt", Reals::OLT, Ints::slt, Ints::ult}, {"le", Reals::OLE, Ints::sle, Ints::ule},
      {"gt", Reals::OGT, Ints::sgt, Ints::ugt}, {"ge", Reals::OGE, Ints::sge, Ints::uge}};
  for (const Row& row : kRows) {
    if (row.word != direction) continue;
    if (is_real(dtype)) return code_.compare(row.real, a, b);
    return code_.compare(
        HONE_PLANT(compare_signed, is_signed(dtype), true) ? row.with_sign : row.without, a, b);
  }
  HONE_CHECK(false, "a comparison '{}'", direction);
}

// ---- Other element types ------------------------------------------------------------------------

Value Numbers::cast(DType from, DType to, Value x) {
  mlir::ImplicitLocOpBuilder& b = code_.builder();
  const mlir::Type type = register_type(to);
  if (is_real(from) && is_real(to)) {
    if (is_small_real(to)) return small_.round(to, x);
    if (to == DType::f64) return from == DType::f64 ? x : code_.extf(x, type);
    return from == DType::f64 ? code_.truncf(x, type) : x;
  }
  if (is_real(from)) return real_to_integer(to, x);
  if (is_real(to)) {
    // From 64 bits to fewer than 32 there are two roundings, as there are in the reference.
    const mlir::Type wide = is_small_real(to) ? code_.f64() : type;
    const mlir::Type shape = Instructions::shaped(wide, x);
    const Value real = HONE_PLANT(cast_unsigned, is_signed(from), true)
                           ? b.create<mlir::arith::SIToFPOp>(shape, x).getResult()
                           : b.create<mlir::arith::UIToFPOp>(shape, x).getResult();
    return is_small_real(to) ? small_.round(to, real) : real;
  }
  if (is_bool(to)) return code_.compare(Ints::ne, x, code_.integer(0, x));
  return wrapped(to, code_.resized(x, type, is_signed(from)));
}

// Toward zero, saturating, NaN gives 0.
Value Numbers::real_to_integer(DType to, Value x) {
  mlir::ImplicitLocOpBuilder& b = code_.builder();
  const Value zero = code_.real(0, x);
  if (is_bool(to)) return code_.compare(Reals::UNE, x, zero);
  const IntegerLimits limits = integer_limits(to);
  const double lowest = integer_to_real(to, limits.lowest);
  const double above = to == DType::u64 || to == DType::i64
                           ? integer_to_real(to, limits.highest)  // rounds up
                           : integer_to_real(to, limits.highest) + 1;
  // All limits are powers of two, so they are exact in f32 as well.
  const Value is_low = code_.compare(Reals::OLE, x, code_.real(lowest, x));
  const Value is_high = code_.compare(Reals::OGE, x, code_.real(above, x));
  const Value is_nan = code_.compare(Reals::UNO, x, x);
  const Value safe = code_.select(code_.or_(code_.or_(is_low, is_high), is_nan), zero, x);
  const mlir::Type type = Instructions::shaped(register_type(to), x);
  Value result = is_signed(to) ? b.create<mlir::arith::FPToSIOp>(type, safe).getResult()
                               : b.create<mlir::arith::FPToUIOp>(type, safe).getResult();
  result = code_.select(is_low, code_.integer(limits.lowest, result), result);
  return code_.select(is_high, code_.integer(limits.highest, result), result);
}

Value Numbers::bitcast(DType from, DType to, Value x) {
  const mlir::Type pattern_type = code_.i(std::max(bits(from), 8));
  Value pattern = is_small_real(from) ? small_.encode(from, x)
                  : is_real(from)     ? code_.bitcast(x, pattern_type)
                                      : x;
  if (is_small_real(to)) return small_.decode(to, pattern);
  if (is_real(to)) return code_.bitcast(pattern, register_type(to));
  return wrapped(to, pattern);
}

}  // namespace hone::code
