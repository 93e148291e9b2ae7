#include "codegen/emit/instructions.h"

#include "base/error.h"

namespace hone::code {

mlir::Type Instructions::shaped(mlir::Type scalar, Value like) {
  if (auto vector = mlir::dyn_cast<mlir::VectorType>(like.getType()))
    return mlir::VectorType::get(vector.getShape(), scalar);
  return scalar;
}

Value Instructions::constant(mlir::Attribute scalar, mlir::Type type) {
  if (auto vector = mlir::dyn_cast<mlir::VectorType>(type)) {
    const auto splat = mlir::DenseElementsAttr::get(vector, scalar);
    return b_.create<mlir::arith::ConstantOp>(type, splat);
  }
  return b_.create<mlir::arith::ConstantOp>(type, mlir::cast<mlir::TypedAttr>(scalar));
}

Value Instructions::integer(mlir::Type scalar, int64_t number) {
  const auto width = scalar.getIntOrFloatBitWidth();
  return constant(
      b_.getIntegerAttr(scalar, llvm::APInt(width, static_cast<uint64_t>(number), true)), scalar);
}

Value Instructions::integer(int64_t number, Value like) {
  const mlir::Type scalar = element(like);
  const auto width = scalar.getIntOrFloatBitWidth();
  return constant(
      b_.getIntegerAttr(scalar, llvm::APInt(width, static_cast<uint64_t>(number), true)),
      like.getType());
}

Value Instructions::real(double number, Value like) {
  return constant(b_.getFloatAttr(element(like), number), like.getType());
}

Value Instructions::splat(Value scalar, int64_t lanes) {
  return b_.create<mlir::vector::BroadcastOp>(mlir::VectorType::get({lanes}, scalar.getType()),
                                              scalar);
}

Value Instructions::iota(mlir::Type scalar, int64_t lanes) {
  llvm::SmallVector<llvm::APInt> numbers;
  for (int64_t lane = 0; lane < lanes; ++lane)
    numbers.emplace_back(scalar.getIntOrFloatBitWidth(), static_cast<uint64_t>(lane), true);
  const auto type = mlir::VectorType::get({lanes}, scalar);
  return b_.create<mlir::arith::ConstantOp>(type, mlir::DenseElementsAttr::get(type, numbers));
}

Value Instructions::resized(Value a, mlir::Type scalar, bool is_signed) {
  const int from = width(a), to = static_cast<int>(scalar.getIntOrFloatBitWidth());
  const mlir::Type type = shaped(scalar, a);
  if (from == to) return a;
  if (from > to) return b_.create<mlir::arith::TruncIOp>(type, a);
  if (is_signed) return b_.create<mlir::arith::ExtSIOp>(type, a);
  return b_.create<mlir::arith::ExtUIOp>(type, a);
}

Value Instructions::slice(Value vector, int64_t begin, int64_t lanes) {
  llvm::SmallVector<int64_t> chosen;
  for (int64_t lane = 0; lane < lanes; ++lane) chosen.push_back(begin + lane);
  return b_.create<mlir::vector::ShuffleOp>(vector, vector, chosen);
}

Value Instructions::joined(llvm::ArrayRef<Value> parts) {
  if (parts.size() == 1) return parts[0];
  const Value low = joined(parts.take_front(parts.size() / 2));
  const Value high = joined(parts.drop_front(parts.size() / 2));
  const int64_t lanes = 2 * mlir::cast<mlir::VectorType>(low.getType()).getNumElements();
  llvm::SmallVector<int64_t> all;
  for (int64_t lane = 0; lane < lanes; ++lane) all.push_back(lane);
  return b_.create<mlir::vector::ShuffleOp>(low, high, all);
}

Value Instructions::any(Value mask) {
  if (!is_vector(mask)) return mask;
  return b_.create<mlir::vector::ReductionOp>(mlir::vector::CombiningKind::OR, mask);
}

Value Instructions::lane(Value vector, int64_t lane) {
  if (!is_vector(vector)) return vector;
  return b_.create<mlir::vector::ExtractOp>(vector, lane);
}

Value Instructions::with_lane(Value vector, Value scalar, int64_t lane) {
  return b_.create<mlir::vector::InsertOp>(scalar, vector, lane);
}

}  // namespace hone::code
