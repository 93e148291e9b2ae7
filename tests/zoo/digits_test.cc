#include "zoo/digits.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace hone::HONE_FILE {
namespace {

constexpr int64_t kPixels = kDigitSide * kDigitSide;

TEST(Digits, TheSeedDecidesTheImages) {
  const DigitSet one = draw_digits(20, 1), again = draw_digits(20, 1), other = draw_digits(20, 2);
  EXPECT_TRUE(one.images.same_bytes(again.images));
  EXPECT_TRUE(one.labels.same_bytes(again.labels));
  EXPECT_FALSE(one.images.same_bytes(other.images));
}

TEST(Digits, ImagesHavePaperAndInkAndEveryLabel) {
  const DigitSet set = draw_digits(400, 3);
  std::array<int, 10> seen = {};
  for (int64_t i = 0; i < 400; ++i) {
    ++seen.at(static_cast<size_t>(set.labels.integer_at(i)));
    int ink = 0;
    for (int64_t p = 0; p < kPixels; ++p) {
      const double pixel = set.images.real_at(i * kPixels + p);
      ASSERT_GE(pixel, 0);
      ASSERT_LE(pixel, 1);
      ink += pixel > 0.6;
    }
    EXPECT_GT(ink, 3) << i;
    EXPECT_LT(ink, kPixels / 2) << i;
  }
  for (int count : seen) EXPECT_GT(count, 15);
}

// The images of a digit are nearer to the mean of their digit than to that of another one, more
// often than by chance.
TEST(Digits, LabelsCanBeLearned) {
  constexpr int64_t kCount = 1000;
  const DigitSet known = draw_digits(kCount, 4), asked = draw_digits(kCount, 5);
  std::array<std::array<double, kPixels>, 10> mean = {};
  std::array<double, 10> count = {};
  for (int64_t i = 0; i < kCount; ++i) {
    const auto label = static_cast<size_t>(known.labels.integer_at(i));
    ++count.at(label);
    for (int64_t p = 0; p < kPixels; ++p)
      mean.at(label).at(static_cast<size_t>(p)) += known.images.real_at(i * kPixels + p);
  }
  int right = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    size_t best = 0;
    double least = INFINITY;
    for (size_t label = 0; label < 10; ++label) {
      double far = 0;
      for (int64_t p = 0; p < kPixels; ++p)
        far += std::pow(asked.images.real_at(i * kPixels + p) -
                            mean.at(label).at(static_cast<size_t>(p)) / count.at(label),
                        2);
      if (far < least) least = far, best = label;
    }
    right += static_cast<int64_t>(best) == asked.labels.integer_at(i);
  }
  EXPECT_GT(right, kCount / 3);
}

}  // namespace
}  // namespace hone::HONE_FILE
