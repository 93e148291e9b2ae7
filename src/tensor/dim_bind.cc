#include <algorithm>

#include "tensor/dim_compute.h"

// Putting values in the place of symbols.

namespace hone {

namespace {

void collect(const DimExpr* expr, std::vector<Symbol>& found) {
  for (const DimTerm& term : expr->terms) {
    for (const DimAtom* atom : term.monomial->atoms) {
      if (atom->symbol == nullptr) {
        collect(atom->dividend, found);
      } else if (Symbol symbol = DimExpr::wrap(atom->symbol);
                 std::find(found.begin(), found.end(), symbol) == found.end()) {
        found.push_back(symbol);
      }
    }
  }
}

Dim bound(const DimAtom* atom, const Bindings& bindings) {
  if (atom->symbol == nullptr) {
    return floordiv(DimExpr::wrap(atom->dividend).bind(bindings), atom->divisor);
  }
  auto found = bindings.find(atom->symbol->name);
  if (found == bindings.end()) return DimExpr::of(*atom);
  Status status = check_binding(DimExpr::wrap(atom->symbol), found->second);
  HONE_CHECK(status.ok(), "{}", status.error().what());
  return *found->second.divided_by(atom->symbol->multiple_of);
}

}  // namespace

std::vector<Symbol> Dim::symbols() const {
  std::vector<Symbol> found;
  if (!is_static()) collect(expr_, found);
  return found;
}

Dim Dim::bind(const Bindings& bindings) const {
  if (is_static() || bindings.empty()) return *this;
  Dim sum = expr_->constant;
  for (const DimTerm& term : expr_->terms) {
    Dim product = term.coefficient;
    for (const DimAtom* atom : term.monomial->atoms) product *= bound(atom, bindings);
    sum += product;
  }
  return sum;
}

Status check_binding(Symbol symbol, Dim value) {
  Range range = value.range();
  if (range.high < symbol.min() || range.low > symbol.max()) {
    return bad_input("{} = {} is outside of {}..{}", symbol.name(), value.to_string(), symbol.min(),
                     symbol.max());
  }
  if (!value.divisible_by(symbol.multiple_of())) {
    return bad_input("{} = {} is not a multiple of {}", symbol.name(), value.to_string(),
                     symbol.multiple_of());
  }
  return {};
}

std::optional<LinearDim> as_linear(Dim dim) {
  if (dim.is_static()) return std::nullopt;
  const DimExpr* expr = DimExpr::get(dim);
  if (expr->terms.size() != 1) return std::nullopt;
  const std::vector<const DimAtom*>& atoms = expr->terms[0].monomial->atoms;
  if (atoms.size() != 1 || atoms[0]->symbol == nullptr) return std::nullopt;
  const Symbol symbol = DimExpr::wrap(atoms[0]->symbol);
  return LinearDim{symbol, expr->terms[0].coefficient, symbol.multiple_of(), expr->constant};
}

Status match_dim(Dim pattern, int64_t actual, Bindings& bindings) {
  Dim open = pattern.bind(bindings);
  Range range = open.range();
  if (actual < range.low || actual > range.high) {
    if (open.is_static()) {
      return open == pattern ? bad_input("size {} is not {}", actual, pattern.to_string())
                             : bad_input("size {} is not {}, which is {} here", actual,
                                         pattern.to_string(), open.to_string());
    }
    return bad_input("size {} is outside of {}..{}, the bounds of {}", actual, range.low,
                     range.high, open.to_string());
  }
  if (open.is_static()) return {};
  const std::optional<LinearDim> linear = as_linear(open);
  if (!linear) return {};
  const Symbol symbol = linear->symbol;
  const int64_t rest = actual - linear->offset;
  if (rest % linear->factor != 0) {
    return bad_input("size {} is not {} for any {}{}", actual, open.to_string(), symbol.name(),
                     symbol.multiple_of() == 1
                         ? ""
                         : fmt::format(" that is a multiple of {}", symbol.multiple_of()));
  }
  Dim value = rest / linear->factor * linear->step;
  HONE_TRY(check_binding(symbol, value));
  bindings.emplace(symbol.name(), value);
  return {};
}

}  // namespace hone
