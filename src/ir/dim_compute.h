#pragma once

#include <optional>

#include "ir/dim_expr.h"

namespace hone {

// Writes a dim down in another language. The algebra says how:
//   T number(int64_t); T symbol(Symbol); T add(T, T); T multiply(T, T);
//   T divide(T, int64_t positive);  // rounded down
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
        value = algebra.divide(compute_dim(DimExpr::wrap(atom->dividend), algebra), atom->divisor);
      } else if (int64_t step = atom->symbol->multiple_of; factor % step == 0) {
        factor /= step;  // factor * (symbol / step) * step
        value = algebra.symbol(DimExpr::wrap(atom->symbol));
      } else {
        value = algebra.divide(algebra.symbol(DimExpr::wrap(atom->symbol)), step);
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
