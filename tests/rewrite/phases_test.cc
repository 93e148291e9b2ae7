#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/graph.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "oracle/accuracy.h"
#include "rewrite/passes.h"
#include "zoo/inputs.h"

namespace hone::HONE_FILE {
namespace {

struct Found {
  int64_t convs = 0, apart = 0;  // of them
};

Found convs_of(const Graph& graph) {
  Found found;
  for (NodeId n : graph.nodes()) {
    if (graph.opcode(n) != Opcode::conv) continue;
    ++found.convs;
    const Ints& holes = graph.op(n).ints("input_dilation");
    found.apart += std::ranges::any_of(holes, [](int64_t each) { return each != 1; }) ? 1 : 0;
  }
  return found;
}

void expect_same(const Graph& before, const Graph& after) {
  const std::vector<Tensor> inputs = random_inputs(before, 7).value();
  const auto output = [&](const Graph& graph, const EvalOptions& options) {
    return evaluate(graph, inputs, options).value()[0];
  };
  const AccuracyRun run = {
      .actual = output(after, {.numerics = Numerics::fp32}),
      .wide = output(before, {.numerics = Numerics::wide, .real_outputs_as_f64 = true}),
      .fp32 = output(before, {.numerics = Numerics::fp32, .real_outputs_as_f64 = true})};
  const Accuracy accuracy = hone::accuracy({&run, 1}).value();
  EXPECT_TRUE(accuracy.passed()) << accuracy.to_string() << print(before);
}

// How many convs the statement becomes, whose results have to stay. 0: it is left as it is.
int64_t convs_by(std::string_view signature, std::string_view body) {
  const Graph graph =
      parse_graph(fmt::format("graph @g({} {{\n{}\nreturn %y\n}}", signature, body)).value();
  const Graph after = convs_by_phase(graph).value();
  EXPECT_TRUE(verify(after).ok());
  EXPECT_EQ(after.type(after.outputs()[0]), graph.type(graph.outputs()[0]));
  expect_same(graph, after);
  const Found found = convs_of(after);
  return found.apart > 0 ? 0 : found.convs;
}

int64_t convs_by_attrs(std::string_view result, std::string_view attrs) {
  return convs_by(fmt::format("%x: f32[2, 3, 5, 4], %w: f32[6, 3, 4, 3]) -> {}", result),
                  fmt::format("%y = conv %x, %w {{{}}}", attrs));
}

TEST(Phases, AreConvsOfTheInputAsItIs) {
  const std::string_view two = "input_dilation = [2, 2]";
  // With four taps each phase has two, with three one or two; the phases of a dim begin apart.
  EXPECT_EQ(convs_by_attrs("f32[2, 6, 6, 5]", two), 4);
  EXPECT_EQ(convs_by_attrs("f32[2, 6, 10, 7]",
                           "pad_low = [2, 1], pad_high = [2, 1], input_dilation = [2, 2]"),
            4);
  // One dim alone, cropped, and windows that are not as many in each phase.
  EXPECT_EQ(convs_by_attrs("f32[2, 6, 6, 2]", "input_dilation = [2, 1]"), 2);
  EXPECT_EQ(convs_by_attrs("f32[2, 6, 5, 5]", "pad_low = [-1, 0], input_dilation = [2, 2]"), 4);
  // More phases than taps: some results are 0.
  EXPECT_GT(convs_by_attrs("f32[2, 6, 18, 14]", "input_dilation = [5, 5], pad_high = [0, 0]"), 0);
}

TEST(Phases, ThatSeeTheSameWindowsAreOneConv) {
  EXPECT_EQ(convs_by("%x: f32[1, 3, 5, 4], %w: f32[6, 3, 2, 2]) -> f32[1, 6, 10, 8]",
                     "%y = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1], "
                     "input_dilation = [2, 2]}"),
            1);
  EXPECT_EQ(convs_by("%x: f32[1, 3, 5], %w: f32[6, 3, 16]) -> f32[1, 6, 40]",
                     "%y = conv %x, %w {pad_low = [11], pad_high = [11], input_dilation = [8]}"),
            2);
}

TEST(Phases, KeepGroupsOrdersAndTypes) {
  EXPECT_EQ(convs_by("%x: f32[2, 4, 5], %w: f32[6, 2, 4]) -> f32[2, 6, 10]",
                     "%y = conv %x, %w {groups = 2, pad_low = [2], pad_high = [2], "
                     "input_dilation = [2]}"),
            2);
  EXPECT_EQ(convs_by("%x: i8[2, 5, 3], %w: i8[2, 3, 6]) -> i32[6, 10, 2]",
                     "%y = conv %x, %w {order = \"b0f_0io->f0b\", accumulate = \"i32\", "
                     "pad_low = [1], pad_high = [1], input_dilation = [2]}"),
            1);
  EXPECT_EQ(convs_by("%x: f32[b, 3, 5], %w: f32[6, 3, 4]) -> f32[b, 6, 10] where b in 1..4",
                     "%y = conv %x, %w {pad_low = [2], pad_high = [2], input_dilation = [2]}"),
            2);
}

TEST(Phases, OfConstantWeightsAreConstant) {
  const Graph graph = parse_graph(R"(graph @g(%x: f32[1, 1, 3]) -> f32[1, 2, 6] {
    %w = constant [1, 2, 3, 4, 5, 6, 7, 8] : f32[2, 1, 4]
    %y = conv %x, %w {pad_low = [2], pad_high = [2], input_dilation = [2]}
    return %y
  })")
                          .value();
  const Graph after = convs_by_phase(graph).value();
  for (NodeId n : after.nodes()) {
    if (after.opcode(n) != Opcode::conv) continue;
    EXPECT_EQ(after.opcode(after.producer(after.operands(n)[1])), Opcode::constant);
  }
  expect_same(graph, after);
}

TEST(Phases, LeaveTheOthers) {
  EXPECT_EQ(convs_by_attrs("f32[2, 6, 3, 3]", "stride = [2, 2], input_dilation = [2, 2]"), 0);
  EXPECT_EQ(convs_by_attrs("f32[2, 6, 3, 3]", "kernel_dilation = [2, 2], input_dilation = [2, 2]"),
            0);
  EXPECT_EQ(convs_by_attrs("f32[2, 6, 34, 26]", "input_dilation = [9, 9]"), 0);  // too many
  EXPECT_EQ(convs_by("%x: f32[1, 1, n], %w: f32[1, 1, 2]) -> f32[1, 1, 2*n] where n in 1..8",
                     "%y = conv %x, %w {pad_low = [1], pad_high = [1], input_dilation = [2]}"),
            0);
}

}  // namespace
}  // namespace hone::HONE_FILE
