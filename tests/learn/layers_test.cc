#include "learn/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "ir/reference/evaluate.h"
#include "learn/network_step.h"
#include "tests/grad/grad_testing.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;
using Layer = std::function<Value(Network&, Value)>;

Forward forward_of(const Layer& layer, const Dims& dims, DType dtype = DType::f32,
                   Network::Mode mode = Network::Mode::training) {
  const BatchTypes batch = {{"x", Type::get(dtype, dims)}};
  const Result<Forward> forward = trace(
      [&](Network& net) {
        const Value y = layer(net, net.input("x"));
        Ints axes;
        for (int i = 0; i < y.rank(); ++i) axes.push_back(i);
        return Objective{reduce_mean(y * y + y, axes)};
      },
      mode, batch);
  EXPECT_TRUE(forward.ok()) << forward.error().to_string();
  return forward.ok() ? *forward : Forward();
}

// The data of all ports: weights as they begin, and a batch of random numbers.
std::vector<Tensor> first_inputs(const Forward& forward) {
  std::vector<Tensor> inputs;
  for (const Network::Port& port : forward.ports) {
    const bool is_real_input = is_real(port.type.dtype());
    const Initializer initializer =
        port.role == Network::Role::weight ? port.initializer : Initializer::uniform(1);
    const Type type = is_real_input ? port.type.with_dtype(DType::f64) : port.type;
    inputs.push_back(
        is_real_input
            ? initial_tensor(initializer, type, port.name, 3)
            : Tensor::from_integers(
                  type, std::vector<int64_t>(static_cast<size_t>(type.static_elements()), 2)));
  }
  return inputs;
}

// The derivative by all reals, along a random direction, against differences.
void check(const Layer& layer, const Dims& dims, DType dtype = DType::f32) {
  const Forward forward = forward_of(layer, dims, dtype);
  expect_derivative(in_f64(forward.graph).value(), first_inputs(forward));
}

TEST(Layers, HaveTheDerivativesOfDifferences) {
  check([](Network& net, Value x) { return linear(net, "a", x, 3); }, {2, 4});
  check([](Network& net, Value x) { return mlp(net, "a", x, {5, 3}); }, {2, 4});
  check([](Network& net, Value x) { return embedding(net, "a", x, 4, 3); }, {2, 3}, DType::i64);
  check([](Network& net, Value x) { return layer_norm(net, "a", x); }, {2, 4});
  check([](Network& net, Value x) { return rms_norm(net, "a", x); }, {2, 4});
  check([](Network& net, Value x) { return dropout(net, linear(net, "a", x, 6), 0.5); }, {2, 4});
  check([](Network& net, Value x) { return lstm(net, "a", x, 3); }, {4, 2, 3});
  check(
      [](Network& net, Value x) {
        return transformer_layer(net, "a", x, {.heads = 2, .hidden = 6, .dropout = 0.2});
      },
      {2, 3, 4});
}

TEST(Layers, DropoutKeepsTheMeanAndFollowsSeedStepAndPlace) {
  const auto dropped = [](Network& net, Value x) {
    const Value a = dropout(net, x, 0.25), b = dropout(net, x, 0.25);
    return concat({a, b}, 0);
  };
  Forward forward = forward_of(dropped, {1000});
  const auto run = [&](int64_t seed, int64_t step) {
    std::vector<Tensor> inputs;
    for (const Network::Port& port : forward.ports) {
      if (port.role == Network::Role::input)
        inputs.push_back(Tensor::from_reals(port.type, std::vector<double>(1000, 1)));
      else
        inputs.push_back(Tensor::from_integers(
            port.type, std::vector{port.role == Network::Role::seed ? seed : step}));
    }
    Graph all = forward.graph;
    for (NodeId n : all.nodes())
      if (all.opcode(n) == Opcode::concat) all.set_outputs({all.result(n)});
    return evaluate(all, inputs).value()[0];
  };
  const Tensor first = run(1, 0);
  double sum = 0;
  int64_t same = 0;
  for (int64_t i = 0; i < 2000; ++i) {
    const double number = first.real_at(i);
    EXPECT_TRUE(number == 0 || std::abs(number - 4.0 / 3) < 1e-6) << number;
    sum += number;
    if (i < 1000) same += number == first.real_at(1000 + i);
  }
  EXPECT_NEAR(sum / 2000, 1, 0.1);
  EXPECT_LT(same, 800);  // the two places are independent
  EXPECT_TRUE(run(1, 0).same_bytes(first));
  EXPECT_FALSE(run(2, 0).same_bytes(first));
  EXPECT_FALSE(run(1, 1).same_bytes(first));
}

TEST(Layers, DropoutDoesNothingInEvaluation) {
  const Forward forward = forward_of([](Network& net, Value x) { return dropout(net, x, 0.5); },
                                     {4}, DType::f32, Network::Mode::evaluation);
  EXPECT_EQ(forward.ports.size(), 1u);
}

TEST(Layers, WeightsHaveNamesAndMayBeShared) {
  const Forward forward = forward_of(
      [](Network& net, Value x) { return linear(net, "a", linear(net, "a", x, 4), 4); }, {2, 4});
  ASSERT_EQ(forward.ports.size(), 3u);
  EXPECT_EQ(forward.ports[1].name, "a/weight");
  EXPECT_EQ(forward.ports[2].name, "a/bias");
}

TEST(Layers, InitialNumbersFollowFromSeedAndName) {
  const Type type = Type::get(DType::f32, {1000});
  const Tensor a = initial_tensor(Initializer::he(50), type, "a", 1);
  EXPECT_TRUE(a.same_bytes(initial_tensor(Initializer::he(50), type, "a", 1)));
  EXPECT_FALSE(a.same_bytes(initial_tensor(Initializer::he(50), type, "b", 1)));
  EXPECT_FALSE(a.same_bytes(initial_tensor(Initializer::he(50), type, "a", 2)));
  double squares = 0;
  for (int64_t i = 0; i < 1000; ++i) squares += a.real_at(i) * a.real_at(i);
  EXPECT_NEAR(squares / 1000, 2.0 / 50, 0.005);
  const Tensor b = initial_tensor(Initializer::glorot(3, 3), type, "a", 1);
  for (int64_t i = 0; i < 1000; ++i) EXPECT_LE(std::abs(b.real_at(i)), 1);
}

TEST(Layers, RefuseWhatTheyCannotTake) {
  const auto error = [](const Layer& layer) {
    const BatchTypes batch = {{"x", Type::get(DType::f32, {2, 4})}};
    const Result<Forward> forward =
        trace([&](Network& net) { return Objective{layer(net, net.input("x"))}; },
              Network::Mode::training, batch);
    return forward.ok() ? "built" : forward.error().to_string();
  };
  EXPECT_THAT(error([](Network& net, Value x) { return dropout(net, x, 1); }),
              HasSubstr("below 1"));
  EXPECT_THAT(error([](Network& net, Value x) { return transformer_layer(net, "a", x, {}); }),
              HasSubstr("[batch, length, width]"));
  EXPECT_THAT(error([](Network& net, Value) { return net.input("y"); }), HasSubstr("it has x"));
}

}  // namespace
}  // namespace hone::HONE_FILE
