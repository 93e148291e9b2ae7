#pragma once

#include "kernel/facts.h"

namespace hone {

using ScheduleFacts = KernelFacts;

// check_schedule() for whoever asks about many schedules of a body.
Status check_schedule(const KernelBody& body, const ScheduleFacts& facts, const Schedule& schedule,
                      const Target& target);

}  // namespace hone
