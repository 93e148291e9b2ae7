#include "cost/votes.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hone::HONE_FILE {
namespace {

TEST(Votes, DeviationsAreThoseOfANormalDistribution) {
  EXPECT_NEAR(deviations_for(0.5), 0, 1e-9);
  EXPECT_NEAR(deviations_for(0.9), 1.2816, 1e-4);
  EXPECT_NEAR(deviations_for(0.975), 1.9600, 1e-4);
}

TEST(Votes, AGainIsTheMeanOfItsVoices) {
  const Votes other = {.seconds = {1, 2}}, usual = {.seconds = {2, 4}};
  EXPECT_NEAR(gain_of(other, usual).mean, std::log(2), 1e-12);
  EXPECT_NEAR(gain_of(other, usual).deviation, 0, 1e-7);  // the voices agree
  EXPECT_NEAR(gain_of(usual, other).mean, -std::log(2), 1e-12);
}

TEST(Votes, VoicesThatDisagreeAreUnsure) {
  const Gain gain = gain_of({.seconds = {1, 1}}, {.seconds = {1, std::exp(2)}});
  EXPECT_NEAR(gain.mean, 1, 1e-12);
  EXPECT_NEAR(gain.deviation, std::sqrt(2), 1e-12);
}

TEST(Votes, WhatNoVoiceKnowsIsAddedUp) {
  const Gain gain = gain_of({.seconds = {2}, .variance = 0.04}, {.seconds = {2}, .variance = 0.12});
  EXPECT_EQ(gain.mean, 0);
  EXPECT_NEAR(gain.deviation, 0.2, 1e-12);
}

TEST(Votes, SumsKeepVoicesApart) {
  Votes sum;
  sum.add({.seconds = {3}, .variance = 1}, 2);  // all voices say so
  sum.add({.seconds = {1, 2}, .variance = 0.5}, 2);
  ASSERT_EQ(sum.seconds.size(), 2U);
  EXPECT_EQ(sum.seconds[0], 8);
  EXPECT_EQ(sum.seconds[1], 10);
  EXPECT_EQ(sum.variance, 6);
  sum.add({.seconds = {1}}, 1);
  EXPECT_EQ(sum.seconds[1], 11);
}

}  // namespace
}  // namespace hone::HONE_FILE
