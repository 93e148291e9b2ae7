#include "quantize/layers.h"
#include "quantize/rewrite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/op_facts.h"
#include "ir/text.h"
#include "tests/base/says_testing.h"
#include "tests/quantize/models_testing.h"

namespace hone::HONE_FILE {
namespace {

using namespace hone::quantize;

using tested::refuses;
using tested::says;

std::vector<Layer> layers(std::string_view text) {
  return layers_of(parse_graph(text).value()).value();
}

TEST(Layers, AreProductsByConstantWeights) {
  const std::vector<Layer> found = layers_of(tested::conv_and_product(1)).value();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name, "image");
  EXPECT_EQ(found[0].feature_axis, 0);
  EXPECT_EQ(found[0].group_axis, 1);
  // The weights stand as the product reads them, behind the transpose.
  EXPECT_EQ(found[1].weights.type(), Type::get(DType::f32, {300, 7}));
  EXPECT_EQ(found[1].feature_axis, 1);
  EXPECT_EQ(found[1].group_axis, 0);
}

// Else no instruction of bf16 could compute them.
TEST(Layers, OfBf16MayTakeDenormalNumbersForZero) {
  const Graph graph = tested::conv_and_product(1);
  const std::vector<Layer> layers = layers_of(graph).value();
  for (const Layer& layer : layers) {
    for (Precision level : {Precision::f32, Precision::f16, Precision::bf16, Precision::w8}) {
      const Graph alone = layer_alone(graph, layer, level, 32).value();
      for (NodeId n : alone.nodes())
        if (class_of(alone.opcode(n)) == OpClass::contraction)
          EXPECT_EQ(alone.op(n).flag("flush"), level == Precision::bf16) << layer.name;
    }
  }
}

TEST(Layers, SayWhyTheyStayAsTheyAre) {
  const std::vector<Layer> found = layers(
      R"(graph @g(%x: f32[2, 2], %d: f64[2, 2], %q: i8[2, 2])
             -> (f32[2, 2], f64[2, 2], f32[2, 2], f32[2, 2]) {
    %a = dot %x, %x {lhs_contract = [1], rhs_contract = [0]}
    %w = constant [1, 2, 3, 4] : f64[2, 2]
    %b = dot %d, %w {lhs_contract = [1], rhs_contract = [0]}
    %s = constant 0.5 : f32[]
    %r = dequantize %q, %s
    %c = dot %x, %r {lhs_contract = [1], rhs_contract = [0]}
    %n = constant [1, nan, 3, 4] : f32[2, 2]
    %e = dot %x, %n {lhs_contract = [1], rhs_contract = [0]}
    return %a, %b, %c, %e
  })");
  ASSERT_EQ(found.size(), 4U);
  EXPECT_THAT(found[0].why_not, says("no constant weights"));
  EXPECT_THAT(found[1].why_not, says("f64"));
  EXPECT_THAT(found[2].why_not, says("quantized already"));
  EXPECT_THAT(found[3].why_not, says("NaN"));
  for (const Layer& layer : found)
    EXPECT_THAT(check_level(layer, Precision::int8, 32),
                refuses(ErrorCode::unsupported, layer.why_not));
}

TEST(Layers, TakeNoGroupsOfWhatIsShort) {
  const Layer layer = layers(R"(graph @g(%x: f32[2, 3]) -> f32[2, 2] {
    %w = constant [1, 2, 3, 4, 5, 6] : f32[3, 2]
    %y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
    return %y
  })")[0];
  EXPECT_TRUE(check_level(layer, Precision::w8, 32).ok());
  EXPECT_THAT(check_level(layer, Precision::w4, 32), refuses(ErrorCode::unsupported, "3 numbers"));
}

TEST(Layers, OfImagesHaveNoWeightsOfTwoBits) {
  const std::vector<Layer> found = layers_of(tested::conv_and_product(1)).value();
  EXPECT_THAT(check_level(found[0], Precision::w2, 16),
              refuses(ErrorCode::unsupported, "for matrices"));
  EXPECT_TRUE(check_level(found[1], Precision::w2, 16).ok());
}

// The scale that a weight has, found by another way than the library's.
double scale_at(const PackedWeights& packed, Type weights, int64_t at) {
  const Ints dims = weights.static_dims();
  Ints index(dims.size());
  for (size_t d = dims.size(); d-- > 0; at /= dims[d]) index[d] = at % dims[d];
  const auto axis = static_cast<size_t>(packed.axis);
  if (packed.block == 0) return packed.scales.real_at(index[axis]);
  index[axis] /= packed.block;
  const Ints blocks = packed.scales.type().static_dims();
  int64_t place = 0;
  for (size_t d = 0; d < blocks.size(); ++d) place = place * blocks[d] + index[d];
  return packed.scales.real_at(place);
}

TEST(PackedWeights, AreTheNearestNumbersOfTheirScale) {
  for (const Graph& graph : {tested::two_products(3), tested::conv_and_product(4)}) {
    const std::vector<Layer> found = layers_of(graph).value();
    for (const Layer& layer : found)
      for (Precision level : {Precision::w8, Precision::w4, Precision::w2, Precision::int8}) {
        if (!check_level(layer, level, 32).ok()) continue;
        const PackedWeights packed = packed_weights(layer, level, 32);
        const Tensor rounded = rounded_weights(layer, level, 32);
        const double highest = level == Precision::w4 ? 7 : level == Precision::w2 ? 1 : 127;
        int64_t clipped = 0;
        for (int64_t i = 0; i < rounded.elements(); ++i) {
          const double scale = scale_at(packed, layer.weights.type(), i);
          const double q = static_cast<double>(packed.numbers.integer_at(i));
          EXPECT_FLOAT_EQ(rounded.real_at(i), q * scale);
          const bool is_clipped = q == highest || q == -highest - 1;
          clipped += is_clipped ? 1 : 0;
          if (!is_clipped)
            EXPECT_LE(std::abs(rounded.real_at(i) - layer.weights.real_at(i)), 0.5001 * scale);
        }
        // Three of the four numbers of 2 bits are the largest and the least.
        if (level != Precision::w2) EXPECT_LT(clipped, rounded.elements() / 4);
      }
  }
}

TEST(PackedWeights, OfZerosAreZeros) {
  const Layer layer = layers(R"(graph @g(%x: f32[2, 16]) -> f32[2, 2] {
    %w = constant 0 : f32[16, 2]
    %y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
    return %y
  })")[0];
  for (Precision level : kPrecisions)
    EXPECT_TRUE(rounded_weights(layer, level, 32).same_bytes(layer.weights)) << name(level);
}

TEST(PackedWeights, TakeTheBytesThatAreCounted) {
  const Layer layer = layers_of(tested::two_products(5)).value()[0];  // 48 to 40
  EXPECT_EQ(weight_bytes(layer, Precision::f32, 32), 4 * 48 * 40);
  for (Precision level : {Precision::w8, Precision::w4, Precision::w2, Precision::int8}) {
    const PackedWeights packed = packed_weights(layer, level, 32);
    EXPECT_EQ(weight_bytes(layer, level, 32),
              packed.numbers.byte_size() + packed.scales.byte_size());
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
