#include "search/auto_shard.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <tuple>

#include "assign/solve.h"
#include "base/text.h"
#include "ir/op_facts.h"
#include "program/device_memory.h"
#include "program/lower/lower.h"
#include "search/shard_problem.h"
#include "shard/batch_inputs.h"

namespace hone {
namespace {

// Exchanges that others hide cost less; what is judged decides.
constexpr double kExchangeShares[] = {1, 0.3};
constexpr int kMemoryRounds = 8;

int64_t least_memory(const System& system) {
  int64_t least = INT64_MAX;
  for (const DeviceRun& run : system.devices)
    if (run.memory_bytes > 0) least = std::min(least, run.memory_bytes);
  return least;
}

bool is_divided(const Sharding& sharding) {
  return !sharding.partial.empty() ||
         std::ranges::any_of(sharding.dims,
                             [](const DimSharding& dim) { return !dim.axes.empty(); });
}

// A value, and the nodes during which a device holds its part.
struct HeldPart {
  ValueId value;
  size_t begin = 0, end = 0;
  int64_t bytes = 0;
};

const Sharding* said_of(const Graph& graph, ValueId v) {
  const std::vector<const Sharding*> all = graph.shardings()->of(v);
  return all.empty() ? nullptr : all[0];
}

std::vector<HeldPart> held_parts(const Graph& graph) {
  std::vector<size_t> ends(graph.value_count(), 0);
  for (const NodeId n : graph.nodes())
    for (const ValueId v : graph.operands(n))
      if (!v.is_none()) ends[v.index] = n.index + 1;
  for (const ValueId v : graph.outputs()) ends[v.index] = graph.node_count();
  std::vector<HeldPart> all;
  for (const NodeId n : graph.nodes())
    for (const ValueId v : graph.results(n)) {
      const bool is_given = is_leaf(graph.opcode(n));
      const Sharding* said = said_of(graph, v);
      const Type type = graph.type(v);
      const Type part = said == nullptr ? type : local_type(type, layout_of(*said));
      const HeldPart one = {v, is_given ? 0 : n.index,
                            is_given ? graph.node_count() : ends[v.index], part.static_bytes()};
      if (one.begin < one.end) all.push_back(one);
    }
  return all;
}

// The largest parts at the moment at which a device holds most: "%w [x, -] 512.0 KiB".
std::string most_held(const Graph& graph) {
  constexpr size_t kShown = 3;
  std::vector<HeldPart> all = held_parts(graph);
  std::vector<int64_t> sums(graph.node_count() + 1, 0);  // first as differences
  for (const HeldPart& one : all) {
    sums[one.begin] += one.bytes;
    sums[one.end] -= one.bytes;
  }
  std::partial_sum(sums.begin(), sums.end(), sums.begin());
  const auto moment = static_cast<size_t>(std::ranges::max_element(sums) - sums.begin());
  std::erase_if(all, [&](const HeldPart& one) { return moment < one.begin || moment >= one.end; });
  std::ranges::sort(all, [](const HeldPart& a, const HeldPart& b) {
    return std::tie(b.bytes, a.value) < std::tie(a.bytes, b.value);
  });
  std::vector<std::string> largest;
  for (size_t i = 0; i < std::min(kShown, all.size()); ++i) {
    const Sharding* said = said_of(graph, all[i].value);
    largest.push_back(fmt::format("{} {} {}", graph.label(all[i].value),
                                  said == nullptr ? "whole" : dims_text(*said),
                                  format_bytes(all[i].bytes)));
  }
  return join(largest, ", ");
}

class AutoSharder {
 public:
  AutoSharder(const Graph& graph, MeshRef mesh, const System& system,
              std::span<const std::shared_ptr<const Cost>> costs, const AutoShardOptions& options)
      : graph_(graph),
        mesh_(std::move(mesh)),
        system_(system),
        costs_(costs),
        options_(options),
        prices_(system, costs, mesh_, options.cancel),
        progress_(options.progress == nullptr ? no_progress() : *options.progress),
        limit_(options.memory > 0 ? options.memory : least_memory(system)) {}

  Result<AutoSharding> run() {
    progress_.start(0, "steps of the search for a sharding");
    Status done = search();
    progress_.finish();
    HONE_TRY(std::move(done));
    if (!best_) return too_large_ ? *too_large_ : no_memory();
    made_.best = std::move(*best_);
    return std::move(made_);
  }

 private:
  Status search() {
    HONE_TRY(try_share(kExchangeShares[0]));
    HONE_TRY(try_whole());
    HONE_TRY(try_batch());
    for (const double share : std::span(kExchangeShares).subspan(1))
      if (has_time_to_judge()) HONE_TRY(try_share(share));
    return {};
  }

  Status try_share(double share) {
    ShardProblem problem = HONE_TRY(
        shard_problem(graph_, mesh_, prices_,
                      {.exchange_share = share, .is_late = deadline(), .progress = progress_}));
    const std::optional<AssignResult> found = HONE_TRY(solved(problem, std::nullopt));
    if (!found) return {};
    if (share == kExchangeShares[0]) tell_sum(problem, *found);
    if (!HONE_TRY(judge(problem, *found)) || memory_ <= limit_) return {};
    problem = HONE_TRY(shard_problem(graph_, mesh_, prices_,
                                     {.exchange_share = share,
                                      .counts_copies = true,
                                      .is_late = deadline(),
                                      .progress = progress_}));
    return lower_memory(problem);
  }

  // Solutions of less and less usage, until one fits. The problem counts other bytes than a device
  // needs, so a solution may fit though its usage is above the limit.
  Status lower_memory(ShardProblem& problem) {
    int64_t missed = 0;                // no solution of so little usage is known
    std::optional<int64_t> peak = {};  // of the last solution
    int64_t most = limit_;
    for (int round = 0; round < kMemoryRounds; ++round) {
      std::optional<AssignResult> found = HONE_TRY(solved(problem, most));
      if (!found) {
        missed = most;
        if (!peak) found = HONE_TRY(solved(problem, std::nullopt));
      }
      if (found) {
        if (!HONE_TRY(judge(problem, *found)) || memory_ <= limit_) return {};
        peak = static_cast<int64_t>(HONE_TRY(evaluate(problem.problem, found->assignment)).peak);
      }
      if (!peak || *peak <= missed + missed / 64) return {};
      const double scale = 0.97 * static_cast<double>(limit_) / static_cast<double>(memory_);
      most = missed > 0 ? missed + (*peak - missed) / 2
                        : static_cast<int64_t>(static_cast<double>(*peak) * scale);
    }
    return {};
  }

  // False: nobody can judge it. The memory of the device that needs most is memory_.
  Result<bool> judge(const ShardProblem& problem, const AssignResult& found) {
    if (found.assignment == last_) return true;
    std::optional<JudgedSharding> one =
        HONE_TRY(judged(with_assignment(graph_, mesh_, problem, found.assignment)));
    if (!one) return false;
    last_ = found.assignment;
    ++made_.judged;
    memory_ = one->memory;
    take(std::move(*one));
    return true;
  }

  // None: the whole program has more messages than a timeline takes, though each exchange has few.
  Result<std::optional<JudgedSharding>> judged(Graph graph) {
    const double begin = seconds_so_far();
    Result<JudgedSharding> made =
        judge_sharding(std::move(graph), mesh_, system_, costs_, prices_, options_.cancel);
    longest_ = std::max(longest_, seconds_so_far() - begin);
    if (made.ok()) return std::optional(std::move(*made));
    if (made.error().code() != ErrorCode::limit) return std::move(made).error();
    too_large_ = std::move(made).error();
    return std::optional<JudgedSharding>();
  }

  // None: no solution keeps within these bytes.
  Result<std::optional<AssignResult>> solved(ShardProblem& problem, std::optional<int64_t> bytes) {
    problem.problem.usage_limit = bytes;
    // Each takes a part of the time that is left, so all together keep to it.
    constexpr double kSolutions = std::size(kExchangeShares) + 1;
    constexpr double kLeastSeconds = 1e-3;
    const double left = (options_.seconds - seconds_so_far()) / kSolutions;
    AssignOptions options = {.search = options_.search,
                             .seconds = options_.seconds > 0 ? std::max(left, kLeastSeconds) : 0,
                             .steps = options_.steps,
                             .seed = options_.seed,
                             .cancel = options_.cancel,
                             .better = [&](const AssignBounds& bounds) { tell(bounds); }};
    Result<AssignResult> found = solve(problem.problem, options);
    if (!found.ok() && found.error().code() != ErrorCode::mismatch) return std::move(found).error();
    if (!found.ok() || found->verdict == AssignVerdict::none) return std::optional<AssignResult>();
    return std::optional(std::move(*found));
  }

  double seconds_so_far() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  // One problem takes at most a part of the time that is left.
  std::function<bool()> deadline() const {
    if (options_.seconds <= 0) return {};
    constexpr double kProblem = 0.8;
    const double begin = seconds_so_far();
    const double end = begin + kProblem * std::max(0.0, options_.seconds - begin);
    return [this, end] { return seconds_so_far() > end; };
  }
  // Nothing fits yet, or another judgement ends within the time that is given.
  bool has_time_to_judge() const {
    return !best_ || options_.seconds <= 0 || seconds_so_far() + longest_ < options_.seconds;
  }

  void tell(const AssignBounds& bounds) const {
    if (bounds.cost)
      progress_.now(fmt::format("sum of the parts {}",
                                format_seconds(static_cast<double>(*bounds.cost) / kShardTicks)));
    progress_.advance();
  }

  void tell_sum(const ShardProblem& problem, const AssignResult& found) {
    made_.price = static_cast<double>(*found.bounds.cost) / kShardTicks;
    made_.nodes = problem.problem.nodes.size();
    made_.options = 0;
    for (const AssignNode& node : problem.problem.nodes) made_.options += node.costs.size();
    made_.all_options = problem.all_options + problem.late;
    made_.late = problem.late;
    if (made_.options < made_.all_options || made_.late > 0) return;
    made_.bound = static_cast<double>(found.bounds.bound) / kShardTicks;
    made_.is_optimal = found.verdict == AssignVerdict::optimal;
  }

  void take(JudgedSharding one) {
    if (one.memory > limit_) {
      if (one.memory < least_memory_) held_ = most_held(one.graph);
      least_memory_ = std::min(least_memory_, one.memory);
      return;
    }
    if (!best_ || one.seconds < best_->seconds) best_ = std::move(one);
  }

  // True if the graph leaves it open to divide nothing.
  bool may_be_whole() const {
    const Shardings* said = graph_.shardings();
    const auto divides = [](const auto& one) { return is_divided(one.second); };
    return said == nullptr || (std::ranges::none_of(said->values, divides) &&
                               std::ranges::none_of(said->outputs, divides));
  }

  // Devices share the batch, unless the graph says something else. Without time this is left out
  // only if something is known to be faster than one device.
  Status try_batch() {
    const bool is_faster = best_ && made_.whole && best_->seconds < *made_.whole;
    if (graph_.shardings() != nullptr || (is_faster && !has_time_to_judge())) return {};
    progress_.now("the batch alone");
    Result<JudgedSharding> one =
        batch_alone(graph_, mesh_, system_, costs_, prices_, options_.cancel);
    if (one.ok()) take(std::move(*one));
    if (!one.ok() && one.error().code() == ErrorCode::interrupted) return std::move(one).error();
    return {};
  }

  // Each device does all of it, unless the graph says otherwise.
  Status try_whole() {
    if (!may_be_whole()) return {};
    auto all = std::make_shared<Shardings>();
    for (const NodeId n : graph_.nodes())
      if (!is_constant(graph_.opcode(n)))
        for (const ValueId v : graph_.results(n))
          all->values.emplace_back(v, sharding_of(mesh_, undivided(graph_.type(v))));
    for (uint32_t i = 0; i < graph_.outputs().size(); ++i)
      all->outputs.emplace_back(i, sharding_of(mesh_, undivided(graph_.type(graph_.outputs()[i]))));
    Graph whole = graph_;
    whole.set_shardings(std::move(all));
    std::optional<JudgedSharding> one = HONE_TRY(judged(std::move(whole)));
    if (!one) return {};
    if (one->memory <= limit_) made_.whole = one->seconds;
    take(std::move(*one));
    return {};
  }

  Error no_memory() const {
    if (least_memory_ == INT64_MAX)
      return over_limit("no sharding on {} was found in the time that is given", axes_text(*mesh_));
    return over_limit(
               "no sharding on {} was found that keeps a device within {}: the best takes {}, {} "
               "too much",
               axes_text(*mesh_), format_bytes(limit_), format_bytes(least_memory_),
               format_bytes(least_memory_ - limit_))
        .with_hint(fmt::format("when it holds most, the largest of a device are {}", held_));
  }

  const Graph& graph_;
  const MeshRef mesh_;
  const System& system_;
  const std::span<const std::shared_ptr<const Cost>> costs_;
  const AutoShardOptions& options_;
  ShardPrices prices_;
  Progress& progress_;
  const int64_t limit_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  AutoSharding made_;
  std::optional<JudgedSharding> best_;
  std::optional<Error> too_large_;  // why the last one could not be judged
  Assignment last_;
  double longest_ = 0;  // seconds of the longest judgement
  int64_t memory_ = 0;  // of the last judged one
  int64_t least_memory_ = INT64_MAX;
  std::string held_;  // by the device that needs these bytes
};

}  // namespace

Result<JudgedSharding> judge_sharding(Graph graph, const MeshRef& mesh, const System& system,
                                      std::span<const std::shared_ptr<const Cost>> costs,
                                      ShardPrices& prices, const CancelToken* cancel) {
  Partition partition = HONE_TRY(partition_exactly(graph, mesh, prices.steps()));
  return judge_partition(std::move(graph), std::move(partition), system, costs, cancel);
}

Result<JudgedSharding> judge_partition(Graph graph, Partition partition, const System& system,
                                       std::span<const std::shared_ptr<const Cost>> costs,
                                       const CancelToken* cancel) {
  JudgedSharding made = {.graph = std::move(graph), .partition = std::move(partition)};
  made.plans = HONE_TRY(
      plan_for_system(made.partition.graph, system, costs, {.overlaps = false, .cancel = cancel}));
  made.seconds = made.plans.seconds;
  const auto devices = static_cast<int32_t>(system.device_count());
  for (size_t i = 0; i < system.targets.size(); ++i) {
    const Program program =
        HONE_TRY(lower(made.plans.graphs[i], made.plans.plans[i], system.targets[i], cancel));
    made.memory = std::max(made.memory, HONE_TRY(device_memory(program, devices)).total());
  }
  return made;
}

Result<JudgedSharding> batch_alone(const Graph& graph, const MeshRef& mesh, const System& system,
                                   std::span<const std::shared_ptr<const Cost>> costs,
                                   ShardPrices& prices, const CancelToken* cancel) {
  if (graph.shardings() != nullptr)
    return unsupported("graph '{}' says itself how it is divided", excerpt(graph.name()));
  const BatchInputs batch = HONE_TRY(batch_inputs(graph, graph.input_types()));
  auto said = std::make_shared<Shardings>();
  for (size_t i = 0; i < batch.dims.size(); ++i) {
    const ValueId input = graph.inputs()[i];
    ShardLayout layout = undivided(graph.type(input));
    for (size_t axis = 0; axis < mesh->axes.size() && batch.dims[i] >= 0; ++axis)
      layout.dims[static_cast<size_t>(batch.dims[i])].push_back({axis, 1, mesh->axes[axis].size});
    said->add(input, sharding_of(mesh, layout));
  }
  // A next state lies as the state before it.
  for (const Donation& one : graph.donations())
    said->set_output(one.output, *said->of(graph.inputs()[one.input])[0]);
  Graph stated = graph;
  stated.set_shardings(std::move(said));
  Partition partition = HONE_TRY(partition_graph(stated, prices.steps()));
  // Composites are spelled out already, so it is of this graph.
  if (partition.values.size() != graph.value_count())
    return unsupported("graph '{}' has composites", excerpt(graph.name()));
  Graph divided = with_layouts(graph, partition);
  return judge_partition(std::move(divided), std::move(partition), system, costs, cancel);
}

MeshRef mesh_of_system(const System& system) {
  Mesh mesh = {"mesh", {}};
  for (const Axis& axis : system.axes) mesh.axes.push_back({axis.name, axis.size});
  if (mesh.axes.empty()) {
    // The larger groups are the outer axes.
    int64_t within = 1;
    for (const Level& level : system.levels) {
      mesh.axes.insert(mesh.axes.begin(), {"in_" + level.name, level.devices / within});
      within = level.devices;
    }
    if (mesh.axes.empty() || within != system.device_count())
      mesh.axes.insert(mesh.axes.begin(), {"x", system.device_count() / within});
  }
  return std::make_shared<const Mesh>(std::move(mesh));
}

Status check_searched_axes(const Mesh& mesh) {
  const auto axes = static_cast<size_t>(
      std::ranges::count_if(mesh.axes, [](const MeshAxis& axis) { return axis.size > 1; }));
  if (axes <= kMostSearchedAxes) return {};
  return over_limit("the mesh has {} axes; shardings are searched along at most {}", axes,
                    kMostSearchedAxes)
      .with_hint("make one axis of two, as xy=8 of x=2,y=4; or say how values are divided");
}

Result<AutoSharding> auto_shard(const Graph& graph, const MeshRef& mesh, const System& system,
                                std::span<const std::shared_ptr<const Cost>> costs,
                                const AutoShardOptions& options) {
  HONE_TRY(check_can_partition(graph, *mesh));
  if (mesh->device_count() != system.device_count())
    return bad_input("the mesh {} has {} devices, and the system '{}' {}", axes_text(*mesh),
                     mesh->device_count(), excerpt(system.name), system.device_count());
  HONE_TRY(check_searched_axes(*mesh));
  return AutoSharder(graph, mesh, system, costs, options).run();
}

}  // namespace hone
