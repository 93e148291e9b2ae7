#include "alloc/greedy.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "alloc/folding.h"
#include "alloc/generate.h"
#include "alloc/hulls.h"
#include "alloc/roots.h"

namespace hone {
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

Packing random_packing(uint64_t seed, const Kind& kind) {
  Rng rng(seed);
  Packing packing;
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

Packing packing_of(const MemoryProblem& problem) { return blocks_of(problem).value().spaces[0]; }

QuickPlacement placed(const Packing& packing) {
  Limits limits;
  return place_greedily(packing, 0, limits);
}

bool overlap(const Slab& a, int64_t at, const Slab& b, int64_t bt) {
  return a.first < b.end && b.first < a.end && at + a.low < bt + b.high && bt + b.low < at + a.high;
}

int64_t peak(const Packing& packing) { return std::ranges::max(loads(packing)); }

void expect_valid(const Packing& packing, const Placement& placement) {
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

// The same of many boxes.
void expect_valid_boxes(const Packing& packing, const Placement& placement) {
  MemoryProblem problem;
  for (const Block& block : packing.blocks)
    problem.buffers.push_back({.begin = block.first(), .end = block.end(), .size = block.size});
  const auto heights = heights_of(problem, placement.offsets);
  ASSERT_TRUE(heights.ok()) << heights.error().to_string();
  EXPECT_EQ(heights->front(), placement.height);
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
      const Packing packing = random_packing(seed, kind);
      expect_valid(packing, placed(packing));
    }
}

TEST(Greedy, StopsAtTheGoal) {
  Rng rng(1);
  const Packing packing = packing_of(guillotine({.buffers = 300, .steps = 64}, rng));
  const QuickPlacement lowest = placed(packing);
  Limits limits;
  const QuickPlacement enough = place_greedily(packing, 2 * peak(packing), limits);
  expect_valid(packing, enough);
  EXPECT_GT(enough.height, lowest.height);
  EXPECT_LE(enough.height, 2 * peak(packing));
}

TEST(Greedy, PlacesNothing) {
  EXPECT_EQ(placed({}).height, 0);
  QuickPlacement placement;
  Limits limits;
  improve({}, 0, placement, limits);
  EXPECT_EQ(placement.height, 0);
}

TEST(Greedy, OfOneAlignmentRoundsSizes) {
  Packing packing;
  packing.sections = 2;
  for (int32_t i = 0; i < 2; ++i)
    packing.blocks.push_back({.size = 65, .alignment = 64, .slabs = {{0, 2, 0, 65}}});
  const Placement placement = placed(packing);
  expect_valid(packing, placement);
  EXPECT_EQ(placement.height, 128 + 65);
}

TEST(Greedy, LiesUnderWhatIsFixed) {
  Packing packing;
  packing.sections = 1;
  packing.blocks.push_back({.size = 10, .offset = 90, .slabs = {{0, 1, 0, 10}}});
  packing.blocks.push_back({.size = 80, .slabs = {{0, 1, 0, 80}}});
  const Placement placement = placed(packing);
  expect_valid(packing, placement);
  EXPECT_EQ(placement.height, 100);
}

TEST(Greedy, UsesGaps) {
  // The second is in use only where the first has a gap.
  Packing packing;
  packing.sections = 3;
  packing.blocks.push_back({.size = 10, .slabs = {{0, 1, 0, 10}, {2, 3, 0, 10}}});
  packing.blocks.push_back({.size = 10, .slabs = {{1, 2, 0, 10}}});
  const Placement placement = placed(packing);
  expect_valid(packing, placement);
  EXPECT_EQ(placement.height, 10);
}

TEST(Greedy, FindsThePiecesOfARectangle) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const Packing packing = packing_of(guillotine({.buffers = 500, .steps = 1 << 20}, rng));
    const Placement placement = placed(packing);
    expect_valid(packing, placement);
    EXPECT_EQ(placement.height, 1 << 20);
  }
}

Folding folding_of(const Packing& packing) {
  std::vector<Box> boxes;
  for (const Block& block : packing.blocks)
    boxes.push_back({block.first(), block.end(), block.size});
  return Folding(boxes, packing.sections);
}

// What is left of several problems after some attempts.
size_t left_of(const GuillotineOptions& options, int problems, int attempts) {
  size_t left = 0;
  for (int seed = 0; seed < problems; ++seed) {
    Rng rng(static_cast<uint64_t>(seed));
    const Packing packing = packing_of(guillotine(options, rng));
    Folding folding = folding_of(packing);
    for (int i = 0; i < attempts && folding.count() > 1; ++i) folding.refold(rng);
    left += folding.count();
  }
  return left;
}

// Where many have one life, sums alone show what lies on what: without these 2,300 are left.
TEST(Folding, JoinsSeveralWithOneLife) {
  EXPECT_LT(left_of({.buffers = 2000, .steps = 1 << 20, .moments = 60}, 8, 1000), 1000U);
}

// Chains of one size that touch at one moment may have been joined crosswise, in trees that look
// sure: where that is not doubted, 450 to 630 are left.
TEST(Folding, TakesWhatMayBeCrossedApart) {
  EXPECT_LT(left_of({.buffers = 20'000, .steps = 4096}, 5, 10'000), 260U);
}

// Rows of boxes behind each other; of each, every third was cut into 30 that lie on each other and
// have one life with the boxes of the two other rows, and with one that belongs to none. Another
// lives within it.
std::vector<Box> sliced_rows(Rng& rng) {
  std::vector<Box> boxes;
  const auto add = [&](int32_t slice, int64_t size) {
    boxes.push_back({2 * slice, 2 * slice + 2, size});
  };
  const auto cut = [&](int32_t slice, int64_t size) {
    for (int64_t left = 29; left > 0; --left) {
      add(slice, rng.between(1, 2 * size / (left + 1)));
      size -= boxes.back().size;
    }
    add(slice, size);
  };
  for (int32_t row = 0; row < 3; ++row) {
    const int64_t size = rng.between(100'000, 1'000'000);
    for (int32_t slice = 0; slice < 40; ++slice)
      slice % 3 == row ? cut(slice, size) : add(slice, size);
  }
  for (int32_t slice = 0; slice < 40; ++slice) {
    add(slice, rng.between(1, 100'000));
    boxes.push_back({2 * slice, 2 * slice + 1, rng.between(1, 100'000)});
  }
  rng.shuffle(boxes);
  return boxes;
}

// Stacked box by box, each joint looks like a coincidence: 7,400 are left without all of a life,
// and 8,100 where none is left out.
TEST(Folding, JoinsAllOfALife) {
  size_t left = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Rng rng(seed);
    left += Folding(sliced_rows(rng), 80).count();
  }
  EXPECT_LT(left, 1200U);
}

// Nothing tells which of them lie on each other, unless others live within.
TEST(Folding, StacksWhatIsAlone) {
  for (const bool is_alone : {true, false}) {
    Rng rng(1);
    std::vector<Box> boxes;
    for (int32_t first = 0; first < 40; first += 2) {
      for (int i = 0; i < 60; ++i) boxes.push_back({first, first + 2, rng.between(1, 1'000'000)});
      if (!is_alone) boxes.push_back({first + 1, first + 2, rng.between(1, 1'000'000)});
    }
    const size_t left = Folding(boxes, 40).count();
    if (is_alone)
      EXPECT_EQ(left, 20U);
    else
      EXPECT_GT(left, 1000U);
  }
}

TEST(Folding, AttemptsAreShort) {
  // Thousands begin at each moment, and many joints are possible.
  Rng rng(1);
  std::vector<Box> boxes;
  for (int i = 0; i < 20'000; ++i) {
    const auto first = static_cast<int32_t>(rng.below(10));
    boxes.push_back({first, first + 1 + static_cast<int32_t>(rng.below(10)), rng.between(1, 500)});
  }
  Folding folding(boxes, 20);
  for (int i = 0; i < 50; ++i) EXPECT_LT(folding.refold(rng), 20'000'000);
}

// So many meet that lives are looked at as a whole: of one size, or of many.
TEST(Folding, LivesAreShort) {
  for (const int64_t most : {1, 1'000'000}) {
    Rng rng(1);
    std::vector<Box> boxes;
    for (int32_t first = 0; first < 40; ++first)
      for (int i = 0; i < 450; ++i)
        boxes.push_back({first, first + (i < 30 ? 1 : 1 + i / 20), rng.between(1, most)});
    Folding folding(boxes, 70);
    for (int i = 0; i < 50; ++i) EXPECT_LT(folding.refold(rng), 1'500'000);
  }
}

TEST(Folding, RefoldsToTheSameBoxes) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    Rng rng(seed);
    const Packing packing = packing_of(guillotine({.buffers = 500, .steps = 256}, rng));
    Folding folding = folding_of(packing);
    for (int i = 0; i < 100; ++i) {
      const size_t before = folding.count();
      folding.refold(rng);
      EXPECT_LE(folding.count(), before);
    }
    // One on the other, the roots are a placement.
    std::vector<int64_t> offsets;
    Placement placement;
    for (const Box& root : folding.roots()) {
      offsets.push_back(placement.height);
      placement.height += root.size;
    }
    placement.offsets = folding.unfold(offsets);
    expect_valid(packing, placement);
  }
}

// Most pieces are single steps: what is left of them are some large boxes and many small ones.
Packing dusty_packing(uint64_t seed) {
  Rng rng(seed);
  return packing_of(guillotine({.buffers = 30'000, .steps = 1 << 20, .by_area = 0}, rng));
}

TEST(LargeRoots, LeaveRoomForSmallOnes) {
  int placed = 0, tries = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    const Packing packing = dusty_packing(seed);
    Folding folding = folding_of(packing);
    Rng rng(seed);
    const int64_t goal = peak(packing) + peak(packing) / 50;
    Limits limits;
    LargeRoots large(packing, goal, limits);
    for (int i = 0; i < 100; ++i, ++tries) {
      for (int k = 0; k < 10; ++k) folding.refold(rng);
      const std::optional<Placement> roots = large.place(folding, INT64_MAX);
      // The same again is not worth a try.
      EXPECT_FALSE(large.place(folding, INT64_MAX));
      if (!roots) continue;
      Placement all{folding.unfold(roots->offsets), 0};
      all.height = height_of(packing, all.offsets);
      EXPECT_EQ(all.height, roots->height);
      expect_valid_boxes(packing, all);
      placed += roots->height <= goal;
      if (roots->height <= goal) break;
    }
  }
  EXPECT_EQ(placed, 5);
  EXPECT_LT(tries, 20);
}

TEST(LargeRoots, NeedNoSlack) {
  // The goal is the bound: what is within 2 % of it is worth having, and so is what is nearer.
  const Packing packing = dusty_packing(1);
  Folding folding = folding_of(packing);
  Limits limits;
  Rng rng(1);
  LargeRoots large(packing, peak(packing), limits);
  int64_t best = INT64_MAX;
  for (int i = 0; i < 5; ++i) {
    for (int k = 0; k < 10; ++k) folding.refold(rng);
    const std::optional<Placement> roots = large.place(folding, best);
    if (!roots) continue;
    EXPECT_LT(roots->height, best);
    best = roots->height;
  }
  EXPECT_LE(best, peak(packing) + peak(packing) / 50);
}

TEST(LargeRoots, AreFew) {
  Rng rng(1);
  Packing packing;
  packing.sections = 100;
  for (int32_t i = 0; i < 100; ++i) packing.moments.push_back(i);
  for (int i = 0; i < 1000; ++i) {
    const auto first = static_cast<int32_t>(rng.below(100));
    const auto end = static_cast<int32_t>(rng.between(first + 1, 100));
    const int64_t size = rng.between(1, 1'000'000);
    packing.blocks.push_back({.size = size, .slabs = {{first, end, 0, size}}});
  }
  const Folding folding = folding_of(packing);
  ASSERT_GT(folding.count(), 500U);
  Limits limits;
  const int64_t bound = peak(packing);
  EXPECT_FALSE(LargeRoots(packing, bound + 1, limits).place(folding, INT64_MAX));
  // Where all are small, none is searched.
  EXPECT_TRUE(LargeRoots(packing, 100 * bound, limits).place(folding, INT64_MAX));
}

TEST(LargeRoots, StopAtTheLimitAndTakeNoSteps) {
  const Packing packing = dusty_packing(1);
  Folding folding = folding_of(packing);
  Rng rng(1);
  for (int k = 0; k < 2000; ++k) folding.refold(rng);
  const int64_t goal = peak(packing) + peak(packing) / 50;
  Limits few(0, 1, nullptr);
  EXPECT_TRUE(LargeRoots(packing, goal, few).place(folding, INT64_MAX));
  EXPECT_FALSE(few.is_late());
  few.over(2);
  EXPECT_FALSE(LargeRoots(packing, goal, few).place(folding, INT64_MAX));
}

TEST(Improve, NeverMakesItHigher) {
  for (uint64_t seed = 0; seed < 60; ++seed)
    for (const Kind& kind : kKinds) {
      SCOPED_TRACE(seed);
      const Packing packing = random_packing(seed, kind);
      QuickPlacement placement = placed(packing);
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
      const Packing packing = random_packing(seed, kind);
      QuickPlacement placement;
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
  const Packing packing = random_packing(7, {.slabs = true});
  const auto offsets = [&] {
    QuickPlacement placement = placed(packing);
    Limits limits;
    improve(packing, 0, placement, limits);
    return placement.offsets;
  };
  EXPECT_EQ(offsets(), offsets());
}

TEST(Improve, StopsAtTheLimit) {
  Rng rng(1);
  const Packing packing = packing_of(guillotine({.buffers = 500, .steps = 256}, rng));
  const QuickPlacement greedy = placed(packing);
  QuickPlacement placement = greedy;
  Limits limits(0, 1, nullptr);
  limits.over(2);
  improve(packing, 0, placement, limits);
  EXPECT_EQ(placement.offsets, greedy.offsets);
}

}  // namespace
}  // namespace hone
