#pragma once

#include <optional>
#include <string>
#include <vector>

#include "prove/restrict.h"
#include "prove/verify.h"

// Partial equivalence: a rule whose right side is wrong in a few boxes of its results is made true
// by computing those as the left side does.

namespace hone {

struct Correction {
  // The rule with corrections in its right side, proved for all sizes. Nothing: there is none.
  std::optional<Rule> rule;
  RuleVerdict verdict;  // of that rule
  // A counterexample to the rule as it was. Nothing: it is true, and stays as it is.
  std::optional<Counterexample> counterexample;
  std::vector<std::string> boxes;  // what is computed as on the left side: "[0:B, 0:1]"
  std::string why;                 // there is none
};

// Places where the sides differ at tested sizes are sorted by their distance from the ends of each
// dim. They are within four of the first or the last ones, or between. If slabs along one dim have
// all of them, those are corrected; else the boxes that they make along several dims. The right
// side gets slices of what was right, and concats with what the left side computes of each box from
// a part of its inputs. The whole is verified as any rule.
Result<Correction> infer_correction(const Rule& rule, const VerifyOptions& options = {});

}  // namespace hone
