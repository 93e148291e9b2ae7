#pragma once

#include <memory>
#include <optional>

#include "cli/arguments.h"
#include "cost/cost.h"
#include "runtime/cuda/device.h"

// GPUs named on the command line.

namespace hone::cli {

class Console;

// The number of the GPU that --device or --devices names: "cuda" or "cuda:1"; none: they name no
// GPU. Errors: several devices of which one is a GPU, a command that does not run on one, and
// options that are of CPUs.
Result<std::optional<int>> given_gpu(const Arguments& arguments);
// An error if a GPU is among several devices, and the command, or an option, is for CPUs or for one
// device.
Status check_gpus_among(std::span<const std::string> devices, const Arguments& arguments);

// The library of this machine's driver, or the one that HONE_CUDA_LIBRARY names.
std::string cuda_library();
Result<std::shared_ptr<const CudaDevice>> open_gpu(int number);

// The price that --cost names for this GPU, else the one that was learned for it, if there is one.
// Null: the analytic price. Options that say how CPUs are priced are errors.
Result<std::shared_ptr<const Cost>> cost_of_gpu(const Arguments& arguments, const Target& target,
                                                Console& console);
// The price that was learned for this GPU. Null: there is none, or it cannot be used, as a note
// says.
std::shared_ptr<const Cost> kept_cost_of_gpu(const Target& target, Console& console);

}  // namespace hone::cli
