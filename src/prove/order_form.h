#pragma once

#include "prove/sum_form.h"

namespace hone {

// True if two forms are equal by the laws of sums and maxima. Examples are x + max(y, z) and max(x
// + y, x + z), or max(x, y) + min(x, y) and x + y. False: not known.
bool is_equal_by_order(const SumForm& left, const SumForm& right, const LoopVariables& variables,
                       const std::vector<std::string>& names);

}  // namespace hone
