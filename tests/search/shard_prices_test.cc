#include "search/shard_prices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/rng.h"
#include "cost/analytic.h"
#include "ir/text.h"
#include "search/shard_problem.h"
#include "shard/shard_plan.h"
#include "target/presets.h"
#include "tests/base/says_testing.h"
#include "tests/target/target_testing.h"

// Ways between layouts, and their prices, on meshes of several axes.

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

constexpr double kNever = std::numeric_limits<double>::infinity();

// The least price of all ways of a few exchanges. Parts are cut where the target wants them, as by
// the search.
class Judge {
 public:
  Judge(ShardLayout to, std::vector<int64_t> sizes, ReshardPrice price)
      : to_(std::move(to)), sizes_(std::move(sizes)), price_(std::move(price)) {}

  double least(ShardLayout at, int exchanges) const {
    if (at == to_) return 0;
    double best = kNever;
    for (size_t d = 0; d < sizes_.size(); ++d) {
      const size_t has = at.dims[d].size();
      if (has < to_.dims[d].size() && is_free(at, to_.dims[d][has])) {
        ShardLayout next = at;
        next.dims[d].push_back(to_.dims[d][has]);
        best = std::min(best, least(std::move(next), exchanges));
      }
    }
    if (exchanges == 0) return best;
    const int64_t held = bytes(at);
    const auto go = [&](const ShardLayout& next, const ReshardStep& step) {
      best = std::min(best, price_(step, 4) + least(next, exchanges - 1));
    };
    for (size_t d = 0; d < sizes_.size(); ++d) {
      if (at.dims[d].empty()) continue;
      ShardLayout next = at;
      const MeshPart part = next.dims[d].back();
      next.dims[d].pop_back();
      go(next, {.kind = ReshardKind::all_gather,
                .part = part,
                .from = d,
                .bytes = held * (part.size - 1)});
      for (size_t e = 0; e < sizes_.size(); ++e) {
        if (e == d) continue;
        ShardLayout moved = next;
        moved.dims[e].push_back(part);
        go(moved, {.kind = ReshardKind::all_to_all,
                   .part = part,
                   .from = d,
                   .to = e,
                   .bytes = held / part.size * (part.size - 1)});
      }
    }
    for (size_t d = 0; d < sizes_.size(); ++d)
      if (count_of(at.dims[d]) != count_of(to_.dims[d])) return best;
    go(to_, {.kind = ReshardKind::permute,
             .part = {},
             .bytes = held,
             .have = at.dims,
             .want = to_.dims});
    return best;
  }

 private:
  static bool is_free(const ShardLayout& at, const MeshPart& part) {
    for (const MeshParts& dim : at.dims)
      for (const MeshPart& one : dim)
        if (clashes(one, part)) return false;
    return true;
  }
  int64_t bytes(const ShardLayout& at) const {
    int64_t made = 4;
    for (size_t d = 0; d < sizes_.size(); ++d) made *= sizes_[d] / count_of(at.dims[d]);
    return made;
  }

  const ShardLayout to_;
  const std::vector<int64_t> sizes_;
  const ReshardPrice price_;
};

double price_of(const std::vector<ReshardStep>& steps, const ReshardPrice& price) {
  double sum = 0;
  for (const ReshardStep& step : steps) sum += price(step, 4);
  return sum;
}

struct Subject {
  Subject(std::string_view preset, std::string_view axes)
      : system(preset_system(preset, parse_target(kSampleTarget, "t").value()).value()),
        costs({std::make_shared<AnalyticCost>(system.targets[0])}),
        mesh(parse_mesh(axes).value()) {}

  const System system;
  const std::vector<std::shared_ptr<const Cost>> costs;
  const MeshRef mesh;
};

// On three and four axes, too: no way of three exchanges takes less time, and none is slower than
// that of the fewest bytes.
TEST(ShardPrices, TakeTheFastestWaysOnSeveralAxes) {
  int faster = 0;
  const std::pair<std::string_view, std::string_view> places[] = {{"tree:2x2x2", "a=2,b=2,c=2"},
                                                                  {"torus:2x2x4", "a=2,b=2,c=4"},
                                                                  {"tree:4x4", "a=2,b=2,c=2,d=2"}};
  for (const auto& [preset, axes] : places) {
    const Subject subject(preset, axes);
    ShardPrices prices(subject.system, subject.costs, subject.mesh);
    const ReshardPrice price = prices.steps();
    ASSERT_TRUE(price) << preset;
    const std::vector<int64_t> sizes = {64, 32, 16};
    const std::vector<ShardLayout> layouts =
        layouts_of(Type::get(DType::f32, {64, 32, 16}), *subject.mesh);
    Rng rng(1);
    for (int i = 0; i < 25; ++i) {
      const ShardLayout& from = layouts[rng.below(layouts.size())];
      const ShardLayout& to = layouts[rng.below(layouts.size())];
      const double made = price_of(reshard_steps(from, to, sizes, 4, price), price);
      const double by_bytes = price_of(reshard_steps(from, to, sizes, 4), price);
      EXPECT_LE(made, by_bytes * (1 + 1e-9)) << preset << i;
      EXPECT_LE(made, Judge(to, sizes, price).least(from, 3) * (1 + 1e-9)) << preset << i;
      if (made < 0.9 * by_bytes) ++faster;
    }
  }
  EXPECT_GT(faster, 0);
}

// The same change of a value whose dims stand in another order has one price, and is searched once.
TEST(ShardPrices, AreTheSameForDimsInAnotherOrder) {
  const Subject subject("torus:2x2x2", "a=2,b=2,c=2");
  ShardPrices prices(subject.system, subject.costs, subject.mesh);
  const std::vector<ShardLayout> layouts =
      layouts_of(Type::get(DType::f32, {64, 24, 6}), *subject.mesh);
  const auto turned = [](ShardLayout one) {
    std::ranges::rotate(one.dims, one.dims.begin() + 1);
    return one;
  };
  Rng rng(2);
  for (int i = 0; i < 100; ++i) {
    const ShardLayout& from = layouts[rng.below(layouts.size())];
    const ShardLayout& to = layouts[rng.below(layouts.size())];
    ShardPrices others(subject.system, subject.costs, subject.mesh);
    const double first = prices.change(from, to, {64, 24, 6}, 4).value();
    EXPECT_EQ(prices.change(turned(from), turned(to), {24, 6, 64}, 4).value(), first);
    EXPECT_NEAR(others.change(turned(from), turned(to), {24, 6, 64}, 4).value(), first,
                1e-9 * first);
  }
}

// A price that was not found is not remembered, where prices of another mesh share what is known.
TEST(ShardPrices, ForgetWhatWasCancelled) {
  const Graph graph = parse_graph(
                          "graph @g(%x: f32[64, 32], %w: f32[32, 16]) -> f32[64, 16] {\n"
                          "  %y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}\n"
                          "  return %y\n"
                          "}\n")
                          .value();
  const Subject subject("local:2", "x=2");
  const NodeId dot = graph.producer(graph.outputs()[0]);
  const NodeDivider divider = NodeDivider::make(graph, dot).value();
  const NodeDivision whole =
      divider.division(std::vector<MeshParts>(divider.rule().factors.size())).value();
  const auto known = std::make_shared<NodeSeconds>();
  CancelToken cancel;
  cancel.cancel();
  ShardPrices cancelled(subject.system, subject.costs, subject.mesh, &cancel, {}, known);
  EXPECT_THAT(cancelled.node(graph, dot, whole), refuses(ErrorCode::interrupted, "stopped"));
  ShardPrices prices(subject.system, subject.costs, subject.mesh, nullptr, {}, known);
  EXPECT_GT(prices.node(graph, dot, whole).value(), 0);
}

// A node of more options than are compared, among others that have as many: the tables of what
// moves between them ask for the time, too.
TEST(ShardPrices, OfManyOptionsAskForTheTime) {
  const Graph graph = parse_graph(
                          "graph @t(%x: f32[8, 8, 8, 8]) -> f32[8, 8, 8, 8] {\n"
                          "  %y = tanh %x\n  return %y\n}\n")
                          .value();
  const Subject subject("tree:4x4", "a=2,b=2,c=2,d=2");
  ShardPrices prices(subject.system, subject.costs, subject.mesh);
  size_t all = 0;
  ASSERT_TRUE(
      shard_problem(graph, subject.mesh, prices, {.is_late = [&] { return ++all == 0; }}).ok());
  bool was_cut = false;
  for (size_t in_time = all / 2; in_time < all; in_time += all / 40) {
    size_t asked = 0;
    const ShardProblem made =
        shard_problem(graph, subject.mesh, prices, {.is_late = [&] { return ++asked > in_time; }})
            .value();
    ASSERT_TRUE(check(made.problem).ok());
    EXPECT_EQ(asked, in_time + 1);
    for (const std::vector<NodeDivision>& options : made.options) {
      ASSERT_FALSE(options.empty());
      EXPECT_EQ(options[0].results[0], undivided(graph.type(graph.outputs()[0])));
      was_cut = was_cut || (options.size() > 1 && options.size() < 128);
    }
  }
  EXPECT_TRUE(was_cut);
}

}  // namespace
}  // namespace hone::HONE_FILE
