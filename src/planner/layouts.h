#pragma once

#include <vector>

#include "cost/plan_cost.h"
#include "planner/heuristics.h"

namespace hone {

// A copy of weights that these nodes should read.
struct LayoutCopy {
  ValueId of;
  std::vector<NodeId> readers;
  Layout layout;
};

// Images between convs may have their channels in blocks of so many.
int64_t image_block(const Target& target);

// Sets the layouts of values that may have any and that nobody decided, by price:
//   * weights of dot and conv so that lanes find neighbours side by side, without packing at run
//     time;
//   * what convs, and pools and pointwise kernels next to them, pass to each other: with channels
//     in blocks of a vector, or last. All of a region lie alike, or nothing changes; what reads a
//     region from outside is part of its price. Of the concats that are views, those that are
//     `joined` are views no more where their operands do not lie side by side in the layout.
// Gives copies of weights whose readers want them in several layouts, for kernels that are `open`,
// by step. Errors are those of the chooser.
Result<std::vector<LayoutCopy>> choose_layouts(const Plan& plan, const std::vector<bool>& open,
                                               std::span<const NodeId> joined, FrameEditor& frame,
                                               PlanCost& cost, const Heuristics& on);

}  // namespace hone
