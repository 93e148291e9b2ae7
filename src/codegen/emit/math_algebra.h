#pragma once

#include <array>
#include <type_traits>

#include "codegen/emit/instructions.h"
#include "codegen/math/algebra.h"

namespace hone::code {

// The algebra that makes code of the vector math: a value per lane is a vector, or a number where
// there are no lanes.
template <bool kHasFma>
class MathAlgebra {
 public:
  static constexpr bool kFused = kHasFma;
  template <class T>
  using Value = mlir::Value;
  using Mask = mlir::Value;

  // Constants take the shape of `like`.
  MathAlgebra(Instructions& code, mlir::Value like) : code_(code), like_(like) {}

  template <class T>
  mlir::Value constant(T number) {
    const mlir::Type type = Instructions::shaped(scalar<T>(), like_);
    if constexpr (std::is_floating_point_v<T>)
      return code_.constant(code_.builder().getFloatAttr(scalar<T>(), number), type);
    else
      return code_.constant(code_.builder().getIntegerAttr(scalar<T>(), number), type);
  }

  template <math::Step step, class T, class... Others>
  mlir::Value take(mlir::Value a, Others... others) {
    const std::array<mlir::Value, sizeof...(others) + 1> x = {a, others...};
    using math::Step;
    mlir::ImplicitLocOpBuilder& b = code_.builder();
    if constexpr (step == Step::add)
      return code_.fadd(x[0], x[1]);
    else if constexpr (step == Step::sub)
      return code_.fsub(x[0], x[1]);
    else if constexpr (step == Step::mul)
      return code_.fmul(x[0], x[1]);
    else if constexpr (step == Step::div)
      return code_.fdiv(x[0], x[1]);
    else if constexpr (step == Step::sqrt)
      return b.create<mlir::math::SqrtOp>(x[0]);
    else if constexpr (step == Step::fma && kHasFma)
      return b.create<mlir::math::FmaOp>(x[0], x[1], x[2]);
    else if constexpr (step == Step::fma)
      return code_.fadd(code_.fmul(x[0], x[1]), x[2]);
    else if constexpr (step == Step::round_even)
      return b.create<mlir::math::RoundEvenOp>(x[0]);
    else if constexpr (step == Step::round_zero)
      return b.create<mlir::math::TruncOp>(x[0]);
    else if constexpr (step == Step::less)
      return compare<T>(Reals::OLT, Ints::slt, x[0], x[1]);
    else if constexpr (step == Step::less_equal)
      return compare<T>(Reals::OLE, Ints::sle, x[0], x[1]);
    else if constexpr (step == Step::equal)
      return compare<T>(Reals::OEQ, Ints::eq, x[0], x[1]);
    else if constexpr (step == Step::integer_add)
      return code_.add(x[0], x[1]);
    else if constexpr (step == Step::integer_sub)
      return code_.sub(x[0], x[1]);
    else if constexpr (step == Step::bit_and || step == Step::mask_and)
      return code_.and_(x[0], x[1]);
    else if constexpr (step == Step::bit_or || step == Step::mask_or)
      return code_.or_(x[0], x[1]);
    else if constexpr (step == Step::bit_xor)
      return code_.xor_(x[0], x[1]);
    else if constexpr (step == Step::shift_left)
      return code_.shl(x[0], x[1]);
    else if constexpr (step == Step::shift_right)
      return code_.shr(x[0], x[1]);
    else if constexpr (step == Step::select)
      return code_.select(x[0], x[1], x[2]);
    else if constexpr (step == Step::mask_not)
      return code_.not_(x[0]);
    else if constexpr (step == Step::to_bits)
      return code_.bitcast(x[0], scalar<math::BitsOf<T>>());
    else if constexpr (step == Step::from_bits)
      return code_.bitcast(x[0], scalar<math::RealOf<T>>());
    else if constexpr (step == Step::widen)
      return code_.extf(x[0], code_.f64());
    else {
      static_assert(step == Step::narrow);
      return code_.truncf(x[0], code_.f32());
    }
  }

  template <class T, size_t N, class Condition, class Body>
  std::array<mlir::Value, N> repeat(std::array<mlir::Value, N> state, Condition condition,
                                    Body body) {
    mlir::ImplicitLocOpBuilder& b = code_.builder();
    llvm::SmallVector<mlir::Type> types;
    llvm::SmallVector<mlir::Location> places;
    for (mlir::Value value : state) {
      types.push_back(value.getType());
      places.push_back(b.getLoc());
    }
    auto loop = b.create<mlir::scf::WhileOp>(types, ValueRange(state));
    mlir::OpBuilder::InsertionGuard guard(b);
    auto arguments = [&](mlir::Region& region) {
      mlir::Block* block = b.createBlock(&region, region.end(), types, places);
      std::array<mlir::Value, N> values;
      for (size_t i = 0; i < N; ++i) values[i] = block->getArgument(static_cast<unsigned>(i));
      return values;
    };
    const std::array<mlir::Value, N> before = arguments(loop.getBefore());
    b.create<mlir::scf::ConditionOp>(code_.any(condition(before)), ValueRange(before));
    const std::array<mlir::Value, N> old = arguments(loop.getAfter());
    const mlir::Value goes_on = condition(old);
    std::array<mlir::Value, N> next = body(old);
    for (size_t i = 0; i < N; ++i) next[i] = code_.select(goes_on, next[i], old[i]);
    b.create<mlir::scf::YieldOp>(ValueRange(next));
    std::array<mlir::Value, N> results;
    for (size_t i = 0; i < N; ++i) results[i] = loop.getResult(static_cast<unsigned>(i));
    return results;
  }

 private:
  template <class T>
  mlir::Type scalar() {
    if constexpr (std::is_same_v<T, float>)
      return code_.f32();
    else if constexpr (std::is_same_v<T, double>)
      return code_.f64();
    else
      return code_.i(8 * sizeof(T));
  }
  template <class T>
  mlir::Value compare(Reals real, Ints integer, mlir::Value a, mlir::Value b) {
    if constexpr (std::is_floating_point_v<T>)
      return code_.compare(real, a, b);
    else
      return code_.compare(integer, a, b);
  }

  Instructions& code_;
  mlir::Value like_;
};

}  // namespace hone::code
