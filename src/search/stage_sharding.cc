#include "search/stage_sharding.h"

#include <algorithm>
#include <set>

#include "assign/solve.h"
#include "ir/graph_copy.h"
#include "ir/op_def.h"
#include "ir/op_facts.h"
#include "ir/text.h"
#include "search/shard_problem.h"
#include "shard/shard_subject.h"

namespace hone {
namespace {

constexpr double kMostSeconds = 0.5;  // of one search
constexpr int kMemoryRounds = 4;

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

}  // namespace

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
  made.seconds = HONE_TRY(seconds_of_nodes(batch.graph, system, costs, cancel));
  made.users = users_of_values(made.graph);
  for (uint32_t i = 0; i < made.graph.value_count(); ++i)
    made.values.emplace(made.graph.name(ValueId{i}), ValueId{i});
  return made;
}

Result<Graph> stage_graph(const Graph& source, const std::vector<bool>& is_inside) {
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

ShardPrices& StageSharder::prices(const MeshRef& mesh) {
  std::unique_ptr<ShardPrices>& made = prices_[mesh_text(*mesh)];
  if (made == nullptr) made = std::make_unique<ShardPrices>(system_, costs_, mesh, cancel_);
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
                                                                    int64_t memory) {
  ShardProblem problem = HONE_TRY(shard_problem(
      graph, mesh, prices(mesh), {.counts_copies = memory > 0, .exchanges_in_loops = false}));
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
                                                     const MeshRef& mesh, int64_t memory) {
  if (mesh->device_count() == 1)
    return std::vector<ShardedStage>{
        {.mesh = mesh,
         .facts = facts_of_stage(source, is_inside, source.seconds, whole_bytes_of(source.graph))}};
  Graph graph = HONE_TRY(stage_graph(source.graph, is_inside));
  const std::string key =
      fmt::format("{}\n{}\n{}", mesh_text(*mesh), memory, text_without_names(graph));
  const auto [known, is_new] = known_.try_emplace(key);
  if (is_new) known->second = HONE_TRY(divisions(graph, mesh, memory));
  std::vector<ShardedStage> all;
  for (const Division& one : known->second)
    all.push_back(sharded(source, is_inside, mesh, graph, one));
  return all;
}

Result<ShardedStage> StageSharder::planned(const StageSource& source,
                                           const std::vector<bool>& is_inside, const MeshRef& mesh,
                                           const ShardPlan& plan) {
  if (mesh->device_count() == 1) return HONE_TRY(ways(source, is_inside, mesh, 0))[0];
  const Graph said =
      HONE_TRY(with_shard_plan(HONE_TRY(stage_graph(source.graph, is_inside)), plan));
  std::vector<Division> all = HONE_TRY(divisions(said, mesh, 0));
  if (all.empty()) return bad_input("devices cannot divide a stage as it says").at(plan.file);
  if (is_all_stated(said)) all[0].said = std::make_shared<const Shardings>(*said.shardings());
  return sharded(source, is_inside, mesh, said, all[0]);
}

}  // namespace hone
