#pragma once

#include <span>
#include <string>

#include "rewrite/passes.h"

namespace hone {

// A row per pass, with its time and how many nodes it left, and their sum.
std::string pass_times(std::span<const PassReport> reports);

}  // namespace hone
