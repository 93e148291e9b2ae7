#include "search/placed_graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "cost/program_price.h"
#include "cost/task_seconds.h"
#include "ir/op_def.h"
#include "ir/op_facts.h"
#include "place/placer.h"
#include "place/sort_by.h"
#include "plan/rewritten.h"
#include "planner/planner.h"
#include "program/frame.h"
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

namespace {

// Devices pin their nodes.
class StepReader {
 public:
  explicit StepReader(PlacedGraph& placed) : placed_(placed) {
    for (uint32_t i = 0; i < placed.problem.nodes.size(); ++i)
      kernels_.emplace(placed.problem.nodes[i].name, i);
    for (const NodeId n : placed.graph.nodes())
      nodes_.emplace(placed.graph.name(placed.graph.result(n)), n);
  }

  Status read(const StepDevices& steps) {
    for (const auto& [key, device] : steps.device)
      if (Status good = take_device(key, device); !good.ok())
        return std::move(good).error().within("device " + key);
    for (const auto& [key, priority] : steps.priority) {
      const Result<uint32_t> at = find(key);
      if (!at.ok()) return Error(at.error()).within("priority " + key);
      placed_.priority.resize(placed_.problem.nodes.size());
      placed_.priority[*at] = priority;
    }
    return {};
  }

 private:
  Status take_device(const std::string& key, int32_t device) {
    PlaceNode& node = placed_.problem.nodes[HONE_TRY(find(key))];
    const int64_t devices = placed_.problem.system.device_count();
    if (device >= devices)
      return bad_input("there is no device {}; '{}' has {}", device, placed_.problem.system.name,
                       devices);
    if (node.pinned != kAnywhere && node.pinned != device)
      return bad_input("{} is one kernel, and is on device {}, too", name_of(node), node.pinned);
    node.pinned = device;
    return {};
  }

  Result<uint32_t> find(std::string_view key) const {
    const std::string_view name = key.substr(1);
    if (key[0] == '@') {
      const auto kernel = kernels_.find(name);
      const bool is_kernel =
          std::ranges::find(placed_.plan.fuse, name, &Group::kernel) != placed_.plan.fuse.end();
      if (is_kernel && kernel != kernels_.end()) return kernel->second;
      return bad_input("the plan has no kernel of this name");
    }
    const auto node = nodes_.find(name);
    if (node != nodes_.end())
      if (const uint32_t at = placed_.place_of[node->second.index]; at != PlacedGraph::kNone)
        return at;
    return bad_input("nothing that is computed has this name");
  }

  PlacedGraph& placed_;
  std::map<std::string, uint32_t, std::less<>> kernels_;
  std::map<std::string_view, NodeId> nodes_;
};

// The nodes of the graph, kernel by kernel, in the order in which the timeline computes them.
Result<std::vector<std::vector<NodeId>>> computing_order(const PlacedGraph& placed,
                                                         const DevicePlacement& placement) {
  const PlaceJudge judge(placed.problem);
  const PlaceTimeline timeline = HONE_TRY(judge.timeline(placement));
  std::vector<uint32_t> order = judge.order();
  sort_by(order, [&](uint32_t at) { return timeline.start(at); });
  std::vector<std::vector<NodeId>> of_node(placed.problem.nodes.size()), steps;
  for (const NodeId n : placed.graph.nodes())
    if (const uint32_t at = placed.place_of[n.index]; at != PlacedGraph::kNone)
      of_node[at].push_back(n);
  for (const uint32_t at : order) steps.push_back(std::move(of_node[at]));
  return steps;
}

// The kernels of the plan whose nodes all are in the piece; none, if they do not fit it.
Plan kernels_of_piece(const Plan& plan, const Graph& piece, const Target& target) {
  std::set<std::string_view> names;
  for (const NodeId n : piece.nodes()) names.insert(piece.name(piece.result(n)));
  const auto is_inside = [&](const std::string& name) { return names.contains(name); };
  Plan part;
  part.threads = plan.threads;
  for (const Group& group : plan.fuse)
    if (std::ranges::all_of(group.nodes, is_inside)) part.fuse.push_back(group);
  if (part.threads && *part.threads > target.cores) part.threads.reset();
  if (check(part, piece, target).ok()) return part;
  part.fuse.clear();
  return part;
}

}  // namespace

Result<PlacedGraph> place_problem(const Graph& given, const System& system,
                                  std::span<const std::shared_ptr<const Cost>> costs,
                                  const PlacedGraphOptions& options) {
  HONE_CHECK(costs.size() == system.targets.size(), "{} costs for {} targets", costs.size(),
             system.targets.size());
  PlacedGraph made;
  made.graph = HONE_TRY(prepare(HONE_TRY(rewritten(given, options.plan)), options.prepare));
  if (!made.graph.is_static())
    return bad_input("sizes are open, and what kernels cost depends on them").at(given.name());
  made.problem.name = given.name();
  made.problem.system = system;
  ProblemMaker maker(made);
  Plan groups = without_rewrites(options.plan);
  if (groups.graph_hash != 0) HONE_TRY(check_graph(groups, made.graph));
  for (size_t i = 0; i < system.targets.size(); ++i) {
    const Plan plan =
        HONE_TRY(complete(made.graph, groups, system.targets[i], *costs[i],
                          {.cancel = options.cancel, .heuristics = options.heuristics}));
    if (i == 0) {
      maker.add_nodes(plan);
      groups = {};
      groups.threads = options.plan.threads;
      groups.fuse = plan.fuse;
      groups.copy = plan.copy;
      groups.view = plan.view;
    }
    maker.add_seconds(HONE_TRY(seconds_by_name(made.graph, plan, system.targets[i], *costs[i])));
  }
  maker.add_tensors();
  made.plan = std::move(groups);
  made.plan.rewrite = options.plan.rewrite;
  if (!made.graph.name().empty()) made.plan.graph = made.graph.name();
  made.plan.graph_hash = hash_without_weights(made.graph);
  HONE_TRY(StepReader(made).read(options.steps));
  HONE_TRY(check(made.problem));
  return made;
}

Result<DevicePlacement> said_placement(const PlacedGraph& placed) {
  DevicePlacement said = {{}, placed.priority};
  for (const PlaceNode& node : placed.problem.nodes) {
    if (node.pinned != kAnywhere) {
      said.device.push_back(static_cast<uint32_t>(node.pinned));
      continue;
    }
    const PlaceJudge judge(placed.problem);
    PlaceOptions quick;
    quick.seconds = 0;
    DevicePlacement found = HONE_TRY(place(judge, quick)).placement;
    if (!placed.priority.empty()) found.priority = placed.priority;
    return found;
  }
  HONE_TRY(check(placed.problem, said));
  return said;
}

StepDevices steps_of(const PlacedGraph& placed, const DevicePlacement& placement) {
  StepDevices steps;
  std::set<std::string_view> kernels;
  for (const Group& group : placed.plan.fuse) kernels.insert(group.kernel);
  const auto least = std::ranges::min_element(placement.priority);
  for (uint32_t i = 0; i < placed.problem.nodes.size(); ++i) {
    const std::string& name = placed.problem.nodes[i].name;
    const std::string key = (kernels.contains(name) ? "@" : "%") + name;
    steps.device[key] = static_cast<int32_t>(placement.device[i]);
    if (!placement.priority.empty()) steps.priority[key] = placement.priority[i] - *least;
  }
  return steps;
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
      HONE_TRY(cut_graph(graph, device_of, static_cast<int32_t>(placed.problem.devices()),
                         HONE_TRY(computing_order(placed, placement))));
  const std::vector<PlaceDevice> devices = place_devices(placed.problem);
  std::vector<Program> pieces;
  for (const CutPiece& piece : cut.pieces) {
    const uint32_t target = devices[static_cast<size_t>(piece.device)].target;
    const Target& machine = placed.problem.system.targets[target];
    const Graph ready = HONE_TRY(prepare(piece.graph, options.prepare));
    const Plan plan = HONE_TRY(
        complete(ready, kernels_of_piece(placed.plan, ready, machine), machine, *costs[target],
                 {.cancel = options.cancel, .heuristics = options.heuristics}));
    pieces.push_back(HONE_TRY(lower(ready, plan, machine)));
  }
  return PlacedPrograms{HONE_TRY(join_pieces(graph, cut, pieces)), cut.output_device};
}

std::vector<Tensor> inputs_of_devices(const Graph& graph, const DevicePrograms& programs,
                                      std::span<const Tensor> inputs) {
  HONE_CHECK(inputs.size() == graph.inputs().size(), "{} tensors for {} inputs", inputs.size(),
             graph.inputs().size());
  std::map<std::string_view, size_t> by_name;
  for (size_t i = 0; i < inputs.size(); ++i) by_name.emplace(graph.name(graph.inputs()[i]), i);
  std::vector<Tensor> all;
  for (const uint32_t program : programs.of_device) {
    const program::Frame& main = *programs.programs[program].main;
    for (const program::BufferId b : program::buffers_of(main, program::Role::input)) {
      const auto found = by_name.find(main.buffers[static_cast<size_t>(b)].name);
      HONE_CHECK(found != by_name.end(), "the graph has no input '{}'",
                 main.buffers[static_cast<size_t>(b)].name);
      all.push_back(inputs[found->second]);
    }
  }
  return all;
}

std::vector<Tensor> outputs_of_graph(const PlacedPrograms& placed, std::span<const Tensor> made) {
  std::vector<size_t> next = {0};  // of each device
  for (const uint32_t program : placed.programs.of_device)
    next.push_back(
        next.back() +
        program::buffers_of(*placed.programs.programs[program].main, program::Role::output).size());
  HONE_CHECK(made.size() == next.back(), "{} tensors for {} outputs", made.size(), next.back());
  std::vector<Tensor> outputs;
  for (const int32_t device : placed.output_device)
    outputs.push_back(made[next[static_cast<size_t>(device)]++]);
  return outputs;
}

}  // namespace hone
