#include "zoo/quantized.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ir/op_def.h"
#include "ir/reference/evaluate.h"
#include "rewrite/passes.h"
#include "tests/base/says_testing.h"
#include "zoo/inputs.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

int64_t count(const Graph& graph, Opcode opcode) {
  int64_t count = 0;
  for (NodeId n : graph.nodes()) count += graph.opcode(n) == opcode ? 1 : 0;
  return count;
}

std::vector<Tensor> outputs_of(const Graph& graph, const std::vector<Tensor>& inputs) {
  return evaluate(graph, inputs).value();
}

// The largest difference, in parts of the largest number.
double difference(const Tensor& a, const Tensor& b) {
  double most = 0, largest = 0;
  for (int64_t i = 0; i < a.elements(); ++i) {
    most = std::max(most, std::abs(a.real_at(i) - b.real_at(i)));
    largest = std::max(largest, std::abs(a.real_at(i)));
  }
  return most / largest;
}

TEST(Quantized, ModelsSumProductsOfBytes) {
  for (const char* name : {"resnet50", "mobilenet_v2", "vgg16"}) {
    SCOPED_TRACE(name);
    const Graph model = build_zoo_model(name, {.size = ZooSize::tiny}).value();
    const Graph reals = without_norms(model).value();
    EXPECT_EQ(count(reals, Opcode::batch_norm), 0);
    EXPECT_EQ(count(reals, Opcode::conv), count(model, Opcode::conv));
    const std::vector<Tensor> inputs = random_inputs(reals, 1).value();
    const Graph bytes = quantized(reals, outputs_of(ranges_of(reals).value(), inputs)).value();
    ASSERT_TRUE(verify(bytes).ok()) << verify(bytes).error().to_string();
    // As near as 8 bits are, layer after layer.
    EXPECT_LT(difference(outputs_of(reals, inputs)[0], outputs_of(bytes, inputs)[0]), 0.1);
    const Graph integers = products_of_integers(bytes).value();
    for (NodeId n : integers.nodes()) {
      if (class_of(integers.opcode(n)) != OpClass::contraction) continue;
      EXPECT_EQ(integers.type(integers.result(n)).dtype(), DType::i32) << integers.describe(n);
    }
  }
}

TEST(Quantized, NormsScaleWeights) {
  Builder b;
  const Value x = b.parameter("x", DType::f32, {1, 2, 3, 3});
  const auto numbers = [&](const Dims& dims, const std::vector<double>& all) {
    return b.constant(Tensor::from_reals(Type::get(DType::f32, dims), all));
  };
  const Value y = b.op(Opcode::conv, {x, numbers({2, 2, 1, 1}, {1, 2, 3, 4})});
  const Value z = b.op(
      Opcode::batch_norm,
      {y, numbers({2}, {6, 10}), numbers({2}, {0, 0}), numbers({2}, {0, 0}), numbers({2}, {4, 25})},
      {{"epsilon", 0.0}});
  const Graph graph = b.finish({z}).value();
  const Graph scaled = without_norms(graph).value();
  EXPECT_EQ(count(scaled, Opcode::batch_norm), 0);
  const std::vector<Tensor> inputs = random_inputs(graph, 1).value();
  EXPECT_LT(difference(outputs_of(graph, inputs)[0], outputs_of(scaled, inputs)[0]), 1e-6);
}

TEST(Quantized, NeedRangesOfAllValues) {
  const Graph model = build_zoo_model("resnet18", {.size = ZooSize::tiny}).value();
  const Result<Graph> graph = quantized(model, {});
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(graph.error(), says("0 numbers ... ranges"));
}

}  // namespace
}  // namespace hone::HONE_FILE
