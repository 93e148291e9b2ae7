#pragma once

#include <string>

#include "learn/kernel_data.h"
#include "tune/build_data_set.h"

namespace hone {

// The result of a build, in a few lines.
std::string built_text(const BuiltSet& built);

// The kernels of a data set, by kind of kernel and by program, and how noisy it is.
std::string kernel_data_text(const KernelData& data);
std::string kernel_data_json(const KernelData& data);

// How many programs, kernels and times each part of a split has.
std::string split_text(const KernelData& data, const ProgramSplit& split);

}  // namespace hone
