#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "rules/egraph.h"
#include "rules/known_ranges.h"

namespace hone {

struct SaturateLimits {
  size_t nodes = 20'000;
  size_t bytes = size_t{256} << 20;
  size_t rounds = 6;
  size_t matches = 400;         // of a rule in a round; rules with more are taken as far as that
  size_t rounds_of_merges = 2;  // rules of several results: each round squares what they give
  double seconds = 20;
};

enum class SaturateEnd : uint8_t { saturated, rounds, nodes, bytes, seconds, cancelled };
std::string_view name(SaturateEnd end);

struct Saturated {
  SaturateEnd end = SaturateEnd::saturated;
  size_t rounds = 0;
  size_t matches = 0;  // that were applied
  // Indexed by application, which is the origin of its nodes.
  std::vector<uint32_t> rule_of;
  // For each value of the left side: the class then; it may be another's by now.
  std::vector<std::vector<ValueId>> values_of;
};

// Applies all rules at all places, round by round, until nothing new comes or a limit is hit. The
// statements of the e-graph are then true of real numbers in any case. With `ranges` they are
// applied where they hold of floats, too, as far as an e-graph can tell.
Result<Saturated> saturate(EGraph& egraph, std::span<const RuleMatcher> rules,
                           const SaturateLimits& limits, const CancelToken* cancel = nullptr,
                           const Ranges* ranges = nullptr);

}  // namespace hone
