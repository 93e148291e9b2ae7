#pragma once

#include <optional>
#include <string>
#include <vector>

#include "prove/verify.h"

// Guards: the conditions under which a rule is true.

namespace hone {

// Symbols that stand for those of a rule so that conditions of its guard hold by themselves. K = 1
// makes K a number, and M = N makes M and N one symbol. K = K/2*2 + 1 makes K two times a new
// symbol and 1. Conditions of other forms are left out, so that more sizes are meant and never
// fewer.
struct GuardForm {
  struct Made {
    Symbol symbol;
    Dim witness;  // what it is, by the symbols of the rule
  };
  std::vector<Made> made;
  Bindings bindings;  // of symbols of the rule, by those that were made and by the others
};
// Nothing: the guard admits no sizes.
std::optional<GuardForm> form_of_guard(const Rule& rule);
// The rule in that form, with no guard.
Result<Rule> without_guard(const Rule& rule, const GuardForm& form);

struct GuardOptions {
  VerifyOptions verify;
  int rounds = 8;  // how often a guard may turn out to be too weak
};

struct GuardSearch {
  // The rule with the weakest guard that makes it true at the tested sizes, proved for all sizes
  // that it admits. Nothing: there is none.
  std::optional<Rule> rule;
  RuleVerdict verdict;  // of that rule
  // A counterexample to the rule as it was.
  std::optional<Counterexample> counterexample;
  size_t true_sizes = 0, false_sizes = 0;  // of those that were tested
  std::string why;                         // there is none
};

// Guided by counterexamples. The rule is tested at many small sizes. The first of all conjunctions
// of at most three conditions that exclude each size at which it is false, one that admits the most
// other sizes is tried. Where it is refuted, that size is added and the search begins anew. A rule
// that is true as it is stays so.
Result<GuardSearch> infer_guard(const Rule& rule, const GuardOptions& options = {});

}  // namespace hone
