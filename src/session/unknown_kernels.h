#pragma once

#include <string>

#include "compile/compilation.h"

namespace hone {

// Of how many kernels of the plan a learned price has no say, because training has not seen their
// like: a line for people. Empty: there is none, or no learned price.
Result<std::string> unknown_kernels_text(Compilation& compilation);

}  // namespace hone
