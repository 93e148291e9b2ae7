#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost/cost.h"
#include "search/pipeline_schedule.h"
#include "search/placed_graph.h"
#include "target/system.h"

// A graph as a pipeline: its nodes are divided into stages, each on devices of its own, and the
// micro-batches of a batch pass them one behind the other. A training step goes forward and back,
// and adds up its gradients; the result is that of one device.

namespace hone {

// The decisions, as a text that people read and edit:
//
//   pipeline 4 micro-batches, 1f1b
//   batch x
//   stage on 0 = %h %a
//   stage on 1 2 = %y
//
// Nodes are those of a micro-batch (shard/micro_batches.h), by the names of their first results.
struct PipelinePlan {
  struct Stage {
    std::vector<int32_t> devices = {};  // which take turns with the micro-batches
    std::vector<std::string> nodes = {};
    int64_t line = 0;
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

std::string print(const PipelinePlan& plan);
Result<PipelinePlan> parse_pipeline_plan(std::string_view text, std::string_view file);

struct PipelineOptions {
  int32_t stages = 0;                             // 0: as many as are best
  int32_t micro_batches = 0;                      // 0: as many as are best
  std::optional<PipelineSchedule> schedule = {};  // none: the best one
  std::vector<std::string> batch = {};            // PipelinePlan::batch
  int64_t memory = 0;  // bytes that a device may use; 0: those that the System's devices have
  const CancelToken* cancel = nullptr;
};

// A choice that was simulated.
struct PipelineCandidate {
  int32_t stages = 1;
  int32_t micro_batches = 1;
  PipelineSchedule schedule = PipelineSchedule::gpipe;
  PipelineTimes times = {};
  bool fits = true;  // the memory of a device
};

struct ChosenPipeline {
  PipelinePlan plan = {};
  PipelineTimes times = {};
  double one_device = 0;  // seconds of the step
  std::vector<PipelineCandidate> candidates = {};
};

// The stages, micro-batches and schedule of the shortest step that fits, on all devices of the
// system. Where nobody asks for a number of stages, one device alone is a choice, too. `costs` are
// of its targets. Static graphs. Errors: nothing fits the memory, or the batch cannot be divided.
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

// The graph that all devices compute together, and the programs of all of them.
struct PipelinePrograms {
  Graph graph = Graph();
  PlacedPrograms programs = {};
};
// Error: the plan is not of this graph, or for devices that the system does not have.
Result<PipelinePrograms> pipeline_programs(const Graph& graph, const PipelinePlan& plan,
                                           const System& system,
                                           std::span<const std::shared_ptr<const Cost>> costs,
                                           const CancelToken* cancel = nullptr);

}  // namespace hone
