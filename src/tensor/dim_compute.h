#pragma once

#include <optional>

#include "tensor/dim_expr.h"

// Dims taken apart: to write them down in another language, and to solve for their symbol.

namespace hone {

// dim == factor * (symbol / step) + offset, where step divides the symbol and factor is not 0: a
// size from which the symbol follows.
struct LinearDim {
  Symbol symbol;
  int64_t factor;
  int64_t step;
  int64_t offset;
};
std::optional<LinearDim> as_linear(Dim dim);  // dim_bind.cc

// How many multiples of `positive` to add to a number >= low so that division toward zero rounds it
// down. The quotient is then too large by this many. lift_of(-7, 2) is 4: (-7 + 8) / 2 - 4 == -4.
constexpr int64_t lift_of(int64_t low, int64_t positive) {
  return low < 0 ? -(low / positive) + (low % positive != 0 ? 1 : 0) : 0;
}

// Writes a dim down in another language. The algebra says how:
//   T number(int64_t); T symbol(Symbol); T add(T, T); T multiply(T, T);
//   T divide(T, int64_t low, int64_t positive);  // of what is at least `low`; rounded down
template <class Algebra>
auto compute_dim(Dim dim, Algebra& algebra) -> decltype(algebra.number(0)) {
  using T = decltype(algebra.number(0));
  if (dim.is_static()) return algebra.number(dim.value());
  const DimExpr* expr = DimExpr::get(dim);
  std::optional<T> sum;
  for (const DimTerm& term : expr->terms) {
    int64_t factor = term.coefficient;
    std::optional<T> product;
    for (const DimAtom* atom : term.monomial->atoms) {
      std::optional<T> value;
      if (atom->symbol == nullptr) {
        const Dim dividend = DimExpr::wrap(atom->dividend);
        value = algebra.divide(compute_dim(dividend, algebra), dividend.range().low, atom->divisor);
      } else {
        const Symbol symbol = DimExpr::wrap(atom->symbol);
        const int64_t step = symbol.multiple_of();  // the atom is symbol / step
        value = algebra.symbol(symbol);
        if (factor % step == 0)
          factor /= step;
        else
          value = algebra.divide(*value, symbol.min(), step);
      }
      product = product ? algebra.multiply(*product, *value) : *value;
    }
    if (factor != 1) product = algebra.multiply(*product, algebra.number(factor));
    sum = sum ? algebra.add(*sum, *product) : *product;
  }
  if (expr->constant != 0) sum = algebra.add(*sum, algebra.number(expr->constant));
  return *sum;
}

}  // namespace hone
