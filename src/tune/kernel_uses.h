#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cost/cost.h"
#include "program/program.h"

namespace hone {

// A kernel of a program, and how much it counts.
struct KernelUse {
  uint64_t hash = 0;
  std::shared_ptr<const KernelFacts> facts;
  Schedule schedule;
  std::string name;
  double weight = 0;              // seconds of all its launches in a run, by price
  std::vector<bool> is_constant;  // by input
};

// Different ones, the dearest first, but for those without a schedule to choose.
std::vector<KernelUse> kernel_uses(const Program& program, const Cost& cost);

}  // namespace hone
