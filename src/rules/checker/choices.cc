#include <algorithm>
#include <numeric>
#include <set>

#include "rules/checker/forms.h"

// Comparisons and what they choose, spelled out in numbers: a bool is 1 or 0.

namespace hone::checker {
namespace {

Form one() { return {Term()}; }

std::map<uint32_t, std::string> names_of(const Atoms& atoms) {
  std::map<uint32_t, std::string> names;
  for (uint32_t i = 0; i < atoms.size(); ++i) names[i] = fmt::format("v{}", i);
  return names;
}

// The value of the form at every place, if it is made of numbers and places alone.
std::optional<Whole> known(const Form& form) {
  Whole sum;
  for (const Term& term : form) {
    if (!term.bound.empty() || !term.guards.empty()) return std::nullopt;
    Whole value = term.factor;
    if (term.factors.size() > 1) return std::nullopt;
    for (const auto& factor : term.factors) {
      if (factor->kind != Factor::element || factor->key != "place") return std::nullopt;
      value = value * factor->index[0];
    }
    sum = sum + value;
  }
  return sum;
}

// The form that is negative where the factor is 1.
const Form* negative_of(const Factor& factor) {
  const bool is_sign = factor.kind == Factor::function && factor.key == "negative";
  return is_sign ? &factor.operands[0] : nullptr;
}

Form put(const Form& form, uint32_t loop, const Whole& value, Atoms& atoms) {
  const auto put_all = [&](std::vector<Whole>& list) {
    for (Whole& each : list) each = atoms.put(each, loop, value);
  };
  Form changed = form;
  for (Term& term : changed) {
    put_all(term.guards);
    for (auto& factor : term.factors) {
      Factor copy = *factor;
      put_all(copy.index);
      for (Form& operand : copy.operands) operand = put(operand, loop, value, atoms);
      for (Member& member : copy.set) {
        put_all(member.guards);
        member.value = put(member.value, loop, value, atoms);
      }
      factor = std::make_shared<const Factor>(std::move(copy));
    }
  }
  return changed;
}

}  // namespace

Result<Form> Speller::compared(NodeId n, const std::vector<Whole>& index) {
  const std::string& direction = graph_.op(n).word("direction");
  const ValueId x = graph_.operands(n)[0], y = graph_.operands(n)[1];
  const Form a = HONE_TRY(element(x, index)), b = HONE_TRY(element(y, index));
  const Form difference = HONE_TRY(collected(plus(a, times(b, -1))));
  if (const std::optional<Whole> place = known(difference))
    return compared_places(direction, *place);
  const bool are_bools = graph_.type(x).dtype() == DType::boolean;
  const auto less = [&](const Form& p, const Form& q) -> Result<Form> {
    if (!are_bools) return sign(plus(p, times(q, -1)));
    return product(opposite(p), q);
  };
  if (direction == "lt") return less(a, b);
  if (direction == "gt") return less(b, a);
  if (direction == "ge") return opposite(HONE_TRY(less(a, b)));
  if (direction == "le") return opposite(HONE_TRY(less(b, a)));
  // Spelled out once more, with loops of its own.
  const Form d = HONE_TRY(element(y, index)), c = HONE_TRY(element(x, index));
  const Form differ = plus(HONE_TRY(less(a, b)), HONE_TRY(less(d, c)));
  return direction == "ne" ? differ : opposite(differ);
}

// 1 where the form is below 0. Factors of all terms do not change that.
Result<Form> Speller::sign(const Form& form) {
  Form reduced = HONE_TRY(collected(form));
  int64_t common = 0;
  for (const Term& term : reduced) {
    const std::optional<int64_t> number = term.factor.as_number();
    common = std::gcd(common, number && *number != INT64_MIN ? *number : 1);
  }
  if (common > 1)
    for (Term& term : reduced) term.factor = *term.factor.divided_by(common);
  return single({.kind = Factor::function,
                 .key = "negative",
                 .operands = {std::move(reduced)},
                 .is_bool = true});
}

// Terms that differ by numbers alone become one, or none.
Result<Form> Speller::collected(const Form& form) {
  const std::map<uint32_t, std::string> names = names_of(atoms_);
  std::map<std::string, Term> all;
  for (const Term& term : form) {
    Term plain = term;
    plain.factor = 1;
    if (++work_ > 40000) return refused("the forms are too large");
    const std::string text = HONE_TRY(text_of({plain}, atoms_, names));
    plain.factor = 0;
    Term& sum = all.try_emplace(text, plain).first->second;
    sum.factor = sum.factor + term.factor;
  }
  Form collected;
  for (const auto& [text, term] : all)
    if (!term.factor.is(0)) collected.push_back(term);
  return collected;
}

Result<Form> Speller::compared_places(std::string_view direction, const Whole& difference) {
  const bool is_about_equal = direction == "eq" || direction == "ne";
  std::vector<Whole> bounds;
  if (direction == "ge" || is_about_equal) bounds.push_back(difference);
  if (direction == "le" || is_about_equal) bounds.push_back(Whole(0) - difference);
  if (direction == "gt") bounds.push_back(difference - 1);
  if (direction == "lt") bounds.push_back(Whole(-1) - difference);
  if (bounds.empty()) return refused("the kind of a comparison is not known");
  Term term;
  for (const Whole& bound : bounds)
    if (!HONE_TRY(may_hold(bound, term.guards))) return direction == "ne" ? one() : Form();
  return direction == "ne" ? opposite({term}) : Form{term};
}

Result<Form> Speller::chosen(NodeId n, const std::vector<Whole>& index) {
  const auto operands = graph_.operands(n);
  const Form p = HONE_TRY(element(operands[0], index));
  const Form yes = HONE_TRY(element(operands[1], index)), no =
                                                              HONE_TRY(element(operands[2], index));
  if (std::optional<Form> form = HONE_TRY(as_largest(p, yes, no))) return *std::move(form);
  const Form by_yes = HONE_TRY(product(p, yes)), by_no = HONE_TRY(product(p, no));
  return plus(no, plus(by_yes, times(by_no, -1)));
}

// Where p says that d < 0, y + k*d there and y elsewhere is y - k*max(-d, 0).
Result<std::optional<Form>> Speller::as_largest(const Form& p, const Form& yes, const Form& no) {
  const std::map<uint32_t, std::string> names = names_of(atoms_);
  for (const bool is_opposite : {false, true}) {
    const Form sign = HONE_TRY(collected(is_opposite ? opposite(p) : p));
    const bool is_one = sign.size() == 1 && sign[0].factor.is(1) && sign[0].bound.empty() &&
                        sign[0].guards.empty() && sign[0].factors.size() == 1;
    const Form* d = is_one ? negative_of(*sign[0].factors[0]) : nullptr;
    if (d == nullptr || d->empty()) continue;
    const Form& rest = is_opposite ? yes : no;
    const Form more = HONE_TRY(collected(plus(is_opposite ? no : yes, times(rest, -1))));
    const std::string wanted = HONE_TRY(text_of(more, atoms_, names));
    for (const Term& term : more) {
      const std::optional<Whole> k = term.factor.divided_by((*d)[0].factor);
      if (!k || !k->as_number()) continue;
      if (HONE_TRY(text_of(times(*d, *k), atoms_, names)) != wanted) continue;
      const Form largest =
          HONE_TRY(largest_of({Member{.value = times(*d, -1)}, Member{.value = {}}}));
      return std::optional(plus(rest, times(largest, *k * Whole(-1))));
    }
  }
  return std::optional<Form>();
}

// A bool by itself is itself; of a number and its opposite one is not negative.
Status Speller::drop_powers(Term& term) {
  if (std::ranges::count_if(term.factors, [](const auto& factor) { return factor->is_bool; }) < 2)
    return {};
  const std::map<uint32_t, std::string> names = names_of(atoms_);
  std::set<std::string> texts;
  std::vector<std::shared_ptr<const Factor>> left;
  for (const auto& factor : term.factors) {
    if (factor->is_bool) {
      const Form alone = {Term{.factors = {factor}}};
      work_ += 1;
      if (!texts.insert(HONE_TRY(text_of(alone, atoms_, names))).second) continue;
    }
    left.push_back(factor);
  }
  term.factors = std::move(left);
  for (const auto& factor : term.factors)
    if (const Form* of = negative_of(*factor)) {
      const Form other = HONE_TRY(sign(times(*of, -1)));
      if (texts.contains(HONE_TRY(text_of(other, atoms_, names)))) term.factor = 0;
    }
  return {};
}

// a >= 0 and -a >= 0 say that a is 0. If that says what a loop is, and this is one of its places,
// there is one place.
void Speller::put_known(Term& term) {
  const auto value_of = [&](uint32_t loop) -> std::optional<Whole> {
    for (const Whole& guard : term.guards) {
      const auto at = guard.terms().find({loop});
      if (at == guard.terms().end() || (at->second != 1 && at->second != -1)) continue;
      const auto is_opposite = [&](const Whole& other) { return (guard + other).is(0); };
      if (std::ranges::none_of(term.guards, is_opposite)) continue;
      const Whole rest = guard - Whole::atom(loop) * Whole(at->second);
      const Whole value = rest * Whole(-at->second);
      if (atoms_.mentions(rest, loop) || !atoms_.is_never_negative(value) ||
          !atoms_.is_never_negative(atoms_[loop].of - 1 - value))
        continue;
      return value;
    }
    return std::nullopt;
  };
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (const uint32_t loop : term.bound) {
      const std::optional<Whole> value = value_of(loop);
      if (!value) continue;
      term = put({term}, loop, *value, atoms_)[0];
      std::erase_if(term.guards, [](const Whole& guard) { return guard.is(0); });
      std::erase(term.bound, loop);
      goes_on = true;
      break;
    }
  }
}

}  // namespace hone::checker
