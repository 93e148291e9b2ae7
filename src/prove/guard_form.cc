#include <algorithm>

#include "base/checked_math.h"
#include "prove/guard.h"

namespace hone {
namespace {

constexpr int64_t kMaxDivisor = 16;

bool mentions(Dim dim, Symbol symbol) {
  const std::vector<Symbol> symbols = dim.symbols();
  return std::ranges::find(symbols, symbol) != symbols.end();
}

// The rest of factor * symbol + rest, if the rest has no such symbol.
std::optional<Dim> rest_of(Dim dim, Symbol symbol, int64_t factor) {
  const Dim rest = dim - Dim(symbol) * factor;
  if (mentions(rest, symbol)) return std::nullopt;
  return rest;
}

class FormBuilder {
 public:
  explicit FormBuilder(const Rule& rule) : rule_(rule) {
    for (Symbol s : rule.symbols()) names_.push_back(s.name());
  }

  std::optional<GuardForm> form() {
    for (const Condition& condition : rule_.guard) {
      const Condition now = {condition.left.bind(form_.bindings), condition.relation,
                             condition.right.bind(form_.bindings)};
      if (now.relation == Relation::unequal) continue;
      if (now.relation == Relation::equal)
        equal(now.left, now.right);
      else
        at_least_zero(now.right - now.left - (now.relation == Relation::less ? 1 : 0));
      if (is_empty_) return std::nullopt;
      if (is_unclear_) return GuardForm();
    }
    return std::move(form_);
  }

 private:
  void equal(Dim left, Dim right) {
    const Dim difference = left - right;
    if (difference.is_static()) {
      is_empty_ = !difference.is(0);
      return;
    }
    if (left.symbols().size() == 1 && right.symbols().size() == 1 && remainder(left, right)) return;
    for (Symbol s : difference.symbols())
      for (int64_t factor : {1, -1})
        if (const std::optional<Dim> rest = rest_of(difference, s, factor)) {
          const Dim value = *rest * -factor;
          // Two symbols become one that both ranges admit.
          const std::vector<Symbol> others = value.symbols();
          if (others.size() == 1 && value == Dim(others[0])) return unite(s, others[0]);
          if (check_binding(s, value).ok()) return bind(s, value);
          is_empty_ = is_empty_ || value.is_static();
        }
  }

  // S = S/c*c + r
  bool remainder(Dim left, Dim right) {
    const Symbol s = left.symbols()[0];
    for (int64_t c = 2; c <= kMaxDivisor; ++c)
      for (int64_t r = 0; r < c; ++r) {
        const Dim wanted = floordiv(Dim(s), c) * c + r;
        if (!(left == Dim(s) && right == wanted) && !(right == Dim(s) && left == wanted)) continue;
        const Symbol quotient = make(free_name(), floordiv(Dim(s), c).range(), floordiv(Dim(s), c));
        const Dim value = Dim(quotient) * c + r;
        if (check_binding(s, value).ok())
          bind(s, value);
        else
          form_.made.pop_back();  // left out
        return true;
      }
    return false;
  }

  void at_least_zero(Dim dim) {
    const Range range = dim.range();
    is_empty_ = range.high < 0;
    if (is_empty_ || range.low >= 0) return;
    for (int64_t factor : {1, -1})
      for (Symbol s : dim.symbols()) {
        const std::optional<Dim> rest = rest_of(dim, s, factor);
        if (!rest) continue;
        if (rest->is_static()) {
          const Range bounds =
              factor > 0 ? Range{-rest->value(), s.max()} : Range{s.min(), rest->value()};
          return narrow(s, bounds);
        }
        if (factor < 0) continue;  // S = rest - Q may be negative as far as dims know
        const Symbol more = make(free_name(), {0, range.high}, dim);
        const Dim value = Dim(more) - *rest;
        if (check_binding(s, value).ok()) return bind(s, value);
        form_.made.pop_back();
      }
  }

  void narrow(Symbol s, Range range) {
    range = {std::max(range.low, s.min()), std::min(range.high, s.max())};
    const int64_t m = s.multiple_of();
    is_empty_ = range.high < range.low || floor_div(range.high, m) * m < range.low;
    if (!is_empty_) bind(s, Dim(Symbol::get(s.name(), range.low, range.high, m)));
  }

  void unite(Symbol a, Symbol b) {
    const Range range = {std::max(a.min(), b.min()), std::min(a.max(), b.max())};
    const int64_t m = std::max(a.multiple_of(), b.multiple_of());
    if (m % a.multiple_of() != 0 || m % b.multiple_of() != 0) return;  // left out
    is_empty_ = range.high < range.low || floor_div(range.high, m) * m < range.low;
    if (is_empty_) return;
    const Dim both = Symbol::get(b.name(), range.low, range.high, m);
    bind(a, both);
    if (both != Dim(b)) bind(b, both);
  }

  Symbol make(const std::string& name, Range range, Dim witness) {
    const Symbol symbol = Symbol::get(name, range.low, range.high);
    // The witness is told by the symbols of the rule.
    Bindings back;
    for (const GuardForm::Made& made : form_.made) back.emplace(made.symbol.name(), made.witness);
    form_.made.push_back({symbol, witness.bind(back)});
    return symbol;
  }

  std::string free_name() {
    for (int i = 0;; ++i) {
      std::string name = fmt::format("q{}", i);
      if (std::ranges::find(names_, name) != names_.end()) continue;
      names_.push_back(name);
      return name;
    }
  }

  void bind(Symbol s, Dim value) {
    const Bindings one = {{s.name(), value}};
    for (auto& [name, known] : form_.bindings) known = known.bind(one);
    form_.bindings.emplace(s.name(), value);
    for (Symbol symbol : rule_.symbols()) {
      const auto at = form_.bindings.find(symbol.name());
      if (at == form_.bindings.end() || check_binding(symbol, at->second).ok()) continue;
      const Range range = at->second.range();
      if (range.high < symbol.min() || symbol.max() < range.low)
        is_empty_ = true;
      else
        is_unclear_ = true;
    }
  }

  const Rule& rule_;
  GuardForm form_;
  std::vector<std::string> names_;
  bool is_empty_ = false;
  bool is_unclear_ = false;  // whether what is bound fits its symbol
};

}  // namespace

std::optional<GuardForm> form_of_guard(const Rule& rule) { return FormBuilder(rule).form(); }

Result<Rule> without_guard(const Rule& rule, const GuardForm& form) {
  Rule plain = {.name = rule.name,
                .left = HONE_TRY(specialize(rule.left, form.bindings)),
                .right = HONE_TRY(specialize(rule.right, form.bindings)),
                .guard = {}};
  return plain;
}

}  // namespace hone
