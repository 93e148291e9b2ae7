#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost/cost.h"
#include "search/pipeline_layers.h"
#include "search/pipeline_schedule.h"
#include "search/shard_prices.h"
#include "shard/micro_batches.h"
#include "shard/shard_plan.h"

// How the devices of a stage of a pipeline divide its values: by price, as auto_shard() does.

namespace hone {

// The nodes of a micro-batch as stages share them.
struct StageSource {
  // The graph of the micro-batch, with its numbers of nodes and its names. Where a value is added
  // up over all micro-batches, it is added once. A next state takes the place of its state.
  Graph graph = Graph();
  std::vector<LayerPart> parts = {};  // of nodes
  std::vector<double> seconds = {};   // of nodes, undivided
  std::vector<std::vector<NodeId>> users = {};
  std::map<std::string, ValueId, std::less<>> values = {};  // by name

  static Result<StageSource> make(const MicroBatch& batch, const Graph& whole, const System& system,
                                  std::span<const std::shared_ptr<const Cost>> costs,
                                  const CancelToken* cancel);
};

// A stage as its devices compute it.
struct ShardedStage {
  MeshRef mesh = {};
  Graph graph = Graph();  // each value says how it is divided; nothing for a mesh of one device
  StageFacts facts = {};
};

class StageSharder {
 public:
  // All outlive it. `costs` are of the targets of the system.
  StageSharder(const System& system, std::span<const std::shared_ptr<const Cost>> costs,
               const CancelToken* cancel)
      : system_(system), costs_(costs), cancel_(cancel) {}

  // The fastest way of the devices of a mesh to compute the nodes inside. If their memory is above
  // the limit, ways of less follow: with one micro-batch at once, and with several. Equal stages
  // are searched once.
  Result<std::vector<ShardedStage>> ways(const StageSource& source,
                                         const std::vector<bool>& is_inside, const MeshRef& mesh,
                                         int64_t memory);
  // As a plan says; prices choose what it leaves open.
  Result<ShardedStage> planned(const StageSource& source, const std::vector<bool>& is_inside,
                               const MeshRef& mesh, const ShardPlan& plan);

  // The prices of the steps by which the devices of a mesh change a layout; this outlives them.
  ReshardPrice steps(const MeshRef& mesh) { return prices(mesh).steps(); }

  size_t searched() const { return known_.size(); }  // different stages

 private:
  // Values and nodes go by their numbers in the stage's graph.
  struct Division {
    std::shared_ptr<const Shardings> said;
    std::vector<double> seconds;
  };

  ShardPrices& prices(const MeshRef& mesh);
  Result<std::vector<Division>> divisions(const Graph& graph, const MeshRef& mesh, int64_t memory);
  static ShardedStage sharded(const StageSource& source, const std::vector<bool>& is_inside,
                              const MeshRef& mesh, Graph graph, const Division& division);

  const System& system_;
  const std::span<const std::shared_ptr<const Cost>> costs_;
  const CancelToken* cancel_;
  std::map<std::string, std::unique_ptr<ShardPrices>> prices_;  // by mesh
  std::map<std::string, std::vector<Division>> known_;          // by mesh, limit and text
};

// One axis `x` of as many devices.
MeshRef stage_mesh(int64_t devices);

// The graph of the nodes inside, in the form that shardings are for (shard/shard_subject.h).
Result<Graph> stage_graph(const Graph& source, const std::vector<bool>& is_inside);

// The work of a stage. `bytes` are those that a device has of each value, and `seconds` those that
// it takes for each node inside.
StageFacts facts_of_stage(const StageSource& source, const std::vector<bool>& is_inside,
                          std::span<const double> seconds, std::span<const int64_t> bytes);

}  // namespace hone
