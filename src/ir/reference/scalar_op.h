#pragma once

#include <memory>
#include <span>

#include "ir/op.h"

namespace hone {

// A number of any element type: `real` for real types, the canonical image else.
struct ScalarNumber {
  double real = 0;
  int64_t integer = 0;
};

// An elementwise op, a cast among them, as a function of numbers: wide, rounded to the result type.
class ScalarOp {
 public:
  ScalarOp(Op op, std::span<const DType> operands, DType result);
  ScalarOp(ScalarOp&&) noexcept;
  ~ScalarOp();
  ScalarNumber operator()(std::span<const ScalarNumber> operands);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hone
