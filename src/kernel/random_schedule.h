#pragma once

#include "base/rng.h"
#include "kernel/kernel_body.h"

namespace hone {

// Any schedule that check_schedule() accepts.
Schedule random_schedule(const KernelBody& body, const Target& target, Rng& rng);

}  // namespace hone
