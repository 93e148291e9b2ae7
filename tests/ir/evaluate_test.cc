#include "ir/reference/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "ir/reference/domain.h"
#include "tests/base/says_testing.h"
#include "tests/ir/evaluate_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

using tested::run;
using tested::tensor_of;
using tested::tensors;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- Numerics -----------------------------------------------------------------------------------

// 2049 is not an f16; 1e-8 + 1 is not an f32.
constexpr std::string_view kRoundTrip =
    "graph @g(%x: f16[2], %y: f16[2]) { %s = add %x, %y  %d = sub %s, %y return %d }";

TEST(Numerics, WideDoesNotRoundBetweenNodes) {
  EXPECT_EQ(run(kRoundTrip, {"f16[2] 1 3", "f16[2] 2048 0.5"}, {"f16[2] 1 3"}), "");
}

TEST(Numerics, RoundedRoundsEachNode) {
  EvalOptions options{.numerics = Numerics::rounded};
  // 2049 is a tie between 2048 and 2050: to even.
  EXPECT_EQ(run(kRoundTrip, {"f16[2] 1 3", "f16[2] 2048 0.5"}, {"f16[2] 0 3"}, options), "");
  EXPECT_EQ(run("graph @g(%x: f32[1]) { %s = add %x, 1 %d = sub %s, 1 return %d }", {"f32[1] 1e-8"},
                {"f32[1] 0"}, options),
            "");
}

TEST(Numerics, RoundedRoundsAFloat64ToNothingElse) {
  EvalOptions options{.numerics = Numerics::rounded};
  EXPECT_EQ(run("graph @g(%x: f64[1]) { %s = add %x, 1 return %s }", {"f64[1] 0.1"}, {"f64[1] 1.1"},
                options),
            "");
}

TEST(Numerics, RoundedRoundsACompositeOnlyAtItsResult) {
  // silu(x) = x * logistic(x): the exact product, rounded once.
  Graph graph = parse_ok("graph @g(%x: bf16[1]) { %y = silu %x return %y }");
  for (double x : {3.0, 1.7, -2.3, 0.11}) {
    Tensor input = Tensor::from_reals(Type::get(DType::bf16, {1}), {&x, 1});
    double exact = input.real_at(0) / (1 + std::exp(-input.real_at(0)));
    Result<std::vector<Tensor>> result =
        evaluate(graph, {&input, 1}, {.numerics = Numerics::rounded});
    ASSERT_TRUE(result.ok()) << result.error().to_string();
    EXPECT_EQ(result->at(0).real_at(0), round_to(DType::bf16, exact));
  }
}

TEST(Numerics, Fp32ComputesInFloat) {
  std::string_view graph = "graph @g(%x: f64[1]) { %s = add %x, 1 %d = sub %s, 1 return %d }";
  EvalOptions options{.numerics = Numerics::fp32};
  EXPECT_EQ(run(graph, {"f64[1] 1e-9"}, {"f64[1] 0"}, options), "");
  EXPECT_EQ(run(graph, {"f64[1] 1e-9"}, {"f64[1] 1e-9"}, {}, 1e-15), "");
}

TEST(Numerics, OutputsMayStayWide) {
  std::string_view graph = "graph @g(%x: f32[], %n: i32[]) { %y = div 1.0, %x return %y, %n }";
  EvalOptions options{.real_outputs_as_f64 = true};
  EXPECT_EQ(
      run(graph, {"f32[] 3", "i32[] 7"}, {"f64[] 0.33333333333333333333", "i32[] 7"}, options), "");
}

// ---- Symbols ------------------------------------------------------------------------------------

TEST(Symbols, AGraphRunsAtAnySize) {
  std::string_view graph =
      "graph @g(%x: f32[N, 2], %y: f32[2*N]) where N in 1..64 {\n"
      "  %f = reshape %x {dims = [2*N]}\n"
      "  %s = add %f, %y\n"
      "  %p = pad %s, 9.0 {low = [0], high = [N]}\n"
      "  return %p }";
  EXPECT_EQ(run(graph, {"f32[1,2] 1 2", "f32[2] 10 20"}, {"f32[3] 11 22 9"}), "");
  EXPECT_EQ(run(graph, {"f32[2,2] 1 2 3 4", "f32[4] 0"}, {"f32[6] 1 2 3 4 9 9"}), "");
  EXPECT_THAT(run(graph, {"f32[2,2] 1 2 3 4", "f32[5] 0"}, {}), says("size 5 ... 2*N ... 4"));
}

TEST(Symbols, RegionsAndCompositesSeeThem) {
  std::string_view graph =
      "graph @g(%x: f32[N], %a: f32[M, N]) where N in 1..64, M in 0..9 {\n"
      "  %s = scan %x, %a {carried = 1}\n"
      "    body @b(%s: f32[N], %r: f32[N]) { %t = add %s, %r return %t }\n"
      "  %m = softmax %s {axis = 0}\n"
      "  return %s, %m }";
  EXPECT_EQ(run(graph, {"f32[2] 1 2", "f32[3,2] 1 1 2 1 3 1"},
                {"f32[2] 7 5", "f32[2] 0.88079708 0.11920292"}, {}, 1e-6),
            "");
}

TEST(Symbols, ATypeThatIsTooLargeNamesItsNode) {
  // Any size is a size of the graph; 2^14 cubed is 2^42 elements.
  std::string_view graph =
      "graph @g(%x: f32[N]) where N in 0..65536 {\n"
      "  %c = broadcast %x {dims = [N, N, N], map = [0]}\n"
      "  %y = reduce %c {kind = sum, axes = [0, 1]}\n"
      "  return %y }";
  EXPECT_EQ(run(graph, {"f32[2] 1 2"}, {"f32[2] 6"}), "");
  std::string error = run(graph, {"f32[16384] 0"}, {});
  EXPECT_THAT(error, says("4398046511104 elements ... 2^40"));
  EXPECT_THAT(error, HasSubstr("node '%c' (broadcast)"));
  Result<Graph> special = specialize(parse_ok(graph), {{"N", 16384}});
  ASSERT_FALSE(special.ok());
  EXPECT_EQ(special.error().code(), ErrorCode::limit);
  EXPECT_THAT(special.error().to_string(), HasSubstr("node '%c' (broadcast)"));
}

TEST(Symbols, BindingsMustFit) {
  Graph graph = parse_ok("graph @g(%x: f32[N]) where N in 1..8 { return %x }");
  EXPECT_EQ(specialize(graph, {{"N", 9}}).error().what(), "N = 9 is outside of 1..8");
}

// ---- The driver ---------------------------------------------------------------------------------

TEST(Evaluate, ReturnsInputsAndConstantsThatAreOutputs) {
  EXPECT_EQ(run("graph @g(%x: i4[3], %unused: f32[9]) { %c = constant [1, 2] : f32[2] return %x, "
                "%c, %x }",
                {"i4[3] -8 0 7", "f32[9] 0"}, {"i4[3] -8 0 7", "f32[2] 1 2", "i4[3] -8 0 7"}),
            "");
}

TEST(Evaluate, NamesTheInputThatDoesNotFit) {
  std::string_view graph = "graph @g(%x: f32[2], %mask: bool[2]) { return %x }";
  EXPECT_THAT(run(graph, {"f32[2] 0"}, {}), says("'g' takes 2 inputs ... 1 ... given"));
  EXPECT_THAT(run(graph, {"f32[2] 0", "bool[3] 0"}, {}),
              HasSubstr("input 1 ('mask') is bool[3], but the graph 'g' takes bool[2]"));
  EXPECT_THAT(run(graph, {"f64[2] 0", "bool[2] 0"}, {}), HasSubstr("input 0 ('x') is f64[2]"));
}

TEST(Evaluate, BindsSymbols) {
  std::string_view graph =
      "graph @g(%x: f32[N, 2], %y: f32[N, 2]) where N in 1..8 {"
      " %i = iota {dtype = f32, dims = [N, 2], axis = 0} %s = add %x, %i %t = mul %s, %y return %t "
      "}";
  EXPECT_EQ(run(graph, {"f32[3,2] 1", "f32[3,2] 2"}, {"f32[3,2] 2 2 4 4 6 6"}), "");
  EXPECT_THAT(run(graph, {"f32[9,2] 1", "f32[9,2] 1"}, {}), HasSubstr("9"));
  EXPECT_THAT(run(graph, {"f32[3,2] 1", "f32[4,2] 1"}, {}), HasSubstr("4"));
  EXPECT_THAT(run(graph, {"f32[3] 1", "f32[3] 1"}, {}), HasSubstr("f32[3]"));
}

TEST(Evaluate, SymbolsMustFollowFromTheInputs) {
  EXPECT_THAT(run("graph @g() where N in 1..8 {"
                  " %i = iota {dtype = f32, dims = [N], axis = 0} return %i }",
                  {}, {}),
              HasSubstr("symbol 'N' of graph 'g' is not determined"));
}

TEST(Evaluate, FreesWhatIsNoLongerRead) {
  // A chain of 20 nodes of 8 KB each: two are alive at once, and the input.
  std::string text = "graph @g(%v0: f64[1000]) {";
  for (int i = 0; i < 20; ++i) text += fmt::format(" %v{} = neg %v{}", i + 1, i);
  Graph graph = parse_ok(text + " return %v20 }");
  EvalStats stats;
  ASSERT_TRUE(evaluate(graph, tensors({"f64[1000] 1"}), {.stats = &stats}).ok());
  EXPECT_EQ(stats.nodes, 20);
  EXPECT_EQ(stats.peak_bytes, 2 * 8000);
}

TEST(Evaluate, ReshapesInPlaceWhatDies) {
  EvalStats stats;
  Graph graph = parse_ok(
      "graph @g(%x: f64[1000]) { %y = neg %x %z = reshape %y {dims = [10, 100]} return %z }");
  ASSERT_TRUE(evaluate(graph, tensors({"f64[1000] 1"}), {.stats = &stats}).ok());
  EXPECT_EQ(stats.peak_bytes, 2 * 8000);
  // Both the reshaped and the original are wanted here.
  EXPECT_EQ(
      run("graph @g(%x: f32[4]) { %y = neg %x %z = reshape %y {dims = [2, 2]} return %z, %y }",
          {"f32[4] 1 2 3 4"}, {"f32[2,2] -1 -2 -3 -4", "f32[4] -1 -2 -3 -4"}),
      "");
  EXPECT_EQ(run("graph @g(%x: f32[4]) { %z = reshape %x {dims = [2, 2]} return %z, %x }",
                {"f32[4] 1 2 3 4"}, {"f32[2,2] 1 2 3 4", "f32[4] 1 2 3 4"}),
            "");
}

TEST(Evaluate, SkipsDeadNodes) {
  EvalStats stats;
  Graph graph = parse_ok("graph @g(%x: f32[2]) { %dead = exp %x %y = neg %x return %y }");
  ASSERT_TRUE(evaluate(graph, tensors({"f32[2] 1"}), {.stats = &stats}).ok());
  EXPECT_EQ(stats.nodes, 1);
}

TEST(Evaluate, RefusesToExceedItsMemoryBeforeAllocating) {
  // 2^39 elements: the message must come before the allocation.
  std::string_view graph =
      "graph @g() { %i = iota {dtype = f32, dims = [549755813888], axis = 0} return %i }";
  std::string error = run(graph, {}, {});
  EXPECT_THAT(error, says("16"));
  EXPECT_THAT(error, HasSubstr("node '%i' (iota)"));
  EvalOptions options{.max_bytes = 100};
  EXPECT_THAT(run("graph @g(%x: f64[13]) { return %x }", {"f64[13] 1"}, {}, options),
              testing::AllOf(says("100"), says("smaller size")));
  EXPECT_EQ(run("graph @g(%x: f64[12]) { return %x }", {"f64[12] 1"}, {"f64[12] 1"}, options), "");
}

TEST(Evaluate, StopsWhenCancelled) {
  CancelToken cancel;
  cancel.cancel();
  Result<std::vector<Tensor>> result =
      evaluate(parse_ok("graph @g(%x: f32[]) { %y = neg %x return %y }"), tensors({"f32[] 1"}),
               {.cancel = &cancel});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::interrupted);
}

class CountingProgress : public Progress {
 public:
  void start(int64_t total, std::string_view) override { total_ = total; }
  void advance(int64_t count) override { done_ += count; }
  void finish(std::string_view) override { finished_ = true; }
  void note(std::string_view) override {}
  int64_t total_ = 0;
  int64_t done_ = 0;
  bool finished_ = false;
};

TEST(Evaluate, ReportsProgress) {
  CountingProgress progress;
  Graph graph = parse_ok("graph @g(%x: f32[]) { %y = neg %x %z = exp %y return %z }");
  ASSERT_TRUE(evaluate(graph, tensors({"f32[] 1"}), {.progress = &progress}).ok());
  EXPECT_EQ(progress.total_, 2);
  EXPECT_EQ(progress.done_, 2);
  EXPECT_TRUE(progress.finished_);
}

TEST(Evaluate, ExpandsCompositesWithAbsentOperands) {
  // Without a zero point: round(1.25 / 0.5) = round(2.5) = 2; -6 saturates.
  EXPECT_EQ(run("graph @g(%x: f32[2], %s: f32[]) { %y = quantize %x, %s return %y }",
                {"f32[2] 1.25 -3", "f32[] 0.5"}, {"u8[2] 2 0"}),
            "");
  EXPECT_EQ(run("graph @g(%x: f64[3]) { %y = relu %x %z = relu %y return %z }", {"f64[3] -1 0 2"},
                {"f64[3] 0 0 2"}),
            "");
}

// ---- Other domains ------------------------------------------------------------------------------

constexpr uint64_t kPrime = FieldElement::kPrime;

TEST(Field, ConfirmsAnIdentityOfRings) {
  Graph left = parse_ok(
      "graph @l(%a: f32[8], %b: f32[8]) { %s = add %a, %b %d = sub %a, %b %p = mul %s, %d return "
      "%p }");
  Graph right = parse_ok(
      "graph @r(%a: f32[8], %b: f32[8]) { %p = mul %a, %a %q = mul %b, %b %d = sub %p, %q return "
      "%d }");
  Rng rng(1);
  std::vector<FieldInput> inputs(2);
  for (FieldInput& input : inputs) {
    for (int i = 0; i < 8; ++i) input.residues.push_back(rng.below(kPrime));
  }
  Result<std::vector<std::vector<uint64_t>>> l = evaluate_in_field(left, inputs);
  Result<std::vector<std::vector<uint64_t>>> r = evaluate_in_field(right, inputs);
  ASSERT_TRUE(l.ok() && r.ok());
  EXPECT_EQ(*l, *r);
  inputs[0].residues[3] = (inputs[0].residues[3] + 1) % kPrime;
  EXPECT_NE(*evaluate_in_field(left, inputs), *r);
}

TEST(Field, DivisionAndConstantsAreExact) {
  // x / 4 + 0.75 - (x + 3) / 4 = 0, and 0.1 is the double that it is.
  Graph graph = parse_ok(
      "graph @g(%x: f32[2]) { %q = div %x, 4 %l = add %q, 0.75 %s = add %x, 3 %r = div %s, 4"
      " %d = sub %l, %r return %d }");
  std::vector<FieldInput> inputs = {{.residues = {12345678901234567, kPrime - 1}, .integers = {}}};
  EXPECT_EQ(*evaluate_in_field(graph, inputs), (std::vector<std::vector<uint64_t>>{{0, 0}}));
  // -1.5 * 2 = -3
  Graph product = parse_ok("graph @g(%x: f64[1]) { %y = mul %x, -1.5 return %y }");
  inputs[0].residues = {2};
  EXPECT_EQ(evaluate_in_field(product, inputs)->at(0), std::vector<uint64_t>{kPrime - 3});
}

TEST(Field, ChoosesByIntegersAndLoops) {
  // x^5 by a loop
  Graph graph = parse_ok(
      "graph @g(%x: f32[1], %n: i32[]) { %one = constant 1 : f32[1]"
      " %i, %p, %y = while %n, %one, %x"
      " condition(%i: i32[], %p: f32[1], %x: f32[1]) { %c = compare %i, 0 {direction = gt} return "
      "%c }"
      " body(%i: i32[], %p: f32[1], %x: f32[1]) { %j = sub %i, 1 %q = mul %p, %x return %j, %q, %x "
      "}"
      " return %p, %i }");
  std::vector<FieldInput> inputs = {{.residues = {3}, .integers = {}},
                                    {.residues = {}, .integers = tensor_of("i32[] 5")}};
  EXPECT_EQ(*evaluate_in_field(graph, inputs), (std::vector<std::vector<uint64_t>>{{243}, {0}}));
}

TEST(Field, RefusesWhatIsNoRingOperation) {
  std::vector<FieldInput> inputs = {{.residues = {1}, .integers = {}}};
  for (const char* op : {"exp %x", "max %x, 0", "compare %x, 0 {direction = lt}", "floor %x"}) {
    Graph graph = parse_ok(fmt::format("graph @g(%x: f32[1]) {{ %y = {} return %y }}", op));
    Result<std::vector<std::vector<uint64_t>>> result = evaluate_in_field(graph, inputs);
    ASSERT_FALSE(result.ok()) << op;
    EXPECT_EQ(result.error().code(), ErrorCode::unsupported);
    EXPECT_THAT(result.error().what(), HasSubstr("no meaning"));
  }
  Graph infinite = parse_ok("graph @g(%x: f32[1]) { %y = mul %x, inf return %y }");
  EXPECT_THAT(evaluate_in_field(infinite, inputs).error().what(), HasSubstr("infinity"));
  Graph fine = parse_ok("graph @g(%x: f32[2]) { return %x }");
  EXPECT_THAT(evaluate_in_field(fine, inputs).error().what(),
              HasSubstr("input 0 ('x') has 1 residues, but f32[2] has 2"));
}

// "0.1 1.0" for input 0 element 1 and input 1 element 0
std::string shown(const std::vector<InputElement>& elements) {
  std::string text;
  for (InputElement e : elements) {
    text += fmt::format("{}{}.{}", text.empty() ? "" : " ", e.input, e.element);
  }
  return text;
}

std::vector<std::string> trace(std::string_view graph,
                               std::initializer_list<std::string_view> inputs, size_t output = 0) {
  Result<std::vector<ElementDependencies>> all =
      trace_dependencies(parse_ok(graph), tensors(inputs));
  if (!all.ok()) return {all.error().to_string()};
  std::vector<std::string> texts;
  for (const std::vector<InputElement>& elements : all->at(output))
    texts.push_back(shown(elements));
  return texts;
}

TEST(Dependencies, FollowElementsThroughAGraph) {
  EXPECT_THAT(trace("graph @g(%x: f32[2], %y: f32[2]) { %s = add %x, %y %t = mul %s, %s"
                    " %r = reverse %t {axes = [0]} return %r }",
                    {"f32[2] 1", "f32[2] 1"}),
              ElementsAre("0.1 1.1", "0.0 1.0"));
  EXPECT_THAT(trace("graph @g(%e: f32[0], %x: i32[2]) { %y = neg %x %z = popcount %y return %z }",
                    {"f32[0]", "i32[2] 1"}),
              ElementsAre("1.0", "1.1"));
  EXPECT_THAT(trace("graph @g(%x: f32[2]) { %c = constant 1 : f32[2] return %c }", {"f32[2] 1"}),
              ElementsAre("", ""));
}

TEST(Dependencies, CountPredicates) {
  // The chosen value and the predicate, not the other value.
  EXPECT_THAT(
      trace("graph @g(%p: bool[2], %x: f32[2], %y: f32[2]) { %s = select %p, %x, %y return %s }",
            {"bool[2] 1 0", "f32[2] 1", "f32[2] 1"}),
      ElementsAre("0.0 1.0", "0.1 2.1"));
  EXPECT_THAT(trace("graph @g(%x: f32[1]) { %n = is_nan %x return %n }", {"f32[1] 1"}),
              ElementsAre("0.0"));
  EXPECT_THAT(trace("graph @g(%p: bool[], %x: f32[1], %y: f32[1]) { %r = if %p, %x, %y"
                    " then(%a: f32[1], %b: f32[1]) { return %a }"
                    " else(%a: f32[1], %b: f32[1]) { return %b } return %r }",
                    {"bool[] 0", "f32[1] 1", "f32[1] 1"}),
              ElementsAre("0.0 2.0"));
}

TEST(Dependencies, ScanElementsComeFromEarlierSteps) {
  EXPECT_THAT(trace("graph @g(%i: f32[], %x: f32[3]) { %f, %y = scan %i, %x {carried = 1}"
                    " body(%s: f32[], %e: f32[]) { %n = add %s, %e return %n, %n } return %y }",
                    {"f32[] 0", "f32[3] 1"}),
              ElementsAre("0.0 1.0", "0.0 1.0 1.1", "0.0 1.0 1.1 1.2"));
}

}  // namespace
}  // namespace hone::HONE_FILE
