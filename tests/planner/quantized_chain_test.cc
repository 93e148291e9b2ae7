// Networks of bytes as quantizers leave them: what goes from layer to layer stays in bytes.

#include <gtest/gtest.h>

#include "cost/analytic.h"
#include "ir/functional.h"
#include "ir/op_facts.h"
#include "plan/planned.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"
#include "tests/target/target_testing.h"

namespace hone::HONE_FILE {
namespace {

constexpr int64_t kChannels = 32;

// Each tensor is quantized and dequantized, in the form of QDQ.
class Network {
 public:
  Value parameter(const Dims& dims) { return again(b_.parameter("x", DType::f32, dims), 124); }

  // With a bias in i32, as exporters write it.
  Value layer(Value x, int64_t features, int64_t window, int64_t groups, bool has_relu) {
    const int64_t depth = x.dim(1).value() / groups;
    const Type type = Type::get(DType::i8, {features, depth, window, window});
    std::vector<int64_t> numbers(static_cast<size_t>(type.static_elements()));
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = wrap_to(DType::i8, static_cast<int64_t>(i * 97 % 251));
    const Value w = b_.op(Opcode::dequantize,
                          {b_.constant(Tensor::from_integers(type, numbers)), scales(features)},
                          {{"axis", int64_t{0}}});
    const int64_t edge = window / 2;
    Value y = conv(x, w, {.padding = {edge, edge, edge, edge}, .groups = groups});
    const Type bias = Type::get(DType::i32, {features});
    const Value b =
        b_.op(Opcode::dequantize,
              {b_.constant(Tensor::from_integers(bias, Ints(static_cast<size_t>(features), 3))),
               scales(features)},
              {{"axis", int64_t{0}}});
    y = y + reshape(b, {1, features, 1, 1});
    return again(has_relu ? relu(y) : y, has_relu ? 0 : 119);
  }

  Value again(Value x, double zero) {
    const Value scale = b_.full(DType::f32, {}, 0.03), at = b_.full(DType::u8, {}, zero);
    return b_.op(Opcode::dequantize,
                 {b_.op(Opcode::quantize, {x, scale, at}, {{"dtype", DType::u8}}), scale, at});
  }

  Graph finish(Value y) { return prepare(b_.finish({y}).value()).value(); }

 private:
  Value scales(int64_t features) {
    std::vector<double> numbers(static_cast<size_t>(features));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = 0.001 + 1e-5 * static_cast<double>(i);
    return b_.constant(Tensor::from_reals(Type::get(DType::f32, {features}), numbers));
  }
  Builder b_{"bytes"};
};

// Values that kernels leave in memory in more than a byte each: "y f32[1, 8]".
std::string wide_values(const Graph& graph) {
  const Target target = parse_target(kSampleTarget, "t").value();
  const Plan plan = complete(graph, {}, target, AnalyticCost(target), {}).value();
  std::string all;
  const PlannedGraph frame = planned(plan, graph).value();
  for (const Step& step : frame.steps)
    for (ValueId v : step.writes) {
      const bool is_copy = v.index >= graph.value_count();  // of weights, in another layout
      if (!is_copy && v != graph.outputs()[0] && bits(graph.type(v).dtype()) > 8)
        all += fmt::format("{} {}\n", graph.name(v), graph.type(v).to_string());
    }
  return all;
}

TEST(QuantizedChain, FirstAndDepthwiseLayersPassOnBytes) {
  Network net;
  Value x = net.parameter({1, 3, 32, 32});
  x = net.layer(x, kChannels, 3, 1, true);
  x = net.layer(x, kChannels, 3, kChannels, true);
  x = net.layer(x, kChannels, 1, 1, false);
  x = net.layer(x, 2 * kChannels, 1, 1, true);
  x = net.layer(x, 2 * kChannels, 3, 2 * kChannels, true);
  EXPECT_EQ(wide_values(net.finish(net.layer(x, kChannels, 1, 1, false))), "");
}

TEST(QuantizedChain, ResidualsAreBytes) {
  Network net;
  Value x = net.layer(net.parameter({1, 3, 32, 32}), kChannels, 3, 1, true);
  const Value y = net.layer(net.layer(x, kChannels, 3, 1, true), kChannels, 3, 1, false);
  x = net.again(relu(y + x), 0);
  EXPECT_EQ(wide_values(net.finish(net.layer(x, kChannels, 1, 1, true))), "");
}

TEST(QuantizedChain, PoolsAreOfBytes) {
  Network net;
  const Value x = net.layer(net.parameter({1, 3, 32, 32}), kChannels, 3, 1, true);
  const Value y = net.again(max_pool(x, {.window = {3, 3}, .stride = {2, 2}}), 0);
  EXPECT_EQ(wide_values(net.finish(net.layer(y, kChannels, 1, 1, true))), "");
}

}  // namespace
}  // namespace hone::HONE_FILE
