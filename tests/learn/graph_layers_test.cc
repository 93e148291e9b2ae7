#include "learn/graph_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/reference/evaluate.h"
#include "learn/network_step.h"
#include "tests/grad/grad_testing.h"

namespace hone {
namespace {

using testing::HasSubstr;
using Layer = std::function<Value(Network&, Value x, const Edges& edges)>;

constexpr int64_t kNodes = 4;
// Node 2 hears nobody; the last edge is padding.
const std::vector<int64_t> kSources = {1, 2, 3, 0, 0, 2};
const std::vector<int64_t> kTargets = {0, 0, 0, 1, 3, kNodes};

Result<Forward> forward_of(const Layer& layer, int64_t features) {
  const Type ids = Type::get(DType::i32, {static_cast<int64_t>(kSources.size())});
  const BatchTypes batch = {
      {"sources", ids}, {"targets", ids}, {"x", Type::get(DType::f32, {kNodes, features})}};
  return trace(
      [&](Network& net) {
        const Value x = net.input("x");
        const Value y = layer(net, x, {net.input("sources"), net.input("targets")});
        return Objective{reduce_mean(y * y + y, {0, 1}), {}};
      },
      Network::Mode::training, batch);
}

std::vector<Tensor> first_inputs(const Forward& forward) {
  std::vector<Tensor> inputs;
  for (const Network::Port& port : forward.ports) {
    if (!is_real(port.type.dtype())) {
      inputs.push_back(
          Tensor::from_integers(port.type, port.name == "sources" ? kSources : kTargets));
      continue;
    }
    const bool is_weight = port.role == Network::Role::weight;
    inputs.push_back(initial_tensor(is_weight ? port.initializer : Initializer::uniform(1),
                                    port.type.with_dtype(DType::f64), port.name, 3));
  }
  return inputs;
}

// The derivative by all reals, along a random direction, against differences.
void check(const Layer& layer) {
  const Result<Forward> forward = forward_of(layer, 3);
  ASSERT_TRUE(forward.ok()) << forward.error().to_string();
  expect_derivative(in_f64(forward->graph).value(), first_inputs(*forward));
}

TEST(GraphLayers, HaveTheDerivativesOfDifferences) {
  check([](Network& net, Value x, const Edges& e) { return graph_sage(net, "a", x, e, 2); });
  check([](Network& net, Value x, const Edges& e) {
    return graph_isomorphism(net, "a", x, e, 4, 2);
  });
  check(
      [](Network& net, Value x, const Edges& e) { return graph_attention(net, "a", x, e, 4, 2); });
  check([](Network& net, Value x, const Edges& e) {
    const Value graph_of = slice(e.targets, 0, 0, kNodes);
    return attention_pooling(net, "a", x, graph_of, 2);
  });
  check([](Network&, Value x, const Edges& e) {
    return segment_max(take(x, e.sources), e.targets, kNodes);
  });
}

// What a function of six rows gives.
std::vector<double> segments(Value (*function)(Value, Value, Dim)) {
  Builder b("segments");
  const Value rows = b.constant(
      Tensor::from_reals(Type::get(DType::f32, {6, 1}), std::vector<double>{1, 5, 3, -2, 7, 1000}));
  const Value ids = b.constant(Tensor::from_integers(Type::get(DType::i32, {6}), kTargets));
  const Graph graph = b.finish({function(rows, ids, kNodes)}).value();
  const Tensor result = evaluate(graph, {}).value()[0];
  std::vector<double> values;
  for (int64_t i = 0; i < result.type().static_elements(); ++i) values.push_back(result.real_at(i));
  return values;
}

TEST(Segments, AreReducedAndLeavePaddingOut) {
  using testing::ElementsAre;
  EXPECT_THAT(segments(segment_sum), ElementsAre(9, -2, 0, 7));
  EXPECT_THAT(segments(segment_mean), ElementsAre(3, -2, 0, 7));
  EXPECT_THAT(segments(segment_max), ElementsAre(5, -2, 0, 7));
  const std::vector<double> shares = segments(segment_softmax);
  EXPECT_NEAR(shares[0] + shares[1] + shares[2], 1, 1e-6);
  EXPECT_NEAR(shares[1] / shares[2], std::exp(2.0), 1e-5);
  EXPECT_EQ(shares[3], 1);
  EXPECT_EQ(shares[5], 0);
}

TEST(GraphLayers, RefuseWhatTheyCannotTake) {
  const auto error = [](const Layer& layer) {
    const Result<Forward> forward = forward_of(layer, 3);
    return forward.ok() ? "built" : forward.error().to_string();
  };
  EXPECT_THAT(error([](Network& net, Value x, const Edges& e) {
                return graph_attention(net, "a", x, e, 4, 3);
              }),
              HasSubstr("do not divide"));
  EXPECT_THAT(
      error([](Network&, Value x, const Edges& e) { return segment_sum(x, e.targets, kNodes); }),
      HasSubstr("one integer for each row"));
  EXPECT_THAT(error([](Network& net, Value x, const Edges& e) {
                return graph_sage(net, "a", x, {slice(e.sources, 0, 0, 2), e.targets}, 2);
              }),
              HasSubstr("as many sources as targets"));
}

}  // namespace
}  // namespace hone
