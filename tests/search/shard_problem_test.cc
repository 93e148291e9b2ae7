#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cost/analytic.h"
#include "ir/text.h"
#include "search/auto_shard.h"
#include "search/shard_problem.h"
#include "shard/node_division.h"
#include "shard/partition.h"
#include "shard/shard_subject.h"
#include "target/presets.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/target/target_testing.h"

// Shardings that a search must not take: those that are otherwise than the graph says, and those
// whose exchanges are more than a timeline takes.

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

Result<AutoSharding> sharded(const Graph& graph, const MeshRef& mesh, const System& system) {
  const std::shared_ptr<const Cost> cost = std::make_shared<AnalyticCost>(system.targets[0]);
  AutoShardOptions options;
  options.seconds = 0;
  options.steps = 200;
  return auto_shard(graph, mesh, system, {{cost}}, options);
}

MeshRef along_x(int64_t devices) {
  return std::make_shared<const Mesh>(Mesh{"m", {{"x", devices}}});
}

System preset_of(std::string_view text) {
  return preset_system(text, parse_target(kSampleTarget, "t").value()).value();
}

// Parts of a product are summands. As others they would give other numbers.
TEST(ShardProblem, TakesPartialValuesOfTheStatedKindAlone) {
  const auto product = [](std::string_view kind) {
    const Graph given =
        parse_graph(
            fmt::format("graph @g(%x: f32[8, 64] on @m [-, x], %w: f32[64, 8] on @m [x, -]) ->\n"
                        "    f32[8, 8] mesh @m = [x = 2] {{\n"
                        "  %y = dot %x, %w {{lhs_contract = [1], rhs_contract = [0]}} : f32[8, 8] "
                        "on @m [-, -] partial {} [x]\n"
                        "  %z = tanh %y : f32[8, 8] on @m [-, -]\n"
                        "  return %z\n}}\n",
                        kind))
            .value();
    return shard_subject(given).value().graph;
  };
  const System system = preset_of("ring:2");
  const Result<AutoSharding> made = sharded(product("sum"), along_x(2), system);
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_THAT(sharded(product("max"), along_x(2), system),
              refuses(ErrorCode::unsupported, "%y ... cannot be divided as it says"));
}

// The devices add up numbers of f32, twice as many bytes as the result has.
TEST(ShardProblem, PricesSumsOf16BitsAsTheyAreSent) {
  const Graph graph = shard_subject(parse_graph("graph @g(%x: bf16[64, 16], %y: bf16[64, 32]) -> "
                                                "bf16[16, 32] {\n"
                                                "  %g = dot %x, %y {lhs_contract = [0], "
                                                "rhs_contract = [0]}\n"
                                                "  return %g\n}\n")
                                        .value())
                          .value()
                          .graph;
  const System system = preset_of("ring:2");
  const std::vector<std::shared_ptr<const Cost>> costs = {
      std::make_shared<AnalyticCost>(system.targets[0])};
  const MeshRef mesh = along_x(2);
  ShardPrices prices(system, costs, mesh);
  const ShardProblem made = shard_problem(graph, mesh, prices).value();
  const NodeId product = graph.producer(graph.outputs()[0]);
  const std::vector<NodeDivision>& options = made.options[product.index];
  const auto summed = std::ranges::find_if(
      options, [](const NodeDivision& one) { return !one.results[0].partial.empty(); });
  ASSERT_NE(summed, options.end());
  Assignment assignment(made.options.size(), 0);  // the output is whole
  assignment[product.index] = static_cast<uint32_t>(summed - options.begin());
  for (size_t i = 0; i < 2; ++i) {
    const uint32_t input = graph.producer(graph.inputs()[i]).index;
    const auto same = std::ranges::find_if(made.options[input], [&](const NodeDivision& one) {
      return one.results[0] == summed->operands[i];
    });
    assignment[input] = static_cast<uint32_t>(same - made.options[input].begin());
  }
  const Partition part =
      partition_exactly(with_assignment(graph, mesh, made, assignment), mesh).value();
  ASSERT_EQ(part.messages.size(), 1u);
  EXPECT_EQ(part.messages[0].element_bytes, 4);
  Int128 sent = evaluate(made.problem, assignment).value().cost;
  for (size_t n = 0; n < assignment.size(); ++n) sent -= made.problem.nodes[n].costs[assignment[n]];
  const ShardLayout whole = undivided(graph.type(graph.outputs()[0]));
  EXPECT_NEAR(static_cast<double>(sent) / kShardTicks,
              prices.change(summed->results[0], whole, {16, 32}, 4).value(), 1e-12);
  EXPECT_EQ(made.problem.nodes[product.index].usages[assignment[product.index]], 16 * 32 * 4);
}

// A state that the graph divides has its next one in its place, also if the time is over before.
TEST(ShardProblem, LeavesAWayForWhatIsStatedIfTheTimeIsOver) {
  const Graph graph =
      shard_subject(parse_graph("graph @g(%w: f32[8, 4] on @m [x, -] donate 0) -> f32[8, 4] "
                                "mesh @m = [x = 2] {\n"
                                "  %y = tanh %w : f32[8, 4]\n  return %y\n}\n")
                        .value())
          .value()
          .graph;
  const System system = preset_of("ring:2");
  const std::vector<std::shared_ptr<const Cost>> costs = {
      std::make_shared<AnalyticCost>(system.targets[0])};
  ShardPrices prices(system, costs, along_x(2));
  const ShardProblem made =
      shard_problem(graph, along_x(2), prices, {.is_late = [] { return true; }}).value();
  const AssignValue only = evaluate(made.problem, Assignment(made.problem.nodes.size(), 0)).value();
  EXPECT_TRUE(only.fits(made.problem)) << only.first_forbidden;
}

// Products whose results each device needs whole: each is one gather among all.
Graph products(int count, std::string_view said) {
  std::string text = "graph @g(%x: f32[900, 512]", results, types, outputs;
  for (int i = 0; i < count; ++i) {
    text += fmt::format(", %w{}: f32[512, 512]", i);
    results += fmt::format(
        "  %y{0} = dot %x, %w{0} {{lhs_contract = [1], rhs_contract = [0]}} : f32[900, 512]{1}\n",
        i, said);
    types += fmt::format("{}f32[900, 512]", i == 0 ? "" : ", ");
    outputs += fmt::format("{}%y{} on @m [-, -]", i == 0 ? "" : ", ", i);
  }
  text +=
      fmt::format(") -> ({}) mesh @m = [x = 225] {{\n{}  return {}\n}}\n", types, results, outputs);
  const Graph given = parse_graph(text).value();
  return shard_subject(given).value().graph;
}

// No two devices of a grid without a way around are alike, so each has jobs of its own.
TEST(ShardProblem, LeavesWhatIsTooLargeToJudge) {
  HONE_ONE_RUN_OF(4);
  System system = preset_of("mesh:15x15");
  system.links[0].bytes_per_second = 1e12;
  system.links[0].latency = 1e-12;
  const Result<AutoSharding> made = sharded(products(24, ""), along_x(225), system);
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_EQ(made->judged, 0U);
  EXPECT_EQ(made->best.seconds, made->whole);
  // Nothing else is left where the graph says it.
  EXPECT_THAT(sharded(products(24, " on @m [x, -]"), along_x(225), system),
              refuses(ErrorCode::limit, "jobs"));
}

}  // namespace
}  // namespace hone::HONE_FILE
