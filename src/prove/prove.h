#pragma once

#include <string>

#include "rules/rule.h"

namespace hone {

// Proves a rule for all sizes that it admits. The results are divided into boxes. On each box the
// elements of both sides have one canonical form (sum_form.h). If the rule has a guard, the values
// that guard.h puts in the place of symbols count.
struct Proof {
  bool proved = false;
  size_t boxes = 0;
  std::string stopped = "";  // why there is none
  // The text that checker/checker.h checks: "certificate @name hash" and the steps of the proof.
  std::string certificate = "";
};
Proof prove(const Rule& rule);

}  // namespace hone
