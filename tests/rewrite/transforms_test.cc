#include <gtest/gtest.h>

#include "base/rng.h"
#include "ir/functional.h"
#include "ir/text.h"
#include "rewrite/passes.h"

namespace hone::HONE_FILE {
namespace {

// The number of points that the products of a conv with random weights may be transformed.
int64_t permitted(Attrs attrs, int64_t window = 3, int64_t groups = 1) {
  Rng rng(1);
  const Type type = Type::get(DType::f32, {16, 16 / groups, window, window});
  attrs.emplace_back("groups", groups);
  std::vector<double> numbers(static_cast<size_t>(type.static_elements()));
  for (double& each : numbers) each = rng.normal();
  Builder b;
  const Value x = b.parameter("x", DType::f32, {1, 16, 8, 8});
  const Value y =
      b.op(Opcode::conv, {x, b.constant(Tensor::from_reals(type, numbers))}, std::move(attrs));
  const Graph graph = permit_transforms(b.finish({y}).value()).value();
  for (NodeId n : graph.nodes())
    if (graph.opcode(n) == Opcode::conv) return graph.op(n).integer("winograd");
  return -1;
}

TEST(PermitTransforms, LooksAtConstantWeights) {
  EXPECT_EQ(permitted({}), 4);
  EXPECT_EQ(permitted({{"pad_low", Ints{1, 1}}}), 4);
  EXPECT_EQ(permitted({{"stride", Ints{2, 2}}}), 0);
  EXPECT_EQ(permitted({{"kernel_dilation", Ints{1, 2}}}), 0);
  EXPECT_EQ(permitted({}, 5), 0);
  EXPECT_GE(permitted({}, 3, 2), 2);
  EXPECT_EQ(permitted({{"stride", Ints{2, 2}}}, 3, 2), 0);
  EXPECT_EQ(permitted({}, 3, 16), 0);  // depthwise
}

// A permission that a text gives is checked again, since lowering relies on it.
TEST(PermitTransforms, WithdrawsWhatDoesNotHold) {
  const std::string text =
      "graph @g(%x: f32[1, 2, 8, 8], %w: f32[1, 2, 3, 3]) { "
      "%y = conv %x, %w {winograd = 4} return %y }";
  const Graph graph = permit_transforms(parse_graph(text).value()).value();
  EXPECT_EQ(print(graph).find("winograd"), std::string::npos) << print(graph);
}

}  // namespace
}  // namespace hone::HONE_FILE
