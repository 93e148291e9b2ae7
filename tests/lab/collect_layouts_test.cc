#include "lab/data/collect_layouts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "cost/analytic.h"
#include "ir/text.h"
#include "rewrite/prepare.h"
#include "tune/build_data_set.h"

namespace hone::HONE_FILE {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CollectLayoutsTest : public testing::Test {
 protected:
  // Too large to be one chain.
  static Result<Graph> products() {
    return parse_graph(R"(graph @g(%x: f32[256, 256]) {
  %a = dot %x, %x {lhs_contract = [1], rhs_contract = [0]}
  %b = dot %x, %a {lhs_contract = [1], rhs_contract = [0]}
  %c = dot %x, %b {lhs_contract = [1], rhs_contract = [0]}
  return %c
})");
  }
  static std::vector<NamedProgram> programs() { return {{"zoo:a", &products}}; }
  // Whatever else the machine does, no race is refused.
  LayoutOptions options() const {
    return {.vary = {.assignments = 6},
            .whole = 2,
            .whole_seconds = 0.02,
            .meter = {.most_drift = 1e9}};
  }
  CollectedPlans collect(const LayoutOptions& options) {
    return collect_layouts(set_, "zoo:a", prepare(products().value()).value(), target_, cost_,
                           known_, options)
        .value();
  }
  LayoutFile file(bool is_random) const {
    return read_layout_file(layout_path(set_.folder(), "zoo:a", is_random)).value();
  }
  bool has(const LayoutOptions& options) const {
    return has_layouts(set_, "zoo:a", options).value();
  }
  Result<BuiltSet> build(size_t whole, bool renews = false) const {
    LayoutCollector collector;
    collector.whole = whole;
    collector.renews = renews;
    BuildOptions options;
    options.collector = &collector;
    options.cost = cost_.get();
    options.plans = 6;
    options.most_drift = 1e9;
    options.version = "test";
    return build_data_set(set_.folder(), programs(), target_, options);
  }

  const Target target_ = host_target().value();
  const std::shared_ptr<const Cost> cost_ = std::make_shared<AnalyticCost>(target_);
  const TempDir folder_ = TempDir::create(testing::TempDir()).value();
  DataSet set_ =
      DataSet::make((folder_.path() / "set").native(),
                    {.target = target_, .conditions = MeterConditions().text(), .schedules = 8})
          .value();
  MeasuredKernels known_{&set_.log(), target_, "test"};
};

TEST_F(CollectLayoutsTest, GoesOnUntilAllIsKnown) {
  LayoutOptions some = options();
  EXPECT_FALSE(has(some));
  some.is_over = [](double) { return true; };  // there is time for one whole run alone
  const CollectedPlans first = collect(some);
  EXPECT_EQ(first.plans, 6u);
  EXPECT_GT(first.kernels, 0u);
  EXPECT_EQ(first.whole, 1u);
  EXPECT_FALSE(first.is_done);
  EXPECT_FALSE(has(some));
  const float of_default = file(true).times.whole[0];
  EXPECT_GT(of_default, 0);
  EXPECT_THAT(file(true).times.known, testing::Each(0));

  const CollectedPlans rest = collect(options());
  EXPECT_TRUE(rest.is_done);
  EXPECT_EQ(rest.whole, 1u);
  EXPECT_EQ(rest.errors.size(), 2u);
  EXPECT_TRUE(has(options()));
  EXPECT_EQ(file(true).times.whole[0], of_default);
  EXPECT_GT(file(true).times.known[0], 0);
  // More is asked for.
  LayoutOptions more = options();
  more.whole = 3;
  EXPECT_FALSE(has(more));
  more = options();
  more.vary.assignments = 8;
  EXPECT_FALSE(has(more));
  more = options();
  more.vary.seed = 2;
  EXPECT_FALSE(has(more));
  more = options();
  more.whole = 0;
  EXPECT_TRUE(has(more));
}

// As a set of before, that neither says how far it came nor has prices.
TEST_F(CollectLayoutsTest, RenewsFilesWithoutMeasuring) {
  collect(options());
  const LayoutFile before = file(false);
  for (bool is_random : {true, false}) {
    LayoutFile old = file(is_random);
    old.times.priced = old.times.noise = {};
    old.progress = {};
    old.program = old.priced_by = {};
    old.target = 0;
    ASSERT_TRUE(write_npz(layout_path(set_.folder(), "zoo:a", is_random), arrays_of(old)).ok());
  }
  EXPECT_FALSE(has(options()));
  const int64_t records = set_.log().counts()->records;
  const BuiltSet built = build(0, true).value();
  EXPECT_EQ(built.plans, 6);
  EXPECT_EQ(built.whole, 0);
  EXPECT_EQ(built.errors.size(), 2u);
  EXPECT_EQ(set_.log().counts()->records, records);
  const LayoutFile renewed = file(false);
  EXPECT_EQ(renewed.layout.configs, before.layout.configs);
  EXPECT_EQ(renewed.times.priced, before.times.priced);
  EXPECT_EQ(renewed.times.whole, before.times.whole);
  for (size_t i = 0; i < renewed.layout.runtimes.size(); ++i) {
    const auto time = static_cast<double>(before.layout.runtimes[i]);
    EXPECT_NEAR(static_cast<double>(renewed.layout.runtimes[i]), time, 2 + 1e-6 * time);
    EXPECT_NEAR(renewed.times.known[i], before.times.known[i], 1e-5F);
    EXPECT_NEAR(renewed.times.noise[i], before.times.noise[i], 1e-5F);
  }
  EXPECT_EQ(renewed.program, "zoo:a");
  EXPECT_EQ(built.collected, 1);
  EXPECT_TRUE(has(options()));
  // Another call has nothing to do.
  EXPECT_EQ(build(2)->plans, 0);
}

TEST_F(CollectLayoutsTest, KeepsWhatItHasWhenItIsCancelled) {
  CancelToken cancel;
  LayoutOptions some = options();
  some.whole = 4;
  some.vary.cancel = &cancel;
  some.is_over = [&](double share) {  // of all the time: when whole runs have begun
    if (share == 1) cancel.cancel();
    return false;
  };
  const Result<CollectedPlans> broken = collect_layouts(
      set_, "zoo:a", prepare(products().value()).value(), target_, cost_, known_, some);
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().code(), ErrorCode::interrupted);
  EXPECT_GT(file(true).times.whole[0], 0);
  EXPECT_EQ(file(true).progress->whole, 1);
  EXPECT_TRUE(file(true).progress->has_kernels);
}

TEST_F(CollectLayoutsTest, LeavesDamagedFilesOut) {
  ASSERT_TRUE(make_folders(set_.folder() + "/layout").ok());
  ASSERT_TRUE(write_file_atomic(layout_path(set_.folder(), "zoo:a", true).native(), "PK").ok());
  EXPECT_THAT(build(0)->left_out, ElementsAre(HasSubstr("zoo_a-random.npz")));
}

}  // namespace
}  // namespace hone::HONE_FILE
