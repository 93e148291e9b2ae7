#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "grad/grad.h"
#include "grad/linearize.h"
#include "grad/transpose.h"
#include "grad/unzip.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "tests/base/says_testing.h"

// The three transformations, one by one, on the example of docs/derivatives.md.

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::ElementsAre;
using testing::HasSubstr;

Graph parsed(std::string_view text) {
  Result<Graph> graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return graph.ok() ? *graph : Graph();
}

std::string printed(const Result<Graph>& graph) {
  return graph.ok() ? print(*graph) : graph.error().to_string();
}

// y = sum(tanh(w x))
constexpr std::string_view kLayer = R"(
graph @layer(%x: f64[3], %w: f64[2, 3]) -> f64[] {
  %h = dot %w, %x {lhs_contract = [1], rhs_contract = [0]} : f64[2]
  %a = tanh %h : f64[2]
  %y = reduce %a {kind = sum, axes = [0]} : f64[]
  return %y
}
)";

// With a tangent of %w. The slope 1 - a^2 is written as (1 - a)(1 + a).
constexpr std::string_view kLinearized =
    R"(graph @layer(%x: f64[3], %w: f64[2, 3], %2: f64[2, 3]) -> (f64[], f64[]) {
  %h = dot %w, %x {lhs_contract = [1], rhs_contract = [0]} : f64[2]
  %4 = dot %2, %x {lhs_contract = [1], rhs_contract = [0]} : f64[2]
  %a = tanh %h : f64[2]
  %6 = constant 1 : f64[]
  %7 = broadcast %6 {dims = [2], map = []} : f64[2]
  %8 = sub %7, %a : f64[2]
  %9 = constant 1 : f64[]
  %10 = broadcast %9 {dims = [2], map = []} : f64[2]
  %11 = add %10, %a : f64[2]
  %12 = mul %8, %11 : f64[2]
  %13 = mul %4, %12 : f64[2]
  %y = reduce %a {kind = sum, axes = [0]} : f64[]
  %15 = reduce %13 {kind = sum, axes = [0]} : f64[]
  return %y, %15
}
)";

TEST(Linearize, AddsTangentsOfTheChosenInputs) {
  EXPECT_EQ(printed(linearize(parsed(kLayer), {false, true}, {true})), kLinearized);
}

TEST(Linearize, GivesZerosForWhatDoesNotChange) {
  const Result<Graph> made = linearize(parsed(R"(
graph @g(%x: f32[2], %y: f32[2]) -> f32[2] {
  %s = stop_gradient %x
  %z = add %s, %y
  return %z
}
)"),
                                       {true, false}, {true});
  EXPECT_THAT(printed(made), HasSubstr("%5 = constant 0 : f32[]"));
}

TEST(Unzip, StoresWhatTheLinearPartReads) {
  Result<Unzipped> parts =
      unzip(parsed(kLinearized), {false, false, true}, {false, true}, {true, true, true});
  ASSERT_TRUE(parts.ok()) << parts.error().to_string();
  EXPECT_EQ(parts->stored, 1u);
  EXPECT_THAT(parts->passed, ElementsAre(0u));  // %x
  EXPECT_THAT(print(parts->primal), HasSubstr("return %y, %10"));
  EXPECT_EQ(print(parts->linear),
            R"(graph @layer_linear(%x: f64[3], %1: f64[2], %2: f64[2, 3]) -> f64[] {
  %3 = dot %2, %x {lhs_contract = [1], rhs_contract = [0]} : f64[2]
  %4 = mul %3, %1 : f64[2]
  %5 = reduce %4 {kind = sum, axes = [0]} : f64[]
  return %5
}
)");
}

TEST(Unzip, StoresInputsThatMustNotBePassed) {
  Result<Unzipped> parts =
      unzip(parsed(kLinearized), {false, false, true}, {false, true}, {false, false, false});
  ASSERT_TRUE(parts.ok()) << parts.error().to_string();
  EXPECT_EQ(parts->stored, 2u);
  EXPECT_TRUE(parts->passed.empty());
}

TEST(Unzip, RefusesATangentThatIsNotSaidToBeOne) {
  Result<Unzipped> parts =
      unzip(parsed(kLinearized), {false, false, true}, {false, false}, {true, true, true});
  ASSERT_FALSE(parts.ok());
  EXPECT_THAT(parts.error().to_string(), HasSubstr("output 1 depends on a tangent"));
}

TEST(Transpose, RunsALinearGraphBackwards) {
  const Graph linear = parsed(R"(
graph @linear(%x: f64[3], %s: f64[2], %t: f64[2, 3]) -> f64[] {
  %3 = dot %t, %x {lhs_contract = [1], rhs_contract = [0]} : f64[2]
  %4 = mul %3, %s : f64[2]
  %5 = reduce %4 {kind = sum, axes = [0]} : f64[]
  return %5
}
)");
  EXPECT_EQ(printed(transpose(linear, {false, false, true}, {true})),
            R"(graph @linear(%x: f64[3], %s: f64[2], %2: f64[]) -> f64[2, 3] {
  %3 = broadcast %2 {dims = [2], map = []} : f64[2]
  %4 = mul %3, %s : f64[2]
  %5 = dot %4, %x {lhs_contract = [], rhs_contract = []} : f64[2, 3]
  return %5
}
)");
}

TEST(Transpose, RefusesWhatIsNotLinear) {
  for (const char* op : {"exp %x", "mul %x, %x", "floor %x"}) {
    const Graph graph = parsed(std::string("graph @g(%x: f32[2]) -> f32[2] {\n  %y = ") + op +
                               "\n  %z = add %y, %x\n  return %z\n}\n");
    Result<Graph> made = transpose(graph, {true}, {true});
    ASSERT_FALSE(made.ok()) << op;
    EXPECT_THAT(made.error().to_string(), says("linear function")) << op;
  }
}

// ---- grad ---------------------------------------------------------------------------------------

TEST(Grad, NamesGradientsAndSharesWhatIsComputed) {
  EXPECT_EQ(printed(grad(parsed(kLayer), 0, {false, true})),
            R"(graph @layer(%x: f64[3], %w: f64[2, 3]) -> (f64[], f64[2, 3]) {
  %h = dot %w, %x {lhs_contract = [1], rhs_contract = [0]} : f64[2]
  %a = tanh %h : f64[2]
  %4 = constant 1 : f64[]
  %5 = broadcast %4 {dims = [2], map = []} : f64[2]
  %6 = sub %5, %a : f64[2]
  %7 = add %5, %a : f64[2]
  %8 = mul %6, %7 : f64[2]
  %y = reduce %a {kind = sum, axes = [0]} : f64[]
  %10 = mul %5, %8 : f64[2]
  %w.grad = dot %10, %x {lhs_contract = [], rhs_contract = []} : f64[2, 3]
  return %y, %w.grad
}
)");
}

Error grad_error(std::string_view text, Mask inputs) {
  Result<Graph> made = grad(parsed(text), 0, inputs);
  EXPECT_FALSE(made.ok());
  return made.ok() ? Error(ErrorCode::internal, "") : made.error();
}

TEST(Grad, RefusesALossThatIsNoNumber) {
  const Error error = grad_error("graph @g(%x: f32[2]) -> f32[2] {\n  return %x\n}\n", {true});
  EXPECT_THAT(error.to_string(), says("loss %x ... f32[2] ... real number"));
}

TEST(Grad, SaysWhereAPathEnds) {
  const Error error = grad_error(R"(
graph @g(%x: f32[4]) -> f32[] {
  %i = arg_reduce %x {kind = max, axis = 0}
  %y = cast %i {dtype = f32}
  return %y
}
)",
                                 {true});
  EXPECT_EQ(error.code(), ErrorCode::unsupported);
  EXPECT_THAT(error.to_string(), HasSubstr("depends on %x only through node '%i' (arg_reduce)"));
}

TEST(Grad, NamesAnOpWithoutADerivative) {
  const Error error = grad_error(R"(
graph @g(%x: f32[]) -> f32[] {
  %i = bitcast %x {dtype = f32}
  %y = exp %i
  return %y
}
)",
                                 {true});
  EXPECT_EQ(error.code(), ErrorCode::unsupported);
  EXPECT_THAT(error.to_string(), HasSubstr("'bitcast' has no derivative"));
  EXPECT_THAT(error.to_string(), HasSubstr("node '%i' (bitcast)"));
}

TEST(Grad, IsZeroBehindStopGradientAndForWhatIsNotRead) {
  const Result<Graph> made = grad(parsed(R"(
graph @g(%x: f32[], %y: f32[3]) -> f32[] {
  %s = stop_gradient %x
  %z = exp %s
  return %z
}
)"),
                                  0, {true, true});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_THAT(print(*made), HasSubstr("constant 0 : f32[]"));
}

// ---- Straight through ---------------------------------------------------------------------------

std::vector<double> numbers_of(const Tensor& tensor) {
  std::vector<double> all(static_cast<size_t>(tensor.elements()));
  tensor.read_reals(0, std::span<double>(all));
  return all;
}

TEST(StraightThrough, RoundingCountsAsTheIdentityWithinItsRange) {
  const Graph graph = parse_graph(R"(graph @g(%x: f32[5], %w: f32[5]) -> f32[] {
    %s = constant 0.5 : f32[]
    %z = constant 3 : u8[]
    %q = quantize %x, %s, %z {dtype = u8}
    %d = dequantize %q, %s, %z
    %p = mul %d, %w
    %y = reduce %p {kind = sum, axes = [0]}
    return %y
  })")
                          .value();
  const Type type = Type::get(DType::f32, {5});
  const std::vector<Tensor> inputs = {
      Tensor::from_reals(type, std::vector<double>{-5, -1.5, 0.3, 126, 200}),
      Tensor::from_reals(type, std::vector<double>{1, 2, 3, 4, 5})};
  const std::vector<Tensor> made = evaluate(grad(graph, 0, {true, true}).value(), inputs).value();
  EXPECT_TRUE(made[0].same_bytes(evaluate(graph, inputs).value()[0]));
  EXPECT_EQ(numbers_of(made[1]), (std::vector<double>{0, 2, 3, 4, 0}));
  EXPECT_EQ(numbers_of(made[2]), (std::vector<double>{-1.5, -1.5, 0.5, 126, 126}));
}

// Scales learn: inside of the range by the rounding, outside by the bound.
TEST(StraightThrough, ScalesAlongAnAxisHaveDerivatives) {
  const Graph graph = parse_graph(R"(graph @g(%x: f32[2, 3], %s: f32[2]) -> f32[] {
    %q = quantize %x, %s {dtype = i4, axis = 0}
    %d = dequantize %q, %s {axis = 0}
    %y = reduce %d {kind = sum, axes = [0, 1]}
    return %y
  })")
                          .value();
  const std::vector<Tensor> inputs = {
      Tensor::from_reals(Type::get(DType::f32, {2, 3}), std::vector<double>{0.75, 9, -20, 1, 3, 5}),
      Tensor::from_reals(Type::get(DType::f32, {2}), std::vector<double>{1, 2})};
  const std::vector<Tensor> made = evaluate(grad(graph, 0, {true, true}).value(), inputs).value();
  EXPECT_EQ(numbers_of(made[1]), (std::vector<double>{1, 0, 0, 1, 1, 1}));
  // 1 - 0.75, the bounds 7 and -8; halves round to even: 0 - 0.5, 2 - 1.5, 2 - 2.5.
  EXPECT_EQ(numbers_of(made[2]), (std::vector<double>{0.25 + 7 - 8, -0.5 + 0.5 - 0.5}));
}

TEST(StraightThrough, OtherScalesAreNoPair) {
  const Graph graph = parse_graph(R"(graph @g(%x: f32[2]) -> f32[] {
    %s = constant 0.5 : f32[]
    %t = constant 0.25 : f32[]
    %q = quantize %x, %s {dtype = u8}
    %d = dequantize %q, %t
    %y = reduce %d {kind = sum, axes = [0]}
    return %y
  })")
                          .value();
  EXPECT_FALSE(grad(graph, 0, {true}).ok());
}

}  // namespace
}  // namespace hone::HONE_FILE
