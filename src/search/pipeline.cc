#include "search/pipeline.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <map>
#include <tuple>

#include "base/text.h"
#include "cost/system_timeline.h"
#include "ir/op_facts.h"
#include "search/auto_shard.h"
#include "search/pipeline_index.h"
#include "search/pipeline_layers.h"
#include "search/pipeline_stages.h"
#include "search/stage_sharding.h"
#include "search/system_plan.h"
#include "shard/propagate.h"
#include "target/topology.h"

namespace hone {
namespace {

// Layers of which stages are made. Each interval of them is a search if a stage may have several
// devices.
constexpr int kLayersTried = 24;
constexpr int kLayersSharded = 12;
constexpr int32_t kMostOddDevices = 8;  // of a stage, if they are no power of two
constexpr int kChunks = 2;              // stages that a device has, interleaved
constexpr int32_t kMostTried = 64;      // micro-batches
constexpr size_t kMostJudged = 4;       // pipelines whose programs are made, of a round
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
    const std::vector<int32_t> counts = this->counts();
    for (size_t i = 0; i < counts.size(); ++i) {
      // Each number of micro-batches has its share of the time.
      const double share = static_cast<double>(i + 1) / static_cast<double>(counts.size());
      Status good = try_count(counts[i], share * options_.seconds);
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
    const bool is_wide = devices_ > 2 && std::ranges::max(sizes()) > 1;
    made.layers = layers_of_nodes(batch.graph, source.parts, source.seconds,
                                  is_wide ? kLayersSharded : kLayersTried);
    made.table.layers = made.layers.empty() ? 1 : *std::ranges::max_element(made.layers) + 1;
    made.has_backward = std::ranges::find(source.parts, LayerPart::backward) != source.parts.end();
    return made;
  }

  // The devices that a stage may have, those first that more often divide something. Each takes a
  // search of each interval, so of many devices not all numbers are tried.
  std::vector<int32_t> sizes() const {
    if (options_.mesh != nullptr) return {static_cast<int32_t>(options_.mesh->device_count())};
    std::vector<int32_t> all, odd;
    const int32_t most = options_.stages > 0 ? devices_ - options_.stages + 1 : devices_;
    for (int32_t n = 1; n <= std::max(most, 1); ++n)
      if (std::has_single_bit(static_cast<uint32_t>(n)) || devices_ % n == 0)
        all.push_back(n);
      else if (n <= kMostOddDevices)
        odd.push_back(n);
    all.insert(all.end(), odd.begin(), odd.end());
    return all;
  }

  // All intervals of layers that leave devices for the others, if they need several.
  Status fill_table(Layered& made, int32_t count, double until) {
    const int layers = made.table.layers;
    made.table.memory = wanted_;
    bool has_choice = false;
    for (const int32_t n : sizes()) {
      for (int first = 0; first < layers; ++first)
        for (int end = first + 1; end <= layers; ++end) {
          const int32_t others = (first > 0 ? 1 : 0) + (end < layers ? 1 : 0);
          const bool is_late = n > 1 && has_choice && !has_time(until);
          if (!is_late && (n == 1 || n + others <= devices_))
            HONE_TRY(add_ways(made, first, end, n));
        }
      has_choice = has_choice || !best_of(made.table, count).empty();
    }
    return {};
  }

  Status add_ways(Layered& made, int first, int end, int32_t n) {
    const MeshRef mesh = options_.mesh != nullptr ? options_.mesh : stage_mesh(n);
    Result<std::vector<ShardedStage>> all =
        sharder_.ways(made.source, made.inside(first, end), mesh, wanted_);
    // Some stages divide in no way.
    if (!all.ok() && all.error().code() == ErrorCode::unsupported) {
      if (!refused_) refused_ = std::move(all).error();
      return {};
    }
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

  bool has_time(double until) const {
    const std::chrono::duration<double> so_far = std::chrono::steady_clock::now() - begin_;
    return options_.seconds <= 0 || so_far.count() < until;
  }

  // Who asks for a number of stages means all devices.
  std::vector<StageChoice> best_of(const StageTable& table, int32_t count) const {
    return best_stages(table, devices_, count, options_.stages,
                       options_.stages > 0 ? StageDevices::all : StageDevices::some);
  }

  // Without any that fit, those that need not: an error tells the least.
  std::vector<StageChoice> choices(StageTable& table, int32_t count) const {
    std::vector<StageChoice> all = best_of(table, count);
    if (!all.empty() || table.memory == 0) return all;
    table.memory = 0;
    return best_of(table, count);
  }

  // `until`: seconds from the beginning.
  Status try_count(int32_t count, double until) {
    Layered layered = HONE_TRY(this->layered(count));
    HONE_TRY(fill_table(layered, count, until));
    std::vector<StageChoice> all = choices(layered.table, count);
    // One device alone sends nothing, and others have to be faster.
    const std::vector<LayerStage> alone = {{.end = layered.table.layers}};
    if (options_.stages == 0 && options_.mesh == nullptr &&
        std::ranges::find(all, alone, &StageChoice::stages) == all.end())
      all.insert(all.begin(), {.stages = alone});
    for (const StageChoice& choice : all) HONE_TRY(try_choice(layered, count, choice.stages));
    const bool is_single = options_.mesh == nullptr || options_.mesh->device_count() == 1;
    if (devices_ < 2 || count % devices_ != 0 || options_.stages % devices_ != 0 || !is_single)
      return {};
    return try_interleaved(layered, count);
  }

  // On devices one behind the other, and in groups of neighbours.
  Status try_choice(const Layered& layered, int32_t count, const std::vector<LayerStage>& stages) {
    std::vector<std::vector<std::vector<int32_t>>> places = {devices_in_order(stages)};
    std::vector<std::vector<int32_t>> grouped = devices_in_groups(stages, system_);
    if (!grouped.empty() && grouped != places[0]) places.push_back(std::move(grouped));
    for (const std::vector<std::vector<int32_t>>& devices : places)
      for (const PipelineSchedule schedule :
           {PipelineSchedule::gpipe, PipelineSchedule::one_forward})
        HONE_TRY(try_stages(layered, count, stages, devices, schedule));
    return {};
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

  // The table knows a stage on the first devices of the system. These may have other links between
  // them: of their ways, that of the same rank is taken. None: they divide it in no way.
  Result<std::vector<ShardedStage>> stages_on(const Layered& layered,
                                              const std::vector<LayerStage>& stages,
                                              const std::vector<std::vector<int32_t>>& devices) {
    std::vector<ShardedStage> made;
    for (size_t s = 0; s < stages.size(); ++s) {
      const LayerStage& stage = stages[s];
      std::vector<ShardedStage> ways =
          HONE_TRY(sharder_.ways(layered.source, layered.inside(stage.first, stage.end),
                                 layered.stage(stage).mesh, wanted_, devices[s]));
      if (ways.empty()) return std::vector<ShardedStage>();
      made.push_back(std::move(ways[std::min(index_at(stage.way), ways.size() - 1)]));
    }
    return made;
  }

  Status try_stages(const Layered& layered, int32_t count, const std::vector<LayerStage>& stages,
                    const std::vector<std::vector<int32_t>>& devices, PipelineSchedule schedule) {
    if (options_.schedule && *options_.schedule != schedule) return {};
    if (options_.cancel != nullptr) HONE_TRY(options_.cancel->check());
    const std::vector<ShardedStage> sharded = HONE_TRY(stages_on(layered, stages, devices));
    if (sharded.size() < stages.size()) return {};
    std::vector<StageFacts> facts;
    for (const ShardedStage& one : sharded) facts.push_back(one.facts);
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
    one.plan = plan_of(layered, stages, sharded, shape, schedule);
    tried_.insert(place, std::move(one));
    if (tried_.size() > kMostJudged) tried_.pop_back();
    return {};
  }

  PipelinePlan plan_of(const Layered& layered, const std::vector<LayerStage>& stages,
                       const std::vector<ShardedStage>& sharded, const PipelineShape& shape,
                       PipelineSchedule schedule) const {
    PipelinePlan plan = {
        .micro_batches = shape.micro_batches, .schedule = schedule, .batch = options_.batch};
    const Graph& graph = layered.source.graph;
    for (size_t s = 0; s < stages.size(); ++s) {
      PipelinePlan::Stage& made = plan.stages.emplace_back();
      made.devices = shape.devices_of[s];
      const std::vector<bool> is_inside = layered.inside(stages[s].first, stages[s].end);
      for (const NodeId n : graph.nodes())
        if (is_inside[n.index]) made.nodes.emplace_back(graph.name(graph.result(n)));
      if (sharded[s].mesh->device_count() > 1)
        made.shards = shard_plan_of(sharded[s].graph, sharded[s].mesh);
    }
    return plan;
  }

  Error nothing_fits() const {
    if (refused_ && least_ == INT64_MAX) return *refused_;
    if (batch_.rows == 0)
      return usage_error("a batch of 0 rows has no micro-batches")
          .with_hint("give the batch rows; a pipeline computes them in turns");
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
  return {};
}

Result<MeshRef> mesh_of_stages(const Graph& graph, const MeshRef& asked) {
  if (asked != nullptr) return asked;
  const MeshRef own = HONE_TRY(mesh_of_graph(graph));
  if (own == nullptr || own->device_count() == 1) return MeshRef();
  if (own->devices.empty()) return own;
  return unsupported("the mesh '{}' of graph '{}' has its devices in an order of its own",
                     excerpt(own->name), excerpt(graph.name()))
      .with_hint("stages have theirs in a row; --mesh says the mesh of each stage");
}

Result<ChosenPipeline> choose_pipeline(const Graph& graph, const System& system,
                                       std::span<const std::shared_ptr<const Cost>> costs,
                                       const PipelineOptions& asked) {
  HONE_TRY(check_can_pipeline(graph));
  PipelineOptions options = asked;
  options.mesh = HONE_TRY(mesh_of_stages(graph, asked.mesh));
  HONE_TRY(check_stage_mesh(options, system));
  const Graph ready = HONE_TRY(prepared_for_stages(graph));
  return Chooser(ready, system, costs, options).run();
}

}  // namespace hone
