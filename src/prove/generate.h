#pragma once

#include <string>
#include <vector>

#include "prove/generate_state.h"
#include "prove/term_table.h"
#include "prove/verify.h"

// Finds rules. Two terms with one fingerprint are a candidate, which is pruned or verified.

namespace hone {

struct GenerateOptions {
  TermTable::Limits limits;
  uint64_t seed = 1;
  int threads = 1;
  size_t max_candidates = size_t{20} << 20;  // that are different; about 100 bytes each
  // Begin anew with each symbol of the family at 1, and with each two equal: what is true there
  // alone gets a guard.
  bool guards = false;
  int guard_ops = 0;  // of terms at these sizes, at most; 0: as many as elsewhere
  // Names of rules begin so.
  std::string prefix;
  Progress* progress = nullptr;
  const CancelToken* cancel = nullptr;
  GenerateState* state = nullptr;  // what is known before, and gets what is verified
};

struct GenerateCounts {
  uint64_t made = 0, distinct = 0;  // terms
  uint64_t candidates = 0;          // pairs with one fingerprint
  uint64_t renamed = 0;             // of these: another one with other names
  uint64_t common = 0;              // true of any value in the place of a part that both sides have
  uint64_t implied = 0;             // what smaller rules say
  uint64_t unbound = 0;             // the left side does not tell all of the right one
  uint64_t rejected = 0;            // refuted, or not testable
  uint64_t accepted = 0;
  uint64_t proved = 0;   // of the accepted ones: for all sizes
  uint64_t guarded = 0;  // of the accepted ones: false in general, with a guard that was found
  uint64_t spilled = 0;  // bytes that memory did not hold
};

// A candidate that is not true, and where.
struct Rejected {
  Rule rule;
  std::string why;
};

struct Generated {
  std::vector<Rule> rules;
  std::vector<Rejected> rejected;  // the first 1000
  std::string proofs;              // certificates of the rules that are proved (checker/checker.h)
  GenerateCounts counts;
};

// All terms of the family, and the rules that make equal ones equal. The same options give the same
// rules.
Result<Generated> generate_rules(const TermOps& ops, const GenerateOptions& options);

}  // namespace hone
