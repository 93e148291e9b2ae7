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

// The words of the face, as errors name them.
struct ShardLabels {
  std::string_view mesh = "--mesh";
  std::string_view shard = "--shard";
};

struct ShardRequest {
  MeshRef mesh = nullptr;                // null: that of the plan, or of the graph
  bool is_auto = false;                  // what nobody says is chosen by price
  std::vector<std::string> stated = {};  // "NAME=[x, -]"
  std::optional<ShardPlan> plan = {};    // what it leaves open is chosen by price
  std::string_view search_word = "";     // of the face, if someone says how to search
  ShardLabels labels = {};
};

// The words behind --shard: "auto", a file with a plan, NAME=DIMS. The mesh is "x=2,y=4", if
// anybody says one.
Result<ShardRequest> shard_request(std::span<const std::string> words,
                                   const std::optional<std::string>& mesh,
                                   const ShardLabels& labels = {});

// True if prices choose what nobody says: if the request asks for it, has a plan, or says nothing
// of a graph that says nothing itself. Else the rest follows from what is said.
bool is_priced(const ShardRequest& request, const Graph& graph);

// The mesh that the request means for this graph; null: nobody says one. A mesh that both say is
// one.
Result<MeshRef> mesh_of_request(const ShardRequest& request, const Graph& graph);
// The graph, with what the request says of its values beside what it says itself.
Result<Graph> stated_graph(Graph graph, const MeshRef& mesh, const ShardRequest& request);

struct ShardedModel {
  ShardSubject subject = {};  // its graph says how all values are divided
  Partition partition = {};
  std::optional<AutoSharding> chosen = {};  // if prices chose something
};

// "a step takes 1.2 ms on 4 devices, and 3.4 ms undivided; 16 MiB a device"
std::string step_text(const AutoSharding& chosen, int64_t devices);

// The program of each device, for a system with the devices of the mesh, by price (is_priced) or by
// what follows from what is said (shard/propagate.h). Errors: a device needs more than
// AutoShardOptions::memory, however the division was found; words about the search where all is
// said.
Result<ShardedModel> sharded_model(const Graph& graph, const MeshRef& mesh,
                                   const ShardRequest& request, const System& system,
                                   std::span<const std::shared_ptr<const Cost>> costs,
                                   const AutoShardOptions& options);

}  // namespace hone
