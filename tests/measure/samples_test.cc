#include "measure/samples.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace hone::HONE_FILE {
namespace {

TEST(Samples, ATimeIsTheMedianOverPlacesOfTheLeast) {
  EXPECT_EQ(typical(std::array{3.0, 1.0, 2.0, 5.0, 9.0, 1.5}), 1.5);
  EXPECT_EQ(typical(std::array{3.0}), 3);
  EXPECT_TRUE(std::isinf(typical({})));
}

TEST(Samples, NoiseIsHowFarPlacesDiffer) {
  EXPECT_EQ(relative_noise(std::array{2.0, 2.0, 2.0}), 0);
  EXPECT_NEAR(relative_noise(std::array{3.0, 1.0, 2.0}), 0.396, 1e-12);
  // The least time of each place counts.
  EXPECT_EQ(relative_noise(std::array{9.0, 2.0, 2.0, 2.0, 9.0, 9.0}), 0);
  EXPECT_EQ(relative_noise(std::array{2.0}), kNoiseOfOne);
}

}  // namespace
}  // namespace hone::HONE_FILE
