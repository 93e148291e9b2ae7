#pragma once

#include "plan/kernel_body.h"

namespace hone {

// The cheapest of a few schedules that can be carried out on the body.
Schedule choose_schedule(const KernelBody& body, const Target& target, int64_t threads);

}  // namespace hone
