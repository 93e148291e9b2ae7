#include "base/checked_math.h"
#include "ir/dim_expr.h"
#include "ir/functional.h"

// Dims as values of a graph.

namespace hone {

namespace {

Value integer(Builder& b, int64_t number) {
  return b.constant(Tensor::from_integers(Type::scalar(DType::i64), {&number, 1}));
}

Value times(Value x, int64_t factor) { return factor == 1 ? x : x * integer(x.builder(), factor); }
Value plus(Value x, int64_t number) { return number == 0 ? x : x + integer(x.builder(), number); }

// An axis has no negative size, so a symbol that can be below 0 is counted from its lowest value.
Value counted(Builder& b, Symbol symbol) {
  const int64_t below = std::min<int64_t>(symbol.min(), 0);
  Value ones = broadcast(integer(b, 1), {Dim(symbol) - below}, {});
  return plus(reduce_sum(ones, {0}), below);
}

// x / positive, rounded down, for an x that is at least `low`; the op rounds toward zero.
Value divided(Value x, int64_t low, int64_t positive) {
  if (positive == 1) return x;
  const int64_t lift = low < 0 ? ceil_div(-low, positive) : 0;
  if (lift > kDimLimit / positive) {
    x.builder().fail(over_limit("a size that can be {} is divided by {}", low, positive));
    return x;
  }
  return plus(plus(x, lift * positive) / integer(x.builder(), positive), -lift);
}

Value value_of(Builder& b, const DimTerm& term) {
  Value product;
  int64_t coefficient = term.coefficient;
  for (const DimAtom* atom : term.monomial->atoms) {
    Value factor;
    if (atom->symbol == nullptr) {
      Dim dividend = DimExpr::wrap(atom->dividend);
      factor = divided(size_value(b, dividend), dividend.range().low, atom->divisor);
    } else {
      const int64_t m = atom->symbol->multiple_of;  // the atom is symbol / m
      factor = counted(b, DimExpr::wrap(atom->symbol));
      if (coefficient % m == 0) {
        coefficient /= m;
      } else {
        factor = divided(factor, atom->symbol->min, m);
      }
    }
    product = product ? product * factor : factor;
  }
  return times(product, coefficient);
}

}  // namespace

Value size_value(Builder& b, Dim dim) {
  if (dim.is_static()) return integer(b, dim.value());
  const DimExpr* expr = DimExpr::get(dim);
  Value sum;
  for (const DimTerm& term : expr->terms) {
    Value part = value_of(b, term);
    sum = sum ? sum + part : part;
  }
  return plus(sum, expr->constant);
}

}  // namespace hone
