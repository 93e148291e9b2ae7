#include "lab/data/vary_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "cost/analytic.h"
#include "ir/text.h"
#include "lab/tpu/features.h"
#include "rewrite/prepare.h"
#include "target/fingerprint.h"
#include "tests/base/share_testing.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
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
  VariedLayouts varied(size_t assignments, const Cost* rival = nullptr) const {
    return VariedLayouts::draw(model("squeezenet"), target_, cost_,
                               {.assignments = assignments, .rival = rival})
        .value();
  }
  static std::vector<KernelTime> nothing_known(const VariedLayouts& some) {
    return std::vector<KernelTime>(some.kernels().size(), {INFINITY});
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
  some.compose(nothing_known(some));
  for (const LayoutAssignment& each : some.assignments()) {
    EXPECT_EQ(each.composed, each.priced);
    EXPECT_EQ(each.rival, each.priced);
    EXPECT_EQ(each.known, 0);
    EXPECT_EQ(each.noise, 0);
  }
  // Kernels that take what they are priced at change nothing.
  std::vector<KernelTime> priced;
  for (const DefaultKernel& kernel : some.kernels()) priced.push_back({kernel.price, 0.1});
  some.compose(priced);
  for (const LayoutAssignment& each : some.assignments()) {
    EXPECT_NEAR(each.composed, each.priced, 1e-9 * each.priced);
    EXPECT_GT(each.known, 0.3);
    EXPECT_LE(each.known, 1);
    EXPECT_LT(each.noise, 0.1);
  }
  // Layouts that the default has, too, do not make them differ.
  EXPECT_EQ(some.assignments()[0].noise, 0);
  EXPECT_GT(some.assignments()[1].noise, 0);
}

// Kernels cost three times as much as the other says.
class ThreeTimes : public Cost {
 public:
  explicit ThreeTimes(std::shared_ptr<const Cost> other) : other_(std::move(other)) {}
  std::string version() const override { return "three times"; }
  std::unique_ptr<PricedKernel> kernel(std::shared_ptr<const KernelFacts> facts,
                                       int64_t threads) const override {
    return std::make_unique<Kernel>(other_->kernel(std::move(facts), threads));
  }
  double copy(double bytes) const override { return other_->copy(bytes); }
  double command() const override { return other_->command(); }

 private:
  struct Kernel : PricedKernel {
    explicit Kernel(std::unique_ptr<PricedKernel> kernel) : other(std::move(kernel)) {}
    void price(std::span<const Schedule> schedules, double limit,
               std::span<double> seconds) override {
      other->price(schedules, limit, seconds);
      for (double& each : seconds) each *= 3;
    }
    std::unique_ptr<PricedKernel> other;
  };
  std::shared_ptr<const Cost> other_;
};

TEST_F(VaryPlanTest, HaveTheirPriceByARival) {
  const ThreeTimes rival(cost_);
  VariedLayouts some = varied(6, &rival);
  some.compose(nothing_known(some));
  for (const LayoutAssignment& each : some.assignments()) {
    double kernels = 0;
    for (uint32_t kernel : each.kernels)
      if (some.kernels()[kernel].facts != nullptr) kernels += some.kernels()[kernel].price;
    EXPECT_EQ(each.composed, each.priced);  // it decides about nothing
    EXPECT_NEAR(each.rival, each.priced + 2 * kernels, 1e-9 * each.rival);
  }
  EXPECT_EQ(some.file(true).priced_by, "three times");
}

TEST_F(VaryPlanTest, RunsWholeAndIsWrittenInTheSchema) {
  HONE_ONE_RUN_OF(5);
  VariedLayouts some = varied(6);
  some.compose(nothing_known(some));
  for (size_t i : {0, 1, 2}) ASSERT_TRUE(some.run_whole(i, 0.02, nullptr).ok());
  VariedLayouts again = varied(6);
  for (bool is_random : {true, false}) {
    const LayoutFile file = some.file(is_random);
    const tpu::LayoutGraph& layout = file.layout;
    ASSERT_TRUE(check(layout).ok());
    EXPECT_EQ(layout.runtimes.size(), is_random ? 4u : 3u);
    EXPECT_EQ(layout.configs.rows(), layout.runtimes.size() * layout.config_nodes.size());
    EXPECT_EQ(layout.configs.names.size(), 24u);
    EXPECT_EQ(layout.graph.nodes.names.size(), 146u);
    EXPECT_EQ(tpu::layout_graph_of(arrays_of(layout)).value(), layout);
    for (const LayoutColumn& column : kLayoutColumns)
      EXPECT_EQ((file.times.*column.values).size(), layout.runtimes.size()) << column.array;
    EXPECT_GT(file.times.whole[0], 0);
    EXPECT_EQ(file.target, fingerprint(target_));
    EXPECT_EQ(file.priced_by, cost_->version());
    for (size_t i = 0; i < layout.runtimes.size(); ++i)
      EXPECT_NEAR(static_cast<double>(file.times.priced[i]),
                  static_cast<double>(layout.runtimes[i]),
                  1 + 1e-6 * static_cast<double>(layout.runtimes[i]));
    again.keep_whole(file, is_random);
  }
  // Whole runs of a file are those of the same assignments.
  for (size_t i = 0; i < 6; ++i) {
    const LayoutAssignment &kept = again.assignments()[i], &ran = some.assignments()[i];
    EXPECT_NEAR(kept.whole, ran.whole, 1e-6 * ran.whole);
    EXPECT_NEAR(kept.whole_noise, ran.whole_noise, 1e-6);
  }
  VariedLayouts fresh = varied(6);
  LayoutFile other = some.file(true);
  other.times.whole[0] = 0;  // nothing to compare with
  fresh.keep_whole(other, true);
  other = some.file(true);
  other.layout.graph.opcodes[0] = 1;  // another graph
  fresh.keep_whole(other, true);
  for (const LayoutAssignment& each : fresh.assignments()) EXPECT_EQ(each.whole, 0);
}

TEST_F(VaryPlanTest, AGraphWithoutLayoutsIsRefused) {
  const Graph graph =
      prepare(parse_graph("graph @g(%x: f32[9]) { %y = exp %x return %y }").value()).value();
  EXPECT_FALSE(VariedLayouts::draw(graph, target_, cost_, {}).ok());
}

}  // namespace
}  // namespace hone::HONE_FILE
