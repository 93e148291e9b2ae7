#include "report/quantize_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;
using testing::Not;

Duel duel() {
  const std::vector<std::vector<double>> a = {{2e-3}, {2e-3}}, b = {{1e-3}, {1e-3}};
  return judged(a, b);
}

TEST(QuantizePage, DrawsTheFrontAndEscapesNames) {
  quantize::QuantizeResult result;
  result.reports = {{.name = "<script>alert(1)</script>",
                     .level = quantize::Precision::int8,
                     .error = 0.004,
                     .seconds_f32 = 2e-3,
                     .seconds = 1e-3,
                     .bytes_f32 = 4096,
                     .bytes = 1024,
                     .is_smoothed = true},
                    {.name = "head", .seconds_f32 = 1e-3, .seconds = 1e-3, .why = "the error"}};
  result.front = {{1e-3, 0.02, false}, {2e-3, 0.004, true}, {3e-3, 0, false}};
  const std::string page = quantize_page(
      {.model = "a<b", .result = result, .times = duel(), .error = 0.01, .is_by_seconds = true});
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, HasSubstr("<h1>a&lt;b</h1>"));
  EXPECT_THAT(page, HasSubstr("<td>int8</td><td>0.004</td>"));
  EXPECT_THAT(page, HasSubstr("smoothed"));
  EXPECT_THAT(page, HasSubstr("the error"));
  // f32 has no error that a logarithm could show; the taken one is large.
  size_t points = 0;
  for (size_t at = page.find("<circle"); at != std::string::npos; at = page.find("<circle", at + 1))
    ++points;
  EXPECT_EQ(points, 2u);
  EXPECT_THAT(page, HasSubstr("r=\"7\""));
  EXPECT_THAT(page, HasSubstr(", taken"));
}

TEST(QuantizePage, DrawsNothingOfNothing) {
  const quantize::QuantizeResult result;
  const std::string page =
      quantize_page({.model = "g", .result = result, .times = duel(), .error = 1});
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  EXPECT_THAT(page, Not(HasSubstr("inf")));
}

}  // namespace
}  // namespace hone::HONE_FILE
