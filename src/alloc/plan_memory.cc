#include "alloc/plan_memory.h"

#include <algorithm>
#include <numeric>

#include "alloc/greedy.h"
#include "alloc/search.h"
#include "alloc/witness.h"

namespace hone {
namespace {

// Steps for one height while minimizing: enough for some restarts, and for one placement.
constexpr int64_t kFirstNodes = 2'000, kNodesPerBlock = 4;
// Heights nearer to the best than this part of the gap are not worth a try.
constexpr int64_t kNear = 16;

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// No placement is lower.
int64_t bound_of(const BlockPacking& packing) {
  int64_t bound = 0;
  for (int64_t load : loads(packing)) bound = std::max(bound, load);
  for (const Block& block : packing.blocks)
    bound = std::max(bound, block.offset.value_or(block.phase) + block.size);
  return bound;
}

// Plans one space: keeps the best placement and the bound, and betters both.
class SpacePlanner {
 public:
  SpacePlanner(const BlockPacking& packing, int64_t capacity, const MemoryOptions& options,
               uint32_t space, Limits& limits, MemoryCounts& counts)
      : packing_(packing),
        capacity_(capacity),
        options_(options),
        space_(space),
        limits_(limits),
        counts_(counts),
        unit_(unit_of(packing)) {}

  // The quick part: the bound, and the greedy placement.
  void begin() {
    raise_bound(bound_of(packing_));
    if (is_infeasible() || packing_.blocks.empty() || !options_.techniques.greedy) return;
    offer(place_greedily(packing_, goal(), limits_));
  }

  MemoryVerdict finish() {
    if (is_infeasible()) return MemoryVerdict::infeasible;
    if (is_done()) return MemoryVerdict::placed;
    if (options_.techniques.improve && has_placement()) {
      Placement better{offsets_, bounds_.height};
      improve(packing_, goal(), better, limits_);
      offer(std::move(better));
    }
    if (is_done()) return MemoryVerdict::placed;
    if (is_large()) return MemoryVerdict::limit;
    return options_.minimize ? minimize() : fit();
  }

  bool is_infeasible() const { return bounds_.bound > capacity_; }
  bool has_placement() const { return !offsets_.empty() || packing_.blocks.empty(); }
  const std::vector<int64_t>& offsets() const { return offsets_; }
  const BlockPacking& packing() const { return packing_; }
  int64_t capacity() const { return capacity_; }
  const MemoryBounds& bounds() const { return bounds_; }

 private:
  // A placement at this height is good enough: the caller asks for no lower one, or none exists.
  int64_t goal() const { return options_.minimize ? bounds_.bound : capacity_; }
  bool is_done() const { return has_placement() && bounds_.height <= goal(); }

  bool is_large() const { return packing_.blocks.size() > kMaxSearchedBlocks; }

  void offer(Placement placement) {
    if (has_placement() && placement.height >= bounds_.height) return;
    offsets_ = std::move(placement.offsets);
    bounds_.height = placement.height;
    tell();
  }
  void raise_bound(int64_t bound) {
    if (bound <= bounds_.bound) return;
    bounds_.bound = bound;
    tell();
  }
  void tell() const {
    if (options_.better && has_placement()) options_.better(space_, bounds_);
  }

  Found try_height(int64_t height, Limits& limits) {
    FoundPlacement result = search(packing_, height, options_.techniques, limits, counts_);
    if (result.found == Found::placement) {
      Placement placement{std::move(result.offsets), 0};
      for (size_t i = 0; i < packing_.blocks.size(); ++i)
        placement.height =
            std::max(placement.height, placement.offsets[i] + packing_.blocks[i].size);
      offer(std::move(placement));
    } else if (result.found == Found::none) {
      raise_bound(height + unit_ - height % unit_);
    }
    return result.found;
  }

  MemoryVerdict fit() {
    switch (try_height(capacity_, limits_)) {
      case Found::placement: return MemoryVerdict::placed;
      case Found::none: return MemoryVerdict::infeasible;
      default: return MemoryVerdict::limit;
    }
  }

  // Tries the capacity until a placement reaches it. Then tries the bound, then heights halfway
  // between the highest failed one and the best. When these are close, starts again with more
  // steps.
  MemoryVerdict minimize() {
    int64_t nodes = kFirstNodes + kNodesPerBlock * std::ssize(packing_.blocks), given_up = -1;
    for (;;) {
      if (is_infeasible()) return MemoryVerdict::infeasible;
      if (is_done()) return MemoryVerdict::placed;
      if (limits_.over()) return MemoryVerdict::limit;
      const int64_t known = has_placement() ? bounds_.height : sum_of_sizes() + 1;
      const int64_t end = capacity_ < known ? capacity_ + 1 : known;
      const int64_t low = round_up(bounds_.bound, unit_);
      if (low >= end) {
        // Between the bound and the end no height is a multiple of the unit.
        raise_bound(end);
        continue;
      }
      const int64_t near = end - (end - low) / kNear;
      int64_t height = given_up < low ? low : (given_up + (near - given_up) / 2) / unit_ * unit_;
      if (height <= given_up || given_up >= near) {
        given_up = -1;
        nodes *= 4;
        continue;
      }
      const bool is_above = !has_placement() || bounds_.height > capacity_;
      if (given_up < 0 && is_above && capacity_ < end) height = capacity_ / unit_ * unit_;
      Limits part(nodes, limits_);
      if (try_height(height, part) == Found::limit) given_up = height;
    }
  }

  // The height of one placement that always exists: one block on the other, above all fixed ones.
  int64_t sum_of_sizes() const {
    int64_t sum = 0;
    for (const Block& block : packing_.blocks)
      if (block.offset) sum = std::max(sum, *block.offset + block.size);
    for (const Block& block : packing_.blocks)
      if (!block.offset) sum += block.size + block.alignment;
    return sum;
  }

  const BlockPacking& packing_;
  const int64_t capacity_;
  const MemoryOptions& options_;
  const uint32_t space_;
  Limits& limits_;
  MemoryCounts& counts_;
  const int64_t unit_;
  std::vector<int64_t> offsets_;
  MemoryBounds bounds_;
};

// Keeps time after the last look at the clock: the offsets are still spread and judged.
double seconds_to_look(const MemoryProblem& problem, const MemoryOptions& options) {
  constexpr double kPerBuffer = 2e-6, kMost = 0.1;
  const double behind = kPerBuffer * static_cast<double>(problem.buffers.size());
  return options.seconds - std::min(behind, kMost * options.seconds);
}

// Stores the witness: buffers of blocks that do not fit, and the moment.
void tell_witness(const SpacePlanner& planner, const MemoryOptions& options, Limits& limits,
                  MemoryPlan& plan) {
  const BlockPacking& packing = planner.packing();
  const std::vector<uint32_t> blocks =
      smallest_witness(packing, planner.capacity(), options.techniques, limits);
  for (uint32_t i : blocks)
    for (const BlockPacking::Part& part : packing.parts[i]) plan.witness.push_back(part.buffer);
  plan.witness_moment = packing.moments[static_cast<size_t>(busiest_section(packing, blocks))];
}

}  // namespace

Result<MemoryPlan> plan_memory(const MemoryProblem& problem, const MemoryOptions& options) {
  HONE_TRY(check(problem));
  MemoryPlan plan;
  Limits limits(seconds_to_look(problem, options), options.nodes, options.cancel);
  Blocks blocks = HONE_TRY(blocks_of(problem));
  if (!blocks.contradiction.empty()) {
    plan.verdict = MemoryVerdict::infeasible;
    plan.witness = blocks.contradiction;
    for (uint32_t i : plan.witness)
      plan.witness_moment = std::max(plan.witness_moment, problem.buffers[i].begin);
    plan.spaces.resize(space_count(problem));
    return plan;
  }
  std::vector<SpacePlanner> planners;
  for (uint32_t space = 0; space < blocks.spaces.size(); ++space)
    planners.emplace_back(blocks.spaces[space], problem.capacity_of(space), options, space, limits,
                          plan.counts);
  for (SpacePlanner& planner : planners) planner.begin();
  // If a space is infeasible, the others are not searched.
  const bool any_infeasible = std::ranges::any_of(planners, &SpacePlanner::is_infeasible);
  for (SpacePlanner& planner : planners) {
    if (any_infeasible && !planner.is_infeasible()) continue;
    const MemoryVerdict verdict = planner.finish();
    if (verdict == MemoryVerdict::limit) plan.verdict = verdict;
    if (verdict != MemoryVerdict::infeasible) continue;
    plan.verdict = verdict;
    tell_witness(planner, options, limits, plan);
    break;
  }
  for (const SpacePlanner& planner : planners) plan.spaces.push_back(planner.bounds());
  if (plan.verdict == MemoryVerdict::infeasible ||
      !std::ranges::all_of(planners, &SpacePlanner::has_placement))
    return plan;
  plan.offsets = std::move(blocks.offsets);
  for (const SpacePlanner& planner : planners)
    spread(planner.packing(), planner.offsets(), plan.offsets);
  const Result<std::vector<int64_t>> heights = heights_of(problem, plan.offsets);
  HONE_CHECK(heights.ok(), "a wrong placement: {}", heights.error().to_string());
  for (uint32_t space = 0; space < plan.spaces.size(); ++space) {
    const int64_t height = (*heights)[space];
    HONE_CHECK(height == plan.spaces[space].height, "space {} is {} high, not {}", space, height,
               plan.spaces[space].height);
    HONE_CHECK(plan.verdict != MemoryVerdict::placed || height <= problem.capacity_of(space),
               "space {} is {} high", space, height);
  }
  return plan;
}

}  // namespace hone
