#pragma once

#include <string>

#include "rules/rule.h"

namespace hone {

// A proof for all sizes that the types of the rule admit: the results are divided into boxes, on
// each of which the elements of both sides have one canonical form (sum_form.h).
struct Proof {
  bool proved = false;
  size_t boxes = 0;
  std::string stopped;  // why there is none
};
Proof prove(const Rule& rule);

}  // namespace hone
