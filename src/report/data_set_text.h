#pragma once

#include <span>
#include <string>

#include "learn/kernel_data.h"
#include "learn/layout_set.h"
#include "tune/build_data_set.h"

namespace hone {

// What a build did, in a few lines.
std::string built_text(const BuiltSet& built);

// What a data set has, by kind of kernel and by program, and how noisy it is.
std::string kernel_data_text(const KernelData& data);
// Its layouts, by file; "" if it has none.
std::string layout_counts_text(std::span<const LayoutCounts> layouts);
std::string data_set_json(const KernelData& data, std::span<const LayoutCounts> layouts);

// How many programs, kernels and times each part of a split has.
std::string split_text(const KernelData& data, const ProgramSplit& split);
// The same of layouts.
std::string split_text(std::span<const LayoutCounts> layouts, const ProgramSplit& split);

}  // namespace hone
