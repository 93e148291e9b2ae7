#include "alloc/generate.h"

#include <gtest/gtest.h>

#include <map>

namespace hone::HONE_FILE {
namespace {

TEST(Guillotine, FillsTheRectangle) {
  Rng rng(1);
  for (const int64_t buffers : {1, 2, 7, 100, 3000})
    for (const int64_t steps : {128, 4096}) {
      SCOPED_TRACE(fmt::format("{} buffers, {} steps", buffers, steps));
      const GuillotineOptions options{.buffers = buffers, .steps = steps};
      const int64_t unit = options.capacity / steps;
      const MemoryProblem problem = guillotine(options, rng);
      EXPECT_EQ(std::ssize(problem.buffers), buffers);
      EXPECT_EQ(problem.capacity, std::vector<int64_t>{options.capacity});
      std::map<int64_t, int64_t> change;
      for (const MemoryBuffer& buffer : problem.buffers) {
        EXPECT_LT(buffer.begin, buffer.end);
        EXPECT_GT(buffer.size, 0);
        EXPECT_EQ(buffer.begin % unit + buffer.end % unit + buffer.size % unit, 0);
        change[buffer.begin] += buffer.size;
        change[buffer.end] -= buffer.size;
      }
      EXPECT_EQ(change.begin()->first, 0);
      EXPECT_EQ(change.rbegin()->first, options.capacity);
      int64_t load = 0;
      for (const auto& [moment, by] : change)
        if (moment != options.capacity) EXPECT_EQ(load += by, options.capacity) << moment;
    }
}

TEST(Guillotine, OfAFourthOfTheCells) {
  Rng rng(1);
  EXPECT_EQ(guillotine({.buffers = 256, .steps = 32, .capacity = 32}, rng).buffers.size(), 256U);
  EXPECT_THROW(guillotine({.buffers = 257, .steps = 32, .capacity = 32}, rng), InternalError);
  EXPECT_THROW(guillotine({.buffers = 2, .steps = 3, .capacity = 32}, rng), InternalError);
}

TEST(Guillotine, IsAsTheSeedSays) {
  const auto sizes = [](uint64_t seed) {
    Rng rng(seed);
    std::vector<int64_t> result;
    for (const MemoryBuffer& buffer : guillotine({}, rng).buffers) result.push_back(buffer.size);
    return result;
  };
  EXPECT_EQ(sizes(1), sizes(1));
  EXPECT_NE(sizes(1), sizes(2));
}

}  // namespace
}  // namespace hone::HONE_FILE
