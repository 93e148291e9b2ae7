#include <algorithm>
#include <cmath>
#include <limits>

#include "cost/gpu_block_price.h"
#include "kernel/algorithms/block_copy.h"
#include "kernel/algorithms/block_sums.h"

// Prices of block_sums and block_copy: blocks whose threads share memory that is read once.

namespace hone {

namespace {

constexpr double kPointSlots = 2;     // instructions around the load of a point
constexpr double kElementSlots = 10;  // instructions that copy an element to memory of a block

double counted(int64_t n) { return static_cast<double>(n); }

class SharedTimes {
 public:
  SharedTimes(const KernelFacts& facts, const Schedule& schedule, const Target& target)
      : facts_(facts), schedule_(schedule), target_(target) {}

  GpuTimes sums(NodeId node) const {
    const SumsShape shape = sums_shape(facts_.body, node, schedule_);
    const AccessRelation relation = relation_of(facts_.body.graph, node);
    double points = 1, of_thread = 1;
    const auto first = static_cast<size_t>(facts_.space.parallel);
    for (size_t d = first; d < relation.dims.size(); ++d) {
      const double all = of(relation.dims[d].extent);
      const auto dim = static_cast<int>(d);
      points *= all;
      if (dim == shape.slots_dim)
        of_thread *= std::ceil(all / counted(shape.parts()));
      else
        of_thread *= dim == shape.lanes_dim ? std::ceil(all / counted(kWarpLanes)) : all;
    }
    const double results = of_results(1),
                 blocks = of_results(counted(shape.columns)) / counted(shape.rows);
    const double each = kPointSlots + std::max(facts_.work.inherent, 1.0) / (results * points);
    const double steps = of_thread * each * counted(shape.rows);
    const double combined = shape.columns == 1 ? kGpuCombining * counted(shape.rows) : 0;
    const double rows = counted(shape.rows * shape.threads / kWarpLanes);
    const double slots = steps + combined + rows + kGpuBarrierSlots;
    GpuTimes times = of_blocks(blocks * counted(shape.splits), counted(shape.threads), slots);
    const int lane = shape.columns == 1 ? -1 : schedule_.order.back();
    for (const KernelFacts::Array& array : facts_.arrays)
      times.access += seconds_near(again(array, shape) *
                                   bytes_of(array, lane >= 0 ? lane : last_of_sum(array)));
    if (shape.splits > 1) add_splits(results, counted(shape.splits), times);
    return times;
  }

  GpuTimes copies(const std::vector<BlockRow::Read>& reads) const {
    const double threads = counted(schedule_.get<BlockCopyFields>().warps * kWarpLanes);
    const int across = schedule_.order[schedule_.order.size() - 2], along = schedule_.order.back();
    double blocks = 1;
    for (int dim : schedule_.order)
      blocks *=
          dim == across || dim == along ? std::ceil(extent(dim) / counted(kCopySide)) : extent(dim);
    const double each = std::max(facts_.work.inherent, 1.0) / of_results(1) +
                        kElementSlots * counted(std::ssize(reads));
    const double steps = counted(kCopySide * kCopySide) / threads;
    GpuTimes times = of_blocks(blocks, threads, steps * each + kGpuBarrierSlots);
    for (const KernelFacts::Array& array : facts_.arrays) {
      const bool is_copied = !array.is_store && std::ranges::any_of(reads, [&](const auto& read) {
        return read.parameter == array.value;
      });
      times.access += seconds_near(count(array) * bytes_of(array, is_copied ? across : along));
    }
    return times;
  }

 private:
  static double of(const Dim& extent) { return counted(std::max<int64_t>(extent.range().high, 1)); }
  double extent(int dim) const { return of(facts_.space.dims[static_cast<size_t>(dim)].extent); }
  double seconds_near(double bytes) const {
    return bytes / (target_.caches.back().bytes_per_second * counted(target_.cores));
  }
  double resident() const { return counted(target_.cores * target_.gpu->warps * kWarpLanes); }

  // Results, in tiles of the last dim.
  double of_results(double columns) const {
    double all = 1;
    for (size_t i = 0; i < schedule_.order.size(); ++i)
      all *=
          std::ceil(extent(schedule_.order[i]) / (i + 1 == schedule_.order.size() ? columns : 1));
    return all;
  }

  GpuTimes of_blocks(double blocks, double threads, double slots) const {
    const double waves = std::max(blocks * threads / resident(), 1.0);
    return {.arithmetic = blocks * threads * slots /
                          (kGpuSlotsOfPeak * target_.peak(DType::f32) * counted(target_.cores)),
            .latency = slots * waves * kGpuStep};
  }

  // A launch of threads, each of which adds the parts of a result.
  void add_splits(double results, double splits, GpuTimes& times) const {
    times.latency +=
        target_.gpu->launch + splits * std::max(results / resident(), 1.0) * kGpuStep / kGpuOverlap;
    times.access += seconds_near(2 * results * splits * sizeof(float));
  }

  double count(const KernelFacts::Array& array) const {
    double all = array.share;
    for (size_t i = 0; i < facts_.loops.size(); ++i)
      if ((array.loops >> i & 1U) != 0) all *= facts_.loops[i].extent;
    return all;
  }
  // The same by all blocks: those that differ in other dims read it again.
  double again(const KernelFacts::Array& array, const SumsShape& shape) const {
    double all = count(array);
    for (size_t i = 0; i < schedule_.order.size(); ++i) {
      const int dim = schedule_.order[i];
      if ((array.loops >> dim & 1U) != 0 || dim == shape.rows_dim) continue;
      all *=
          std::ceil(extent(dim) / (i + 1 == schedule_.order.size() ? counted(shape.columns) : 1));
    }
    return all;
  }

  // The bytes of an access by threads that have points of this loop side by side; -1: of none.
  double bytes_of(const KernelFacts::Array& array, int lane) const {
    const double stride = lane < 0 ? 0 : array.stride[static_cast<size_t>(lane)];
    return std::abs(stride) <= 1 ? array.element : std::max(array.element, kGpuSector);
  }
  int last_of_sum(const KernelFacts::Array& array) const {
    for (int i = static_cast<int>(facts_.loops.size()) - 1; i >= facts_.space.parallel; --i)
      if ((array.loops >> i & 1U) != 0) return i;
    return -1;
  }

  const KernelFacts& facts_;
  const Schedule& schedule_;
  const Target& target_;
};

}  // namespace

GpuTimes block_sums_times(const KernelFacts& facts, const Schedule& schedule,
                          const Target& target) {
  const Result<NodeId> node = summed_node(facts.body, facts.space);
  if (!node.ok()) return {.latency = std::numeric_limits<double>::infinity()};
  return SharedTimes(facts, schedule, target).sums(*node);
}

GpuTimes block_copy_times(const KernelFacts& facts, const Schedule& schedule,
                          const Target& target) {
  const Result<std::vector<BlockRow::Read>> reads = copied_reads(facts.body, facts.space, schedule);
  if (!reads.ok()) return {.latency = std::numeric_limits<double>::infinity()};
  return SharedTimes(facts, schedule, target).copies(*reads);
}

}  // namespace hone
