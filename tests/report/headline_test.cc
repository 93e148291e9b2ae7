#include "report/headline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

ModelReport report_of(double median, double kernels) {
  ModelReport report;
  report.threads = 1;
  report.target.cores = 2;
  report.load = 3.1;
  report.load_after = 4.25;
  report.sides = {{"hone", {{median, median, median}}}};
  report.graphs.emplace_back().profile.emplace().seconds = kernels;
  return report;
}

std::string text_of(const ModelReport& report) { return join(headline(report), " "); }

TEST(Headline, SaysUnderWhichLoadARunWasMeasured) {
  EXPECT_THAT(text_of(report_of(12e-3, 10e-3)),
              testing::AllOf(HasSubstr("A run takes 12.0 ms, the median of 3 runs on 1 thread."),
                             HasSubstr("load was 3.1 before and 4.2 after the measurements, on 2 "
                                       "cores.")));
  ModelReport unknown = report_of(12e-3, 10e-3);
  unknown.load = unknown.load_after = -1;
  EXPECT_THAT(text_of(unknown), HasSubstr("load is not known"));
}

TEST(Headline, SaysWhyARunIsNotTheSumOfItsKernels) {
  EXPECT_THAT(text_of(report_of(12e-3, 10e-3)),
              testing::AllOf(HasSubstr("come to 10.0 ms"), HasSubstr("in CPU time"),
                             HasSubstr("The other 2.00 ms are")));
  ModelReport two = report_of(12e-3, 10e-3);
  two.threads = 2;
  EXPECT_THAT(text_of(two), Not(HasSubstr("CPU time")));
  EXPECT_THAT(text_of(report_of(12e-3, 13e-3)), HasSubstr("1.00 ms more than a run"));
}

TEST(Headline, OfWhatDidNotRunThereIsNone) {
  EXPECT_THAT(headline(ModelReport()), IsEmpty());
  ModelReport alone = report_of(12e-3, 0);
  alone.graphs.clear();
  EXPECT_THAT(headline(alone), testing::SizeIs(2));
}

}  // namespace
}  // namespace hone::HONE_FILE
