#include "search/stage_sharding.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "assign/solve.h"
#include "ir/graph_copy.h"
#include "ir/op_def.h"
#include "ir/op_facts.h"
#include "ir/text.h"
#include "rewrite/prepare.h"
#include "search/shard_problem.h"
#include "shard/shard_subject.h"

namespace hone {
namespace {

constexpr double kMostSeconds = 0.5;  // of one search
constexpr int kMemoryRounds = 4;
constexpr size_t kMostRouted = 64;  // devices whose routes are compared

// The values of nodes inside that others need.
std::vector<ValueId> outputs_of(const Graph& graph, const std::vector<bool>& is_inside) {
  std::vector<bool> is_needed(graph.value_count(), false);
  for (const NodeId n : graph.nodes())
    for (const ValueId v : graph.operands(n))
      if (!v.is_none() && !is_inside[n.index]) is_needed[v.index] = true;
  for (const ValueId v : graph.outputs()) is_needed[v.index] = true;
  std::vector<ValueId> outputs;
  for (const NodeId n : graph.nodes())
    for (const ValueId v : graph.results(n))
      if (is_inside[n.index] && is_needed[v.index]) outputs.push_back(v);
  return outputs;
}

std::vector<int64_t> whole_bytes_of(const Graph& graph) {
  std::vector<int64_t> bytes;
  for (uint32_t i = 0; i < graph.value_count(); ++i)
    bytes.push_back(graph.type(ValueId{i}).static_bytes());
  return bytes;
}

// The text of the graph with other names: equal ones are divided alike.
std::string text_without_names(Graph graph) {
  graph.set_name("stage");
  for (uint32_t i = 0; i < graph.value_count(); ++i)
    graph.set_name(ValueId{i}, fmt::format("v{}", i));
  return print(graph);
}

Error no_such_value(std::string_view label) {
  return unsupported("the graph says how devices divide {}, which stages do not have", label)
      .with_hint("say it of a value beside it, or behind a stage of the pipeline's plan");
}

}  // namespace

Result<Graph> prepared_for_stages(const Graph& graph) {
  if (graph.shardings() == nullptr) return prepare(graph);
  static const Result<std::vector<Pass>> names = parse_passes("names");
  HONE_CHECK(names.ok(), "{}", names.error().to_string());
  const Graph named = HONE_TRY(run_passes(graph, *names));
  Graph made = HONE_TRY(prepare(named));
  std::set<std::string_view> kept;
  if (made.shardings() != nullptr)
    for (const auto& [value, sharding] : made.shardings()->values) kept.insert(made.name(value));
  for (const auto& [value, sharding] : named.shardings()->values)
    if (!kept.contains(named.name(value))) return no_such_value(named.label(value));
  return made;
}

MeshRef stage_mesh(int64_t devices) {
  return std::make_shared<const Mesh>(Mesh{"mesh", {{"x", devices}}});
}

Result<StageSource> StageSource::make(const MicroBatch& batch, const Graph& whole,
                                      const System& system,
                                      std::span<const std::shared_ptr<const Cost>> costs,
                                      const CancelToken* cancel) {
  StageSource made;
  GraphCopy copy(batch.graph);
  for (const NodeId n : batch.graph.nodes()) {
    if (class_of(batch.graph.opcode(n)) != OpClass::collective) {
      HONE_TRY(copy.node(n));
      continue;
    }
    const ValueId v = copy(batch.graph.operands(n)[0]);
    const Op add = Op::get(combine_of(batch.graph.op(n).word("kind")));
    const NodeId sum = HONE_TRY(copy.target().append(add, {{v, v}}));
    copy.replace(batch.graph.result(n), copy.target().result(sum));
  }
  made.graph = copy.finish();
  HONE_CHECK(made.graph.node_count() == batch.graph.node_count(), "nodes have other numbers");
  if (made.graph.donations().empty())
    for (const Donation& one : whole.donations()) made.graph.add_donation(one.input, one.output);
  made.parts = parts_of_nodes(batch, whole);
  made.seconds.assign(made.graph.node_count(), 0);
  for (size_t target = 0; target < system.targets.size(); ++target) {
    made.seconds_on.push_back(
        HONE_TRY(seconds_of_nodes(batch.graph, system, costs, cancel, target)));
    for (size_t n = 0; n < made.seconds.size(); ++n)
      made.seconds[n] = std::max(made.seconds[n], made.seconds_on.back()[n]);
  }
  made.users = users_of_values(made.graph);
  for (uint32_t i = 0; i < made.graph.value_count(); ++i)
    made.values.emplace(made.graph.name(ValueId{i}), ValueId{i});
  if (const Shardings* const said = whole.shardings()) {
    for (const auto& [value, sharding] : said->values) {
      if (!made.values.contains(whole.name(value))) return no_such_value(whole.label(value));
      made.said.emplace(whole.name(value), sharding);
    }
    made.said_outputs.insert(said->outputs.begin(), said->outputs.end());
  }
  return made;
}

namespace {

// On the mesh of a stage, which has the axes.
Result<Sharding> on_mesh(Sharding said, const MeshRef& mesh, std::string_view name) {
  std::vector<AxisPart> used = said.replicated;
  used.insert(used.end(), said.partial.begin(), said.partial.end());
  for (const DimSharding& dim : said.dims)
    used.insert(used.end(), dim.axes.begin(), dim.axes.end());
  for (const AxisPart& part : used) {
    const MeshAxis* const own = said.mesh->find(part.axis);
    const MeshAxis* const axis = mesh->find(part.axis);
    if (own->size > 1 && (axis == nullptr || axis->size != own->size))
      return unsupported(
                 "the graph divides '{}' as {} along {} = {}, and the mesh of a stage is {}",
                 excerpt(name), dims_text(said), own->name, own->size, axes_text(*mesh))
          .with_hint("--mesh is the mesh of each stage; it may have the axes of the graph's mesh");
  }
  // Axes of one device divide nothing.
  const auto lacks = [&](const AxisPart& part) { return mesh->find(part.axis) == nullptr; };
  for (DimSharding& dim : said.dims) std::erase_if(dim.axes, lacks);
  std::erase_if(said.replicated, lacks);
  std::erase_if(said.partial, lacks);
  said.mesh = mesh;
  return said;
}

// The whole graph's word about the values that a stage makes or holds, and about its outputs. Parts
// of values that it receives are as it needs them.
Result<Shardings> said_of_stage(const StageSource& source, const Graph& stage,
                                std::span<const ValueId> outputs, const MeshRef& mesh) {
  Shardings made;
  for (uint32_t i = 0; i < stage.value_count(); ++i) {
    const ValueId v = {i};
    if (is_parameter(stage.opcode(stage.producer(v)))) {
      const ValueId own = source.values.find(stage.name(v))->second;
      if (!is_leaf(source.graph.opcode(source.graph.producer(own)))) continue;
    }
    const auto [begin, end] = source.said.equal_range(stage.name(v));
    for (auto one = begin; one != end; ++one)
      made.add(v, HONE_TRY(on_mesh(one->second, mesh, stage.name(v))));
  }
  for (uint32_t i = 0; i < outputs.size(); ++i)
    for (const auto& [number, sharding] : source.said_outputs)
      if (source.graph.outputs()[number] == outputs[i])
        made.set_output(i, HONE_TRY(on_mesh(sharding, mesh, source.graph.name(outputs[i]))));
  return made;
}

}  // namespace

Result<Graph> stage_graph(const StageSource& whole, const std::vector<bool>& is_inside,
                          const MeshRef& mesh) {
  const Graph& source = whole.graph;
  std::vector<NodeId> nodes;
  for (const NodeId n : source.nodes())
    if (is_inside[n.index]) nodes.push_back(n);
  const std::vector<ValueId> outputs = outputs_of(source, is_inside);
  Graph made = HONE_TRY(extract_subgraph(source, nodes, outputs));
  // A next state lies as its state, if the stage has both.
  for (const Donation& one : source.donations()) {
    const std::string_view name = source.name(source.inputs()[one.input]);
    const auto output = std::ranges::find(outputs, source.outputs()[one.output]);
    for (uint32_t i = 0; i < made.inputs().size() && output != outputs.end(); ++i)
      if (made.name(made.inputs()[i]) == name)
        made.add_donation(i, static_cast<uint32_t>(output - outputs.begin()));
  }
  Shardings said = HONE_TRY(said_of_stage(whole, made, outputs, mesh));
  if (!said.empty()) made.set_shardings(std::make_shared<const Shardings>(std::move(said)));
  return HONE_TRY(shard_subject(made)).graph;
}

StageFacts facts_of_stage(const StageSource& source, const std::vector<bool>& is_inside,
                          std::span<const double> seconds, std::span<const int64_t> bytes) {
  const Graph& graph = source.graph;
  StageFacts facts;
  std::set<uint32_t> given;  // values that come from outside
  const auto goes_back = [&](ValueId v) {
    return std::ranges::any_of(source.users[v.index], [&](NodeId user) {
      return is_inside[user.index] && source.parts[user.index] == LayerPart::backward;
    });
  };
  for (const NodeId n : graph.nodes()) {
    if (!is_inside[n.index]) continue;
    const LayerPart part = source.parts[n.index];
    (part == LayerPart::forward    ? facts.forward
     : part == LayerPart::backward ? facts.backward
                                   : facts.update) += seconds[n.index];
    if (part == LayerPart::forward)
      for (const ValueId v : graph.results(n))
        if (goes_back(v)) facts.kept += bytes[v.index];
    for (const ValueId v : graph.operands(n))
      if (!v.is_none() && !is_inside[graph.producer(v).index]) given.insert(v.index);
  }
  for (const uint32_t value : given) {
    const ValueId v = {value};
    const NodeId maker = graph.producer(v);
    const LayerPart part = source.parts[maker.index];
    if (part == LayerPart::leaf) facts.held += bytes[value];
    if (part == LayerPart::backward) facts.received_backward += static_cast<double>(bytes[value]);
    if (part != LayerPart::forward) continue;
    facts.received_forward += static_cast<double>(bytes[value]);
    if (goes_back(v)) facts.kept += bytes[value];
  }
  return facts;
}

MeshPlace StageSharder::place_of(const Mesh& mesh, std::span<const int32_t> devices) const {
  MeshPlace made = {.devices = {devices.begin(), devices.end()}, .sends_directly = true};
  std::set<size_t> targets;
  for (const int32_t device : devices) targets.insert(system_.device(device).target);
  made.targets = {targets.begin(), targets.end()};
  if (!devices.empty()) return made;
  made.devices.resize(static_cast<size_t>(mesh.device_count()));
  std::iota(made.devices.begin(), made.devices.end(), 0);
  made.targets.resize(system_.targets.size());
  std::iota(made.targets.begin(), made.targets.end(), size_t{0});
  return made;
}

const std::string& StageSharder::routes_text(const std::vector<int32_t>& devices) {
  const auto [known, is_new] = routes_.try_emplace(devices);
  std::string& text = known->second;
  if (!is_new) return text;
  if (devices.size() > kMostRouted) return text = fmt::format("{}", fmt::join(devices, " "));
  if (!topology_) topology_.emplace(system_);
  std::map<uint32_t, size_t> numbers;  // of links, as they appear
  for (const int32_t from : devices)
    for (const int32_t to : devices) {
      if (from == to) continue;
      text += "/";
      for (const uint32_t number : topology_->route(from, to)) {
        const Link& link = topology_->links()[number];
        const auto [at, is_first] = numbers.try_emplace(number, numbers.size());
        text += fmt::format(" {}", at->second);
        if (is_first)
          text += fmt::format("({} {} {})", link.bytes_per_second, link.latency, link.shared);
      }
    }
  return text;
}

std::string StageSharder::place_text(const Mesh& mesh, const MeshPlace& place) {
  return fmt::format("{}\n{}\n{}", mesh_text(mesh), fmt::join(place.targets, " "),
                     routes_text(place.devices));
}

ShardPrices& StageSharder::prices(const MeshRef& mesh, const MeshPlace& place) {
  std::unique_ptr<ShardPrices>& made = prices_[place_text(*mesh, place)];
  if (made == nullptr)
    made = std::make_unique<ShardPrices>(system_, costs_, mesh, cancel_, place, nodes_);
  return *made;
}

ShardedStage StageSharder::sharded(const StageSource& source, const std::vector<bool>& is_inside,
                                   const MeshRef& mesh, Graph graph, const Division& division) {
  ShardedStage made = {.mesh = mesh, .graph = std::move(graph)};
  made.graph.set_shardings(division.said);
  std::vector<double> seconds(source.graph.node_count(), 0);
  std::vector<int64_t> bytes = whole_bytes_of(source.graph);
  for (const NodeId n : made.graph.nodes())
    for (const ValueId v : made.graph.results(n)) {
      const ValueId own = source.values.find(made.graph.name(v))->second;
      if (made.graph.result(n) == v)
        seconds[source.graph.producer(own).index] = division.seconds[n.index];
      const std::vector<const Sharding*> said = division.said->of(v);
      if (!said.empty())
        bytes[own.index] = local_type(made.graph.type(v), layout_of(*said[0])).static_bytes();
    }
  made.facts = facts_of_stage(source, is_inside, seconds, bytes);
  return made;
}

Result<std::vector<StageSharder::Division>> StageSharder::divisions(const Graph& graph,
                                                                    const MeshRef& mesh,
                                                                    int64_t memory,
                                                                    const MeshPlace& place) {
  ShardProblem problem =
      HONE_TRY(shard_problem(graph, mesh, prices(mesh, place),
                             {.counts_copies = memory > 0, .exchanges_in_loops = false}));
  std::vector<Division> all;
  // Returns the peak of the solution, or none where the limit leaves no solution.
  const auto add = [&](std::optional<int64_t> limit) -> Result<std::optional<int64_t>> {
    problem.problem.usage_limit = limit;
    const Result<AssignResult> found =
        solve(problem.problem, {.seconds = kMostSeconds, .cancel = cancel_});
    if (!found.ok() && found.error().code() != ErrorCode::mismatch) return Error(found.error());
    if (!found.ok() || found->verdict == AssignVerdict::none) return std::optional<int64_t>();
    const Assignment& taken = found->assignment;
    Division one = {.said = nullptr, .seconds = std::vector<double>(graph.node_count(), 0)};
    const Graph said = with_assignment(graph, mesh, problem, taken);
    one.said = std::make_shared<const Shardings>(*said.shardings());
    const auto count = [&](uint32_t node, int64_t ticks) {
      if (node < one.seconds.size()) one.seconds[node] += static_cast<double>(ticks) / kShardTicks;
    };
    for (uint32_t i = 0; i < problem.problem.nodes.size(); ++i)
      count(i, problem.problem.nodes[i].costs[taken[i]]);
    for (const AssignEdge& edge : problem.problem.edges)
      // The way to the layout of an output is work of its maker.
      count(edge.second < graph.node_count() ? edge.second : edge.first,
            problem.problem
                .tables[edge.table][taken[edge.first] * problem.problem.options(edge.second) +
                                    taken[edge.second]]);
    all.push_back(std::move(one));
    return std::optional(static_cast<int64_t>(HONE_TRY(evaluate(problem.problem, taken)).peak));
  };
  const std::optional<int64_t> peak = HONE_TRY(add(std::nullopt));
  if (!peak || memory == 0) return all;
  int64_t limit = *peak <= memory ? memory / 2 : memory;
  for (int round = 0; round < kMemoryRounds && limit > 0; ++round, limit = limit / 4 * 3)
    if (*peak > limit && !HONE_TRY(add(limit))) break;
  return all;
}

Result<std::vector<ShardedStage>> StageSharder::ways(const StageSource& source,
                                                     const std::vector<bool>& is_inside,
                                                     const MeshRef& mesh, int64_t memory,
                                                     std::span<const int32_t> devices) {
  if (mesh->device_count() == 1) {
    if (source.says_something()) HONE_TRY(stage_graph(source, is_inside, mesh));
    const std::vector<double>& seconds =
        devices.empty() ? source.seconds : source.seconds_on[system_.device(devices[0]).target];
    return std::vector<ShardedStage>{
        {.mesh = mesh,
         .facts = facts_of_stage(source, is_inside, seconds, whole_bytes_of(source.graph))}};
  }
  Graph graph = HONE_TRY(stage_graph(source, is_inside, mesh));
  const MeshPlace place = place_of(*mesh, devices);
  const std::string key =
      fmt::format("{}\n{}\n{}", place_text(*mesh, place), memory, text_without_names(graph));
  const auto [known, is_new] = known_.try_emplace(key);
  if (is_new) known->second = HONE_TRY(divisions(graph, mesh, memory, place));
  std::vector<ShardedStage> all;
  for (const Division& one : known->second)
    all.push_back(sharded(source, is_inside, mesh, graph, one));
  return all;
}

Result<ShardedStage> StageSharder::planned(const StageSource& source,
                                           const std::vector<bool>& is_inside, const MeshRef& mesh,
                                           const ShardPlan& plan,
                                           std::span<const int32_t> devices) {
  if (mesh->device_count() == 1) return HONE_TRY(ways(source, is_inside, mesh, 0, devices))[0];
  const Graph said =
      HONE_TRY(with_shard_plan(HONE_TRY(stage_graph(source, is_inside, mesh)), plan));
  std::vector<Division> all = HONE_TRY(divisions(said, mesh, 0, place_of(*mesh, devices)));
  if (all.empty()) return bad_input("devices cannot divide a stage as it says").at(plan.file);
  if (is_all_stated(said)) all[0].said = std::make_shared<const Shardings>(*said.shardings());
  return sharded(source, is_inside, mesh, said, all[0]);
}

}  // namespace hone
