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
#include "search/auto_shard.h"
#include "search/pipeline.h"
#include "search/pipeline_index.h"
#include "search/pipeline_layers.h"
#include "search/stage_nodes.h"
#include "search/stage_sharding.h"
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
            .with_hint(
                "the pipeline is of another graph, another batch or another number of "
                "micro-batches");
      stage_of[found->second.index] = static_cast<int32_t>(s);
    }
  for (const auto& [name, n] : by_name)
    if (stage_of[n.index] == kNoStage)
      return bad_input("no stage computes '{}'", excerpt(name)).at(plan.file);
  return stage_of;
}

// Nodes that the devices of a stage compute without waiting for other stages in between.
struct PipelineStep {
  int32_t stage = 0;
  std::vector<NodeId> nodes = {};  // of the merged graph
};

// The nodes of the merged graph as steps.
class PipelineSteps {
 public:
  PipelineSteps(const MicroBatches& all, std::span<const LayerPart> parts,
                std::span<const int32_t> stage_of)
      : all_(all),
        graph_(all.graph),
        parts_(parts),
        stage_of_(stage_of),
        task_(graph_.node_count()) {
    for (const NodeId n : graph_.nodes()) task_[n.index] = own_task(n);
    // Rows of an input that the graph gives out belong to no stage: the first one joins them.
    for (const ValueId v : graph_.outputs())
      if (const NodeId n = graph_.producer(v); !task_[n.index] && !is_leaf(graph_.opcode(n)))
        task_[n.index] = Task{.is_first = true};
  }

  // None: the node is made where it is needed.
  std::optional<int32_t> stage(NodeId n) const {
    return task_[n.index] ? std::optional(task_[n.index]->task.stage) : std::nullopt;
  }

  // In an order in which each stands behind those that it waits for.
  Result<std::vector<PipelineStep>> steps(
      const std::vector<std::vector<PipelineTask>>& orders) const {
    std::vector<PipelineStep> steps, late;
    std::map<PipelineTask, std::vector<NodeId>, Before> nodes;
    for (const NodeId n : graph_.nodes()) {
      if (!task_[n.index]) continue;
      if (task_[n.index]->is_first)
        steps.push_back({task_[n.index]->task.stage, {n}});
      else if (task_[n.index]->is_last)
        late.push_back({task_[n.index]->task.stage, {n}});
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
    bool is_first = false;  // before all micro-batches
    bool is_last = false;   // behind all of them
    PipelineTask task = {};
  };

  std::optional<Task> own_task(NodeId n) const {
    const MicroBatches::Origin& origin = all_.origins[n.index];
    const int32_t stage = stage_of_[origin.node.index];
    if (is_leaf(graph_.opcode(n)) || stage == kNoStage) return std::nullopt;
    if (origin.batch == MicroBatches::kShared)
      return Task{!origin.is_after_all, origin.is_after_all, {.stage = stage}};
    const LayerPart part = parts_[origin.node.index];
    return Task{
        false,
        false,
        {part == LayerPart::backward ? PipelineTask::Kind::backward : PipelineTask::Kind::forward,
         stage, origin.batch}};
  }

  // Tasks, device by device in their orders, as soon as what they need is there.
  Status add_tasks(const std::vector<std::vector<PipelineTask>>& orders,
                   const std::map<PipelineTask, std::vector<NodeId>, Before>& nodes,
                   std::vector<PipelineStep>& steps) const {
    std::vector<size_t> next(orders.size(), 0);
    std::set<PipelineTask, Before> done;
    const auto is_ready = [&](const PipelineTask& task) {
      const auto found = nodes.find(task);
      if (found == nodes.end()) return true;
      for (const NodeId n : found->second)
        for (const ValueId v : graph_.operands(n)) {
          if (v.is_none()) continue;
          const std::optional<Task>& maker = task_[graph_.producer(v).index];
          if (!maker || maker->is_first) continue;
          if (maker->is_last || (maker->task != task && !done.contains(maker->task))) return false;
        }
      return true;
    };
    for (bool moves = true; moves;) {
      moves = false;
      for (size_t d = 0; d < orders.size(); ++d)
        for (; next[d] < orders[d].size() && is_ready(orders[d][next[d]]); ++next[d]) {
          const PipelineTask& task = orders[d][next[d]];
          moves = true;
          // The devices of a stage have one order.
          if (!done.insert(task).second) continue;
          if (const auto found = nodes.find(task); found != nodes.end())
            steps.push_back({task.stage, found->second});
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
  StageSource source = {};             // a micro-batch
  std::vector<int32_t> stage_of = {};  // of each of its nodes
  PipelineShape shape = {};
  std::vector<ShardedStage> stages = {};
  std::string file = {};  // of the plan

  std::vector<StageFacts> facts() const {
    std::vector<StageFacts> all;
    for (const ShardedStage& one : stages) all.push_back(one.facts);
    return all;
  }
};

// An error of what a stage says of its values names the stage, unless it has a place.
Result<ShardedStage> stage_of_plan(StageSharder& sharder, const Planned& planned,
                                   const PipelinePlan& plan, int32_t number) {
  const PipelinePlan::Stage& stage = plan.stages[index_at(number)];
  const MeshRef mesh = stage.mesh();
  std::vector<bool> is_inside;
  for (const int32_t one : planned.stage_of) is_inside.push_back(one == number);
  ShardPlan shards = stage.shards;
  shards.file = plan.file;
  shards.mesh = mesh;
  if (mesh->device_count() != std::ssize(stage.devices))
    return bad_input("the stage has {} devices, and its mesh {} has {}", stage.devices.size(),
                     mesh_text(*mesh), mesh->device_count())
        .at(fmt::format("{}:{}", plan.file, stage.line));
  HONE_TRY(check_searched_axes(*mesh));
  Result<ShardedStage> made =
      sharder.planned(planned.source, is_inside, mesh, shards, stage.devices);
  if (made.ok()) return made;
  return std::move(made).error().within(fmt::format("stage {}", number));
}

Result<Planned> read_for(const Graph& given, const PipelinePlan& plan, const System& system,
                         std::span<const std::shared_ptr<const Cost>> costs, StageSharder& sharder,
                         const CancelToken* cancel) {
  HONE_TRY(check_can_pipeline(given));
  HONE_TRY(check_devices_of(plan, system));
  Planned made = {.graph = HONE_TRY(prepared_for_stages(given)), .file = plan.file};
  made.batch = HONE_TRY(batch_inputs(made.graph, made.graph.input_types(), plan.batch));
  const MicroBatch first = HONE_TRY(first_micro_batch(made.graph, made.batch, plan.micro_batches));
  made.stage_of = HONE_TRY(stages_of_plan(first.graph, plan));
  made.source = HONE_TRY(StageSource::make(first, made.graph, system, costs, cancel));
  made.shape.micro_batches = plan.micro_batches;
  for (const PipelinePlan::Stage& stage : plan.stages)
    made.shape.devices_of.push_back(stage.devices);
  const std::vector<LayerPart>& parts = made.source.parts;
  made.shape.has_backward = std::ranges::find(parts, LayerPart::backward) != parts.end();
  for (int32_t s = 0; s < made.shape.stages(); ++s)
    made.stages.push_back(HONE_TRY(stage_of_plan(sharder, made, plan, s)));
  return made;
}

// The merged graph, and an order of its nodes that does not wait for itself.
struct MergedSteps {
  MicroBatches all = {};
  std::vector<std::optional<int32_t>> stage_of = {};   // of each of its nodes
  std::vector<std::vector<PipelineTask>> orders = {};  // by device
  std::vector<PipelineStep> steps = {};
};

Result<MergedSteps> merged_steps(const Planned& planned, PipelineSchedule schedule,
                                 int32_t devices) {
  MergedSteps made;
  made.all = HONE_TRY(micro_batches(planned.graph, planned.batch, planned.shape.micro_batches));
  const PipelineSteps steps(made.all, planned.source.parts, planned.stage_of);
  for (const NodeId n : made.all.graph.nodes()) made.stage_of.push_back(steps.stage(n));
  Result<std::vector<std::vector<PipelineTask>>> orders =
      pipeline_orders(planned.shape, schedule, devices);
  if (!orders.ok()) return std::move(orders).error().at(planned.file);
  made.orders = *std::move(orders);
  made.steps = HONE_TRY(steps.steps(made.orders));
  return made;
}

Result<PipelinePrograms> programs_of(const Planned& planned, const MergedSteps& merged,
                                     const System& system,
                                     std::span<const std::shared_ptr<const Cost>> costs,
                                     StageSharder& sharder, const CancelToken* cancel) {
  const auto devices = static_cast<int32_t>(system.device_count());
  StageNodes nodes(merged.all, merged.stage_of, planned.source, planned.stages,
                   planned.shape.devices_of, sharder);
  for (const PipelineStep& step : merged.steps) HONE_TRY(nodes.add(step.stage, step.nodes));
  PipelinePrograms made;
  const std::vector<int32_t> device_of =
      HONE_TRY(nodes.finish(made.graph, made.inputs, made.outputs));
  const GraphCut cut = HONE_TRY(cut_graph(made.graph, device_of, devices, nodes.steps()));
  std::vector<Program> pieces;
  for (const CutPiece& piece : cut.pieces) {
    const size_t target = system.device(piece.device).target;
    const Graph ready = HONE_TRY(prepare(piece.graph));
    const Plan kernels =
        HONE_TRY(complete(ready, {}, system.targets[target], *costs[target], {.cancel = cancel}));
    pieces.push_back(HONE_TRY(lower(ready, kernels, system.targets[target], cancel)));
  }
  made.programs = {HONE_TRY(join_pieces(made.graph, cut, pieces)), cut.output_device};
  return made;
}

}  // namespace

std::vector<int64_t> totals(std::span<const DeviceMemory> devices) {
  std::vector<int64_t> all;
  for (const DeviceMemory& one : devices) all.push_back(one.total());
  return all;
}

Result<JudgedPipeline> judged_pipeline(const Graph& given, const PipelinePlan& plan,
                                       const System& system,
                                       std::span<const std::shared_ptr<const Cost>> costs,
                                       const CancelToken* cancel) {
  StageSharder sharder(system, costs, cancel);
  const Planned planned = HONE_TRY(read_for(given, plan, system, costs, sharder, cancel));
  JudgedPipeline made = {.stages = planned.facts()};
  const auto devices = static_cast<int32_t>(system.device_count());
  // Times are of stages that wait in a chain; the merged graph tells whether these do.
  const auto judged = [&](PipelineSchedule schedule) -> Result<PipelineTimes> {
    const MergedSteps merged = HONE_TRY(merged_steps(planned, schedule, devices));
    if (schedule == plan.schedule) made.orders = merged.orders;
    PipelineTimes times = HONE_TRY(simulate_pipeline(planned.shape, schedule, made.stages, system));
    const PipelinePrograms programs =
        HONE_TRY(programs_of(planned, merged, system, costs, sharder, cancel));
    times.memory = totals(HONE_TRY(programs.memory()));
    return times;
  };
  made.times = HONE_TRY(judged(plan.schedule));
  for (const double one : HONE_TRY(seconds_of_nodes(planned.graph, system, costs, cancel)))
    made.one_device += one;
  for (const PipelineSchedule schedule : kPipelineSchedules) {
    if (schedule == plan.schedule) continue;
    // Not all stages go in all orders.
    Result<PipelineTimes> times = judged(schedule);
    if (times.ok())
      made.others.push_back({.stages = planned.shape.stages(),
                             .micro_batches = plan.micro_batches,
                             .schedule = schedule,
                             .times = *std::move(times)});
    else if (times.error().code() == ErrorCode::interrupted)
      return std::move(times).error();
  }
  return made;
}

Result<PipelinePrograms> pipeline_programs(const Graph& given, const PipelinePlan& plan,
                                           const System& system,
                                           std::span<const std::shared_ptr<const Cost>> costs,
                                           const CancelToken* cancel) {
  StageSharder sharder(system, costs, cancel);
  const Planned planned = HONE_TRY(read_for(given, plan, system, costs, sharder, cancel));
  const auto devices = static_cast<int32_t>(system.device_count());
  const MergedSteps merged = HONE_TRY(merged_steps(planned, plan.schedule, devices));
  return programs_of(planned, merged, system, costs, sharder, cancel);
}

Result<std::vector<DeviceMemory>> PipelinePrograms::memory() const {
  const std::vector<uint32_t>& numbers = programs.programs.of_device;
  std::vector<DeviceMemory> all;
  for (const uint32_t number : numbers)
    all.push_back(HONE_TRY(
        device_memory(programs.programs.programs[number], static_cast<int32_t>(numbers.size()))));
  return all;
}

std::vector<Tensor> PipelinePrograms::parts(std::span<const Tensor> whole) const {
  std::vector<Tensor> made;
  for (const PipelinePart& one : inputs)
    made.push_back(part_of(whole[one.whole], one.port, one.place));
  return made;
}

std::vector<Tensor> PipelinePrograms::whole(std::span<const Tensor> made) const {
  std::vector<Tensor> all;
  for (size_t i = 0; i < outputs.size();) {
    size_t end = i;
    while (end < outputs.size() && outputs[end].whole == outputs[i].whole) ++end;
    all.push_back(whole_of(made.subspan(i, end - i), outputs[i].port));
    i = end;
  }
  return all;
}

}  // namespace hone
