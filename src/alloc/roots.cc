#include "alloc/roots.h"

#include "alloc/blocks.h"
#include "alloc/search.h"

namespace hone {
namespace {

// Some hundredths of a second: if it takes longer, to fold on is better.
constexpr int64_t kNodes = 3'000;

// What is left of many boxes begins and ends at few moments: it is a small problem of its own.
std::optional<std::vector<int64_t>> search_roots(std::span<const Box> roots, int64_t goal,
                                                 Limits& limits) {
  MemoryProblem problem;
  for (const Box& box : roots)
    problem.buffers.push_back({.begin = box.first, .end = box.end, .size = box.size});
  const Blocks blocks = blocks_of(problem).value();
  Limits part(kNodes, limits);
  MemoryCounts counts;
  const SearchResult result = search(blocks.spaces[0], goal, {}, part, counts);
  if (result.found != Found::placement) return std::nullopt;
  std::vector<int64_t> offsets(roots.size());
  spread(blocks.spaces[0], result.offsets, offsets);
  return offsets;
}

}  // namespace

std::vector<int64_t> place_roots(const Folding& folding, int32_t sections, int64_t goal,
                                 Limits& limits) {
  const std::vector<Box> roots = folding.roots();
  std::vector<int64_t> best;
  int64_t least = INT64_MAX;
  for (const NicheRule& rule : niche_rules(roots.size())) {
    const std::vector<uint32_t> order = ranked(roots, sections, rule.rank, rule.crowded);
    std::vector<int64_t> offsets = fill_niches(roots, sections, order, rule.leftmost);
    int64_t height = 0;
    for (size_t i = 0; i < roots.size(); ++i) height = std::max(height, offsets[i] + roots[i].size);
    if (height < least) best = std::move(offsets);
    least = std::min(least, height);
    if (least <= goal) break;
  }
  // Fewer boxes are searched as they are.
  const bool is_large = folding.boxes() > kMaxSearchedBlocks;
  if (least > goal && is_large && roots.size() <= kMostRootsSearched)
    if (auto offsets = search_roots(roots, goal, limits)) best = std::move(*offsets);
  return folding.unfold(best);
}

}  // namespace hone
