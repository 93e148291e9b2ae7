#pragma once

#include <vector>

#include "cost/plan_cost.h"
#include "plan/edit.h"

namespace hone {

// The dim `last` behind all others, or only blocks of it. Others stay in order.
Layout with_last(std::vector<int> others, int last, int64_t block);

// A product may compute its second operand from constants, as weights of a few bits with a scale
// for each group. These constants may lie as the product takes them: as they are, or with the
// product's columns last, in panels of 4 or 2 vectors. Then lanes find neighbours side by side, and
// the kernel reads a panel from one end to the other: whole rows of columns would be a page each.
// Nothing: the kernel is another product, or the constants have other readers, or are blocks of
// several fields. `block`: points of a vector.
std::vector<PlanCost::Layouts> layouts_of_sources(const FrameEditor& frame, uint32_t step,
                                                  int64_t block);

}  // namespace hone
