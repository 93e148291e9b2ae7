#pragma once

#include <functional>

#include "target/system.h"

namespace hone {

enum class SystemPart : uint8_t { whole, target, devices, level, axis, links };

// check(), for who knows where each part stands: `place` gets the part, its position among those of
// its sort, and what is wrong with it.
using PlaceFault = std::function<Error(SystemPart part, size_t index, Error error)>;
Status check_system(const System& system, const PlaceFault& place);

}  // namespace hone
