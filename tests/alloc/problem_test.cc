#include "alloc/problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

MemoryProblem of(std::vector<MemoryBuffer> buffers) { return {.buffers = std::move(buffers)}; }

void expect_error(const MemoryProblem& problem, std::string_view words) {
  const Status status = check(problem);
  ASSERT_FALSE(status.ok()) << words;
  EXPECT_EQ(status.error().code(), ErrorCode::bad_input);
  EXPECT_THAT(status.error().to_string(), says(std::string(words)));
}

constexpr int64_t kHuge = int64_t{1} << 62;

TEST(MemoryProblem, OfNothingHasOneSpace) {
  EXPECT_TRUE(check({}).ok());
  EXPECT_EQ(space_count({}), 1U);
}

TEST(MemoryProblem, HasTheSpacesOfItsBuffersAndCapacities) {
  EXPECT_EQ(space_count(of({{.end = 1, .space = 3}})), 4U);
  EXPECT_EQ(space_count({.buffers = {}, .capacity = {1, 2}}), 2U);
  const MemoryProblem problem = {.buffers = {}, .capacity = {7}};
  EXPECT_EQ(problem.capacity_of(0), 7);
  EXPECT_EQ(problem.capacity_of(1), kNoCapacity);
}

TEST(MemoryProblem, BuffersMayNeverBeInUse) {
  EXPECT_TRUE(
      check(of({{.begin = 3, .end = 3, .size = 5}, {.begin = 0, .end = 9, .size = 0}})).ok());
}

TEST(MemoryProblem, LivesAndSizesAreInOrder) {
  expect_error(of({{}, {.begin = -1, .end = 1}}), "buffer 1 ... -1 ... negative");
  expect_error(of({{.begin = 5, .end = 3}}), "buffer 0 ... 3 ... 5");
  expect_error(of({{.end = 3, .size = -2}}), "buffer 0: size -2 is negative");
  expect_error(of({{.end = 3, .alignment = 0}}), "buffer 0: alignment 0 is not positive");
  expect_error(of({{.end = 3, .offset = -8}}), "buffer 0: offset -8 is negative");
  expect_error(of({{.end = 3, .space = 64}}), "buffer 0: space 64 is outside of 0..63");
}

TEST(MemoryProblem, GapsAreWithinLivesAndApart) {
  const auto with = [](std::vector<MemoryGap> gaps) {
    return of({{.begin = 2, .end = 10, .size = 8, .gaps = std::move(gaps)}});
  };
  EXPECT_TRUE(check(with({{2, 4}, {4, 5, 0, 8}, {5, 5}, {9, 10, 3, 3}})).ok());
  expect_error(with({{4, 3}}), "gap ... 3 ... 4");
  expect_error(with({{1, 3}}), "gap [1, 3) ... life [2, 10)");
  expect_error(with({{9, 11}}), "gap [9, 11) ... life [2, 10)");
  expect_error(with({{3, 5}, {4, 6}}), "[4, 6) ... 5");
  expect_error(with({{5, 6}, {3, 4}}), "[3, 4) ... 6");
  expect_error(with({{5, 6, -1, 2}}), "window [-1, 2) ... 8 bytes");
  expect_error(with({{5, 6, 4, 3}}), "window [4, 3) ... 8 bytes");
  expect_error(with({{5, 6, 4, 9}}), "window [4, 9) ... 8 bytes");
}

TEST(MemoryProblem, AliasesLeadSomewhere) {
  const auto alias = [](uint32_t of, int64_t shift = 0) { return MemoryAlias{of, shift}; };
  EXPECT_TRUE(
      check(of({{.alias = alias(1)}, {.alias = alias(2, 4)}, {}, {.alias = alias(1)}})).ok());
  expect_error(of({{.alias = alias(1)}}), "buffer 0: alias of buffer 1, of 1");
  expect_error(of({{}, {.alias = alias(0, -4)}}), "buffer 1 ... shift -4 ... alias");
  expect_error(of({{}, {.alias = alias(0), .space = 1}}),
               "buffer 1 ... space 1 ... alias ... space 0");
  expect_error(of({{.alias = alias(0)}}), "buffer 0 ... aliases");
  expect_error(of({{.alias = alias(1)}, {.alias = alias(2)}, {.alias = alias(1)}}),
               "buffer 1 ... aliases");
}

TEST(MemoryProblem, LongRowsOfAliasesAreFollowedOnce) {
  MemoryProblem problem;
  constexpr uint32_t kCount = 100'000;
  for (uint32_t i = 0; i < kCount; ++i)
    problem.buffers.push_back({.alias = MemoryAlias{(i + 1) % kCount, 0}});
  expect_error(problem, "aliases");
  problem.buffers[kCount / 2].alias = {};
  EXPECT_TRUE(check(problem).ok());
}

TEST(MemoryProblem, SumsFit62Bits) {
  EXPECT_TRUE(check(of({{.size = kHuge / 2}, {.size = kHuge / 2}})).ok());
  expect_error(of({{.size = kHuge / 2}, {.size = kHuge / 2}, {.size = 1}}),
               "buffer 2 ... sizes, shifts and alignments");
  expect_error(of({{.size = INT64_MAX}}), "have a sum above 2^62");
  expect_error(of({{.offset = kHuge}, {.size = 1}}), "have a sum above 2^62");
  expect_error(of({{}, {.alias = MemoryAlias{0, INT64_MAX}}}), "have a sum above 2^62");
  expect_error(of({{.alignment = kHuge}, {.alignment = kHuge}}), "have a sum above 2^62");
  // Aliases move together.
  EXPECT_TRUE(check(of({{.alignment = kHuge}, {.alignment = 8, .alias = MemoryAlias{0, 0}}})).ok());
  expect_error(of({{.alignment = (int64_t{1} << 40) - 1},
                   {.alignment = (int64_t{1} << 40) - 3, .alias = MemoryAlias{0, 0}}}),
               "buffer 1 ... alignments ... 2^62");
}

TEST(MemoryProblem, CapacitiesAreNotNegativeAndNotTooMany) {
  expect_error({.buffers = {}, .capacity = {1, -1}}, "capacity ... space 1 ... -1");
  expect_error({.buffers = {}, .capacity = std::vector<int64_t>(65)}, "65 capacities");
}

}  // namespace
}  // namespace hone::HONE_FILE
