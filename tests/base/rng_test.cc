#include "base/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>
#include <vector>

namespace hone::HONE_FILE {
namespace {

// The vectors of Random123 (tests/kat_vectors, "threefry2x32 20" and "threefry2x64 20").
TEST(Threefry, AgreesWithRandom123) {
  using W32 = std::array<uint32_t, 2>;
  EXPECT_EQ(threefry2x32({0, 0}, {0, 0}), (W32{0x6b200159, 0x99ba4efe}));
  EXPECT_EQ(threefry2x32({~0u, ~0u}, {~0u, ~0u}), (W32{0x1cb996fc, 0xbb002be7}));
  EXPECT_EQ(threefry2x32({0x13198a2e, 0x03707344}, {0x243f6a88, 0x85a308d3}),
            (W32{0xc4923a9c, 0x483df7a0}));

  using W64 = std::array<uint64_t, 2>;
  EXPECT_EQ(threefry2x64({0, 0}, {0, 0}), (W64{0xc2b6e3a8c2c69865, 0x6f81ed42f350084d}));
  EXPECT_EQ(threefry2x64({~0ull, ~0ull}, {~0ull, ~0ull}),
            (W64{0xe02cb7c4d95d277a, 0xd06633d0893b8b68}));
  EXPECT_EQ(threefry2x64({0xa4093822299f31d0, 0x082efa98ec4e6c89},
                         {0x243f6a8885a308d3, 0x13198a2e03707344}),
            (W64{0x263c7d30bb0f0af1, 0x56be8361d3311526}));
}

TEST(Rng, TheSeedFixesTheSequence) {
  Rng a(1);
  Rng b(1);
  Rng c(2);
  const uint64_t first = a.next();
  EXPECT_EQ(first, b.next());
  EXPECT_NE(first, c.next());
  EXPECT_NE(a.fork().next(), a.next());
}

TEST(Rng, BelowIsUnbiased) {
  Rng rng(7);
  // A modulo would give the lower half of this range twice the probability of the upper.
  const uint64_t bound = 3ull << 62;
  int low = 0;
  for (int i = 0; i < 30000; ++i) low += rng.below(bound) < bound / 2 ? 1 : 0;
  EXPECT_NEAR(low, 15000, 500);
  std::vector<int> counts(6);
  for (int i = 0; i < 60000; ++i) ++counts[rng.below(6)];
  for (int count : counts) EXPECT_NEAR(count, 10000, 500);
  EXPECT_EQ(rng.below(1), 0u);
  EXPECT_THROW(rng.below(0), InternalError);
}

TEST(Rng, BetweenIncludesBothEnds) {
  Rng rng(7);
  std::set<int64_t> seen;
  for (int i = 0; i < 200; ++i) seen.insert(rng.between(-2, 2));
  EXPECT_EQ(seen, (std::set<int64_t>{-2, -1, 0, 1, 2}));
  EXPECT_EQ(rng.between(5, 5), 5);
  rng.between(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
  EXPECT_THROW(rng.between(1, 0), InternalError);
}

TEST(Rng, UniformAndNormalHaveTheirMoments) {
  Rng rng(3);
  const int count = 100000;
  double uniform = 0;
  double normal = 0;
  double square = 0;
  for (int i = 0; i < count; ++i) {
    const double value = rng.uniform();
    ASSERT_TRUE(value >= 0 && value < 1);
    uniform += value;
    const double deviate = rng.normal();
    normal += deviate;
    square += deviate * deviate;
  }
  EXPECT_NEAR(uniform / count, 0.5, 0.005);
  EXPECT_NEAR(normal / count, 0, 0.015);
  EXPECT_NEAR(square / count, 1, 0.02);
}

TEST(Rng, ShuffleKeepsTheElementsAndReachesEveryOrder) {
  Rng rng(11);
  std::set<std::vector<int>> orders;
  for (int i = 0; i < 300; ++i) {
    std::vector<int> values = {1, 2, 3};
    rng.shuffle(values);
    orders.insert(values);
  }
  EXPECT_EQ(orders.size(), 6u);
}

TEST(Rng, WeightedFollowsTheWeights) {
  Rng rng(5);
  const std::vector<double> weights = {0, 1, 3, 0};
  std::vector<int> counts(4);
  for (int i = 0; i < 40000; ++i) ++counts[rng.weighted(weights)];
  EXPECT_EQ(counts[0], 0);
  EXPECT_EQ(counts[3], 0);
  EXPECT_NEAR(counts[1], 10000, 400);
  EXPECT_THROW(rng.weighted(std::vector<double>{0, 0}), InternalError);
  EXPECT_THROW(rng.weighted(std::vector<double>{-1, 2}), InternalError);
}

TEST(Rng, PickTakesAnElementOfTheRange) {
  Rng rng(5);
  const std::vector<int> values = {4, 5};
  std::set<int> seen;
  for (int i = 0; i < 50; ++i) seen.insert(rng.pick(values));
  EXPECT_EQ(seen, (std::set<int>{4, 5}));
  const std::vector<int> nothing;
  EXPECT_THROW(rng.pick(nothing), InternalError);
}

TEST(Fill, NormalHasItsMomentsAndItsScale) {
  std::vector<float> values(1 << 20);
  fill_normal(values, 42, 2.0f);
  double sum = 0;
  double square = 0;
  double fourth = 0;
  for (double value : values) {
    const double unit = value / 2;
    sum += unit;
    square += unit * unit;
    fourth += unit * unit * unit * unit;
    ASSERT_LT(std::abs(unit), 4.9);
  }
  const double count = static_cast<double>(values.size());
  EXPECT_NEAR(sum / count, 0, 0.005);
  EXPECT_NEAR(square / count, 1, 0.01);
  EXPECT_NEAR(fourth / count, 3 - 0.15, 0.03);
}

TEST(Fill, UniformStaysInItsRange) {
  std::vector<float> values(100000);
  fill_uniform(values, 1, -1, 3);
  double sum = 0;
  for (float value : values) {
    ASSERT_TRUE(value >= -1 && value <= 3);
    sum += value;
  }
  EXPECT_NEAR(sum / 100000, 1, 0.02);
}

TEST(Fill, PiecesAreTheWhole) {
  std::vector<float> whole(5000);
  std::vector<float> pieces(5000);
  fill_normal(whole, 9);
  Rng rng(1);
  for (size_t at = 0; at < pieces.size();) {
    const size_t count = std::min<size_t>(rng.below(1700), pieces.size() - at);
    fill_normal(std::span(pieces).subspan(at, count), 9, 1, static_cast<int64_t>(at));
    at += count;
  }
  EXPECT_EQ(pieces, whole);
}

// Test data and goldens depend on these values.
TEST(Fill, ValuesAreStable) {
  EXPECT_EQ(Rng(1).next(), 0xcfc5d07f6f03c29bu);
  std::vector<float> values(2);
  fill_normal(values, 1);
  EXPECT_EQ(values[0], -1.34917045f);
  EXPECT_EQ(values[1], -0.79222697f);
}

}  // namespace
}  // namespace hone::HONE_FILE
