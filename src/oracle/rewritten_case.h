#pragma once

#include "base/rng.h"
#include "oracle/differential.h"
#include "rules/known_ranges.h"
#include "rules/rewrites.h"

// Random cases of rewriting: graphs made of what rules match, on numbers of all magnitudes.

namespace hone {

// Numbers of an element type. Each tensor has its own exponents, near each other or over the whole
// range. The range is 10^-decades to 10^decades; if `decades` is 0, it is all that the type has.
// Some are 0.
class RandomMagnitudes {
 public:
  explicit RandomMagnitudes(int32_t decades) : decades_(decades) {}
  Tensor tensor(Type type, Rng& rng) const;
  std::vector<Tensor> inputs(const Graph& graph, Rng& rng) const;

 private:
  int32_t decades_;
};

// A match of a rule in a graph, at which it holds of floats as far as is known; nothing: there is
// none. Each rule has few places, so that all rules come up.
struct RandomRewrite {
  const RuleMatcher* matcher;
  RuleMatch match;
};
std::optional<RandomRewrite> random_rewrite(const Graph& graph,
                                            std::span<const RuleMatcher> matchers,
                                            const Ranges& ranges, Rng& rng);

// Left sides of the rules of hone over each other's results and inputs, with a few ops between
// them. The plan has rewrites, some of which assume a range that the inputs keep to; half of the
// plans have all other decisions, too. The judge is that of continuous ops.
DifferentialCase random_rewritten_case(uint64_t seed, const Target& host, Isa highest);

}  // namespace hone
