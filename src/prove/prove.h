#pragma once

#include <string>

#include "rules/rule.h"

namespace hone {

// A proof for all sizes that the rule admits: the results are divided into boxes, on each of which
// the elements of both sides have one canonical form (sum_form.h). From a guard, the values count
// that guard.h puts in the place of symbols.
struct Proof {
  bool proved = false;
  size_t boxes = 0;
  std::string stopped = "";  // why there is none
  // The text that checker/checker.h checks: "certificate @name hash" and the steps of the proof.
  std::string certificate = "";
};
Proof prove(const Rule& rule);

}  // namespace hone
