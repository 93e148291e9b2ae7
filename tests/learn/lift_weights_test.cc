#include "learn/lift_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "grad/grad.h"
#include "ir/functional.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

Graph parsed(std::string_view text) { return parse_graph(text).value(); }

std::vector<std::string> names_of(const Lifted& lifted) {
  std::vector<std::string> names;
  for (const NamedTensor& weight : lifted.weights) names.push_back(weight.name);
  return names;
}

// Weights of 4 bits in groups, behind a slice as imported files have it; data of 8 bits.
const char* kQuantized = R"(graph @g(%x: f32[3, 4]) -> f32[3, 2] {
  %xs = constant 0.5 : f32[]
  %xz = constant 7 : u8[]
  %xq = quantize %x, %xs, %xz {dtype = u8}
  %xd = dequantize %xq, %xs, %xz
  %c = constant [1, 2, 3, 4, 5, 15, 14, 13, 12, 11] : u4[2, 5]
  %q = slice %c {start = [0, 0], limit = [2, 4]}
  %s = constant [0.5, 0.25, 0.125, 1] : f32[2, 2]
  %z = constant [8, 7, 8, 8] : u4[2, 2]
  %w = dequantize %q, %s, %z {axis = 1, block = 2}
  %p = dot %xd, %w {lhs_contract = [1], rhs_contract = [1]}
  %bias = constant [0.5, -0.5] : f32[2]
  %b = broadcast %bias {dims = [3, 2], map = [1]}
  %y = add %p, %b
  return %y
})";

std::vector<Tensor> some_input() {
  return {Tensor::from_reals(Type::get(DType::f32, {3, 4}),
                             std::vector<double>{1, -2, 0.5, 3, 0, 1, 2, -1, 4, 4, -3, 1.5})};
}

TEST(LiftWeights, UnpacksAndPacksTheSameNumbers) {
  const Graph model = parsed(kQuantized), unpacked = unpack_weights(model).value();
  const Tensor wanted = evaluate(model, some_input()).value()[0];
  EXPECT_TRUE(evaluate(unpacked, some_input()).value()[0].same_bytes(wanted));
  const Lifted lifted = lift_weights(unpacked, 0, {}).value();
  // Neither scales nor what is rounded of the data.
  EXPECT_THAT(names_of(lifted), testing::ElementsAre("weight", "bias"));
  EXPECT_EQ(lifted.weights[0].tensor.type(), Type::get(DType::f32, {2, 4}));
  EXPECT_EQ(lifted.weights[0].tensor.real_at(0), (1 - 8) * 0.5);
  EXPECT_EQ(lifted.weights[0].tensor.real_at(2), (3 - 7) * 0.25);
  const Graph again = pack_weights(lower_weights(lifted, lifted.weights).value()).value();
  EXPECT_TRUE(evaluate(again, some_input()).value()[0].same_bytes(wanted));
  EXPECT_THAT(print(again), HasSubstr("u4[2, 4]"));
}

TEST(LiftWeights, GivesTheResultOtherWeightsInTheSameBits) {
  const Lifted lifted = lift_weights(unpack_weights(parsed(kQuantized)).value(), 0, {}).value();
  // A bit more than half of a step of the first group (0.5), and far outside of the second.
  std::vector<NamedTensor> weights = lifted.weights;
  weights[0].tensor = Tensor::from_reals(weights[0].tensor.type(),
                                         std::vector<double>{-3.2, -3.3, 1000, -1000, 0, 0, 0, 0});
  const Graph packed = pack_weights(lower_weights(lifted, weights).value()).value();
  EXPECT_THAT(print(packed), HasSubstr("[2, 1, 15, 0, "));
}

TEST(LiftWeights, DerivativesGoThroughTheRounding) {
  const Lifted lifted = lift_weights(unpack_weights(parsed(kQuantized)).value(), 0, {}).value();
  Graph loss = lifted.graph;
  const Graph sum = parsed(R"(graph @s(%y: f32[3, 2]) -> f32[] {
    %l = reduce %y {kind = sum, axes = [0, 1]} return %l })");
  Builder b;
  std::vector<Value> in;
  for (ValueId v : loss.inputs()) in.push_back(b.parameter("", loss.type(v)));
  const Graph whole = b.finish({b.inlined(sum, b.inlined(loss, in))[0]}).value();
  std::vector<Tensor> inputs = some_input();
  for (const NamedTensor& weight : lifted.weights) inputs.push_back(weight.tensor);
  const auto made = evaluate(grad(whole, 0, {false, true, true}).value(), inputs).value();
  // A weight is multiplied by data on their grid of halves; their sum is its derivative.
  EXPECT_EQ(made[1].real_at(0), 1 + 0 + 4);
  EXPECT_EQ(made[1].real_at(7), 3 - 1 + 1.5);
  EXPECT_EQ(made[2].real_at(0), 3);
}

TEST(LiftWeights, TakesShortRealsAsF32) {
  const Graph model = parsed(R"(graph @g(%x: f32[2]) -> f32[2] {
    %w = constant [1.5, -2] : bf16[2]
    %f = cast %w {dtype = f32}
    %y = mul %x, %f
    return %y
  })");
  const Lifted lifted = lift_weights(unpack_weights(model).value(), 0, {}).value();
  ASSERT_EQ(lifted.weights.size(), 1u);
  EXPECT_EQ(lifted.weights[0].tensor.dtype(), DType::f32);
  const Graph again = pack_weights(lower_weights(lifted, lifted.weights).value()).value();
  EXPECT_THAT(print(again), HasSubstr("bf16[2]"));
}

TEST(LiftWeights, LeavesWhatDecidesNothing) {
  const Graph model = parsed(R"(graph @g(%x: f32[2]) -> (f32[2], f32[2]) {
    %w = constant [1.5, -2] : f32[2]
    %v = constant [3, 4] : f32[2]
    %y = mul %x, %w
    %z = mul %x, %v
    return %y, %z
  })");
  EXPECT_THAT(names_of(lift_weights(model, 1, {}).value()), testing::ElementsAre("v"));
  const std::string frozen[] = {"w"};
  EXPECT_TRUE(lift_weights(model, 0, frozen).value().weights.empty());
}

}  // namespace
}  // namespace hone::HONE_FILE
