#pragma once

#include <span>
#include <string>

#include "lab/data/layout_set.h"
#include "learn/kernel_data.h"

namespace hone {

// The layouts of a data set, by file; "" if it has none.
std::string layout_counts_text(std::span<const LayoutCounts> layouts);
// kernel_data_json() with the layouts.
std::string data_set_json(const KernelData& data, std::span<const LayoutCounts> layouts);

// How many programs, graphs and assignments each part of a split has.
std::string split_text(std::span<const LayoutCounts> layouts, const ProgramSplit& split);

}  // namespace hone
