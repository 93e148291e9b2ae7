#pragma once

#include <vector>

#include "target/target.h"

namespace hone {

// Code for all of these has some for every machine of level v2 or higher, the best first: the
// target, the target without extensions, and its levels below.
std::vector<Target> levels_of(const Target& target);

}  // namespace hone
