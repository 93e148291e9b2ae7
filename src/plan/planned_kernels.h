#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernel/kernel_body.h"
#include "plan/plan.h"

namespace hone {

// A kernel that a command of a plan launches.
struct PlannedKernel {
  KernelBody body;
  uint64_t hash = 0;
  const Schedule* schedule = nullptr;  // of the plan, which lives as long
  // Names: of the values that its nodes make, those of contractions first and then the last ones;
  // of the constants that it reads, in order.
  std::vector<std::string> computes = {};
  std::vector<std::string> weights = {};
};

// The kernels of a complete plan and of its regions, by the names of their commands. A name that
// several regions use is left out.
Result<std::map<std::string, PlannedKernel>> planned_kernels(const Graph& graph, const Plan& plan);

}  // namespace hone
