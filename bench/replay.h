#pragma once

#include <cstdint>
#include <string_view>

#include "search/system_plan.h"
#include "target/system.h"

// Runs of a program on several devices over emulated links. Each device is a thread, and bytes
// really move; kernels are replayed: the thread sleeps for as long as the price says. So more
// devices than cores compute at once, too.

namespace hone::bench {

// The median time of some runs, from when all devices begin to when the last one ends. The system
// has targets of one sort. Kernels and links run `slower` times as slowly as said, and the time is
// divided by that: what the threads themselves cost on few cores, waking up, adding and copying,
// weighs less.
Result<double> replayed_seconds(const SystemPlans& plans, const System& system, const Cost& cost,
                                int runs, double slower = 1);

// The same by real code, on as many devices as there are cores or fewer.
Result<double> computed_seconds(const Graph& given, const SystemPlans& plans, const System& system,
                                int runs);

// The same in processes that share memory, one for each device, over the emulated links. Each has
// code of its own, and as many threads as its target has cores.
Result<double> processes_seconds(const Graph& given, const SystemPlans& plans, const System& system,
                                 int runs);

}  // namespace hone::bench
