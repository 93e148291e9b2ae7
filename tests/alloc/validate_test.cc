#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "alloc/problem.h"
#include "alloc/uses.h"
#include "base/rng.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::ElementsAre;

MemoryProblem of(std::vector<MemoryBuffer> buffers) { return {.buffers = std::move(buffers)}; }

void expect_heights(const MemoryProblem& problem, const std::vector<int64_t>& offsets,
                    const std::vector<int64_t>& heights) {
  const Result<std::vector<int64_t>> found = heights_of(problem, offsets);
  ASSERT_TRUE(found.ok()) << found.error().to_string();
  EXPECT_EQ(*found, heights);
}

void expect_wrong(const MemoryProblem& problem, const std::vector<int64_t>& offsets,
                  std::string_view words, ErrorCode code = ErrorCode::mismatch) {
  const Result<std::vector<int64_t>> found = heights_of(problem, offsets);
  ASSERT_FALSE(found.ok()) << words;
  EXPECT_EQ(found.error().code(), code);
  EXPECT_THAT(found.error().to_string(), says(std::string(words)));
}

TEST(Heights, OfNothingAreZero) { expect_heights({}, {}, {0}); }

TEST(Heights, AreTheLastEndsOfEachSpace) {
  const MemoryProblem problem = of({{.begin = 0, .end = 4, .size = 16},
                                    {.begin = 3, .end = 5, .size = 8},
                                    {.begin = 0, .end = 9, .size = 4, .space = 2}});
  expect_heights(problem, {0, 16, 1}, {24, 0, 5});
}

TEST(Heights, WhatEndsMakesRoomForWhatBegins) {
  const MemoryProblem problem =
      of({{.begin = 4, .end = 6, .size = 16}, {.begin = 0, .end = 4, .size = 16}});
  expect_heights(problem, {0, 0}, {16});
  expect_heights(problem, {8, 0}, {24});
}

TEST(Heights, OverlapsAreNamed) {
  const MemoryProblem problem =
      of({{.begin = 0, .end = 4, .size = 16}, {.begin = 3, .end = 6, .size = 16}});
  expect_wrong(problem, {0, 8},
               "buffers 0 and 1 overlap ... moment 3 ... space 0 ... [0, 16) and [8, 24)");
  expect_wrong(problem, {0, 15}, "buffers 0 and 1 overlap");
  expect_heights(problem, {0, 16}, {32});
}

TEST(Heights, WhatIsNeverInUseLiesNowhere) {
  const MemoryProblem problem = of({{.begin = 0, .end = 4, .size = 16},
                                    {.begin = 2, .end = 2, .size = 99},
                                    {.begin = 0, .end = 9, .size = 0},
                                    {.begin = 0, .end = 4, .size = 40, .gaps = {{0, 4}}}});
  expect_heights(problem, {0, 3, 70, 0}, {16});
}

TEST(Heights, OffsetsAreWhereTheyMayBe) {
  expect_wrong(of({{.end = 1, .size = 4}}), {}, "0 offsets of 1 buffers");
  expect_wrong(of({{.end = 1, .size = 4}}), {-4}, "buffer 0 has the offset -4");
  expect_wrong(of({{.end = 1, .size = 4, .alignment = 8}}), {12}, "multiple of 8");
  expect_wrong(of({{.end = 1, .size = 4, .offset = 8}}), {0}, "the offset 0 instead of 8");
  expect_wrong(of({{.end = 1, .size = 4}}), {INT64_MAX - 3}, "too large");
  expect_heights(of({{.end = 1, .size = 4}}), {INT64_MAX - 4}, {INT64_MAX});
}

TEST(Heights, ProblemsAreWellFormed) {
  expect_wrong(of({{.begin = 2, .end = 1}}), {0}, "buffer 0: ends at 1", ErrorCode::bad_input);
}

TEST(Heights, GapsHaveRoomForOthers) {
  const MemoryProblem problem = of({{.begin = 0, .end = 9, .size = 16, .gaps = {{3, 6, 8, 12}}},
                                    {.begin = 3, .end = 6, .size = 8}});
  expect_heights(problem, {0, 0}, {16});
  expect_heights(problem, {0, 12}, {20});
  expect_wrong(problem, {0, 1}, "bytes [8, 12) and [1, 9)");
  MemoryProblem longer = problem;
  longer.buffers[1].end = 7;
  expect_wrong(longer, {0, 0}, "buffers 1 and 0 overlap ... moment 6");
}

TEST(Heights, AliasesMayOverlapEachOtherAlone) {
  const MemoryProblem problem = of({{.begin = 0, .end = 4, .size = 16},
                                    {.begin = 2, .end = 8, .size = 8, .alias = MemoryAlias{0, 8}},
                                    {.begin = 2, .end = 8, .size = 4, .alias = MemoryAlias{1, 2}},
                                    {.begin = 3, .end = 5, .size = 8}});
  expect_heights(problem, {0, 8, 10, 16}, {24});
  expect_wrong(problem, {0, 8, 11, 16}, "buffer 2 ... offset 11 ... 2 ... buffer 1");
  expect_wrong(problem, {0, 8, 10, 12}, "bytes [0, 16) and [12, 20)");
  MemoryProblem later = problem;
  later.buffers[3].begin = 4;
  expect_heights(later, {0, 8, 10, 0}, {16});
  expect_wrong(later, {0, 8, 10, 1}, "overlap at moment 4");
}

// The definition, pair by pair.
bool is_right(const MemoryProblem& problem, const std::vector<int64_t>& offsets,
              const std::vector<uint32_t>& owners) {
  for (size_t i = 0; i < offsets.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const MemoryBuffer& a = problem.buffers[i];
      const MemoryBuffer& b = problem.buffers[j];
      if (owners[i] == owners[j] || a.space != b.space) continue;
      for (const MemoryUse& x : uses_of(a))
        for (const MemoryUse& y : uses_of(b))
          if (x.begin < y.end && y.begin < x.end && offsets[i] + x.low < offsets[j] + y.high &&
              offsets[j] + y.low < offsets[i] + x.high)
            return false;
    }
  return true;
}

TEST(Heights, AgreeWithTheDefinitionOnRandomPlacements) {
  std::map<bool, int> seen;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    Rng rng(seed);
    MemoryProblem problem;
    std::vector<int64_t> offsets;
    std::vector<uint32_t> owners;
    const auto count = static_cast<uint32_t>(rng.between(2, 9));
    for (uint32_t i = 0; i < count; ++i) {
      MemoryBuffer buffer;
      buffer.begin = rng.between(0, 12);
      buffer.end = buffer.begin + rng.between(0, 8);
      buffer.size = rng.between(0, 6);
      buffer.space = rng.chance(0.3) ? 1 : 0;
      int64_t at = buffer.begin;
      while (rng.chance(0.4) && at < buffer.end) {
        MemoryGap gap;
        gap.begin = rng.between(at, buffer.end);
        gap.end = at = rng.between(gap.begin, buffer.end);
        gap.low = rng.between(0, buffer.size);
        gap.high = rng.between(gap.low, buffer.size);
        buffer.gaps.push_back(gap);
      }
      offsets.push_back(rng.between(0, 24));
      owners.push_back(i);
      if (i > 0 && rng.chance(0.3)) {
        const auto of = static_cast<uint32_t>(rng.below(i));
        buffer.alias = MemoryAlias{of, rng.between(0, 4)};
        buffer.space = problem.buffers[of].space;
        offsets[i] = offsets[of] + buffer.alias->shift;
        owners[i] = owners[of];
      }
      problem.buffers.push_back(buffer);
    }
    const bool is_fine = is_right(problem, offsets, owners);
    EXPECT_EQ(heights_of(problem, offsets).ok(), is_fine) << seed;
    ++seen[is_fine];
  }
  EXPECT_GT(seen[true], 500);
  EXPECT_GT(seen[false], 500);
}

TEST(Heights, ManyBuffersAreNoMatter) {
  // All are in use at once, half of them as views of one.
  constexpr uint32_t kCount = 100'000;
  MemoryProblem problem;
  std::vector<int64_t> offsets;
  problem.buffers.push_back({.begin = 0, .end = kCount, .size = kCount});
  offsets.push_back(0);
  for (uint32_t i = 1; i < kCount; ++i) {
    const bool is_view = i % 2 == 0;
    MemoryBuffer buffer = {.begin = i, .end = kCount, .size = is_view ? 100 : 1};
    if (is_view) buffer.alias = MemoryAlias{i - 2, 1};
    problem.buffers.push_back(buffer);
    offsets.push_back(is_view ? i / 2 : kCount + i);
  }
  expect_heights(problem, offsets, {2 * kCount});
  offsets[1] = offsets[3];
  expect_wrong(problem, offsets, "buffers 1 and 3 overlap ... moment 3");
}

}  // namespace
}  // namespace hone::HONE_FILE
