#include "plan/copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.h"
#include "plan/planned.h"
#include "tests/base/says_testing.h"
#include "tests/plan/plan_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;

// %x and the output %a are row-major; %u changes %e in place.
constexpr std::string_view kGraph = R"(graph @g(%x: f32[4, 8], %p: bool[], %at: i32[],
                                                %v: f32[1, 8])
    -> (f32[4, 8], f32[4, 8], f32[4, 8], f32[4, 8], f32[4, 8]) {
  %w = constant [1, 2, 3, 4, 5, 6, 7, 8] : f32[2, 4]
  %one = constant 1 : f32[]
  %zero = constant 0 : i32[]
  %a = exp %x
  %b = neg %a
  %c = add %a, %x
  %wt = transpose %w {permutation = [1, 0]}
  %d = dot %w, %x {lhs_contract = [1], rhs_contract = [0]}
  %h = dot %wt, %d {lhs_contract = [1], rhs_contract = [0]}
  %o = broadcast %one {dims = [4, 8], map = []}
  %e = mul %h, %o
  %u = dynamic_update %e, %v, %at, %zero
  %n = neg %e
  %s, %places = sort %x, %e {axis = 0}
  %if = if %p, %x then (%t: f32[4, 8]) { return %t } else (%t: f32[4, 8]) { return %t }
  %f = add %u, %n
  %q = add %f, %s
  return %a, %b, %c, %q, %if
})";

Graph graph() { return parse_graph(kGraph).value(); }
std::string error_of(std::string_view entries) { return check_error(graph(), entries); }

// The graph with the copies.
std::string text_with(std::string_view entries) {
  const Graph given = graph();
  const Result<GraphRef> result = with_copies(given, plan_of(entries).copy);
  if (!result.ok()) return result.error().to_string();
  const Status good = verify(**result);
  EXPECT_TRUE(good.ok()) << good.error().to_string();
  return print(**result);
}

TEST(Copies, AreNodesBeforeTheFirstReader) {
  EXPECT_EQ(text_with(""), print(graph()));
  const std::string text = text_with("copy %x.last = %x for [%c, %if] copy %a.2 = %a for [%c]");
  EXPECT_THAT(text, HasSubstr("%x.last = transpose %x {permutation = [0, 1]}"));
  EXPECT_THAT(text, HasSubstr("%c = add %a.2, %x.last"));
  EXPECT_THAT(text, HasSubstr("%if = if %p, %x.last"));
  EXPECT_THAT(text, HasSubstr("%a = exp %x "));
  EXPECT_LT(text.find("%b = neg"), text.find("%x.last ="));
}

TEST(Copies, OfConstantsAreConstants) {
  EXPECT_THAT(text_with("copy %k = %w for [%d]"),
              HasSubstr("%k = constant [1, 2, 3, 4, 5, 6, 7, 8]"));
  EXPECT_EQ(error_of("copy %k = %w for [%d] layout %k = [1, 0]"), "");
  EXPECT_THAT(error_of("copy %k = %w for [%wt, %d] layout %w = [1, 0]"),
              says("memory ... kernel ... layout %w"));
  EXPECT_THAT(error_of("copy %k = %w for [%d] fuse @k = {%k}"), HasSubstr("'%k' is a constant"));
  EXPECT_THAT(error_of("copy %k = %w for [%d] offset %k = 0"), says("constant ... arena"));
}

// Where inputs and outputs are row-major, a copy may lie as it likes.
TEST(Copies, AreValuesLikeOthers) {
  EXPECT_THAT(error_of("layout %x = [1, 0]"), says("input of the graph ... row-major"));
  EXPECT_EQ(error_of("copy %x.t = %x for [%c] layout %x.t = [1, 0] offset %x.t = 64 "
                     "fuse @k = {%x.t} order = [@k, %if]"),
            "");
  EXPECT_EQ(error_of("copy %a.t = %a for [%b, %c] layout %a.t = [0, 1/4, 1%4] "
                     "fuse @k = {%a, %a.t} fuse @l = {%b, %c}"),
            "");
  EXPECT_THAT(error_of("copy %x.t = %x for [%c] layout %x.t = [1]"), HasSubstr("(layout %x.t)"));
  EXPECT_THAT(error_of("copy %x.t = %x for [%if] layout %x.t = [1, 0]"),
              HasSubstr("%if reads it row-major (layout %x.t)"));
  EXPECT_THAT(error_of("copy %x.t = %x for [%c] view %x.t = yes"),
              says("transpose ... memory of its own"));
  EXPECT_THAT(error_of("copy %x.t = %x for [%c] fuse @k = {%c, %x.t}"), says("'%x.t' ... '%c'"));
}

TEST(Copies, ReadWhatAnUpdateChangesBeforeItDoes) {
  constexpr std::string_view plan =
      "copy %e.n = %e for [%n, %s] in_place %u = yes fuse @k = {%e.n} fuse @n = {%n} fuse @u = "
      "{%u} ";
  EXPECT_EQ(error_of(fmt::format("{} order = [@k, @u, @n]", plan)), "");
  EXPECT_THAT(error_of(fmt::format("{} order = [@u, @k]", plan)),
              says("@u ... @k ... in place ... order"));
  // The changed value may be a copy, and so an input or output, too.
  EXPECT_EQ(error_of("copy %e.u = %e for [%u] in_place %u = yes"), "");
}

TEST(Copies, Refusals) {
  EXPECT_THAT(error_of("copy %k = %xx for [%a]"), says("'%xx' ... copy %k"));
  EXPECT_THAT(error_of("copy %a = %x for [%c]"), says("name ... copy %a"));
  EXPECT_THAT(error_of("copy %k = %one for [%o]"),
              says("'%one' ... constant of one element ... copy %k"));
  EXPECT_THAT(error_of("copy %k = %x for [%z]"), says("'%z' ... copy %k"));
  EXPECT_THAT(error_of("copy %k = %x for [%places]"), says("'%places' ... result 1 ... '%s'"));
  EXPECT_THAT(error_of("copy %k = %x for [%b]"), HasSubstr("'%b' does not read '%x' (copy %k)"));
  EXPECT_THAT(error_of("copy %k = %x for [%c, %c]"), says("'%c' ... twice ... copy %k"));
  EXPECT_THAT(error_of("copy %k = %x for [%c] copy %l = %x for [%a, %c]"),
              HasSubstr("'%c' reads '%k', another copy of '%x' (copy %l)"));
  EXPECT_THAT(error_of("copy %k = %x for [%c] copy %l = %k for [%c]"),
              says("'%k' ... copy ... copy %l"));
  EXPECT_THAT(error_of("copy %k = %x for [%c] copy %l = %a for [%k]"), says("'%k' ... copy %l"));
  Plan plan;
  plan.copy["k"] = {"x", {}};
  EXPECT_THAT(check(plan, graph(), parse_target(kSampleTarget, "t").value()).error().to_string(),
              HasSubstr("nothing reads it (copy %k)"));
  EXPECT_THAT(error_of("region %if.then { copy %k = %x for [%c] }"),
              says("'%x' ... region %if.then, copy %k"));
}

}  // namespace
}  // namespace hone::HONE_FILE
