#include "kernel/schedule_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <set>

#include "ir/text.h"
#include "kernel/contraction.h"
#include "kernel/schedule_text.h"
#include "target/gpu_presets.h"
#include "tests/program/random_kernels.h"

namespace hone::HONE_FILE {
namespace {

Target target() {
  Target target;
  target.caches = {{.bytes = 1 << 20}};
  return target;
}

KernelBody body_of_text(std::string_view text) { return body_of_all(parse_graph(text).value()); }

// ---- What a space has to hold, from the rules alone ---------------------------------------------

class Rules {
 public:
  explicit Rules(const KernelBody& body)
      : body_(body), space_(space_of(body)), dims_(static_cast<int>(space_.dims.size())) {}

  std::set<std::string> members() {
    consider({});
    for (Algorithm algorithm : {Algorithm::nest, Algorithm::gemm}) loops(algorithm);
    return std::move(members_);
  }

 private:
  int64_t extent(int dim) const {
    return space_.dims[static_cast<size_t>(dim)].extent.range().high;
  }

  void consider(const Schedule& schedule) {
    if (check_schedule(body_, facts_, schedule, target_).ok()) members_.insert(print(schedule));
  }

  void loops(Algorithm algorithm) {
    Schedule schedule = plain_nest(space_.parallel);
    schedule.own = fields_of(algorithm);
    do {
      for (schedule.threads = 0; schedule.threads <= space_.parallel; ++schedule.threads) {
        schedule.lanes.clear();
        unroll(schedule, 0);
        for (int dim = 0; dim < dims_; ++dim)
          for (int64_t count = 2; count <= 64; count *= 2) {
            schedule.lanes = {{dim, count}};
            unroll(schedule, 0);
          }
      }
    } while (std::ranges::next_permutation(schedule.order).found);
  }

  void unroll(const Schedule& schedule, int dim) {
    if (dim == dims_) return own(schedule);
    unroll(schedule, dim + 1);
    int64_t points = 1;
    for (const Tile& tile : schedule.unroll) points *= tile.count;
    for (int64_t count = 1; count * points <= 64; ++count) {
      Schedule next = schedule;
      next.unroll.push_back({dim, count});
      unroll(next, dim + 1);
    }
  }

  void own(Schedule schedule) {
    if (auto* nest = schedule.if_is<NestFields>()) {
      for (nest->row = 0; nest->row <= space_.parallel; ++nest->row) consider(schedule);
      return;
    }
    if (check_schedule(body_, facts_, schedule, target_).ok()) block(schedule, 0);
  }

  void block(const Schedule& schedule, int dim) {
    if (dim == dims_) {
      Schedule next = schedule;
      for (Packing lhs : {Packing::no, Packing::panels, Packing::window})
        for (Packing rhs : {Packing::no, Packing::panels, Packing::window}) {
          next.get<GemmFields>().pack_lhs = lhs;
          next.get<GemmFields>().pack_rhs = rhs;
          consider(next);
        }
      return;
    }
    block(schedule, dim + 1);
    const int64_t step = dim < space_.parallel ? register_tile(schedule, dim) : 1;
    for (int64_t count = step; count < extent(dim) + step; count += step) {
      Schedule next = schedule;
      next.get<GemmFields>().block.push_back({dim, count});
      block(next, dim + 1);
    }
  }

  const KernelBody& body_;
  const KernelFacts facts_{body_};
  const KernelSpace space_;
  const int dims_;
  const Target target_ = target();
  std::set<std::string> members_;
};

std::set<std::string> texts(const Schedules& schedules) {
  std::set<std::string> all;
  for (const Schedule& schedule : schedules) all.insert(print(schedule));
  return all;
}

// Members, each once; whatever is drawn or lies beside a member is a member; and from the simplest
// one neighbours lead to all.
void check_small(const KernelBody& body) {
  const KernelFacts facts(body);
  const Target on = target();
  const ScheduleSpace space(body, facts, on);
  const Schedules all = space.enumerate(SIZE_MAX);
  const std::set<std::string> members = texts(all);
  EXPECT_EQ(members.size(), all.size()) << "some come up twice";
  EXPECT_EQ(static_cast<double>(all.size()), space.size());
  EXPECT_EQ(members, Rules(body).members());
  Rng rng(1);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(members.contains(print(space.sample(rng))));
  std::set<std::string> reached = {print(space.simplest())};
  std::deque<Schedule> left = {space.simplest()};
  for (; !left.empty() && !testing::Test::HasFailure(); left.pop_front())
    for (const Schedule& next : space.neighbours(left.front())) {
      EXPECT_TRUE(members.contains(print(next))) << print(next);
      if (reached.insert(print(next)).second) left.push_back(next);
    }
  EXPECT_EQ(reached.size(), members.size());
}

TEST(ScheduleSpace, OfASmallBodyHasWhatTheRulesSayAndNeighboursConnectIt) {
  for (std::string_view text : {
           "graph @g(%x: f32[5]) -> f32[5] { %y = exp %x return %y }",
           "graph @g(%x: f32[]) -> f32[] { %y = exp %x return %y }",
           "graph @g(%x: i4[3]) -> i4[3] { %y = reverse %x {axes = [0]} return %y }",
           "graph @g(%x: f32[N]) -> f32[N] where N in 1..9 { %y = exp %x return %y }",
           "graph @g(%x: f32[4]) -> f32[4] { %a = sort %x {axis = 0} return %a }",
           "graph @g(%x: f32[2], %w: f32[2]) -> f32[] { "
           "%y = dot %x, %w {lhs_contract = [0], rhs_contract = [0]} return %y }",
       }) {
    SCOPED_TRACE(text);
    check_small(body_of_text(text));
  }
}

TEST(ScheduleSpace, OfSmallRandomBodiesHasWhatTheRulesSay) {
  int checked = 0;
  for (uint64_t seed = 0; seed < 300 && checked < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = random_graph({.seed = seed, .max_steps = 10, .max_elements = 16});
    for (NodeId node : op_nodes(graph)) {
      if (!is_kernel(graph.opcode(node))) continue;
      const KernelBody body = body_of(graph, std::span(&node, 1), {});
      if (space_of(body).dims.size() > 1) continue;
      SCOPED_TRACE(print(body.graph));
      check_small(body);
      if (testing::Test::HasFailure()) return;
      ++checked;
    }
  }
  EXPECT_GE(checked, 20);
}

// ---- Large ones ---------------------------------------------------------------------------------

void check_steps(const KernelBody& body, Rng& rng) {
  const KernelFacts facts(body);
  const Target on = target();
  const ScheduleSpace space(body, facts, on);
  const auto expect_member = [&](const Schedule& schedule) {
    const Status good = check_schedule(body, facts, schedule, on);
    ASSERT_TRUE(good.ok()) << print(schedule) << good.error().to_string();
  };
  const Schedule a = space.sample(rng), b = space.sample(rng);
  for (const Schedule& member : {a, b, space.cross(a, b, rng), space.simplest()})
    expect_member(member);
  for (const Schedule& next : space.neighbours(a)) {
    expect_member(next);
    EXPECT_NE(next, a);
  }
  Schedule now = a;
  for (Schedules simpler = space.simplify(now); !simpler.empty(); simpler = space.simplify(now)) {
    for (const Schedule& next : simpler) expect_member(next);
    now = rng.pick(simpler);
  }
  if (space.simplest().algorithm() != Algorithm::chain) EXPECT_EQ(now, space.simplest());
}

TEST(ScheduleSpace, GivesLegalSchedulesOnlyAndSimplifyingEnds) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const Graph graph = seed % 3 == 0
                            ? RandomGemm(rng).graph()
                            : random_graph({.seed = seed, .max_steps = 10, .max_elements = 64});
    const Users users(graph);
    const std::vector<NodeId> nodes =
        seed % 3 == 0 ? op_nodes(graph) : random_group(graph, users, rng);
    if (nodes.empty()) continue;
    const KernelBody body = body_of(graph, users, nodes, {});
    SCOPED_TRACE(print(body.graph));
    check_steps(body, rng);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(ScheduleSpace, CrossingTakesDecisionsOfBoth) {
  const KernelBody body = body_of_text(
      "graph @g(%x: f32[64, 32], %w: f32[32, 48]) -> f32[64, 48] { "
      "%y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]} return %y }");
  const KernelFacts facts(body);
  const Target on = target();
  const ScheduleSpace space(body, facts, on);
  const Schedule a = {.order = {0, 1}, .lanes = {{1, 16}}, .own = GemmFields()};
  const Schedule b = {.order = {1, 0},
                      .unroll = {{0, 4}},
                      .own = GemmFields{.block = {{0, 8}}, .pack_rhs = Packing::panels}};
  std::set<std::string> children;
  Rng rng(0);
  for (int i = 0; i < 400; ++i) {
    const Schedule child = space.cross(a, b, rng);
    EXPECT_TRUE(child.order == a.order || child.order == b.order);
    EXPECT_TRUE(child.lanes == a.lanes || child.lanes == b.lanes);
    children.insert(print(child));
  }
  EXPECT_GT(children.size(), 30U);
}

// Blocks that have parts of a sum may share the steps of all tiles instead, a step away, and back.
TEST(ScheduleSpace, OfAGpuLeadsFromPartsToSharesAndBack) {
  const KernelBody body = body_of_text(
      "graph @g(%x: f32[256, 4096], %w: f32[4096, 256]) -> f32[256, 256] { "
      "%y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]} return %y }");
  const KernelFacts facts(body);
  const Target on = gpu_like_preset(90);
  const ScheduleSpace space(body, facts, on);
  Schedule parts = plain_nest(2);
  parts.threads = 2;
  parts.own = BlockTilesFields{.splits = 4};
  ASSERT_TRUE(space.has(parts));
  const auto has = [&](const Schedule& from, bool shares) {
    return std::ranges::any_of(space.neighbours(from), [&](const Schedule& near) {
      const auto* own = near.if_is<BlockTilesFields>();
      return own != nullptr &&
             (shares ? own->shares > 0 && own->splits == 1 : own->shares == 0 && own->splits > 1);
    });
  };
  EXPECT_TRUE(has(parts, true));
  Schedule shares = parts;
  shares.own = BlockTilesFields{.shares = static_cast<int>(on.cores)};
  ASSERT_TRUE(space.has(shares));
  EXPECT_TRUE(has(shares, false));
  Rng rng(1);
  std::set<bool> drawn;
  for (int i = 0; i < 200; ++i) {
    const std::optional<Schedule> next = space.step(parts, rng);
    const auto* own = next ? next->if_is<BlockTilesFields>() : nullptr;
    if (own != nullptr) drawn.insert(own->shares > 0);
  }
  EXPECT_EQ(drawn.size(), 2U);
  for (const Schedule& simpler : space.simplify(shares))
    if (const auto* own = simpler.if_is<BlockTilesFields>(); own != nullptr && own->shares == 0)
      return;
  FAIL() << "no simpler one has no shares";
}

// A chain has spaces within it: of each stage.
TEST(ScheduleSpace, OfAChainChangesItsStages) {
  const KernelBody body =
      body_of_text("graph @g(%x: f32[6, 4]) -> f32[6, 4] { %a = tanh %x %y = exp %a return %y }");
  const KernelFacts facts(body);
  const Target on = target();
  const ScheduleSpace space(body, facts, on);
  const Schedule chain = {
      .order = {0},
      .own = ChainFields{.block = {{0, 3}}, .keep = {0}, .stages = {plain_nest(2), plain_nest(2)}}};
  ASSERT_TRUE(space.has(chain));
  const std::set<std::string> near = texts(space.neighbours(chain));
  EXPECT_TRUE(near.contains(
      "{algorithm = chain, order = [0], block = [0:2], keep = [0], stages = [{algorithm = nest, "
      "order = [0, 1]}, {algorithm = nest, order = [0, 1]}]}"));
  EXPECT_TRUE(near.contains(
      "{algorithm = chain, order = [0], block = [0:3], keep = [0], stages = [{algorithm = nest, "
      "order = [0, 1], lanes = [1:2]}, {algorithm = nest, order = [0, 1]}]}"));
  for (const std::string& text : near)
    EXPECT_EQ(text.find("stages = [{algorithm = chain"), std::string::npos);
}

}  // namespace
}  // namespace hone::HONE_FILE
