#include "program/lower/lower.h"

#include <gmock/gmock.h>

#include "base/rng.h"
#include "plan/random_plan.h"
#include "planner/planner.h"
#include "program/frame.h"
#include "program/run.h"
#include "tests/base/says_testing.h"
#include "tests/program/kernel_testing.h"
#include "tests/program/lower_testing.h"
#include "zoo/inputs.h"
#include "zoo/random/random_graph.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;
using testing::Not;

void check_random(uint64_t first, uint64_t count, uint64_t step = 1) {
  for (uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); seed += step) {
    // Where a difference of one bit can become any, differences must not come to be.
    const bool continuous = seed % 2 == 0;
    const Specials specials = specials_of(seed);
    const Graph source = random_graph({.seed = seed,
                                       .min_steps = continuous ? 8 : 2,
                                       .max_steps = continuous ? 12 : 4,
                                       .max_elements = 64,
                                       .continuous = continuous,
                                       .specials = specials});
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, print(source)));
    const Graph graph = prepared(source);
    check_lowered(graph, random_plan(graph, two_cores(), seed),
                  random_graph_inputs(graph, seed, specials),
                  specials.any() ? Numbers::special : Numbers::tame);
  }
}

TEST(Lower, RandomGraphsComputeWhatTheReferenceDoes) { check_random(0, legal_pairs().size(), 6); }
TEST(Lower, DISABLED_SweepRandomGraphs) { check_random(100'000, 10'000); }

Plan completed(const Graph& graph) {
  Result<Plan> plan = complete(graph, {}, two_cores());
  EXPECT_TRUE(plan.ok()) << plan.error().to_string();
  return plan.ok() ? *plan : Plan();
}

// Under the planner's plan, and some others.
void check_text(std::string_view text) {
  SCOPED_TRACE(text);
  const Graph graph = prepared(text);
  Result<std::vector<Tensor>> inputs = random_inputs(graph, 1);
  ASSERT_TRUE(inputs.ok()) << inputs.error().to_string();
  check_lowered(graph, completed(graph), *inputs);
  for (uint64_t seed = 0; seed < 4; ++seed)
    check_lowered(graph, random_plan(graph, two_cores(), seed), *inputs);
}

Program lowered(std::string_view text) {
  const Graph graph = prepared(text);
  Result<Program> program = lower(graph, completed(graph), two_cores());
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  if (!program.ok()) return {};
  return *program;
}

TEST(Lower, OutputsMayBeAnything) {
  check_text(
      "graph @g(%x: f32[2, 3], %unused: i64[4]) {\n"
      "  %c = constant [1, 2, 3] : f32[3]\n"
      "  %one = constant 1 : f32[]\n"
      "  %y = neg %x\n"
      "  %v = reshape %y {dims = [6]}\n"
      "  %w = reshape %x {dims = [3, 2]}\n"
      "  %z = neg %v\n"
      "  return %x, %y, %y, %v, %v, %c, %one, %w, %z, %x\n"
      "}\n");
  check_text("graph @g() {\n  %c = constant 2.5 : f64[]\n  return %c\n}\n");
  check_text("graph @g(%x: f32[2]) {\n  return\n}\n");
}

TEST(Lower, NothingHasElements) {
  check_text(
      "graph @g(%x: f32[0, 3], %s: i32[]) {\n"
      "  %c = constant [] : f32[0, 3]\n"
      "  %y = add %x, %c\n"
      "  %r = reduce %y {kind = sum, axes = [0]}\n"
      "  %v = slice %y {start = [0, 1], limit = [0, 2]}\n"
      "  %t = neg %s\n"
      "  return %y, %r, %v, %t\n"
      "}\n");
}

TEST(Lower, ViewsAreViewsOfViews) {
  const std::string_view text =
      "graph @g(%x: f32[4, 6]) {\n"
      "  %a = neg %x\n"
      "  %b = slice %a {start = [1, 0], limit = [4, 6]}\n"
      "  %c = reshape %b {dims = [9, 2]}\n"
      "  %d = slice %c {start = [2, 0], limit = [5, 2]}\n"
      "  %e = bitcast %d {dtype = i32}\n"
      "  %f = abs %e\n"
      "  %g = slice %x {start = [3, 0], limit = [4, 6]}\n"
      "  %h = neg %g\n"
      "  return %f, %h\n"
      "}\n";
  check_text(text);
  const Graph graph = prepared(text);
  Plan plan;
  for (const char* view : {"b", "c", "d", "e"}) plan.view[view] = true;
  plan = complete(graph, plan, two_cores()).value();
  check_lowered(graph, plan, random_inputs(graph, 1).value());
  Result<Program> program = lower(graph, plan, two_cores());
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  EXPECT_THAT(print(*program), HasSubstr("view %d: f32[3, 2] = %a [40]"));
}

// An operand of a concat is written where it lies in the result, or in the output.
TEST(Lower, ConcatsAreMemory) {
  const std::string_view text =
      "graph @g(%x: f32[4, 6], %z: f32[4, 6], %p: f32[2], %at: i32[]) {\n"
      "  %a = sort %x {axis = 1}\n"
      "  %b = sort %z {axis = 1}\n"
      "  %c = concat %a, %b {axis = 0}\n"
      "  %d = sort %c {axis = 0}\n"
      "  %e = cumulative %b {kind = sum, axis = 0}\n"
      "  %r = reshape %a {dims = [24]}\n"
      "  %s = slice %r {start = [3], limit = [9]}\n"
      "  %t = sort %s {axis = 0}\n"
      "  %f = concat %d, %e {axis = 0}\n"
      "  return %f, %t\n"
      "}\n";
  check_text(text);
  const Graph graph = prepared(text);
  Plan plan;
  for (const char* view : {"c", "f", "r", "s"}) plan.view[view] = true;
  plan = complete(graph, plan, two_cores()).value();
  check_lowered(graph, plan, random_inputs(graph, 1).value());
  const std::string program = print(lower(graph, plan, two_cores()).value());
  EXPECT_THAT(program, HasSubstr("view %b: f32[4, 6] = %c [96]"));
  EXPECT_THAT(program, HasSubstr("view %s: f32[6] = %c [12]"));
  EXPECT_THAT(program, HasSubstr("view %e: f32[4, 6] = %f [192]"));
  EXPECT_THAT(program, Not(HasSubstr("tiles @concat")));
}

// So are concats and slices whose blocks of channels lie side by side, whole.
TEST(Lower, ViewsHaveTheLayoutOfTheirMemory) {
  const std::string_view text =
      "graph @g(%x: f32[1, 8, 3, 2], %z: f32[1, 4, 3, 2]) {\n"
      "  %a = sort %x {axis = 1}\n"
      "  %b = sort %z {axis = 2}\n"
      "  %c = concat %a, %b {axis = 1}\n"
      "  %d = sort %x {axis = 2}\n"
      "  %e = concat %d, %c {axis = 1}\n"
      "  %f = sort %e {axis = 1}\n"
      "  %s = slice %c {start = [0, 4, 0, 0], limit = [1, 12, 3, 2]}\n"
      "  %t = sort %s {axis = 1}\n"
      "  return %f, %t\n"
      "}\n";
  check_text(text);
  const Graph graph = prepared(text);
  for (std::string_view layout : {"[0, 1/4, 2, 3, 1%4]", "[1/2, 3, 2, 1%2, 0]", "[1, 0, 3, 2]"}) {
    Plan plan;
    for (const char* view : {"c", "e", "s"}) plan.view[view] = true;
    plan.layout["e"] = parse_layout(layout).value();
    plan = complete(graph, plan, two_cores()).value();
    check_lowered(graph, plan, random_inputs(graph, 1).value());
    const std::string program = print(lower(graph, plan, two_cores()).value());
    EXPECT_THAT(program, Not(HasSubstr("tiles @concat")));
    EXPECT_THAT(program, HasSubstr("= %e [288]"));  // %s
    if (!layout.starts_with("[0, ")) continue;
    EXPECT_THAT(program, HasSubstr("view %c: f32[1, 3, 3, 2, 4] = %e [192]"));
    EXPECT_THAT(program, HasSubstr("view %b: f32[1, 1, 3, 2, 4] = %e [384]"));
    EXPECT_THAT(program, HasSubstr("view %s: f32[1, 2, 3, 2, 4] = %e [288]"));
  }
}

// One value is read in two layouts: an input, an output, a constant, what an update changes then,
// and what a concat joins.
TEST(Lower, CopiesLieAsTheirReadersWantThem) {
  const Graph graph = prepared(
      "graph @g(%x: f32[4, 8], %v: f32[1, 8], %at: i32[]) {\n"
      "  %w = constant [1, 2, 3, 4, 5, 6, 7, 8] : f32[8]\n"
      "  %zero = constant 0 : i32[]\n"
      "  %a = exp %x\n"
      "  %b = sort %x {axis = 0}\n"
      "  %c = dot %a, %w {lhs_contract = [1], rhs_contract = [0]}\n"
      "  %d = tanh %a\n"
      "  %u = dynamic_update %d, %v, %at, %zero\n"
      "  %n = neg %d\n"
      "  %s = sort %u {axis = 1}\n"
      "  %f = concat %a, %b, %x {axis = 0}\n"
      "  return %a, %b, %c, %n, %s, %f\n"
      "}\n");
  const Plan partial =
      parse_plan(
          "plan @g { copy %x.t = %x for [%b] layout %x.t = [1, 0] copy %k = %w for [%c]"
          "  layout %k = [0/4, 0%4] copy %a.t = %a for [%d] layout %a.t = [1, 0]"
          "  copy %d.n = %d for [%n] layout %d.n = [0, 1/2, 1%2] in_place %u = yes"
          "  copy %a.f = %a for [%f] copy %b.f = %b for [%f] copy %x.f = %x for [%f]"
          "  view %f = yes fuse @both = {%a, %a.t} }")
          .value();
  const Result<Plan> plan = complete(graph, partial, two_cores());
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  check_lowered(graph, *plan, random_inputs(graph, 1).value());
  const std::string program = print(lower(graph, *plan, two_cores()).value());
  EXPECT_THAT(program, HasSubstr("%x.t: f32[8, 4]"));
  EXPECT_THAT(program, HasSubstr("constant %k = [1, 2, 3, 4, 5, 6, 7, 8] : f32[2, 4]"));
  EXPECT_THAT(program, HasSubstr("view %x.f: f32[4, 8] = %f [256]"));
  EXPECT_THAT(program, Not(HasSubstr("constant %w")));
  EXPECT_THAT(program, HasSubstr("@both = launch @exp_transpose(%x) -> (%a, %a.t)"));
}

TEST(Lower, RegionsMayHaveCopies) {
  const Graph graph = prepared(
      "graph @g(%x: f32[4, 2], %y: f32[3, 4]) {\n"
      "  %f = scan %x, %y {carried = 1} body (%s: f32[4, 2], %r: f32[4]) {\n"
      "    %b = broadcast %r {dims = [4, 2], map = [0]}\n"
      "    %t = mul %s, %b\n"
      "    %o = sort %s {axis = 0}\n"
      "    %n = add %t, %o\n"
      "    return %n }\n"
      "  return %f\n"
      "}\n");
  const Plan partial = parse_plan(
                           "plan @g { copy %x0 = %x for [%f] region %f.body {"
                           "  copy %s.t = %s for [%o] layout %s.t = [1, 0] } }")
                           .value();
  const Result<Plan> plan = complete(graph, partial, two_cores());
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  check_lowered(graph, *plan, random_inputs(graph, 1).value());
  EXPECT_THAT(print(lower(graph, *plan, two_cores()).value()), HasSubstr("%s.t: f32[2, 4]"));
}

TEST(Lower, EqualKernelsAreBuiltOnce) {
  const Program program = lowered(
      "graph @g(%x: f32[8], %z: f32[8]) {\n"
      "  %a = add %x, %z\n  %b = sort %a {axis = 0}\n"
      "  %c = add %z, %b\n  %d = sort %c {axis = 0}\n  return %d\n}\n");
  EXPECT_EQ(program.main->commands.size(), 4);
  EXPECT_EQ(program.kernels.size(), 2);
}

TEST(Lower, ControlFlowOfAllKinds) { check_text(kControl); }

TEST(Lower, LoopsOfNoSteps) {
  check_text(
      "graph @g(%x: f32[3], %xs: f32[0, 3]) {\n"
      "  %f, %ys = scan %x, %xs {carried = 1}\n"
      "    body (%s: f32[3], %r: f32[3]) { %t = add %s, %r return %t, %t }\n"
      "  return %f, %ys\n"
      "}\n");
}

// It is copied for those behind the loop, if there are any.
TEST(Lower, WhatALoopHandsOnIsReadInPlace) {
  const Graph graph = parse_graph(
                          "graph @g(%x: f32[3], %w: f32[3], %v: f32[3], %xs: f32[4, 3]) {\n"
                          "  %f, %k, %u, %ys = scan %x, %w, %v, %xs {carried = 3, reverse = true}\n"
                          "    body (%s: f32[3], %w: f32[3], %v: f32[3], %r: f32[3]) {\n"
                          "      %p = mul %s, %w\n  %q = add %p, %r\n  %z = sub %q, %v\n"
                          "      return %z, %w, %v, %w }\n"
                          "  %i, %j, %m = while %f, %x, %k\n"
                          "    condition (%a: f32[3], %b: f32[3], %c: f32[3]) {\n"
                          "      %d = compare %a, %c {direction = lt}\n"
                          "      %t = reduce %d {kind = and, axes = [0]}\n  return %t }\n"
                          "    body (%a: f32[3], %b: f32[3], %c: f32[3]) {\n"
                          "      %two = exp %b\n  %n = add %a, %two\n  return %n, %b, %c }\n"
                          "  return %f, %i, %ys, %j\n"
                          "}\n")
                          .value();
  const std::vector<Tensor> inputs = random_inputs(graph, 1).value();
  check_lowered(graph, completed(graph), inputs);
  const std::string text = print(lower(graph, completed(graph), two_cores()).value());
  EXPECT_THAT(text, HasSubstr("(%f, %x1, %x2 over %x3) -> (%f.next, %x1, %x2 over %ys)"));
  EXPECT_THAT(text, HasSubstr("call @main.f(%x, %w, %v, %xs) -> (%f, %k, %ys)"));
  EXPECT_THAT(text, HasSubstr("(%i, %x1, %x2) -> (%i.next, %x1, %x2)"));
  EXPECT_THAT(text, HasSubstr("call @main.i(%f, %x, %k) -> (%i, %j)"));
}

// The bytes that are copied within loops, and at all.
std::string copies_of(std::string_view text) {
  const Program program = lowered(text);
  std::string copies;
  for (const program::FrameRef& frame : program::all_frames(program.main))
    for (const program::Command& command : frame->commands)
      if (const auto* copy = std::get_if<program::Copy>(&command.kind))
        copies += fmt::format("{}: {} to {}\n", frame->name, frame->buffers[copy->from].name,
                              frame->buffers[copy->to].name);
  return copies;
}

TEST(Lower, UpdatesChangeTheirOperandInPlace) {
  const std::string_view text =
      "graph @g(%x: f32[8], %p: f32[2], %at: i32[], %i: i32[3, 1], %q: f32[3]) {\n"
      "  %a = exp %x\n"
      "  %n = neg %a\n"
      "  %u = dynamic_update %a, %p, %at\n"
      "  %w = scatter %u, %i, %q {window_dims = [], inserted_dims = [0], index_map = [0], "
      "index_vector_dim = 1, combine = add}\n"
      "  %s = sort %w {axis = 0}\n"
      "  return %n, %s\n"
      "}\n";
  check_text(text);
  const std::string program = print(lowered(text));
  EXPECT_THAT(program, HasSubstr("-> (update @y0: f32[8])"));
  EXPECT_THAT(program, HasSubstr("launch @dynamic_update(%p, %at) -> (%a) after 0, 1"));
  EXPECT_THAT(program, HasSubstr("launch @scatter(%i, %q) -> (%a) after 2"));
  EXPECT_THAT(program, HasSubstr("launch @sort(%a) -> (%s) after 3"));
}

TEST(Lower, AnInputThatIsGivenUpIsItsOutput) {
  const std::string_view text =
      "graph @g(%x: f32[8] donate 1, %p: f32[2], %at: i32[]) {\n"
      "  %n = neg %x\n"
      "  %u = dynamic_update %x, %p, %at\n"
      "  return %n, %u, %u, %at\n"
      "}\n";
  check_text(text);
  EXPECT_THAT(print(lowered(text)), HasSubstr("%u: f32[8] in %x"));
  EXPECT_EQ(copies_of(text), "main: x to u\nmain: u to u.output\nmain: at to at.output\n");
}

TEST(Lower, AnInputMayBecomeItsOutputInSteps) {
  const std::string_view text =
      "graph @g(%x: f32[8] donate 0, %y: f32[3, 2], %p: f32[2], %at: i32[]) {\n"
      "  %u = dynamic_update %x, %p, %at\n"
      "  %s = sort %u {axis = 0}\n"
      "  %v = dynamic_update %u, %p, %at\n"
      "  %f = scan %s, %y {carried = 1} body (%a: f32[8], %r: f32[2]) {\n"
      "    %one = constant 1 : i32[] %four = constant 4 : i32[]\n"
      "    %b = dynamic_update %a, %r, %one %c = dynamic_update %b, %r, %four return %c }\n"
      "  return %v, %f\n"
      "}\n";
  check_text(text);
  // The body's is one of the state to itself.
  EXPECT_EQ(copies_of(text), "main.f.body: a to c\nmain.f: x0 to f\nmain: x to v\n");
}

// Only the changed part of the state is written in each step.
TEST(Lower, LoopsChangeTheirStateInPlace) {
  const std::string_view text =
      "graph @g(%x: f32[8], %y: f32[8], %p: f32[4, 2], %n: i32[]) {\n"
      "  %zero = constant 0 : i32[]\n"
      "  %f, %h, %last, %ys = scan %x, %y, %zero, %p {carried = 3}\n"
      "    body (%s: f32[8], %t: f32[8], %k: i32[], %r: f32[2]) {\n"
      "      %one = constant 1 : i32[]\n"
      "      %before = slice %s {start = [0], limit = [2]}\n"
      "      %u = dynamic_update %s, %r, %k\n"
      "      %v = reverse %t {axes = [0]}\n"
      "      %next = add %k, %one\n"
      "      return %u, %v, %next, %before }\n"
      "  %i, %j = while %f, %n\n"
      "    condition (%a: f32[8], %b: i32[]) {\n"
      "      %ten = constant 10 : i32[]\n"
      "      %d = compare %b, %ten {direction = lt}\n  return %d }\n"
      "    body (%a: f32[8], %b: i32[]) {\n"
      "      %two = constant [2, 2] : f32[2]\n  %three = constant 3 : i32[]\n"
      "      %m = dynamic_update %a, %two, %b\n  %next = add %b, %three\n"
      "      return %m, %next }\n"
      "  return %f, %h, %ys, %i\n"
      "}\n";
  check_text(text);
  const std::string program = print(lowered(text));
  EXPECT_THAT(program, HasSubstr("(%f, %h, %last over %x3) -> (%f, %h.next, %last over %ys)"));
  EXPECT_THAT(program, HasSubstr("(%i, %j) -> (%i, %j)"));
}

// A step of an optimizer: what was given up is read where the result is written.
TEST(Lower, AnOutputLiesInWhatItIsMadeOf) {
  const std::string_view text =
      "graph @g(%w: f32[8, 6] donate 0, %m: f32[8, 6] donate 1, %g: f32[8, 6], %old: f32[8, 6] "
      "donate 2, %r: f32[6, 8]) {\n"
      "  %rate = constant 0.5 : f32[]\n"
      "  %b = broadcast %rate {dims = [8, 6], map = []}\n"
      "  %p = mul %m, %b\n"
      "  %n = add %p, %g\n"
      "  %s = mul %n, %b\n"
      "  %v = sub %w, %s\n"
      "  %t = transpose %r {permutation = [1, 0]}\n"
      "  %k = exp %old\n"
      "  return %v, %n, %t, %k\n"
      "}\n";
  check_text(text);
  const std::string program = print(lowered(text));
  EXPECT_THAT(program, HasSubstr("%v: f32[8, 6] in %w, %n: f32[8, 6] in %m, "
                                 "%t: f32[8, 6] in %old, %k: f32[8, 6])"));
  EXPECT_THAT(program, HasSubstr("@y1: f32[8, 6] in @"));
  EXPECT_THAT(program, HasSubstr("tiles @transpose(@x0: f32[6, 8]) -> (@y0: f32[8, 6])"));
  EXPECT_EQ(copies_of(text), "");
}

// One state becomes the other, which is changed: nothing may lie where it did.
TEST(Lower, LoopsThatSwapTheirState) {
  check_text(
      "graph @g(%x: f32[8], %y: f32[8], %p: f32[4, 2], %at: i32[]) {\n"
      "  %f, %h = scan %x, %y, %p {carried = 2} body (%s: f32[8], %t: f32[8], %r: f32[2]) {\n"
      "    %k = constant 3 : i32[]\n"
      "    %u = dynamic_update %s, %r, %k\n"
      "    return %t, %u }\n"
      "  %g, %m = scan %x, %y, %p {carried = 2} body (%s: f32[8], %t: f32[8], %r: f32[2]) {\n"
      "    %k = constant 3 : i32[]\n"
      "    %u = dynamic_update %s, %r, %k\n"
      "    return %u, %u }\n"
      "  %o = scan %x, %p {carried = 1} body (%s: f32[8], %r: f32[2]) {\n"
      "    %k = constant 3 : i32[]\n"
      "    %u = dynamic_update %s, %r, %k\n"
      "    %v = dynamic_update %u, %r, %k\n"
      "    return %v }\n"
      "  return %f, %h, %g, %m, %o\n"
      "}\n");
}

// Steps of three and of one half bytes do not begin with a byte.
TEST(Lower, StepsWithinBytes) {
  const std::string_view text =
      "graph @g(%x: i4[5, 3], %z: u4[5], %w: i4[5, 2, 2]) {\n"
      "  %xs, %zs, %ws = scan %x, %z, %w {carried = 0}\n"
      "    body (%a: i4[3], %b: u4[], %c: i4[2, 2]) {\n"
      "      %d = reverse %a {axes = [0]}\n"
      "      return %d, %b, %c\n"
      "    }\n"
      "  return %xs, %zs, %ws\n"
      "}\n";
  check_text(text);
  EXPECT_THAT(print(lowered(text)), HasSubstr("%xs.padded: i4[5, 4]"));
  EXPECT_THAT(print(lowered(text)), Not(HasSubstr("%ws.padded")));
}

// The node that pads the steps may be in the graph, too: it is one kernel, as the plan has it.
TEST(Lower, PaddingOfStepsMayStandInTheGraph) {
  const Graph graph = prepared(
      "graph @g(%x: i4[5, 3]) {\n"
      "  %zero = constant 0 : i4[]\n"
      "  %p = pad %x, %zero {low = [0, 0], high = [0, 1]}\n"
      "  %xs = scan %x {carried = 0}\n"
      "    body (%a: i4[3]) { %d = reverse %a {axes = [0]} return %d }\n"
      "  return %p, %xs\n"
      "}\n");
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Result<Program> program = lower(graph, random_plan(graph, two_cores(), seed), two_cores());
    ASSERT_TRUE(program.ok()) << program.error().to_string();
    EXPECT_EQ(std::ranges::count_if(program->kernels,
                                    [](const program::Kernel& kernel) {
                                      return kernel.tiles.name.starts_with("pad");
                                    }),
              1);
  }
}

TEST(Lower, CollectivesOfOneDevice) {
  check_text(
      "graph @g(%x: f32[4]) {\n"
      "  %d = device_index\n"
      "  %a = all_reduce %x {kind = sum, group_size = 1}\n"
      "  %b = all_gather %a {axis = 0, group_size = 1, groups = [0]}\n"
      "  %c = reduce_scatter %b {kind = max, axis = 0, group_size = 1}\n"
      "  %e = all_to_all %c {split_axis = 0, concat_axis = 0, group_size = 1}\n"
      "  %f = permute %e {pairs = [0, 0]}\n"
      "  %h = permute %e {pairs = []}\n"
      "  %unread = all_reduce %x {kind = min, group_size = 1}\n"
      "  return %d, %f, %h\n"
      "}\n");
}

TEST(Lower, NodesWithoutResults) {
  check_text(
      "graph @g(%x: f32[4], %p: bool[]) {\n"
      "  call %x callee (%y: f32[4]) { %r = all_reduce %y {kind = sum, group_size = 1} return }\n"
      "  if %p, %x\n"
      "    then (%y: f32[4]) { %r = permute %y {pairs = []} return }\n"
      "    else (%y: f32[4]) { return }\n"
      "  return %x\n"
      "}\n");
}

TEST(Lower, RefusesPlansThatDoNotFit) {
  const Graph graph = prepared("graph @g(%x: f32[4]) { %y = neg %x %z = exp %y return %z }");
  const Plan plan = completed(graph);
  ASSERT_TRUE(lower(graph, plan, two_cores()).ok());
  auto error = [&](const Graph& graph, const Plan& plan) {
    Result<Program> program = lower(graph, plan, two_cores());
    EXPECT_FALSE(program.ok());
    if (program.ok()) return std::string();
    EXPECT_EQ(program.error().code(), ErrorCode::bad_input);
    return program.error().to_string();
  };
  EXPECT_THAT(error(prepared("graph @g(%x: f32[4]) { %y = neg %x return %y }"), plan),
              says("another graph"));
  EXPECT_THAT(error(graph, {}), says("another graph"));
  Plan changed = plan;
  changed.order.clear();
  EXPECT_THAT(error(graph, changed), HasSubstr("order"));
  changed = plan;
  changed.target = "another";
  EXPECT_THAT(error(graph, changed), says("target 'another'"));
  changed = plan;
  changed.schedule.clear();
  EXPECT_THAT(error(graph, changed), HasSubstr("schedule"));
}

TEST(Lower, StopsWhenItIsCancelled) {
  const Graph graph = prepared("graph @g(%x: f32[4]) { %y = neg %x return %y }");
  CancelToken cancel;
  ASSERT_TRUE(lower(graph, completed(graph), two_cores(), &cancel).ok());
  cancel.cancel();
  EXPECT_EQ(lower(graph, completed(graph), two_cores(), &cancel).error().code(),
            ErrorCode::interrupted);
}

TEST(Lower, RefusesGraphsThatAreNotPrepared) {
  const Graph graph = parse_graph("graph @g(%0: f32[4], %x: f32[4]) { return %x }").value();
  Result<Program> program = lower(graph, completed(graph), two_cores());
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().to_string(), "error: %0 has no name\nhint: prepare() names all values");
}

// A size for each symbol.
Bindings random_sizes(const Graph& graph, uint64_t seed) {
  Rng rng(seed);
  Bindings sizes;
  for (Symbol symbol : graph.symbols()) {
    const int64_t step = symbol.multiple_of();
    const int64_t low = (symbol.min() + step - 1) / step, high = symbol.max() / step;
    sizes.emplace(symbol.name(), step * rng.between(low, std::min(high, low + 2)));
  }
  return sizes;
}

// Not all that is so can be proved for all sizes.
void check_symbolic(uint64_t first, uint64_t count) {
  uint64_t lowered = 0;
  for (uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); ++seed) {
    const Graph source = random_graph(
        {.seed = seed, .max_steps = 10, .max_elements = 64, .symbolic = true, .continuous = true});
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, print(source)));
    const Graph graph = prepared(source);
    Result<Program> program = lower(graph, random_plan(graph, two_cores(), seed), two_cores());
    if (!program.ok()) {
      EXPECT_EQ(program.error().code(), ErrorCode::unsupported) << program.error().to_string();
      continue;
    }
    ++lowered;
    SCOPED_TRACE(print(*program).substr(0, 20'000));
    const Bindings sizes = random_sizes(graph, seed);
    const Graph sized = specialize(graph, sizes).value();
    const std::vector<Tensor> inputs = random_graph_inputs(sized, seed);
    Result<Program> bound = specialize(*program, sizes);
    ASSERT_TRUE(bound.ok()) << bound.error().to_string();
    Status status = verify(*bound);
    ASSERT_TRUE(status.ok()) << status.error().to_string();
    Result<std::vector<Tensor>> actual = run(*bound, inputs, {.order_seed = seed});
    ASSERT_TRUE(actual.ok()) << actual.error().to_string();
    expect_same(*actual, evaluated(sized, inputs));
  }
  EXPECT_GT(lowered, count * 3 / 4);
}

TEST(Lower, SymbolicGraphs) { check_symbolic(0, 60); }
TEST(Lower, DISABLED_SweepSymbolicGraphs) { check_symbolic(0, 2000); }

// Sizes that are bound after lowering.
TEST(Lower, SymbolicSizes) {
  const Graph graph = prepared(
      "graph @g(%x: f32[N, 4], %xs: f32[N, 3]) -> (f32[N, 4], f32[3], f32[2*N, 2], f32[N, 3])\n"
      "    where N in 1..16 {\n"
      "  %y = neg %x\n"
      "  %r = reshape %y {dims = [2*N, 2]}\n"
      "  %e = exp %r\n"
      "  %zero = constant [0, 0, 0] : f32[3]\n"
      "  %s, %ys = scan %zero, %xs {carried = 1}\n"
      "    body (%s: f32[3], %x: f32[3]) { %t = add %s, %x return %t, %t }\n"
      "  return %y, %s, %e, %ys\n"
      "}\n");
  Result<Program> program = lower(graph, completed(graph), two_cores());
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  EXPECT_EQ(print(parse_program(print(*program)).value()), print(*program));
  for (int64_t n : {1, 5, 16}) {
    Result<Program> bound = specialize(*program, {{"N", n}});
    ASSERT_TRUE(bound.ok()) << bound.error().to_string();
    Status status = verify(*bound);
    ASSERT_TRUE(status.ok()) << status.error().to_string();
    const std::vector<Tensor> inputs = random_inputs(graph, 3, {{"N", n}}).value();
    Result<std::vector<Tensor>> actual = run(*bound, inputs, {.order_seed = 5});
    ASSERT_TRUE(actual.ok()) << actual.error().to_string();
    expect_same(*actual, evaluated(graph, inputs));
  }
}

TEST(Lower, ZooModels) {
  for (const std::string_view name : {"mlp", "lstm", "graph_network", "gpt2_decode"}) {
    SCOPED_TRACE(name);
    Result<Graph> model = build_zoo_model(name, {.size = ZooSize::tiny});
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    const Graph graph = prepared(*model);
    check_lowered(graph, completed(graph), random_inputs(graph, 1).value());
  }
}

TEST(Lower, DISABLED_SweepTinyZooModels) {
  for (const ZooEntry& entry : zoo_entries()) {
    SCOPED_TRACE(entry.name);
    const Graph graph = prepared(build_zoo_model(entry.name, {.size = ZooSize::tiny}).value());
    const std::vector<Tensor> inputs = random_inputs(graph, 1).value();
    check_lowered(graph, completed(graph), inputs);
    check_lowered(graph, random_plan(graph, two_cores(), 1), inputs);
  }
}

// NativeZoo tests what this computes natively.
TEST(Lower, DISABLED_SweepFullSizeZooModels) {
  for (const ZooEntry& entry : zoo_entries()) {
    SCOPED_TRACE(entry.name);
    const Graph graph = prepared(build_zoo_model(entry.name).value());
    for (const Plan& plan : {completed(graph), random_plan(graph, two_cores(), 1)}) {
      Result<Program> program = lower(graph, plan, two_cores());
      ASSERT_TRUE(program.ok()) << program.error().to_string();
      const Status valid = verify(*program);
      EXPECT_TRUE(valid.ok()) << valid.error().to_string();
    }
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
