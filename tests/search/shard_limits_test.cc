#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cost/analytic.h"
#include "ir/text.h"
#include "search/auto_shard.h"
#include "shard/shard_subject.h"
#include "target/presets.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/target/target_testing.h"

// Shardings whose exchanges are more than a timeline takes.

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

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
TEST(ShardLimits, LeaveWhatIsTooLargeToJudge) {
  HONE_ONE_RUN_OF(4);
  System system = preset_system("mesh:15x15", parse_target(kSampleTarget, "t").value()).value();
  system.links[0].bytes_per_second = 1e12;
  system.links[0].latency = 1e-12;
  const MeshRef mesh = std::make_shared<const Mesh>(Mesh{"m", {{"x", 225}}});
  const std::shared_ptr<const Cost> cost = std::make_shared<AnalyticCost>(system.targets[0]);
  AutoShardOptions options;
  options.seconds = 0;
  options.steps = 200;
  const Result<AutoSharding> made = auto_shard(products(24, ""), mesh, system, {{cost}}, options);
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_EQ(made->judged, 0U);
  EXPECT_EQ(made->best.seconds, made->whole);
  // Nothing else is left where the graph says it.
  EXPECT_THAT(auto_shard(products(24, " on @m [x, -]"), mesh, system, {{cost}}, options),
              refuses(ErrorCode::limit, "jobs"));
}

}  // namespace
}  // namespace hone::HONE_FILE
