#include "plan/drop_unfit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cost/analytic.h"
#include "ir/text.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"
#include "tests/target/target_testing.h"

namespace hone::HONE_FILE {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kGraph = R"(
graph @g(%x: f32[4, 8], %w: f32[8, 16], %p: bool[]) -> f32[4, 16] {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %e = exp %h
  %t = transpose %e {permutation = [1, 0]}
  %s = reduce %t {kind = sum, axes = [0]}
  %b = broadcast %s {dims = [4, 16], map = [0]}
  %o = if %p, %h then (%a: f32[4, 16]) {
    %c = exp %a
    %d = neg %c
    return %d
  } else (%a: f32[4, 16]) {
    return %a
  }
  %y = add %o, %b
  return %y
})";

struct Sample {
  Graph graph = prepare(parse_graph(kGraph).value()).value();
  Target target = parse_target(kSampleTarget, "t").value();
  Plan plan = complete(graph, {}, target).value();

  // The entries that are dropped for it to fit; it does then.
  std::vector<std::string> dropped(Plan& changed) const {
    std::vector<std::string> entries;
    const auto fits = [&](const Plan& plan) { return check(plan, graph, target); };
    const Result<std::vector<DroppedEntry>> result = drop_unfit(changed, fits);
    EXPECT_TRUE(result.ok()) << result.error().to_string();
    for (const auto& [entry, reason] : *result) entries.push_back(entry);
    EXPECT_TRUE(fits(changed).ok());
    EXPECT_TRUE(drop_unfit(changed, [&](const Plan& plan) -> Status {
                  HONE_TRY(complete(graph, plan, target));
                  return {};
                }).ok());
    return entries;
  }
};

TEST(DropUnfit, KeepsAPlanThatFits) {
  const Sample sample;
  Plan plan = sample.plan;
  EXPECT_THAT(sample.dropped(plan), IsEmpty());
  EXPECT_EQ(plan, sample.plan);
}

TEST(DropUnfit, DropsTheEntryAtFaultAlone) {
  const Sample sample;
  Plan plan = sample.plan;
  plan.layout["x"] = Layout::row_major(2);
  plan.offset["e"] = 1;
  plan.view["nowhere"] = true;
  plan.schedule[0x1234] = Schedule();
  const std::vector<std::string> dropped = sample.dropped(plan);
  EXPECT_THAT(dropped, testing::IsSupersetOf({"view %nowhere", "schedule 0x0000000000001234"}));
  EXPECT_LE(dropped.size(), 4u);
  EXPECT_EQ(plan.fuse, sample.plan.fuse);
  EXPECT_EQ(plan.order, sample.plan.order);
}

// In an edited group, what was decided for the kernel that is gone goes, too; the rest stays.
TEST(DropUnfit, FollowsAnEditedGroup) {
  const Sample sample;
  for (size_t i = 0; i < sample.plan.fuse.size(); ++i) {
    Plan plan = sample.plan;
    const std::string gone = plan.fuse[i].kernel;
    plan.fuse.erase(plan.fuse.begin() + static_cast<std::ptrdiff_t>(i));
    for (const std::string& entry : sample.dropped(plan)) {
      EXPECT_NE(entry, "threads");
      EXPECT_THAT(entry, testing::Not(HasSubstr("fuse")));
    }
    EXPECT_EQ(plan.fuse.size(), sample.plan.fuse.size() - 1) << gone;
  }
}

TEST(DropUnfit, LooksIntoRegions) {
  const Sample sample;
  Plan plan = sample.plan;
  ASSERT_EQ(plan.region.count("o.then"), 1u);
  plan.region["o.then"].layout["nowhere"] = Layout::row_major(1);
  plan.region["o.other"] = Plan();
  EXPECT_THAT(sample.dropped(plan),
              testing::UnorderedElementsAre("region %o.then, layout %nowhere", "region %o.other"));
  EXPECT_EQ(plan, sample.plan);
}

// Each of two groups waits for the other; the second one goes.
TEST(DropUnfit, BreaksCycles) {
  const Graph graph = parse_graph(R"(
    graph @c(%x: f32[4], %y: f32[4]) -> (f32[4], f32[4]) {
      %p = exp %x
      %q = exp %y
      %s = add %p, %q
      %r = sub %q, %p
      return %s, %r
    })")
                          .value();
  Plan plan;
  plan.fuse = {{"a", {"p", "s"}}, {"b", {"q", "r"}}};
  const Target target = parse_target(kSampleTarget, "t").value();
  const auto fits = [&](const Plan& plan) { return check(plan, graph, target); };
  const std::vector<DroppedEntry> dropped = drop_unfit(plan, fits).value();
  ASSERT_EQ(dropped.size(), 1u);
  EXPECT_EQ(dropped[0].entry, "fuse @b");
  EXPECT_THAT(dropped[0].reason, HasSubstr("wait"));
}

TEST(DropUnfit, ReturnsWhatNoEntryIsAtFaultFor) {
  Plan plan;
  const auto never = [](const Plan&) -> Status { return bad_input("no"); };
  EXPECT_EQ(drop_unfit(plan, never).error().what(), "no");
  const auto elsewhere = [](const Plan&) -> Status {
    return bad_input("no").within("layout %nowhere");
  };
  EXPECT_FALSE(drop_unfit(plan, elsewhere).ok());
}

}  // namespace
}  // namespace hone::HONE_FILE
