#include "alloc/roots.h"

#include <algorithm>

#include "alloc/hulls.h"
#include "alloc/occupied.h"
#include "alloc/search.h"

namespace hone {
namespace {

// More boxes are not searched; and again only where so much fewer are left, or others after a
// while.
constexpr size_t kMostSearched = 250;
constexpr double kFewer = 0.85, kPatience = 1.05;
// A search is a dive and a little more, or, of few boxes, whose nodes take less time, what takes as
// long, some hundredths of a second: if it takes longer, to fold on is better.
constexpr int64_t kNodesPerBox = 8, kNodesOfOne = 100'000;
// Heights at which large boxes are searched, as shares of what is between their load and the whole
// height. Where little is free, much follows from each step; where more is, there is room above.
constexpr double kHeights[] = {0, 0.25, 0.5};
// Where the goal is the bound, a placement is worth a try that is above it by a so manieth, or is
// by so much nearer to it than the best.
constexpr int64_t kWorth = 50;
constexpr double kNearer = 0.75;
// What is looked at to tell small from large, and to place the small ones: hundredths of a second.
constexpr size_t kMostRoots = 50'000;
constexpr int64_t kMostLoads = 50'000'000, kMostLooks = 10'000'000;

Placement placement_of(std::span<const Box> boxes, std::vector<int64_t> offsets) {
  int64_t height = 0;
  for (size_t i = 0; i < offsets.size(); ++i) height = std::max(height, offsets[i] + boxes[i].size);
  return {std::move(offsets), height};
}

Block block_of(const Box& box) {
  return {.size = box.size, .slabs = {{box.first, box.end, 0, box.size}}};
}

}  // namespace

Placement place_roots(const Folding& folding, int32_t sections, int64_t goal, Limits& limits) {
  const std::vector<Box> roots = folding.roots();
  Placement best{{}, INT64_MAX};
  for (const NicheRule& rule : niche_rules(roots.size())) {
    const std::vector<uint32_t> order = ranked(roots, sections, rule.rank, rule.crowded);
    Placement filled = placement_of(roots, fill_niches(roots, sections, order, rule.leftmost));
    if (filled.height < best.height) best = std::move(filled);
    if (best.height <= goal || limits.is_late()) return best;
  }
  return best;
}

LargeRoots::LargeRoots(const Packing& packing, int64_t goal, Limits& limits)
    : sections_(packing.sections),
      goal_(goal),
      bound_(std::ranges::max(loads(packing))),
      limits_(limits),
      moments_(packing.moments) {
  moments_.push_back(moments_.back() + 1);
}

std::optional<Placement> LargeRoots::place(const Folding& folding, int64_t best) {
  if (folding.count() > kMostRoots) return std::nullopt;
  const std::vector<Box> roots = folding.roots();
  const auto above = static_cast<int64_t>(kNearer * static_cast<double>(best - bound_));
  const int64_t most = goal_ > bound_ ? goal_ : bound_ + std::min(bound_ / kWorth, above);
  const std::optional<Sizes> sizes = split(roots, most - bound_);
  if (!sizes) return std::nullopt;
  const auto count = static_cast<double>(sizes->large.size());
  if (count >= kFewer * searched_) {
    searched_ *= kPatience;
    return std::nullopt;
  }
  searched_ = count;
  std::optional<Placement> result = place(roots, *sizes, most, best);
  if (!result || result->height <= goal_ || limits_.is_late()) return result;
  // With fewer small ones.
  if (const std::optional<Sizes> fewer = split(roots, (most - bound_) / 2))
    if (auto lower = place(roots, *fewer, most, result->height)) return lower;
  return result;
}

std::optional<Placement> LargeRoots::place(std::span<const Box> roots, const Sizes& sizes,
                                           int64_t most, int64_t below) {
  MemoryProblem problem;  // begins and ends at few moments
  for (uint32_t i : sizes.large)
    problem.buffers.push_back(
        {.begin = roots[i].first, .end = roots[i].end, .size = roots[i].size});
  const Blocks blocks = blocks_of(problem).value();
  int64_t least = 0;
  for (int64_t load : loads(blocks.spaces[0])) least = std::max(least, load);
  std::optional<Placement> lowest;
  for (const double share : kHeights) {
    const int64_t height = least + static_cast<int64_t>(share * static_cast<double>(most - least));
    const std::optional<Placement> found = search_large(blocks.spaces[0], height);
    if (!found) continue;
    for (const bool long_first : {true, false}) {
      if (limits_.is_late()) return lowest;
      auto all = fit_small(roots, sizes, *found, long_first, below);
      if (!all) continue;
      below = all->height;
      lowest = std::move(all);
      if (below <= goal_) return lowest;
    }
    if (sizes.large.empty()) break;
  }
  return lowest;
}

// Small are the least by area, as many as use no more than that together at any time. None if too
// many are large.
std::optional<LargeRoots::Sizes> LargeRoots::split(std::span<const Box> roots, int64_t most) const {
  std::vector<std::pair<double, uint32_t>> by_area;
  for (uint32_t i = 0; i < roots.size(); ++i) {
    const Box& box = roots[i];
    const int64_t time =
        moments_[static_cast<size_t>(box.end)] - moments_[static_cast<size_t>(box.first)];
    by_area.emplace_back(static_cast<double>(box.size) * static_cast<double>(time), i);
  }
  std::ranges::sort(by_area);
  Sizes sizes;
  std::vector<int64_t> loads(static_cast<size_t>(sections_));
  int64_t looks = 0;
  for (const auto& [area, i] : by_area) {
    const Box& box = roots[i];
    if ((looks += box.length()) > kMostLoads) return std::nullopt;
    const std::span here =
        std::span(loads).subspan(static_cast<size_t>(box.first), static_cast<size_t>(box.length()));
    const bool is_small =
        std::ranges::all_of(here, [&](int64_t load) { return load + box.size <= most; });
    (is_small ? sizes.small : sizes.large).push_back(i);
    if (is_small)
      for (int64_t& load : here) load += box.size;
    if (sizes.large.size() > kMostSearched) return std::nullopt;
  }
  return sizes;
}

std::optional<Placement> LargeRoots::search_large(const Packing& large, int64_t height) {
  if (large.blocks.empty()) return Placement{};
  const int64_t boxes = std::ssize(large.blocks);
  Limits part(std::max(kNodesPerBox * boxes, kNodesOfOne / boxes), limits_, false);
  MemoryCounts counts;
  const SearchResult found = search(large, height, {}, part, counts);
  if (found.found != Found::placement) return std::nullopt;
  Placement placement{std::vector<int64_t>(large.blocks.size()), height_of(large, found.offsets)};
  spread(large, found.offsets, placement.offsets);
  return placement;
}

// First fit. Those come first that live long, and need what is free all the time; or the largest.
// None that is not below a height, or takes long.
std::optional<Placement> LargeRoots::fit_small(std::span<const Box> roots, const Sizes& sizes,
                                               const Placement& large, bool long_first,
                                               int64_t below) const {
  if (large.height >= below) return std::nullopt;
  std::vector<int64_t> offsets(roots.size());
  Occupied occupied(sections_);
  const auto put = [&](uint32_t i, const Block& block, int64_t offset) {
    offsets[i] = offset;
    occupied.add(block, offset);
  };
  for (size_t k = 0; k < sizes.large.size(); ++k)
    put(sizes.large[k], block_of(roots[sizes.large[k]]), large.offsets[k]);
  std::vector<uint32_t> order(sizes.small.rbegin(), sizes.small.rend());
  if (long_first)
    std::ranges::sort(
        order, {}, [&](uint32_t i) { return std::tuple(-roots[i].length(), -roots[i].size, i); });
  for (uint32_t i : order) {
    const Block block = block_of(roots[i]);
    const int64_t offset = occupied.lowest(block);
    if (offset + block.size >= below || occupied.looks() > kMostLooks) return std::nullopt;
    put(i, block, offset);
  }
  return placement_of(roots, std::move(offsets));
}

}  // namespace hone
