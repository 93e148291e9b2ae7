#include "cost/gpu_cost.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "cost/analytic.h"
#include "cost/gpu_block_price.h"
#include "cost/gpu_ordered_price.h"
#include "ir/op_def.h"
#include "kernel/algorithms/block_ordered.h"
#include "kernel/algorithms/block_winograd.h"

namespace hone {

namespace {

class GpuKernelPrice : public PricedKernel {
 public:
  GpuKernelPrice(std::shared_ptr<const KernelFacts> facts, const Target& target,
                 const GpuModel* model)
      : facts_(std::move(facts)), target_(target), model_(model) {
    for (const KernelFacts::Array& array : facts_->arrays) bytes_ += bytes_of(array);
  }

  void price(std::span<const Schedule> schedules, double /*limit*/,
             std::span<double> seconds) override {
    for (size_t i = 0; i < schedules.size(); ++i) seconds[i] = seconds_of(schedules[i]);
  }

  std::string_view source(const Schedule& /*schedule*/) override {
    return model_ == nullptr ? "analytic" : "learned";
  }

  std::vector<PriceTerm> terms(const Schedule& schedule) override {
    const GpuTimes times = times_of(schedule);
    std::vector<PriceTerm> terms = {{"launch", times.launch},
                                    {"arithmetic", times.arithmetic},
                                    {"latency", times.latency},
                                    {"memory", times.memory},
                                    {"access", times.access}};
    if (times.transforms > 0) terms.emplace_back("transforms", times.transforms);
    return terms;
  }

  // The launch and the bytes are the same for all algorithms of one launch.
  GpuTimes times_of(const Schedule& schedule) {
    GpuTimes times;
    switch (schedule.algorithm()) {
      case Algorithm::block_rows: times = block_rows_times(*facts_, schedule, target_); break;
      case Algorithm::block_tiles: times = block_tiles_times(*facts_, schedule, target_); break;
      case Algorithm::block_chain: times = block_chain_times(*facts_, schedule, target_); break;
      case Algorithm::block_sums: times = block_sums_times(*facts_, schedule, target_); break;
      case Algorithm::block_copy: times = block_copy_times(*facts_, schedule, target_); break;
      case Algorithm::block_winograd:
        return block_winograd_times(*facts_, winograd(), schedule, target_);
      default: times = is_ordered() ? times_in_order(schedule) : plain_times(schedule); break;
    }
    times.launch = target_.gpu->launch;
    times.memory += bytes_ / (kGpuReached * target_.memory_all_cores);
    return times;
  }

 private:
  // The part of the array that it reads or writes: a gather has some rows of a table.
  double bytes_of(const KernelFacts::Array& array) const {
    const double read = facts_->loops.empty() ? array.bytes : points(array.loops) * array.element;
    return array.share * std::min(array.bytes, read);
  }

  bool is_ordered() const {
    const Graph& graph = facts_->body.graph;
    return class_of(graph.opcode(graph.producer(graph.outputs()[0]))) == OpClass::ordered;
  }

  // Other schedules of such an op are not legal, but may be asked for.
  GpuTimes times_in_order(const Schedule& schedule) const {
    const bool is_by_blocks = is_ordered_by_blocks(schedule);
    return ordered_times(facts_->body, is_by_blocks ? schedule : Schedule(), target_);
  }

  // Made for the first schedule that asks: most kernels have none.
  const BlockWinogradRoles& winograd() {
    if (winograd_ == nullptr)
      winograd_ = std::static_pointer_cast<const BlockWinogradRoles>(
          def_of(Algorithm::block_winograd).roles(*facts_));
    return *winograd_;
  }

  double seconds_of(const Schedule& schedule) {
    const GpuTimes times = times_of(schedule);
    if (model_ == nullptr) return times.total();
    return model_->seconds(times, gpu_features(*facts_, schedule), schedule.algorithm());
  }

  // The points of a dim that one trip of a divided loop takes.
  static double points_of(const Schedule& schedule, int dim) {
    double points = 1;
    const auto take = [&](const std::vector<Tile>& tiles) {
      for (const Tile& tile : tiles)
        if (tile.dim == dim) points = std::max(points, static_cast<double>(tile.count));
    };
    take(schedule.lanes);
    take(schedule.unroll);
    each_own_field(schedule, [&](std::string_view /*name*/, const auto& field) {
      if constexpr (std::is_same_v<decltype(field), const std::vector<Tile>&>) take(field);
    });
    return points;
  }

  double extent(int dim) const {
    const auto at = static_cast<size_t>(dim);
    return at < facts_->loops.size() ? facts_->loops[at].extent : 1;
  }

  // Trips that run side by side.
  double trips_of(const Schedule& schedule) const {
    double trips = 1;
    const size_t divided =
        std::min(schedule.order.size(), static_cast<size_t>(std::max(schedule.threads, 0)));
    for (size_t i = 0; i < divided; ++i)
      trips *= std::ceil(extent(schedule.order[i]) / points_of(schedule, schedule.order[i]));
    return trips;
  }

  double operations_of(const Schedule& schedule) const {
    if (facts_->body.in_place) return points(~KernelFacts::Loops{0});  // of the update alone
    const auto* nest = schedule.if_is<NestFields>();
    const bool repeats = nest != nullptr && nest->row == 0 && facts_->work.operations > 0;
    const double once = repeats ? facts_->work.operations : facts_->work.inherent;
    return std::max(once * repetition(divided_loops(schedule)), 1.0);
  }

  // The loops of which each thread has one trip.
  static KernelFacts::Loops divided_loops(const Schedule& schedule) {
    KernelFacts::Loops loops = 0;
    for (size_t i = 0; i < schedule.order.size() && static_cast<int>(i) < schedule.threads; ++i)
      loops |= KernelFacts::Loops{1} << schedule.order[i];
    return loops;
  }

  double points(KernelFacts::Loops loops) const {
    double all = 1;
    for (size_t i = 0; i < facts_->loops.size(); ++i)
      if ((loops >> i & 1U) != 0) all *= facts_->loops[i].extent;
    return all;
  }

  // Each thread computes for itself even numbers that do not depend on its trip, as sums of a row.
  double repetition(KernelFacts::Loops divided) const {
    const Graph& graph = facts_->body.graph;
    double once = 0, by_threads = 0;
    for (const KernelFacts::Arithmetic& each : facts_->arithmetic) {
      const double slots = each.share * slots_of(graph.opcode(each.node),
                                                 graph.type(graph.result(each.node)).dtype());
      once += slots * points(each.loops);
      by_threads += slots * points(each.loops | divided);
    }
    return once > 0 ? by_threads / once : 1;
  }

  // The bytes that all accesses together ask of the last cache.
  double accessed(const Schedule& schedule) const {
    const int inner =
        schedule.threads < 1 || schedule.order.empty()
            ? -1
            : schedule
                  .order[std::min(schedule.order.size(), static_cast<size_t>(schedule.threads)) -
                         1];
    double all = 0;
    for (const KernelFacts::Array& array : facts_->arrays) {
      const bool is_reduced = array.loops >> facts_->space.parallel != 0;
      const double count =
          array.share * points(is_reduced ? array.loops | divided_loops(schedule) : array.loops);
      const double stride = inner < 0 || static_cast<size_t>(inner) >= array.stride.size()
                                ? 0
                                : array.stride[static_cast<size_t>(inner)];
      // False for NaN: such places are anywhere.
      const bool are_neighbours = inner >= 0 && std::abs(stride) <= 1;
      all += count * (are_neighbours ? array.element : std::max(array.element, kGpuSector));
    }
    return all;
  }

  // A thread takes one trip of the loops that threads divide.
  GpuTimes plain_times(const Schedule& schedule) const {
    const Gpu& gpu = *target_.gpu;
    const auto sms = static_cast<double>(target_.cores);
    const double resident = sms * static_cast<double>(gpu.warps * kWarpLanes);
    const double operations = operations_of(schedule);
    const double near = target_.caches.back().bytes_per_second * sms;
    return {.arithmetic = operations / (kGpuSlotsOfPeak * target_.peak(DType::f32) * sms),
            .latency = operations / std::min(trips_of(schedule), resident) * kGpuStep,
            .access = accessed(schedule) / near};
  }

  const std::shared_ptr<const KernelFacts> facts_;
  const Target& target_;
  const GpuModel* const model_;  // null: the analytic price
  double bytes_ = 0;             // of all arrays, each once
  std::shared_ptr<const BlockWinogradRoles> winograd_;
};

}  // namespace

GpuCost::GpuCost(Target target, std::shared_ptr<const GpuModel> model)
    : target_(std::move(target)), model_(std::move(model)) {
  HONE_CHECK(target_.gpu, "the target '{}' is a CPU", target_.name);
}

std::string GpuCost::version() const {
  const uint64_t of_target = hash_string(print(target_));
  if (model_ == nullptr) return fmt::format("gpu analytic {} {:016x}", kGpuFormulas, of_target);
  return fmt::format("gpu learned {} {:016x}", kGpuFormulas,
                     hash_string(print(*model_), of_target));
}

std::unique_ptr<PricedKernel> GpuCost::kernel(std::shared_ptr<const KernelFacts> facts,
                                              int64_t /*threads*/) const {
  return std::make_unique<GpuKernelPrice>(std::move(facts), target_, model_.get());
}

GpuTimes GpuCost::times(std::shared_ptr<const KernelFacts> facts, const Schedule& schedule) const {
  return GpuKernelPrice(std::move(facts), target_, nullptr).times_of(schedule);
}

double GpuCost::copy(double bytes) const {
  return 2 * bytes / (kGpuReached * target_.memory_all_cores);
}

double GpuCost::command() const { return target_.gpu->launch; }

std::shared_ptr<const Cost> analytic_cost(const Target& target) {
  if (target.gpu) return std::make_shared<GpuCost>(target);
  return std::make_shared<AnalyticCost>(target);
}

}  // namespace hone
