#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ir/functional.h"
#include "tests/base/says_testing.h"
#include "tests/ir/evaluate_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

using tested::run;
using tested::tensor_of;
using ::testing::HasSubstr;

// ---- if -----------------------------------------------------------------------------------------

constexpr std::string_view kAbs =
    "graph @g(%p: bool[], %x: f32[2]) { %y, %n = if %p, %x"
    " then(%a: f32[2]) { %b = neg %a  %c = constant 1 : i32[] return %b, %c }"
    " else(%a: f32[2]) { %c = constant 2 : i32[] return %a, %c } return %y, %n }";

TEST(If, TakesOneRegion) {
  EXPECT_EQ(run(kAbs, {"bool[] 1", "f32[2] 3 4"}, {"f32[2] -3 -4", "i32[] 1"}), "");
  EXPECT_EQ(run(kAbs, {"bool[] 0", "f32[2] 3 4"}, {"f32[2] 3 4", "i32[] 2"}), "");
}

TEST(If, EvaluatesOnlyTheChosenRegion) {
  // The other one would loop for ever.
  std::string_view graph =
      "graph @g(%p: bool[], %x: i32[]) { %y = if %p, %x"
      " then(%a: i32[]) { return %a }"
      " else(%a: i32[]) { %b = while %a"
      "   condition(%s: i32[]) { %t = constant true : bool[] return %t }"
      "   body(%s: i32[]) { return %s } return %b } return %y }";
  EXPECT_EQ(run(graph, {"bool[] 1", "i32[] 3"}, {"i32[] 3"}), "");
  EvalOptions options{.max_iterations = 1000};
  std::string error = run(graph, {"bool[] 0", "i32[] 3"}, {}, options);
  EXPECT_THAT(error, says("1000 iterations"));
  EXPECT_THAT(error, HasSubstr("node '%y' (if), region 'else', node '%b' (while)"));
}

// ---- while --------------------------------------------------------------------------------------

// Greatest common divisor
constexpr std::string_view kGcd =
    "graph @g(%x: i64[], %y: i64[]) { %a, %b = while %x, %y"
    " condition(%a: i64[], %b: i64[]) { %c = compare %b, 0 {direction = ne} return %c }"
    " body(%a: i64[], %b: i64[]) { %r = rem %a, %b return %b, %r }"
    " return %a }";

TEST(While, LoopsUntilTheConditionFails) {
  EXPECT_EQ(run(kGcd, {"i64[] 1071", "i64[] 462"}, {"i64[] 21"}), "");
  EXPECT_EQ(run(kGcd, {"i64[] 5", "i64[] 0"}, {"i64[] 5"}), "");  // not once
}

TEST(While, NestsInItself) {
  // 10 rows of 10: counts to 100.
  EXPECT_EQ(
      run("graph @g(%x: i32[], %z: i32[]) { %i, %n = while %x, %z"
          " condition(%i: i32[], %n: i32[]) { %c = compare %i, 10 {direction = lt} return %c }"
          " body(%i: i32[], %n: i32[]) { %zero = constant 0 : i32[]"
          "   %j, %m = while %zero, %n"
          "   condition(%j: i32[], %n: i32[]) { %c = compare %j, 10 {direction = lt} return %c }"
          "   body(%j: i32[], %n: i32[]) { %k = add %j, 1 %m = add %n, 1 return %k, %m }"
          "   %h = add %i, 1 return %h, %m }"
          " return %n }",
          {"i32[] 0", "i32[] 0"}, {"i32[] 100"}),
      "");
}

TEST(While, RunsManyIterationsInBoundedMemory) {
  EvalStats stats;
  EXPECT_EQ(
      run("graph @g(%x: i64[100]) { %zero = constant 0 : i64[] %i, %y = while %zero, %x"
          " condition(%i: i64[], %v: i64[100]) { %c = compare %i, 5000 {direction = lt} return %c }"
          " body(%i: i64[], %v: i64[100]) { %j = add %i, 1 %w = add %v, 3 return %j, %w }"
          " return %y }",
          {"i64[100] 0"}, {"i64[100] 15000"}, {.stats = &stats}),
      "");
  EXPECT_EQ(stats.nodes, 1 + 5001 + 3 * 5000);  // 3 is broadcast to i64[100]
  EXPECT_LT(stats.peak_bytes, 10 * 800);
}

// ---- scan ---------------------------------------------------------------------------------------

TEST(Scan, CarriesAStateAndStacksResults) {
  std::string_view graph =
      "graph @g(%i: f32[2], %x: f32[3, 2]) { %f, %y = scan %i, %x {carried = 1}"
      " body(%s: f32[2], %e: f32[2]) { %n = add %s, %e %m = mul %s, 10 return %n, %m }"
      " return %f, %y }";
  EXPECT_EQ(run(graph, {"f32[2] 0 1", "f32[3,2] 1 2 3 4 5 6"},
                {"f32[2] 9 13", "f32[3,2] 0 10 10 30 40 70"}),
            "");
}

TEST(Scan, Reverses) {
  EXPECT_EQ(
      run("graph @g(%i: i32[], %x: i32[4]) { %f, %y = scan %i, %x {carried = 1, reverse = true}"
          " body(%s: i32[], %e: i32[]) { %n = add %s, %e return %n, %n } return %f, %y }",
          {"i32[] 0", "i32[4] 1 2 3 4"}, {"i32[] 10", "i32[4] 10 9 7 4"}),
      "");
}

TEST(Scan, MayScanNothing) {
  EXPECT_EQ(run("graph @g(%i: i32[]) { %f, %y = scan %i {carried = 1, length = [5]}"
                " body(%s: i32[]) { %n = mul %s, 2 return %n, %s } return %f, %y }",
                {"i32[] 1"}, {"i32[] 32", "i32[5] 1 2 4 8 16"}),
            "");
}

TEST(Scan, MayCarryNothing) {
  EXPECT_EQ(run("graph @g(%x: f32[2, 2], %y: f32[2]) { %z = scan %x, %y {carried = 0}"
                " body(%a: f32[2], %b: f32[]) { return %a } return %z }",
                {"f32[2,2] 1 2 3 4", "f32[2] 0"}, {"f32[2,2] 1 2 3 4"}),
            "");
}

TEST(Scan, OfLengthZeroGivesTheFirstState) {
  EXPECT_EQ(run("graph @g(%i: f32[], %x: f32[0, 3]) { %f, %y = scan %i, %x {carried = 1}"
                " body(%s: f32[], %e: f32[3]) { %n = neg %s return %n, %e } return %f, %y }",
                {"f32[] 7", "f32[0,3]"}, {"f32[] 7", "f32[0,3]"}),
            "");
}

TEST(Scan, TakesThousandsOfStepsWithoutCopyingTheStack) {
  // 20,000 steps over 8 MB: quadratic copying would move 160 GB.
  std::string_view graph =
      "graph @g(%i: i64[], %x: i64[20000, 50]) { %f, %y = scan %i, %x {carried = 1}"
      " body(%s: i64[], %e: i64[50]) { %n = add %s, 1 %m = add %e, %e return %n, %m } return %f }";
  EXPECT_EQ(run(graph, {"i64[] 0", "i64[20000,50] 1"}, {"i64[] 20000"}), "");
}

TEST(Scan, LengthMayBeSymbolic) {
  EXPECT_EQ(
      run("graph @g(%i: i32[], %x: i32[N]) where N in 0..8 { %f, %y = scan %i, %x {carried = 1}"
          " body(%s: i32[], %e: i32[]) { %n = add %s, %e return %n, %n } return %f, %y }",
          {"i32[] 0", "i32[3] 1 2 3"}, {"i32[] 6", "i32[3] 1 3 6"}),
      "");
}

// ---- call, depth, rounding ----------------------------------------------------------------------

TEST(Call, GivesTheRegionsResults) {
  EXPECT_EQ(run("graph @g(%x: f32[2]) { %y, %z = call %x callee @twice(%a: f32[2]) {"
                " %b = add %a, %a return %b, %a } return %y, %z }",
                {"f32[2] 1 2"}, {"f32[2] 2 4", "f32[2] 1 2"}),
            "");
}

TEST(Call, DepthIsBounded) {
  Type type = Type::scalar(DType::f32);
  auto nested = [&](int depth) {
    Graph graph = parse_ok("graph @g(%x: f32[]) { %y = neg %x return %y }");
    for (int i = 0; i < depth; ++i) {
      Result<Graph> outer = tested::graph_of(Op::get(Opcode::call), {type},
                                             {std::make_shared<const Graph>(std::move(graph))});
      graph = std::move(*outer);
    }
    return graph;
  };
  Tensor input = tensor_of("f32[] 1");
  EXPECT_TRUE(evaluate(nested(64), {&input, 1}).ok());
  Result<std::vector<Tensor>> result = evaluate(nested(65), {&input, 1});
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().what(), HasSubstr("nested more than 64 deep"));
}

TEST(Scan, RoundsInsideRegions) {
  std::string_view graph =
      "graph @g(%i: f16[]) { %f = scan %i {carried = 1, length = [3]}"
      " body(%s: f16[]) { %n = add %s, 1 return %n } return %f }";
  EXPECT_EQ(run(graph, {"f16[] 2048"}, {"f16[] 2048"}, {.numerics = Numerics::rounded}), "");
  EXPECT_EQ(run(graph, {"f16[] 2048"}, {"f16[] 2052"}), "");  // 2051 is a tie, to even
}

// ---- Inference ----------------------------------------------------------------------------------

GraphRef region(std::string_view text) { return std::make_shared<const Graph>(parse_ok(text)); }

std::string infer_error(std::string_view op, std::vector<Type> operands,
                        std::vector<GraphRef> regions) {
  Result<Graph> graph = tested::graph_of(tested::op_of(op), operands, std::move(regions));
  return graph.ok() ? "no error" : graph.error().what();
}

TEST(ControlInference, RegionsMustFit) {
  Type flag = tested::type_of("bool[]");
  Type x = tested::type_of("f32[2]");
  GraphRef same = region("graph @same(%a: f32[2]) { return %a }");
  GraphRef other = region("graph @other(%a: f32[3]) { return %a }");
  GraphRef sum = region("graph @sum(%a: f32[2], %b: f32[2]) { %c = add %a, %b return %c }");
  GraphRef asks = region("graph @asks(%a: f32[2]) { %c = constant true : bool[] return %c }");
  GraphRef halves = region("graph @halves(%a: f32[2]) { %c = cast %a {dtype = f16} return %c }");

  EXPECT_THAT(infer_error("if", {x, x}, {same, same}), HasSubstr("f32"));
  EXPECT_THAT(infer_error("if", {tested::type_of("bool[1]"), x}, {same, same}),
              says("predicate ... bool[] ... bool[1]"));
  EXPECT_THAT(infer_error("if", {flag, x}, {same, other}),
              HasSubstr("region 'else' takes f32[3] as value 0, not f32[2]"));
  EXPECT_THAT(
      infer_error("if", {flag, x}, {same, sum}),
      HasSubstr("region 'else' takes 2 values (f32[2], f32[2]), not the 1 values (f32[2])"));
  EXPECT_THAT(infer_error("if", {flag, x}, {same, halves}),
              says("regions ... types ... (f32[2]) ... (f16[2])"));
  EXPECT_THAT(infer_error("if", {flag, x}, {same}), HasSubstr("2 regions"));

  EXPECT_THAT(infer_error("while", {x}, {same, same}),
              HasSubstr("region 'condition' gives f32[2] as value 0, not bool[]"));
  EXPECT_THAT(infer_error("while", {x}, {asks, halves}),
              HasSubstr("region 'body' gives f16[2] as value 0, not f32[2]"));
  EXPECT_THAT(infer_error("while", {x}, {asks, other}), HasSubstr("'body' takes f32[3]"));

  EXPECT_THAT(infer_error("call", {x}, {other}), HasSubstr("'callee' takes f32[3]"));
}

TEST(ControlInference, ScansMustFit) {
  Type x = tested::type_of("f32[2]");
  Type xs = tested::type_of("f32[7, 2]");
  GraphRef sum = region("graph @sum(%a: f32[2], %b: f32[2]) { %c = add %a, %b return %c }");
  GraphRef same = region("graph @same(%a: f32[2]) { return %a }");
  GraphRef none = region("graph @none(%a: f32[2]) { return }");
  EXPECT_EQ(infer_error("scan {carried = 1}", {x, xs}, {sum}), "no error");
  EXPECT_THAT(infer_error("scan {carried = 3}", {x, xs}, {sum}),
              says("carried = 3 ... 2 operands"));
  EXPECT_THAT(infer_error("scan {carried = -1}", {x, xs}, {sum}), HasSubstr("carried = -1"));
  EXPECT_THAT(infer_error("scan {carried = 0}", {xs, tested::type_of("f32[6, 2]")}, {sum}),
              HasSubstr("lengths 7 and 6"));
  EXPECT_THAT(infer_error("scan {carried = 1}", {x, tested::type_of("f32[]")}, {sum}),
              says("operand 1 ... f32[] ... axis 0"));
  EXPECT_THAT(infer_error("scan {carried = 1}", {x}, {same}), says("length ... one entry ... 0"));
  EXPECT_THAT(infer_error("scan {carried = 1, length = [-1]}", {x}, {same}),
              HasSubstr("length -1 may be negative"));
  EXPECT_THAT(infer_error("scan {carried = 1, length = [7]}", {x, xs}, {sum}),
              HasSubstr("leave it out"));
  EXPECT_THAT(infer_error("scan {carried = 1, length = [2]}", {x}, {none}),
              HasSubstr("region 'body' gives 0 values (), not the 1 values (f32[2])"));
}

// ---- Several devices ----------------------------------------------------------------------------

using tested::run_spmd;

TEST(Spmd, DevicesTakeTheirOwnBranches) {
  std::string_view graph =
      "graph @g(%p: bool[], %x: i64[]) { %y = if %p, %x"
      " then(%a: i64[]) { %d = device_index %b = add %a, %d return %b }"
      " else(%a: i64[]) { %b = neg %a return %b } return %y }";
  EXPECT_EQ(run_spmd(graph,
                     {{"bool[] 1", "i64[] 10"}, {"bool[] 0", "i64[] 20"}, {"bool[] 1", "i64[] 30"}},
                     {{"i64[] 10"}, {"i64[] -20"}, {"i64[] 32"}}),
            "");
}

TEST(Spmd, DevicesLoopAsOftenAsTheyLike) {
  EXPECT_EQ(
      run_spmd(kGcd, {{"i64[] 1071", "i64[] 462"}, {"i64[] 8", "i64[] 0"}, {"i64[] 5", "i64[] 3"}},
               {{"i64[] 21"}, {"i64[] 8"}, {"i64[] 1"}}),
      "");
}

TEST(Spmd, CollectivesInsideLoopsMeet) {
  // Both double the sum twice: s = (1 + 3) -> each 4; then 4 + 4 = 8.
  EXPECT_EQ(
      run_spmd("graph @g(%x: f32[]) { %y = scan %x {carried = 1, length = [2]}"
               " body(%s: f32[]) { %t = all_reduce %s {kind = sum, group_size = 2} return %t }"
               " return %y }",
               {{"f32[] 1"}, {"f32[] 3"}}, {{"f32[] 8"}, {"f32[] 8"}}),
      "");
}

TEST(Spmd, ACollectiveThatADeviceNeverReachesIsAnError) {
  std::string_view graph =
      "graph @g(%p: bool[], %x: f32[]) { %y = if %p, %x"
      " then(%a: f32[]) { %b = all_reduce %a {kind = sum, group_size = 2} return %b }"
      " else(%a: f32[]) { return %a } return %y }";
  EXPECT_EQ(run_spmd(graph,
                     {{"bool[] 1", "f32[] 1"},
                      {"bool[] 1", "f32[] 2"},
                      {"bool[] 0", "f32[] 5"},
                      {"bool[] 0", "f32[] 6"}},
                     {{"f32[] 3"}, {"f32[] 3"}, {"f32[] 5"}, {"f32[] 6"}}),
            "");
  std::string error = run_spmd(graph, {{"bool[] 1", "f32[] 1"}, {"bool[] 0", "f32[] 2"}}, {});
  EXPECT_THAT(error, says("device 0 ... device 1 ... branch"));
}

TEST(Spmd, ChecksTheInputsOfEachDevice) {
  std::string_view graph = "graph @g(%x: f32[2]) { return %x }";
  EXPECT_THAT(run_spmd(graph, {{"f32[2] 1"}, {"f32[3] 1"}}, {}), HasSubstr("device 1"));
  EXPECT_THAT(run_spmd(graph, {{"f32[2] 1"}, {}}, {}), says("takes 1 inputs ... 0 ... given"));
  EXPECT_THAT(run_spmd(graph, {}, {}), HasSubstr("no device"));
}

}  // namespace
}  // namespace hone::HONE_FILE
