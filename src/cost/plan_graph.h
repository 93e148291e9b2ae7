#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cost/cost.h"
#include "kernel/kernel_kind.h"
#include "program/program.h"
#include "target/target.h"

// A plan as models of whole plans see it: a graph of tasks, and of the memory that they use. The
// sum of prices of kernels does not know which task ran before, and what it has left in caches.

namespace hone {

// The rows of plan_features.def, then kinds of kernels.
struct PlanFeatures {
#define HONE_PLAN_FEATURE(member, doc) float member = 0;
#include "cost/plan_features.def"
  std::array<float, std::size(kKernelKinds)> kind = {};
  bool operator==(const PlanFeatures&) const = default;
};
inline constexpr size_t kPlanFeatures = sizeof(PlanFeatures) / sizeof(float);
using PlanRow = std::array<float, kPlanFeatures>;
static_assert(sizeof(PlanRow) == sizeof(PlanFeatures));

// A hash of the rows: models and data of another version do not know these features.
std::string plan_feature_version();

struct PlanEdge {
  uint32_t from = 0, to = 0;  // nodes
  bool operator==(const PlanEdge&) const = default;
};

struct PlanGraph {
  // Tasks and uses. A task comes after what it reads and before what it writes.
  std::vector<PlanRow> nodes;
  std::vector<float> share;  // by node: of the price; of a use 0
  // From the task that wrote memory last to a use, from a use that reads to its task, and from a
  // task to a use that writes.
  std::vector<PlanEdge> edges;
  double seconds = 0;  // of a run, by the sum of prices
  bool operator==(const PlanGraph&) const = default;
};

// Programs with more nodes are not described.
inline constexpr size_t kMostPlanNodes = 4096;

// The graph of a program whose sizes are numbers, priced by a Cost. Distances are those of a run
// that comes after another one. Errors: sizes are open, it is too large, or nobody knows what its
// kernels were built from.
Result<PlanGraph> plan_graph(const Program& program, const Target& target, const Cost& cost);

}  // namespace hone
