#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/duel_text.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

PlanDuel measured(double ratio, Interval interval) {
  return {
      .outcome = Outcome::measured,
      .times = {.a = {{1e-3, 1e-3}}, .b = {{ratio * 1e-3}}, .ratio = ratio, .interval = interval}};
}

TEST(DuelText, SaysWhetherTheSecondIsSurelyFaster) {
  const std::string faster = duel_text(measured(0.5, {0.4, 0.8}), "default", "x.plan");
  EXPECT_THAT(faster,
              HasSubstr("x.plan is 2.000x (1.250 to 2.500) as fast as default: surely faster"));
  EXPECT_THAT(duel_text(measured(2, {1.5, 2.5}), "a", "b"), HasSubstr("surely slower"));
  EXPECT_THAT(duel_text(measured(1, {0.9, 1.1}), "a", "b"), HasSubstr("neither is known"));
}

TEST(DuelText, DataSaysWhyThereAreNoTimes) {
  const PlanDuel wrong = {.outcome = Outcome::wrong, .detail = "output 0: too far"};
  const std::string json = duel_json(wrong, "a", "b");
  EXPECT_THAT(json, HasSubstr("\"outcome\": \"wrong\""));
  EXPECT_THAT(json, HasSubstr("output 0: too far"));
}

}  // namespace
}  // namespace hone::HONE_FILE
