#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "prove/sum_form.h"

// Forms of comparisons, and of what they choose: a bool is 1 or 0.

namespace hone {

SumForm single(std::shared_ptr<const SumFactor> factor) {
  SumTerm term;
  term.factors.push_back(std::move(factor));
  return {std::move(term)};
}

std::vector<std::string> plain_names(const LoopVariables& variables) {
  std::vector<std::string> names;
  for (size_t v = 0; v < variables.size(); ++v) names.push_back(fmt::format("v{}", v));
  return names;
}

namespace {

SumForm sum(SumForm a, const SumForm& b, Dim factor) {
  for (SumTerm term : b) {
    term.factor *= factor;
    a.push_back(std::move(term));
  }
  return a;
}

constexpr std::string_view kNegative = "negative";  // of a number: a bool

// The sums that are known to be negative where the form is 1; the form is 1 there and 0 elsewhere,
// or, with `is_not`, the other way round.
struct Sign {
  SumForm of;
  bool is_not = false;
};
std::optional<Sign> sign_of(const SumForm& form) {
  const auto is_plain = [](const SumTerm& term, size_t factors) {
    return term.bound.empty() && term.guards.empty() && term.factors.size() == factors;
  };
  const bool is_not = form.size() == 2 && is_plain(form[0], 0) && form[0].factor.is(1);
  if (!is_not && form.size() != 1) return std::nullopt;
  const SumTerm& term = form.back();
  if (!is_plain(term, 1) || !term.factor.is(is_not ? -1 : 1)) return std::nullopt;
  const SumFactor& factor = *term.factors[0];
  if (factor.kind != SumFactor::function || factor.key != kNegative) return std::nullopt;
  return Sign{factor.operands[0], is_not};
}

// A form of places and numbers.
std::optional<IndexForm> as_place(const SumForm& form) {
  IndexForm place(0);
  for (const SumTerm& term : form) {
    if (!term.bound.empty() || !term.guards.empty() || term.factors.size() > 1) return std::nullopt;
    if (term.factors.empty()) {
      place = place + IndexForm(term.factor);
      continue;
    }
    const SumFactor& factor = *term.factors[0];
    if (factor.kind != SumFactor::element || factor.key != kPlace) return std::nullopt;
    place = place + factor.index[0] * term.factor;
  }
  return place;
}

SumForm with(const SumForm& form, int variable, const IndexForm& place,
             const LoopVariables& variables);

std::shared_ptr<const SumFactor> with(const SumFactor& factor, int variable, const IndexForm& place,
                                      const LoopVariables& variables) {
  auto changed = std::make_shared<SumFactor>(factor);
  for (IndexForm& index : changed->index) index = index.with(variable, place, variables);
  for (SumForm& operand : changed->operands) operand = with(operand, variable, place, variables);
  for (SetMember& member : changed->set) {
    for (IndexForm& guard : member.guards) guard = guard.with(variable, place, variables);
    member.value = with(member.value, variable, place, variables);
  }
  return changed;
}

SumForm with(const SumForm& form, int variable, const IndexForm& place,
             const LoopVariables& variables) {
  SumForm changed = form;
  for (SumTerm& term : changed) {
    for (IndexForm& guard : term.guards) guard = guard.with(variable, place, variables);
    for (auto& factor : term.factors) factor = with(*factor, variable, place, variables);
  }
  return changed;
}

bool is_zero(const IndexForm& form) { return form.terms().empty() && form.constant().is(0); }

// The value of the variable where the form is 0: its factor is 1 or -1, and nothing else has it.
std::optional<IndexForm> solved(const IndexForm& form, int variable) {
  for (const IndexForm::Term& term : form.terms()) {
    if (term.variable != variable || !(term.factor.is(1) || term.factor.is(-1))) continue;
    const IndexForm rest = form - IndexForm::variable(variable) * term.factor;
    if (!rest.mentions(variable)) return rest * (Dim(0) - term.factor);
  }
  return std::nullopt;
}

}  // namespace

// True if side >= 0, unless it is known not to be; where nothing is known it counts as open.
bool FormMaker::holds(IndexForm side, std::vector<IndexForm>& open) {
  const std::optional<bool> known = is_never_negative(side, variables_, wanted);
  script_.emplace_back(!known ? "o" : *known ? "y" : "n");
  if (!known) open.push_back(side);
  return known != false;
}

// For an iota whose numbers are all exact.
SumForm FormMaker::place(Type type, int64_t axis, const std::vector<IndexForm>& index) {
  constexpr int64_t kMostExact = int64_t{1} << 24;  // that f32 counts to
  const bool is_wide = type.dtype() == DType::f32 || type.dtype() == DType::f64;
  if (!is_wide || type.dim(static_cast<int>(axis)).range().high > kMostExact)
    fail("places are rounded");
  return single(
      std::make_shared<SumFactor>(SumFactor{.kind = SumFactor::element,
                                            .key = std::string(kPlace),
                                            .index = {index[static_cast<size_t>(axis)]}}));
}

SumForm FormMaker::comparison(NodeId n, const std::vector<IndexForm>& index) {
  const std::string_view direction = graph_.op(n).word("direction");
  const ValueId a = graph_.operands(n)[0], b = graph_.operands(n)[1];
  const SumForm left = element(a, index), right = element(b, index);
  if (!counts()) return {};
  if (const std::optional<IndexForm> place = as_place(combined(sum(left, right, -1))))
    return comparison_of_places(direction, *place);
  const bool are_bools = graph_.type(a).dtype() == DType::boolean;
  const auto is_less = [&](const SumForm& x, const SumForm& y) {
    return are_bools ? sum(y, product(x, y), -1) : is_negative(sum(x, y, -1));
  };
  const SumForm one = {SumTerm{}};
  if (direction == "lt") return is_less(left, right);
  if (direction == "gt") return is_less(right, left);
  if (direction == "ge") return sum(one, is_less(left, right), -1);
  if (direction == "le") return sum(one, is_less(right, left), -1);
  // Made anew, so that bound variables are their own.
  const SumForm right_again = element(b, index), left_again = element(a, index);
  const SumForm differ = sum(is_less(left, right), is_less(right_again, left_again), 1);
  return direction == "ne" ? differ : sum(one, differ, -1);
}

SumForm FormMaker::comparison_of_places(std::string_view direction, const IndexForm& difference) {
  const IndexForm opposite = difference * -1;
  std::vector<IndexForm> sides;
  if (direction == "lt") sides = {opposite - IndexForm(1)};
  if (direction == "gt") sides = {difference - IndexForm(1)};
  if (direction == "le") sides = {opposite};
  if (direction == "ge") sides = {difference};
  if (direction == "eq" || direction == "ne") sides = {difference, opposite};
  SumTerm term;
  bool may_hold = true;
  for (const IndexForm& side : sides) may_hold = may_hold && holds(side, term.guards);
  SumForm form;
  if (may_hold) form.push_back(std::move(term));
  return direction == "ne" ? sum({SumTerm{}}, form, -1) : form;
}

// A factor that all terms have in common, and that is positive, does not count.
SumForm FormMaker::is_negative(const SumForm& a) {
  SumForm form = combined(a);
  int64_t common = 0;
  for (const SumTerm& term : form)
    common = std::gcd(common, term.factor.is_static() ? term.factor.value() : 1);
  for (SumTerm& term : form)
    if (common > 1) term.factor = term.factor.value() / common;
  return function(std::string(kNegative), {std::move(form)}, true);
}

// With one term for those that differ by their factors alone.
SumForm FormMaker::combined(const SumForm& form) {
  std::map<std::string, SumTerm> terms;
  const std::vector<std::string> names = plain_names(variables_);
  for (SumTerm term : form) {
    const Dim factor = std::exchange(term.factor, 1);
    const std::optional<std::string> text = canonical_text({term}, variables_, names);
    if (!text) {
      fail("the factors are too large");
      return {};
    }
    term.factor = 0;
    SumTerm& same = terms.try_emplace(*text, std::move(term)).first->second;
    same.factor += factor;
    check_size(same.factor);
  }
  SumForm all;
  for (auto& [text, term] : terms)
    if (!term.factor.is(0)) all.push_back(std::move(term));
  return all;
}

// The whole number by which b is a multiple of a.
std::optional<int64_t> FormMaker::multiple_of(const SumForm& a, const SumForm& b) {
  const std::vector<std::string> names = plain_names(variables_);
  for (const SumTerm& term : b) {
    if (a.empty() || !a[0].factor.is_static() || !term.factor.is_static()) return std::nullopt;
    if (term.factor.value() % a[0].factor.value() != 0) continue;
    const int64_t times = term.factor.value() / a[0].factor.value();
    if (canonical_text(scaled(a, times), variables_, names) == canonical_text(b, variables_, names))
      return times;
  }
  return std::nullopt;
}

SumForm FormMaker::selected(NodeId n, const std::vector<IndexForm>& index) {
  const auto operands = graph_.operands(n);
  const SumForm condition = element(operands[0], index);
  const SumForm yes = element(operands[1], index), no = element(operands[2], index);
  if (!counts()) return {};
  // no + k*d where d < 0 is no - k*max(-d, 0).
  if (const std::optional<Sign> sign = sign_of(condition)) {
    const SumForm& other = sign->is_not ? yes : no;
    const SumForm more = combined(sum(sign->is_not ? no : yes, other, -1));
    if (const std::optional<int64_t> times = multiple_of(sign->of, more))
      return sum(other, largest_of({{.value = scaled(sign->of, -1)}, {.value = {}}}), -*times);
  }
  return sum(sum(no, product(condition, yes), 1), product(condition, no), -1);
}

// and, or, xor and not of bools.
std::optional<SumForm> FormMaker::logical(Opcode opcode, std::span<const SumForm> x) {
  const SumForm one = {SumTerm{}};
  if (opcode == Opcode::not_) return sum(one, x[0], -1);
  if (opcode == Opcode::and_) return product(x[0], x[1]);
  if (opcode == Opcode::or_) return sum(sum(x[0], x[1], 1), product(x[0], x[1]), -1);
  if (opcode == Opcode::xor_) return sum(sum(x[0], x[1], 1), product(x[0], x[1]), -2);
  return std::nullopt;
}

// One of equal bools counts; a number and its opposite are not both negative.
void FormMaker::drop_equal_bools(SumTerm& term) {
  const auto is_bool = [](const auto& factor) { return factor->is_bool; };
  if (std::ranges::count_if(term.factors, is_bool) < 2) return;
  const std::vector<std::string> names = plain_names(variables_);
  std::set<std::string> texts, opposites;
  std::erase_if(term.factors, [&](const auto& factor) {
    if (!factor->is_bool) return false;
    const std::optional<std::string> text = canonical_text(single(factor), variables_, names);
    if (!text) return false;
    if (const std::optional<Sign> sign = sign_of(single(factor)))
      if (const auto opposite =
              canonical_text(is_negative(scaled(sign->of, -1)), variables_, names))
        opposites.insert(*opposite);
    return !texts.insert(*text).second;
  });
  const auto is_there = [&](const std::string& text) { return texts.contains(text); };
  if (std::ranges::any_of(opposites, is_there)) term.factor = 0;
}

// A bound variable whose guards say what it is, within its range, is put in.
void FormMaker::put_equal(SumTerm& term) {
  for (size_t g = 0; g < term.guards.size(); ++g) {
    const IndexForm guard = term.guards[g];
    const auto is_opposite = [&](const IndexForm& other) { return is_zero(guard + other); };
    if (std::ranges::none_of(term.guards, is_opposite)) continue;
    for (const int v : term.bound) {
      const std::optional<IndexForm> place = solved(guard, v);
      if (!place) continue;
      const auto low = place->lowest(variables_), high = place->highest(variables_);
      if (!low || !high || !provably_le(0, *low) || !provably_lt(*high, variables_.extent(v)))
        continue;
      SumForm changed = with({term}, v, *place, variables_);
      term = std::move(changed[0]);
      std::erase_if(term.guards, is_zero);
      std::erase(term.bound, v);
      g = SIZE_MAX;  // from the first one again
      break;
    }
  }
}

}  // namespace hone
