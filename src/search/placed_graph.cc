#include "search/placed_graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "cost/program_price.h"
#include "cost/task_seconds.h"
#include "ir/op_def.h"
#include "ir/op_facts.h"
#include "planner/planner.h"
#include "program/lower/join.h"
#include "program/lower/lower.h"
#include "program/tasks.h"
#include "shard/cut.h"

namespace hone {
namespace {

bool is_leaf(const Graph& graph, NodeId n) {
  return is_parameter(graph.opcode(n)) || is_constant(graph.opcode(n));
}

// Seconds of the tasks of a plan, by the names of kernels and of values that commands make.
Result<std::map<std::string, double>> seconds_by_name(const Graph& graph, const Plan& plan,
                                                      const Target& target, const Cost& cost) {
  const Program program = HONE_TRY(lower(graph, plan, target));
  const ProgramPrice launch = HONE_TRY(price(program, cost));
  std::unordered_map<uint64_t, double> launches;
  for (size_t k = 0; k < program.kernels.size(); ++k)
    launches[task_kernel(program.kernels[k])] = launch.kernel[k];
  const Tasks tasks = tasks_of(program);
  const std::vector<TaskSeconds> seconds = HONE_TRY(task_seconds(tasks, launches, cost));
  std::map<std::string, double> found;
  for (size_t i = 0; i < seconds.size(); ++i)
    found[tasks.lists.back().tasks[i].name] += seconds[i].total();
  return found;
}

class ProblemMaker {
 public:
  ProblemMaker(PlacedGraph& made) : made_(made), graph_(made.graph) {}

  // A node for each group, and for each live node that is in none.
  void add_nodes(const Plan& plan) {
    made_.place_of.assign(graph_.node_count(), PlacedGraph::kNone);
    std::map<std::string_view, NodeId> by_name;
    for (const NodeId n : graph_.nodes()) by_name.emplace(graph_.name(graph_.result(n)), n);
    for (const Group& group : plan.fuse) {
      // A group of copies alone has no node of the graph.
      uint32_t at = PlacedGraph::kNone;
      for (const std::string& name : group.nodes) {
        const auto found = by_name.find(name);
        if (found == by_name.end()) continue;
        if (at == PlacedGraph::kNone) at = add(group.kernel);
        made_.place_of[found->second.index] = at;
      }
    }
    const std::vector<bool> live = live_nodes(graph_);
    for (const NodeId n : graph_.nodes())
      if (live[n.index] && !is_leaf(graph_, n) && made_.place_of[n.index] == PlacedGraph::kNone)
        made_.place_of[n.index] = add(std::string(graph_.name(graph_.result(n))));
  }

  void add_seconds(const std::map<std::string, double>& seconds) {
    for (PlaceNode& node : made_.problem.nodes) {
      const auto found = seconds.find(node.name);
      // A view takes no time.
      node.seconds.push_back(found == seconds.end() ? 0 : std::max(0.0, found->second));
    }
  }

  void add_tensors() {
    std::vector<std::set<uint32_t>> users(graph_.value_count());
    for (const NodeId n : graph_.nodes()) {
      const uint32_t at = made_.place_of[n.index];
      if (at == PlacedGraph::kNone) continue;
      for (const ValueId v : graph_.operands(n))
        if (!v.is_none()) users[v.index].insert(at);
    }
    for (uint32_t i = 0; i < graph_.value_count(); ++i) {
      const NodeId maker = graph_.producer(ValueId{i});
      const int64_t bytes = held_bytes(ValueId{i});
      if (is_leaf(graph_, maker)) {
        for (const uint32_t at : users[i]) made_.problem.nodes[at].held += bytes;
        continue;
      }
      const uint32_t at = made_.place_of[maker.index];
      if (at == PlacedGraph::kNone) continue;
      users[i].erase(at);
      if (users[i].empty()) continue;
      made_.problem.tensors.push_back(
          {at, {users[i].begin(), users[i].end()}, static_cast<double>(bytes), bytes});
    }
    for (const ValueId v : graph_.outputs())
      if (const uint32_t at = made_.place_of[graph_.producer(v).index]; at != PlacedGraph::kNone)
        made_.problem.nodes[at].held += held_bytes(v);
  }

 private:
  uint32_t add(std::string name) {
    const auto at = static_cast<uint32_t>(made_.problem.nodes.size());
    made_.problem.nodes.push_back({.id = at, .name = std::move(name), .seconds = {}});
    return at;
  }

  int64_t held_bytes(ValueId v) const {
    const Type type = graph_.type(v);
    return (type.static_elements() * bits(type.dtype()) + 7) / 8;
  }

  PlacedGraph& made_;
  const Graph& graph_;
};

}  // namespace

Result<PlacedGraph> place_problem(const Graph& given, const System& system,
                                  std::span<const std::shared_ptr<const Cost>> costs,
                                  const PlacedGraphOptions& options) {
  HONE_CHECK(costs.size() == system.targets.size(), "{} costs for {} targets", costs.size(),
             system.targets.size());
  PlacedGraph made;
  made.graph = HONE_TRY(prepare(given, options.prepare));
  if (!made.graph.is_static())
    return bad_input("sizes are open, and what kernels cost depends on them").at(given.name());
  made.problem.name = given.name();
  made.problem.system = system;
  ProblemMaker maker(made);
  Plan groups;
  for (size_t i = 0; i < system.targets.size(); ++i) {
    const Plan plan =
        HONE_TRY(complete(made.graph, groups, system.targets[i], *costs[i],
                          {.cancel = options.cancel, .heuristics = options.heuristics}));
    if (i == 0) {
      maker.add_nodes(plan);
      groups.fuse = plan.fuse;
      groups.copy = plan.copy;
      groups.view = plan.view;
    }
    maker.add_seconds(HONE_TRY(seconds_by_name(made.graph, plan, system.targets[i], *costs[i])));
  }
  maker.add_tensors();
  HONE_TRY(check(made.problem));
  return made;
}

Result<PlacedPrograms> placed_programs(const PlacedGraph& placed, const DevicePlacement& placement,
                                       std::span<const std::shared_ptr<const Cost>> costs,
                                       const PlacedGraphOptions& options) {
  HONE_TRY(check(placed.problem, placement));
  const Graph& graph = placed.graph;
  std::vector<int32_t> device_of(graph.node_count(), -1);
  for (const NodeId n : graph.nodes()) {
    const uint32_t at = placed.place_of[n.index];
    if (at == PlacedGraph::kNone) continue;
    device_of[n.index] = static_cast<int32_t>(placement.device[at]);
    // An input or a constant that is an output, too, is given out where it is used first.
    for (const ValueId v : graph.operands(n))
      if (!v.is_none())
        if (int32_t& leaf = device_of[graph.producer(v).index]; leaf < 0) leaf = device_of[n.index];
  }
  for (int32_t& device : device_of) device = std::max(device, 0);
  const GraphCut cut =
      HONE_TRY(cut_graph(graph, device_of, static_cast<int32_t>(placed.problem.devices())));
  const std::vector<PlaceDevice> devices = place_devices(placed.problem);
  std::vector<Program> pieces;
  for (const CutPiece& piece : cut.pieces) {
    const uint32_t target = devices[static_cast<size_t>(piece.device)].target;
    const Target& machine = placed.problem.system.targets[target];
    const Graph ready = HONE_TRY(prepare(piece.graph, options.prepare));
    const Plan plan =
        HONE_TRY(complete(ready, {}, machine, *costs[target],
                          {.cancel = options.cancel, .heuristics = options.heuristics}));
    pieces.push_back(HONE_TRY(lower(ready, plan, machine)));
  }
  return PlacedPrograms{HONE_TRY(join_pieces(graph, cut, pieces)), cut.output_device};
}

}  // namespace hone
