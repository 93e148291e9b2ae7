#include "cost/plan_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <filesystem>

#include "base/file.h"
#include "cost/analytic.h"
#include "cost/program_price.h"
#include "ir/text.h"
#include "planner/planner.h"
#include "program/lower/lower.h"
#include "rewrite/prepare.h"
#include "tests/base/says_testing.h"
#include "tests/cost/plan_model_testing.h"
#include "tests/target/target_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;

const Target& target() {
  static const Target target = parse_target(kSampleTarget, "t").value();
  return target;
}
const AnalyticCost& cost() {
  static const AnalyticCost cost(target());
  return cost;
}

// Two products of 16 MB each, and their rows' means.
Program program(
    std::string_view text =
        R"(graph @g(%x: f32[64, 2048], %v: f32[2048, 2048], %w: f32[2048, 64]) -> f32[64, 64] {
  %h = dot %x, %v {lhs_contract = [1], rhs_contract = [0]}
  %y = dot %h, %w {lhs_contract = [1], rhs_contract = [0]}
  return %y
})") {
  const Graph graph = prepare(parse_graph(text).value()).value();
  Plan open;
  open.threads = 1;
  PlannerOptions apart;
  apart.heuristics.chains = false;
  return lower(graph, complete(graph, open, target(), cost(), apart).value(), target()).value();
}

size_t row(std::string_view name) {
  size_t at = 0;
#define HONE_PLAN_FEATURE(member, doc) \
  if (name == #member) return at;      \
  ++at;
#include "cost/plan_features.def"
  return at;
}

TEST(PlanGraph, HasTasksAndTheMemoryThatTheyUse) {
  const Program lowered = program();
  const PlanGraph graph = plan_graph(lowered, target(), cost()).value();
  ASSERT_EQ(lowered.main->commands.size(), 2U);
  // Each task has itself, two reads and a write.
  ASSERT_EQ(graph.nodes.size(), 8U);
  // Reads, writes, and from the first product to the read of its result.
  EXPECT_EQ(graph.edges.size(), 7U);
  EXPECT_DOUBLE_EQ(graph.seconds, price(lowered, cost()).value().total());
  double share = 0;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    share += double{graph.share[n]};
    EXPECT_EQ(graph.share[n] > 0, graph.nodes[n][row("is_use")] == 0);
    if (graph.share[n] > 0) EXPECT_EQ(graph.nodes[n][kind_feature("dot")], 1);
  }
  EXPECT_NEAR(share, 1, 1e-6);
}

// In a run that comes after another one, weights lie as far back as all that a run uses.
TEST(PlanGraph, KnowsHowLongAgoMemoryWasUsed) {
  const PlanGraph graph = plan_graph(program(), target(), cost()).value();
  const auto is_result_read = [&](const PlanEdge& edge) {
    return graph.nodes[edge.from][row("is_use")] == 0 &&
           graph.nodes[edge.to][row("is_written")] == 0;
  };
  const auto* const link = &*std::ranges::find_if(graph.edges, is_result_read);
  EXPECT_EQ(graph.nodes[link->to][row("distance")], 0);  // it was written just now
  float longest = 0;
  for (const PlanRow& each : graph.nodes) longest = std::max(longest, each[row("distance")]);
  EXPECT_GT(longest, std::log2(16.0 * 1024));  // KiB: the weights of the first product
  // The result of 512 KiB is in the second cache yet, and those weights in the last one of 105 MiB.
  EXPECT_EQ(graph.nodes[link->to][row("is_in_second")], 1);
  for (const PlanRow& each : graph.nodes) {
    if (each[row("distance")] != longest) continue;
    EXPECT_EQ(each[row("is_in_second")], 0);
    EXPECT_EQ(each[row("is_in_last")], 1);
  }
}

TEST(PlanGraph, IsOfNumbersAlone) {
  const Program open = program(R"(graph @g(%x: f32[N, 64]) -> f32[N, 64] where N in 1..64 {
  %y = exp %x
  return %y
})");
  EXPECT_THAT(plan_graph(open, target(), cost()).error().to_string(),
              says("sizes of ... are open"));
}

// ---- The model ----------------------------------------------------------------------------------

TEST(PlanModel, MultipliesThePricesOfTasks) {
  const PlanGraph graph = plan_graph(program(), target(), cost()).value();
  const PlanModel none = plan_model_by(target(), cost(), kind_feature("conv"), 100);
  const PlanModel dots = plan_model_by(target(), cost(), kind_feature("dot"), 100);
  ASSERT_EQ(log_seconds(none, graph).size(), 2U);
  EXPECT_NEAR(log_seconds(none, graph)[0], std::log(graph.seconds), 1e-6);
  EXPECT_NEAR(log_seconds(dots, graph)[0], std::log(graph.seconds) + PlanMember::kMost, 1e-6);
}

TEST(PlanModel, TakesAPlanThatIsSurelyFaster) {
  PlanGraph usual = plan_graph(program(), target(), cost()).value(), other = usual;
  for (PlanRow& each : other.nodes) each[kind_feature("dot")] = 0;
  const PlanGraph plans[] = {usual, other, usual};
  PlanModel model = plan_model_by(target(), cost(), kind_feature("dot"), 1);
  EXPECT_EQ(best_of(model, plans), 1U);
  PlanModel none_gained = model;
  none_gained.lead = kNoPlanLead;
  EXPECT_EQ(best_of(none_gained, plans), 0U);
  PlanModel far = model;
  far.lead = 0.6;  // it says exp(0.5 tanh(1))
  EXPECT_EQ(best_of(far, plans), 0U);
  PlanModel at_odds = model;
  at_odds.members[1] = plan_model_by(target(), cost(), kind_feature("dot"), -0.8F).members[0];
  EXPECT_EQ(best_of(at_odds, plans), 0U);
  EXPECT_EQ(best_of(model, std::span(plans).first(1)), 0U);
}

std::filesystem::path file(const char* name = "some.plans") {
  return std::filesystem::path(testing::TempDir()) / name;
}

TEST(PlanModel, IsReadAsItWasWritten) {
  const PlanModel model = plan_model_by(target(), cost(), 3, 2);
  ASSERT_TRUE(write_plan_model(file(), model).ok());
  EXPECT_TRUE(read_plan_model(file()).value() == model);
}

TEST(PlanModel, RefusesADamagedFileByName) {
  ASSERT_TRUE(write_plan_model(file("damaged.plans"), plan_model_by(target(), cost(), 3, 2)).ok());
  const std::string whole = read_file(file("damaged.plans").native(), 1 << 24).value();
  std::string last = whole;
  last.back() = static_cast<char>(last.back() + 1);
  const auto error = [](const std::string& bytes) {
    return parse_plan_model(std::as_bytes(std::span(bytes)), "damaged.plans").error().to_string();
  };
  EXPECT_THAT(error(last), says("checksum ... damaged.plans"));
  EXPECT_THAT(error(whole.substr(0, whole.size() / 2)), says("damaged.plans"));
  EXPECT_THAT(error(""), says("damaged.plans"));
  std::string features = whole;
  features.replace(features.find(plan_feature_version()), 16, "0123456789abcdef");
  EXPECT_THAT(error(features), says("damaged.plans"));
}

TEST(PlanModel, IsForItsTargetAndItsPricesAlone) {
  const PlanModel model = plan_model_by(target(), cost(), 3, 2);
  EXPECT_TRUE(check_is_for(model, target(), cost()).ok());
  Target other = target();
  other.cpu = "another";
  EXPECT_THAT(check_is_for(model, other, cost()).error().to_string(),
              says("model of plans is of the target"));
  Prices prices;
  prices.trip = 7;
  EXPECT_THAT(check_is_for(model, target(), AnalyticCost(target(), prices)).error().to_string(),
              HasSubstr("other prices"));
}

}  // namespace
}  // namespace hone::HONE_FILE
