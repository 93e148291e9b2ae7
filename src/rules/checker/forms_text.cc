#include <algorithm>

#include "rules/checker/forms.h"

namespace hone::checker {
namespace {

constexpr size_t kMaxRenamed = 5;     // loops of one term; more keep the order they came in
constexpr size_t kMaxOrders = 50000;  // of loops, in one form

class FormsWriter {
 public:
  FormsWriter(const Atoms& atoms, std::map<uint32_t, std::string> names)
      : atoms_(atoms), names_(std::move(names)) {}

  bool is_exact = true;

  std::string text(const Form& form, size_t depth) {
    std::map<std::string, Whole> terms;
    for (const Term& term : form) {
      Whole& factor = terms[text(term, depth)];
      factor = factor + term.factor;
      is_exact = is_exact && !factor.is_bad();
    }
    std::string all = "(";
    for (const auto& [key, factor] : terms)
      if (!factor.is(0)) all += fmt::format("{{{}}}{} ", text(factor), key);
    return all + ")";
  }

 private:
  std::string text(const Whole& a) {
    is_exact = is_exact && !a.is_bad();
    std::vector<std::string> pieces;
    for (const auto& [monomial, coefficient] : a.terms()) {
      std::vector<std::string> factors;
      for (uint32_t i : monomial) factors.push_back(name(i));
      std::ranges::sort(factors);
      pieces.push_back(fmt::format("{} {}", fmt::join(factors, " "), coefficient));
    }
    std::ranges::sort(pieces);
    return fmt::format("{}", fmt::join(pieces, "+"));
  }

  std::string name(uint32_t i) {
    const Atoms::Atom& atom = atoms_[i];
    if (atom.kind == Atoms::symbol) return atom.name;
    if (atom.kind == Atoms::loop) return "$" + names_[i];
    return fmt::format("{}({};{})", atom.kind == Atoms::quotient ? "div" : "mod", text(atom.of),
                       text(atom.divisor));
  }

  std::string text(const std::vector<Whole>& guards) {
    std::vector<std::string> texts;
    for (const Whole& guard : guards) texts.push_back(text(guard));
    std::ranges::sort(texts);
    texts.erase(std::ranges::unique(texts).begin(), texts.end());
    return fmt::format("[{}]", fmt::join(texts, "]["));
  }

  // The least text that any order of the loops gives. Loops of one extent change places.
  template <class Body>
  std::string over(const std::vector<uint32_t>& loops, size_t depth, const Body& body) {
    std::vector<std::pair<std::string, uint32_t>> order;
    for (uint32_t loop : loops) order.emplace_back(text(atoms_[loop].of), loop);
    std::ranges::sort(order);
    std::string head, least;
    for (size_t i = 0; i < order.size(); ++i)
      head += fmt::format("{}<{},", depth + i, order[i].first);
    bool is_first = true, has_more = true;
    while (has_more) {
      for (size_t i = 0; i < order.size(); ++i)
        names_[order[i].second] = fmt::format("{}", depth + i);
      std::string one = body(depth + order.size());
      if (is_first || one < least) least = std::move(one);
      is_first = false;
      has_more = order.size() <= kMaxRenamed && ++orders_ < kMaxOrders && to_next(order);
    }
    return head + least;
  }

  // The next order in which the extents stay as they are.
  static bool to_next(std::vector<std::pair<std::string, uint32_t>>& order) {
    for (size_t begin = 0; begin < order.size();) {
      size_t end = begin;
      while (end < order.size() && order[end].first == order[begin].first) ++end;
      const auto from = order.begin() + static_cast<ptrdiff_t>(begin);
      if (std::next_permutation(from, order.begin() + static_cast<ptrdiff_t>(end))) return true;
      begin = end;
    }
    return false;
  }

  std::string text(const Term& term, size_t depth) {
    return over(term.bound, depth, [&](size_t inner) {
      std::vector<std::string> factors;
      for (const auto& factor : term.factors) factors.push_back(text(*factor, inner));
      std::ranges::sort(factors);
      return text(term.guards) + fmt::format("{}", fmt::join(factors, "*"));
    });
  }

  std::string text(const Factor& factor, size_t depth) {
    std::vector<std::string> parts;
    for (const Whole& at : factor.index) parts.push_back(text(at));
    for (const Form& form : factor.operands) parts.push_back(text(form, depth));
    if (factor.kind != Factor::largest)
      return fmt::format("{}<{}>", factor.key, fmt::join(parts, ","));
    for (const Member& member : factor.set)
      parts.push_back(over(member.bound, depth, [&](size_t inner) {
        return text(member.guards) + text(member.value, inner);
      }));
    std::ranges::sort(parts);
    parts.erase(std::ranges::unique(parts).begin(), parts.end());
    return fmt::format("largest<{}>", fmt::join(parts, ","));
  }

  const Atoms& atoms_;
  std::map<uint32_t, std::string> names_;
  size_t orders_ = 0;
};

}  // namespace

Result<std::string> text_of(const Form& form, const Atoms& atoms,
                            const std::map<uint32_t, std::string>& names) {
  FormsWriter writer(atoms, names);
  std::string text = writer.text(form, 0);
  if (!writer.is_exact) return check_failed("the numbers are too large");
  return text;
}

}  // namespace hone::checker
