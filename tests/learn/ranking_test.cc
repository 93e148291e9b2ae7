#include "learn/ranking.h"

#include <gtest/gtest.h>

#include <array>

namespace hone::HONE_FILE {
namespace {

constexpr std::array kSeconds = {1.0, 2.0, 3.0, 4.0};

TEST(Ranking, TauIsOneForTheSameOrderAndMinusOneForTheOpposite) {
  EXPECT_EQ(kendall_tau(std::array{10.0, 20.0, 30.0, 40.0}, kSeconds), 1);
  EXPECT_EQ(kendall_tau(std::array{4.0, 3.0, 2.0, 1.0}, kSeconds), -1);
  EXPECT_EQ(kendall_tau(std::array{1.0, 1.0, 1.0, 1.0}, kSeconds), 0);
  EXPECT_NEAR(kendall_tau(std::array{2.0, 1.0, 3.0, 4.0}, kSeconds), 4.0 / 6, 1e-12);
  EXPECT_EQ(kendall_tau(std::array{1.0}, std::array{1.0}), 0);
}

TEST(Ranking, RegretIsWhatTheCheapestLose) {
  constexpr std::array kPrices = {3.0, 1.0, 2.0, 4.0};
  EXPECT_EQ(regret(kPrices, kSeconds, 1), 2);
  EXPECT_EQ(regret(kPrices, kSeconds, 2), 2);
  EXPECT_EQ(regret(kPrices, kSeconds, 3), 1);
  EXPECT_EQ(regret(kPrices, kSeconds, 9), 1);
}

TEST(Ranking, ErrorIsRelativeToTheTime) {
  EXPECT_NEAR(mean_error(std::array{2.0, 1.0, 3.0, 6.0}, kSeconds), (1 + 0.5 + 0 + 0.5) / 4, 1e-12);
}

TEST(Ranking, TellsSlowFromFast) {
  constexpr std::array kTimes = {1.0, 1.02, 1.5, 1.01};
  const std::vector<bool> slow = slow_cluster(kTimes);
  EXPECT_EQ(slow, (std::vector<bool>{false, false, true, false}));
  EXPECT_EQ(area_under_curve(std::array{1.0, 5.0, 3.0, 2.0}, slow), 2.0 / 3);
  EXPECT_EQ(area_under_curve(std::array{1.0, 3.0, 3.0, 2.0}, slow), 2.5 / 3);
  EXPECT_EQ(area_under_curve(std::array{1.0, 1.0}, slow_cluster(std::array{2.0, 2.0})), 0.5);
}

}  // namespace
}  // namespace hone::HONE_FILE
