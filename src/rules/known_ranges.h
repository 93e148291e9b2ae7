#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/magnitude.h"
#include "rules/match.h"

// True if what a rule needs to know of magnitudes (Rule::within) is known where it matches.

namespace hone {

// "1e+-10"
std::string range_text(int32_t decades);

// The assumed ranges of a graph's inputs, and the known ones of constants: each is read once.
class Ranges {
 public:
  // Elements of inputs are 0 or between 10^-decades and 10^decades; 0: nothing is assumed.
  explicit Ranges(int32_t decades = 0) : decades_(decades) {}
  // Another assumption, with the same constants.
  Ranges with(int32_t decades) const {
    Ranges other = *this;
    other.decades_ = decades;
    return other;
  }

  int32_t decades() const { return decades_; }
  Magnitude constant(const Tensor& tensor) const;

 private:
  using Constants = std::unordered_map<uint64_t, Magnitude>;  // by content

  int32_t decades_;
  std::shared_ptr<Constants> constants_ = std::make_shared<Constants>();
};

// The ranges of the values of one graph or e-graph, which outlives it and stays as it is. Nothing
// is computed before it is asked for.
class KnownRanges {
 public:
  KnownRanges(const Graph& graph, const Ranges& ranges) : graph_(&graph), ranges_(ranges) {}
  // A class has the magnitudes of its first node, whichever is chosen in the end: where a rule is
  // applied to a graph, that is judged once more.
  KnownRanges(const EGraph& egraph, const Ranges& ranges) : egraph_(&egraph), ranges_(ranges) {}

  // True if the rule holds of floats at the match; `match.range` says what had to be assumed.
  bool suffice(const Rule& rule, RuleMatch& match);

 private:
  bool holds(const Rule& rule, const RuleMatch& match, std::vector<Magnitude>& known,
             int32_t decades);

  const Graph* graph_ = nullptr;
  const EGraph* egraph_ = nullptr;
  const Ranges& ranges_;
  std::vector<Magnitude> known_, assumed_;  // by value
};

}  // namespace hone
