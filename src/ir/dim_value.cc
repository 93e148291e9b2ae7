#include <algorithm>

#include "ir/functional.h"
#include "tensor/dim_compute.h"

// Dims as values of a graph.

namespace hone {

namespace {

Value integer(Builder& b, int64_t number) {
  return b.constant(Tensor::from_integers(Type::scalar(DType::i64), {&number, 1}));
}

Value plus(Value x, int64_t number) { return number == 0 ? x : x + integer(x.builder(), number); }

// An axis has no negative size, so a symbol that can be below 0 is counted from its lowest value.
Value counted(Builder& b, Symbol symbol) {
  const int64_t below = std::min<int64_t>(symbol.min(), 0);
  Value ones = broadcast(integer(b, 1), {Dim(symbol) - below}, {});
  return plus(reduce_sum(ones, {0}), below);
}

struct ValueAlgebra {
  Builder& b;

  Value number(int64_t value) { return integer(b, value); }
  Value symbol(Symbol symbol) { return counted(b, symbol); }
  Value add(Value x, Value y) { return x + y; }
  Value multiply(Value x, Value y) { return x * y; }
  // The op rounds toward zero.
  Value divide(Value x, int64_t low, int64_t positive) {
    const int64_t lift = lift_of(low, positive);
    if (lift > kDimLimit / positive) {
      b.fail(over_limit("a size that can be {} is divided by {}", low, positive));
      return x;
    }
    return plus(plus(x, lift * positive) / integer(b, positive), -lift);
  }
};

}  // namespace

Value size_value(Builder& b, Dim dim) {
  ValueAlgebra algebra{b};
  return compute_dim(dim, algebra);
}

}  // namespace hone
