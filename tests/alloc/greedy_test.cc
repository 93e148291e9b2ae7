#include "alloc/greedy.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "alloc/generate.h"
#include "alloc/hulls.h"

namespace hone::HONE_FILE {
namespace {

struct Kind {
  bool slabs = false;      // blocks that are no boxes
  bool alignment = false;  // each its own, and phases
  bool offsets = false;    // some are fixed
};

Block random_block(Rng& rng, int32_t sections, const Kind& kind) {
  Block block{.size = rng.between(1, 100)};
  if (kind.alignment) {
    block.alignment = rng.between(1, 20);
    block.phase = rng.between(0, block.alignment - 1);
  }
  int32_t first = static_cast<int32_t>(rng.between(0, sections - 1));
  const int32_t end =
      static_cast<int32_t>(std::min<int64_t>(sections, first + rng.between(1, sections / 3 + 2)));
  if (!kind.slabs) {
    block.slabs = {{first, end, 0, block.size}};
    return block;
  }
  while (first < end) {
    const int32_t to = static_cast<int32_t>(rng.between(first + 1, end));
    const int64_t low = rng.between(0, block.size - 1), high = rng.between(low + 1, block.size);
    block.slabs.push_back({first, to, low, high});
    if (high + 1 < block.size && rng.chance(0.3))
      block.slabs.push_back({first, to, high + 1, block.size});
    first = to + static_cast<int32_t>(rng.between(0, 2));
  }
  return block;
}

BlockPacking random_packing(uint64_t seed, const Kind& kind) {
  Rng rng(seed);
  BlockPacking packing;
  packing.sections = static_cast<int32_t>(rng.between(1, 60));
  const int64_t count = rng.between(1, 60);
  int64_t ground = 0;
  for (int64_t i = 0; i < count; ++i) {
    Block block = random_block(rng, packing.sections, kind);
    if (kind.offsets && rng.chance(0.2)) {
      block.offset = aligned_up(block, ground);
      ground = *block.offset + block.size;
    }
    packing.blocks.push_back(std::move(block));
  }
  return packing;
}

BlockPacking packing_of(const MemoryProblem& problem) {
  return blocks_of(problem).value().spaces[0];
}

Placement placed(const BlockPacking& packing) {
  Limits limits;
  return place_greedily(packing, 0, limits);
}

bool overlap(const Slab& a, int64_t at, const Slab& b, int64_t bt) {
  return a.first < b.end && b.first < a.end && at + a.low < bt + b.high && bt + b.low < at + a.high;
}

int64_t peak(const BlockPacking& packing) { return std::ranges::max(loads(packing)); }

void expect_valid(const BlockPacking& packing, const Placement& placement) {
  ASSERT_EQ(placement.offsets.size(), packing.blocks.size());
  int64_t height = 0;
  for (size_t i = 0; i < packing.blocks.size(); ++i) {
    const Block& block = packing.blocks[i];
    const int64_t offset = placement.offsets[i];
    EXPECT_GE(offset, 0);
    EXPECT_EQ(aligned_up(block, offset), offset);
    if (block.offset) EXPECT_EQ(offset, *block.offset);
    height = std::max(height, offset + block.size);
    for (size_t j = 0; j < i; ++j)
      for (const Slab& a : block.slabs)
        for (const Slab& b : packing.blocks[j].slabs)
          ASSERT_FALSE(overlap(a, offset, b, placement.offsets[j])) << i << " " << j;
  }
  EXPECT_EQ(placement.height, height);
  EXPECT_GE(height, peak(packing));
}

constexpr Kind kKinds[] = {{},
                           {.alignment = true},
                           {.slabs = true},
                           {.offsets = true},
                           {.slabs = true, .alignment = true, .offsets = true}};

TEST(Greedy, PlacesBlocksOfAnyForm) {
  for (uint64_t seed = 0; seed < 200; ++seed)
    for (const Kind& kind : kKinds) {
      SCOPED_TRACE(seed);
      const BlockPacking packing = random_packing(seed, kind);
      expect_valid(packing, placed(packing));
    }
}

TEST(Greedy, StopsAtTheGoal) {
  Rng rng(1);
  const BlockPacking packing = packing_of(guillotine({.buffers = 300, .steps = 64}, rng));
  const Placement lowest = placed(packing);
  Limits limits;
  const Placement enough = place_greedily(packing, 2 * peak(packing), limits);
  expect_valid(packing, enough);
  EXPECT_GT(enough.height, lowest.height);
  EXPECT_LE(enough.height, 2 * peak(packing));
}

TEST(Greedy, PlacesNothing) {
  EXPECT_EQ(placed({}).height, 0);
  Placement placement;
  Limits limits;
  improve({}, 0, placement, limits);
  EXPECT_EQ(placement.height, 0);
}

TEST(Greedy, OfOneAlignmentRoundsSizes) {
  BlockPacking packing;
  packing.sections = 2;
  for (int32_t i = 0; i < 2; ++i)
    packing.blocks.push_back({.size = 65, .alignment = 64, .slabs = {{0, 2, 0, 65}}});
  const Placement placement = placed(packing);
  expect_valid(packing, placement);
  EXPECT_EQ(placement.height, 128 + 65);
}

TEST(Greedy, LiesUnderWhatIsFixed) {
  BlockPacking packing;
  packing.sections = 1;
  packing.blocks.push_back({.size = 10, .offset = 90, .slabs = {{0, 1, 0, 10}}});
  packing.blocks.push_back({.size = 80, .slabs = {{0, 1, 0, 80}}});
  const Placement placement = placed(packing);
  expect_valid(packing, placement);
  EXPECT_EQ(placement.height, 100);
}

TEST(Greedy, UsesGaps) {
  // The second is in use only where the first has a gap.
  BlockPacking packing;
  packing.sections = 3;
  packing.blocks.push_back({.size = 10, .slabs = {{0, 1, 0, 10}, {2, 3, 0, 10}}});
  packing.blocks.push_back({.size = 10, .slabs = {{1, 2, 0, 10}}});
  const Placement placement = placed(packing);
  expect_valid(packing, placement);
  EXPECT_EQ(placement.height, 10);
}

TEST(Improve, NeverMakesItHigher) {
  for (uint64_t seed = 0; seed < 60; ++seed)
    for (const Kind& kind : kKinds) {
      SCOPED_TRACE(seed);
      const BlockPacking packing = random_packing(seed, kind);
      Placement placement = placed(packing);
      const int64_t height = placement.height;
      Limits limits;
      improve(packing, peak(packing), placement, limits);
      expect_valid(packing, placement);
      EXPECT_LE(placement.height, height);
    }
}

TEST(Improve, MakesATowerLower) {
  for (uint64_t seed = 0; seed < 20; ++seed)
    for (const Kind& kind : kKinds) {
      if (kind.offsets) continue;
      SCOPED_TRACE(seed);
      const BlockPacking packing = random_packing(seed, kind);
      Placement placement;
      for (const Block& block : packing.blocks) {
        placement.offsets.push_back(aligned_up(block, placement.height));
        placement.height = placement.offsets.back() + block.size;
      }
      const int64_t height = placement.height;
      Limits limits;
      improve(packing, peak(packing), placement, limits);
      expect_valid(packing, placement);
      if (peak(packing) < height / 2) EXPECT_LT(placement.height, height);
    }
}

TEST(Improve, IsTheSameEachTime) {
  const BlockPacking packing = random_packing(7, {.slabs = true});
  const auto offsets = [&] {
    Placement placement = placed(packing);
    Limits limits;
    improve(packing, 0, placement, limits);
    return placement.offsets;
  };
  EXPECT_EQ(offsets(), offsets());
}

TEST(Improve, StopsAtTheLimit) {
  Rng rng(1);
  const BlockPacking packing = packing_of(guillotine({.buffers = 500, .steps = 256}, rng));
  const Placement greedy = placed(packing);
  Placement placement = greedy;
  Limits limits(0, 1, nullptr);
  limits.over(2);
  improve(packing, 0, placement, limits);
  EXPECT_EQ(placement.offsets, greedy.offsets);
}

}  // namespace
}  // namespace hone::HONE_FILE
