#include "report/tune_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone::HONE_FILE {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(TuneText, SaysWhyTheDefaultPlanStays) {
  Tuned tuned;
  EXPECT_THAT(tune_text(tuned), AllOf(HasSubstr("nothing was surely faster"),
                                      Not(HasSubstr("untried")), Not(HasSubstr("the log knew"))));
  tuned.untried = 2;
  tuned.confirmation.lacks_time = true;
  EXPECT_THAT(tune_text(tuned),
              AllOf(HasSubstr("no room to confirm"), HasSubstr("plans left untried: 2"),
                    Not(HasSubstr("surely faster"))));
  const TunedGraph two[] = {{"a", tuned}, {"b", tuned}};
  EXPECT_THAT(tune_json(std::span(two, 1)),
              AllOf(HasSubstr("\"untried\": 2"), HasSubstr("\"had_no_time_to_confirm\": true"),
                    Not(HasSubstr("segment"))));
  EXPECT_THAT(tune_json(two),
              AllOf(HasSubstr("\"segment\": \"a\""), HasSubstr("\"segment\": \"b\"")));
}

TEST(TuneText, SaysThatThePlanOfTheLogStays) {
  Tuned tuned;
  tuned.is_default = false;
  tuned.stays = KnownPlan{.plan = {}, .gain = 1.5, .low = 1.25, .high = 1.75};
  tuned.confirmation.lacks_time = true;
  EXPECT_THAT(tune_text(tuned),
              HasSubstr("the log's plan stays: 1.500x (1.250 to 1.750) as fast as the default when "
                        "it was confirmed, no time to confirm it now\n"));
  tuned.confirmation = {.outcome = Outcome::measured};
  tuned.confirmation.times.ratio = 0.8;
  EXPECT_THAT(tune_text(tuned), HasSubstr("when it was confirmed, 1.250x now, which is in doubt"));
  EXPECT_EQ(tuned.gain(), 1.5);
}

TEST(TuneText, SaysWhichDefaultPlanGainsAreOver) {
  Tuned tuned;
  tuned.defaults = {{.prices = "fitted prices", .is_best = true}};
  EXPECT_THAT(tune_text(tuned), Not(HasSubstr("fitted prices")));
  PlanDuel duel = {.outcome = Outcome::measured};
  duel.times.ratio = 0.5;
  duel.times.interval = Interval{0.4, 0.625};
  tuned.defaults.push_back({.prices = "default prices", .duel = duel, .is_best = true});
  tuned.start = 1;
  EXPECT_THAT(tune_text(tuned), HasSubstr("the plan by default prices is 2.000x (1.600 to 2.500) "
                                          "as fast as that by fitted prices\n"
                                          "the default plan is that by default prices\n"));
  const TunedGraph one = {"a", tuned};
  EXPECT_THAT(tune_json({&one, 1}), HasSubstr("\"starts_from\": 1"));
}

TEST(TuneText, SaysHowMuchTheLogKnew) {
  Tuned tuned;
  tuned.overlap = {.kernels = 20, .known = 12, .share = 0.834};
  EXPECT_THAT(tune_text(tuned),
              HasSubstr("the log knew 12 of the model's 20 kernels, 83 % of its time by price\n"));
}

}  // namespace
}  // namespace hone::HONE_FILE
