#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
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
#include "target/topology.h"

// How the devices of a stage of a pipeline divide its values: by price, as auto_shard() does.

namespace hone {

// The graph that stages and their plans are for (rewrite/prepare.h). Unsupported: it says how
// devices divide a value that is gone then.
Result<Graph> prepared_for_stages(const Graph& graph);

// The nodes of a micro-batch as stages share them.
struct StageSource {
  // The graph of the micro-batch, with its numbers of nodes and its names. Where a value is added
  // up over all micro-batches, it is added once. A next state takes the place of its state.
  Graph graph = Graph();
  std::vector<LayerPart> parts = {};                 // of nodes
  std::vector<double> seconds = {};                  // of nodes, undivided, on the slowest target
  std::vector<std::vector<double>> seconds_on = {};  // the same on each target
  std::vector<std::vector<NodeId>> users = {};
  std::map<std::string, ValueId, std::less<>> values = {};  // by name
  // As the whole graph says itself how devices divide its values and outputs. A micro-batch has
  // all of these values.
  std::multimap<std::string, Sharding, std::less<>> said = {};  // by name
  std::map<uint32_t, Sharding> said_outputs = {};

  bool says_something() const { return !said.empty() || !said_outputs.empty(); }

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
  // are searched once. `devices` have the places of the mesh; none: the first ones of the system,
  // at the pace of its slowest target.
  Result<std::vector<ShardedStage>> ways(const StageSource& source,
                                         const std::vector<bool>& is_inside, const MeshRef& mesh,
                                         int64_t memory, std::span<const int32_t> devices = {});
  // As a plan says; prices choose what it leaves open.
  Result<ShardedStage> planned(const StageSource& source, const std::vector<bool>& is_inside,
                               const MeshRef& mesh, const ShardPlan& plan,
                               std::span<const int32_t> devices);

  // The prices of the steps by which the devices of a mesh change a layout; this outlives them.
  ReshardPrice steps(const MeshRef& mesh, std::span<const int32_t> devices) {
    return prices(mesh, place_of(*mesh, devices)).steps();
  }

  size_t searched() const { return known_.size(); }  // different stages

 private:
  // Values and nodes go by their numbers in the stage's graph.
  struct Division {
    std::shared_ptr<const Shardings> said;
    std::vector<double> seconds;
  };

  MeshPlace place_of(const Mesh& mesh, std::span<const int32_t> devices) const;
  // Places of one text have equal prices: their devices have the same targets, and between these
  // are links of the same speeds, which their routes share alike.
  std::string place_text(const Mesh& mesh, const MeshPlace& place);
  const std::string& routes_text(const std::vector<int32_t>& devices);
  ShardPrices& prices(const MeshRef& mesh, const MeshPlace& place);
  Result<std::vector<Division>> divisions(const Graph& graph, const MeshRef& mesh, int64_t memory,
                                          const MeshPlace& place);
  static ShardedStage sharded(const StageSource& source, const std::vector<bool>& is_inside,
                              const MeshRef& mesh, Graph graph, const Division& division);

  const System& system_;
  const std::span<const std::shared_ptr<const Cost>> costs_;
  const CancelToken* cancel_;
  std::optional<Topology> topology_;  // made when it is first asked for
  const std::shared_ptr<NodeSeconds> nodes_ = std::make_shared<NodeSeconds>();
  std::map<std::vector<int32_t>, std::string> routes_;          // texts, by devices
  std::map<std::string, std::unique_ptr<ShardPrices>> prices_;  // by place
  std::map<std::string, std::vector<Division>> known_;          // by place, limit and text
};

// One axis `x` of as many devices.
MeshRef stage_mesh(int64_t devices);

// The graph of the nodes inside, in the form that shardings are for (shard/shard_subject.h). Its
// values are divided along axes of the mesh as the whole graph says. Unsupported: the mesh lacks
// such an axis.
Result<Graph> stage_graph(const StageSource& source, const std::vector<bool>& is_inside,
                          const MeshRef& mesh);

// The work of a stage. `bytes` are those that a device has of each value, and `seconds` those that
// it takes for each node inside.
StageFacts facts_of_stage(const StageSource& source, const std::vector<bool>& is_inside,
                          std::span<const double> seconds, std::span<const int64_t> bytes);

}  // namespace hone
