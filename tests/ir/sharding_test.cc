#include "ir/sharding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/graph_copy.h"
#include "ir/text.h"
#include "tests/base/says_testing.h"

// Shardings of values: what graphs carry, their text, and what is refused.

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

constexpr std::string_view kGraph =
    "graph @g(%x: f32[8, 6] on @m [x y:(2)2 open, -] donate 0, %y: f32[6, 4]) -> "
    "(f32[8, 6], f32[8, 4]) where N in 1..8 mesh @m = [x = 2, y = 4, \"z-z\" = 3], "
    "@\"odd mesh\" = [] devices [5], @n = [\"open\" = 2] devices [1, 0] {\n"
    "  %a = neg %x : f32[8, 6] on @m [open, x priority 2] replicated [y:(1)2, \"z-z\"] "
    "partial max [y:(2)2] group 3 passes forward on @\"odd mesh\" [-, -]\n"
    "  %c = constant 1 : f32[8, 6] on @n [\"open\" open, -]\n"
    "  %d = dot %a, %y {lhs_contract = [1], rhs_contract = [0]} : f32[8, 4]\n"
    "  return %a on @m [y:(1)2 x, -], %d\n"
    "}\n";

std::string text_of(std::string_view text) {
  std::string made(text);
  const size_t at = made.find(" where N in 1..8");
  if (at != std::string::npos) made.erase(at, 16);
  return made;
}

TEST(Shardings, ComeBackFromTheTextOfAGraph) {
  const std::string text = text_of(kGraph);
  const Result<Graph> graph = parse_graph(text);
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  ASSERT_TRUE(verify(*graph).ok()) << verify(*graph).error().to_string();
  EXPECT_EQ(print(*graph), text);
  const Shardings& all = *graph->shardings();
  ASSERT_EQ(all.values.size(), 4u);
  const std::vector<const Sharding*> of_x = all.of(graph->inputs()[0]);
  ASSERT_EQ(of_x.size(), 1u);
  EXPECT_EQ(of_x[0]->dims[0].axes, (std::vector<AxisPart>{{"x"}, {"y", 2, 2}}));
  EXPECT_TRUE(of_x[0]->dims[0].is_open);
  EXPECT_EQ(of_x[0]->mesh->device_count(), 24);
  EXPECT_EQ(all.of_output(0)->dims[0].axes.size(), 2u);
  EXPECT_EQ(all.of_output(1), nullptr);
}

// Regions use the meshes of their graph.
TEST(Shardings, StandInRegionsToo) {
  const std::string text =
      "graph @g(%p: bool[], %x: f32[4]) -> f32[4] mesh @m = [x = 2] {\n"
      "  %r = if %p, %x then (%a: f32[4] on @m [x]) {\n"
      "    %n = neg %a : f32[4] on @m [-]\n"
      "    return %n\n"
      "  } else (%a: f32[4]) {\n"
      "    return %a on @m [x]\n"
      "  } : f32[4]\n"
      "  return %r\n"
      "}\n";
  const Result<Graph> graph = parse_graph(text);
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  EXPECT_TRUE(verify(*graph).ok());
  EXPECT_EQ(print(*graph), text);
}

TEST(Shardings, FollowTheValuesOfACopy) {
  const Graph graph = parse_graph(text_of(kGraph)).value();
  GraphCopy copy(graph);
  for (const NodeId n : graph.nodes())
    if (graph.opcode(n) != Opcode::constant) ASSERT_TRUE(copy.node(n).ok());
  const Graph made = copy.finish();
  EXPECT_TRUE(verify(made).ok());
  EXPECT_EQ(made.shardings()->values.size(), 3u) << "the constant is left out";
  EXPECT_EQ(made.shardings()->outputs, graph.shardings()->outputs);
  EXPECT_EQ(*specialize(graph, {}).value().shardings(), *graph.shardings());
  EXPECT_EQ(structural_hash(graph),
            structural_hash(parse_graph("graph @g(%x: f32[8, 6] donate 0, %y: f32[6, 4]) -> "
                                        "(f32[8, 6], f32[8, 4]) {\n"
                                        "  %a = neg %x\n"
                                        "  %d = dot %a, %y {lhs_contract = [1], "
                                        "rhs_contract = [0]}\n"
                                        "  return %a, %d\n}\n")
                                .value()))
      << "they change no number";
}

Result<Graph> with(std::string_view sharding, std::string_view meshes = "@m = [x = 2, y = 4]") {
  return parse_graph(fmt::format("graph @g(%x: f32[8, 6] on {}) -> f32[8, 6] mesh {} {{\n"
                                 "  return %x\n}}\n",
                                 sharding, meshes),
                     {.file = "g"});
}

TEST(Shardings, RefuseWhatDoesNotFit) {
  EXPECT_TRUE(with("@m [x, y]").ok());
  EXPECT_TRUE(with("@m [y:(2)2, y:(1)2]").ok());
  EXPECT_THAT(with("@q [x, -]"), refuses(ErrorCode::bad_input, "g:1:27 ... 'q' is not declared"));
  EXPECT_THAT(with("@m [x]"), refuses(ErrorCode::bad_input, "g:1:27 ... 1 dims ... f32[8, 6]"));
  EXPECT_THAT(with("@m [z, -]"), refuses(ErrorCode::bad_input, "g:1:27 ... no axis 'z'"));
  EXPECT_THAT(with("@m [x, x]"), refuses(ErrorCode::bad_input, "g:1:27 ... 'x' is used twice"));
  EXPECT_THAT(with("@m [y:(1)2, y:(1)4]"), refuses(ErrorCode::bad_input, "'y' is used twice"));
  EXPECT_THAT(with("@m [x, -] replicated [x]"), refuses(ErrorCode::bad_input, "used twice"));
  EXPECT_THAT(with("@m [y:(3)2, -]"), refuses(ErrorCode::bad_input, "no part (3)2"));
  EXPECT_THAT(with("@m [y:(1)0, -]"), refuses(ErrorCode::bad_input, "size 0"));
  EXPECT_THAT(with("@m [x priority -1, -]"), refuses(ErrorCode::bad_input, "priority -1"));
  EXPECT_THAT(with("@m [x, -] partial mean [y]"),
              refuses(ErrorCode::bad_input, "sum, max or min ... mean"));
  EXPECT_THAT(with("@m [x, -] group -1"), refuses(ErrorCode::bad_input, "-1 is outside of 0.."));
  EXPECT_THAT(with("@m [x, -] passes both"),
              refuses(ErrorCode::bad_input, "forward, backward or none ... both"));
  EXPECT_THAT(with("@m [x, -]", "@m = [x = 2, x = 4]"),
              refuses(ErrorCode::bad_input, "two axes 'x'"));
  EXPECT_THAT(with("@m [x, -]", "@m = [x = 0]"), refuses(ErrorCode::bad_input, "'x' ... size 0"));
  EXPECT_THAT(with("@m [x, -]", "@m = [x = 2] devices [0, 0]"),
              refuses(ErrorCode::bad_input, "different"));
  EXPECT_THAT(with("@m [x, -]", "@m = [x = 2] devices [0]"),
              refuses(ErrorCode::bad_input, "lists 1 devices"));
  EXPECT_THAT(with("@m [x, -]", "@m = [x = 9999999, y = 9999999]"),
              refuses(ErrorCode::limit, "devices"));
  EXPECT_THAT(with("@m [x, -]", "@m = [x = 2], @m = [x = 2]"),
              refuses(ErrorCode::bad_input, "declared twice"));
  EXPECT_THAT(with("@m [x"), refuses(ErrorCode::bad_input, "g:1"));
}

TEST(Shardings, OfTwoMeshesOfOneNameDoNotVerify) {
  Graph graph = parse_graph("graph @g(%x: f32[8]) -> f32[8] {\n  return %x\n}\n").value();
  auto all = std::make_shared<Shardings>();
  const auto mesh = [](int64_t size) {
    return std::make_shared<const Mesh>(Mesh{"m", {{"x", size}}});
  };
  all->add(graph.inputs()[0], {.mesh = mesh(2), .dims = {{.axes = {{"x"}}}}});
  all->add(graph.inputs()[0], {.mesh = mesh(2), .dims = {{.axes = {{"x"}}}}});
  EXPECT_EQ(all->values.size(), 1u);
  all->add(graph.inputs()[0], {.mesh = mesh(4), .dims = {{.axes = {{"x"}}}}});
  graph.set_shardings(all);
  EXPECT_THAT(verify(graph), refuses(ErrorCode::bad_input, "two meshes 'm'"));
}

}  // namespace
}  // namespace hone::HONE_FILE
