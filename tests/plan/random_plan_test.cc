#include "plan/random_plan.h"

#include <gtest/gtest.h>
#include <algorithm>

#include <map>

#include "ir/text.h"
#include "plan/planned.h"
#include "rewrite/prepare.h"
#include "tests/base/share_testing.h"
#include "tests/target/target_testing.h"
#include "zoo/random/random_convs.h"
#include "zoo/random/random_graph.h"
#include "zoo/random/random_joins.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

Target target() { return parse_target(kSampleTarget, "t").value(); }

void expect_legal(const Graph& graph, uint64_t seed) {
  const Plan plan = random_plan(graph, target(), seed);
  const Status good = check_complete(plan, graph, target());
  ASSERT_TRUE(good.ok()) << good.error().to_string() << print(graph) << print(plan);
  EXPECT_EQ(parse_plan(print(plan)).value(), plan);
  EXPECT_EQ(random_plan(graph, target(), seed), plan);
}

TEST(RandomPlan, IsLegalForRandomGraphs) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = prepare(random_graph({.seed = seed, .symbolic = seed % 4 == 0})).value();
    for (uint64_t variant = 0; variant < 3; ++variant) expect_legal(graph, 3 * seed + variant);
  }
}

TEST(RandomPlan, IsLegalForTheZoo) {
  uint64_t number = 0;
  for (const ZooEntry& model : zoo_entries()) {
    if (!tested::in_share(number++, 4)) continue;
    SCOPED_TRACE(model.name);
    expect_legal(prepare(build_zoo_model(model.name, {.size = ZooSize::tiny}).value()).value(), 1);
  }
}

// The decisions of a plan, as words that are counted.
void count(const Plan& plan, std::map<std::string, int>& counts) {
  if (plan.threads) ++counts[fmt::format("threads {}", *plan.threads)];
  for (const auto& [name, copy] : plan.copy)
    ++counts[copy.readers.size() == 1 ? "copy for one" : "copy for several"];
  for (const Group& group : plan.fuse)
    ++counts[group.nodes.size() == 1 ? "fuse one" : "fuse several"];
  for (const auto& [name, is_view] : plan.view) ++counts[is_view ? "view yes" : "view no"];
  for (const auto& [name, is_in_place] : plan.in_place)
    ++counts[is_in_place ? "in place yes" : "in place no"];
  for (const auto& [name, layout] : plan.layout) {
    const bool has_block =
        std::ranges::any_of(layout.parts, [](const Layout::Part& part) { return part.block > 1; });
    ++counts[layout.is_row_major() ? "layout plain"
             : has_block           ? "layout blocked"
                                   : "layout order"];
  }
  for (const auto& [hash, schedule] : plan.schedule) {
    ++counts[fmt::format("algorithm {}", name(schedule.algorithm()))];
    if (schedule.algorithm() == Algorithm::generic) continue;
    ++counts[std::ranges::is_sorted(schedule.order) ? "order plain" : "order changed"];
    ++counts[fmt::format("divided {}", std::min(schedule.threads, 3))];
    for (const Tile& lanes : schedule.lanes) ++counts[fmt::format("lanes {}", lanes.count)];
    ++counts[fmt::format("unroll {}", schedule.unroll.size())];
    if (const auto* nest = schedule.if_is<NestFields>())
      ++counts[fmt::format("row {}", std::min(nest->row, 3))];
    if (const auto* gemm = schedule.if_is<GemmFields>()) {
      ++counts[fmt::format("block {}", std::min<size_t>(gemm->block.size(), 3))];
      ++counts[fmt::format("pack {} {}", name(gemm->pack_lhs), name(gemm->pack_rhs))];
    }
  }
  for (const auto& [name, offset] : plan.offset) ++counts[offset == 0 ? "offset 0" : "offset more"];
  for (const auto& [key, inner] : plan.region) {
    ++counts["region"];
    count(inner, counts);
  }
}

// Outputs that may lie in inputs.
void count_donors(const Plan& plan, const Graph& graph, std::map<std::string, int>& counts) {
  const PlannedGraph resolved = planned(plan, graph).value();
  for (const Step& step : resolved.steps) {
    for (const Donor& donor : step.donors) {
      const bool is_read = std::ranges::find(step.reads, donor.input) != step.reads.end();
      ++counts[is_read ? "donor read" : "donor not read"];
      ++counts[step.nodes.size() > 1 ? "donor of several" : "donor of one"];
    }
  }
}

// Views of memory that is not row-major.
void count_views(const Plan& plan, const Graph& graph, std::map<std::string, int>& counts) {
  const PlannedGraph resolved = planned(plan, graph).value();
  for (NodeId n : resolved.view().nodes()) {
    if (!resolved.is_view(n)) continue;
    if (resolved.view().opcode(n) == Opcode::concat) ++counts["concat view"];
    const Opcode opcode = resolved.view().opcode(n);
    const ValueId v = resolved.view().result(n);
    if (!resolved.layout[v.index].is_row_major())
      ++counts[opcode == Opcode::concat ? "concat laid out" : "slice laid out"];
    if (opcode == Opcode::concat && resolved.concat[v.index] != NodeId{})
      ++counts["concat in a concat"];
  }
}

TEST(RandomPlan, EveryValueOfEveryDecisionComesUp) {
  std::map<std::string, int> counts;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const Graph graph = prepare(random_graph({.seed = seed})).value();
    const Plan plan = random_plan(graph, target(), seed);
    count(plan, counts);
    count_donors(plan, graph, counts);
    count_views(plan, graph, counts);
  }
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Graph updates =
        prepare(random_graph({.seed = seed, .first = Opcode::dynamic_update})).value();
    count(random_plan(updates, target(), seed), counts);
  }
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Graph joins = prepare(random_joins(seed)).value();
    const Plan plan = random_plan(joins, target(), seed);
    const Status good = check_complete(plan, joins, target());
    ASSERT_TRUE(good.ok()) << good.error().to_string() << print(joins) << print(plan);
    count_views(plan, joins, counts);
  }
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Graph convs = prepare(random_convs(seed)).value();
    const Plan plan = random_plan(convs, target(), seed);
    const Status good = check_complete(plan, convs, target());
    ASSERT_TRUE(good.ok()) << good.error().to_string() << print(convs) << print(plan);
    count(plan, counts);
  }
  std::vector<std::string> wanted = {
      "copy for one",      "copy for several", "in place yes",      "in place no",
      "fuse one",          "fuse several",     "view yes",          "view no",
      "layout plain",      "layout order",     "layout blocked",    "order plain",
      "order changed",     "offset 0",         "offset more",       "region",
      "algorithm generic", "algorithm nest",   "algorithm gemm",    "algorithm winograd",
      "donor read",        "donor not read",   "donor of several",  "donor of one",
      "concat laid out",   "slice laid out",   "concat in a concat"};
  for (std::string_view what :
       {"concat view", "concat laid out", "slice laid out", "concat in a concat"})
    fmt::print("{}: {}\n", what, counts[std::string(what)]);
  for (std::string_view lhs : {"no", "panels", "window"})
    for (std::string_view rhs : {"no", "panels", "window"})
      wanted.push_back(fmt::format("pack {} {}", lhs, rhs));
  for (int i = 1; i <= 8; ++i) wanted.push_back(fmt::format("threads {}", i));
  for (int i = 0; i <= 3; ++i)
    for (std::string_view what : {"divided", "row", "block"})
      wanted.push_back(fmt::format("{} {}", what, i));
  for (int i = 0; i <= 2; ++i) wanted.push_back(fmt::format("unroll {}", i));
  for (int lanes = 2; lanes <= 64; lanes *= 2) wanted.push_back(fmt::format("lanes {}", lanes));
  for (const std::string& what : wanted) EXPECT_GE(counts[what], 3) << what;
}

}  // namespace
}  // namespace hone::HONE_FILE
