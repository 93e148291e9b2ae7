#include <algorithm>
#include <map>

#include "prove/sum_form.h"

// The canonical text of forms.

namespace hone {
namespace {

constexpr size_t kMaxPermuted = 5;  // variables of one term; more keep the order they came in
// Orders that are tried in one form, those inside of each other multiplied; then all keep theirs.
constexpr size_t kMaxOrders = 20000;

class Canonical {
 public:
  Canonical(const LoopVariables& variables, std::vector<std::string> names)
      : variables_(variables), names_(std::move(names)) {
    names_.resize(variables.size());
    for (size_t v = 0; v < names_.size(); ++v)
      if (names_[v].empty()) names_[v] = fmt::format("v{}", v);
  }

  std::string text(const SumForm& form, size_t depth) {
    std::map<std::string, Dim> terms;
    for (const SumTerm& term : form) {
      Dim& factor = terms[text(term, depth)];
      factor += term.factor;
      is_exact_ = is_exact_ && is_exact(factor);
    }
    std::string all;
    for (const auto& [key, factor] : terms)
      if (!factor.is(0))
        all += fmt::format("{}({})*{}", all.empty() ? "" : " + ", factor.to_string(), key);
    return all.empty() ? "0" : all;
  }

  bool is_exact_so_far() const { return is_exact_; }

 private:
  // The least text over all orders of the bound variables. `body` writes what they are bound in.
  template <class Body>
  std::string bound_text(std::vector<int> bound, size_t depth, const Body& body) {
    const auto extent = [&](int v) { return variables_.extent(v).to_string(); };
    std::ranges::sort(bound, {}, [&](int v) { return std::pair(extent(v), v); });
    std::string head;
    for (size_t i = 0; i < bound.size(); ++i)
      head += fmt::format("b{}<{} ", depth + i, extent(bound[i]));
    std::vector<size_t> order(bound.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::string least;
    bool is_first = true;
    do {
      bool fits = true;  // variables of one extent change places among themselves
      for (size_t i = 0; i < order.size(); ++i)
        fits = fits && extent(bound[order[i]]) == extent(bound[i]);
      if (!fits) continue;
      for (size_t i = 0; i < order.size(); ++i)
        names_[static_cast<size_t>(bound[order[i]])] = fmt::format("b{}", depth + i);
      std::string text = body(depth + bound.size());
      if (is_first || text < least) least = std::move(text);
      is_first = false;
    } while (order.size() <= kMaxPermuted && ++orders_ < kMaxOrders &&
             std::ranges::next_permutation(order).found);
    return head.empty() ? least : fmt::format("sum {}: {}", head, least);
  }

  std::string guards(const std::vector<IndexForm>& list) {
    std::vector<std::string> texts;
    for (const IndexForm& guard : list) texts.push_back(guard.text(names_));
    std::ranges::sort(texts);
    texts.erase(std::ranges::unique(texts).begin(), texts.end());
    std::string all;
    for (const std::string& text : texts) all += fmt::format("[{} >= 0]", text);
    return all;
  }

  std::string text(const SumTerm& term, size_t depth) {
    return bound_text(term.bound, depth, [&](size_t inner) {
      std::vector<std::string> factors;
      for (const auto& factor : term.factors) factors.push_back(text(*factor, inner));
      std::ranges::sort(factors);
      return guards(term.guards) + fmt::format("{}", fmt::join(factors, "*"));
    });
  }

  std::string text(const SumFactor& factor, size_t depth) {
    std::vector<std::string> parts;
    if (factor.kind == SumFactor::element) {
      for (const IndexForm& form : factor.index) parts.push_back(form.text(names_));
      return fmt::format("{}[{}]", factor.key, fmt::join(parts, ", "));
    }
    if (factor.kind == SumFactor::function) {
      for (const SumForm& form : factor.operands) parts.push_back(text(form, depth));
      return fmt::format("{}({})", factor.key, fmt::join(parts, ", "));
    }
    for (const SetMember& member : factor.set)
      parts.push_back(bound_text(member.bound, depth, [&](size_t inner) {
        return guards(member.guards) + text(member.value, inner);
      }));
    std::ranges::sort(parts);
    parts.erase(std::ranges::unique(parts).begin(), parts.end());
    return fmt::format("largest{{{}}}", fmt::join(parts, ", "));
  }

  const LoopVariables& variables_;
  std::vector<std::string> names_;
  size_t orders_ = 0;
  bool is_exact_ = true;
};

}  // namespace

std::optional<std::string> canonical_text(const SumForm& form, const LoopVariables& variables,
                                          std::vector<std::string> names) {
  Canonical canonical(variables, std::move(names));
  std::string text = canonical.text(form, 0);
  if (!canonical.is_exact_so_far()) return std::nullopt;
  return text;
}

}  // namespace hone
