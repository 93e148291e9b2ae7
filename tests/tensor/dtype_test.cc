#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "base/rng.h"

namespace hone::HONE_FILE {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
// The types with signs, NaN and numbers above the highest one.
constexpr DType kSmallReals[] = {DType::f16,        DType::bf16,   DType::f8e4m3fn,
                                 DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz};

// Numbers of IEEE 754 and of the papers that define the 8-bit formats.
TEST(DType, KnownPatterns) {
  struct Case {
    DType type;
    uint64_t pattern;
    double value;
  };
  const Case cases[] = {
      {DType::f16, 0x3c00, 1},          {DType::f16, 0x7bff, 65504},
      {DType::f16, 0x0001, 0x1p-24},    {DType::f16, 0xfc00, -kInfinity},
      {DType::bf16, 0x3f80, 1},         {DType::bf16, 0xc2f7, -123.5},
      {DType::bf16, 0x0001, 0x1p-133},  {DType::f8e4m3fn, 0x7e, 448},
      {DType::f8e4m3fn, 0x01, 0x1p-9},  {DType::f8e4m3fn, 0x38, 1},
      {DType::f8e4m3fnuz, 0x7f, 240},   {DType::f8e4m3fnuz, 0x01, 0x1p-10},
      {DType::f8e4m3fnuz, 0x40, 1},     {DType::f8e5m2, 0x7b, 57344},
      {DType::f8e5m2, 0x7c, kInfinity}, {DType::f8e5m2, 0x01, 0x1p-16},
      {DType::f8e5m2fnuz, 0x7f, 57344}, {DType::f8e5m2fnuz, 0x01, 0x1p-17},
      {DType::f8e8m0, 0x00, 0x1p-127},  {DType::f8e8m0, 0x01, 0x1p-126},
      {DType::f8e8m0, 0x7f, 1},         {DType::f8e8m0, 0xfe, 0x1p127},
      {DType::f4e2m1, 0x1, 0.5},        {DType::f4e2m1, 0xd, -3},
      {DType::f4e2m1, 0x7, 6},          {DType::f4e2m1, 0x8, -0.0},
      {DType::f32, 0xbfc00000, -1.5},   {DType::f64, 0x4008000000000000, 3},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(decode_real(c.type, c.pattern), c.value) << name(c.type) << " " << c.pattern;
    EXPECT_EQ(encode_real(c.type, c.value), c.pattern) << name(c.type) << " " << c.value;
  }
  for (uint64_t nan : {0x7f, 0xff}) EXPECT_TRUE(std::isnan(decode_real(DType::f8e4m3fn, nan)));
  EXPECT_TRUE(std::isnan(decode_real(DType::f8e4m3fnuz, 0x80)));
  EXPECT_TRUE(std::isnan(decode_real(DType::f8e5m2fnuz, 0x80)));
  EXPECT_TRUE(std::isnan(decode_real(DType::f8e8m0, 0xff)));
}

TEST(DType, TheShortestRealsHaveOnlyTheirNumbers) {
  for (double large : {5.0001, 6.0, 1e300, kInfinity})
    EXPECT_EQ(round_to(DType::f4e2m1, large), 6) << large;
  EXPECT_EQ(encode_real(DType::f4e2m1, kNan), 0x8u);  // -0
  EXPECT_EQ(round_to(DType::f4e2m1, -kInfinity), -6);
  EXPECT_EQ(round_to(DType::f4e2m1, 0.25), 0);
  EXPECT_EQ(round_to(DType::f4e2m1, 2.5), 2);
  EXPECT_EQ(round_to(DType::f4e2m1, 5), 4);
  for (double least : {0.0, -0.0, 1e-300, 0x1p-128}) {
    EXPECT_EQ(round_to(DType::f8e8m0, least), 0x1p-127) << least;
  }
  EXPECT_EQ(round_to(DType::f8e8m0, 0x1.7fp-127), 0x1p-127);
  EXPECT_EQ(round_to(DType::f8e8m0, 0x1.8p-127), 0x1p-126);
  EXPECT_EQ(round_to(DType::f8e8m0, 1.49), 1);
  EXPECT_EQ(round_to(DType::f8e8m0, 1.5), 2);  // of two equally near ones the larger
  EXPECT_EQ(round_to(DType::f8e8m0, -3), 4);
  EXPECT_EQ(round_to(DType::f8e8m0, 0x1p127), 0x1p127);
  for (double none : {0x1.8p127, kInfinity, kNan})
    EXPECT_TRUE(std::isnan(round_to(DType::f8e8m0, none))) << none;
}

TEST(DType, OverflowGivesInfinityOrElseNan) {
  EXPECT_EQ(round_to(DType::f16, 65519), 65504);
  EXPECT_EQ(round_to(DType::f16, 65520), kInfinity);
  EXPECT_EQ(round_to(DType::f8e5m2, -1e9), -kInfinity);
  EXPECT_EQ(round_to(DType::f8e4m3fn, 464), 448);  // a tie, and 448 is the even one
  for (double large : {465.0, 1e300, kInfinity, -kInfinity}) {
    EXPECT_TRUE(std::isnan(round_to(DType::f8e4m3fn, large)));
    EXPECT_TRUE(std::isnan(round_to(DType::f8e4m3fnuz, large)));
  }
  EXPECT_EQ(encode_real(DType::f8e4m3fnuz, -0.0), 0u);
  EXPECT_EQ(encode_real(DType::f8e5m2fnuz, -1e-300), 0u);
  EXPECT_EQ(encode_real(DType::f8e4m3fn, -0.0), 0x80u);
  for (DType type : kSmallReals) EXPECT_TRUE(std::isnan(round_to(type, kNan))) << name(type);
  EXPECT_EQ(highest_finite(DType::bf16), 0x1.fep127);
  EXPECT_EQ(highest_finite(DType::f8e4m3fnuz), 240);
}

TEST(DType, EveryPatternSurvivesDecodingAndEncoding) {
  for (DType type : kSmallReals) {
    for (uint64_t pattern = 0; pattern < uint64_t{1} << bits(type); ++pattern) {
      double value = decode_real(type, pattern);
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(round_to(type, value)));
      else
        EXPECT_EQ(encode_real(type, value), pattern) << name(type);
    }
  }
}

// The nearest of all numbers of the format, found among a sorted list. Overflow counts as one
// more number, a step beyond the largest.
double nearest_slowly(DType type, double value) {
  static std::map<DType, std::vector<std::pair<double, uint64_t>>> lists;
  auto& list = lists[type];
  if (list.empty()) {
    for (uint64_t pattern = 0; pattern < uint64_t{1} << (bits(type) - 1); ++pattern) {
      double number = decode_real(type, pattern);
      if (std::isfinite(number)) list.emplace_back(number, pattern);
    }
    std::sort(list.begin(), list.end());
    double last = list.back().first;
    list.emplace_back(last + (last - list[list.size() - 2].first), list.back().second + 1);
  }
  double size = std::fabs(value);
  auto above = std::lower_bound(list.begin(), list.end(), std::pair<double, uint64_t>(size, 0));
  bool overflow = above == list.end();
  auto below = overflow || above == list.begin() ? above : above - 1;
  if (!overflow) {
    double down = size - below->first, up = above->first - size;
    bool goes_up = up < down || (up == down && above->second % 2 == 0);
    auto nearest = goes_up ? above : below;
    if (nearest != list.end() - 1) return std::copysign(nearest->first, value);
  }
  bool has_infinity = type == DType::f16 || type == DType::bf16 || type == DType::f8e5m2;
  return has_infinity ? std::copysign(kInfinity, value) : kNan;
}

void expect_nearest(DType type, double value) {
  double rounded = round_to(type, value), expected = nearest_slowly(type, value);
  if (std::isnan(expected))
    EXPECT_TRUE(std::isnan(rounded)) << name(type) << " " << value;
  else
    EXPECT_EQ(rounded, expected) << name(type) << " " << value;
}

TEST(DType, RoundsToTheNearest) {
  Rng rng(7);
  for (DType type : kSmallReals) {
    for (int i = 0; i < 20000; ++i) {
      uint64_t pattern = rng.below((uint64_t{1} << bits(type)) - 1);
      double a = decode_real(type, pattern), b = decode_real(type, pattern + 1);
      double middle = (a + b) / 2;
      if (!std::isfinite(middle)) continue;
      expect_nearest(type, middle);
      expect_nearest(type, std::nextafter(middle, kInfinity));
      expect_nearest(type, std::nextafter(middle, -kInfinity));
      expect_nearest(type, a + (b - a) * rng.uniform());
      expect_nearest(type,
                     std::ldexp(rng.uniform(-1, 1), static_cast<int>(rng.between(-140, 140))));
    }
    double step_above = highest_finite(type) * 1.03;
    for (int i = 0; i < 1000; ++i) expect_nearest(type, rng.uniform(0, 1.1) * step_above);
  }
}

TEST(DType, IntegersWrap) {
  EXPECT_EQ(wrap_to(DType::i8, 200), -56);
  EXPECT_EQ(wrap_to(DType::u8, -1), 255);
  EXPECT_EQ(wrap_to(DType::i4, 8), -8);
  EXPECT_EQ(wrap_to(DType::u4, 17), 1);
  EXPECT_EQ(wrap_to(DType::i2, 2), -2);
  EXPECT_EQ(wrap_to(DType::u2, -1), 3);
  EXPECT_EQ(wrap_to(DType::i64, INT64_MIN), INT64_MIN);
  EXPECT_EQ(wrap_to(DType::u64, -1), -1);
  EXPECT_EQ(wrap_to(DType::u32, -1), 0xffffffff);
  EXPECT_EQ(wrap_to(DType::boolean, 256), 1);
  EXPECT_THROW(wrap_to(DType::f32, 0), InternalError);
}

TEST(DType, RealsSaturateTowardIntegers) {
  EXPECT_EQ(real_to_integer(DType::i8, -1.9), -1);
  EXPECT_EQ(real_to_integer(DType::i8, 1e9), 127);
  EXPECT_EQ(real_to_integer(DType::u8, -3), 0);
  EXPECT_EQ(real_to_integer(DType::i64, 0x1p63), INT64_MAX);
  EXPECT_EQ(real_to_integer(DType::i64, -kInfinity), INT64_MIN);
  EXPECT_EQ(real_to_integer(DType::u64, 0x1p63), INT64_MIN);
  EXPECT_EQ(real_to_integer(DType::u64, kInfinity), -1);
  EXPECT_EQ(real_to_integer(DType::i32, kNan), 0);
  EXPECT_EQ(real_to_integer(DType::boolean, 0.5), 1);
  EXPECT_EQ(integer_to_real(DType::u64, -1), 0x1p64);
  EXPECT_EQ(integer_to_real(DType::i64, -1), -1);
}

TEST(DType, LimitsAndNames) {
  EXPECT_EQ(integer_limits(DType::i4).lowest, -8);
  EXPECT_EQ(integer_limits(DType::u64).highest, -1);
  EXPECT_EQ(integer_limits(DType::i64).lowest, INT64_MIN);
  EXPECT_EQ(integer_limits(DType::u32).highest, 0xffffffff);
  for (int i = 0; i < kDTypeCount; ++i) {
    DType type = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(name(type)), type);
    EXPECT_EQ(kStorageOnly.contains(type), is_storage_only(type));
    EXPECT_TRUE(kAny.contains(type));
  }
  EXPECT_EQ(dtype_from_name("float"), std::nullopt);
}

}  // namespace
}  // namespace hone::HONE_FILE
