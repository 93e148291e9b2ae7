#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.h"
#include "kernel/kernel_body.h"
#include "plan/plan.h"
#include "plan/planned.h"
#include "tests/base/says_testing.h"
#include "tests/plan/plan_testing.h"
#include "tests/target/target_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::AllOf;
using testing::HasSubstr;

// A diamond (e, n, s), a chain with a view, a slice, a sort of two results and a loop.
constexpr std::string_view kGraph = R"(
graph @g(%x: f32[4, 8], %k: i32[8], %p: bool[]) -> (f32[4, 8], f32[8], f32[32], f32[4, 8]) {
  %c = constant [1, 2, 3, 4] : f32[4]
  %one = constant 1 : f32[]
  %e = exp %x
  %n = neg %e
  %s = add %e, %n
  %t = tanh %s
  %r = reshape %t {dims = [32]}
  %q = sqrt %r
  %rows = slice %x {start = [1, 0], limit = [2, 8]}
  %flat = reshape %rows {dims = [8]}
  %odd = slice %x {start = [0, 1], limit = [4, 3]}
  %sum = reduce %odd {kind = sum, axes = [0, 1]}
  %sorted, %places = sort %k, %flat {axis = 0}
  %m = broadcast %c {dims = [4, 8], map = [0]}
  %o = broadcast %one {dims = [4, 8], map = []}
  %mo = add %m, %o
  %if = if %p, %mo then (%a: f32[4, 8]) {
    %b = exp %a
    %d = neg %b
    return %d
  } else (%a: f32[4, 8]) {
    return %a
  }
  %out = mul %if, %s
  %late = broadcast %sum {dims = [4, 8], map = []}
  %last = add %out, %late
  return %last, %places, %q, %mo
}
)";

Graph graph() { return parse_graph(kGraph).value(); }
Target target() { return parse_target(kSampleTarget, "t").value(); }

std::string error_of(std::string_view entries) { return check_error(graph(), entries); }

TEST(PlanCheck, AcceptsWhatFits) {
  EXPECT_EQ(error_of(""), "");
  EXPECT_EQ(error_of("threads = 8"), "");
  EXPECT_EQ(error_of("fuse @a = {%e, %n, %s, %t} fuse @b = {%sorted} view %r = yes"), "");
  EXPECT_EQ(error_of("view %rows = yes view %flat = no"), "");
  EXPECT_EQ(error_of("layout %e = [1, 0] layout %n = [0, 1/4, 1%4]"), "");
  EXPECT_EQ(error_of("fuse @a = {%e} order = [@a, %if]"), "");
  EXPECT_EQ(error_of("offset %e = 128 offset %n = 0"), "");
  EXPECT_EQ(error_of("region %if.then { fuse @k = {%b, %d} } region %if.else { }"), "");
}

TEST(PlanCheck, RefusesPlansForAnotherGraphOrTarget) {
  Plan plan;
  plan.graph_hash = 7;
  EXPECT_THAT(check(plan, graph(), target()).error().to_string(),
              says("another graph ... 0x0000000000000007 ... '@g'"));
  plan.graph_hash = hash_without_weights(graph());
  EXPECT_TRUE(check(plan, graph(), target()).ok());
  plan.target = "other";
  EXPECT_THAT(check(plan, graph(), target()).error().to_string(),
              says("target 'other' ... 'big one'"));
  EXPECT_THAT(error_of("threads = 9"), says("9 ... 1..8 ... cores"));
}

TEST(PlanCheck, Groups) {
  EXPECT_THAT(error_of("fuse @a = {%sortd}"),
              HasSubstr("no value '%sortd' (fuse @a)\nhint: did you mean 'sorted'?"));
  EXPECT_THAT(error_of("fuse @a = {%places}"), says("'%places' ... result 1 ... '%sorted'"));
  EXPECT_THAT(error_of("fuse @a = {%x}"), says("'%x' ... parameter"));
  EXPECT_THAT(error_of("fuse @a = {%c}"), says("'%c' ... constant"));
  EXPECT_THAT(error_of("fuse @a = {%if}"), says("'%if' ... if"));
  EXPECT_THAT(error_of("view %r = yes fuse @a = {%r}"), says("'%r' ... view"));
  EXPECT_THAT(error_of("fuse @a = {%e, %e}"), says("'%e' ... twice"));
  EXPECT_THAT(error_of("fuse @a = {%e} fuse @b = {%e, %n}"),
              HasSubstr("'%e' is in @a too (fuse @b)"));
  EXPECT_THAT(error_of("fuse @a = {%n, %e}"), says("'%e' ... '%n'"));
  EXPECT_THAT(error_of("fuse @a = {%e, %sorted}"), says("sort ... kernel of its own"));
  EXPECT_THAT(error_of("fuse @a = {%e, %s}"), says("node '%n' (neg)"));
  EXPECT_THAT(error_of("fuse @if = {%e}"), says("name ... command ... fuse @if"));
  Plan twice;
  twice.fuse = {{"a", {"e"}}, {"a", {"n"}}};
  EXPECT_THAT(check(twice, graph(), target()).error().to_string(),
              HasSubstr("it is decided twice (fuse @a)"));
  twice.fuse = {{"a", {}}};
  EXPECT_THAT(check(twice, graph(), target()).error().to_string(),
              HasSubstr("it has no nodes (fuse @a)"));
}

TEST(PlanCheck, GroupsAreAtFaultBeforeTheOrderIs) {
  EXPECT_THAT(error_of("fuse @a = {%e, %s} fuse @n = {%n} order = [@a, @n]"),
              AllOf(says("node '%n' (neg)"), HasSubstr("(fuse @a)")));
}

TEST(PlanCheck, GroupsThatACopyLeaves) {
  EXPECT_EQ(error_of("copy %e.c = %e for [%n] fuse @a = {%e, %e.c, %n}"), "");
  EXPECT_THAT(error_of("copy %e.c = %e for [%n] fuse @a = {%e, %n}"),
              AllOf(says("reads"), HasSubstr("fuse @a")));
  EXPECT_THAT(error_of("copy %x.c = %x for [%odd] fuse @b = {%e, %s} fuse @c = {%n, %t}"),
              AllOf(says("node '%n' (neg)"), HasSubstr("fuse @b")));
}

TEST(PlanCheck, GroupsThatWaitForEachOther) {
  const Graph two = parse_graph(R"(graph @g(%x: f32[4], %y: f32[4]) -> (f32[4], f32[4]) {
    %a = exp %x
    %b = exp %y
    %c = add %b, %b
    %d = add %a, %a
    %e = add %c, %a
    %f = add %d, %b
    return %e, %f
  })")
                        .value();
  const Plan plan = parse_plan("plan @g { fuse @k = {%a, %e} fuse @l = {%b, %f} }").value();
  EXPECT_THAT(check(plan, two, target()).error().to_string(), says("@k, %c, @l, %d ... fuse"));
}

TEST(PlanCheck, Views) {
  EXPECT_THAT(error_of("view %zz = yes"), says("'%zz' ... view %zz"));
  EXPECT_THAT(error_of("view %e = yes"), says("exp ... memory of its own ... reshapes"));
  EXPECT_THAT(error_of("view %odd = yes"), says("elements ... 2 of 8 ... dim 1 ... view %odd"));
  EXPECT_THAT(error_of("view %places = yes"), HasSubstr("'%places' is result 1 of a node"));
  const auto error = [](std::string_view text, std::string_view plan) {
    const Status status = check(parse_plan(plan).value(), parse_graph(text).value(), target());
    return status.ok() ? "" : status.error().to_string();
  };
  EXPECT_THAT(
      error("graph @g(%x: f32[4]) -> f32[2, 2] { %y = reshape %x {dims = [2, 2]} return %y }",
            "plan @g { view %y = yes }"),
      says("output ... memory of its own ... view %y"));
  EXPECT_THAT(error("graph @g() -> f32[1] { %x = constant 1 : f32[] %y = reshape %x {dims = [1]} "
                    "%z = neg %y return %z }",
                    "plan @g { view %y = yes }"),
              says("constant of one element ... view %y"));
  EXPECT_THAT(error("graph @g(%x: i4[8]) -> i8[4] { %y = slice %x {start = [1], limit = [5]} "
                    "%z = cast %y {dtype = i8} return %z }",
                    "plan @g { view %y = yes }"),
              HasSubstr("it begins within a byte (view %y)"));
  EXPECT_THAT(error("graph @g(%x: f32[8]) -> f32[4] { %y = slice %x {start = [0], limit = [8], "
                    "stride = [2]} %z = neg %y return %z }",
                    "plan @g { view %y = yes }"),
              says("one of 2 elements ... dim 0 ... view %y"));
}

TEST(PlanCheck, ConcatsThatAreViews) {
  const Graph graph = parse_graph(R"(
    graph @g(%x: f32[4, 6]) -> (f32[9, 6], f32[4, 12], f32[8, 6], f32[8, 6], f32[8, 6], f32[4, 6]) {
      %a = exp %x
      %b = neg %x
      %o = sin %x
      %r = reshape %a {dims = [4, 6]}
      %s = slice %b {start = [1, 0], limit = [2, 6]}
      %rows = concat %a, %b, %s {axis = 0}
      %columns = concat %a, %b {axis = 1}
      %again = concat %b, %b {axis = 0}
      %given = concat %x, %b {axis = 0}
      %out = concat %b, %o {axis = 0}
      return %rows, %columns, %again, %given, %out, %o
    })")
                          .value();
  const auto error = [&](std::string_view entries) { return check_error(graph, entries); };
  EXPECT_EQ(error("view %rows = yes"), "");
  EXPECT_THAT(error("view %rows = yes view %s = yes"), HasSubstr("'%s' is a view (view %rows)"));
  EXPECT_THAT(error("view %columns = yes"), says("side by side"));
  EXPECT_THAT(error("view %again = yes"), says("'%b' ... twice"));
  EXPECT_THAT(error("view %given = yes"), says("'%x' ... input of the graph"));
  EXPECT_THAT(error("view %out = yes"), says("'%o' ... output of the graph"));
  EXPECT_THAT(error("view %rows = yes fuse @k = {%rows}"), HasSubstr("'%rows' is a view"));
  EXPECT_THAT(error("view %rows = yes layout %a = [1, 0]"), says("other memory"));
  EXPECT_THAT(error("view %rows = yes offset %a = 0"), says("memory of %rows"));
}

// Channels in blocks, between kernels that write them and read them so.
TEST(PlanCheck, ViewsInLayouts) {
  const Graph graph = parse_graph(R"(
    graph @g(%x: f32[1, 8, 3, 2], %y: f32[2, 6]) -> (f32[1, 20, 3, 2], f32[1, 8, 3, 2], f32[2, 3]) {
      %a = exp %x
      %b = neg %x
      %c = concat %a, %b {axis = 1}
      %e = slice %x {start = [0, 2, 0, 0], limit = [1, 6, 3, 2]}
      %d = concat %c, %e {axis = 1}
      %f = sin %d
      %s = slice %c {start = [0, 4, 0, 0], limit = [1, 12, 3, 2]}
      %g = cos %s
      %p = exp %y
      %q = slice %p {start = [0, 3], limit = [2, 6]}
      %h = sin %q
      return %f, %g, %h
    })")
                          .value();
  const auto error = [&](std::string_view entries) { return check_error(graph, entries); };
  const auto laid = [&](std::string_view views, std::string_view layout) {
    return error(fmt::format("{} layout %c = {}", views, layout));
  };
  EXPECT_EQ(laid("view %c = yes", "[0, 1/8, 2, 3, 1%8]"), "");
  EXPECT_EQ(laid("view %c = yes", "[1/4, 0, 3, 2, 1%4]"), "");
  EXPECT_EQ(laid("view %c = yes", "[1, 3, 2, 0]"), "");
  EXPECT_THAT(laid("view %c = yes", "[0, 1/16, 2, 3, 1%16]"),
              says("'%a' ... 8 ... dim 1 ... block of 16 ... view %c"));
  EXPECT_THAT(laid("view %c = yes", "[0, 2, 3, 1]"), says("operands ... side by side ... view %c"));
  EXPECT_THAT(laid("view %c = yes", "[1%8, 1/8, 0, 2, 3]"),
              says("operands ... side by side ... view %c"));
  EXPECT_THAT(laid("view %c = yes", "[0, 1/3, 2, 3, 1%3]"), HasSubstr("(layout %c)"));
  EXPECT_THAT(error("view %c = yes layout %a = [1, 0, 2, 3]"), says("memory ... %c ... layout %a"));
  EXPECT_EQ(laid("view %s = yes", "[0, 1/4, 2, 3, 1%4]"), "");
  EXPECT_EQ(laid("view %c = yes view %s = yes", "[0, 1/4, 2, 3, 1%4]"), "");
  EXPECT_THAT(laid("view %s = yes", "[0, 1/8, 2, 3, 1%8]"),
              says("4 ... dim 1 ... block of 8 ... view %s"));
  EXPECT_THAT(laid("view %s = yes", "[0, 2, 3, 1]"),
              says("elements ... 8 of 16 ... dim 1 ... view %s"));
  // A concat is part of another one.
  EXPECT_EQ(error("view %c = yes view %d = yes layout %d = [0, 1/4, 2, 3, 1%4]"), "");
  EXPECT_THAT(error("view %c = yes view %d = yes layout %c = [0, 1/4, 2, 3, 1%4]"),
              says("%d ... layout %c"));
  EXPECT_THAT(error("view %c = yes view %d = yes view %s = yes layout %d = [1, 2, 3, 0] "
                    "layout %g = [1, 2, 3, 0]"),
              says("output ... row-major ... layout %g"));
  // Side by side in that layout alone.
  EXPECT_THAT(error("view %q = yes"), HasSubstr("its elements are apart"));
  EXPECT_EQ(error("view %q = yes layout %p = [1, 0]"), "");
}

TEST(PlanCheck, WhatLiesInMemorySaysHowItMayLie) {
  const Graph graph = parse_graph(R"(
    graph @g(%x: f32[4, 6]) -> (f32[8, 6], f32[24]) {
      %a = exp %x
      %b = neg %x
      %c = concat %a, %b {axis = 0}
      %d = sin %c
      %r = reshape %a {dims = [24]}
      %e = cos %r
      return %d, %e
    })")
                          .value();
  EXPECT_EQ(check_error(graph, "view %c = yes layout %c = [0/2, 1, 0%2]"), "");
  EXPECT_THAT(check_error(graph, "view %c = yes view %r = yes layout %c = [0/2, 1, 0%2]"),
              says("%a ... %r ... view ... row-major ... layout %c"));
}

TEST(PlanCheck, Layouts) {
  EXPECT_THAT(error_of("layout %zz = [0]"), HasSubstr("has no value '%zz' (layout %zz)"));
  EXPECT_THAT(error_of("layout %e = [0]"), HasSubstr("(layout %e)"));
  EXPECT_THAT(error_of("layout %e = [0, 1/3, 1%3]"), HasSubstr("(layout %e)"));
  EXPECT_THAT(error_of("layout %x = [1, 0]"), says("input ... row-major ... layout %x"));
  EXPECT_THAT(error_of("layout %last = [1, 0]"), says("output ... row-major ... layout %last"));
  EXPECT_EQ(error_of("layout %c = [0/2, 0%2]"), "");
  EXPECT_THAT(error_of("layout %one = []"), HasSubstr("it has no memory"));
  EXPECT_THAT(error_of("layout %sum = []"), HasSubstr("a scalar has no dims"));
  EXPECT_THAT(error_of("view %rows = yes layout %rows = [1, 0]"),
              says("other memory ... row-major"));
  EXPECT_THAT(error_of("view %r = yes layout %t = [1, 0]"),
              says("%r ... view ... row-major ... layout %t"));
  EXPECT_THAT(error_of("fuse @a = {%s, %t} layout %s = [1, 0] layout %t = [1, 0]"), "");
  EXPECT_THAT(error_of("fuse @a = {%e, %n, %s} layout %e = [1, 0]"),
              says("memory ... kernel ... layout %e"));
  EXPECT_THAT(error_of("layout %if = [1, 0]"), HasSubstr("%if writes it row-major (layout %if)"));
  const Graph read = parse_graph(R"(graph @g(%p: bool[], %x: f32[2, 2]) -> f32[2, 2] {
    %a = exp %x
    %y = if %p, %a then (%b: f32[2, 2]) { return %b } else (%b: f32[2, 2]) { return %b }
    return %y
  })")
                         .value();
  EXPECT_THAT(check(parse_plan("plan @g { layout %a = [1, 0] }").value(), read, target())
                  .error()
                  .to_string(),
              HasSubstr("%y reads it row-major (layout %a)"));
}

TEST(PlanCheck, Schedules) {
  const Graph small = parse_graph(R"(graph @g(%x: f32[4, 8]) -> f32[4, 8] {
    %e = exp %x
    return %e
  })")
                          .value();
  const auto error = [&](std::string_view entries) {
    const Status status =
        check(parse_plan(fmt::format("plan @g {{ {} }}", entries)).value(), small, target());
    return status.ok() ? "" : status.error().to_string();
  };
  const NodeId e{1};
  const std::string key =
      fmt::format("schedule 0x{:016x}", kernel_hash(body_of(small, {&e, 1}, {})));
  const std::string other = "schedule 0x0000000000000001 = {algorithm = generic}";
  EXPECT_EQ(error(other), "");  // a kernel that is still to come
  EXPECT_THAT(error("fuse @k = {%e} " + other),
              says("kernel ... hash ... schedule 0x0000000000000001"));
  EXPECT_EQ(error(fmt::format("fuse @k = {{%e}} {} = {{algorithm = generic}}", key)), "");
  EXPECT_THAT(error(fmt::format("fuse @k = {{%e}} {} = {{algorithm = nest, order = [0]}}", key)),
              says(fmt::format("order ... 1 ... 2 ... @k", key)));
}

TEST(PlanCheck, Order) {
  EXPECT_THAT(error_of("order = [@a]"), says("kernel or command 'a' ... order"));
  EXPECT_THAT(error_of("fuse @a = {%e} order = [@a, @a]"), says("'a' ... twice ... order"));
  EXPECT_THAT(error_of("fuse @a = {%e} fuse @b = {%n} order = [@b, @a]"),
              says("@b ... @a ... order"));
  EXPECT_THAT(error_of("fuse @a = {%e} fuse @b = {%t} order = [@b, @a]"), says("@a ... order"));
}

TEST(PlanCheck, Offsets) {
  EXPECT_THAT(error_of("offset %zz = 0"), says("'%zz' ... offset %zz"));
  EXPECT_THAT(error_of("offset %e = 32"), HasSubstr("32 is not a multiple of 64 (offset %e)"));
  EXPECT_THAT(error_of("offset %x = 0"), says("input of the graph"));
  EXPECT_THAT(error_of("offset %q = 0"), says("output of the graph"));
  EXPECT_THAT(error_of("offset %c = 0"), says("constant ... arena ... offset %c"));
  EXPECT_THAT(error_of("view %r = yes offset %r = 0"), says("memory of %t"));
  EXPECT_THAT(error_of("fuse @a = {%e, %n, %s} offset %n = 0"),
              says("memory ... kernel ... offset %n"));
  EXPECT_THAT(error_of("offset %e = 9223372036854775744"), says("ends ... bytes"));
  EXPECT_THAT(error_of("offset %e = 70368744177664"), says("ends ... bytes"));
  Plan negative;
  negative.offset["e"] = -64;
  EXPECT_THAT(check(negative, graph(), target()).error().to_string(),
              HasSubstr("-64 is not a multiple of 64"));
  const Graph symbolic = parse_graph(R"(graph @g(%x: f32[N]) -> f32[N] where N in 1..8 {
    %e = exp %x
    %n = neg %e
    return %n
  })")
                             .value();
  EXPECT_THAT(check(parse_plan("plan @g { offset %e = 0 }").value(), symbolic, target())
                  .error()
                  .to_string(),
              says("symbols ... place ... offset %e"));
}

TEST(PlanCheck, OffsetsOverlapInTime) {
  const Graph chain = parse_graph(R"(graph @g(%x: f32[16]) -> f32[16] {
    %a = exp %x
    %b = exp %a
    %c = exp %b
    %d = exp %c
    %e = add %d, %b
    return %e
  })")
                          .value();
  const auto error = [&](int a, int b, int c, int d) {
    const std::string text = fmt::format(
        "plan @g {{ fuse @a = {{%a}} fuse @b = {{%b}} fuse @c = {{%c}} fuse @d = {{%d}} "
        "fuse @e = {{%e}} order = [@a, @b, @c, @d, @e] offset %a = {} offset %b = {} "
        "offset %c = {} offset %d = {} }}",
        a, b, c, d);
    const Status status = check(parse_plan(text).value(), chain, target());
    return status.ok() ? "" : status.error().to_string();
  };
  EXPECT_EQ(error(0, 64, 0, 128), "");
  EXPECT_THAT(error(0, 0, 64, 128), says("overlaps %a ... @b ... offset %b"));
  EXPECT_THAT(error(0, 64, 64, 128), says("overlaps %b ... @c"));
  EXPECT_THAT(error(0, 64, 0, 64), says("overlaps %b ... @d ... offset %d"));
}

TEST(PlanCheck, Regions) {
  EXPECT_THAT(error_of("region %if.body { }"), says("region ... region %if.body"));
  EXPECT_THAT(error_of("region %if.then { fuse @k = {%e} }"),
              says("'%e' ... region %if.then, fuse @k"));
  EXPECT_THAT(error_of("region %if.then { layout %d = [1, 0] }"),
              says("output ... row-major ... region %if.then, layout %d"));
  Plan plan;
  plan.region["if.then"].threads = 1;
  EXPECT_THAT(check(plan, graph(), target()).error().to_string(),
              says("threads ... schedules ... region"));
}

TEST(PlanCheck, CompletePlansLeaveNothingOpen) {
  const Graph small = parse_graph(R"(graph @g(%p: bool[], %x: f32[4, 8]) -> f32[4, 8] {
    %e = exp %x
    %n = neg %e
    %y = if %p, %n then (%b: f32[4, 8]) { return %b } else (%b: f32[4, 8]) { return %b }
    return %y
  })")
                          .value();
  const NodeId e{2}, n{3};
  const std::string complete = fmt::format(
      R"(plan @g hash 0x{:016x} on "big one" {{
  threads = 1
  fuse @k0 = {{%e}}
  fuse @k1 = {{%n}}
  layout %e = [0, 1]
  schedule 0x{:016x} = {{algorithm = generic}}
  schedule 0x{:016x} = {{algorithm = generic}}
  order = [@k0, @k1, %y]
  offset %e = 0
  offset %n = 128
  region %y.else {{
  }}
  region %y.then {{
  }}
}}
)",
      hash_without_weights(small), kernel_hash(body_of(small, {&e, 1}, {})),
      kernel_hash(body_of(small, {&n, 1}, {})));
  const auto error = [&](const Plan& plan) {
    const Status status = check_complete(plan, small, target());
    return status.ok() ? "" : status.error().to_string();
  };
  const Plan plan = parse_plan(complete).value();
  EXPECT_EQ(error(plan), "");
  const auto without = [&](auto change) {
    Plan changed = plan;
    change(changed);
    EXPECT_TRUE(check(changed, small, target()).ok()) << print(changed);
    return error(changed);
  };
  EXPECT_THAT(without([](Plan& p) { p.threads.reset(); }), HasSubstr("there is none (threads)"));
  EXPECT_THAT(without([](Plan& p) { p.graph_hash = 0; }), HasSubstr("for another graph"));
  EXPECT_THAT(without([](Plan& p) { p.target = ""; }), says("target ''"));
  EXPECT_THAT(without([](Plan& p) {
                p.fuse.pop_back();
                p.order = {};
              }),
              says("%n ... group ... view ... fuse"));
  EXPECT_THAT(without([](Plan& p) { p.layout.clear(); }), HasSubstr("there is none (layout %e)"));
  EXPECT_THAT(without([](Plan& p) { p.schedule.erase(p.schedule.begin()); }),
              HasSubstr("has none (schedule 0x"));
  EXPECT_THAT(without([](Plan& p) { p.order.pop_back(); }), HasSubstr("%y is missing (order)"));
  EXPECT_THAT(without([](Plan& p) { p.offset.erase("n"); }),
              HasSubstr("there is none (offset %n)"));
  EXPECT_THAT(without([](Plan& p) { p.region.erase("y.then"); }),
              HasSubstr("it has no plan (region %y.then)"));
}

TEST(Planned, SaysWhereValuesAre) {
  const Graph g = graph();
  const Plan plan = parse_plan(
                        "plan @g { fuse @a = {%e, %n, %s, %t} view %r = yes view %rows = yes "
                        "view %flat = yes fuse @m = {%m, %o, %mo} order = [@m] }")
                        .value();
  const PlannedGraph frame = planned(plan, g).value();
  const auto find = [&](std::string_view name) {
    for (uint32_t i = 0; i < g.value_count(); ++i)
      if (g.name(ValueId{i}) == name) return ValueId{i};
    return ValueId::none();
  };
  const auto names = [&](const std::vector<ValueId>& values) {
    std::string text;
    for (ValueId v : values) text += fmt::format("{} ", g.name(v));
    return text;
  };
  EXPECT_EQ(frame.home[find("x").index], Home::input);
  EXPECT_EQ(frame.home[find("e").index], Home::none);
  EXPECT_EQ(frame.home[find("s").index], Home::temporary);
  EXPECT_EQ(frame.home[find("q").index], Home::output);
  EXPECT_EQ(frame.home[find("c").index], Home::constant);
  EXPECT_EQ(frame.home[find("one").index], Home::none);
  EXPECT_EQ(frame.home[find("flat").index], Home::view);
  EXPECT_EQ(frame.base[find("flat").index], find("x"));
  EXPECT_EQ(frame.base[find("r").index], find("t"));
  EXPECT_EQ(names(frame.steps[0].reads), "x ");
  EXPECT_EQ(names(frame.steps[0].writes), "s t ");
  EXPECT_EQ(names(frame.steps[1].reads), "c ");
  EXPECT_EQ(names(frame.steps[1].writes), "mo ");
  EXPECT_EQ(frame.steps[2].name, "if");
  EXPECT_EQ(names(frame.steps[2].reads), "p mo ");
  EXPECT_EQ(frame.order, std::vector<uint32_t>{1});
  EXPECT_TRUE(frame.has_layout(find("s")));
  EXPECT_FALSE(frame.has_layout(find("t")));
}

}  // namespace
}  // namespace hone::HONE_FILE
