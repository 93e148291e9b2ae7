#include "tune/build_data_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/file.h"
#include "cost/analytic.h"
#include "ir/text.h"
#include "learn/kernel_data.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tune/collect_kernel.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class BuildDataSetTest : public testing::Test {
 protected:
  // A softmax of `rows` rows.
  static NamedProgram program(const std::string& name, int64_t rows) {
    return {name, [rows]() -> Result<Graph> {
              return parse_graph(
                  fmt::format("graph @g(%x: f32[{0}, 256]) {{ %y = softmax %x return %y }}", rows));
            }};
  }
  // Whatever else the machine does, no race is refused, and no time too noisy.
  BuildOptions options() const {
    return {.schedules = 8,
            .most_drift = 1e9,
            .most_noise = 1e9,
            .seed = 1,
            .version = "test",
            .cost = &cost_};
  }
  Result<BuiltSet> build(std::span<const NamedProgram> programs, const BuildOptions& options,
                         std::string_view name = "set") const {
    return build_data_set(path(name), programs, target_, options);
  }
  std::string path(std::string_view name = "set") const { return (folder_.path() / name).native(); }
  // How often each code of the set's kernel was measured.
  std::map<uint64_t, int> races_of(const ProgramKernel& kernel) const {
    const DataSet set = DataSet::open(path()).value();
    const std::vector<Record> records = set.log().find({.subject = kernel.kernel}).value();
    std::map<uint64_t, int> races;
    for (const Record& record : records)
      if (record.outcome == Outcome::measured) ++races[record.code];
    return races;
  }

  const Target target_ = host_target().value();
  const AnalyticCost cost_{target_};
  const TempDir folder_ = TempDir::create(testing::TempDir()).value();
};

TEST_F(BuildDataSetTest, MeasuresKernelsThatCanBeLoaded) {
  const std::vector<NamedProgram> programs = {program("a", 1000), program("b", 1000),
                                              program("c", 600)};
  const BuiltSet built = build(programs, options()).value();
  EXPECT_EQ(built.programs, 3);
  EXPECT_EQ(built.kernels, 2);
  EXPECT_EQ(built.wanted, 2);
  EXPECT_EQ(built.collected, 2);
  EXPECT_GT(built.compiles, 4);
  EXPECT_THAT(built.left_out, IsEmpty());
  const KernelData data = load_kernel_data(path()).value();
  EXPECT_EQ(data.unfit, 0);
  // On a busy machine all times of a kernel may be too noisy.
  EXPECT_EQ(data.kernels.size() + static_cast<size_t>(data.left_out), 2u);
  for (const KernelSample& kernel : data.kernels) EXPECT_EQ(kernel.kind, "rows");
  // The first kernel was measured twice.
  const DataSet set = DataSet::open(path()).value();
  EXPECT_THAT(set.programs(), ElementsAre("a", "b", "c"));
  const std::map<uint64_t, int> races = races_of(set.kernels()[0]);
  EXPECT_GE(races.size(), kLeastSchedules);
  for (const auto& [code, count] : races) EXPECT_EQ(count, 2);
}

// An empty log alone is larger than this, but packs well.
TEST_F(BuildDataSetTest, CountsBytesAsAnArchiveHasThem) {
  HONE_ONE_RUN_OF(5);
  std::vector<NamedProgram> programs;
  for (int64_t rows = 600; rows < 630; ++rows)
    programs.push_back(program(fmt::format("rows{}", rows), rows));
  BuildOptions small = options();
  small.most_bytes = 12'000;
  const BuiltSet built = build(programs, small).value();
  EXPECT_GE(built.collected, 1);
  EXPECT_LT(built.collected, built.wanted);
  EXPECT_LE(packed_bytes(path()), 2 * small.most_bytes);
}

// The start of each race drifts by more than nothing.
TEST_F(BuildDataSetTest, RefusesRacesOfAnUnsteadyMachine) {
  HONE_ONE_RUN_OF(5);
  BuildOptions unsteady = options();
  unsteady.most_drift = 0;
  const BuiltSet built = build(std::vector{program("a", 1000)}, unsteady).value();
  EXPECT_GT(built.refused, 0);
  EXPECT_EQ(built.collected, 0);
  EXPECT_THAT(built.left_out, ElementsAre(says("times ... noisy ... 0 of 0")));
  EXPECT_THAT(load_kernel_data(path()).value().kernels, IsEmpty());
}

// The kernel is the first one, which is measured twice in any case.
TEST_F(BuildDataSetTest, MeasuresNoisyTimesOnceMoreAndInALaterBuild) {
  HONE_ONE_RUN_OF(5);
  const std::vector<NamedProgram> programs = {program("a", 1000)};
  BuildOptions strict = options();
  strict.most_noise = -1;
  const BuiltSet built = build(programs, strict).value();
  EXPECT_EQ(built.collected, 0);
  EXPECT_THAT(built.left_out, ElementsAre(says("times ... noisy ... 0 of")));
  const ProgramKernel kernel = DataSet::open(path())->kernels()[0];
  for (const auto& [code, count] : races_of(kernel)) EXPECT_EQ(count, 3);
  EXPECT_GT(build(programs, strict)->compiles, 4);
  // With the new times an evolution may have come to other schedules, which are new.
  std::vector<int> counts;
  for (const auto& [code, count] : races_of(kernel)) counts.push_back(count);
  EXPECT_EQ(std::ranges::max(counts), 5);
  const BuiltSet content = build(programs, options()).value();
  EXPECT_EQ(content.collected, 1);
  EXPECT_THAT(content.left_out, IsEmpty());
}

TEST_F(BuildDataSetTest, GoesOnWhereItWas) {
  HONE_ONE_RUN_OF(5);
  const std::vector<NamedProgram> programs = {program("a", 1000), program("c", 600)};
  BuildOptions one = options();
  one.kernels = 1;
  EXPECT_EQ(build(programs, one)->collected, 1);
  const int64_t records = DataSet::open(path())->log().counts()->records;
  // Programs need not be named again.
  const BuiltSet more = build({}, options()).value();
  EXPECT_EQ(more.collected, 2);
  EXPECT_GT(DataSet::open(path())->log().counts()->records, records);
  const BuiltSet again = build({}, options()).value();
  EXPECT_EQ(again.collected, 2);
  EXPECT_EQ(again.compiles, 0);
}

TEST_F(BuildDataSetTest, TakesWhatAnotherLogHas) {
  const std::vector<NamedProgram> programs = {program("a", 1000)};
  ASSERT_TRUE(build(programs, options()).ok());
  const DataSet first = DataSet::open(path()).value();
  BuildOptions from = options();
  from.from = &first.log();
  const BuiltSet built = build(programs, from, "second").value();
  EXPECT_GT(built.taken, 4);
  EXPECT_GT(built.reused, 4);
  EXPECT_EQ(built.collected, 1);
  EXPECT_EQ(DataSet::open(path("second"))->kernels(), first.kernels());
}

TEST_F(BuildDataSetTest, TellsWhatItLeavesOut) {
  const std::vector<NamedProgram> programs = {
      program("tiny", 2),
      {"open",
       [] {
         return parse_graph(
             "graph @g(%x: f32[N, 4]) where N in 1..9 {\n"
             "  %y = exp %x\n  return %y\n}\n");
       }},
      {"none", []() -> Result<Graph> { return bad_input("no such file"); }}};
  const BuiltSet built = build(programs, options()).value();
  EXPECT_EQ(built.programs, 0);
  EXPECT_THAT(built.left_out,
              ElementsAre(says("tiny ... kernel ... 5 us"), HasSubstr("open: it has open sizes"),
                          says("none ... no such file")));
}

TEST_F(BuildDataSetTest, CancelledItKeepsWhatItHas) {
  CancelToken cancel;
  cancel.cancel();
  BuildOptions cancelled = options();
  cancelled.cancel = &cancel;
  const std::vector<NamedProgram> programs = {program("a", 1000)};
  const BuiltSet built = build(programs, cancelled).value();
  EXPECT_TRUE(built.was_cancelled);
  EXPECT_EQ(built.collected, 0);
  EXPECT_EQ(build(programs, options())->collected, 1);
}

// Cancels when the first kernel is done.
struct CancelAfterOne : Progress {
  CancelToken* cancel = nullptr;
  void start(int64_t, std::string_view) override {}
  void advance(int64_t) override { cancel->cancel(); }
  void finish(std::string_view) override {}
  void note(std::string_view) override {}
};

TEST_F(BuildDataSetTest, BeginsWithKernelsThatHaveNothing) {
  HONE_ONE_RUN_OF(5);
  ASSERT_TRUE(build(std::vector{program("a", 1000)}, options()).ok());
  CancelToken cancel;
  CancelAfterOne progress;
  progress.cancel = &cancel;
  BuildOptions more = options();
  more.schedules = 16;
  more.cancel = &cancel;
  more.progress = &progress;
  ASSERT_TRUE(build(std::vector{program("b", 600)}, more).ok());
  // The test counts records: whether a time is good enough to learn from is up to the machine.
  const DataSet set = DataSet::open(path()).value();
  ASSERT_THAT(set.programs(), ElementsAre("a", "b"));
  EXPECT_LE(races_of(set.kernels()[0]).size(), 8u);
  EXPECT_GE(races_of(set.kernels()[1]).size(), kLeastSchedules);
}

TEST_F(BuildDataSetTest, RefusesASetOfAnotherTarget) {
  ASSERT_TRUE(build({}, options()).ok());
  const Target other = restricted(target_, Isa::v2);
  EXPECT_THAT(build_data_set(path(), {}, other, options()).error().to_string(),
              HasSubstr("never mixed"));
  BuildOptions wrong = options();
  wrong.threads = target_.cores + 1;
  EXPECT_FALSE(build({}, wrong).ok());
  wrong = options();
  wrong.schedules = 2;
  EXPECT_FALSE(build({}, wrong).ok());
}

TEST(InTurns, TakesOneOfEach) {
  EXPECT_THAT(in_turns<int>({{1, 2, 3}, {}, {4}, {5, 6}}, 9), ElementsAre(1, 4, 5, 2, 6, 3));
  EXPECT_THAT(in_turns<int>({{1, 2, 3}, {4}}, 2), ElementsAre(1, 4));
  EXPECT_THAT(in_turns<int>({}, 2), IsEmpty());
}

}  // namespace
}  // namespace hone::HONE_FILE
