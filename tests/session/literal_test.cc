#include "session/literal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

TEST(Literal, HoldsItsNumbers) {
  const Result<Tensor> tensor = parse_literal("2x3xf32=1 2 3, 4,5 -6.5");
  ASSERT_TRUE(tensor.ok()) << tensor.error().to_string();
  EXPECT_EQ(tensor->type(), Type::get(DType::f32, {2, 3}));
  EXPECT_EQ(tensor->real_at(5), -6.5);
}

TEST(Literal, OneNumberFillsAll) {
  EXPECT_EQ(parse_literal("4xi8=-7")->integer_at(3), -7);
  EXPECT_EQ(parse_literal("0x4xf32=1")->elements(), 0);
  EXPECT_EQ(parse_literal("f64=0.25")->real_at(0), 0.25);
  EXPECT_EQ(parse_literal("0xf32=")->elements(), 0);
}

TEST(Literal, BoolsAndLimits) {
  const Result<Tensor> flags = parse_literal("4xbool=true false 1 0");
  ASSERT_TRUE(flags.ok());
  EXPECT_EQ(flags->integer_at(0), 1);
  EXPECT_EQ(flags->integer_at(1), 0);
  EXPECT_TRUE(parse_literal("u8=255").ok());
  EXPECT_TRUE(parse_literal("u64=5").ok());
  EXPECT_TRUE(parse_literal("f32=nan").ok());
}

TEST(Literal, SaysWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "has no numbers"},
      {"2xf32", "has no numbers"},
      {"=1", "element type"},
      {"2x=1", "element type"},
      {"2xfloat=1", "'float' in '2xfloat' ... element type"},
      {"-2xf32=1", "'-2' in '-2xf32' ... dim"},
      {"axf32=1", "'a' in 'axf32' ... dim"},
      {"99999999999999999999xf32=1", "dim"},
      {"4611686018427387904x4xf32=1", "above the limit of 2^40"},
      {"1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32=1", "rank"},
      {"3xf32=1 2", "3 elements ... 2"},
      {"f32=", "1 elements ... 0"},
      {"f32=one", "'one' is not a number"},
      {"i32=1.5", "'1.5' is not an integer"},
      {"u8=256", "256 does not fit u8"},
      {"u8=-1", "-1 does not fit u8"},
      {"u64=-1", "-1 does not fit u64"},
      {"bool=2", "'2' ... true or false"},
  };
  for (const auto& [text, words] : cases) {
    const Result<Tensor> tensor = parse_literal(text);
    ASSERT_FALSE(tensor.ok()) << text;
    EXPECT_THAT(tensor.error().to_string(), says(std::string(words))) << text;
    EXPECT_EQ(tensor.error().code(), ErrorCode::usage) << text;
  }
}

TEST(Literal, AllocatesNothingHuge) {
  const Result<Tensor> tensor = parse_literal("1099511627776xf64=1");
  ASSERT_FALSE(tensor.ok());
  EXPECT_EQ(tensor.error().code(), ErrorCode::limit);
}

}  // namespace
}  // namespace hone::HONE_FILE
