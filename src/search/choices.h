#pragma once

#include "kernel/schedule_space.h"
#include "plan/plan_space.h"

namespace hone {

// Counts the edits that are open in a plan: what searches have to choose from.

struct AlgorithmChoices {
  Algorithm algorithm = {};
  double schedules = 0;  // ScheduleSpace::size()
  std::vector<ScheduleSpace::OpenDecision> decisions;
};

// The choices of all steps with the same kernel.
struct KernelChoices {
  std::string label;  // of the first of them: "@k0", "@k1 in loop.body"
  std::string name;   // kernel_name()
  uint64_t hash = 0;
  size_t steps = 0;
  std::optional<Algorithm> planned = {};  // empty: the plan leaves it open
  std::vector<AlgorithmChoices> algorithms = {};
};

struct EditChoices {
  EditKind kind = {};
  size_t open = 0;
  double values = 0;  // of all that are open; infinity: nobody counts them
  std::vector<std::string> examples = {};
};

struct PlanChoices {
  size_t steps = 0;
  std::vector<KernelChoices> kernels;  // in the order of steps, those of regions last
  std::vector<EditChoices> edits;      // of every kind
};

PlanChoices choices_of(const PlanEditor& plan);

}  // namespace hone
