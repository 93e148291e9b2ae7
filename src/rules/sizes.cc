#include "rules/sizes.h"

#include <algorithm>

#include "base/checked_math.h"
#include "rewrite/expand.h"

namespace hone {
namespace {

constexpr int64_t kMaxElements = 1 << 14;  // of one value
constexpr int kTries = 400;

int64_t least_size(Symbol s) { return ceil_div(s.min(), s.multiple_of()) * s.multiple_of(); }

// A size of 0 tells little: where others are admitted they start behind it.
int64_t first_size(Symbol s) {
  const int64_t low = least_size(s);
  return low <= 0 && s.max() >= s.multiple_of() ? s.multiple_of() : low;
}

int64_t count_from(Symbol s, int64_t first) { return (s.max() - first) / s.multiple_of() + 1; }

// Small enough, and each type is one at these sizes.
bool is_small(const Graph& graph, const Bindings& sizes) {
  for (uint32_t v = 0; v < graph.value_count(); ++v) {
    const Result<Type> type = graph.type(ValueId{v}).bind(sizes);
    if (!type.ok() || !type->is_static() || type->static_elements() > kMaxElements) return false;
  }
  return true;
}

bool fits(const Rule& rule, const Bindings& sizes) {
  return rule.admits(sizes) && is_small(rule.left, sizes) && is_small(rule.right, sizes);
}

}  // namespace

std::vector<Bindings> distinct_sizes(const Rule& rule, size_t count, Rng& rng) {
  const std::vector<Symbol> symbols = rule.symbols();
  std::vector<Bindings> found;
  // The last tries take any sizes, for guards that want equal ones.
  const int tries = symbols.empty() ? 1 : kTries;
  for (int i = 0; i < tries && found.size() < count; ++i) {
    Bindings sizes;
    std::vector<int64_t> taken;
    for (Symbol s : symbols) {
      const int64_t choices =
          std::min<int64_t>(count_from(s, first_size(s)), 6 + static_cast<int64_t>(symbols.size()));
      int64_t size = 0;
      for (int again = 0; again < 8; ++again) {
        size = first_size(s) + s.multiple_of() * rng.between(0, choices - 1);
        const bool is_new = std::ranges::find(taken, size) == taken.end();
        if ((is_new && (size > 1 || choices == 1)) || i > kTries / 2) break;
      }
      taken.push_back(size);
      sizes.emplace(s.name(), size);
    }
    if (fits(rule, sizes) && std::ranges::find(found, sizes) == found.end()) found.push_back(sizes);
  }
  // Guards that few sizes fit: the largest of small ones.
  if (found.size() < count && !rule.guard.empty()) {
    std::vector<Bindings> small = small_sizes(rule, 7, 128);
    for (; found.size() < count && !small.empty(); small.pop_back())
      if (std::ranges::find(found, small.back()) == found.end()) found.push_back(small.back());
  }
  return found;
}

std::vector<Bindings> small_sizes(const Rule& rule, int64_t values, size_t limit) {
  const std::vector<Symbol> symbols = rule.symbols();
  std::vector<Bindings> found;
  std::vector<int64_t> digits(symbols.size(), 0);
  for (size_t tries = 0; tries < 64 * limit && found.size() < limit; ++tries) {
    Bindings sizes;
    for (size_t i = 0; i < symbols.size(); ++i)
      sizes.emplace(symbols[i].name(),
                    least_size(symbols[i]) + symbols[i].multiple_of() * digits[i]);
    if (fits(rule, sizes)) found.push_back(std::move(sizes));
    size_t i = 0;
    for (; i < symbols.size(); ++i) {
      if (++digits[i] < std::min(values, count_from(symbols[i], least_size(symbols[i])))) break;
      digits[i] = 0;
    }
    if (i == symbols.size()) break;
  }
  return found;
}

Result<RuleSides> at_sizes(const Rule& rule, const Bindings& sizes) {
  const auto side = [&](const Graph& graph) -> Result<Graph> {
    const Graph bound = HONE_TRY(specialize(graph, sizes));
    return expand_composites(bound, [](Opcode) { return true; });
  };
  return RuleSides{HONE_TRY(side(rule.left)), HONE_TRY(side(rule.right))};
}

std::string to_string(const Bindings& sizes) {
  std::string text;
  for (const auto& [name, size] : sizes)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, size.to_string());
  return text.empty() ? "no symbols" : text;
}

}  // namespace hone
