#pragma once

#include <string>

#include "compile/compilation.h"

namespace hone {

// The number of kernels of the plan that a learned price does not know from training, as a line for
// people. Empty: there is none, or no learned price.
Result<std::string> unknown_kernels_text(Compilation& compilation);

}  // namespace hone
