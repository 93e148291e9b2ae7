#include "ir/summary.h"

#include "ir/functional.h"
#include "report/dot.h"
#include "report/summary_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

// y = max(x . w, 0), with w [4, 5].
Graph layer(Dim batch) {
  Builder b("layer");
  const Value x = b.parameter("x", DType::f32, {batch, 4});
  const Value w = b.constant(Tensor::zeros(Type::get(DType::f32, {4, 5})), "w");
  const Value y = relu(matmul(x, w).named("h")).named("y");
  return *b.finish({y});
}

TEST(Summary, CountsTypesOpsAndParameters) {
  const GraphSummary summary = *summarize(layer(3));
  EXPECT_EQ(summary.inputs[0].name, "x");
  EXPECT_EQ(summary.outputs[0].type, Type::get(DType::f32, {3, 5}));
  EXPECT_EQ(summary.nodes, 4);
  EXPECT_EQ(summary.op_counts.at("dot"), 1);
  EXPECT_EQ(summary.composite_counts.at("relu"), 1);
  EXPECT_EQ(summary.parameters, 20);
  EXPECT_EQ(summary.constant_bytes, 80);
  EXPECT_EQ(summary.macs, 3 * 4 * 5);
  EXPECT_EQ(summary.largest[0].name, "w");  // 80 bytes; h and y have 60, x 48
  // x and h are alive at the dot, which reads w, then h and y. Bytes of constants are told apart.
  EXPECT_EQ(summary.peak_elements, 12 + 20 + 15);
  EXPECT_EQ(summary.peak_bytes, 4 * 2 * 15);
}

TEST(Summary, StatesWorkAtTheGivenSize) {
  const Graph graph = layer(Symbol::get("N", 2, 64));
  const GraphSummary smallest = *summarize(graph);
  EXPECT_EQ(smallest.macs, 2 * 4 * 5);
  EXPECT_EQ(smallest.work_at.at("N"), Dim(2));
  EXPECT_EQ(smallest.inputs[0].type.to_string(), "f32[N, 4]");
  EXPECT_EQ(summarize(graph, {{"N", 10}})->macs, 10 * 4 * 5);
}

TEST(Summary, TheSmallestSizeIsLegalAndNotEmptyIfPossible) {
  Builder b;
  b.parameter("a", DType::f32,
              {Symbol::get("A", 0, 9), Symbol::get("B", 3, 64, 8), Symbol::get("C", 0, 0)});
  const Graph graph = *b.finish(std::initializer_list<Value>{});
  const Bindings bindings = smallest_bindings(graph, {});
  EXPECT_EQ(bindings.at("A"), Dim(1));
  EXPECT_EQ(bindings.at("B"), Dim(8));
  EXPECT_EQ(bindings.at("C"), Dim(0));
}

TEST(Summary, ALoopsWorkIsThatOfAllItsSteps) {
  Builder b;
  const Value state = b.parameter("s", DType::f32, {2, 2});
  const Value steps = b.parameter("x", DType::f32, {7, 2, 2});
  const std::vector<Value> results = scan(
      std::vector<Value>{state}, std::vector<Value>{steps},
      [](Builder&, std::span<const Value> v) { return std::vector<Value>{matmul(v[0], v[1])}; });
  const GraphSummary summary = *summarize(*b.finish(results));
  EXPECT_EQ(summary.macs, 7 * 2 * 2 * 2);
  EXPECT_EQ(summary.op_counts.at("dot"), 1);  // counted once
}

TEST(Summary, MacsOfCompositesAreThoseOfTheirExpansion) {
  Builder b;
  const Value x = b.parameter("x", DType::f32, {3, 4});
  const Value y = b.parameter("y", DType::f32, {4, 5});
  const GraphSummary summary = *summarize(*b.finish({einsum("ij,jk->ik", {x, y})}));
  EXPECT_EQ(summary.composite_counts.at("einsum"), 1);
  EXPECT_EQ(summary.macs, 3 * 4 * 5);
}

TEST(Summary, OutputsAreNamedApart) {
  Builder b;
  const Value x = b.parameter("x", DType::f32, {2});
  const Graph graph = *b.finish({x, x, x + x});
  EXPECT_EQ(output_names(graph), (std::vector<std::string>{"x", "x_1", "output2"}));
}

TEST(Statistics, IgnoresNans) {
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  const Type type = Type::get(DType::f64, {4});
  const TensorStatistics some =
      statistics(Tensor::from_reals(type, std::vector<double>{1, nan, -2, 4}));
  EXPECT_EQ(some.min, -2);
  EXPECT_EQ(some.max, 4);
  EXPECT_EQ(some.mean, 1);
  EXPECT_EQ(some.nans, 1);
  EXPECT_EQ(statistics(Tensor::from_reals(type, std::vector<double>(4, infinity))).infinities, 4);
  EXPECT_EQ(statistics(Tensor::zeros(Type::get(DType::f32, {0}))).max, 0);
}

TEST(FirstElements, ArePrintedByType) {
  const Type three = Type::get(DType::f32, {3});
  EXPECT_EQ(first_elements(Tensor::from_reals(three, std::vector<double>{0.5, 1, 2}), 2),
            "0.5, 1, ...");
  EXPECT_EQ(
      first_elements(Tensor::from_integers(three.with_dtype(DType::boolean), Ints{1, 0, 1}), 3),
      "true, false, true");
  EXPECT_EQ(first_elements(Tensor::from_integers(Type::get(DType::u64, {1}), Ints{-1}), 3),
            "18446744073709551615");
}

TEST(SummaryText, SaysWhatPeopleAskFor) {
  const std::string text = summary_text(*summarize(layer(Symbol::get("N", 1, 64))));
  EXPECT_THAT(text, HasSubstr("x  f32[N, 4]"));
  EXPECT_THAT(text, HasSubstr("N in 1..64"));
  EXPECT_THAT(text, HasSubstr("1 relu"));
  EXPECT_THAT(text, HasSubstr("20 in 1 constants, 80 B"));
  EXPECT_THAT(text, HasSubstr("at N = 1"));
}

TEST(SummaryJson, IsAnObjectWithNumbers) {
  const std::string text = summary_json(*summarize(layer(3)));
  EXPECT_THAT(text, HasSubstr("\"parameters\": 20"));
  EXPECT_THAT(text, HasSubstr("\"dot\": 1"));
}

TEST(Dot, DrawsNodesAndEdges) {
  const std::string text = graphviz(layer(3));
  EXPECT_THAT(text, HasSubstr("digraph \"layer\" {"));
  EXPECT_THAT(text, HasSubstr("%h = dot\\nf32[3, 5]"));
  EXPECT_THAT(text, HasSubstr("n0 -> n2 [label=\"f32[3, 4]\"]"));
}

}  // namespace
}  // namespace hone::HONE_FILE
