#include "cost/gpu_block_price.h"

#include <cmath>
#include <limits>
#include <set>

#include "kernel/algorithms/block_chain.h"
#include "kernel/algorithms/block_rows.h"
#include "kernel/algorithms/block_tiles.h"
#include "program/build/block_operand.h"

namespace hone {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kFar = 6e-7;        // seconds of an access to memory
constexpr double kIssue = 2e-9;      // from an instruction of a thread to the next
constexpr double kTileSlots = 0.4;   // instructions of a tile per operation of the peak
constexpr double kCopySlots = 8;     // instructions that copy a number to the memory of a block
constexpr double kSplitSlots = 20;   // and divide it into parts
constexpr double kStepSlots = 20;    // and those around a step
constexpr int64_t kTogether = 16;    // points whose products of parts are added at once
constexpr double kResultSlots = 10;  // that store a result
constexpr double kTensorPart = 0.5;  // of the peak of tensor cores
constexpr double kWordSlots = 6;     // instructions that make a word of two numbers in memory
constexpr double kSumSlots = 4;      // that scale a sum of a chain, or store it for a later stage
constexpr double kOtherRegisters = 40;  // of a thread, beside its sums

double real(int64_t n) { return static_cast<double>(n); }
double of(const Dim& extent) { return real(std::max<int64_t>(extent.range().high, 1)); }

double seconds_near(const Target& target, double bytes) {
  return bytes / (target.caches.back().bytes_per_second * real(target.cores));
}

// ---- Rows ---------------------------------------------------------------------------------------

class RowsTimes {
 public:
  RowsTimes(const KernelFacts& facts, const Schedule& schedule, const Target& target,
            const BlockRow& row)
      : facts_(facts),
        schedule_(schedule),
        target_(target),
        row_(row),
        own_(schedule.get<BlockRowsFields>()),
        threads_(real(row_threads(own_))) {}

  GpuTimes times() {
    double blocks = 1;
    std::vector<double> row;
    for (size_t i = 0; i < schedule_.order.size(); ++i) {
      const double points = of(extent(schedule_.order[i]));
      if (i < static_cast<size_t>(schedule_.threads))
        blocks *= points;
      else
        row.push_back(points);
    }
    add_part(row);
    for (const BlockRow::Shared& shared : row_.shared) add_reduction(shared.node);
    const double each = std::max(facts_.work.inherent, 1.0) / (blocks * points_);
    const double combined = real(std::ssize(row_.shared)) * (kGpuCombining + 2 * real(own_.warps));
    const auto sms = real(target_.cores);
    const double resident = sms * real(target_.gpu->warps * kWarpLanes);
    const double waves = std::max(blocks * threads_ / resident, 1.0);
    const double chain = steps_ * each / (own_.kept > 0 ? kGpuOverlap : 1) + combined / kGpuOverlap;
    return {.arithmetic = blocks * threads_ * (steps_ * each + combined) /
                          (kGpuSlotsOfPeak * target_.peak(DType::f32) * sms),
            .latency = chain * waves * kGpuStep,
            .access = seconds_near(target_, accessed())};
  }

 private:
  Dim extent(int dim) const { return facts_.space.dims[static_cast<size_t>(dim)].extent; }

  // Threads divide the last of these dims.
  void add_part(const std::vector<double>& dims) {
    double points = 1, steps = 1;
    for (size_t i = 0; i < dims.size(); ++i) {
      points *= dims[i];
      steps *= i + 1 < dims.size() ? dims[i] : std::ceil(dims[i] / threads_);
    }
    points_ += points;
    steps_ += steps;
  }

  void add_reduction(NodeId node) {
    const AccessRelation relation = relation_of(facts_.body.graph, node);
    std::vector<double> dims;
    const int rank = facts_.body.graph.type(facts_.body.graph.result(node)).rank();
    for (size_t d = static_cast<size_t>(rank); d < relation.dims.size(); ++d)
      dims.push_back(of(relation.dims[d].extent));
    add_part(dims);
  }

  // Bytes, in whole sectors where threads side by side do not read neighbours. Kept numbers are
  // read once.
  double accessed() const {
    std::set<uint32_t> seen;
    double all = 0;
    for (const KernelFacts::Array& array : facts_.arrays) {
      const bool is_kept = own_.kept > 0 && !array.is_store &&
                           std::ranges::any_of(row_.kept, [&](const BlockRow::Kept& kept) {
                             return kept.parameter == array.value;
                           });
      if (is_kept && !seen.insert(array.value.index).second) continue;
      double count = array.share;
      for (size_t i = 0; i < facts_.loops.size(); ++i)
        if ((array.loops >> i & 1U) != 0) count *= facts_.loops[i].extent;
      const int lane = lane_of(array);
      const double stride = lane < 0 ? 2 : array.stride[static_cast<size_t>(lane)];
      all += count * (std::abs(stride) <= 1 ? array.element : std::max(array.element, kGpuSector));
    }
    return all;
  }

  // The loop whose points threads side by side have: of a reduction, or of the row's last dim.
  int lane_of(const KernelFacts::Array& array) const {
    for (int i = static_cast<int>(facts_.loops.size()) - 1; i >= facts_.space.parallel; --i)
      if ((array.loops >> i & 1U) != 0) return i;
    const bool has_row = schedule_.threads < std::ssize(schedule_.order);
    return has_row && (array.loops >> schedule_.order.back() & 1U) != 0 ? schedule_.order.back()
                                                                        : -1;
  }

  const KernelFacts& facts_;
  const Schedule& schedule_;
  const Target& target_;
  const BlockRow& row_;
  const BlockRowsFields& own_;
  const double threads_;
  double points_ = 0, steps_ = 0;  // of all parts of a row; those of a thread
};

}  // namespace

GpuTimes block_rows_times(const KernelFacts& facts, const Schedule& schedule,
                          const Target& target) {
  const Result<BlockRow> row = block_row(facts.body, facts.space, schedule);
  if (!row.ok() || row->shared.empty()) return {.latency = kInfinity};
  return RowsTimes(facts, schedule, target, *row).times();
}

// ---- Tiles --------------------------------------------------------------------------------------

namespace {

// How the steps of all tiles are divided among blocks.
struct BlockWork {
  double blocks = 0, steps = 0;  // of each block
  double tiles = 1;              // whose results a block has
};
BlockWork work_of(const TiledProduct& product, const BlockTile& tile) {
  if (tile.shares == 0)
    return {.blocks = real(blocks_of(product, tile)), .steps = real(steps_of_split(product, tile))};
  const TileShares shares = tile_shares(product, tile).value();
  return {.blocks = real(shares.blocks),
          .steps = real(shares.share),
          .tiles = real(shares.most_tiles())};
}

// Parts of the sums that blocks have are stored, and a second kernel adds them.
void add_parts(const PartSums& parts, const BlockTile& tile, const Target& target,
               GpuTimes& times) {
  const double sums = real(parts.sums);
  const double resident = real(target.cores * target.gpu->warps * kWarpLanes);
  const double slots = real(parts.parts) + kResultSlots;
  const int bytes = bits(tile.summed) / 8;
  times.arithmetic +=
      sums * slots / (kGpuSlotsOfPeak * target.peak(DType::f32) * real(target.cores));
  times.latency +=
      target.gpu->launch + kFar + std::ceil(sums / resident) * slots / kGpuOverlap * kGpuStep;
  times.access += seconds_near(target, 2 * real(parts.stored) * bytes);
}

// The bytes of an operand's or a result's number, in memory of the caller.
int bytes_of_number(const BlockTile& tile) {
  return bits(tile.numbers.parts > 1 ? DType::f32 : tile.stored) / 8;
}

// Operations of tensor cores in a second.
double tensor_peak(const BlockTile& tile, const Target& target) {
  constexpr double kOfTf32 = 0.5;  // of that of bf16
  return tile.numbers.are_tf32 ? kOfTf32 * target.peak(DType::bf16) : target.peak(tile.stored);
}

// The blocks that an SM has in turn, and at a time.
double turns_of(const BlockWork& work, const Target& target) {
  return std::ceil(work.blocks / real(target.cores));
}
double blocks_together(const BlockTile& tile, const Gpu& gpu) {
  const double threads = real(tile.threads()), sums = real(sums_of_thread(tile));
  return std::max(
      1.0,
      std::floor(std::min({real(gpu.warps * kWarpLanes) / threads,
                           real(gpu.registers) / ((kOtherRegisters + sums) * threads),
                           real(gpu.shared_bytes) / real(std::max<int64_t>(tile.bytes(), 1))})));
}

// Warpgroups multiply what the engine of their processor fetches. A step takes what is slower, and
// a block has ends: it starts, its first operands come, it stores. Measured with products of bf16
// on an H200: tiles of 128 x 64, 128 and 256 took .236, .300 and .569 us a step.
constexpr double kGroupPart = 0.91;       // of the peak of tensor cores
constexpr double kFetchPart = 0.85;       // of the bytes that the last cache has for a processor
constexpr double kGroupStart = 2.4e-6;    // seconds
constexpr double kGroupStores = 6.8e-11;  // seconds a byte of results

GpuTimes group_times(const KernelFacts& facts, const TiledProduct& whole, const BlockTile& tile,
                     const BlockWork& work, const Target& target) {
  const double points = real(tile.lines[0] * tile.lines[1]);
  double product = 2 * points * real(tile.numbers.products() * tile.depth) /
                   (kGroupPart * tensor_peak(tile, target));
  double fetch = 0;
  for (size_t side = 0; side < 2; ++side) {
    const double numbers = real(tile.lines[side] * tile.depth);
    const bool has_parts = tile.numbers.parts > 1;
    if (block_operand(facts, whole, tile, side).box_axis)
      fetch += numbers * bits(tile.stored) / (8 * kFetchPart * target.memory_one_core);
    else  // threads copy it, between products
      product += numbers * (kCopySlots + (has_parts ? kSplitSlots : 0)) /
                 (kTileSlots * target.peak(DType::f32));
  }
  const double ahead = real(tile.stages - 1) * blocks_together(tile, *target.gpu);
  const double step =
      ahead > 0 ? std::max({product, fetch, (kFar + fetch) / ahead}) : product + kFar + fetch;
  const double ends = kGroupStart + kGroupStores * points * bytes_of_number(tile);
  return {.arithmetic = turns_of(work, target) * (work.steps * step + work.tiles * ends)};
}

// Operands and sums of a thread, of a warp on tensor cores.
GpuTimes thread_times(const BlockTile& tile, const BlockWork& work, const Target& target) {
  const double threads = real(tile.threads()), sums = real(sums_of_thread(tile));
  // Counts of a thread, in a step.
  const double copied = real((tile.lines[0] + tile.lines[1]) * tile.depth) / threads;
  const double copy = kCopySlots + (tile.numbers.parts > 1 ? kSplitSlots : 0);
  const double read = real(tile.numbers.parts * (tile.own[0] + tile.own[1]) * tile.depth) /
                      (tile.by_warps ? real(tile.numbers.each() * kWarpLanes) / 4 : 1.0);
  double multiplied = tile.by_warps ? 0 : sums * real(tile.depth);
  if (tile.numbers.parts > 1) multiplied = sums * real(tile.depth) / kTogether;
  const double slots = work.steps * (multiplied + read + copy * copied + kStepSlots) +
                       kResultSlots * sums * work.tiles;
  const double turns = turns_of(work, target);
  double arithmetic = turns * threads * slots / (kTileSlots * target.peak(DType::f32));
  if (tile.by_warps)
    arithmetic += turns * work.steps * 2 *
                  real(tile.numbers.products() * tile.lines[0] * tile.lines[1] * tile.depth) /
                  (kTensorPart * tensor_peak(tile, target));
  const double step = kFar / real(tile.stages) + (multiplied + read + copy * copied) * kIssue;
  const double bytes = work.blocks * work.steps *
                       real((tile.lines[0] + tile.lines[1]) * tile.depth) * bytes_of_number(tile);
  return {.arithmetic = arithmetic,
          .latency = std::ceil(turns / blocks_together(tile, *target.gpu)) * work.steps * step,
          .access = seconds_near(target, bytes)};
}

}  // namespace

GpuTimes block_tiles_times(const KernelFacts& facts, const Schedule& schedule,
                           const Target& target) {
  const Result<TiledProduct> product = tiled_product(facts);
  const bool is_on_tensor_cores = schedule.get<BlockTilesFields>().products == Products::matrix;
  if (!product.ok() || (is_on_tensor_cores && !tensor_numbers(facts)))
    return {.latency = kInfinity};
  const BlockTile tile = block_tile(facts, schedule.get<BlockTilesFields>());
  if (tile.shares > 0 && !tile_shares(*product, tile).ok()) return {.latency = kInfinity};
  if (tile.threads() < 1 || tile.bytes() > target.gpu->block_shared_bytes)
    return {.latency = kInfinity};
  const BlockWork work = work_of(*product, tile);
  GpuTimes times = tile.by_groups ? group_times(facts, *product, tile, work, target)
                                  : thread_times(tile, work, target);
  const PartSums parts = part_sums(*product, tile);
  if (parts.sums > 0) add_parts(parts, tile, target, times);
  return times;
}

// ---- Chains -------------------------------------------------------------------------------------

namespace {

class ChainTimes {
 public:
  ChainTimes(const KernelFacts& facts, const Schedule& schedule, const Target& target)
      : facts_(facts),
        schedule_(schedule),
        target_(target),
        threads_(block_chain_threads(schedule.get<BlockChainFields>())) {}

  GpuTimes times(const std::vector<BlockStage>& stages) {
    const Type results = facts_.body.graph.type(facts_.body.graph.outputs()[0]);
    for (int dim : schedule_.order)
      blocks_ *=
          std::ceil(of(results.dim(dim)) / real(block_chain_points(facts_.body, schedule_, dim)));
    int64_t bytes = 1;
    for (const BlockStage& stage : stages) {
      add(stage);
      bytes += stage.bytes;
    }
    const Gpu& gpu = *target_.gpu;
    const auto sms = real(target_.cores);
    const double fit =
        std::max(1.0, std::floor(std::min(real(gpu.warps * kWarpLanes) / real(threads_),
                                          real(gpu.shared_bytes) / real(bytes))));
    const double turns = std::ceil(blocks_ / sms);
    return {.arithmetic =
                turns * (real(threads_) * slots_ / (kGpuSlotsOfPeak * target_.peak(DType::f32)) +
                         tensor_seconds_),
            .latency = std::ceil(turns / fit) * slots_ / kGpuOverlap * kGpuStep,
            .access = seconds_near(target_, accessed_)};
  }

 private:
  void add(const BlockStage& stage) {
    const KernelFacts facts(stage.stage.body);
    double points = 1;  // of all blocks, each once
    for (Dim dim : stage.stage.body.graph.type(stage.stage.body.graph.outputs()[0]).dims())
      points *= of(dim);
    const auto steps = real(stage.row.steps());
    const bool has_row = stage.row.part == RowPart::scores || stage.row.part == RowPart::weights;
    const double again = blocks_ * real(stage.points) * (has_row ? steps : 1) / points;
    slots_ += steps * kGpuBarrierSlots;
    if (stage.tiles) return add_tiles(stage, facts, again);
    const double terms = real(stage.terms) * (stage.fold && !has_row ? steps : 1);
    // The sum of a row takes weights that are there.
    const double each =
        stage.row.part == RowPart::sums ? 1 : std::max(facts.work.inherent, 1.0) / (points * terms);
    slots_ += steps * real(steps_of_stage(stage, threads_)) * each;
    for (const KernelFacts::Array& array : facts.arrays)
      if (!is_kept(stage, facts, array)) accessed_ += again * bytes_of(facts, array);
  }

  // Each thread makes words of two numbers. Warps read the same lines from the nearest cache, which
  // has them after the first of them.
  void add_tiles(const BlockStage& stage, const KernelFacts& facts, double again) {
    const WarpTiles& tiles = *stage.tiles;
    const auto steps = real(stage.row.steps());
    const double products = steps * std::ceil(real(stage.terms) / real(WarpTiles::kDepth));
    slots_ += products * (kWordSlots * real(tiles.words()) + real(tiles.own[0] * tiles.own[1]));
    slots_ += kSumSlots * real(tiles.sums()) * steps;
    const double lines = real(tiles.lines(0) * tiles.lines(1));
    tensor_seconds_ += 2 * products * lines * real(WarpTiles::kDepth) /
                       (kTensorPart * target_.peak(tiles.numbers));
    for (const KernelFacts::Array& array : facts.arrays) {
      if (is_kept(stage, facts, array)) continue;
      const double by_others =
          array.side < 0 ? 1 : real(tiles.product.lines[static_cast<size_t>(1 - array.side)]);
      accessed_ += again * bytes_of(facts, array) / by_others;
    }
  }

  // True if the array is in memory of the block.
  bool is_kept(const BlockStage& stage, const KernelFacts& facts,
               const KernelFacts::Array& array) const {
    if (array.is_store) return stage.bytes > 0;
    const std::span<const ValueId> inputs = facts.body.graph.inputs();
    const auto at = std::ranges::find(inputs, array.value);
    return at != inputs.end() && stage.stage.sources[static_cast<size_t>(at - inputs.begin())] >=
                                     facts_.body.graph.inputs().size();
  }

  // A sector stays in the nearest cache until a thread has read it all, if it goes along it.
  static double bytes_of(const KernelFacts& facts, const KernelFacts::Array& array) {
    double count = array.share;
    bool has_neighbours = false;
    for (size_t i = 0; i < facts.loops.size(); ++i) {
      if ((array.loops >> i & 1U) == 0) continue;
      count *= facts.loops[i].extent;
      has_neighbours = has_neighbours || std::abs(array.stride[i]) <= 1;
    }
    return count * (has_neighbours ? array.element : std::max(array.element, kGpuSector));
  }

  const KernelFacts& facts_;
  const Schedule& schedule_;
  const Target& target_;
  const int64_t threads_;
  double blocks_ = 1;
  double slots_ = 0;           // of one thread
  double tensor_seconds_ = 0;  // of a block
  double accessed_ = 0;
};

}  // namespace

GpuTimes block_chain_times(const KernelFacts& facts, const Schedule& schedule,
                           const Target& target) {
  const Result<std::vector<BlockStage>> stages = block_stages(facts.body, schedule);
  if (!stages.ok()) return {.latency = kInfinity};
  return ChainTimes(facts, schedule, target).times(*stages);
}

}  // namespace hone
