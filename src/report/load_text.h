#pragma once

#include <cstdint>
#include <string>

namespace hone {

// Says that other programs use the cores which are measured; "" if they use few, or if the load, a
// negative number, is not known.
std::string load_warning(double load, int64_t cores);

}  // namespace hone
