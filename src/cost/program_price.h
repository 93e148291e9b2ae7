#pragma once

#include <vector>

#include "cost/cost.h"
#include "cost/task_price.h"

namespace hone {

// The time of one run of a program.
struct ProgramPrice : TaskSeconds {
  std::vector<double> kernel;  // by KernelId: one launch, in seconds
};

// The sum over the program's tasks (program/tasks.h). Symbols without a value count as their
// largest. An error: nobody knows what a kernel was built from, as in a program that was read from
// text.
Result<ProgramPrice> price(const Program& program, const Cost& cost, const Bindings& sizes = {});

}  // namespace hone
