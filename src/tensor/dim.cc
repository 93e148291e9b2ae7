#include "tensor/dim.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/checked_math.h"
#include "base/hash.h"
#include "base/interner.h"
#include "tensor/dim_expr.h"

namespace hone {

namespace {

template <class T>
const T* intern(T value) {
  static auto* interner = new Interner<T>;  // never destroyed: dims may outlive static objects
  return interner->intern(std::move(value));
}

bool precedes(const DimTerm& a, const DimTerm& b) { return compare(a.monomial, b.monomial) < 0; }

// Sorts, adds up equal monomials and drops zeros.
void normalize(std::vector<DimTerm>& terms) {
  std::sort(terms.begin(), terms.end(), precedes);
  size_t kept = 0;
  for (size_t i = 0; i < terms.size();) {
    DimTerm sum = terms[i];
    for (++i; i < terms.size() && terms[i].monomial == sum.monomial; ++i) {
      sum.coefficient = saturated_add(sum.coefficient, terms[i].coefficient);
    }
    if (sum.coefficient != 0) terms[kept++] = sum;
  }
  terms.resize(kept);
}

// a + b * factor
std::vector<DimTerm> merge(const std::vector<DimTerm>& a, const std::vector<DimTerm>& b,
                           int64_t factor) {
  std::vector<DimTerm> sum;
  sum.reserve(a.size() + b.size());
  size_t i = 0;
  for (const DimTerm& term : b) {
    while (i < a.size() && a[i].monomial != term.monomial && precedes(a[i], term)) {
      sum.push_back(a[i++]);
    }
    int64_t coefficient = saturated_multiply(term.coefficient, factor);
    if (i < a.size() && a[i].monomial == term.monomial) {
      coefficient = saturated_add(a[i++].coefficient, coefficient);
    }
    if (coefficient != 0) sum.push_back({term.monomial, coefficient});
  }
  sum.insert(sum.end(), a.begin() + static_cast<std::ptrdiff_t>(i), a.end());
  return sum;
}

Dim scaled(const DimExpr* expr, int64_t factor) {
  if (factor == 0) return 0;
  std::vector<DimTerm> terms = expr->terms;
  for (DimTerm& term : terms) term.coefficient = saturated_multiply(term.coefficient, factor);
  return DimExpr::of(std::move(terms), saturated_multiply(expr->constant, factor));
}

const std::vector<DimTerm>& terms_of(Dim dim) {
  static const std::vector<DimTerm> none;
  return dim.is_static() ? none : DimExpr::get(dim)->terms;
}

int64_t constant_of(Dim dim) { return dim.is_static() ? dim.value() : DimExpr::get(dim)->constant; }

}  // namespace

Dim DimExpr::of(std::vector<DimTerm> terms, int64_t constant) {
  if (terms.empty()) return constant;
  DimExpr expr;
  Hasher hasher;
  for (const DimTerm& term : terms) hasher.add(term.monomial->hash()).add(term.coefficient);
  expr.hash_ = hasher.add(constant).value();
  expr.terms = std::move(terms);
  expr.constant = constant;
  return Dim(intern(std::move(expr)));
}

Dim DimExpr::of(const DimTerm& term) { return of(std::vector<DimTerm>{term}, 0); }

Dim DimExpr::of(const DimAtom& atom) { return of(DimTerm{intern(DimMonomial({intern(atom)})), 1}); }

SymbolData::SymbolData(std::string_view name, int64_t min, int64_t max, int64_t multiple_of)
    : name(name),
      min(min),
      max(max),
      multiple_of(multiple_of),
      hash_(Hasher().add(name).add(min).add(max).add(multiple_of).value()) {}

DimAtom::DimAtom(const SymbolData* symbol) : symbol(symbol), hash_(symbol->hash()) {}

DimAtom::DimAtom(const DimExpr* dividend, int64_t divisor)
    : dividend(dividend),
      divisor(divisor),
      hash_(Hasher().add(dividend->hash()).add(divisor).value()) {}

DimMonomial::DimMonomial(std::vector<const DimAtom*> sorted) : atoms(std::move(sorted)) {
  Hasher hasher;
  for (const DimAtom* atom : atoms) hasher.add(atom->hash());
  hash_ = hasher.value();
}

std::strong_ordering compare(const DimAtom* a, const DimAtom* b) {
  if (a == b) return std::strong_ordering::equal;
  if (a->symbol != nullptr && b->symbol != nullptr) {
    const SymbolData& s = *a->symbol;
    const SymbolData& t = *b->symbol;
    return std::tie(s.name, s.min, s.max, s.multiple_of) <=>
           std::tie(t.name, t.min, t.max, t.multiple_of);
  }
  if (a->symbol != nullptr) return std::strong_ordering::less;
  if (b->symbol != nullptr) return std::strong_ordering::greater;
  if (auto order = a->divisor <=> b->divisor; order != 0) return order;
  return compare(a->dividend, b->dividend);
}

std::strong_ordering compare(const DimMonomial* a, const DimMonomial* b) {
  if (a == b) return std::strong_ordering::equal;
  if (auto order = b->atoms.size() <=> a->atoms.size(); order != 0) return order;
  for (size_t i = 0; i < a->atoms.size(); ++i) {
    if (auto order = compare(a->atoms[i], b->atoms[i]); order != 0) return order;
  }
  return std::strong_ordering::equal;
}

std::strong_ordering compare(const DimExpr* a, const DimExpr* b) {
  if (a == b) return std::strong_ordering::equal;
  if (auto order = a->terms.size() <=> b->terms.size(); order != 0) return order;
  for (size_t i = 0; i < a->terms.size(); ++i) {
    const DimTerm& s = a->terms[i];
    const DimTerm& t = b->terms[i];
    if (auto order = compare(s.monomial, t.monomial); order != 0) return order;
    if (auto order = s.coefficient <=> t.coefficient; order != 0) return order;
  }
  return a->constant <=> b->constant;
}

const DimMonomial* multiply(const DimMonomial* a, const DimMonomial* b) {
  std::vector<const DimAtom*> atoms(a->atoms.size() + b->atoms.size());
  std::merge(a->atoms.begin(), a->atoms.end(), b->atoms.begin(), b->atoms.end(), atoms.begin(),
             [](const DimAtom* x, const DimAtom* y) { return compare(x, y) < 0; });
  return intern(DimMonomial(std::move(atoms)));
}

std::optional<const DimMonomial*> divide(const DimMonomial* a, const DimMonomial* b) {
  std::vector<const DimAtom*> quotient;
  size_t matched = 0;
  for (const DimAtom* atom : a->atoms) {
    if (matched < b->atoms.size() && b->atoms[matched] == atom) {
      ++matched;
    } else {
      quotient.push_back(atom);
    }
  }
  if (matched < b->atoms.size()) return std::nullopt;
  if (quotient.empty()) return nullptr;
  return intern(DimMonomial(std::move(quotient)));
}

Symbol Symbol::get(std::string_view name, int64_t min, int64_t max, int64_t multiple_of) {
  HONE_CHECK(is_symbol_name(name), "'{}'", name);
  HONE_CHECK(-kDimLimit <= min && min <= max && max <= kDimLimit, "{} in {}..{}", name, min, max);
  HONE_CHECK(multiple_of >= 1, "{} is a multiple of {}", name, multiple_of);
  HONE_CHECK(ceil_div(min, multiple_of) <= floor_div(max, multiple_of),
             "no multiple of {} is in {}..{}", multiple_of, min, max);
  return Symbol(intern(SymbolData(name, min, max, multiple_of)));
}

const std::string& Symbol::name() const { return data_->name; }
int64_t Symbol::min() const { return data_->min; }
int64_t Symbol::max() const { return data_->max; }
int64_t Symbol::multiple_of() const { return data_->multiple_of; }

Dim::Dim(Symbol symbol) {
  *this = DimExpr::of(DimAtom(DimExpr::get(symbol))) * symbol.multiple_of();
}

int64_t Dim::value() const {
  HONE_CHECK(is_static(), "{}", to_string());
  return number_;
}

size_t Dim::hash() const {
  return is_static() ? hash_mix(static_cast<uint64_t>(number_)) : expr_->hash();
}

size_t Dim::term_count() const { return is_static() ? 1 : expr_->terms.size() + 1; }

size_t Dim::atom_count() const {
  size_t count = 0;
  for (const DimTerm& term : terms_of(*this)) {
    count += term.monomial->atoms.size();
    for (const DimAtom* atom : term.monomial->atoms) {
      if (atom->symbol == nullptr) count += DimExpr::wrap(atom->dividend).atom_count();
    }
  }
  return count;
}

Dim Dim::add(Dim a, Dim b, int64_t factor) {
  int64_t constant = saturated_add(constant_of(a), saturated_multiply(constant_of(b), factor));
  return DimExpr::of(merge(terms_of(a), terms_of(b), factor), constant);
}

Dim Dim::multiply(Dim a, Dim b) {
  if (a.is_static() && b.is_static()) return saturated_multiply(a.number_, b.number_);
  if (a.is_static()) return scaled(b.expr_, a.number_);
  if (b.is_static()) return scaled(a.expr_, b.number_);
  std::vector<DimTerm> terms;
  terms.reserve((a.expr_->terms.size() + 1) * (b.expr_->terms.size() + 1));
  for (const DimTerm& s : a.expr_->terms) {
    for (const DimTerm& t : b.expr_->terms) {
      terms.push_back({hone::multiply(s.monomial, t.monomial),
                       saturated_multiply(s.coefficient, t.coefficient)});
    }
    terms.push_back({s.monomial, saturated_multiply(s.coefficient, b.expr_->constant)});
  }
  for (const DimTerm& t : b.expr_->terms) {
    terms.push_back({t.monomial, saturated_multiply(t.coefficient, a.expr_->constant)});
  }
  normalize(terms);
  return DimExpr::of(std::move(terms), saturated_multiply(a.expr_->constant, b.expr_->constant));
}

namespace {

// The whole multiples of the divisor, divided: 5*N + 7 over 4 gives N + 1 and leaves N + 3. The
// coefficients that are left keep their sign, so that bounds stay tight.
struct Split {
  Dim whole;
  Dim rest;
};

Split split(Dim dim, int64_t divisor) {
  std::vector<DimTerm> whole, rest;
  for (const DimTerm& term : terms_of(dim)) {
    int64_t quotient = term.coefficient / divisor, remainder = term.coefficient % divisor;
    if (quotient != 0) whole.push_back({term.monomial, quotient});
    if (remainder != 0) rest.push_back({term.monomial, remainder});
  }
  int64_t constant = constant_of(dim);
  return {DimExpr::of(std::move(whole), floor_div(constant, divisor)),
          DimExpr::of(std::move(rest), floor_mod(constant, divisor))};
}

// The position of the only term that is a bare floordiv, if there is just one.
std::optional<size_t> only_floordiv(const std::vector<DimTerm>& terms) {
  std::optional<size_t> found;
  for (size_t i = 0; i < terms.size(); ++i) {
    const std::vector<const DimAtom*>& atoms = terms[i].monomial->atoms;
    if (terms[i].coefficient != 1 || atoms.size() != 1 || atoms[0]->symbol != nullptr) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

// floordiv of what split() left over.
Dim floordiv_rest(Dim rest, int64_t divisor) {
  Range range = rest.range();
  int64_t lowest = floor_div(range.low, divisor);
  if (lowest == floor_div(range.high, divisor)) return lowest;

  int64_t common = divisor;
  for (const DimTerm& term : terms_of(rest)) common = std::gcd(common, term.coefficient);
  if (common > 1) {
    std::vector<DimTerm> terms = terms_of(rest);
    for (DimTerm& term : terms) term.coefficient /= common;
    int64_t constant = floor_div(constant_of(rest), common);
    return floordiv(DimExpr::of(std::move(terms), constant), divisor / common);
  }

  // (x/a + r)/b == (x + a*r)/(a*b)
  if (std::optional<size_t> at = only_floordiv(terms_of(rest))) {
    const DimTerm& inner = terms_of(rest)[*at];
    const DimAtom* atom = inner.monomial->atoms[0];
    if (std::optional<int64_t> both = checked_mul(atom->divisor, divisor); both < kDimLimit) {
      return floordiv(DimExpr::wrap(atom->dividend) + (rest - DimExpr::of(inner)) * atom->divisor,
                      *both);
    }
  }
  return DimExpr::of(DimAtom(DimExpr::get(rest), divisor));
}

}  // namespace

Dim floordiv(Dim a, int64_t positive) {
  HONE_CHECK(positive > 0, "floordiv({}, {})", a.to_string(), positive);
  if (a.is_static()) return floor_div(a.value(), positive);
  if (positive == 1) return a;
  Split parts = split(a, positive);
  if (parts.rest.is_static()) return parts.whole;
  return parts.whole + floordiv_rest(parts.rest, positive);
}

Dim mod(Dim a, int64_t positive) { return a - floordiv(a, positive) * positive; }
Dim ceildiv(Dim a, int64_t positive) {
  if (a.is_static()) return ceil_div(a.value(), positive);  // the sum below may saturate
  return floordiv(a + (positive - 1), positive);
}

bool Dim::divisible_by(int64_t divisor) const {
  HONE_CHECK(divisor != 0);
  for (const DimTerm& term : terms_of(*this)) {
    if (term.coefficient % divisor != 0) return false;
  }
  return constant_of(*this) % divisor == 0;
}

std::optional<Dim> Dim::divided_by(Dim divisor) const {
  if (divisor.is_static()) {
    int64_t number = divisor.number_;
    if (number == 0 || !divisible_by(number)) return std::nullopt;
    if (number < 0) return floordiv(*this * -1, -number);
    return floordiv(*this, number);
  }
  // Long division by leading terms, which the order of the terms makes end.
  const DimTerm& lead = divisor.expr_->terms[0];
  Dim quotient = 0, rest = *this;
  while (!rest.is_static()) {
    const DimTerm& term = rest.expr_->terms[0];
    std::optional<const DimMonomial*> monomial = divide(term.monomial, lead.monomial);
    if (!monomial || term.coefficient % lead.coefficient != 0) return std::nullopt;
    int64_t coefficient = term.coefficient / lead.coefficient;
    Dim step = *monomial == nullptr ? Dim(coefficient) : DimExpr::of({*monomial, coefficient});
    quotient = quotient + step;
    rest = rest - step * divisor;
  }
  return rest.is(0) ? std::optional<Dim>(quotient) : std::nullopt;
}

bool provably_le(Dim a, Dim b) { return (b - a).range().low >= 0; }
bool provably_lt(Dim a, Dim b) { return (b - a).range().low > 0; }

}  // namespace hone
