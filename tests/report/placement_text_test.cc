#include "report/placement_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "place/plain_system.h"
#include "tests/base/says_testing.h"

// A placement as tables and as a drawing.

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

// Two nodes of 600 bytes on devices of 1000: each has its own. The second kind is slower.
PlaceProblem pair() {
  PlaceProblem problem;
  problem.name = "pair";
  problem.system.name = "two";
  problem.system.targets = {plain_target("fast", 1000), plain_target("slow", 1000)};
  problem.system.devices = {{1, 0, 1000}, {1, 1, 1000}};
  problem.system.links = {star_links("port", 1e6)};
  for (const double seconds : {2e-3, 3e-3}) {
    PlaceNode node;
    node.id = std::ssize(problem.nodes);
    node.name = node.id == 0 ? "read <in>" : "write";
    node.seconds = {seconds, 4 * seconds};
    node.held = 600;
    problem.nodes.push_back(node);
  }
  problem.tensors = {{0, {1}, 500, 0}};
  return problem;
}

struct Placed {
  PlaceProblem problem = pair();
  PlaceJudge judge{problem};
  DevicePlacement placement = {{0, 1}, {}};
  PlaceTimeline timeline = judge.timeline(placement).value();
};

TEST(PlacementText, SaysWhatDevicesAndLinksDoAndWhatMovesCost) {
  const Placed placed;
  ASSERT_TRUE(check(placed.problem).ok());
  const std::string text =
      placement_text(placed.judge, placed.placement, placed.timeline, PlaceGoal::step, 5);
  // 2 ms, a message of 0.5 ms, 12 ms.
  EXPECT_TRUE(tested::has_parts(text, "0 (fast) ... 2.00 ms ... 600 B")) << text;
  EXPECT_THAT(text, HasSubstr("500 B"));
  EXPECT_THAT(text, HasSubstr("3.00 ms fast, 12.0 ms slow"));
  EXPECT_THAT(text, HasSubstr("too large"));
  EXPECT_THAT(text, HasSubstr("here"));
}

TEST(PlacementText, OfManyDevicesItSaysTheBestOtherOne) {
  Placed placed;
  placed.problem.system.devices = {{8, 0, 2000}, {1, 1, 2000}};
  const PlaceJudge judge(placed.problem);
  const PlaceTimeline timeline = judge.timeline(placed.placement).value();
  const std::string text = placement_text(judge, placed.placement, timeline, PlaceGoal::step, 1);
  EXPECT_THAT(text, HasSubstr("best other"));
  EXPECT_THAT(text, HasSubstr("-500 us"));  // both on one device: no message
  EXPECT_THAT(text, HasSubstr("and 8 more devices"));
}

TEST(PlacementPlot, DrawsDevicesMemoryAndLinksAndHidesNoMarkup) {
  const Placed placed;
  const std::string svg = plot_placement(placed.judge, placed.timeline);
  EXPECT_TRUE(svg.starts_with("<svg"));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_THAT(svg, HasSubstr("device 1"));
  EXPECT_THAT(svg, HasSubstr("read &lt;in&gt;: 0"));
  EXPECT_THAT(svg, testing::Not(HasSubstr("<in>")));
  EXPECT_THAT(svg, HasSubstr("500 B"));            // the link
  EXPECT_THAT(svg, HasSubstr("600 B of 1000 B"));  // memory
}

TEST(PlacementNames, AreThoseOfTheJobs) {
  const Placed placed;
  const TimelineNames names = names_of(placed.timeline);
  EXPECT_EQ(names.queues, (std::vector<std::string>{"device 0", "device 1"}));
  EXPECT_EQ(names.jobs, (std::vector<std::string>{"read <in>", "write", "from 0"}));
}

}  // namespace
}  // namespace hone::HONE_FILE
