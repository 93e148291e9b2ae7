#include "program/build/ordered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "ir/text.h"
#include "tests/program/kernel_testing.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;
using testing::Not;

TileProgram built(const Graph& graph) {
  const NodeId node = graph.producer(graph.outputs()[0]);
  return build_kernel(body_of(graph, std::span(&node, 1), {}), {}, "k").value();
}

Graph sort_of_pairs(std::string_view attributes) {
  return parse_graph(fmt::format("graph @g(%x: f32[2, 37], %p: i16[2, 37]) {{\n"
                                 "  %y, %q = sort %x, %p {{axis = 1{}}}\n  return %y, %q\n}}\n",
                                 attributes))
      .value();
}

Graph sort_of_keys(std::string_view attributes) {
  return parse_graph(fmt::format("graph @g(%x: f32[2, 37]) {{\n"
                                 "  %y = sort %x {{axis = 1{}}}\n  return %y\n}}\n",
                                 attributes))
      .value();
}

// Equal numbers, both zeros, infinities, and NaNs of several bits; each with its position.
std::vector<Tensor> special_inputs() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float values[] = {3,
                          -0.0F,
                          kInfinity,
                          0,
                          std::bit_cast<float>(0x7fc00001),
                          -kInfinity,
                          3,
                          std::bit_cast<float>(0xffc00002),
                          1e-40F,
                          -2,
                          0};
  std::vector<float> x;
  std::vector<int16_t> p;
  for (int64_t i = 0; i < 74; ++i) {
    x.push_back(values[static_cast<size_t>(i * i * 7 + i) % std::size(values)]);
    p.push_back(static_cast<int16_t>(i % 37));
  }
  return {Tensor::copy_of(Type::get(DType::f32, {2, 37}), std::as_bytes(std::span(x))),
          Tensor::copy_of(Type::get(DType::i16, {2, 37}), std::as_bytes(std::span(p)))};
}

TEST(Sort, MovesEveryBitAndKeepsTheOrderOfEquals) {
  const std::vector<Tensor> inputs = special_inputs();
  const std::span<const uint32_t> x = inputs[0].as<uint32_t>();
  for (std::string_view attributes : {"", ", descending = true"}) {
    SCOPED_TRACE(attributes);
    const Graph pairs = sort_of_pairs(attributes);
    const Tensor from = evaluate(pairs, inputs).value()[1];
    const std::vector<Tensor> both = interpret(built(pairs), inputs).value();
    const TileProgram keys = built(sort_of_keys(attributes));
    const std::vector<Tensor> alone = interpret(keys, std::span(inputs).first(1)).value();
    for (int64_t i = 0; i < 74; ++i) {
      const uint32_t bits = x[static_cast<size_t>(i / 37 * 37 + from.integer_at(i))];
      EXPECT_EQ(both[1].integer_at(i), from.integer_at(i)) << i;
      EXPECT_EQ(both[0].as<uint32_t>()[static_cast<size_t>(i)], bits) << i;
      EXPECT_EQ(alone[0].as<uint32_t>()[static_cast<size_t>(i)], bits) << i;
    }
  }
}

// Merged runs are read in order: reading keys by their positions made rows of millions slow.
TEST(Sort, ReadsEachOperandOnce) {
  const std::string alone = print(built(sort_of_keys("")));
  EXPECT_THAT(alone, HasSubstr("scratch @key: f32[2, 37]"));
  EXPECT_THAT(alone, Not(HasSubstr("@order")));
  const std::string both = print(built(sort_of_pairs("")));
  EXPECT_THAT(both, HasSubstr("scratch @order: u32[2, 37]"));
  for (const std::string& text : {alone, both})
    EXPECT_EQ(text.find("load @x0"), text.rfind("load @x0")) << text;
}

}  // namespace
}  // namespace hone::HONE_FILE
