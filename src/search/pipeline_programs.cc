#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/text.h"
#include "cost/system_timeline.h"
#include "ir/op_facts.h"
#include "planner/planner.h"
#include "program/lower/join.h"
#include "program/lower/lower.h"
#include "rewrite/prepare.h"
#include "search/pipeline.h"
#include "search/pipeline_index.h"
#include "search/pipeline_layers.h"
#include "shard/cut.h"

namespace hone {
namespace {

constexpr int32_t kNoStage = -1;

// The stage of each node of a micro-batch that is computed.
Result<std::vector<int32_t>> stages_of_plan(const Graph& graph, const PipelinePlan& plan) {
  std::map<std::string_view, NodeId> by_name;
  for (const NodeId n : graph.nodes())
    if (!is_leaf(graph.opcode(n))) by_name.emplace(graph.name(graph.result(n)), n);
  std::vector<int32_t> stage_of(graph.node_count(), kNoStage);
  for (size_t s = 0; s < plan.stages.size(); ++s)
    for (const std::string& node : plan.stages[s].nodes) {
      const auto found = by_name.find(node);
      if (found == by_name.end())
        return bad_input("nothing that a micro-batch computes is called '{}'", excerpt(node))
            .at(fmt::format("{}:{}", plan.file, plan.stages[s].line))
            .with_hint("the pipeline is of another graph, or of another number of micro-batches");
      stage_of[found->second.index] = static_cast<int32_t>(s);
    }
  for (const auto& [name, n] : by_name)
    if (stage_of[n.index] == kNoStage)
      return bad_input("no stage computes '{}'", excerpt(name)).at(plan.file);
  return stage_of;
}

// The merged graph as tasks: steps that a device computes without waiting in between.
class PipelineSteps {
 public:
  PipelineSteps(const MicroBatches& all, std::span<const LayerPart> parts,
                std::span<const int32_t> stage_of, const PipelineShape& shape)
      : all_(all),
        graph_(all.graph),
        parts_(parts),
        stage_of_(stage_of),
        shape_(shape),
        task_(graph_.node_count()) {}

  // The device of each node of the merged graph.
  std::vector<int32_t> devices() {
    const std::vector<bool> live = live_nodes(graph_);
    std::vector<int32_t> device_of(graph_.node_count(), 0);
    std::vector<std::optional<Task>> first_user(graph_.node_count());
    for (size_t i = graph_.node_count(); i-- > 0;) {
      const NodeId n = {static_cast<uint32_t>(i)};
      if (!live[i]) continue;
      task_[i] = own_task(n);
      // Rows of an input, and what the plan need not name, are made where they are needed.
      if (!task_[i]) task_[i] = first_user[i];
      if (!task_[i]) continue;
      device_of[i] = task_[i]->device;
      for (const ValueId v : graph_.operands(n))
        if (!v.is_none()) first_user[graph_.producer(v).index] = task_[i];
    }
    return device_of;
  }

  // In an order in which each stands behind those that it waits for.
  Result<std::vector<std::vector<NodeId>>> steps(
      const std::vector<std::vector<PipelineTask>>& orders) const {
    std::vector<std::vector<NodeId>> steps;
    std::map<PipelineTask, std::vector<NodeId>, Before> nodes;
    std::vector<std::vector<NodeId>> late;
    for (const NodeId n : graph_.nodes()) {
      if (is_leaf(graph_.opcode(n)) || !task_[n.index]) continue;
      if (task_[n.index]->is_first)
        steps.push_back({n});
      else if (task_[n.index]->is_last)
        late.push_back({n});
      else
        nodes[task_[n.index]->task].push_back(n);
    }
    HONE_TRY(add_tasks(orders, nodes, steps));
    steps.insert(steps.end(), late.begin(), late.end());
    return steps;
  }

 private:
  struct Before {
    bool operator()(const PipelineTask& a, const PipelineTask& b) const {
      return std::tuple(a.kind, a.stage, a.batch) < std::tuple(b.kind, b.stage, b.batch);
    }
  };
  struct Task {
    int32_t device = 0;
    bool is_first = false;  // before all micro-batches
    bool is_last = false;   // behind all of them
    PipelineTask task = {};
  };

  std::optional<Task> own_task(NodeId n) const {
    const MicroBatches::Origin& origin = all_.origins[n.index];
    const int32_t stage = stage_of_[origin.node.index];
    if (is_leaf(graph_.opcode(n)) || stage == kNoStage) return std::nullopt;
    const int32_t main = shape_.devices_of[index_at(stage)][0];
    if (origin.batch == MicroBatches::kShared)
      return Task{main, !origin.is_after_all, origin.is_after_all, {}};
    const LayerPart part = parts_[origin.node.index];
    const PipelineTask task = {
        part == LayerPart::backward ? PipelineTask::Kind::backward : PipelineTask::Kind::forward,
        stage, origin.batch};
    return Task{shape_.device(task), false, false, task};
  }

  // Tasks, device by device in their orders, as soon as what they need is there.
  Status add_tasks(const std::vector<std::vector<PipelineTask>>& orders,
                   const std::map<PipelineTask, std::vector<NodeId>, Before>& nodes,
                   std::vector<std::vector<NodeId>>& steps) const {
    std::vector<size_t> next(orders.size(), 0);
    std::set<PipelineTask, Before> done;
    const auto is_ready = [&](const PipelineTask& task) {
      const auto found = nodes.find(task);
      if (found == nodes.end()) return true;
      for (const NodeId n : found->second)
        for (const ValueId v : graph_.operands(n)) {
          if (v.is_none()) continue;
          const std::optional<Task>& maker = task_[graph_.producer(v).index];
          if (is_leaf(graph_.opcode(graph_.producer(v))) || !maker || maker->is_first) continue;
          if (maker->is_last || (maker->task != task && !done.contains(maker->task))) return false;
        }
      return true;
    };
    for (bool moves = true; moves;) {
      moves = false;
      for (size_t d = 0; d < orders.size(); ++d)
        for (; next[d] < orders[d].size() && is_ready(orders[d][next[d]]); ++next[d]) {
          const PipelineTask& task = orders[d][next[d]];
          done.insert(task);
          if (const auto found = nodes.find(task); found != nodes.end())
            steps.push_back(found->second);
          moves = true;
        }
    }
    for (size_t d = 0; d < orders.size(); ++d)
      if (next[d] < orders[d].size())
        return bad_input("stage {} waits for a stage that waits for it", orders[d][next[d]].stage)
            .with_hint("a node of a stage reads what a later stage makes");
    return {};
  }

  const MicroBatches& all_;
  const Graph& graph_;
  const std::span<const LayerPart> parts_;
  const std::span<const int32_t> stage_of_;
  const PipelineShape& shape_;
  std::vector<std::optional<Task>> task_;  // by node
};

Status check_devices_of(const PipelinePlan& plan, const System& system) {
  for (const PipelinePlan::Stage& stage : plan.stages)
    for (const int32_t device : stage.devices)
      if (device >= system.device_count())
        return bad_input("there is no device {}; '{}' has {}", device, excerpt(system.name),
                         system.device_count())
            .at(fmt::format("{}:{}", plan.file, stage.line))
            .with_hint(fmt::format("the pipeline is for {} devices", plan.devices()));
  return {};
}

// A plan, read for a graph.
struct Planned {
  Graph graph;  // prepared
  BatchInputs batch = {};
  MicroBatch first = {};
  std::vector<int32_t> stage_of = {};  // of each node of the micro-batch
  std::vector<LayerPart> parts = {};
  PipelineShape shape = {};
};

Result<Planned> read_for(const Graph& given, const PipelinePlan& plan, const System& system) {
  HONE_TRY(check_devices_of(plan, system));
  Planned made = {.graph = HONE_TRY(prepare(given))};
  made.batch = HONE_TRY(batch_inputs(made.graph, made.graph.input_types(), plan.batch));
  made.first = HONE_TRY(first_micro_batch(made.graph, made.batch, plan.micro_batches));
  made.stage_of = HONE_TRY(stages_of_plan(made.first.graph, plan));
  made.parts = parts_of_nodes(made.first, made.graph);
  made.shape.micro_batches = plan.micro_batches;
  for (const PipelinePlan::Stage& stage : plan.stages)
    made.shape.devices_of.push_back(stage.devices);
  made.shape.has_backward = std::ranges::find(made.parts, LayerPart::backward) != made.parts.end();
  return made;
}

// Leaves are where they are needed first.
std::vector<int> with_leaves(const Graph& graph, std::vector<int32_t> stage_of) {
  std::vector<int32_t> first(graph.node_count(), INT32_MAX);
  for (size_t i = graph.node_count(); i-- > 0;) {
    const NodeId n = {static_cast<uint32_t>(i)};
    if (stage_of[i] == kNoStage) stage_of[i] = first[i] == INT32_MAX ? 0 : first[i];
    for (const ValueId v : graph.operands(n)) {
      if (v.is_none()) continue;
      int32_t& one = first[graph.producer(v).index];
      one = std::min(one, stage_of[i]);
    }
  }
  return {stage_of.begin(), stage_of.end()};
}

// The merged graph, the device of each of its nodes, and an order of them that does not wait for
// itself.
struct MergedSteps {
  MicroBatches all = {};
  std::vector<int32_t> device_of = {};
  std::vector<std::vector<PipelineTask>> orders = {};  // by device
  std::vector<std::vector<NodeId>> steps = {};
};

Result<MergedSteps> merged_steps(const Planned& planned, const PipelinePlan& plan,
                                 int32_t devices) {
  std::vector<int32_t> lanes(planned.first.graph.node_count(), 1);
  for (size_t i = 0; i < lanes.size(); ++i)
    if (const int32_t stage = planned.stage_of[i]; stage != kNoStage)
      lanes[i] = static_cast<int32_t>(planned.shape.devices_of[index_at(stage)].size());
  MergedSteps made;
  made.all = HONE_TRY(micro_batches(planned.graph, planned.batch, plan.micro_batches, lanes));
  PipelineSteps steps(made.all, planned.parts, planned.stage_of, planned.shape);
  made.device_of = steps.devices();
  made.orders = HONE_TRY(pipeline_orders(planned.shape, plan.schedule, devices));
  made.steps = HONE_TRY(steps.steps(made.orders));
  return made;
}

}  // namespace

Result<JudgedPipeline> judged_pipeline(const Graph& given, const PipelinePlan& plan,
                                       const System& system,
                                       std::span<const std::shared_ptr<const Cost>> costs,
                                       const CancelToken* cancel) {
  const Planned planned = HONE_TRY(read_for(given, plan, system));
  const Graph& batch = planned.first.graph;
  JudgedPipeline made;
  const std::vector<double> seconds = HONE_TRY(seconds_of_nodes(batch, system, costs, cancel));
  made.stages = facts_of_stages(batch, planned.parts, with_leaves(batch, planned.stage_of), seconds,
                                planned.shape.stages());
  // Times are of stages that wait in a chain; the merged graph tells whether these do.
  const auto devices = static_cast<int32_t>(system.device_count());
  made.orders = HONE_TRY(merged_steps(planned, plan, devices)).orders;
  made.times = HONE_TRY(simulate_pipeline(planned.shape, plan.schedule, made.stages, system));
  for (const double one : HONE_TRY(seconds_of_nodes(planned.graph, system, costs, cancel)))
    made.one_device += one;
  for (const PipelineSchedule schedule : kPipelineSchedules) {
    if (schedule == plan.schedule) continue;
    // Not all stages go in all orders.
    Result<PipelineTimes> times = simulate_pipeline(planned.shape, schedule, made.stages, system);
    if (times.ok())
      made.others.push_back({.stages = planned.shape.stages(),
                             .micro_batches = plan.micro_batches,
                             .schedule = schedule,
                             .times = *std::move(times)});
  }
  return made;
}

Result<PipelinePrograms> pipeline_programs(const Graph& given, const PipelinePlan& plan,
                                           const System& system,
                                           std::span<const std::shared_ptr<const Cost>> costs,
                                           const CancelToken* cancel) {
  const Planned planned = HONE_TRY(read_for(given, plan, system));
  const auto devices = static_cast<int32_t>(system.device_count());
  const MergedSteps merged = HONE_TRY(merged_steps(planned, plan, devices));
  const Graph& all = merged.all.graph;
  const GraphCut cut = HONE_TRY(cut_graph(all, merged.device_of, devices, merged.steps));
  std::vector<Program> pieces;
  for (const CutPiece& piece : cut.pieces) {
    const size_t target = system.device(piece.device).target;
    const Graph ready = HONE_TRY(prepare(piece.graph));
    const Plan kernels =
        HONE_TRY(complete(ready, {}, system.targets[target], *costs[target], {.cancel = cancel}));
    pieces.push_back(HONE_TRY(lower(ready, kernels, system.targets[target], cancel)));
  }
  PipelinePrograms made = {.graph = all};
  made.programs = {HONE_TRY(join_pieces(all, cut, pieces)), cut.output_device};
  return made;
}

}  // namespace hone
