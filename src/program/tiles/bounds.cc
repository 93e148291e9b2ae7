#include "program/tiles/bounds.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/planted.h"

namespace hone {

namespace {

DimRange scaled(DimRange a, Dim factor) {
  if (factor.range().low >= 0) return {a.low * factor, a.high * factor};
  if (factor.range().high <= 0) return {a.high * factor, a.low * factor};
  return {-kDimLimit, kDimLimit};
}

DimRange divided(DimRange a, int64_t divisor) {
  return {floordiv(a.low, divisor), floordiv(a.high, divisor)};
}

// The algebra's members hide the functions of these names.
IndexExpr quotient(const IndexExpr& a, Dim positive) { return floordiv(a, positive); }
IndexExpr remainder(const IndexExpr& a, Dim positive) { return mod(a, positive); }

// Each part of the expression with its bounds. A guard holds for the part that it is about, so the
// bounds of that part are cut to it before they go into the bounds of the whole.
struct BoundsAlgebra {
  struct Quotient {
    IndexExpr of;
    DimRange range;  // of what is divided
    int64_t by;
  };
  struct Part {
    IndexExpr expr;
    DimRange range;
    std::optional<Quotient> quotient = {};  // if it is one
  };
  const TileProgram& program;
  std::span<const Guard> guards;

  Part number(Dim dim) const { return {dim, {dim, dim}}; }
  Part iter(int i) const {
    const TileIndex& index = program.indices[static_cast<size_t>(i)];
    return guarded({IndexExpr::iter(i), {index.low, index.high - 1}});
  }
  Part add(const Part& a, const Part& b) const {
    Part sum = guarded({a.expr + b.expr, {a.range.low + b.range.low, a.range.high + b.range.high}});
    if (b.quotient) return with_quotient(std::move(sum), *b.quotient, a);
    if (a.quotient) return with_quotient(std::move(sum), *a.quotient, b);
    return sum;
  }
  // x + floordiv(y, n) is floordiv(n*x + y, n), and a guard may bound n*x + y.
  Part with_quotient(Part sum, const Quotient& quotient, const Part& other) const {
    const Part added = multiply(other, quotient.by);
    const Part whole =
        guarded({quotient.of + added.expr,
                 {quotient.range.low + added.range.low, quotient.range.high + added.range.high}});
    const DimRange range = divided(whole.range, quotient.by);
    if (!provably_le(range.low, sum.range.low)) sum.range.low = range.low;
    if (!provably_le(sum.range.high, range.high)) sum.range.high = range.high;
    sum.quotient = {whole.expr, whole.range, quotient.by};
    return sum;
  }
  Part multiply(const Part& a, Dim factor) const {
    return guarded({a.expr * factor, scaled(a.range, factor)});
  }
  Part floordiv(const Part& a, Dim positive) const {
    if (!positive.is_static())
      return guarded({quotient(a.expr, positive), {-kDimLimit, kDimLimit}});
    const int64_t by = positive.value();
    Part part = guarded({quotient(a.expr, positive), divided(a.range, by)});
    part.quotient = {a.expr, a.range, by};
    return part;
  }
  Part mod(const Part& a, Dim positive) const {
    const bool is_same = provably_le(0, a.range.low) && provably_lt(a.range.high, positive);
    const DimRange whole = {0, positive - step_of(a.expr, positive)};
    return guarded({remainder(a.expr, positive), is_same ? a.range : whole});
  }

  // A divisor of `positive` of which the expression is always a multiple.
  int64_t step_of(const IndexExpr& expr, Dim positive) const {
    if (!positive.is_static()) return 1;
    int64_t step = positive.value();
    IndexExpr rest = expr;
    for (int i = 0; i < static_cast<int>(program.indices.size()); ++i) {
      const int64_t factor = expr.coefficient(i).value_or(0);
      if (factor == 0) continue;
      step = std::gcd(step, factor);
      rest = rest - IndexExpr::iter(i) * factor;
    }
    const std::optional<Dim> constant = rest.as_constant();
    return constant && constant->is_static() ? std::gcd(step, constant->value()) : 1;
  }

  Part guarded(Part part) const {
    // Where neither is provably tighter the guard's is likelier to be of use.
    auto cut = [&](Dim low, Dim high) {
      if (!provably_le(low, part.range.low)) part.range.low = low;
      if (!provably_le(part.range.high, high)) part.range.high = high;
    };
    for (const Guard& guard : guards) {
      const auto [of_value, of_expr] = coefficients(guard.value, part.expr);
      const int64_t divisor = std::max<int64_t>(of_value / of_expr, 1);
      const int64_t multiple = of_expr / of_value;
      if (const std::optional<Dim> ahead =
              (part.expr - quotient(guard.value, divisor)).as_constant())
        cut(hone::floordiv(guard.lower, divisor) + *ahead,
            hone::floordiv(guard.upper - 1, divisor) + *ahead);
      else if (const std::optional<Dim> rest = (part.expr - guard.value * multiple).as_constant())
        cut((multiple > 0 ? guard.lower : guard.upper - 1) * multiple + *rest,
            (multiple > 0 ? guard.upper - 1 : guard.lower) * multiple + *rest);
      else if (const IndexExpr others = part.expr - guard.value;
               of_value == of_expr && have_nothing_in_common(others, guard.value)) {
        BoundsAlgebra unguarded{program, {}};
        const DimRange range = others.compute(unguarded).range;
        cut(guard.lower + range.low, guard.upper - 1 + range.high);
      }
    }
    return part;
  }

  bool have_nothing_in_common(const IndexExpr& a, const IndexExpr& b) const {
    for (int i = 0; i < static_cast<int>(program.indices.size()); ++i)
      if (a.mentions(i) && b.mentions(i)) return false;
    return true;
  }

  // The coefficient of the first index that both expressions mention in a sum. They tell the only
  // factor by which one can differ from the other.
  std::pair<int64_t, int64_t> coefficients(const IndexExpr& value, const IndexExpr& expr) const {
    for (size_t i = 0; i < program.indices.size(); ++i) {
      const int64_t of_expr = expr.coefficient(static_cast<int>(i)).value_or(0);
      const int64_t of_value = value.coefficient(static_cast<int>(i)).value_or(0);
      if (of_expr != 0 && of_value != 0) return {of_value, of_expr};
    }
    return {1, 1};
  }
};

struct SimplerAlgebra : BoundsAlgebra {
  Part floordiv(const Part& a, Dim positive) const {
    Part part = BoundsAlgebra::floordiv(a, positive);
    if (part.range.low == part.range.high)
      part.expr = part.range.low;
    else if (const std::optional<Steps> steps = in_steps(a.expr, positive))
      part.expr = quotient(steps->whole, positive);
    return part;
  }
  Part mod(const Part& a, Dim positive) const {
    const DimRange whole = BoundsAlgebra::floordiv(a, positive).range;
    Part part = BoundsAlgebra::mod(a, positive);
    if (whole.low == whole.high)
      part.expr = a.expr - IndexExpr(whole.low * positive);
    else if (const std::optional<Steps> steps = in_steps(a.expr, positive))
      part.expr = remainder(steps->whole, positive) + steps->within;
    return part;
  }

  // 16*i + 8*j + k is 16*i + 8*j and k, for k < 8: no multiple of 32 lies between both.
  struct Steps {
    IndexExpr whole, within;  // multiples of a step that divides the divisor, and less than one
  };
  std::optional<Steps> in_steps(const IndexExpr& expr, Dim divisor) const {
    if (!divisor.is_static()) return std::nullopt;
    const int count = static_cast<int>(program.indices.size());
    for (int i = 0; i < count; ++i) {
      const int64_t step = std::gcd(expr.coefficient(i).value_or(0), divisor.value());
      if (!expr.mentions(i) || step < 2 || step >= divisor.value()) continue;
      Steps steps = {0, expr};
      for (int j = 0; j < count; ++j) {
        const int64_t factor = expr.coefficient(j).value_or(1);
        if (factor != 0 && factor % step == 0)
          steps.whole = steps.whole + IndexExpr::iter(j) * factor;
      }
      steps.within = expr - steps.whole;
      const std::optional<DimRange> range = numbers_of(steps.within);
      if (!range) continue;
      const int64_t first = hone::floordiv(range->low, step).value() * step;
      if (range->high.value() >= first + step) continue;
      steps.whole = steps.whole + IndexExpr(first);
      steps.within = steps.within - IndexExpr(first);
      if (!steps.within.as_constant()) return steps;
    }
    return std::nullopt;
  }

  // Bounds that are numbers. A guard may put an open size in place of one.
  std::optional<DimRange> numbers_of(const IndexExpr& expr) const {
    for (const std::span<const Guard> known : {guards, std::span<const Guard>()}) {
      BoundsAlgebra algebra{program, known};
      const DimRange range = expr.compute(algebra).range;
      if (range.low.is_static() && range.high.is_static()) return range;
    }
    return std::nullopt;
  }
};

}  // namespace

TileBounds::TileBounds(const TileProgram& program) : program_(program) {
  for (int i = 0; i < static_cast<int>(program.indices.size()); ++i) {
    const std::optional<tile::Span>& span = program.indices[static_cast<size_t>(i)].span;
    if (!span) continue;
    // Guards have two bounds; the other one says nothing new.
    const IndexExpr behind = IndexExpr::iter(i) - span->first,
                    before = span->end - IndexExpr::iter(i);
    BoundsAlgebra algebra{program_, {}};
    spans_.push_back({behind, 0, behind.compute(algebra).range.high + 1});
    spans_.push_back({before, 1, before.compute(algebra).range.high + 1});
  }
}

std::vector<Guard> TileBounds::with_spans(std::span<const Guard> guards) const {
  std::vector<Guard> all(guards.begin(), guards.end());
  all.insert(all.end(), spans_.begin(), spans_.end());
  return all;
}

DimRange TileBounds::of(const IndexExpr& expr, std::span<const Guard> guards) const {
  const std::vector<Guard> all = with_spans(guards);
  BoundsAlgebra algebra{program_, all};
  return expr.compute(algebra).range;
}

IndexExpr TileBounds::simplified(const IndexExpr& expr, std::span<const Guard> guards) const {
  const std::vector<Guard> all = with_spans(guards);
  SimplerAlgebra algebra{{program_, all}};
  return expr.compute(algebra).expr;
}

Guard TileBounds::simplified(const Guard& guard, std::span<const Guard> others) const {
  const Guard simple = {simplified(guard.value, others), guard.lower, guard.upper};
  if (!guard.lower.is_static() || !guard.upper.is_static()) return simple;
  const int count = static_cast<int>(program_.indices.size());
  const auto mentioned = [&](const IndexExpr& expr) {
    int mentioned = 0;
    for (int i = 0; i < count; ++i) mentioned += expr.mentions(i) ? 1 : 0;
    return mentioned;
  };
  // Between multiples of a factor, quotients by it say as much. Some of them, for a factor of the
  // value, depend on fewer indices.
  for (int i = 0; i < count; ++i) {
    const int64_t factor = std::abs(simple.value.coefficient(i).value_or(0));
    if (factor < 2 || guard.lower.value() % factor != 0 || guard.upper.value() % factor != 0)
      continue;
    IndexExpr quotients = simplified(floordiv(simple.value, factor), others);
    if (mentioned(quotients) < mentioned(simple.value))
      return {std::move(quotients), guard.lower.value() / factor,
              HONE_PLANT(guard_quotient, guard.upper.value() / factor,
                         guard.upper.value() / factor - 1)};
  }
  return simple;
}

bool TileBounds::always(const Guard& guard, std::span<const Guard> others) const {
  const DimRange value = of(guard.value, others);
  return provably_le(guard.lower, value.low) && provably_lt(value.high, guard.upper);
}

bool TileBounds::never(const Guard& guard, std::span<const Guard> others) const {
  const DimRange value = of(guard.value, others);
  return provably_lt(value.high, guard.lower) || provably_le(guard.upper, value.low) ||
         provably_le(guard.upper, guard.lower);
}

std::optional<int> TileBounds::outside(std::span<const IndexExpr> index,
                                       std::span<const Guard> guards, Type type) const {
  for (const Guard& guard : guards)
    if (never(guard)) return std::nullopt;
  for (int axis = 0; axis < type.rank(); ++axis) {
    const DimRange range = of(index[static_cast<size_t>(axis)], guards);
    if (!provably_le(0, range.low) || !provably_lt(range.high, type.dim(axis))) return axis;
  }
  return std::nullopt;
}

}  // namespace hone
