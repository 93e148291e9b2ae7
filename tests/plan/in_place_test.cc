#include "plan/in_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.h"
#include "plan/planned.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"
#include "tests/base/says_testing.h"
#include "tests/plan/plan_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;

Target target() { return parse_target(kSampleTarget, "t").value(); }

// %u, %w and %v change something computed, an input that is given up, and one that is not.
constexpr std::string_view kGraph = R"(
graph @g(%x: f32[8], %cache: f32[8] donate 1, %kept: f32[8], %p: f32[2], %at: i32[], %i: i32[3, 1],
         %q: f32[3]) -> (f32[8], f32[8], f32[8], f32[8], f32[8]) {
  %c = constant [1, 2, 3, 4, 5, 6, 7, 8] : f32[8]
  %a = exp %x
  %u = dynamic_update %a, %p, %at
  %n = neg %a
  %s = add %n, %u
  %w = scatter %cache, %i, %q
    {window_dims = [], inserted_dims = [0], index_map = [0], index_vector_dim = 1}
  %v = dynamic_update %kept, %p, %at
  %k = dynamic_update %c, %p, %at
  %m = dynamic_update %w, %p, %at
  return %s, %w, %v, %k, %m
}
)";

std::string error_of(std::string_view entries, std::string_view graph = kGraph) {
  return check_error(parse_graph(graph).value(), entries);
}

TEST(InPlace, IsForUpdatesOfWhatNobodyElseHas) {
  EXPECT_EQ(error_of("in_place %u = yes in_place %w = yes"), "");
  EXPECT_EQ(error_of("in_place %u = no"), "");
  EXPECT_THAT(error_of("in_place %n = yes"), HasSubstr("a neg changes nothing in place"));
  EXPECT_THAT(error_of("in_place %x = yes"), HasSubstr("a parameter changes nothing in place"));
  EXPECT_THAT(error_of("in_place %v = yes"), says("'%kept' ... input of the graph"));
  EXPECT_THAT(error_of("in_place %k = yes"), HasSubstr("'%c' is a constant"));
  EXPECT_THAT(error_of("in_place %m = yes"), says("'%w' ... output of the graph"));
  EXPECT_THAT(error_of("in_place %z = yes"), says("'%z'"));
}

TEST(InPlace, ComesBehindWhatNeedsTheOldValue) {
  constexpr std::string_view others = "in_place %u = yes fuse @u = {%u} fuse @n = {%n} ";
  EXPECT_EQ(error_of(fmt::format("{} order = [@n, @u]", others)), "");
  EXPECT_THAT(error_of(fmt::format("{} order = [@u, @n]", others)),
              says("@u ... @n ... in place ... order"));
  constexpr std::string_view late = R"(graph @g(%x: f32[8], %p: f32[2], %at: i32[]) -> f32[8] {
    %a = exp %x
    %u = dynamic_update %a, %p, %at
    %s = add %a, %u
    return %s
  })";
  EXPECT_THAT(error_of("in_place %u = yes fuse @u = {%u} fuse @s = {%s}", late), says("@u, @s"));
}

TEST(InPlace, RefusesWhatLiesElsewhere) {
  constexpr std::string_view text = R"(
    graph @g(%x: f32[2, 4], %p: f32[2], %at: i32[]) -> (f32[8], f32[8]) {
      %a = exp %x
      %r = reshape %a {dims = [8]}
      %u = dynamic_update %r, %p, %at
      %b = neg %x
      %t = reshape %b {dims = [8]}
      %l = slice %t {start = [2], limit = [4]}
      %v = dynamic_update %t, %l, %at
      %w = dynamic_update %u, %p, %at
      %s = sort %w {axis = 0}
      return %s, %v
    })";
  EXPECT_THAT(error_of("in_place %u = yes view %r = yes", text), HasSubstr("'%r' is a view"));
  EXPECT_EQ(error_of("in_place %u = yes", text), "");
  EXPECT_THAT(error_of("in_place %v = yes view %l = yes", text),
              HasSubstr("it reads '%l', which lies in '%t', too"));
  EXPECT_THAT(error_of("in_place %v = yes layout %v = [0]", text),
              says("other memory ... row-major"));
  EXPECT_THAT(error_of("in_place %w = yes layout %u = [0]", text), says("in place ... row-major"));
  constexpr std::string_view twice = R"(graph @g(%x: f32[8], %p: f32[2], %at: i32[]) -> f32[8] {
    %a = exp %x
    %u = dynamic_update %a, %p, %at
    %v = dynamic_update %a, %p, %at
    %s = add %u, %v
    return %s
  })";
  EXPECT_THAT(error_of("in_place %u = yes in_place %v = yes", twice),
              HasSubstr("'%u' changes '%a' in place, too"));
}

// %v and %n are made of inputs that are given up, element by element; %o is not made of its own.
constexpr std::string_view kGivenUp = R"(
graph @g(%w: f32[8] donate 0, %m: f32[8] donate 1, %old: f32[8] donate 2, %c: f32[8] donate 3,
         %e: f32[8] donate 5, %k: f32[8]) -> (f32[8], f32[8], f32[8], f32[8], f32[8], f32[8]) {
  %n = mul %m, %k
  %v = sub %w, %n
  %o = sort %k {axis = 0}
  %s = cumulative %c {kind = sum, axis = 0}
  %t = exp %e
  return %v, %n, %o, %s, %t, %t
}
)";

TEST(InPlace, OutputsLieInWhatTheyAreMadeOf) {
  EXPECT_EQ(error_of("in_place %v = yes in_place %n = yes in_place %o = yes", kGivenUp), "");
  EXPECT_EQ(error_of("in_place %v = yes in_place %n = yes fuse @k = {%n, %v}", kGivenUp), "");
  EXPECT_THAT(error_of("in_place %s = yes", kGivenUp), says("'%c' ... in_place %s"));
  EXPECT_THAT(error_of("in_place %s = no", kGivenUp), says("node '%s' ... '%c'"));
  // If an output is listed twice, the second is a copy.
  EXPECT_THAT(error_of("in_place %t = yes", kGivenUp), HasSubstr("a exp changes nothing in place"));
  const Graph graph = parse_graph(kGivenUp).value();
  const PlannedGraph planned =
      hone::planned(plan_of("in_place %v = yes in_place %o = yes fuse @k = {%n, %v}"), graph)
          .value();
  const KernelBody body = body_of(planned, Users(graph), planned.steps[0]);
  EXPECT_THAT(body.graph.donations(), testing::ElementsAre(Donation{2, 1}));
  EXPECT_NE(kernel_hash(body), kernel_hash(body_of(graph, planned.steps[0].nodes, {})));
}

TEST(InPlace, RefusesOutputsThatAreMadeOfOtherElements) {
  constexpr std::string_view others = R"(
    graph @g(%w: f32[8] donate 0, %k: f32[8]) -> (f32[8], f32[8]) {
      %n = neg %k
      %v = add %w, %n
      %z = exp %w
      return %v, %z
    })";
  constexpr std::string_view said = "in_place %v = yes fuse @v = {%n, %v} fuse @z = {%z}";
  EXPECT_EQ(error_of(fmt::format("{} order = [@z, @v]", said), others), "");
  EXPECT_THAT(error_of(fmt::format("{} order = [@v, @z]", said), others),
              says("@v ... @z ... in place ... order"));
  EXPECT_EQ(error_of("in_place %v = yes fuse @k = {%n, %v, %z} ", others), "");
  constexpr std::string_view rows = R"(
    graph @g(%w: f32[8] donate 0) -> f32[8] {
      %m = reduce %w {kind = max, axes = [0]}
      %b = broadcast %m {dims = [8], map = []}
      %v = sub %w, %b
      return %v
    })";
  EXPECT_EQ(error_of("in_place %v = yes", rows), "");
  EXPECT_THAT(error_of("in_place %v = yes fuse @k = {%m, %b, %v}", rows),
              says("node '%m' (reduce) ... '%w'"));
  // Only a chain computes both products at once.
  constexpr std::string_view products = R"(
    graph @g(%w: f32[40, 40] donate 0, %x: f32[40, 40]) -> f32[40, 40] {
      %a = dot %x, %x {lhs_contract = [1], rhs_contract = [0]}
      %b = dot %a, %x {lhs_contract = [1], rhs_contract = [0]}
      %v = sub %w, %b
      return %v
    })";
  EXPECT_EQ(error_of("fuse @k = {%a, %b, %v}", products), "");
  EXPECT_EQ(error_of("in_place %v = yes fuse @k = {%b, %v}", products), "");
  EXPECT_THAT(error_of("in_place %v = yes fuse @k = {%a, %b, %v}", products),
              HasSubstr("operations, 2.58e+05 on their own (in_place %v)"));
  constexpr std::string_view view = R"(
    graph @g(%w: f32[8] donate 0) -> f32[8] {
      %r = reshape %w {dims = [2, 4]}
      %q = exp %r
      %b = reshape %q {dims = [8]}
      %v = add %w, %b
      return %v
    })";
  EXPECT_THAT(error_of("in_place %v = yes view %r = yes fuse @k = {%q, %b, %v}", view),
              HasSubstr("it reads '%r', which lies in '%w', too"));
  EXPECT_THAT(error_of("in_place %v = yes", R"(graph @g(%w: f32[8] donate 0) -> (f32[8], f32[8]) {
    %v = neg %w
    return %v, %w
  })"),
              says("'%w' ... output of the graph"));
  EXPECT_THAT(error_of("in_place %v = yes view %v = yes", R"(
    graph @g(%w: f32[8] donate 0, %k: f32[4]) -> f32[8] {
      %a = exp %k
      %b = neg %k
      %v = concat %a, %b {axis = 0}
      return %v
    })"),
              HasSubstr("no kernel computes '%v'"));
}

// The plan of a chain of updates: all lie in the memory of the first, which is the output's.
TEST(InPlace, AChainLiesInOnePlace) {
  const Graph graph = parse_graph(R"(graph @g(%x: f32[8], %p: f32[2], %at: i32[]) -> f32[8] {
    %a = exp %x
    %u = dynamic_update %a, %p, %at
    %v = dynamic_update %u, %p, %at
    %r = reshape %v {dims = [2, 4]}
    %s = neg %r
    return %v
  })")
                          .value();
  const Plan plan = plan_of("in_place %u = yes in_place %v = yes view %r = yes");
  const PlannedGraph planned = hone::planned(plan, graph).value();
  std::map<std::string_view, ValueId> values;
  for (uint32_t i = 0; i < graph.value_count(); ++i)
    values.emplace(graph.name(ValueId{i}), ValueId{i});
  for (const char* name : {"u", "v", "r"}) {
    EXPECT_EQ(planned.base[values.at(name).index], values.at("a")) << name;
    EXPECT_EQ(planned.home[values.at(name).index], Home::view) << name;
  }
  EXPECT_EQ(planned.version[values.at("r").index], values.at("v"));
  EXPECT_EQ(planned.home[values.at("a").index], Home::output);
}

std::string planned_in_place(std::string_view text, std::string_view entries = "") {
  const Graph graph = prepare(parse_graph(text).value()).value();
  const Result<Plan> plan = complete(graph, plan_of(entries), target());
  if (!plan.ok()) return plan.error().to_string();
  std::string result;
  for (const auto& [value, is_in_place] : plan->in_place)
    result += fmt::format("{}{} ", is_in_place ? "" : "not ", value);
  for (const auto& [key, region] : plan->region)
    for (const auto& [value, is_in_place] : region.in_place)
      result += fmt::format("{}: {}{} ", key, is_in_place ? "" : "not ", value);
  return result;
}

TEST(InPlace, ThePlannerTakesWhatIsGivenUp) {
  EXPECT_EQ(planned_in_place(kGivenUp), "n o v ");
  EXPECT_EQ(planned_in_place(kGivenUp, "in_place %v = no"), "n o not v ");
  // Not where the input is needed when the output is there, nor elsewhere in the same kernel.
  EXPECT_EQ(planned_in_place(R"(graph @g(%w: f32[8] donate 0, %k: f32[8]) -> (f32[8], f32[8]) {
    %v = add %w, %k
    %s = sort %v {axis = 0}
    %z = mul %s, %w
    return %v, %z
  })"),
            "");
  constexpr std::string_view rows = R"(
    graph @g(%w: f32[8, 16] donate 0) -> f32[8, 16] {
      %m = reduce %w {kind = max, axes = [1]}
      %b = broadcast %m {dims = [8, 16], map = [0]}
      %v = sub %w, %b
      return %v
    })";
  EXPECT_EQ(planned_in_place(rows), "");
  EXPECT_EQ(planned_in_place(rows, "in_place %v = yes"), "v ");
  // The state of a loop.
  EXPECT_EQ(planned_in_place(R"(graph @g(%x: f32[8], %p: f32[4, 8]) -> f32[8] {
    %f = scan %x, %p {carried = 1} body (%s: f32[8], %r: f32[8]) {
      %n = add %s, %r
      return %n
    }
    return %f
  })"),
            "f.body: n ");
}

// An input becomes an output by all updates in between, or by none.
TEST(InPlace, AnInputIsChangedAllTheWay) {
  constexpr std::string_view text = R"(
    graph @g(%x: f32[8] donate 0, %p: f32[2], %at: i32[]) -> f32[8] {
      %u = dynamic_update %x, %p, %at
      %v = dynamic_update %u, %p, %at
      return %v
    })";
  EXPECT_EQ(error_of("in_place %u = yes in_place %v = yes", text), "");
  EXPECT_EQ(error_of("in_place %v = yes", text), "");
  EXPECT_THAT(error_of("in_place %u = yes", text),
              says("'%v' ... in place ... input '%x' ... output"));
  EXPECT_EQ(planned_in_place(text), "u v ");
  EXPECT_EQ(planned_in_place(text, "in_place %v = no"), "not v ");
  EXPECT_EQ(planned_in_place(text, "in_place %u = no"), "not u v ");
  // Among two updates of one value, at most one is in place, and not the one that leads to the
  // output.
  EXPECT_EQ(planned_in_place(R"(
    graph @g(%x: f32[8] donate 0, %p: f32[2], %at: i32[], %b: i32[]) -> (f32[8], f32[8]) {
      %u = dynamic_update %x, %p, %at
      %v = dynamic_update %u, %p, %at
      %w = dynamic_update %u, %p, %b
      %s = sort %w {axis = 0}
      return %v, %s
    })"),
            "w ");
}

TEST(InPlace, ThePlannerDoesWhatItCan) {
  constexpr std::string_view text = R"(
    graph @g(%x: f32[8], %cache: f32[8] donate 1, %p: f32[2], %at: i32[]) {
      %a = sort %x {axis = 0}
      %n = neg %a
      %u = dynamic_update %a, %p, %at
      %s = sort %u {axis = 0}
      %w = dynamic_update %cache, %p, %at
      return %s, %w, %n
    })";
  EXPECT_EQ(planned_in_place(text), "u w ");
  EXPECT_EQ(planned_in_place(text, "in_place %u = no"), "not u w ");
  EXPECT_EQ(planned_in_place(R"(graph @g(%x: f32[8], %p: f32[2], %at: i32[]) -> f32[8] {
    %a = exp %x
    %u = dynamic_update %a, %p, %at
    %t = sort %u {axis = 0}
    %s = add %a, %t
    return %s
  })"),
            "");
  // The plan's entries are followed, whatever else would be decided.
  constexpr std::string_view said = R"(
    graph @g(%x: f32[2, 4], %p: f32[2], %at: i32[]) -> f32[8] {
      %a = exp %x
      %r = reshape %a {dims = [8]}
      %u = dynamic_update %r, %p, %at
      %n = neg %r
      %b = add %n, %u
      return %b
    })";
  EXPECT_EQ(planned_in_place(said), "");
  EXPECT_EQ(planned_in_place(said, "in_place %u = yes"), "u ");
  EXPECT_EQ(planned_in_place(R"(graph @g(%x: f32[8], %p: f32[2], %at: i32[]) -> f32[8] {
    %a = exp %x
    %u = dynamic_update %a, %p, %at
    return %u
  })",
                             "offset %a = 64"),
            "");
  constexpr std::string_view joined = R"(
    graph @g(%x: f32[8], %p: f32[2], %at: i32[]) -> (f32[16], f32[8]) {
      %a = sort %x {axis = 0}
      %b = cumulative %a {kind = sum, axis = 0}
      %r = concat %a, %b {axis = 0}
      %u = dynamic_update %a, %p, %at
      %t = sort %r {axis = 0}
      %s = sort %u {axis = 0}
      return %t, %s
    })";
  EXPECT_EQ(planned_in_place(joined), "u ");
  EXPECT_EQ(planned_in_place(joined, "view %r = yes"), "");
  // The state of a loop, and one that is needed when it has changed.
  EXPECT_EQ(planned_in_place(R"(graph @g(%x: f32[8], %y: f32[8], %p: f32[4, 2], %at: i32[]) {
    %f, %h, %ys = scan %x, %y, %p {carried = 2} body (%s: f32[8], %t: f32[8], %r: f32[2]) {
      %k = constant 3 : i32[]
      %u = dynamic_update %s, %r, %k
      %v = dynamic_update %t, %r, %k
      %w = sort %v {axis = 0}
      %z = add %w, %t
      return %u, %v, %z
    }
    return %f, %h, %ys
  })"),
            "f.body: u ");
}

}  // namespace
}  // namespace hone::HONE_FILE
