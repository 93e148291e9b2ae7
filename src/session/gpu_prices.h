#pragma once

#include <memory>
#include <string>

#include "cost/cost.h"
#include "target/target.h"

namespace hone {

// The price of a GPU's kernels that 'hone train cost' has written to the file. Errors: the file is
// damaged, or of another target.
Result<std::shared_ptr<const Cost>> learned_gpu_cost(const std::string& file, const Target& target);

}  // namespace hone
