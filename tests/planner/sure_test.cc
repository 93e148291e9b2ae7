// Choices of a Cost that may be wrong: they take the place of its baseline's where they are surely
// cheaper.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "cost/analytic.h"
#include "ir/builder.h"
#include "ir/op_facts.h"
#include "ir/text.h"
#include "kernel/schedule_text.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"
#include "tests/target/target_testing.h"
#include "zoo/random/generator.h"

namespace hone::HONE_FILE {
namespace {

Target target() { return parse_target(kSampleTarget, "t").value(); }

// Two products, which the analytic price joins.
Graph graph() {
  return prepare(parse_graph(
                     R"(graph @g(%x: f32[64, 96], %v: f32[96, 96], %w: f32[96, 64]) -> f32[64, 64] {
  %h = dot %x, %v {lhs_contract = [1], rhs_contract = [0]}
  %a = max %h, 0
  %y = dot %a, %w {lhs_contract = [1], rhs_contract = [0]}
  return %y
})")
                     .value())
      .value();
}

bool has_several_products(const KernelBody& body) {
  int products = 0;
  for (NodeId n : body.graph.nodes()) products += is_dot(body.graph.opcode(n)) ? 1 : 0;
  return products > 1;
}

// Says that some kernels cost some times the analytic price. Its voices disagree by a factor about
// these, or about others.
class Fears : public Cost {
 public:
  struct Says {
    double times = 1;
    double apart = 1;
    std::optional<double> sureness = kUsualSureness;
    bool (*of)(const KernelBody& body) = has_several_products;
    bool (*unsure_of)(const KernelBody& body) = nullptr;  // null: of the same
    PricedKernel::Knows knows = PricedKernel::Knows::choices;
  };
  explicit Fears(const Says& says) : says_(says), analytic_(target()) {}

  std::string version() const override { return "fears"; }
  std::unique_ptr<PricedKernel> kernel(std::shared_ptr<const KernelFacts> facts,
                                       int64_t threads) const override {
    const bool is_feared = says_.of(facts->body);
    const bool is_unsure = says_.unsure_of != nullptr ? says_.unsure_of(facts->body) : is_feared;
    const uint64_t hash = kernel_hash(facts->body);
    ++looked_at_[hash];
    return std::make_unique<Kernel>(*this, hash, analytic_.kernel(std::move(facts), threads),
                                    is_feared ? says_.times : 1, is_unsure ? says_.apart : 1);
  }
  // How often votes about a kernel with a schedule were asked for.
  const std::map<std::string, int>& asked() const { return asked_; }
  // How often a kernel was looked at, by hash.
  const std::map<uint64_t, int>& looked_at() const { return looked_at_; }
  // The schedules of a kernel that were priced, by hash.
  const std::map<uint64_t, std::set<std::string>>& priced() const { return priced_; }
  double copy(double bytes) const override { return analytic_.copy(bytes); }
  double command() const override { return analytic_.command(); }
  const Cost* baseline() const override { return &analytic_; }
  std::optional<double> sureness() const override { return says_.sureness; }

 private:
  class Kernel : public PricedKernel {
   public:
    Kernel(const Fears& fears, uint64_t hash, std::unique_ptr<PricedKernel> analytic, double times,
           double apart)
        : fears_(fears),
          hash_(hash),
          analytic_(std::move(analytic)),
          times_(times),
          apart_(apart) {}
    void price(std::span<const Schedule> schedules, double, std::span<double> seconds) override {
      for (const Schedule& each : schedules) fears_.priced_[hash_].insert(print(each));
      analytic_->price(schedules, INFINITY, seconds);
      for (double& each : seconds) each *= times_;
    }
    Knows knows() const override { return fears_.says_.knows; }
    Votes votes(const Schedule& schedule) override {
      ++fears_.asked_[fmt::format("{} {}", hash_, print(schedule))];
      const double price = seconds(schedule);
      return {.seconds = {price / apart_, price * apart_}};
    }

   private:
    const Fears& fears_;
    const uint64_t hash_;
    const std::unique_ptr<PricedKernel> analytic_;
    const double times_, apart_;
  };

  const Says says_;
  const AnalyticCost analytic_;
  mutable std::map<std::string, int> asked_;
  mutable std::map<uint64_t, int> looked_at_;
  mutable std::map<uint64_t, std::set<std::string>> priced_;
};

Plan plan_by(const Cost& cost, const Graph& of = graph()) {
  Plan threads;
  threads.threads = 1;
  return complete(of, threads, target(), cost).value();
}

TEST(SurePlans, TakeGroupsThatAreSurelyCheaper) {
  const AnalyticCost analytic(target());
  const Plan usual = plan_by(analytic);
  ASSERT_EQ(usual.fuse.size(), 1U);
  const Plan apart = plan_by(Fears({.times = 10}));
  EXPECT_EQ(apart.fuse.size(), 2U);
  EXPECT_TRUE(check_complete(apart, graph(), target()).ok());
}

TEST(SurePlans, KeepTheBaselinesGroupsInDoubt) {
  const Plan usual = plan_by(AnalyticCost(target()));
  const auto stays = [&](const Fears::Says& says) {
    const Plan plan = plan_by(Fears(says));
    return plan.fuse == usual.fuse && plan.layout == usual.layout && plan.offset == usual.offset;
  };
  EXPECT_TRUE(stays({.times = 10, .apart = 20}));  // voices disagree
  EXPECT_FALSE(stays({.times = 10, .apart = 20, .sureness = 0.5}));
  EXPECT_TRUE(stays({.times = 10, .sureness = std::nullopt}));  // trusted with schedules alone
  EXPECT_TRUE(stays({.times = 1}));                             // nothing gains
}

// ---- Layouts ------------------------------------------------------------------------------------

// Two convs, whose image and weights the analytic price does not leave row-major: their windows are
// too large for winograd.
Graph convs() {
  Builder b;
  Rng rng(1);
  const auto conv = [&](Value x, int64_t features) {
    const Type type = Type::get(DType::f32, {features, x.dim(1), 5, 5});
    const Value y = b.op(Opcode::conv, {x, b.constant(random_tensor(type, rng))},
                         {{"pad_low", Ints{2, 2}}, {"pad_high", Ints{2, 2}}});
    return relu(y);
  };
  const Value x = conv(b.parameter("x", DType::f32, {1, 32, 7, 7}), 64);
  return prepare(b.finish({conv(x.named("between"), 32)}).value()).value();
}

bool is_weight(Type type) { return type.rank() == 4 && type.dim(2).is(5); }

// How many weights of a plan, or images, are not row-major.
size_t packed(const Plan& plan, bool weights) {
  const Graph of = convs();
  size_t count = 0;
  for (uint32_t i = 0; i < of.value_count(); ++i) {
    const auto layout = plan.layout.find(std::string(of.name(ValueId{i})));
    if (layout != plan.layout.end() && is_weight(of.type(ValueId{i})) == weights)
      count += layout->second.is_row_major() ? 0 : 1;
  }
  return count;
}

bool reads_packed_weights(const KernelBody& body) {
  for (size_t i = 0; i < body.inputs.size(); ++i)
    if (is_weight(body.graph.type(body.graph.inputs()[i])) && !body.inputs[i].is_row_major())
      return true;
  return false;
}

bool has_packed_images(const KernelBody& body) {
  for (size_t i = 0; i < body.inputs.size(); ++i)
    if (!is_weight(body.graph.type(body.graph.inputs()[i])) && !body.inputs[i].is_row_major())
      return true;
  return std::ranges::any_of(body.outputs,
                             [](const Layout& layout) { return !layout.is_row_major(); });
}

TEST(SureLayouts, AreTakenWhereTheyAreSurelyCheaper) {
  const Plan usual = plan_by(AnalyticCost(target()), convs());
  ASSERT_EQ(packed(usual, true), 2U);
  ASSERT_GE(packed(usual, false), 1U);
  const Plan plain_weights = plan_by(Fears({.times = 10, .of = reads_packed_weights}), convs());
  EXPECT_EQ(packed(plain_weights, true), 0U);
  EXPECT_TRUE(check_complete(plain_weights, convs(), target()).ok());
  const Plan plain_images = plan_by(Fears({.times = 10, .of = has_packed_images}), convs());
  EXPECT_EQ(packed(plain_images, false), 0U);
  EXPECT_GT(packed(plain_images, true), 0U);
  EXPECT_TRUE(check_complete(plain_images, convs(), target()).ok());
}

TEST(SureLayouts, OfTheBaselineStayInDoubt) {
  const Plan usual = plan_by(AnalyticCost(target()), convs());
  for (const auto of : {reads_packed_weights, has_packed_images}) {
    const auto stays = [&](Fears::Says says) {
      says.of = of;
      return plan_by(Fears(says), convs()) == usual;
    };
    EXPECT_TRUE(stays({.times = 10, .apart = 20}));  // voices disagree
    EXPECT_FALSE(stays({.times = 10, .apart = 20, .sureness = 0.5}));
    EXPECT_TRUE(stays({.times = 10, .sureness = std::nullopt}));  // trusted with schedules alone
    EXPECT_TRUE(stays({.times = 1}));                             // nothing gains
    EXPECT_TRUE(stays({.times = 0.1}));                           // they gain as they are
  }
}

bool reads_packed_weights_and_images(const KernelBody& body) {
  return reads_packed_weights(body) && has_packed_images(body);
}

// The price is sure of the weights, if images are packed, and it is not sure of the images. The
// analytic price of the images is that with its own weights.
TEST(SureLayouts, OfImagesStayWhereOnlyThoseOfWeightsAreSure) {
  const Plan usual = plan_by(AnalyticCost(target()), convs());
  const Fears cost({.times = 10,
                    .apart = 20,
                    .of = reads_packed_weights_and_images,
                    .unsure_of = has_packed_images});
  const Plan plan = plan_by(cost, convs());
  EXPECT_EQ(packed(plan, true), 0U);
  for (uint32_t i = 0; i < convs().value_count(); ++i) {
    const std::string value(convs().name(ValueId{i}));
    if (!is_weight(convs().type(ValueId{i})) && usual.layout.contains(value))
      EXPECT_EQ(plan.layout.at(value), usual.layout.at(value)) << value;
  }
}

// In both plans, and for frames as for layouts.
TEST(SurePlans, AskAboutAKernelWithAScheduleOnce) {
  for (const Graph& of : {graph(), convs()}) {
    const Fears cost({.times = 10});
    plan_by(cost, of);
    EXPECT_GT(cost.asked().size(), 1U);
    for (const auto& [kernel, times] : cost.asked()) EXPECT_EQ(times, 1) << kernel;
  }
}

// To choose its schedule, to compare this with the usual one, and to compare kernels. Looking at a
// kernel takes as long as pricing many schedules.
TEST(SurePlans, LookAtAKernelThreeTimesAtMost) {
  for (const Graph& of : {graph(), convs()})
    for (const double times : {1.0, 10.0}) {
      const Fears cost({.times = times});
      plan_by(cost, of);
      EXPECT_GT(cost.looked_at().size(), 1U);
      for (const auto& [kernel, looked_at] : cost.looked_at()) EXPECT_LE(looked_at, 3) << kernel;
    }
}

// The search for schedules is most of planning's time. A price that chooses none still decides
// about groups.
TEST(SurePlans, SearchForNoScheduleOfAKernelWithoutChoices) {
  using Knows = PricedKernel::Knows;
  for (const Knows knows : {Knows::choices, Knows::price}) {
    const Fears cost({.times = 10, .knows = knows});
    EXPECT_EQ(plan_by(cost).fuse.size(), 2U);
    EXPECT_GT(cost.priced().size(), 2U);
    for (const auto& [kernel, schedules] : cost.priced())
      EXPECT_EQ(schedules.size() == 1, knows == Knows::price) << kernel << ' ' << schedules.size();
  }
}

// A kernel that it prices as the baseline does is not even priced to choose its schedule: only
// where plans are compared.
TEST(SurePlans, PriceNoKernelOfWhichTheBaselineKnowsAsMuch) {
  const Fears cost({.knows = PricedKernel::Knows::nothing});
  EXPECT_TRUE(plan_by(cost) == plan_by(AnalyticCost(target())));
  EXPECT_GT(cost.looked_at().size(), 1U);
  EXPECT_EQ(cost.priced().size(), 0U);
}

TEST(SurePlans, AreTheSameEachTime) {
  const Fears cost({.times = 10});
  EXPECT_TRUE(plan_by(cost) == plan_by(cost));
}

}  // namespace
}  // namespace hone::HONE_FILE
