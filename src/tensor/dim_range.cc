#include <algorithm>
#include <array>

#include "base/checked_math.h"
#include "tensor/dim_expr.h"

// Bounds of symbolic dims. Several arguments each give valid bounds; their intersection holds.

namespace hone {

namespace {

// Substituting a floordiv may uncover others; a few levels are enough for real shapes.
constexpr int kMaxDepth = 4;
constexpr size_t kMaxTerms = 8;  // Each level tries each term.

Range operator+(Range a, Range b) {
  return {saturated_add(a.low, b.low), saturated_add(a.high, b.high)};
}

Range operator*(Range a, Range b) {
  std::array<int64_t, 4> corners = {
      saturated_multiply(a.low, b.low), saturated_multiply(a.low, b.high),
      saturated_multiply(a.high, b.low), saturated_multiply(a.high, b.high)};
  auto [low, high] = std::minmax_element(corners.begin(), corners.end());
  return {*low, *high};
}

Range intersection(Range a, Range b) { return {std::max(a.low, b.low), std::min(a.high, b.high)}; }

Range power(Range base, size_t exponent) {
  Range result = {1, 1};
  for (size_t i = 0; i < exponent; ++i) result = result * base;
  if (exponent % 2 == 0) result.low = std::max<int64_t>(result.low, 0);
  return result;
}

Range range_of_monomial(const DimMonomial* monomial) {
  Range result = {1, 1};
  const std::vector<const DimAtom*>& atoms = monomial->atoms;
  for (size_t i = 0; i < atoms.size();) {
    size_t end = i;
    while (end < atoms.size() && atoms[end] == atoms[i]) ++end;
    result = result * power(range_of(atoms[i]), end - i);
    i = end;
  }
  return result;
}

Range range_of_sum(const DimExpr* expr) {
  Range result = {expr->constant, expr->constant};
  for (const DimTerm& term : expr->terms) {
    result = result + range_of_monomial(term.monomial) * Range{term.coefficient, term.coefficient};
  }
  return result;
}

Range range_within(Dim dim, int depth);

// N*S - S is S * (N - 1): an atom that is in every term is taken out.
Range range_of_factored(const DimExpr* expr, int depth) {
  const DimMonomial* smallest = expr->terms.back().monomial;
  for (const DimAtom* atom : smallest->atoms) {
    Dim factor = DimExpr::of(*atom);
    if (std::optional<Dim> rest = DimExpr::wrap(expr).divided_by(factor)) {
      return range_of(atom) * range_within(*rest, depth + 1);
    }
  }
  return {-kDimLimit, kDimLimit};
}

// With q = floordiv(e, c) and r = e - c*q in 0..c-1, p + w*q is (c*p + w*e - w*r) / c. This finds
// that N - 8*floordiv(N, 8) is in 0..7.
Range range_without(const DimExpr* expr, const DimTerm& term, int depth) {
  const DimAtom* atom = term.monomial->atoms[0];
  int64_t c = atom->divisor, w = term.coefficient;
  Dim p = DimExpr::wrap(expr) - DimExpr::of(term);
  Range scaled = range_within(p * c + DimExpr::wrap(atom->dividend) * w, depth + 1) +
                 Range{0, c - 1} * Range{-w, -w};
  bool saturated = scaled.low <= -kDimLimit || scaled.high >= kDimLimit;
  if (saturated) return {-kDimLimit, kDimLimit};
  return {ceil_div(scaled.low, c), floor_div(scaled.high, c)};
}

Range compute(const DimExpr* expr, int depth) {
  Range result = range_of_sum(expr);
  size_t count = expr->terms.size();
  if (count == 1 || count > kMaxTerms || depth >= kMaxDepth) return result;
  if (expr->constant == 0) result = intersection(result, range_of_factored(expr, depth));
  for (const DimTerm& term : expr->terms) {
    const std::vector<const DimAtom*>& atoms = term.monomial->atoms;
    if (atoms.size() != 1 || atoms[0]->symbol != nullptr) continue;
    result = intersection(result, range_without(expr, term, depth));
  }
  return result;
}

Range range_within(Dim dim, int depth) {
  if (dim.is_static()) return {dim.value(), dim.value()};
  return compute(DimExpr::get(dim), depth);
}

}  // namespace

Range range_of(const DimAtom* atom) {
  if (atom->symbol != nullptr) {
    int64_t m = atom->symbol->multiple_of;
    return {ceil_div(atom->symbol->min, m), floor_div(atom->symbol->max, m)};
  }
  Range range = range_of(atom->dividend);
  return {floor_div(range.low, atom->divisor), floor_div(range.high, atom->divisor)};
}

Range range_of(const DimExpr* expr) {
  if (expr->range_known.load(std::memory_order_acquire)) return {expr->low, expr->high};
  Range range = compute(expr, 0);
  expr->low = range.low;
  expr->high = range.high;
  expr->range_known.store(true, std::memory_order_release);
  return range;
}

Range Dim::range() const { return is_static() ? Range{number_, number_} : range_of(expr_); }

}  // namespace hone
