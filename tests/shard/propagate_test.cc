#include "shard/propagate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "front/hlo/hlo.h"
#include "ir/model.h"
#include "ir/text.h"
#include "tests/base/says_testing.h"
#include "tests/shard/shardy_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;
using tested::ShardyCase;

std::string propagated(std::string_view text, bool is_cautious = false) {
  const Result<Graph> graph = parse_graph(text);
  if (!graph.ok()) return graph.error().to_string();
  const Result<Propagation> made = propagate_shardings(*graph, {.is_cautious = is_cautious});
  if (!made.ok()) return made.error().to_string();
  EXPECT_TRUE(verify(made->graph).ok()) << verify(made->graph).error().to_string();
  return print(made->graph);
}

TEST(Propagate, GoesBothWays) {
  EXPECT_EQ(propagated("graph @g(%x: f32[8, 6] on @m [x, -], %w: f32[6, 4]) -> f32[8, 4] "
                       "mesh @m = [x = 2, y = 4] {\n"
                       "  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]} : f32[8, 4]\n"
                       "  %y = neg %h : f32[8, 4] on @m [open, y open]\n"
                       "  return %y\n"
                       "}\n"),
            "graph @g(%x: f32[8, 6] on @m [x, -], %w: f32[6, 4] on @m [open, y open]) -> f32[8, 4] "
            "mesh @m = [x = 2, y = 4] {\n"
            "  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]} : f32[8, 4] "
            "on @m [x open, y open]\n"
            "  %y = neg %h : f32[8, 4] on @m [x open, y open]\n"
            "  return %y\n"
            "}\n");
}

TEST(Propagate, GoesThroughLoops) {
  const std::string text = propagated(
      "graph @g(%x: f32[8] on @m [x], %s: f32[5, 8]) -> f32[8] mesh @m = [x = 2] {\n"
      "  %a, %b = scan %x, %s {carried = 1} body (%c: f32[8], %d: f32[8]) {\n"
      "    %e = add %c, %d\n"
      "    return %e, %e\n"
      "  } : f32[8], f32[5, 8]\n"
      "  return %a\n"
      "}\n");
  for (const std::string_view part :
       {"%s: f32[5, 8] on @m [open, x open]", "%c: f32[8] on @m [x open]",
        "%d: f32[8] on @m [x open]", "f32[8] on @m [x open], f32[5, 8] on @m [open, x open]"})
    EXPECT_THAT(text, testing::HasSubstr(part)) << text;
}

// A dim of priority 1 waits, and takes what is left.
TEST(Propagate, GoesByPriority) {
  EXPECT_EQ(propagated("graph @g(%x: f32[8, 6] on @m [open, x open priority 1], "
                       "%y: f32[8, 6] on @m [x open, open]) -> f32[8, 6] mesh @m = [x = 2] {\n"
                       "  %z = add %x, %y : f32[8, 6]\n"
                       "  return %z\n"
                       "}\n"),
            "graph @g(%x: f32[8, 6] on @m [x open, open priority 1], "
            "%y: f32[8, 6] on @m [x open, open]) -> f32[8, 6] mesh @m = [x = 2] {\n"
            "  %z = add %x, %y : f32[8, 6] on @m [x open, open]\n"
            "  return %z\n"
            "}\n");
}

TEST(Propagate, TellsConflicts) {
  const Graph graph =
      parse_graph(
          "graph @g(%x: f32[8, 6] on @m [x, -], %y: f32[8, 6] on @m [-, x]) -> f32[8, 6] "
          "mesh @m = [x = 2] {\n"
          "  %z = add %x, %y : f32[8, 6] on @m [x, -]\n"
          "  return %z\n"
          "}\n")
          .value();
  const Propagation made = propagate_shardings(graph).value();
  ASSERT_EQ(made.conflicts.size(), 1u);
  const ShardingConflict& one = made.conflicts[0];
  EXPECT_EQ(one.node, "node '%z' (add)");
  EXPECT_EQ(one.other.value, "%y");
  EXPECT_EQ(one.other.because, "stated");
  EXPECT_EQ(one.kept.value, "%z");
  EXPECT_EQ(one.kept.dims, "[x, -]");
  EXPECT_EQ(one.bytes, 8 * 6 * 4);
}

// Devices along `x` alone exchange the value: the other axis is in no conflict.
TEST(Propagate, TellsTheAxesOfAConflict) {
  const Graph graph =
      parse_graph(
          "graph @g(%x: f32[8, 6] on @m [x, -], %y: f32[8, 6] on @m [-, x]) -> f32[8, 6] "
          "mesh @m = [y = 4, x = 2] {\n"
          "  %z = add %x, %y : f32[8, 6] on @m [x, -]\n"
          "  return %z\n"
          "}\n")
          .value();
  const Propagation made = propagate_shardings(graph).value();
  ASSERT_EQ(made.conflicts.size(), 1u);
  EXPECT_EQ(made.conflicts[0].axes, MeshParts({{.axis = 1, .before = 1, .size = 2}}));
  ASSERT_NE(made.mesh, nullptr);
  EXPECT_EQ(*made.mesh, *meshes_of(graph)[0]);
}

TEST(Propagate, TakesAMeshWithoutAxesAsWhole) {
  EXPECT_EQ(propagated("graph @g(%x: f32[8] on @e [-], %y: f32[8] on @m [x]) -> f32[8] "
                       "mesh @e = [], @m = [x = 2] {\n"
                       "  %z = add %x, %y : f32[8]\n"
                       "  return %z\n"
                       "}\n"),
            "graph @g(%x: f32[8] on @m [-], %y: f32[8] on @m [x]) -> f32[8] mesh @m = [x = 2] {\n"
            "  %z = add %x, %y : f32[8] on @m [x open]\n"
            "  return %z\n"
            "}\n");
}

TEST(Propagate, RefusesWhatHasNoMesh) {
  EXPECT_THAT(propagate_shardings(
                  parse_graph("graph @g(%x: f32[8]) -> f32[8] {\n  return %x\n}\n").value()),
              refuses(ErrorCode::bad_input, "graph 'g'"));
  EXPECT_THAT(propagate_shardings(
                  parse_graph("graph @g(%x: f32[8] on @m [x], %y: f32[8] on @n [x]) -> f32[8] "
                              "mesh @m = [x = 2], @n = [x = 4] {\n  return %x\n}\n")
                      .value()),
              refuses(ErrorCode::unsupported, "two meshes ... 'm' ... 'n'"));
}

// ---- The cases of Shardy ------------------------------------------------------------------------

std::string shardy_dims(const Sharding& sharding) {
  std::vector<std::string> dims;
  for (const DimSharding& dim : sharding.dims) {
    std::vector<std::string> axes;
    for (const AxisPart& part : dim.axes)
      axes.push_back(part.size == 0
                         ? fmt::format("\"{}\"", part.axis)
                         : fmt::format("\"{}\":({}){}", part.axis, part.before, part.size));
    if (dim.is_open) axes.emplace_back("?");
    dims.push_back(fmt::format("{{{}}}", join(axes, ", ")));
  }
  return fmt::format("[{}]", join(dims, ", "));
}

// "[{"a", ?}, {}]" behind the place; "": nothing is said there.
std::string dims_behind(std::string_view text, size_t at, size_t end) {
  const size_t begin = text.find("sdy.sharding<@", at);
  if (begin == text.npos || begin >= end) return "";
  const size_t open = text.find('[', begin);
  return std::string(text.substr(open, text.find(']', open) - open + 1));
}

// Shardy marks values that flow into regions and out of them; hone knows them by itself.
std::string without_edges(const std::string& program) {
  constexpr std::string_view kEdge = "sdy.data_flow_edge ";
  std::string made;
  for (const std::string_view line : split_lines(program)) {
    const size_t at = line.find(kEdge);
    const size_t stated = line.find(" sharding=");
    if (at == line.npos)
      made += fmt::format("{}\n", line);
    else if (stated == line.npos)
      made += fmt::format("{}stablehlo.optimization_barrier {}\n", line.substr(0, at),
                          line.substr(at + kEdge.size()));
    else
      made += fmt::format("{}sdy.sharding_constraint {} {}\n", line.substr(0, at),
                          line.substr(at + kEdge.size(), stated - at - kEdge.size()),
                          line.substr(stated + 10));
  }
  return made;
}

struct ShardyOutcome {
  int compared = 0;
  std::string differs;
};

// Compares the arguments and the results of the function.
ShardyOutcome compare_case(const ShardyCase& one, bool is_cautious) {
  std::string text;
  for (const std::string& line : one.expected)
    if (line.starts_with("CHECK-SAME:") &&
        (line.find("%arg") != line.npos || line.find("tensor<") != line.npos))
      text += line.substr(11) + "\n";
  const Result<Model> model = parse_hlo(without_edges(one.program), one.name);
  if (!model.ok()) return {.differs = fmt::format("refused: {}", model.error().what())};
  const Graph& graph = *single_graph(*model);
  if (meshes_of(graph).empty()) return {};
  const Result<Propagation> made = propagate_shardings(graph, {.is_cautious = is_cautious});
  if (!made.ok()) return {.differs = fmt::format("refused: {}", made.error().what())};
  const Shardings* all = made->graph.shardings();
  ShardyOutcome outcome;
  const auto expect = [&](const std::string& place, const Sharding* own, const std::string& want) {
    if (want.empty()) return;
    ++outcome.compared;
    const std::string have = own == nullptr ? "nothing" : shardy_dims(*own);
    if (have != want) outcome.differs += fmt::format("{}: {}, not {}; ", place, have, want);
  };
  const size_t results = std::min(text.find("-> "), text.size());
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const std::string name = fmt::format("%arg{}:", i);
    const size_t at = text.find(name);
    if (at == text.npos || at > results) continue;
    const size_t next = std::min(text.find("%arg", at + 1), results);
    const std::vector<const Sharding*> found =
        all == nullptr ? std::vector<const Sharding*>() : all->of(made->graph.inputs()[i]);
    expect(name, found.empty() ? nullptr : found[0], dims_behind(text, at, next));
  }
  size_t at = results;
  for (uint32_t i = 0; i < graph.outputs().size() && at < text.size(); ++i) {
    at = text.find("tensor<", at + 1);
    const size_t next = std::min(text.find("tensor<", at + 1), text.size());
    const Sharding* own = all == nullptr ? nullptr : all->of_output(i);
    const std::vector<const Sharding*> found =
        all == nullptr ? std::vector<const Sharding*>() : all->of(made->graph.outputs()[i]);
    if (own == nullptr && !found.empty()) own = found.back();
    expect(fmt::format("result {}", i), own, dims_behind(text, at, next));
  }
  return outcome;
}

// Ops and forms that hone does not have; two meshes at once are not handled.
constexpr std::string_view kRefused[] = {
    "ops that hone does not have", "of two meshes",        "has symbols",
    "there is no function",        "several may be meant", "within a body of scalars"};

// `others`: cases with another outcome, and why that is as good.
void expect_as_shardy(std::string_view file, bool is_cautious, int least,
                      const std::map<std::string, std::string>& others) {
  const std::optional<std::vector<ShardyCase>> cases = tested::shardy_cases(file);
  if (!cases) GTEST_SKIP() << "../shared/data/shardy is not here";
  int equal = 0;
  for (const ShardyCase& one : *cases) {
    const ShardyOutcome outcome = compare_case(one, is_cautious);
    equal += outcome.differs.empty() ? outcome.compared : 0;
    const bool is_refused = std::ranges::any_of(kRefused, [&](std::string_view reason) {
      return outcome.differs.starts_with("refused: ") &&
             outcome.differs.find(reason) != std::string::npos;
    });
    EXPECT_EQ(outcome.differs.empty() || is_refused, !others.contains(one.name))
        << one.name << ": " << outcome.differs;
  }
  EXPECT_GE(equal, least);
}

TEST(Propagate, IsAsCautiousAsShardy) {
  expect_as_shardy(
      "basic_propagation.mlir", true, 50,
      {{"propagate_from_sharding_constraint", "a constraint is of the value itself: it is closed"},
       {"direct_arg_return_sharding_on_arg", "the output is the argument itself: it is closed"},
       {"custom_call_custom_rule", "a rule that the program states"},
       {"blocked_propagation_factor", "a rule that the program states"},
       {"propagate_to_empty_mesh_with_partially_open_sharding", "a dim that is closed stays so"}});
}

TEST(Propagate, GoesThroughControlFlowAsInShardy) {
  expect_as_shardy(
      "basic_propagation_data_flow_edges.mlir", true, 40,
      {{"case_closed_sharding", "the closed argument is outside of the branch, which is open"},
       {"while_result_use", "the output is the argument itself: it is closed"},
       {"manual_computation_update_in_sharding_edge", "sdy.manual_computation is not read"},
       {"manual_computation_update_out_sharding_edge", "sdy.manual_computation is not read"}});
}

TEST(Propagate, PutsOpsThatMoveNothingFirstAsShardyDoes) {
  expect_as_shardy("op_priority_propagation.mlir", false, 10,
                   {{"manual_computation", "sdy.manual_computation is not read"}});
}

}  // namespace
}  // namespace hone::HONE_FILE
