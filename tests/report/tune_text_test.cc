#include "report/tune_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone {
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
  EXPECT_THAT(tune_json(tuned),
              AllOf(HasSubstr("\"untried\": 2"), HasSubstr("\"had_no_time_to_confirm\": true")));
}

TEST(TuneText, SaysHowMuchTheLogKnew) {
  Tuned tuned;
  tuned.overlap = {.kernels = 20, .known = 12, .share = 0.834};
  EXPECT_THAT(tune_text(tuned),
              HasSubstr("the log knew 12 of the model's 20 kernels, 83 % of its time by price\n"));
}

}  // namespace
}  // namespace hone
