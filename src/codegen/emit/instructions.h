#pragma once

#include <cstdint>
#include <functional>

#include "codegen/mlir.h"

namespace hone::code {

using mlir::Value;
using mlir::ValueRange;
using Ints = mlir::arith::CmpIPredicate;  // comparisons
using Reals = mlir::arith::CmpFPredicate;

// Instructions on numbers or on vectors of them: the shape of the result is that of the operands,
// which must agree. Constants take the shape of `like`.
class Instructions {
 public:
  explicit Instructions(mlir::ImplicitLocOpBuilder& builder) : b_(builder) {}
  mlir::ImplicitLocOpBuilder& builder() { return b_; }

  mlir::Type i(int bits) { return b_.getIntegerType(static_cast<unsigned>(bits)); }
  mlir::Type f32() { return b_.getF32Type(); }
  mlir::Type f64() { return b_.getF64Type(); }

  static bool is_vector(Value value) { return mlir::isa<mlir::VectorType>(value.getType()); }
  static mlir::Type element(Value value) { return mlir::getElementTypeOrSelf(value.getType()); }
  static int width(Value value) { return static_cast<int>(element(value).getIntOrFloatBitWidth()); }
  // `scalar`, or a vector of it if `like` is a vector.
  static mlir::Type shaped(mlir::Type scalar, Value like);

  Value integer(mlir::Type scalar, int64_t number);
  Value integer(int64_t number, Value like);  // of its type
  Value real(double number, Value like);      // of its type
  Value constant(mlir::Attribute scalar, mlir::Type type);
  Value splat(Value scalar, int64_t lanes);
  // 0, 1, 2, ... of the integer type
  Value iota(mlir::Type scalar, int64_t lanes);

  Value add(Value a, Value b) { return b_.create<mlir::arith::AddIOp>(a, b); }
  Value sub(Value a, Value b) { return b_.create<mlir::arith::SubIOp>(a, b); }
  Value mul(Value a, Value b) { return b_.create<mlir::arith::MulIOp>(a, b); }
  Value and_(Value a, Value b) { return b_.create<mlir::arith::AndIOp>(a, b); }
  Value or_(Value a, Value b) { return b_.create<mlir::arith::OrIOp>(a, b); }
  Value xor_(Value a, Value b) { return b_.create<mlir::arith::XOrIOp>(a, b); }
  Value shl(Value a, Value b) { return b_.create<mlir::arith::ShLIOp>(a, b); }
  Value shr(Value a, Value b) { return b_.create<mlir::arith::ShRUIOp>(a, b); }
  Value sar(Value a, Value b) { return b_.create<mlir::arith::ShRSIOp>(a, b); }
  Value shl(Value a, int by) { return shl(a, integer(by, a)); }
  Value shr(Value a, int by) { return shr(a, integer(by, a)); }
  Value sar(Value a, int by) { return sar(a, integer(by, a)); }
  Value not_(Value a) { return xor_(a, integer(-1, a)); }

  Value fadd(Value a, Value b) { return b_.create<mlir::arith::AddFOp>(a, b); }
  Value fsub(Value a, Value b) { return b_.create<mlir::arith::SubFOp>(a, b); }
  Value fmul(Value a, Value b) { return b_.create<mlir::arith::MulFOp>(a, b); }
  Value fdiv(Value a, Value b) { return b_.create<mlir::arith::DivFOp>(a, b); }

  Value compare(Ints how, Value a, Value b) { return b_.create<mlir::arith::CmpIOp>(how, a, b); }
  Value compare(Reals how, Value a, Value b) { return b_.create<mlir::arith::CmpFOp>(how, a, b); }
  Value select(Value mask, Value a, Value b) {
    return b_.create<mlir::arith::SelectOp>(mask, a, b);
  }

  Value bitcast(Value a, mlir::Type scalar) {
    return b_.create<mlir::arith::BitcastOp>(shaped(scalar, a), a);
  }
  Value resized(Value a, mlir::Type scalar, bool is_signed);  // an integer to another width
  Value extf(Value a, mlir::Type scalar) {
    return b_.create<mlir::arith::ExtFOp>(shaped(scalar, a), a);
  }
  Value truncf(Value a, mlir::Type scalar) {
    return b_.create<mlir::arith::TruncFOp>(shaped(scalar, a), a);
  }
  Value slice(Value vector, int64_t begin, int64_t lanes);
  Value joined(llvm::ArrayRef<Value> parts);  // a power of two of equal ones
  // True if an i1 is set in some lane.
  Value any(Value mask);
  // A scalar integer or real of a vector, or the scalar itself.
  Value lane(Value vector, int64_t lane);
  Value with_lane(Value vector, Value scalar, int64_t lane);

 private:
  mlir::ImplicitLocOpBuilder& b_;
};

}  // namespace hone::code
