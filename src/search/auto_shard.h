#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "assign/problem.h"
#include "base/progress.h"
#include "cost/cost.h"
#include "search/shard_prices.h"
#include "search/system_plan.h"
#include "shard/partition.h"
#include "shard/shard_subject.h"
#include "target/system.h"

// How values of a graph are divided among the devices of a mesh, chosen by price: one option for
// each node, which is a division of its rule (shard/node_division.h). The least sum of the prices
// of nodes and of what moves between them is a problem of assignment (assign/problem.h). A few of
// its solutions are judged by the timeline of the whole step, and the fastest one is taken.

namespace hone {

struct AutoShardOptions {
  std::string search = {};  // AssignOptions::search
  int64_t memory = 0;       // bytes that a device may use; 0: those that the System's devices have
  // For the problems and all of their solutions together; 0: no limit. One problem is always made.
  double seconds = 10;
  int64_t steps = 0;  // AssignOptions::steps
  uint64_t seed = 0;
  const CancelToken* cancel = nullptr;
  Progress* progress = nullptr;  // null: nobody is told
};

// A graph with all that its devices do, and what that takes.
struct JudgedSharding {
  Graph graph = Graph();  // each value says how it is divided
  Partition partition = {};
  SystemPlans plans = {};
  double seconds = 0;  // of a step, by the timeline
  int64_t memory = 0;  // bytes that the device needs which needs most
};

struct AutoSharding {
  JudgedSharding best = {};
  // The sum of the prices of the assignment that was solved; none is below the bound. A step may
  // take less than the sum: exchanges and kernels overlap, and kernels are fused.
  double price = 0;
  std::optional<double> bound = {};  // none: the assignment has not all options
  bool is_optimal = false;           // of the sum
  std::optional<double> whole = {};  // seconds of a step if nothing is divided; none: no memory
  size_t nodes = 0, options = 0;     // of the assignment
  size_t all_options = 0;            // that its nodes have (search/shard_options.h)
  size_t late = 0;                   // that stay whole, since the time for the problem was over
  size_t judged = 0;                 // solutions that the timeline has seen
};

// The graph is that of shard_subject(). All that it says of values stays. `costs` are of the
// targets of the system, which has the devices of the mesh in order. Errors: a value cannot be
// divided as it says; no sharding keeps within the memory: how much is missing, and which values
// are largest.
Result<AutoSharding> auto_shard(const Graph& graph, const MeshRef& mesh, const System& system,
                                std::span<const std::shared_ptr<const Cost>> costs,
                                const AutoShardOptions& options = {});

// The same for a graph whose values all say how they are divided. Ways between layouts are the
// cheapest by these prices.
Result<JudgedSharding> judge_sharding(Graph graph, const MeshRef& mesh, const System& system,
                                      std::span<const std::shared_ptr<const Cost>> costs,
                                      ShardPrices& prices, const CancelToken* cancel = nullptr);

// The same for a partition that is made already.
Result<JudgedSharding> judge_partition(Graph graph, Partition partition, const System& system,
                                       std::span<const std::shared_ptr<const Cost>> costs,
                                       const CancelToken* cancel = nullptr);

// The same for the batch alone: all axes along the dim of the inputs that has its rows, and what
// follows from that. Error: no input has rows, or the graph says something itself.
Result<JudgedSharding> batch_alone(const Graph& graph, const MeshRef& mesh, const System& system,
                                   std::span<const std::shared_ptr<const Cost>> costs,
                                   ShardPrices& prices, const CancelToken* cancel = nullptr);

// The axes or the levels of a system as a mesh; without any, one axis `x`.
MeshRef mesh_of_system(const System& system);

// Axes of more than one device that a search takes.
inline constexpr size_t kMostSearchedAxes = 4;
Status check_searched_axes(const Mesh& mesh);

}  // namespace hone
