#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost/cost.h"
#include "program/device_memory.h"
#include "runtime/mesh_model.h"
#include "search/pipeline_schedule.h"
#include "search/placed_graph.h"
#include "shard/shard_plan.h"
#include "target/system.h"

// A graph as a pipeline: its nodes are divided into stages, each on devices of its own, and the
// micro-batches of a batch pass them one behind the other. The devices of a stage are a mesh, which
// divides its values. A training step goes forward and back, and adds up its gradients; the result
// is that of one device.

namespace hone {

// The decisions, as a text that people read and edit:
//
//   pipeline 4 micro-batches, 1f1b
//   batch x
//   stage on 0 = %h %a
//   stage on 1 2 = %y
//   mesh x=2
//   shard %y = [x, -]
//
// Nodes are those of a micro-batch (shard/micro_batches.h), by the names of their first results.
// Behind a stage of several devices may stand a plan of its values (shard/shard_plan.h).
struct PipelinePlan {
  struct Stage {
    std::vector<int32_t> devices = {};  // in the order of the mesh
    std::vector<std::string> nodes = {};
    ShardPlan shards = {};  // prices choose what it leaves open; no mesh: one axis
    int64_t line = 0;

    MeshRef mesh() const;
  };
  std::string file = {};  // for errors
  int32_t micro_batches = 1;
  PipelineSchedule schedule = PipelineSchedule::one_forward;
  std::vector<std::string> batch = {};  // inputs that have rows (batch_inputs()); none: as it finds
  std::vector<Stage> stages = {};

  int32_t devices() const;
};

inline constexpr int64_t kMaxPipelinePlan = int64_t{64} << 20;  // bytes
inline constexpr int32_t kMostMicroBatches = 256;

// "1 stage", "4 micro-batches, 1f1b"
std::string stages_of(const PipelinePlan& plan);
std::string turns_of(const PipelinePlan& plan);

std::string print(const PipelinePlan& plan);
Result<PipelinePlan> parse_pipeline_plan(std::string_view text, std::string_view file);

// Unsupported: sizes are symbols, or the graph itself says what devices exchange.
Status check_can_pipeline(const Graph& graph);

// The mesh of each stage: the one that is asked for, or else that of the graph, which says itself
// how devices divide its values. Null: neither is there.
Result<MeshRef> mesh_of_stages(const Graph& graph, const MeshRef& asked);

struct PipelineOptions {
  int32_t stages = 0;                             // 0: as many as are best
  int32_t micro_batches = 0;                      // 0: as many as are best
  std::optional<PipelineSchedule> schedule = {};  // none: the best one
  std::vector<std::string> batch = {};            // PipelinePlan::batch
  // The mesh of each stage; null: that of the graph, or one axis of as many devices as are best.
  MeshRef mesh = nullptr;
  int64_t memory = 0;  // bytes that a device may use; 0: those that the System's devices have
  // After these, no stage of several devices is tried any more, if some pipeline fits; 0: no limit.
  // Each number of micro-batches has its share.
  double seconds = 10;
  const CancelToken* cancel = nullptr;
};

// A choice that was simulated.
struct PipelineCandidate {
  int32_t stages = 1;
  int32_t micro_batches = 1;
  PipelineSchedule schedule = PipelineSchedule::gpipe;
  PipelineTimes times = {};
  bool fits = true;  // the memory of a device; it is a sum of parts, unless its programs are known
};

struct ChosenPipeline {
  PipelinePlan plan = {};
  PipelineTimes times = {};
  double one_device = 0;  // seconds of the step
  std::vector<PipelineCandidate> candidates = {};
};

// The stages, micro-batches and schedule of the shortest step whose programs fit. They take all
// devices of the system, or if nobody asks for a number of stages, as many as are best. `costs` are
// of its targets. Static graphs. Errors: nothing fits the memory, or the batch cannot be
// divided.
Result<ChosenPipeline> choose_pipeline(const Graph& graph, const System& system,
                                       std::span<const std::shared_ptr<const Cost>> costs,
                                       const PipelineOptions& options = {});

// How a plan works out: the work of each stage for a micro-batch, the order of each device, and the
// step that they come to.
struct JudgedPipeline {
  std::vector<StageFacts> stages = {};
  std::vector<std::vector<PipelineTask>> orders = {};  // by device
  PipelineTimes times = {};
  double one_device = 0;                       // seconds of the step
  std::vector<PipelineCandidate> others = {};  // the same stages in other orders
};
// Errors as those of pipeline_programs().
Result<JudgedPipeline> judged_pipeline(const Graph& graph, const PipelinePlan& plan,
                                       const System& system,
                                       std::span<const std::shared_ptr<const Cost>> costs,
                                       const CancelToken* cancel = nullptr);

// A part that a device takes or gives of a tensor of the whole graph.
struct PipelinePart {
  size_t whole = 0;  // number of the input or the output
  MeshPort port = {};
  int64_t place = 0;  // of the device in the mesh of its stage
};

// The graph that all devices compute together, each its parts, and the programs of all of them.
struct PipelinePrograms {
  Graph graph = Graph();
  PlacedPrograms programs = {};
  std::vector<PipelinePart> inputs = {};   // by input of the graph
  std::vector<PipelinePart> outputs = {};  // by output

  // The tensors of the graph, from those of the whole graph; and back.
  std::vector<Tensor> parts(std::span<const Tensor> inputs) const;
  std::vector<Tensor> whole(std::span<const Tensor> outputs) const;

  Result<std::vector<DeviceMemory>> memory() const;  // by device
};
// The bytes that each device needs.
std::vector<int64_t> totals(std::span<const DeviceMemory> devices);
// Error: the plan is not of this graph, or for devices that the system does not have.
Result<PipelinePrograms> pipeline_programs(const Graph& graph, const PipelinePlan& plan,
                                           const System& system,
                                           std::span<const std::shared_ptr<const Cost>> costs,
                                           const CancelToken* cancel = nullptr);

}  // namespace hone
