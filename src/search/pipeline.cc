#include "search/pipeline.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <map>
#include <tuple>

#include "base/text.h"
#include "cost/system_timeline.h"
#include "ir/op_facts.h"
#include "rewrite/prepare.h"
#include "search/auto_shard.h"
#include "search/pipeline_index.h"
#include "search/pipeline_layers.h"
#include "search/pipeline_stages.h"
#include "search/stage_sharding.h"
#include "search/system_plan.h"
#include "target/topology.h"

namespace hone {
namespace {

// Layers of which stages are made. Each interval of them is a search if a stage may have several
// devices.
constexpr int kLayersTried = 24;
constexpr int kLayersSharded = 12;
constexpr int kChunks = 2;          // stages that a device has, interleaved
constexpr int32_t kMostTried = 64;  // micro-batches
constexpr size_t kMostJudged = 4;   // pipelines whose programs are made, of a round
constexpr int kPipelineRounds = 4;

struct Speed {
  double bytes_per_second = 0;
  double latency = 0;

  double seconds(double bytes) const { return bytes > 0 ? latency + bytes / bytes_per_second : 0; }
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
  StageSource source = {};
  std::vector<int> layers = {};  // of nodes
  bool has_backward = false;
  // How stages work out, as the table has them.
  StageTable table = {};
  std::map<std::tuple<int, int, int>, std::vector<ShardedStage>> stages = {};

  const ShardedStage& stage(const LayerStage& one) const {
    return stages.at({one.first, one.end, one.devices})[index_at(one.way)];
  }
  std::vector<bool> inside(int first, int end) const {
    std::vector<bool> made(layers.size(), false);
    for (const NodeId n : source.graph.nodes())
      made[n.index] = source.parts[n.index] != LayerPart::leaf && layers[n.index] >= first &&
                      layers[n.index] < end;
    return made;
  }
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
        speed_(speed_of(system)),
        sharder_(system, costs, options.cancel) {
    limit_ = options.memory;
    for (const DeviceRun& run : system.devices)
      if (options.memory == 0 && run.memory_bytes > 0)
        limit_ = limit_ == 0 ? run.memory_bytes : std::min(limit_, run.memory_bytes);
    wanted_ = limit_;
  }

  Result<ChosenPipeline> run() {
    batch_ = HONE_TRY(batch_inputs(graph_, graph_.input_types(), options_.batch));
    HONE_TRY(time_one_device());
    // Stages are known by sums of their parts; programs need more. So the next round wants less.
    for (int round = 0; round < kPipelineRounds; ++round) {
      HONE_TRY(search());
      const int64_t least = HONE_TRY(judge());
      if (!made_.plan.stages.empty()) return std::move(made_);
      if (!seems_to_fit() || least == INT64_MAX) break;
      const double share = 0.97 * static_cast<double>(limit_) / static_cast<double>(least);
      wanted_ = std::max<int64_t>(1, static_cast<int64_t>(share * static_cast<double>(wanted_)));
    }
    return nothing_fits();
  }

 private:
  // A pipeline that was simulated.
  struct Tried {
    // The shortest step first; behind those that seem to fit, the least memory.
    std::pair<bool, double> rank;
    size_t candidate = 0;
    PipelinePlan plan = {};
  };

  // The best ones of all numbers of micro-batches.
  Status search() {
    made_.candidates.clear();
    tried_.clear();
    for (const int32_t count : counts()) {
      Status good = try_count(count);
      if (!good.ok() && good.error().code() != ErrorCode::unsupported) return good;
      if (!good.ok() && !refused_) refused_ = std::move(good).error();
    }
    return {};
  }

  // Takes the best one whose programs fit. The least bytes that others need.
  Result<int64_t> judge() {
    int64_t least = INT64_MAX;
    for (const Tried& one : tried_) {
      const Result<PipelinePrograms> programs =
          pipeline_programs(graph_, one.plan, system_, costs_, options_.cancel);
      if (!programs.ok()) {
        const ErrorCode code = programs.error().code();
        if (code == ErrorCode::interrupted || code == ErrorCode::internal) return programs.error();
        if (!refused_) refused_ = programs.error();
        continue;
      }
      const std::vector<DeviceMemory> memory = HONE_TRY(programs->memory());
      PipelineCandidate& candidate = made_.candidates[one.candidate];
      candidate.times.memory = totals(memory);
      const auto most = std::ranges::max_element(candidate.times.memory);
      candidate.fits = limit_ == 0 || *most <= limit_;
      if (candidate.fits) {
        made_.times = candidate.times;
        made_.plan = one.plan;
        return *most;
      }
      least = std::min(least, *most);
      if (*most >= least_) continue;
      least_ = *most;
      largest_ = memory[static_cast<size_t>(most - candidate.times.memory.begin())].largest;
    }
    return least;
  }

  bool seems_to_fit() const { return !tried_.empty() && !tried_.front().rank.first; }

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
    const MicroBatch batch = HONE_TRY(first_micro_batch(graph_, batch_, count));
    // Some models are refused only by all micro-batches together.
    if (count > 1) HONE_TRY(micro_batches(graph_, batch_, count));
    Layered made = {.source = HONE_TRY(
                        StageSource::make(batch, graph_, system_, costs_, options_.cancel))};
    const StageSource& source = made.source;
    const bool is_wide = devices_ > 2 && sizes().back() > 1;
    made.layers = layers_of_nodes(batch.graph, source.parts, source.seconds,
                                  is_wide ? kLayersSharded : kLayersTried);
    made.table.layers = made.layers.empty() ? 1 : *std::ranges::max_element(made.layers) + 1;
    made.has_backward = std::ranges::find(source.parts, LayerPart::backward) != source.parts.end();
    return made;
  }

  // The devices that a stage may have: not all numbers, since each takes a search of each interval.
  std::vector<int32_t> sizes() const {
    if (options_.mesh != nullptr) return {static_cast<int32_t>(options_.mesh->device_count())};
    std::vector<int32_t> all;
    const int32_t most = options_.stages > 0 ? devices_ - options_.stages + 1 : devices_;
    for (int32_t n = 1; n <= std::max(most, 1); ++n)
      if (std::has_single_bit(static_cast<uint32_t>(n)) || devices_ % n == 0) all.push_back(n);
    return all;
  }

  // All intervals of layers that leave devices for the others, if they need several.
  Status fill_table(Layered& made) {
    const int layers = made.table.layers;
    made.table.memory = wanted_;
    for (const int32_t n : sizes())
      for (int first = 0; first < layers; ++first)
        for (int end = first + 1; end <= layers; ++end) {
          const int32_t others = (first > 0 ? 1 : 0) + (end < layers ? 1 : 0);
          // One device alone may do all, and interleaved it has several stages.
          if (n > 1 && (n + others > devices_ || (others == 0 && n < devices_))) continue;
          HONE_TRY(add_ways(made, first, end, n));
        }
    return {};
  }

  Status add_ways(Layered& made, int first, int end, int32_t n) {
    if (n > 1 && seems_to_fit() && !has_time()) return {};
    const MeshRef mesh = options_.mesh != nullptr ? options_.mesh : stage_mesh(n);
    Result<std::vector<ShardedStage>> all =
        sharder_.ways(made.source, made.inside(first, end), mesh, wanted_);
    // Some stages divide in no way.
    if (!all.ok() && all.error().code() == ErrorCode::unsupported) return {};
    if (!all.ok()) return std::move(all).error();
    std::vector<StageWay>& ways = made.table.ways[{first, end, n}];
    for (const ShardedStage& one : *all)
      ways.push_back({one.facts.forward + one.facts.backward +
                          speed_.seconds(one.facts.received_forward) +
                          speed_.seconds(one.facts.received_backward),
                      one.facts.held, one.facts.kept});
    made.stages[{first, end, n}] = *std::move(all);
    return {};
  }

  bool has_time() const {
    const std::chrono::duration<double> so_far = std::chrono::steady_clock::now() - begin_;
    return options_.seconds <= 0 || so_far.count() < options_.seconds;
  }

  // Without any that fit, those that need not: an error tells the least.
  std::vector<StageChoice> choices(StageTable& table, int32_t count) const {
    std::vector<StageChoice> all = best_stages(table, devices_, count, options_.stages);
    if (!all.empty() || table.memory == 0) return all;
    table.memory = 0;
    return best_stages(table, devices_, count, options_.stages);
  }

  Status try_count(int32_t count) {
    Layered layered = HONE_TRY(this->layered(count));
    HONE_TRY(fill_table(layered));
    std::vector<StageChoice> all;
    // One device alone sends nothing, and others have to be faster.
    if (options_.stages == 0 && options_.mesh == nullptr && devices_ > 1)
      all.push_back({.stages = {{.end = layered.table.layers}}});
    std::ranges::move(choices(layered.table, count), std::back_inserter(all));
    for (const StageChoice& choice : all)
      for (const PipelineSchedule schedule :
           {PipelineSchedule::gpipe, PipelineSchedule::one_forward})
        HONE_TRY(try_stages(layered, count, choice.stages, devices_of(choice.stages), schedule));
    const bool is_single = options_.mesh == nullptr || options_.mesh->device_count() == 1;
    if (devices_ < 2 || count % devices_ != 0 || options_.stages % devices_ != 0 || !is_single)
      return {};
    return try_interleaved(layered, count);
  }

  Status try_interleaved(Layered& layered, int32_t count) {
    const int32_t stages = options_.stages > 0 ? options_.stages : kChunks * devices_;
    // The memory of several stages is for the simulation to tell.
    layered.table.memory = 0;
    std::erase_if(layered.table.ways, [](const auto& one) { return std::get<2>(one.first) > 1; });
    for (const StageChoice& choice : best_stages(layered.table, stages, count, stages)) {
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
    std::vector<StageFacts> facts;
    for (const LayerStage& stage : stages) facts.push_back(layered.stage(stage).facts);
    const PipelineShape shape = {devices, count, layered.has_backward};
    PipelineCandidate made = {
        .stages = shape.stages(), .micro_batches = count, .schedule = schedule};
    made.times = HONE_TRY(simulate_pipeline(shape, schedule, facts, system_));
    const int64_t most = *std::ranges::max_element(made.times.memory);
    made.fits = wanted_ == 0 || most <= wanted_;
    made_.candidates.push_back(made);
    // Several devices have to gain something over one alone: prices are not exact.
    const bool is_alone = devices_ > 1 && shape.stages() == 1 && devices[0].size() == 1;
    Tried one = {.rank = {!made.fits, made.fits ? made.times.seconds : static_cast<double>(most)},
                 .candidate = made_.candidates.size() - 1};
    if (made.fits && is_alone) one.rank.second *= 1 - kLeastGain;
    const auto place = std::ranges::upper_bound(tried_, one.rank, {}, &Tried::rank);
    if (place == tried_.end() && tried_.size() == kMostJudged) return {};
    one.plan = plan_of(layered, stages, shape, schedule);
    tried_.insert(place, std::move(one));
    if (tried_.size() > kMostJudged) tried_.pop_back();
    return {};
  }

  PipelinePlan plan_of(const Layered& layered, const std::vector<LayerStage>& stages,
                       const PipelineShape& shape, PipelineSchedule schedule) const {
    PipelinePlan plan = {
        .micro_batches = shape.micro_batches, .schedule = schedule, .batch = options_.batch};
    const Graph& graph = layered.source.graph;
    for (size_t s = 0; s < stages.size(); ++s) {
      PipelinePlan::Stage& made = plan.stages.emplace_back();
      made.devices = shape.devices_of[s];
      const std::vector<bool> is_inside = layered.inside(stages[s].first, stages[s].end);
      for (const NodeId n : graph.nodes())
        if (is_inside[n.index]) made.nodes.emplace_back(graph.name(graph.result(n)));
      const ShardedStage& sharded = layered.stage(stages[s]);
      if (sharded.mesh->device_count() > 1)
        made.shards = shard_plan_of(sharded.graph, sharded.mesh);
    }
    return plan;
  }

  Error nothing_fits() const {
    if (refused_ && least_ == INT64_MAX) return *refused_;
    if (made_.candidates.empty())
      return usage_error("{} devices have no pipeline of {} stages and {} micro-batches", devices_,
                         options_.stages > 0 ? std::to_string(options_.stages) : "any number of",
                         options_.micro_batches > 0 ? std::to_string(options_.micro_batches)
                                                    : "any number of")
          .with_hint(
              "a stage needs a device and a layer; interleaved ones a multiple of the devices");
    std::vector<std::string> largest;
    for (const DeviceMemory::Value& one : largest_)
      largest.push_back(fmt::format("{} {}", one.name, format_bytes(one.bytes)));
    return over_limit("no pipeline keeps a device within {}: the least is {}, {} too much",
                      format_bytes(limit_), format_bytes(least_), format_bytes(least_ - limit_))
        .with_hint(fmt::format("its largest are {}; more devices, more micro-batches or --schedule "
                               "1f1b take less",
                               join(largest, ", ")));
  }

  const Graph& graph_;
  const System& system_;
  const std::span<const std::shared_ptr<const Cost>> costs_;
  const PipelineOptions& options_;
  const int32_t devices_;
  const Speed speed_;
  StageSharder sharder_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  int64_t limit_ = 0;
  int64_t wanted_ = 0;        // of the sums of parts
  std::vector<Tried> tried_;  // the best first
  std::optional<Error> refused_;
  int64_t least_ = INT64_MAX;                 // that programs need
  std::vector<DeviceMemory::Value> largest_;  // of these
  BatchInputs batch_;
  ChosenPipeline made_;
};

// The mesh is one of each stage, and all devices have one.
Status check_stage_mesh(const PipelineOptions& options, const System& system) {
  if (options.mesh == nullptr) return {};
  HONE_TRY(check_searched_axes(*options.mesh));
  const int64_t each = options.mesh->device_count(), all = system.device_count();
  if (options.stages > 0 ? options.stages * each == all : all % each == 0) return {};
  const std::string stages = options.stages > 0 ? std::to_string(options.stages) : "some";
  return usage_error("{} stages of {} devices are not the {} of '{}'", stages, each, all,
                     excerpt(system.name))
      .with_hint("--mesh is the mesh of each stage: stages times its devices are all devices");
}

}  // namespace

Status check_can_pipeline(const Graph& graph) {
  if (!graph.is_static())
    return unsupported("a pipeline needs sizes: graph '{}' has symbols", excerpt(graph.name()))
        .with_hint("bind them");
  if (has_exchanges(graph))
    return unsupported("graph '{}' exchanges data itself", excerpt(graph.name()));
  const Shardings* said = graph.shardings();
  if (said == nullptr || said->empty()) return {};
  const bool is_value = !said->values.empty();
  const Sharding& first = is_value ? said->values[0].second : said->outputs[0].second;
  const ValueId v = is_value ? said->values[0].first : graph.outputs()[said->outputs[0].first];
  return unsupported("the graph says itself how devices divide {}: {}", graph.label(v),
                     dims_text(first))
      .at(fmt::format("graph '{}'", excerpt(graph.name())))
      .with_hint("leave it out of the graph, and write it behind a stage of the pipeline's plan");
}

Result<ChosenPipeline> choose_pipeline(const Graph& graph, const System& system,
                                       std::span<const std::shared_ptr<const Cost>> costs,
                                       const PipelineOptions& options) {
  HONE_TRY(check_can_pipeline(graph));
  HONE_TRY(check_stage_mesh(options, system));
  const Graph ready = HONE_TRY(prepare(graph));
  return Chooser(ready, system, costs, options).run();
}

}  // namespace hone
