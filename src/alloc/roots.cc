#include "alloc/roots.h"

#include "alloc/search.h"

namespace hone {
namespace {

// Some hundredths of a second: if it takes longer, to fold on is better.
constexpr int64_t kNodes = 3'000;

Placement placement_of(std::span<const Box> boxes, std::vector<int64_t> offsets) {
  int64_t height = 0;
  for (size_t i = 0; i < offsets.size(); ++i) height = std::max(height, offsets[i] + boxes[i].size);
  return {std::move(offsets), height};
}

// What is left of many boxes begins and ends at few moments: it is a small problem of its own.
std::optional<Placement> search_roots(std::span<const Box> roots, int64_t goal, Limits& limits) {
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
  return placement_of(roots, std::move(offsets));
}

}  // namespace

Placement place_roots(const Folding& folding, int32_t sections, int64_t goal, Limits& limits) {
  const std::vector<Box> roots = folding.roots();
  Placement best{{}, INT64_MAX};
  for (const NicheRule& rule : niche_rules(roots.size())) {
    const std::vector<uint32_t> order = ranked(roots, sections, rule.rank, rule.crowded);
    Placement filled = placement_of(roots, fill_niches(roots, sections, order, rule.leftmost));
    if (filled.height < best.height) best = std::move(filled);
    if (best.height <= goal) return best;
  }
  // Fewer boxes are searched as they are.
  const bool is_large = folding.boxes() > kMaxSearchedBlocks;
  if (is_large && roots.size() <= kMostRootsSearched)
    if (auto found = search_roots(roots, goal, limits)) best = std::move(*found);
  return best;
}

}  // namespace hone
