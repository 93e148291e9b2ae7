#include "prove/index_form.h"

#include <algorithm>
#include <numeric>

#include "base/checked_math.h"

namespace hone {
namespace {

constexpr int64_t kShort = 8;  // loops that are divided place by place

bool is_positive(Dim d) { return provably_le(1, d); }
bool is_negative(Dim d) { return provably_le(d, -1); }

bool same_atom(const IndexForm::Term& a, const IndexForm::Term& b) {
  if (a.variable != b.variable) return false;
  if (a.variable >= 0) return true;
  if (a.is_remainder != b.is_remainder || !(a.divisor == b.divisor)) return false;
  const IndexForm difference = *a.inner - *b.inner;
  return difference.terms().empty() && difference.constant().is(0);
}

// The term without its factor.
IndexForm atom_of(const IndexForm::Term& term) {
  return term.variable >= 0 ? IndexForm::variable(term.variable)
                            : IndexForm::quotient_of(term.inner, term.divisor, term.is_remainder);
}

}  // namespace

bool is_exact(Dim dim) {
  const Range range = dim.range();
  return -kDimLimit < range.low && range.high < kDimLimit;
}

IndexForm IndexForm::variable(int v) {
  IndexForm form(0);
  form.terms_.push_back({.factor = 1, .variable = v});
  return form;
}

IndexForm IndexForm::variable(int v, const LoopVariables& variables) {
  return variables.extent(v).is(1) ? IndexForm(0) : variable(v);
}

void IndexForm::add(const Term& term) {
  const auto at =
      std::ranges::find_if(terms_, [&](const Term& other) { return same_atom(term, other); });
  if (at == terms_.end()) {
    if (!term.factor.is(0)) terms_.push_back(term);
    return;
  }
  at->factor += term.factor;
  if (at->factor.is(0)) terms_.erase(at);
}

IndexForm operator+(const IndexForm& a, const IndexForm& b) {
  IndexForm sum = a;
  sum.constant_ += b.constant_;
  for (const IndexForm::Term& term : b.terms_) sum.add(term);
  return sum;
}

IndexForm operator*(const IndexForm& a, Dim factor) {
  IndexForm product(a.constant_ * factor);
  for (IndexForm::Term term : a.terms_) {
    term.factor *= factor;
    product.add(term);
  }
  return product;
}

IndexForm IndexForm::with(int variable, const IndexForm& form,
                          const LoopVariables& variables) const {
  IndexForm result(constant_);
  for (const Term& term : terms_) {
    if (term.variable == variable) {
      result = result + form * term.factor;
    } else if (term.variable >= 0 || !term.inner->mentions(variable)) {
      result.add(term);
    } else {
      const Division parts =
          divide(term.inner->with(variable, form, variables), term.divisor, variables);
      result = result + (term.is_remainder ? parts.remainder : parts.quotient) * term.factor;
    }
  }
  return result;
}

bool IndexForm::mentions(int variable) const {
  return std::ranges::any_of(terms_, [&](const Term& term) {
    return term.variable >= 0 ? term.variable == variable : term.inner->mentions(variable);
  });
}

size_t IndexForm::weight() const {
  size_t sum = 1;
  for (const Term& term : terms_) sum += term.variable >= 0 ? 1 : 1 + term.inner->weight();
  return sum;
}

bool IndexForm::is_exact() const {
  return hone::is_exact(constant_) && std::ranges::all_of(terms_, [](const Term& term) {
           return hone::is_exact(term.factor) && (term.variable >= 0 || term.inner->is_exact());
         });
}

std::optional<Dim> IndexForm::lowest(const LoopVariables& variables) const {
  Dim sum = constant_;
  for (const Term& term : terms_) {
    const bool rises = is_positive(term.factor);
    if (!rises && !is_negative(term.factor)) return std::nullopt;
    Dim least = 0, most = 0;
    if (term.variable >= 0) {
      most = variables.extent(term.variable) - 1;
    } else if (term.is_remainder) {
      most = term.divisor - 1;
    } else {
      const std::optional<Dim> low = term.inner->lowest(variables);
      const std::optional<Dim> high = term.inner->highest(variables);
      if (rises ? !low || !provably_le(0, *low) : !high || !term.divisor.is_static())
        return std::nullopt;
      if (!rises) most = floordiv(*high, term.divisor.value());
    }
    sum += term.factor * (rises ? least : most);
  }
  return sum;
}

std::optional<Dim> IndexForm::highest(const LoopVariables& variables) const {
  const std::optional<Dim> low = (*this * -1).lowest(variables);
  if (!low) return std::nullopt;
  return Dim(0) - *low;
}

std::string IndexForm::text(std::span<const std::string> names) const {
  std::vector<std::string> pieces;
  for (const Term& term : terms_) {
    const std::string atom =
        term.variable >= 0 ? names[static_cast<size_t>(term.variable)]
                           : fmt::format("({}) {} ({})", term.inner->text(names),
                                         term.is_remainder ? '%' : '/', term.divisor.to_string());
    pieces.push_back(term.factor.is(1) ? atom
                                       : fmt::format("({})*{}", term.factor.to_string(), atom));
  }
  std::ranges::sort(pieces);
  if (!constant_.is(0) || pieces.empty()) pieces.push_back(constant_.to_string());
  return fmt::format("{}", fmt::join(pieces, " + "));
}

// ---- Division -----------------------------------------------------------------------------------

Division divide(const IndexForm& a, Dim divisor, const LoopVariables& variables,
                std::optional<Refinement>* wanted) {
  IndexForm whole(0), rest(0);
  if (const std::optional<Dim> part = a.constant().divided_by(divisor)) {
    whole = *part;
  } else if (a.constant().is_static() && divisor.is_static()) {
    whole = Dim(floor_div(a.constant().value(), divisor.value()));
    rest = a.constant() - whole.constant() * divisor;
  } else {
    rest = a.constant();
  }
  for (const IndexForm::Term& term : a.terms()) {
    if (const std::optional<Dim> part = term.factor.divided_by(divisor))
      whole = whole + atom_of(term) * *part;
    else
      rest = rest + atom_of(term) * term.factor;
  }
  const std::optional<Dim> low = rest.lowest(variables), high = rest.highest(variables);
  if (low && high && provably_le(0, *low) && provably_lt(*high, divisor)) return {whole, rest};
  if (wanted != nullptr && !*wanted) {
    for (const IndexForm::Term& term : rest.terms()) {
      if (term.variable < 0 || !is_positive(term.factor)) continue;
      const std::optional<Dim> digit = divisor.divided_by(term.factor);
      if (!digit || digit->is(1) || !is_positive(*digit)) continue;
      const std::optional<Dim> high_digits = variables.extent(term.variable).divided_by(*digit);
      if (!high_digits || high_digits->is(1)) continue;
      *wanted = Refinement{Refinement::digits, term.variable, *digit};
      break;
    }
    // A few places are looked at one by one.
    for (const IndexForm::Term& term : rest.terms()) {
      if (*wanted || !divisor.is_static() || term.variable < 0) continue;
      const Dim extent = variables.extent(term.variable);
      if (extent.is_static() && extent.value() > 1 && extent.value() <= kShort)
        *wanted = Refinement{Refinement::cut, term.variable, 1};
    }
  }
  const auto inner = std::make_shared<const IndexForm>(rest);
  return {whole + IndexForm::quotient_of(inner, divisor, false),
          IndexForm::quotient_of(inner, divisor, true)};
}

IndexForm IndexForm::quotient_of(std::shared_ptr<const IndexForm> inner, Dim divisor,
                                 bool is_remainder) {
  IndexForm form(0);
  form.terms_.push_back({.factor = 1,
                         .variable = -1,
                         .inner = std::move(inner),
                         .divisor = divisor,
                         .is_remainder = is_remainder});
  return form;
}

// ---- Guards -------------------------------------------------------------------------------------

namespace {

// factor * x + constant >= 0 with whole numbers: divided by what all factors have in common.
IndexForm tightened(const IndexForm& a) {
  int64_t common = 0;
  for (const IndexForm::Term& term : a.terms()) {
    if (!term.factor.is_static()) return a;
    common = std::gcd(common, term.factor.value());
  }
  if (common <= 1 || !a.constant().is_static()) return a;
  IndexForm divided(floor_div(a.constant().value(), common));
  for (const IndexForm::Term& term : a.terms()) {
    divided = divided + atom_of(term) * (term.factor.value() / common);
  }
  return divided;
}

}  // namespace

std::optional<bool> is_never_negative(IndexForm& a, const LoopVariables& variables,
                                      std::optional<Refinement>& wanted) {
  a = tightened(a);
  const std::optional<Dim> low = a.lowest(variables), high = a.highest(variables);
  if (low && provably_le(0, *low)) return true;
  if (high && provably_lt(*high, 0)) return false;
  if (a.terms().size() != 1 || a.terms()[0].variable < 0 || wanted) return std::nullopt;
  const IndexForm::Term& term = a.terms()[0];
  // v >= -constant, or v <= constant.
  if (!term.factor.is(1) && !term.factor.is(-1)) return std::nullopt;
  const Dim at = term.factor.is(1) ? Dim(0) - a.constant() : a.constant() + 1;
  if (provably_le(0, at) && provably_le(at, variables.extent(term.variable)))
    wanted = Refinement{Refinement::cut, term.variable, at};
  return std::nullopt;
}

}  // namespace hone
