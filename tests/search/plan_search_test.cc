#include "search/plan_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cost/analytic.h"
#include "cost/program_price.h"
#include "ir/text.h"
#include "planner/planner.h"
#include "planner/schedules.h"
#include "program/lower/lower.h"
#include "rewrite/prepare.h"
#include "search/layout_search.h"
#include "tests/search/toy_testing.h"
#include "tests/target/target_testing.h"
#include "zoo/random/random_graph.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

const Target& target() {
  static const Target target = parse_target(kSampleTarget, "t").value();
  return target;
}
const Cost& cost() {
  static const AnalyticCost cost(target());
  return cost;
}

// A graph under the planner's plan, and its price.
struct Subject {
  explicit Subject(Graph given)
      : graph(std::move(given)),
        editor(PlanEditor::open(graph, complete(graph, {}, target()).value(), target()).value()),
        price(*editor, cost(), store, planner_schedules(target(), cost(), store)) {}

  // The price of the program that the completed plan becomes.
  double lowered(const Plan& plan) {
    const Plan whole = complete(graph, plan, target(), cost(), {.known = &store}).value();
    EXPECT_TRUE(check_complete(whole, graph, target()).ok());
    return hone::price(lower(graph, whole, target()).value(), cost()).value().total();
  }

  const Graph graph;
  KernelStore store;
  std::unique_ptr<PlanEditor> editor;
  PlanCost price;
};

Tensor some_numbers(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<double>(i % 17) / 16);
  const std::vector<Dim> shape(dims.begin(), dims.end());
  return Tensor::from_reals(Type::get(DType::f32, shape), numbers);
}

Graph convs() {
  WeightTable weights;
  weights.add("w", some_numbers({16, 16, 3, 3}));
  weights.add("v", some_numbers({32, 16, 1, 1}));
  constexpr std::string_view kText = R"(graph @g(%x: f32[1, 16, 12, 12]) -> f32[1, 32, 12, 12] {
    %w = constant @w : f32[16, 16, 3, 3]
    %v = constant @v : f32[32, 16, 1, 1]
    %a = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1]}
    %b = max %a, 0
    %c = conv %b, %v
    %d = tanh %c
    return %d
  })";
  return prepare(parse_graph(kText, {.weights = &weights}).value()).value();
}

Graph attention() {
  return prepare(parse_graph(R"(graph @g(%q: f32[2, 24, 16], %k: f32[2, 24, 16], %v: f32[2, 24, 16])
      -> f32[2, 24, 16] {
    %s = dot %q, %k {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2]}
    %p = softmax %s {axis = 2}
    %y = dot %p, %v {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}
    return %y
  })")
                     .value())
      .value();
}

// A point has one price, whatever was visited in between, and its plan is the planner's where it
// is the start.
TEST(PlanSearch, GoesToPointsAndBack) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    Subject one(prepare(random_graph({.seed = seed})).value());
    PlanSearch space(*one.editor, kEditKinds);
    PricedPlans prices(space, one.price);
    Rng rng(seed);
    const Plan before = one.editor->to_plan();
    std::vector<Point> points = {space.start()};
    std::vector<double> seconds(1);
    ASSERT_TRUE(prices.price(points, 1, seconds).ok());
    for (int i = 0; i < 30; ++i) {
      const std::optional<Point> next = rng.chance(0.3)
                                            ? space.cross(rng.pick(points), rng.pick(points), rng)
                                            : space.step(rng.pick(points), rng);
      if (!next) continue;
      points.push_back(*next);
      ASSERT_TRUE(prices.price({&*next, 1}, 1, {&seconds.emplace_back(), 1}).ok());
    }
    for (int i = 0; i < 30; ++i) {
      const size_t at = rng.below(points.size());
      double again = 0;
      ASSERT_TRUE(prices.price({&points[at], 1}, 1, {&again, 1}).ok());
      EXPECT_EQ(again, seconds[at]) << space.text(points[at]);
    }
    space.move_to(space.start());
    EXPECT_EQ(one.editor->to_plan(), before);
  }
}

TEST(PlanSearch, GivesPlansThatCostWhatItSays) {
  int better = 0;
  for (uint64_t seed = 0; seed < 16; ++seed) {
    for (const SearchRow& row : for_any_space()) {
      if (row.name == "exhaustive") continue;
      SCOPED_TRACE(fmt::format("{} {}", row.name, seed));
      Subject one(seed == 0   ? convs()
                  : seed == 1 ? attention()
                              : prepare(random_graph({.seed = seed})).value());
      PlanSearch space(*one.editor, kEditsOfShape);
      PricedPlans prices(space, one.price);
      const SearchResult found =
          row.get().run(space, prices, {.budget = {.trials = 60}, .seed = seed}).value();
      EXPECT_LE(found.cost, found.start_cost);
      better += found.cost < found.start_cost;
      const double whole = one.lowered(space.plan(found.best, one.price).value());
      EXPECT_NEAR(whole, found.cost, 1e-9 * found.cost) << space.text(found.best);
    }
  }
  EXPECT_GT(better, 0);
}

TEST(PlanSearch, ChangesTheKindsThatItIsGiven) {
  Subject one(convs());
  const EditKind layouts[] = {EditKind::layout};
  PlanSearch space(*one.editor, layouts);
  const Plan before = one.editor->to_plan();
  Rng rng(1);
  for (int i = 0; i < 20; ++i) {
    const std::optional<Point> next = space.step(space.start(), rng);
    if (!next) continue;
    space.move_to(*next);
    const Plan plan = one.editor->to_plan();
    EXPECT_EQ(plan.fuse, before.fuse);
    EXPECT_NE(plan.layout, before.layout);
    EXPECT_THAT(space.text(*next), HasSubstr("layout %"));
  }
  PlanSearch none(*one.editor, {});
  EXPECT_EQ(none.step(none.start(), rng), std::nullopt);
}

// Two ways to the same plan lead to one point.
TEST(PlanSearch, KnowsEqualPlans) {
  Subject one(prepare(parse_graph("graph @g(%x: f32[8, 8]) -> f32[8, 8] "
                                  "{ %a = exp %x %b = sort %a {axis = 0} %c = neg %b return %c }")
                          .value())
                  .value());
  const EditKind threads[] = {EditKind::threads};
  PlanSearch space(*one.editor, threads);
  PriceBy prices([](Point) { return 1; });
  const SearchResult found = find_search("random").value()->run(space, prices).value();
  EXPECT_EQ(found.trials, target().cores);
}

TEST(LayoutSearch, IsSolvedExactlyByDynamicProgramming) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    Subject one(seed == 0 ? convs() : prepare(random_graph({.seed = seed})).value());
    LayoutSearch space(one.editor->main(), one.price, {.blocks = {8}, .most = 3});
    if (space.size() > 400) continue;
    PricedLayouts prices(space);
    const SearchResult all = find_search("exhaustive").value()->run(space, prices).value();
    const SearchResult exact = find_search("dynamic").value()->run(space, prices).value();
    EXPECT_EQ(static_cast<double>(all.trials), space.size());
    EXPECT_NEAR(exact.cost, all.cost, 1e-12 * all.cost) << space.text(all.best);
    EXPECT_LE(exact.cost, exact.start_cost);
    ASSERT_TRUE(space.move_to(exact.best).ok());
    EXPECT_EQ(one.price.seconds().value(), exact.cost);
  }
}

TEST(LayoutSearch, OffersWhatKernelsLike) {
  Subject one(convs());
  LayoutSearch space(one.editor->main(), one.price);
  std::string texts;
  Rng rng(0);
  for (size_t along = 0; along < space.coordinates(0); ++along)
    for (Point point : space.neighbours(space.start(), along, 100, rng))
      texts += space.text(point) + "\n";
  EXPECT_THAT(texts, HasSubstr("= [0, 2, 3, 1]"));
  EXPECT_THAT(texts, HasSubstr("= [0, 1/8, 2, 3, 1%8]"));
  EXPECT_THAT(texts, HasSubstr("= [0/8, 2, 3, 1, 0%8]"));
  EXPECT_EQ(space.text(space.start()), "the layouts of the plan");
}

}  // namespace
}  // namespace hone::HONE_FILE
