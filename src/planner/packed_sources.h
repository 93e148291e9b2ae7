#pragma once

#include <optional>
#include <vector>

#include "cost/plan_cost.h"
#include "plan/edit.h"

namespace hone {

// The dim `last` behind all others, or only blocks of it. Others stay in order.
Layout with_last(std::vector<int> others, int last, int64_t block);

// The same with words of `each` numbers along another dim: they lie as single numbers would, and
// their numbers are the innermost dim. Nothing: `each` does not divide `along`.
std::optional<Layout> in_words(Type type, int64_t each, int along, std::vector<int> others,
                               int last, int64_t block);

// A product may compute its second operand from constants, as weights of a few bits with a scale
// for each group. These constants may lie as the product takes them: as they are, or with the
// product's columns last, in panels of 4 or 2 vectors. Then lanes find neighbours side by side, and
// the kernel reads a panel from one end to the other: whole rows of columns would be a page each.
// If it multiplies words of bytes, those of the constants lie side by side as well. The product may
// be one of several stages.
// Nothing: the kernel is another product, or the constants have other readers, or are blocks of
// several fields. `block`: points of a vector.
std::vector<PlanCost::Layouts> layouts_of_sources(const FrameEditor& frame, uint32_t step,
                                                  int64_t block);

}  // namespace hone
