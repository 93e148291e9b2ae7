#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "search/auto_shard.h"
#include "shard/propagate.h"
#include "shard/shard_plan.h"

// Models whose values devices divide, as a user asks for it.

namespace hone {

struct ShardRequest {
  MeshRef mesh = nullptr;                // null: that of the plan, or of the graph
  bool is_auto = false;                  // what nobody says is chosen by price
  std::vector<std::string> stated = {};  // "NAME=[x, -]"
  std::optional<ShardPlan> plan = {};    // what it leaves open is chosen by price
};

// The words behind --shard: "auto", a file with a plan, NAME=DIMS. The mesh is "x=2,y=4" or
// nothing.
Result<ShardRequest> shard_request(std::span<const std::string> words, const std::string& mesh);

// The mesh that the request means for this graph; null: nobody says one.
Result<MeshRef> mesh_of_request(const ShardRequest& request, const Graph& graph);
// The graph, with what the request says of its values beside what it says itself.
Result<Graph> stated_graph(Graph graph, const MeshRef& mesh, const ShardRequest& request);

struct ShardedModel {
  ShardSubject subject = {};  // its graph says how all values are divided
  Partition partition = {};
  std::optional<AutoSharding> chosen = {};  // if prices chose something
};

// The program of each device, for a system with the devices of the mesh. Without auto and plan,
// values are divided as follows from what is said (shard/propagate.h).
Result<ShardedModel> sharded_model(const Graph& graph, const MeshRef& mesh,
                                   const ShardRequest& request, const System& system,
                                   std::span<const std::shared_ptr<const Cost>> costs,
                                   const AutoShardOptions& options);

}  // namespace hone
