#include "oracle/case_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

DifferentialCase any_case() {
  return parse_case(R"(case x86-64-v2 accurate
graph @main(%x: f32[1]) -> f32[1] {
  %y = exp %x : f32[1]
  return %y
}
---- plan
plan @main {
  threads = 1
  fuse @k0 = {%y}
}
---- inputs
graph @inputs() -> f32[1] {
  %0 = constant [1] : f32[1]
  return %0
}
)",
                    "a case")
      .value();
}

// The outcome that the shell script, which stands for hone, makes of a case.
Result<DifferentialOutcome> outcome_of(const std::string& script, double time_limit = 0) {
  const CancelToken cancel;
  return CaseProcess({"/bin/sh", {"-c", script, "sh"}}, time_limit, cancel).run(any_case());
}

TEST(CaseProcess, HandsTheCaseOverAndReadsTheVerdict) {
  const DifferentialOutcome outcome =
      outcome_of("grep -q 'graph @main' \"$1\" && echo wrong by far").value();
  EXPECT_EQ(outcome.verdict, Verdict::wrong);
  EXPECT_THAT(outcome.reason, HasSubstr("by far"));
}

TEST(CaseProcess, WhateverEndsTheProcessIsAnOutcome) {
  EXPECT_EQ(outcome_of("kill -SEGV $$").value().reason, "killed by SIGSEGV");
  EXPECT_THAT(outcome_of("sleep 60", 0.1).value().reason, HasSubstr("no result within"));
  EXPECT_THAT(outcome_of("echo odd >&2; exit 6").value().reason, HasSubstr("exit code 6: odd"));
  EXPECT_EQ(outcome_of("echo perhaps").value().verdict, Verdict::crashed);
}

TEST(CaseProcess, ALimitOfTheSystemIsNoOutcome) {
  const Result<DifferentialOutcome> outcome =
      outcome_of("echo 'hone: error: no memory' >&2; exit 5");
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code(), ErrorCode::limit);
  EXPECT_EQ(outcome.error().what(), "no memory");
}

}  // namespace
}  // namespace hone::HONE_FILE
