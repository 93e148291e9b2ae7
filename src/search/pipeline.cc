#include "search/pipeline.h"

#include <algorithm>

#include "base/text.h"
#include "cost/system_timeline.h"
#include "ir/op_facts.h"
#include "rewrite/prepare.h"
#include "search/pipeline_index.h"
#include "search/pipeline_layers.h"
#include "target/topology.h"

namespace hone {
namespace {

constexpr int kLayersTried = 24;
constexpr int kChunks = 2;          // stages that a device has, interleaved
constexpr int32_t kMostTried = 64;  // micro-batches

struct Speed {
  double bytes_per_second = 0;
  double latency = 0;
};

// The speed of a message between neighbours.
Speed speed_of(const System& system) {
  if (system.device_count() < 2) return {kMaxBandwidth, 0};
  const Topology topology(system);
  Speed made = {kMaxBandwidth, 0};
  for (const uint32_t link : topology.route(0, 1)) {
    made.bytes_per_second =
        std::min(made.bytes_per_second, topology.links()[link].bytes_per_second);
    made.latency += topology.links()[link].latency;
  }
  return made;
}

// A micro-batch as layers.
struct Layered {
  MicroBatch batch = {};
  std::vector<LayerPart> parts = {};
  std::vector<double> seconds = {};  // of nodes
  std::vector<int> layers = {};
  LayerChain chain = {};
  bool has_backward = false;
};

class Chooser {
 public:
  Chooser(const Graph& graph, const System& system,
          std::span<const std::shared_ptr<const Cost>> costs, const PipelineOptions& options)
      : graph_(graph),
        system_(system),
        costs_(costs),
        options_(options),
        devices_(static_cast<int32_t>(system.device_count())),
        speed_(speed_of(system)) {
    limit_ = options.memory;
    for (const DeviceRun& run : system.devices)
      if (options.memory == 0 && run.memory_bytes > 0)
        limit_ = limit_ == 0 ? run.memory_bytes : std::min(limit_, run.memory_bytes);
  }

  Result<ChosenPipeline> run() {
    batch_ = HONE_TRY(batch_inputs(graph_, graph_.input_types(), options_.batch));
    HONE_TRY(time_one_device());
    std::optional<Error> refused;
    for (const int32_t count : counts()) {
      Status good = try_count(count);
      if (!good.ok() && good.error().code() != ErrorCode::unsupported)
        return std::move(good).error();
      if (!good.ok() && !refused) refused = std::move(good).error();
    }
    if (made_.plan.stages.empty()) return nothing_fits(std::move(refused));
    return std::move(made_);
  }

 private:
  std::vector<int32_t> counts() const {
    if (options_.micro_batches > 0) return {options_.micro_batches};
    std::vector<int32_t> all;
    const int64_t most = std::min<int64_t>(batch_.rows, kMostTried);
    for (int32_t count = 1; count <= most; count *= 2)
      if (batch_.rows % count == 0) all.push_back(count);
    for (int32_t count = devices_; count <= most && count <= 4 * devices_; count += devices_)
      if (batch_.rows % count == 0 && std::ranges::find(all, count) == all.end())
        all.push_back(count);
    return all;
  }

  Status time_one_device() {
    const std::vector<double> seconds =
        HONE_TRY(seconds_of_nodes(graph_, system_, costs_, options_.cancel));
    for (const double one : seconds) made_.one_device += one;
    return {};
  }

  Result<Layered> layered(int32_t count) const {
    Layered made = {.batch = HONE_TRY(first_micro_batch(graph_, batch_, count))};
    // Some models are refused only by all micro-batches together.
    if (count > 1) HONE_TRY(micro_batches(graph_, batch_, count));
    const Graph& graph = made.batch.graph;
    made.parts = parts_of_nodes(made.batch, graph_);
    made.seconds = HONE_TRY(seconds_of_nodes(graph, system_, costs_, options_.cancel));
    made.layers = layers_of_nodes(graph, made.parts, made.seconds, kLayersTried);
    made.chain = chain_of(graph, made.parts, made.layers, made.seconds, speed_.bytes_per_second,
                          speed_.latency);
    made.has_backward = std::ranges::find(made.parts, LayerPart::backward) != made.parts.end();
    return made;
  }

  Status try_count(int32_t count) {
    const Layered layered = HONE_TRY(this->layered(count));
    std::vector<StageChoice> choices = best_stages(layered.chain, devices_, count, options_.stages);
    // There all devices have a stage. One of them alone sends nothing.
    if (options_.stages == 0 && devices_ > 1)
      choices.push_back({.stages = {{.end = static_cast<int>(layered.chain.seconds.size())}}});
    for (const StageChoice& choice : choices)
      for (const PipelineSchedule schedule :
           {PipelineSchedule::gpipe, PipelineSchedule::one_forward})
        HONE_TRY(try_stages(layered, count, choice.stages, devices_of(choice.stages), schedule));
    if (devices_ < 2 || count % devices_ != 0 || options_.stages % devices_ != 0) return {};
    const int32_t stages = options_.stages > 0 ? options_.stages : kChunks * devices_;
    for (const StageChoice& choice : best_stages(layered.chain, stages, count, stages)) {
      std::vector<std::vector<int32_t>> devices;
      for (int32_t s = 0; s < stages; ++s) devices.push_back({s % devices_});
      HONE_TRY(try_stages(layered, count, choice.stages, devices, PipelineSchedule::interleaved));
    }
    return {};
  }

  static std::vector<std::vector<int32_t>> devices_of(const std::vector<LayerStage>& stages) {
    std::vector<std::vector<int32_t>> all;
    int32_t next = 0;
    for (const LayerStage& stage : stages) {
      std::vector<int32_t>& own = all.emplace_back();
      for (int i = 0; i < stage.devices; ++i) own.push_back(next++);
    }
    return all;
  }

  Status try_stages(const Layered& layered, int32_t count, const std::vector<LayerStage>& stages,
                    const std::vector<std::vector<int32_t>>& devices, PipelineSchedule schedule) {
    if (options_.schedule && *options_.schedule != schedule) return {};
    if (options_.cancel != nullptr) HONE_TRY(options_.cancel->check());
    const Graph& graph = layered.batch.graph;
    std::vector<int> stage_of;
    for (const int layer : layered.layers)
      stage_of.push_back(static_cast<int>(
          std::ranges::upper_bound(stages, layer, {}, &LayerStage::end) - stages.begin()));
    const std::vector<StageFacts> facts = facts_of_stages(
        graph, layered.parts, stage_of, layered.seconds, static_cast<int>(stages.size()));
    const PipelineShape shape = {devices, count, layered.has_backward};
    PipelineCandidate made = {
        .stages = shape.stages(), .micro_batches = count, .schedule = schedule};
    made.times = HONE_TRY(simulate_pipeline(shape, schedule, facts, system_));
    const int64_t most = *std::ranges::max_element(made.times.memory);
    made.fits = limit_ == 0 || most <= limit_;
    least_ = std::min(least_, most);
    made_.candidates.push_back(made);
    if (!made.fits || (!made_.plan.stages.empty() && made.times.seconds >= made_.times.seconds))
      return {};
    made_.times = made.times;
    made_.plan = plan_of(layered, stage_of, shape, schedule);
    return {};
  }

  PipelinePlan plan_of(const Layered& layered, const std::vector<int>& stage_of,
                       const PipelineShape& shape, PipelineSchedule schedule) const {
    PipelinePlan plan = {
        .micro_batches = shape.micro_batches, .schedule = schedule, .batch = options_.batch};
    for (const auto& devices : shape.devices_of) plan.stages.push_back({.devices = devices});
    const Graph& graph = layered.batch.graph;
    for (const NodeId n : graph.nodes())
      if (layered.parts[n.index] != LayerPart::leaf)
        plan.stages[index_at(stage_of[n.index])].nodes.emplace_back(graph.name(graph.result(n)));
    return plan;
  }

  Error nothing_fits(std::optional<Error> refused) const {
    if (refused && made_.candidates.empty()) return std::move(*refused);
    if (made_.candidates.empty())
      return usage_error("{} devices have no pipeline of {} stages and {} micro-batches", devices_,
                         options_.stages > 0 ? std::to_string(options_.stages) : "any number of",
                         options_.micro_batches > 0 ? std::to_string(options_.micro_batches)
                                                    : "any number of")
          .with_hint(
              "a stage needs a device and a layer; interleaved ones a multiple of the devices");
    return over_limit("no pipeline keeps a device within {}: the least is {}", format_bytes(limit_),
                      format_bytes(least_))
        .with_hint("more devices, more micro-batches or --schedule 1f1b take less");
  }

  const Graph& graph_;
  const System& system_;
  const std::span<const std::shared_ptr<const Cost>> costs_;
  const PipelineOptions& options_;
  const int32_t devices_;
  const Speed speed_;
  int64_t limit_ = 0;
  int64_t least_ = INT64_MAX;
  BatchInputs batch_;
  ChosenPipeline made_;
};

}  // namespace

Result<ChosenPipeline> choose_pipeline(const Graph& graph, const System& system,
                                       std::span<const std::shared_ptr<const Cost>> costs,
                                       const PipelineOptions& options) {
  if (!graph.is_static())
    return unsupported("a pipeline needs sizes: graph '{}' has symbols", excerpt(graph.name()))
        .with_hint("bind them");
  if (has_exchanges(graph))
    return unsupported("graph '{}' exchanges data itself", excerpt(graph.name()));
  const Graph ready = HONE_TRY(prepare(graph));
  return Chooser(ready, system, costs, options).run();
}

}  // namespace hone
