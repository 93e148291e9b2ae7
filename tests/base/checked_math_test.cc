#include "base/checked_math.h"

#include <gtest/gtest.h>

#include <vector>

namespace hone::HONE_FILE {
namespace {

constexpr int64_t min64 = std::numeric_limits<int64_t>::min();
constexpr int64_t max64 = std::numeric_limits<int64_t>::max();

TEST(CheckedMath, OverflowIsAnEmptyOptional) {
  EXPECT_EQ(checked_add(max64 - 1, 1), max64);
  EXPECT_EQ(checked_add(max64, 1), std::nullopt);
  EXPECT_EQ(checked_sub(min64, 1), std::nullopt);
  EXPECT_EQ(checked_sub(0, min64), std::nullopt);
  EXPECT_EQ(checked_mul(int64_t{1} << 32, int64_t{1} << 31), std::nullopt);
  EXPECT_EQ(checked_mul(min64, -1), std::nullopt);
  EXPECT_EQ(checked_mul(-3, 5), -15);
}

TEST(CheckedMath, ProductOfNothingIsOneAndZeroWinsOverOverflow) {
  EXPECT_EQ(checked_product({}), 1);
  EXPECT_EQ(checked_product(std::vector<int64_t>{2, 3, 7}), 42);
  EXPECT_EQ(checked_product(std::vector<int64_t>{max64, 2}), std::nullopt);
  EXPECT_EQ(checked_product(std::vector<int64_t>{max64, 2, 0}), 0);
  EXPECT_EQ(checked_product(std::vector<int64_t>{0, max64, 2}), 0);
}

TEST(CheckedMath, FloorAndCeilAgreeWithTheMathematicalDefinition) {
  for (int64_t b : {-5, -3, -2, -1, 1, 2, 3, 5}) {
    for (int64_t a = -20; a <= 20; ++a) {
      const int64_t mod = floor_mod(a, b);
      EXPECT_EQ(floor_div(a, b) * b + mod, a) << a << " " << b;
      EXPECT_TRUE(b > 0 ? (mod >= 0 && mod < b) : (mod <= 0 && mod > b)) << a << " " << b;
      EXPECT_EQ(ceil_div(a, b), -floor_div(-a, b)) << a << " " << b;
    }
  }
  EXPECT_EQ(floor_mod(min64, -1), 0);
  EXPECT_EQ(floor_div(min64, 2), min64 / 2);
}

TEST(CheckedMath, DivisionWithoutAQuotientIsABug) {
  EXPECT_THROW(floor_div(1, 0), InternalError);
  EXPECT_THROW(ceil_div(1, 0), InternalError);
  EXPECT_THROW(floor_mod(1, 0), InternalError);
  EXPECT_THROW(floor_div(min64, -1), InternalError);
}

TEST(CheckedMath, RoundUpGoesToTheNextMultiple) {
  EXPECT_EQ(round_up(0, 64), 0);
  EXPECT_EQ(round_up(1, 64), 64);
  EXPECT_EQ(round_up(64, 64), 64);
  EXPECT_EQ(round_up(-65, 64), -64);
  EXPECT_EQ(checked_round_up(max64, 64), std::nullopt);
  EXPECT_THROW(round_up(max64, 64), InternalError);
  EXPECT_THROW(round_up(1, 0), InternalError);
}

TEST(CheckedMath, PowersOfTwo) {
  EXPECT_FALSE(is_power_of_two(0));
  EXPECT_FALSE(is_power_of_two(-4));
  EXPECT_FALSE(is_power_of_two(min64));
  EXPECT_TRUE(is_power_of_two(1));
  EXPECT_TRUE(is_power_of_two(int64_t{1} << 62));
  EXPECT_FALSE(is_power_of_two(96));
}

}  // namespace
}  // namespace hone::HONE_FILE
