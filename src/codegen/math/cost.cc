#include "codegen/math/cost.h"

#include <numeric>

#include "codegen/math/functions.h"

namespace hone::math {

namespace {

struct Nothing {};

// The algebra that only counts.
struct Counter {
  static constexpr bool kFused = true;
  template <class T>
  using Value = Nothing;
  using Mask = Nothing;
  StepCounts counts;

  template <class T>
  Nothing constant(T) {
    return {};
  }
  template <Step step, class T, class... Operands>
  Nothing take(Operands...) {
    ++(sizeof(T) == 8 ? counts.in_64 : counts.in_32)[static_cast<size_t>(step)];
    return {};
  }
  template <class T, size_t N, class Condition, class Body>
  std::array<Nothing, N> repeat(std::array<Nothing, N> state, Condition condition, Body body) {
    condition(state);
    return body(state);
  }
};

template <class T>
void count(Counter& counter, Opcode opcode) {
  Number<Counter, T> x = {&counter, {}};
  if (operands_of(opcode) == 2)
    apply(opcode, x, x);
  else
    apply(opcode, x);
}

}  // namespace

int StepCounts::total_32() const { return std::accumulate(in_32.begin(), in_32.end(), 0); }
int StepCounts::total_64() const { return std::accumulate(in_64.begin(), in_64.end(), 0); }

StepCounts count_steps(Opcode opcode, DType dtype) {
  HONE_CHECK(dtype == DType::f32 || dtype == DType::f64, "the vector math is of f32 and f64");
  Counter counter;
  if (dtype == DType::f32)
    count<float>(counter, opcode);
  else
    count<double>(counter, opcode);
  return counter.counts;
}

}  // namespace hone::math
