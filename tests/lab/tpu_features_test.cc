#include "lab/tpu/features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/text.h"
#include "lab/tpu/from_graph.h"
#include "tests/base/says_testing.h"

namespace hone::tpu::HONE_FILE {
namespace {

using tested::says;
using testing::ElementsAre;
using testing::HasSubstr;

float column(const Features& features, size_t row, std::string_view name) {
  const auto at = std::ranges::find(features.names, name);
  EXPECT_NE(at, features.names.end()) << name;
  return features.row(row)[static_cast<size_t>(at - features.names.begin())];
}

// The places that the published description gives to columns.
TEST(TpuFeatures, ColumnsStandWhereTheyArePublished) {
  const auto names = node_feature_names();
  ASSERT_EQ(names.size(), 140u);
  const std::pair<size_t, std::string_view> places[] = {{0, "is_root"},
                                                        {1, "element_bits"},
                                                        {2, "is_invalid"},
                                                        {13, "is_f32"},
                                                        {15, "is_bf16"},
                                                        {20, "is_token"},
                                                        {21, "dim_0"},
                                                        {27, "dim_sum"},
                                                        {28, "dim_product"},
                                                        {29, "tuple_size"},
                                                        {30, "parameter_number"},
                                                        {31, "dimensions_0"},
                                                        {37, "window_size_0"},
                                                        {45, "window_stride_0"},
                                                        {53, "window_padding_low_0"},
                                                        {61, "window_padding_high_0"},
                                                        {69, "window_window_dilation_0"},
                                                        {77, "window_base_dilation_0"},
                                                        {85, "window_reversal_0"},
                                                        {91, "window_reversal_true_count"},
                                                        {93, "conv_input_batch"},
                                                        {95, "conv_input_spatial_0"},
                                                        {99, "conv_kernel_input_feature"},
                                                        {101, "conv_kernel_spatial_0"},
                                                        {105, "conv_output_batch"},
                                                        {107, "feature_groups"},
                                                        {108, "batch_groups"},
                                                        {109, "slice_start_0"},
                                                        {113, "slice_stride_0"},
                                                        {117, "slice_limit_0"},
                                                        {121, "dynamic_slice_size_0"},
                                                        {125, "pad_low_0"},
                                                        {129, "pad_high_0"},
                                                        {133, "is_stable"},
                                                        {134, "minor_to_major_0"},
                                                        {139, "minor_to_major_5"}};
  for (const auto& [place, name] : places) EXPECT_EQ(names[place], name);
  ASSERT_EQ(tile_feature_names().size(), 24u);
  EXPECT_EQ(tile_feature_names()[8], "output_bounds_0");
  EXPECT_EQ(tile_feature_names()[23], "input_bounds_product");
  ASSERT_EQ(layout_feature_names().size(), 18u);
  EXPECT_EQ(layout_feature_names()[12], "kernel_0");
}

TEST(TpuFeatures, OpcodesHaveTheirPublishedNumbers) {
  EXPECT_EQ(opcode_number("abs"), 1);
  EXPECT_EQ(opcode_number("convolution"), 26);
  EXPECT_EQ(opcode_number("dot"), 34);
  EXPECT_EQ(opcode_number("parameter"), 63);
  EXPECT_EQ(opcode_number("transpose"), 98);
  EXPECT_EQ(opcode_number("while"), 102);
  EXPECT_EQ(opcode_number("tan"), 120);
  EXPECT_EQ(opcode_number("nothing of the sort"), 0);
  EXPECT_EQ(opcode_number(""), 0);
}

HloModule some_module() {
  HloComputation called = {.id = 1, .root = 11, .name = "fused", .instructions = {}};
  called.instructions.push_back({.id = 10, .opcode = "parameter"});
  called.instructions.push_back({.id = 11, .opcode = "exponential", .operands = {10}});
  HloComputation main = {.id = 2, .root = 22, .name = "main", .instructions = {}};
  main.instructions.push_back({.id = 20, .opcode = "parameter"});
  main.instructions.push_back({.id = 21, .opcode = "parameter", .parameter_number = 1});
  HloInstruction fusion = {.id = 22, .opcode = "fusion", .operands = {21, 20, 21}, .called = {1}};
  main.instructions.push_back(std::move(fusion));
  return {.name = "m", .computations = {called, main}};
}

TEST(TpuFeatures, AnInstructionReadsItsOperandsAndWhatItCalls) {
  const OpGraph graph = op_graph_of(some_module()).value();
  EXPECT_THAT(graph.opcodes, ElementsAre(63, 37, 63, 63, 41));
  using Edge = std::array<int32_t, 2>;
  EXPECT_THAT(graph.edges, ElementsAre(Edge{1, 0}, Edge{4, 1}, Edge{4, 2}, Edge{4, 3}));
  EXPECT_EQ(column(graph.nodes, 1, "is_root"), 1);
  EXPECT_EQ(column(graph.nodes, 4, "is_root"), 1);
  EXPECT_EQ(column(graph.nodes, 3, "is_root"), 0);
  EXPECT_EQ(column(graph.nodes, 3, "parameter_number"), 1);
}

TEST(TpuFeatures, RefusesGraphsThatAreNone) {
  const auto failure = [](const auto& edit) {
    HloModule module = some_module();
    edit(module);
    return op_graph_of(module).error().to_string();
  };
  EXPECT_THAT(failure([](HloModule& m) { m.computations[1].instructions[2].operands = {99}; }),
              HasSubstr("there is no instruction 99"));
  EXPECT_THAT(failure([](HloModule& m) { m.computations[1].instructions[2].called = {5}; }),
              HasSubstr("no root of the computation 5"));
  EXPECT_THAT(failure([](HloModule& m) { m.computations[1].instructions[0].id = 10; }),
              HasSubstr("two instructions are called 10"));
  EXPECT_THAT(failure([](HloModule& m) { m.computations[1].instructions[2].operands = {22}; }),
              HasSubstr("reads itself"));
}

TEST(TpuFeatures, LayoutsArePaddedWithMinusOne) {
  TuningModule module{.module = some_module()};
  module.config_nodes = {4};
  module.runs.push_back({.has_layout = true, .nanoseconds = 10, .nodes = {{{1, 0}, {}}}});
  const LayoutGraph layout = layout_graph_of(module).value();
  EXPECT_THAT(layout.configs.values, ElementsAre(1, 0, -1, -1, -1, -1,    //
                                                 -1, -1, -1, -1, -1, -1,  //
                                                 -1, -1, -1, -1, -1, -1));
  EXPECT_THAT(layout.splits, ElementsAre(0, 5));
  module.config_nodes = {5};
  EXPECT_THAT(layout_graph_of(module).error().to_string(),
              says("configurable node 5 ... 5 instructions"));
  module.config_nodes = {4, 3};
  EXPECT_THAT(layout_graph_of(module).error().to_string(), says("configuration ... 1 nodes ... 2"));
}

// Sums and products wrap around as in the published files; lists are cut.
TEST(TpuFeatures, ListsAreCutAndSummedUp) {
  HloModule module = some_module();
  module.computations[0].instructions[0].shape.dims = {2, 3, 4, 5, 6, 7, 8};
  module.computations[0].instructions[1].shape.dims = {INT64_MAX, 4};
  const Features nodes = op_graph_of(module).value().nodes;
  EXPECT_EQ(column(nodes, 0, "dim_5"), 7);
  EXPECT_EQ(column(nodes, 0, "dim_sum"), 35);
  EXPECT_EQ(column(nodes, 0, "dim_product"), 40320);
  EXPECT_EQ(column(nodes, 1, "dim_product"), -4);
}

TEST(TpuFeatures, ExtendedOnesStandBehindThePublishedOnes) {
  HloModule module = some_module();
  HloInstruction& dot = module.computations[1].instructions[2];
  dot.dot = {.lhs_contract = {1}, .rhs_contract = {0}, .lhs_batch = {}, .rhs_batch = {2}};
  dot.shape.dims = {300, 20};
  const OpGraph graph = op_graph_of(module, FeatureSet::extended).value();
  EXPECT_THAT(std::vector<std::string>(graph.nodes.names.begin(), graph.nodes.names.begin() + 140),
              testing::ElementsAreArray(node_feature_names()));
  EXPECT_EQ(column(graph.nodes, 4, "dot_lhs_contract_0"), 1);
  EXPECT_EQ(column(graph.nodes, 4, "dot_rhs_contract_0"), 0);
  EXPECT_EQ(column(graph.nodes, 4, "dot_lhs_batch_0"), -1);
  EXPECT_EQ(column(graph.nodes, 4, "dot_rhs_batch_0"), 2);
  EXPECT_EQ(column(graph.nodes, 4, "dim_0_mod_128"), 44);
  EXPECT_EQ(column(graph.nodes, 4, "dim_0_div_128"), 2);
  EXPECT_EQ(column(graph.nodes, 4, "dim_1_mod_8"), 4);
}

// ---- Graphs of hone -----------------------------------------------------------------------------

TEST(TpuFeatures, OpsOfHoneAreThoseOfXla) {
  const Graph graph =
      parse_graph(
          "graph @g(%x: f32[1, 4, 9, 8], %w: f32[6, 2, 3, 3]) -> f32[1, 6, 4, 8] {\n"
          "  %c = conv %x, %w {stride = [2, 1], pad_low = [0, 1], pad_high = [0, 1], groups = 2}\n"
          "  %y = exp %c\n"
          "  return %y\n"
          "}\n")
          .value();
  const HloModule module = hlo_of(graph, [](ValueId) { return Integers{3, 2, 1, 0}; });
  const OpGraph ops = op_graph_of(module).value();
  EXPECT_THAT(ops.opcodes, ElementsAre(63, 63, 26, 37));
  EXPECT_EQ(column(ops.nodes, 1, "parameter_number"), 1);
  EXPECT_EQ(column(ops.nodes, 2, "window_size_0"), 3);
  EXPECT_EQ(column(ops.nodes, 2, "window_stride_0"), 2);
  EXPECT_EQ(column(ops.nodes, 2, "window_stride_1"), 1);
  EXPECT_EQ(column(ops.nodes, 2, "window_padding_low_1"), 1);
  EXPECT_EQ(column(ops.nodes, 2, "conv_input_feature"), 1);
  EXPECT_EQ(column(ops.nodes, 2, "conv_kernel_spatial_1"), 3);
  EXPECT_EQ(column(ops.nodes, 2, "feature_groups"), 2);
  EXPECT_EQ(column(ops.nodes, 2, "dim_1"), 6);
  EXPECT_EQ(column(ops.nodes, 3, "is_root"), 1);
  EXPECT_EQ(column(ops.nodes, 3, "is_f32"), 1);
  EXPECT_EQ(column(ops.nodes, 3, "minor_to_major_0"), 3);
}

TEST(TpuFeatures, SeveralOutputsAreATuple) {
  const Graph graph = parse_graph(
                          "graph @g(%x: f32[4, 8]) -> (f32[4], f32[8, 4]) {\n"
                          "  %s = reduce %x {kind = sum, axes = [1]}\n"
                          "  %t = transpose %x {permutation = [1, 0]}\n"
                          "  return %s, %t\n"
                          "}\n")
                          .value();
  const OpGraph ops = op_graph_of(hlo_of(graph, [](ValueId) { return Integers(); })).value();
  EXPECT_THAT(ops.opcodes, ElementsAre(63, 70, 98, 100));
  EXPECT_EQ(column(ops.nodes, 1, "dimensions_0"), 1);
  EXPECT_EQ(column(ops.nodes, 3, "tuple_size"), 2);
  EXPECT_EQ(column(ops.nodes, 3, "is_root"), 1);
}

}  // namespace
}  // namespace hone::tpu::HONE_FILE
