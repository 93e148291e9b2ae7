#include "report/plan_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "cost/analytic.h"
#include "ir/text.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"
#include "target/fingerprint.h"

namespace hone::HONE_FILE {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// Three products one after the other, the first and the second of one kind, and a branch.
constexpr std::string_view kProducts = R"(
graph @g(%x: f32[16, 32], %w: f32[32, 32], %v: f32[32, 64]) -> f32[16, 64] {
  %a = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %b = dot %a, %w {lhs_contract = [1], rhs_contract = [0]}
  %y = dot %b, %v {lhs_contract = [1], rhs_contract = [0]}
  return %y
})";

class Pictures : public testing::Test {
 protected:
  Pictures() {
    Heuristics heuristics;
    heuristics.chains = false;
    Plan partial;
    partial.threads = 1;
    PlannerOptions options;
    options.heuristics = heuristics;
    plan_ = complete(graph_, partial, target_, cost_, options).value();
  }

  const Target target_ = host_target().value();
  const AnalyticCost cost_{target_};
  const Graph graph_ = prepare(parse_graph(kProducts).value()).value();
  Plan plan_;
};

TEST_F(Pictures, OfAGraphHaveStepsInOrderWithWhatTheyNeed) {
  const GraphPicture picture = picture_of(graph_, plan_, {{"y", "head"}}).value();
  ASSERT_THAT(picture.steps, SizeIs(plan_.order.size()));
  for (size_t i = 0; i < picture.steps.size(); ++i) {
    EXPECT_EQ(picture.steps[i].name, plan_.order[i]);
    for (const uint32_t need : picture.steps[i].needs) EXPECT_LT(need, i);
  }
  EXPECT_THAT(picture.steps.front().needs, IsEmpty());
  EXPECT_THAT(picture.steps.back().needs, ElementsAre(picture.steps.size() - 2));
  EXPECT_THAT(picture.steps.back().layers, ElementsAre("head"));
  const GraphPicture::Node& last = picture.steps.back().nodes.back();
  EXPECT_EQ(last.name, "y");
  EXPECT_EQ(last.op, "dot");
  EXPECT_EQ(last.type, "f32[16, 64]");
  // Equal kernels share a schedule.
  EXPECT_LT(picture.schedules.size(), picture.steps.size());
  EXPECT_EQ(picture.left_out_steps, 0u);
}

TEST_F(Pictures, OfAGraphAreBounded) {
  PictureBounds bounds;
  bounds.steps = 2;
  bounds.nodes = 1;
  const GraphPicture picture = picture_of(graph_, plan_, {}, bounds).value();
  EXPECT_THAT(picture.steps, SizeIs(2));
  EXPECT_EQ(picture.left_out_steps, plan_.order.size() - 2);
  EXPECT_EQ(picture.steps[0].nodes.size() + picture.steps[1].nodes.size(), 1u);
  EXPECT_EQ(picture.left_out_nodes, 1u);
}

TEST_F(Pictures, WithoutAPlanEachNodeIsAStep) {
  const GraphPicture picture = picture_of(graph_, Plan{}).value();
  EXPECT_THAT(picture.steps, SizeIs(3));
  EXPECT_THAT(picture.schedules, IsEmpty());
  EXPECT_EQ(picture.steps[1].name, "b");
}

TEST_F(Pictures, OfMemoryHaveThePackingOfThePlan) {
  const MemoryPicture picture = memory_picture(graph_, plan_).value();
  EXPECT_THAT(picture.buffers, SizeIs(plan_.offset.size()));
  EXPECT_EQ(picture.moments, static_cast<int64_t>(plan_.order.size()));
  EXPECT_EQ(picture.inputs, 4 * (16 * 32 + 32 * 32 + 32 * 64));
  EXPECT_EQ(picture.outputs, 4 * 16 * 64);
  EXPECT_LE(picture.bound, picture.height);
  int64_t most = 0;
  for (const MemoryPicture::Buffer& buffer : picture.buffers) {
    EXPECT_EQ(buffer.offset, plan_.offset.at(buffer.name));
    EXPECT_LT(buffer.begin, buffer.end);
    EXPECT_LE(buffer.end, picture.moments);
    EXPECT_LE(buffer.offset + buffer.bytes, picture.height);
    most = std::max(most, buffer.bytes);
  }
  EXPECT_GE(std::ranges::max(picture.load), most);
  EXPECT_LE(std::ranges::max(picture.load), picture.height);

  PictureBounds bounds;
  bounds.buffers = 1;
  bounds.moments = 1;
  const MemoryPicture small = memory_picture(graph_, plan_, bounds).value();
  EXPECT_THAT(small.buffers, SizeIs(1));
  EXPECT_EQ(small.left_out, picture.buffers.size() - 1);
  EXPECT_THAT(small.load, ElementsAre(std::ranges::max(picture.load)));
}

TEST_F(Pictures, OfTuningHaveWhatTheLogHasOfTheKernels) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::unique_ptr<Log> log = Log::open((folder.path() / "log.db").string()).value();
  EXPECT_THAT(tuning_picture(graph_, plan_, target_, cost_, *log)->kernels, IsEmpty());

  const std::map<std::string, PlannedKernel> kernels = planned_kernels(graph_, plan_).value();
  const PlannedKernel& kernel = kernels.begin()->second;
  double steps = 0;
  for (const auto& [step, other] : kernels) steps += other.hash == kernel.hash ? 1 : 0;
  const Schedule simplest;
  const auto record = [&](const Schedule& schedule, double seconds, std::string conditions) {
    return Record{.kind = "kernel",
                  .subject = kernel.hash,
                  .choice = print(schedule),
                  .target = fingerprint(target_),
                  .conditions = std::move(conditions),
                  .seconds = {seconds},
                  .version = "test"};
  };
  std::vector<Record> records = {record(simplest, 3e-3, "threads=1 cache=warm"),
                                 record(*kernel.schedule, 1e-3, "threads=1 cache=warm"),
                                 record(simplest, 9e-3, "threads=8 cache=warm"),
                                 record(simplest, 7e-3, "threads=1 cache=cold")};
  records.push_back(records[0]);
  records.back().choice = "{algorithm = of_the_future}";
  ASSERT_TRUE(log->add(records).ok());
  const TuningPicture picture = tuning_picture(graph_, plan_, target_, cost_, *log).value();
  ASSERT_THAT(picture.kernels, SizeIs(1));
  ASSERT_THAT(picture.kernels[0].points, SizeIs(2));
  EXPECT_FALSE(picture.kernels[0].points[0].is_chosen);
  EXPECT_TRUE(picture.kernels[0].points[1].is_chosen);
  EXPECT_DOUBLE_EQ(picture.kernels[0].points[1].measured, 1e-3);
  EXPECT_GT(picture.kernels[0].points[0].priced, 0);
  EXPECT_THAT(picture.progress, ElementsAre(std::pair(0, steps * 3e-3), std::pair(2, steps * 1e-3),
                                            std::pair(2, steps * 1e-3)));
  EXPECT_FALSE(picture.best.has_value());

  PictureBounds bounds;
  bounds.points = 1;  // the chosen one stays
  const TuningPicture small = tuning_picture(graph_, plan_, target_, cost_, *log, bounds).value();
  ASSERT_THAT(small.kernels[0].points, SizeIs(1));
  EXPECT_TRUE(small.kernels[0].points[0].is_chosen);
  EXPECT_EQ(small.left_out, 1u);
}

}  // namespace
}  // namespace hone::HONE_FILE
