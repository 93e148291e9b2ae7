#include "rewrite/taps.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "ir/functional.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "rewrite/passes.h"

namespace hone::HONE_FILE {
namespace {

struct Spatial {
  int64_t input, kernel, stride, low, high, input_dilation, dilation;
};

// A conv of i32, whose sums are exact.
Result<Graph> conv_of(const std::vector<Spatial>& dims, int64_t groups) {
  Dims x = {2, 2 * groups}, w = {3 * groups, 2};
  Ints stride, low, high, input_dilation, dilation;
  for (const Spatial& dim : dims) {
    x.push_back(dim.input), w.push_back(dim.kernel);
    stride.push_back(dim.stride), low.push_back(dim.low), high.push_back(dim.high);
    input_dilation.push_back(dim.input_dilation), dilation.push_back(dim.dilation);
  }
  Builder b;
  const Value y =
      b.op(Opcode::conv, {b.parameter("x", DType::i32, x), b.parameter("w", DType::i32, w)},
           {{"stride", stride},
            {"pad_low", low},
            {"pad_high", high},
            {"input_dilation", input_dilation},
            {"kernel_dilation", dilation},
            {"groups", groups}});
  return b.finish({y});
}

std::vector<Tensor> numbers_for(const Graph& graph, std::mt19937& random) {
  std::vector<Tensor> inputs;
  for (Type type : graph.input_types()) {
    std::vector<int64_t> numbers(static_cast<size_t>(type.static_elements()));
    for (int64_t& number : numbers) number = static_cast<int64_t>(random() % 199) - 99;
    inputs.push_back(Tensor::from_integers(type, numbers));
  }
  return inputs;
}

Type kernel_of(const Graph& graph) {
  for (NodeId n : graph.nodes())
    if (graph.opcode(n) == Opcode::conv) return graph.type(graph.operands(n)[1]);
  return {};
}

NodeId last_of(const Graph& graph) { return graph.producer(graph.outputs()[0]); }

TEST(Taps, ThatMeetNoElementAreCutOff) {
  const Graph graph = conv_of({{28, 3, 1, 36, 36, 1, 36}, {28, 3, 1, 18, 18, 1, 18}}, 1).value();
  const Graph after = convs_by_phase(graph).value();
  EXPECT_EQ(kernel_of(after), Type::get(DType::i32, {3, 2, 1, 3}));
  EXPECT_EQ(after.op(last_of(after)).ints("kernel_dilation"), (Ints{1, 18}));
  EXPECT_EQ(after.op(last_of(after)).ints("pad_low"), (Ints{0, 18}));
  EXPECT_EQ(kernel_of(convs_by_phase(conv_of({{1, 3, 2, 1, 1, 1, 1}}, 4).value()).value()),
            Type::get(DType::i32, {12, 2, 1}));
}

TEST(Taps, ThatMeetAnElementStay) {
  for (const Spatial& dim : {Spatial{28, 3, 1, 27, 27, 1, 27}, Spatial{3, 3, 1, 1, 1, 1, 1}}) {
    const Graph graph = conv_of({dim}, 1).value();
    EXPECT_FALSE(without_idle_taps(graph, last_of(graph)).value());
  }
  // No tap meets an element: nothing is summed, and no weights would be left.
  const Graph none = conv_of({{2, 2, 1, 9, -1, 1, 1}}, 1).value();
  EXPECT_TRUE(convs_by_phase(none).ok());
  const Graph open = parse_graph(R"(graph @g(%x: f32[1, 1, n], %w: f32[1, 1, 3]) -> f32[1, 1, n]
      where n in 1..8 {
    %y = conv %x, %w {pad_low = [1], pad_high = [1]}
    return %y
  })")
                         .value();
  EXPECT_FALSE(without_idle_taps(open, last_of(open)).value());
}

// Integers, so the same sums; each kept outer tap meets an element, as a plain search says.
TEST(Taps, OfRandomConvsComputeTheSame) {
  std::mt19937 random(5);
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  int cut = 0;
  for (int i = 0; i < 600; ++i) {
    std::vector<Spatial> dims(static_cast<size_t>(draw(1, 2)));
    for (Spatial& dim : dims)
      dim = {draw(1, 5), draw(1, 4), draw(1, 3), draw(-2, 9), draw(-2, 9), draw(1, 5) == 1 ? 2 : 1,
             draw(1, 7)};
    const Result<Graph> graph = conv_of(dims, draw(1, 2));
    if (!graph.ok()) continue;  // windows that do not fit
    const std::optional<Graph> after = without_idle_taps(*graph, last_of(*graph)).value();
    if (!after) continue;
    ++cut;
    ASSERT_TRUE(verify(*after).ok());
    const std::vector<Tensor> inputs = numbers_for(*graph, random);
    ASSERT_TRUE(evaluate(*after, inputs).value()[0].same_bytes(evaluate(*graph, inputs).value()[0]))
        << print(*graph) << print(*after);
    EXPECT_FALSE(without_idle_taps(*after, last_of(*after)).value()) << print(*after);
  }
  EXPECT_GT(cut, 100);
}

}  // namespace
}  // namespace hone::HONE_FILE
