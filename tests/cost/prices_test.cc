#include "cost/prices.h"

#include <gmock/gmock.h>

namespace hone::HONE_FILE {
namespace {

using ::testing::HasSubstr;

std::string refusal(std::string_view text) {
  return parse_prices(text, "t", "my.prices").error().to_string();
}

// The default prices with one piece of text replaced.
std::string with(std::string_view before, std::string_view after) {
  std::string text = print(Prices(), "t");
  return text.replace(text.find(before), before.size(), after);
}

TEST(Prices, AreReadAsTheyArePrinted) {
  const Prices prices = {.sum_latency = 7.25, .code = 1e3, .not_hidden = 0};
  EXPECT_EQ(parse_prices(print(prices, "t \"x\""), "t \"x\"").value(), prices);
  EXPECT_THAT(print(Prices(), "t"),
              HasSubstr("  sum_latency = 8           # from one trip of a sum to the next\n"));
}

TEST(Prices, AreRefusedByName) {
  EXPECT_EQ(parse_prices(with("trip = 2", "trip = 0"), "t").value().trip, 0);
  EXPECT_THAT(refusal(with("trip = 2", "")), HasSubstr("the coefficient 'trip' is missing"));
  EXPECT_THAT(refusal(with("trip = 2", "")), HasSubstr("there are sum_latency, trip, spill"));
  for (const char* bad : {"-2", "inf", "nan", "1e999", "1e308", "1.1e12", "x", "\"2\""})
    EXPECT_THAT(refusal(with("trip = 2", fmt::format("trip = {}", bad))),
                HasSubstr("not a number from 0 to 1000000000000"))
        << bad;
  EXPECT_THAT(refusal(with("trip = 2", "tripp = 2")),
              HasSubstr("there is no coefficient 'tripp' (my.prices:3:3)"));
  EXPECT_THAT(refusal(with("trip = 2", "trip = 2 trip = 2")), HasSubstr("stands twice"));
  EXPECT_THAT(refusal(with("\"t\"", "\"u\"")), HasSubstr("not for \"t\""));
  EXPECT_THAT(refusal(with("}", "} x")), HasSubstr("end before 'x'"));
  EXPECT_THAT(refusal(with("}", "")), HasSubstr("there is no coefficient ''"));
  EXPECT_THAT(refusal(""), HasSubstr("expected 'prices'"));
}

}  // namespace
}  // namespace hone::HONE_FILE
