#pragma once

#include <string>
#include <vector>

#include "rules/match.h"

// Rewrites of a graph, one after another, as plain data: what a search has found, a plan keeps.

namespace hone {

// The largest range that may be assumed of inputs: hardly more than f32 has.
inline constexpr int32_t kMaxAssumedDecades = 38;

// A rule where the results of its left side are these values.
struct Rewrite {
  std::string rule;
  std::vector<std::string> results;  // names of values, in the order of the left side's outputs
  int32_t match = 1;  // which, of several with these results: operands may be swapped
  int32_t range = 0;  // it is for inputs of magnitudes of 1e±range; 0: of any
  bool operator==(const Rewrite&) const = default;
};

// The graph that rules are about: of primitive ops, constants folded, nothing twice, every value
// with a name.
Result<Graph> rewritable(const Graph& graph);

// apply(), then nothing is twice, and what is new has a name. Values that stay keep theirs, so that
// the next rewrite finds them.
Result<Graph> rewrite(const Rule& rule, const Graph& graph, const RuleMatch& match);
// The rewrite by which find_rewrite() finds the match.
Rewrite rewrite_of(const RuleMatcher& rule, const Graph& graph, const RuleMatch& match);
// Errors: the rule does not match there.
Result<RuleMatch> find_rewrite(const RuleMatcher& rule, const Graph& graph, const Rewrite& wanted);

// All of them, from a rewritable graph on. Errors name the rewrite, as "rewrite 3", and say that
// there is no such rule, that it does not match, or that it might overflow or vanish there.
Result<Graph> replay(Graph graph, std::span<const Rewrite> rewrites, std::span<const Rule> rules);

// Makes a rewritten graph ready to compile: weights computed, outputs called as those of the
// graph that it was made of.
Result<Graph> finish_rewrites(const Graph& rewritten, const Graph& given);

}  // namespace hone
