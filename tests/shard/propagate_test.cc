#include "shard/propagate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "front/hlo/hlo.h"
#include "ir/model.h"
#include "ir/text.h"
#include "tests/base/says_testing.h"
#include "tests/shard/shardy_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;
using tested::replaced;
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

// Behind the node that makes a value, axes of it go no way, or one.
TEST(Propagate, StopsAtBarriers) {
  const auto behind = [](std::string_view passes) {
    return propagated(
        fmt::format("graph @g(%x: f32[8, 6] on @m [x open, open]) -> f32[8, 6] "
                    "mesh @m = [x = 2, y = 2] {{\n"
                    "  %y = transpose %x {{permutation = [0, 1]}} : f32[8, 6] "
                    "on @m [open, y open]{}\n"
                    "  return %y\n"
                    "}}\n",
                    passes));
  };
  const auto says = [](std::string_view x, std::string_view y) {
    return testing::AllOf(testing::HasSubstr(fmt::format("%x: f32[8, 6] on @m {})", x)),
                          testing::HasSubstr(fmt::format(": f32[8, 6] on @m {}", y)));
  };
  EXPECT_THAT(behind(""), says("[x open, y open]", "[x open, y open]\n"));
  EXPECT_THAT(behind(" passes forward"), says("[x open, open]", "[x open, y open] passes forward"));
  EXPECT_THAT(behind(" passes backward"), says("[x open, y open]", "[open, y open] passes back"));
  EXPECT_THAT(behind(" passes none"), says("[x open, open]", "[open, y open] passes none"));
}

TEST(Propagate, DividesGroupsAlike) {
  const auto text = [](std::string_view type) {
    return fmt::format(
        "graph @g(%x: f32[8, 6] on @m [x open, open], %y: {} on @m [open, open] group 3, "
        "%s: f32[5, 8, 6]) -> {} mesh @m = [x = 2, y = 2] {{\n"
        "  %a, %b = scan %x, %s {{carried = 1}} body (%c: f32[8, 6], %d: f32[8, 6]) {{\n"
        "    %e = add %c, %d : f32[8, 6] on @m [open, open] group 3\n"
        "    return %e, %e\n"
        "  }} : f32[8, 6], f32[5, 8, 6]\n"
        "  return %y\n"
        "}}\n",
        type, type);
  };
  EXPECT_THAT(propagated(text("f32[8, 6]")),
              testing::HasSubstr("%y: f32[8, 6] on @m [x open, open] group 3"));
  EXPECT_THAT(propagate_shardings(parse_graph(text("f32[8, 5]")).value()),
              refuses(ErrorCode::bad_input, "group 3 ... %y is f32[8, 5] ... f32[8, 6]"));
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

TEST(Propagate, FindsNoConflictAlongAxesOfOneDevice) {
  const Graph graph =
      parse_graph(
          "graph @g(%x: f32[8, 6] on @m [x one, -], %y: f32[8, 6] on @m [x, two]) -> f32[8, 6] "
          "mesh @m = [x = 2, one = 1, two = 1] {\n"
          "  %z = add %x, %y : f32[8, 6] on @m [x, -]\n"
          "  return %z\n"
          "}\n")
          .value();
  EXPECT_TRUE(propagate_shardings(graph).value().conflicts.empty());
}

// Where another axis divides a value, each group along the axis of the conflict has a part of it.
TEST(Propagate, TellsWhatAGroupOfAConflictMoves) {
  const auto conflict = [](std::string_view x, std::string_view y) {
    const Propagation made =
        propagate_shardings(
            parse_graph(fmt::format("graph @g(%x: f32[12, 6] on @m {}) -> f32[12, 6]"
                                    " mesh @m = [x = 2, y = 3] {{\n"
                                    "  %y = tanh %x : f32[12, 6] on @m {}\n"
                                    "  return %y\n"
                                    "}}\n",
                                    x, y))
                .value())
            .value();
    EXPECT_EQ(made.conflicts.size(), 1u);
    return made.conflicts.at(0);
  };
  const ShardingConflict swapped = conflict("[x, y]", "[y, x]");
  EXPECT_EQ(swapped.bytes, 12 * 6 * 4);
  EXPECT_EQ(swapped.group_bytes, 12 * 6 * 4 / 3);
  EXPECT_FALSE(swapped.is_gathered);
  const ShardingConflict gathered = conflict("[x, y]", "[-, y]");
  EXPECT_EQ(gathered.group_bytes, 12 * 6 * 4 / 3);
  EXPECT_TRUE(gathered.is_gathered);
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
  EXPECT_FALSE(made.conflicts[0].is_gathered);
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

// The last dims, as many as Shardy says something of: in front of them a value of a manual
// computation has its device dims.
std::string shardy_dims(const Sharding& sharding, std::string_view want) {
  const auto count = static_cast<size_t>(std::ranges::count(want, '{'));
  std::vector<std::string> dims;
  for (const DimSharding& dim :
       std::span(sharding.dims).last(std::min(count, sharding.dims.size()))) {
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

// "[{"a", ?}, {}]" of "<@m, [{"a", ?}, {}]>", which begins behind the place.
std::string dims_in(std::string_view text, size_t at) {
  const size_t open = text.find('[', text.find('@', at));
  return std::string(text.substr(open, text.find(']', open) - open + 1));
}

// "": nothing is said there.
std::string dims_behind(std::string_view text, size_t at, size_t end) {
  const size_t begin = text.find("sdy.sharding<@", at);
  return begin == text.npos || begin >= end ? "" : dims_in(text, begin);
}

// Shardy marks values that flow into regions and out of them, and through calls; hone knows them by
// itself. A constant of Shardy's own is one like others.
std::string in_ops_of_programs(std::string program) {
  program = replaced(std::move(program), "sdy.constant", "stablehlo.constant");
  program = replaced(std::move(program), "sdy.func_data_flow_edge", "sdy.data_flow_edge");
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
  int compared = 0, stated = 0;  // shardings of ops, inputs and outputs; and all in the text
  std::string differs;
  // At all places that differ each dim has as many parts as in Shardy, or more.
  bool is_as_far = true;
  // And each dim that differs is closed: nothing may be added to what the program states.
  bool is_closed = true;
};

// The parts of "{"a", "b":(2)2, ?}"
int64_t parts_of(std::string_view dim, const Mesh& mesh) {
  int64_t parts = 1;
  for (size_t at = dim.find('"'); at != dim.npos; at = dim.find('"', at + 1)) {
    const size_t end = dim.find('"', at + 1), number = dim.find(')', end);
    const MeshAxis* axis = mesh.find(dim.substr(at + 1, end - at - 1));
    const bool is_part = dim.substr(end + 1, 2) == ":(";
    parts *= is_part ? std::stoll(std::string(dim.substr(number + 1))) : axis->size;
    at = end;
  }
  return parts;
}

std::vector<std::string_view> dims_of(std::string_view sharding) {
  std::vector<std::string_view> dims;
  for (size_t at = sharding.find('{'); at != sharding.npos; at = sharding.find('{', at + 1))
    dims.push_back(sharding.substr(at, sharding.find('}', at) + 1 - at));
  return dims;
}

// Compares what a function says behind the propagation with what is expected of it.
class ShardyComparison {
 public:
  ShardyComparison(const ShardyCase& one, const Graph& graph) : one_(one), graph_(graph) {}

  ShardyOutcome run() {
    for (const std::string& line : one_.expected)
      for (const std::string_view mark : {"sdy.sharding<@", "sharding_per_value<[<@"})
        for (size_t at = line.find(mark); at != line.npos; at = line.find(mark, at + 1))
          outcome_.stated += line.starts_with("CHECK") ? 1 : 0;
    arguments_and_results();
    ops();
    return std::move(outcome_);
  }

 private:
  void expect(const std::string& place, const Sharding* own, const std::string& want) {
    if (want.empty()) return;
    ++outcome_.compared;
    const std::string have = own == nullptr ? "nothing" : shardy_dims(*own, want);
    if (have == want) return;
    outcome_.differs += fmt::format("{}: {}, not {}; ", place, have, want);
    const std::vector<std::string_view> own_dims = dims_of(have), wanted = dims_of(want);
    for (size_t d = 0; d < wanted.size(); ++d) {
      const std::string_view dim = d < own_dims.size() ? own_dims[d] : "{?}";
      const Mesh& mesh = *meshes_of(graph_).front();
      outcome_.is_as_far &= parts_of(dim, mesh) >= parts_of(wanted[d], mesh);
      outcome_.is_closed &= dim == wanted[d] || dim.find('?') == dim.npos;
    }
  }

  std::vector<const Sharding*> of(ValueId v) const {
    return graph_.shardings() == nullptr ? std::vector<const Sharding*>()
                                         : graph_.shardings()->of(v);
  }
  const Sharding* first_of(ValueId v) const { return of(v).empty() ? nullptr : of(v)[0]; }

  void arguments_and_results() {
    std::string text;
    for (const std::string& line : one_.expected)
      if (line.starts_with("CHECK-SAME:") &&
          (line.find("%arg") != line.npos || line.find("tensor<") != line.npos))
        text += line.substr(11) + "\n";
    const size_t results = std::min(text.find("-> "), text.size());
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      const std::string name = fmt::format("%arg{}:", i);
      const size_t at = text.find(name);
      if (at == text.npos || at > results) continue;
      const size_t next = std::min(text.find("%arg", at + 1), results);
      expect(name, first_of(graph_.inputs()[i]), dims_behind(text, at, next));
    }
    size_t at = results;
    for (uint32_t i = 0; i < graph_.outputs().size() && at < text.size(); ++i) {
      at = text.find("tensor<", at + 1);
      const size_t next = std::min(text.find("tensor<", at + 1), text.size());
      const Sharding* own =
          graph_.shardings() == nullptr ? nullptr : graph_.shardings()->of_output(i);
      const std::vector<const Sharding*> found = of(graph_.outputs()[i]);
      if (own == nullptr && !found.empty()) own = found.back();
      expect(fmt::format("result {}", i), own, dims_behind(text, at, next));
    }
  }

  // Ops outside of regions whose names both have, if all of a name are expected.
  void ops() {
    std::map<std::string, std::vector<std::string>, std::less<>> wanted;
    for (const std::string& line : one_.expected) {
      constexpr std::string_view kOf = "stablehlo.";
      const size_t at = line.find(kOf);
      if (!line.starts_with("CHECK") || at == line.npos) continue;
      const size_t name = at + kOf.size();
      const size_t list = line.find("sharding_per_value<[<@");
      wanted[line.substr(name, line.find_first_of(" (", name) - name)].push_back(
          list == line.npos ? "" : dims_in(line, list));
    }
    std::map<std::string_view, std::vector<ValueId>> made;
    for (const NodeId n : graph_.nodes())
      if (graph_.results(n).size() == 1 && !graph_.operands(n).empty())
        made[name(graph_.opcode(n))].push_back(graph_.result(n));
    for (const auto& [op, values] : made) {
      const auto found = wanted.find(op);
      if (found == wanted.end() || found->second.size() != values.size()) continue;
      for (size_t i = 0; i < values.size(); ++i)
        expect(graph_.label(values[i]), first_of(values[i]), found->second[i]);
    }
  }

  const ShardyCase& one_;
  const Graph& graph_;
  ShardyOutcome outcome_;
};

ShardyOutcome compare_case(const ShardyCase& one, bool is_cautious) {
  const Result<Model> model = parse_hlo(in_ops_of_programs(one.program), one.name);
  if (!model.ok()) return {.differs = fmt::format("refused: {}", model.error().what())};
  const Graph& graph = *single_graph(*model);
  if (meshes_of(graph).empty()) return {};
  const Result<Propagation> made = propagate_shardings(graph, {.is_cautious = is_cautious});
  if (!made.ok()) return {.differs = fmt::format("refused: {}", made.error().what())};
  return ShardyComparison(one, made->graph).run();
}

// Why another outcome is as good. The test sees to it that the reason holds.
enum class Because : uint8_t {
  as_far,  // each dim is divided as far, or farther
  closed,  // the program states it of the value itself, and closes it
  rule,    // the program states a rule of its own for an op; hone's follow from what ops do
  call,    // a program is what its function calls; another function has the rest of the group
};

bool holds(Because why, const ShardyCase& one, const ShardyOutcome& outcome) {
  const auto has = [&](std::string_view text) {
    return one.program.find(text) != std::string::npos;
  };
  switch (why) {
    case Because::as_far: return outcome.is_as_far;
    case Because::closed: return outcome.is_closed;
    case Because::rule: return has("sdy.sharding_rule");
    case Because::call: {
      const size_t first = one.program.find("sdy.sharding_group");
      return first != one.program.npos &&
             one.program.find("sdy.sharding_group", first + 1) == one.program.npos;
    }
  }
  return false;
}

// Cases by name: `others` have another outcome; `refused` end with an error that says this. All
// that have no name here are equal.
struct ShardyExpectation {
  std::map<std::string, Because> others = {};
  std::map<std::string, std::string> refused = {};
  bool has_values = true;  // that can be compared
};

void expect_as_shardy(std::string_view file, bool is_cautious,
                      const ShardyExpectation& expectation) {
  const std::optional<std::vector<ShardyCase>> cases = tested::shardy_cases(file);
  if (!cases) GTEST_SKIP() << "../shared/data/shardy is not here";
  constexpr std::string_view kRefused = "refused: ";
  int equal = 0, stated = 0;
  std::set<std::string> found;
  for (const ShardyCase& one : *cases) {
    const ShardyOutcome outcome = compare_case(one, is_cautious);
    if (outcome.differs.empty()) {
      equal += outcome.compared;
      stated += outcome.stated;
      continue;
    }
    found.insert(one.name);
    const auto refused = expectation.refused.find(one.name);
    if (refused != expectation.refused.end()) {
      EXPECT_THAT(outcome.differs, testing::AllOf(testing::StartsWith(std::string(kRefused)),
                                                  testing::HasSubstr(refused->second)))
          << one.name;
      continue;
    }
    EXPECT_FALSE(outcome.differs.starts_with(kRefused)) << one.name << ": " << outcome.differs;
    const auto other = expectation.others.find(one.name);
    ASSERT_NE(other, expectation.others.end()) << one.name << ": " << outcome.differs;
    EXPECT_TRUE(holds(other->second, one, outcome)) << one.name << ": " << outcome.differs;
  }
  for (const auto& [name, why] : expectation.others)
    EXPECT_TRUE(found.contains(name)) << name << " is as in Shardy";
  for (const auto& [name, why] : expectation.refused)
    EXPECT_TRUE(found.contains(name)) << name << " is as in Shardy: " << why;
  // Some ops become several ones, or none. Most are compared.
  if (expectation.has_values) EXPECT_GE(3 * equal, 2 * stated) << equal << " of " << stated;
}

TEST(Propagate, IsAsCautiousAsShardy) {
  expect_as_shardy(
      "basic_propagation.mlir", true,
      {.others = {{"main", Because::closed},
                  {"propagate_from_sharding_constraint", Because::closed},
                  {"direct_arg_return_sharding_on_arg", Because::closed},
                  {"custom_call_custom_rule", Because::rule},
                  {"blocked_propagation_factor", Because::rule},
                  {"propagate_to_empty_mesh_with_partially_open_sharding", Because::closed}},
       .refused = {{"dynamic_shaped_func_output_skipped", "has symbols"},
                   {"do_not_propagate_along_maximal_mesh", "ops that hone does not have"},
                   {"source_result_different_meshes_not_propagated", "of two meshes"},
                   {"operands_different_meshes_not_propagated", "of two meshes"},
                   {"different_meshes_and_empty_mesh_not_propagated", "of two meshes"},
                   {"scalar_block_arg_with_sharding_constraint", "within a body of scalars"}}});
}

TEST(Propagate, GoesThroughControlFlowAsInShardy) {
  expect_as_shardy("basic_propagation_data_flow_edges.mlir", true,
                   {.others = {{"case_closed_sharding", Because::as_far},
                               {"while_result_use", Because::closed},
                               {"main.3", Because::closed},
                               {"main.4", Because::closed}}});
}

TEST(Propagate, PutsOpsThatMoveNothingFirstAsShardyDoes) {
  expect_as_shardy("op_priority_propagation.mlir", false, {});
}

TEST(Propagate, DividesGroupsAlikeAsShardyDoes) {
  expect_as_shardy("sharding_group_propagation.mlir", true,
                   {.others = {{"shard_as_applies_across_functionB", Because::call},
                               {"add_extra_sharding_constraint_for_incompatible_shardings_with_"
                                "sharding_constraint",
                                Because::closed}}});
}

// Without parts of axes, Shardy leaves more whole.
TEST(Propagate, TakesPartsOfAxesWhereShardyIsConservative) {
  expect_as_shardy("basic_propagation_conservative.mlir", true,
                   {.others = {{"multi_axis_major_dim_not_fully_sharded", Because::as_far},
                               {"slice", Because::as_far}}});
}

// These programs are read without an error. Tokens are no inputs, so nothing is compared.
TEST(Propagate, SkipsTokensAsShardyDoes) {
  expect_as_shardy("basic_propagation_token.mlir", true, {.has_values = false});
}

// Rules follow from ops; a program may state others, which are passed over.
TEST(Propagate, TakesNoRulesFromPrograms) {
  expect_as_shardy("basic_propagation_keep_sharding_rules.mlir", true, {.has_values = false});
}

}  // namespace
}  // namespace hone::HONE_FILE
