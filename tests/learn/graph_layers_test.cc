#include "learn/graph_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/reference/evaluate.h"
#include "learn/graph_data.h"
#include "learn/network_step.h"
#include "tests/base/says_testing.h"
#include "tests/grad/grad_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;
using Layer = std::function<Value(Network&, Value x, const Edges& edges)>;

constexpr int64_t kNodes = 4;
// Node 2 hears nobody; one edge is padding.
const std::vector<int64_t> kSources = {0, 2, 1, 0, 2, 3};
const std::vector<int64_t> kTargets = {3, kNodes, 0, 1, 0, 0};
const std::vector<int64_t> kGraphs = {0, 0, 1, 2};  // the last node belongs to none of two

Batch batch_of(int64_t features) {
  Batch batch = {{"x", Tensor::zeros(Type::get(DType::f32, {kNodes, features}))}};
  EXPECT_TRUE(add_edges(batch, "edges", kSources, kTargets, kNodes).ok());
  EXPECT_TRUE(add_segments(batch, "graphs", kGraphs, 2).ok());
  return batch;
}

Result<Forward> forward_of(const Layer& layer, int64_t features) {
  const BatchTypes types = types_of(batch_of(features));
  return trace(
      [&](Network& net) {
        const Value y = layer(net, net.input("x"), edges_in(net, "edges"));
        return Objective{reduce_mean(y * y + y, {0, 1}), {}};
      },
      Network::Mode::training, types);
}

std::vector<Tensor> first_inputs(const Forward& forward) {
  const Batch batch = batch_of(3);
  std::vector<Tensor> inputs;
  for (const Network::Port& port : forward.ports) {
    if (!is_real(port.type.dtype())) {
      inputs.push_back(batch.find(port.name)->second);
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
  check([](Network& net, Value x, const Edges&) {
    return attention_pooling(net, "a", x, segments_in(net, "graphs"));
  });
  check([](Network&, Value x, const Edges& e) {
    return segment_max(gather_rows(x, e.sources, e.source_offsets, e.by_source), e.targets);
  });
}

// The result of a function of six rows: node 0 has the first three, the last is padding.
std::vector<double> reduced(Value (*function)(Value, const Segments&)) {
  Builder b("segments");
  const Value rows = b.constant(
      Tensor::from_reals(Type::get(DType::f32, {6, 1}), std::vector<double>{1, 5, 3, -2, 7, 1000}));
  const Batch batch = batch_of(1);
  const Segments segments = {b.constant(batch.at("edges.targets.of")),
                             b.constant(batch.at("edges.targets.offsets"))};
  const Graph graph = b.finish({function(rows, segments)}).value();
  const Tensor result = evaluate(graph, {}).value()[0];
  std::vector<double> values;
  for (int64_t i = 0; i < result.type().static_elements(); ++i) values.push_back(result.real_at(i));
  return values;
}

TEST(Segments, AreReducedAndLeavePaddingOut) {
  using testing::ElementsAre;
  EXPECT_THAT(reduced(segment_sum), ElementsAre(9, -2, 0, 7));
  EXPECT_THAT(reduced(segment_mean), ElementsAre(3, -2, 0, 7));
  EXPECT_THAT(reduced(segment_max), ElementsAre(5, -2, 0, 7));
  const std::vector<double> shares = reduced(segment_softmax);
  EXPECT_NEAR(shares[0] + shares[1] + shares[2], 1, 1e-6);
  EXPECT_NEAR(shares[1] / shares[2], std::exp(2.0), 1e-5);
  EXPECT_EQ(shares[3], 1);
  EXPECT_EQ(shares[5], 0);
}

std::vector<int64_t> numbers(const Batch& batch, std::string_view name) {
  const Tensor& tensor = batch.find(name)->second;
  std::vector<int64_t> all;
  for (int64_t i = 0; i < tensor.elements(); ++i) all.push_back(tensor.integer_at(i));
  return all;
}

TEST(GraphData, SortsEdgesInBothOrders) {
  using testing::ElementsAre;
  Batch batch;
  const auto order = add_edges(batch, "e", kSources, kTargets, kNodes);
  ASSERT_TRUE(order.ok());
  EXPECT_THAT(*order, ElementsAre(2, 4, 5, 3, 0, 1));
  EXPECT_THAT(numbers(batch, "e.sources"), ElementsAre(1, 2, 3, 0, 0, kNodes));
  EXPECT_THAT(numbers(batch, "e.targets.of"), ElementsAre(0, 0, 0, 1, 3, kNodes));
  EXPECT_THAT(numbers(batch, "e.targets.offsets"), ElementsAre(0, 3, 4, 4, 5));
  EXPECT_THAT(numbers(batch, "e.by_source"), ElementsAre(3, 4, 0, 1, 2, 5));
  EXPECT_THAT(numbers(batch, "e.source_offsets"), ElementsAre(0, 2, 3, 4, 5));
}

TEST(GraphData, RefusesWhatIsNoGraph) {
  Batch batch;
  const auto edges = [&](std::vector<int64_t> sources, std::vector<int64_t> targets) {
    const auto order = add_edges(batch, "e", sources, targets, 2);
    return order.ok() ? "added" : order.error().to_string();
  };
  EXPECT_THAT(edges({0}, {0, 1}), HasSubstr("'e' has 1 sources and 2 targets"));
  EXPECT_THAT(edges({2}, {0}), HasSubstr("number 0 of the sources is 2, outside of 0..1"));
  EXPECT_THAT(edges({0, 0}, {0, 3}), HasSubstr("number 1 of the targets is 3, outside of 0..2"));
  const std::vector<int64_t> unsorted = {1, 0};
  EXPECT_THAT(add_segments(batch, "s", unsorted, 2).error().to_string(),
              HasSubstr("the segments of 's' decrease"));
  EXPECT_TRUE(batch.empty());
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
  EXPECT_THAT(error([](Network&, Value x, const Edges& e) { return segment_sum(x, e.targets); }),
              says("integer ... row"));
  EXPECT_THAT(error([](Network& net, Value x, const Edges& e) {
                Edges fewer = e;
                fewer.sources = slice(e.sources, 0, 0, 2);
                return graph_sage(net, "a", x, fewer, 2);
              }),
              says("sources ... targets"));
}

}  // namespace
}  // namespace hone::HONE_FILE
