#include "tune/vary_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "cost/analytic.h"
#include "io/tpu/features.h"
#include "ir/text.h"
#include "rewrite/prepare.h"
#include "zoo/zoo.h"

namespace hone {
namespace {

using testing::Each;
using testing::Gt;
using testing::IsEmpty;
using testing::Not;

class VaryPlanTest : public testing::Test {
 protected:
  static Graph model(std::string_view name) {
    return prepare(build_zoo_model(name, {.size = ZooSize::tiny}).value()).value();
  }
  VariedLayouts varied(size_t assignments) const {
    return VariedLayouts::draw(model("squeezenet"), target_, cost_, {.assignments = assignments})
        .value();
  }

  const Target target_ = host_target().value();
  const std::shared_ptr<const Cost> cost_ = std::make_shared<AnalyticCost>(target_);
};

TEST_F(VaryPlanTest, OtherGroupsHaveOtherKernels) {
  const Graph graph =
      prepare(parse_graph("graph @g(%x: f32[512, 1024], %w: f32[1024, 512]) {\n"
                          "  %d = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}\n"
                          "  %e = exp %d\n"
                          "  %s = softmax %e\n"
                          "  return %s\n"
                          "}\n")
                  .value())
          .value();
  const std::vector<DefaultKernel> kernels =
      kernels_of_other_groups(graph, target_, *cost_, 1, 20, 1).value();
  EXPECT_THAT(kernels, Not(IsEmpty()));
  std::set<uint64_t> hashes;
  const std::vector<DefaultKernel> planned = default_kernels(graph, target_, *cost_, 1, 0).value();
  for (const DefaultKernel& kernel : planned) hashes.insert(kernel.facts->hash);
  for (const DefaultKernel& kernel : kernels) {
    EXPECT_TRUE(hashes.insert(kernel.facts->hash).second);
    EXPECT_GE(kernel.price, kLeastKernelSeconds);
    EXPECT_TRUE(check_schedule(kernel.facts->body, kernel.planned, target_).ok());
  }
}

TEST_F(VaryPlanTest, AssignmentsDifferAndBeginWithTheDefault) {
  const VariedLayouts some = varied(20);
  const std::vector<LayoutAssignment>& all = some.assignments();
  ASSERT_EQ(all.size(), 20u);
  size_t random = 0;
  for (const LayoutAssignment& each : all) random += each.is_random;
  EXPECT_EQ(random, 10u);
  EXPECT_FALSE(all[0].is_random);
  for (size_t i = 1; i < all.size(); ++i) {
    size_t changed = 0;
    for (size_t v = 0; v < all[0].layouts.size(); ++v)
      changed += all[i].layouts[v] != all[0].layouts[v];
    EXPECT_GT(changed, 0u);
    if (!all[i].is_random) EXPECT_LE(changed, 4u);
  }
  const VariedLayouts again = varied(20);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].layouts, again.assignments()[i].layouts);
}

TEST_F(VaryPlanTest, TimesAreComposedOfWhatIsKnown) {
  VariedLayouts some = varied(6);
  std::vector<double> unknown(some.kernels().size(), INFINITY);
  some.compose(unknown);
  for (const LayoutAssignment& each : some.assignments()) {
    EXPECT_EQ(each.composed, each.priced);
    EXPECT_EQ(each.known, 0);
  }
  // Kernels that take what they are priced at change nothing.
  std::vector<double> priced;
  for (const DefaultKernel& kernel : some.kernels()) priced.push_back(kernel.price);
  some.compose(priced);
  for (const LayoutAssignment& each : some.assignments()) {
    EXPECT_NEAR(each.composed, each.priced, 1e-9 * each.priced);
    EXPECT_GT(each.known, 0.3);
    EXPECT_LE(each.known, 1);
  }
}

TEST_F(VaryPlanTest, RunsWholeAndIsWrittenInTheSchema) {
  VariedLayouts some = varied(6);
  some.compose(std::vector<double>(some.kernels().size(), INFINITY));
  for (size_t i : {0, 1, 2}) ASSERT_TRUE(some.run_whole(i, 0.02, nullptr).ok());
  for (bool is_random : {true, false}) {
    std::vector<NamedTensor> extra;
    const tpu::LayoutGraph layout = some.layout_graph(is_random, extra);
    ASSERT_TRUE(check(layout).ok());
    EXPECT_EQ(layout.runtimes.size(), is_random ? 4u : 3u);
    EXPECT_EQ(layout.configs.rows(), layout.runtimes.size() * layout.config_nodes.size());
    EXPECT_EQ(layout.configs.names.size(), 24u);
    EXPECT_EQ(layout.graph.nodes.names.size(), 146u);
    EXPECT_EQ(tpu::layout_graph_of(arrays_of(layout)).value(), layout);
    ASSERT_EQ(extra.size(), 3u);
    EXPECT_EQ(extra[0].name, "config_runtime_whole");
    EXPECT_EQ(extra[0].tensor.elements(), static_cast<int64_t>(layout.runtimes.size()));
    EXPECT_GT(extra[0].tensor.real_at(0), 0);
  }
}

TEST_F(VaryPlanTest, AGraphWithoutLayoutsIsRefused) {
  const Graph graph =
      prepare(parse_graph("graph @g(%x: f32[9]) { %y = exp %x return %y }").value()).value();
  EXPECT_FALSE(VariedLayouts::draw(graph, target_, cost_, {}).ok());
}

}  // namespace
}  // namespace hone
