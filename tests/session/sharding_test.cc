#include "session/sharding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cost/analytic.h"
#include "ir/text.h"
#include "target/presets.h"
#include "tests/base/says_testing.h"
#include "tests/target/target_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

constexpr std::string_view kPlain = R"(
graph @g(%x: f32[4]) -> f32[4] {
  %y = exp %x
  return %y
})";
constexpr std::string_view kSaid = R"(
graph @g(%x: f32[4] on @m [x]) -> f32[4] mesh @m = [x = 2] {
  %y = exp %x
  return %y
})";

// Without a mesh: "".
ShardRequest request(const std::vector<std::string>& words, const std::string& mesh,
                     const ShardLabels& labels = {}) {
  return shard_request(words, mesh.empty() ? std::nullopt : std::optional(mesh), labels).value();
}

TEST(Sharding, NamesOptionsAsTheFaceDoes) {
  const Graph plain = parse_graph(kPlain).value(), said = parse_graph(kSaid).value();
  const MeshRef two = parse_mesh("x=2").value();
  for (const ShardLabels& labels : {ShardLabels(), ShardLabels{.mesh = "mesh", .shard = "shard"}}) {
    const auto refuses_by = [](std::string_view label, std::string_view text) {
      return refuses(ErrorCode::usage, fmt::format("{}: ... {}", label, text));
    };
    for (const std::string mesh : {"x", ""})
      EXPECT_THAT(shard_request({}, mesh, labels), refuses_by(labels.mesh, "size"));
    EXPECT_THAT(mesh_of_request(request({}, "x=4", labels), said),
                refuses_by(labels.mesh, "a mesh of its own"));
    EXPECT_THAT(stated_graph(plain, two, request({"z=[x]"}, "x=2", labels)),
                refuses_by(labels.shard, "no value 'z'"));
    EXPECT_THAT(stated_graph(plain, two, request({"x=[q]"}, "x=2", labels)),
                refuses_by(labels.shard, "axis"));
  }
}

TEST(Sharding, TakesAMeshThatIsSaidTwiceAsOne) {
  const Graph plain = parse_graph(kPlain).value(), said = parse_graph(kSaid).value();
  EXPECT_EQ(mesh_of_request(request({}, "x=2"), said).value(), meshes_of(said)[0]);
  EXPECT_EQ(mesh_of_request(request({}, ""), said).value(), meshes_of(said)[0]);
  EXPECT_EQ(mesh_of_request(request({}, ""), plain).value(), nullptr);
}

TEST(Sharding, IsLeftToPricesWhereNobodySaysIt) {
  const Graph plain = parse_graph(kPlain).value(), said = parse_graph(kSaid).value();
  EXPECT_TRUE(is_priced(request({}, "x=2"), plain));
  EXPECT_FALSE(is_priced(request({}, ""), said));
  EXPECT_FALSE(is_priced(request({}, "x=2"), said));
  EXPECT_FALSE(is_priced(request({"x=[x]"}, "x=2"), plain));
  // Who asks for prices gets them for what is not said.
  EXPECT_TRUE(is_priced(request({"auto"}, ""), said));
  EXPECT_TRUE(is_priced(request({"auto", "x=[x]"}, "x=2"), plain));
  ShardRequest planned = request({}, "x=2");
  planned.plan = parse_shard_plan("mesh x=2\nshard %y = [x]\n", "p").value();
  EXPECT_TRUE(is_priced(planned, said));
}

// A device uses no more bytes than it may, in whichever way the division was found.
TEST(Sharding, KeepsWithinTheMemoryThatIsGiven) {
  const Graph plain = parse_graph(kPlain).value(), said = parse_graph(kSaid).value();
  const System system = preset_system("ring:2", parse_target(kSampleTarget, "t").value()).value();
  const std::shared_ptr<const Cost> cost = std::make_shared<AnalyticCost>(system.targets[0]);
  ShardRequest planned = request({}, "x=2");
  planned.plan =
      parse_shard_plan("mesh x=2\nshard %x = [x]\nshard %y = [x]\noutput 0 = [x]\n", "p").value();
  const auto sharded = [&](const Graph& graph, const ShardRequest& one, int64_t memory) {
    return sharded_model(graph, mesh_of_request(one, graph).value(), one, system, {{cost}},
                         {.memory = memory});
  };
  for (const auto& [graph, one] :
       {std::pair(said, request({}, "")), std::pair(plain, request({"x=[x]"}, "x=2")),
        std::pair(plain, planned)}) {
    EXPECT_THAT(sharded(graph, one, 1), refuses(ErrorCode::limit, "may use 1 B ... too much"));
    const Result<ShardedModel> made = sharded(graph, one, int64_t{1} << 30);
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    EXPECT_FALSE(made->chosen.has_value());
  }
}

TEST(Sharding, TakesABudgetWherePricesChoose) {
  const Graph plain = parse_graph(kPlain).value(), said = parse_graph(kSaid).value();
  const System system = preset_system("ring:2", parse_target(kSampleTarget, "t").value()).value();
  const std::shared_ptr<const Cost> cost = std::make_shared<AnalyticCost>(system.targets[0]);
  ShardRequest follows = request({}, ""), chooses = request({}, "x=2");
  follows.search_word = chooses.search_word = "--budget";
  EXPECT_THAT(sharded_model(said, meshes_of(said)[0], follows, system, {{cost}}, {}),
              refuses(ErrorCode::usage, "--budget ... chosen by price"));
  EXPECT_TRUE(sharded_model(plain, chooses.mesh, chooses, system, {{cost}}, {.seconds = 1}).ok());
  // A plan that says all leaves nothing to search.
  ShardRequest planned = request({}, "x=2");
  planned.search_word = "--search";
  planned.plan =
      parse_shard_plan("mesh x=2\nshard %x = [x]\nshard %y = [x]\noutput 0 = [x]\n", "p").value();
  EXPECT_THAT(sharded_model(plain, planned.mesh, planned, system, {{cost}}, {}),
              refuses(ErrorCode::usage, "--search ... chosen by price ... all values say"));
}

TEST(Sharding, SaysEachValueOnceAndKeepsTheGraphsWord) {
  const Graph plain = parse_graph(kPlain).value(), said = parse_graph(kSaid).value();
  const MeshRef mesh = meshes_of(said)[0];
  EXPECT_THAT(stated_graph(plain, mesh, request({"x=[x]", "x=[-]"}, "x=2")),
              refuses(ErrorCode::usage, "--shard ... 'x' is divided twice"));
  EXPECT_THAT(stated_graph(said, mesh, request({"x=[-]"}, "x=2")),
              refuses(ErrorCode::usage, "--shard divides %x as [-] ... the graph says [x]"));
  EXPECT_TRUE(stated_graph(said, mesh, request({"x=[x]", "y=[x]"}, "x=2")).ok());
  ShardRequest planned = request({"x=[x]"}, "x=2");
  planned.plan = parse_shard_plan("mesh x=2\nshard %x = [-]\n", "p").value();
  EXPECT_THAT(stated_graph(plain, mesh, planned), refuses(ErrorCode::usage, "%x as [x] ... [-]"));
}

// A mesh without axes says that a value is whole, on whatever mesh.
TEST(Sharding, TakesMeshesWithoutAxesAsNone) {
  const Graph both = parse_graph(R"(
graph @g(%x: f32[4] on @m [x], %w: f32[4] on @none [-]) -> f32[4]
    mesh @m = [x = 2], @none = [] {
  %y = add %x, %w
  return %y
})")
                         .value();
  ASSERT_EQ(meshes_of(both).size(), 2U);
  EXPECT_EQ(mesh_of_request(request({}, ""), both).value()->axes, parse_mesh("x=2").value()->axes);
  EXPECT_TRUE(mesh_of_request(request({}, "x=2"), both).ok());
  EXPECT_THAT(mesh_of_request(request({}, "x=4"), both), refuses(ErrorCode::usage, "of its own"));
}

}  // namespace
}  // namespace hone::HONE_FILE
