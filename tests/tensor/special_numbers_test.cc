#include "tensor/special_numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace hone::HONE_FILE {
namespace {

TEST(SpecialNumbers, AreNumbersOfTheirType) {
  Rng rng(1);
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    SCOPED_TRACE(name(dtype));
    for (int n = 0; n < 1000; ++n) {
      if (!is_real(dtype)) {
        const int64_t number = special_integer(dtype, rng);
        ASSERT_EQ(wrap_to(dtype, number), number);
        continue;
      }
      const auto sort = static_cast<SpecialSort>(rng.below(kSpecialSorts));
      const double number = special_real(dtype, sort, rng);
      if (!std::isnan(number)) ASSERT_EQ(round_to(dtype, number), number);
    }
  }
}

TEST(SpecialNumbers, OfHalvesAreWhatTheirSortSays) {
  Rng rng(1);
  std::set<int> exponents;
  for (int n = 0; n < 1000; ++n) {
    const auto size = [&](SpecialSort sort) {
      return std::fabs(special_real(DType::f16, sort, rng));
    };
    EXPECT_TRUE(std::isnan(size(SpecialSort::nan)));
    EXPECT_TRUE(std::isinf(size(SpecialSort::infinity)));
    EXPECT_EQ(size(SpecialSort::zero), 0);
    const double denormal = size(SpecialSort::denormal);
    EXPECT_TRUE(denormal >= 0x1p-24 && denormal < 0x1p-14) << denormal;
    const double any = size(SpecialSort::exponent);
    if (any > 0 && std::isfinite(any)) exponents.insert(std::ilogb(any));
  }
  EXPECT_EQ(*exponents.begin(), -24);
  EXPECT_EQ(*exponents.rbegin(), 15);
  EXPECT_EQ(exponents.size(), 40U);
}

TEST(SpecialNumbers, AreAShareOfATensor) {
  Rng rng(1);
  const Type type = Type::get(DType::f32, {1000});
  const auto one = [] { return 1.0; };
  const auto none = [] { return int64_t{0}; };
  const auto count = [&](const Specials& specials) {
    const Tensor tensor = with_specials(type, specials, rng, one, none);
    int zeros = 0;
    for (int64_t i = 0; i < 1000; ++i) zeros += tensor.real_at(i) == 0 ? 1 : 0;
    return zeros;
  };
  EXPECT_EQ(count({}), 0);
  EXPECT_EQ(count(Specials::of(SpecialSort::zero, 1)), 1000);
  EXPECT_NEAR(count(Specials::of(SpecialSort::zero, 0.3)), 300, 60);
}

}  // namespace
}  // namespace hone::HONE_FILE
