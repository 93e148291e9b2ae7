#include "report/kernel_work.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "target/gpu_presets.h"

namespace hone::HONE_FILE {
namespace {

KernelBody body(std::string_view text) {
  const Graph graph = parse_graph(text).value();
  std::vector<NodeId> nodes;
  for (NodeId n : graph.nodes())
    if (!is_leaf(graph.opcode(n))) nodes.push_back(n);
  return body_of(graph, nodes, {});
}

// Each type has a peak of its own.
Target target() {
  Target target;
  target.peak(DType::f32) = 1e9;
  target.peak(DType::f64) = 5e8;
  target.peak(DType::i8) = 4e9;
  target.peak(DType::bf16) = 2e9;
  return target;
}

constexpr std::string_view kConv =
    "graph @g(%x: f32[1, 16, 32, 32], %w: f32[32, 16, 3, 3]) -> f32[1, 32, 32, 32] {\n"
    "  %y = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1], winograd = 4}\n"
    "  return %y\n"
    "}";

TEST(KernelWork, CountsWhatAnAlgorithmCarriesOut) {
  const KernelBody conv = body(kConv);
  const double direct = 2.0 * 32 * 32 * 32 * 16 * 9;
  EXPECT_DOUBLE_EQ(work_of(conv, plain_nest(4), target()).operations, direct);
  // A tile of 4 x 4 results takes 6 x 6 products of channels for 144, one of 2 x 2 takes 16 for 36.
  Schedule winograd = {.order = {0, 2, 3, 1},
                       .lanes = {{1, 8}},
                       .unroll = {{3, 4}},
                       .own = WinogradFields{.points = 4, .block = {{2, 4}, {3, 4}}}};
  EXPECT_DOUBLE_EQ(work_of(conv, winograd, target()).operations, direct / 4);
  winograd.get<WinogradFields>().points = 2;
  EXPECT_DOUBLE_EQ(work_of(conv, winograd, target()).operations, direct * 16 / 36);
}

// So no share of a peak is above 1 because the peak is another type's.
TEST(KernelWork, ThePeakIsOfTheUnitThatComputes) {
  const auto peak_of = [](std::string_view type, Products products) {
    const KernelBody dot = body(
        fmt::format("graph @g(%x: {0}[64, 64], %w: {0}[64, 64]) -> {0}[64, 64] {{ %y = dot %x, %w "
                    "{{lhs_contract = [1], rhs_contract = [0]}} return %y }}",
                    type));
    Schedule gemm = {.order = {0, 1}, .own = GemmFields{.products = products}};
    return work_of(dot, gemm, target()).peak;
  };
  EXPECT_EQ(peak_of("f32", Products::plain), 1e9);
  EXPECT_EQ(peak_of("f64", Products::plain), 5e8);
  EXPECT_EQ(peak_of("f16", Products::plain), 1e9);  // in f32
  EXPECT_EQ(peak_of("bf16", Products::pairs), 2e9);
  EXPECT_EQ(peak_of("i32", Products::quads), 4e9);
  EXPECT_EQ(peak_of("i8", Products::plain), 4e9);  // four times as many lanes
  EXPECT_EQ(peak_of("bf16", Products::matrix), 2e9);
}

// A price of tensor cores must not lie below the roof of another unit.
TEST(KernelWork, ProductsOfBlocksHaveThePeakOfTensorCores) {
  const Target gpu = *preset_gpu("sm_90");
  const KernelBody dot = body(
      "graph @g(%x: bf16[64, 64], %w: bf16[64, 64]) -> bf16[64, 64] { %y = dot %x, %w "
      "{lhs_contract = [1], rhs_contract = [0]} return %y }");
  const auto peak_of = [&](Products products) {
    const Schedule tiles = {
        .order = {0, 1}, .threads = 2, .own = BlockTilesFields{.products = products}};
    return work_of(dot, tiles, gpu).peak;
  };
  EXPECT_EQ(peak_of(Products::plain), gpu.peak(DType::f32));
  EXPECT_EQ(peak_of(Products::matrix), gpu.peak(DType::bf16));
}

TEST(KernelWork, ProductsOfPartsCountEach) {
  const KernelBody dot = body(
      "graph @g(%x: f16[64, 64], %w: f16[64, 64]) -> f16[64, 64] { %y = dot %x, %w "
      "{lhs_contract = [1], rhs_contract = [0]} return %y }");
  Schedule gemm = {.order = {0, 1}, .own = GemmFields{.products = Products::plain}};
  const double once = work_of(dot, gemm, target()).operations;
  gemm.get<GemmFields>().products = Products::matrix;
  EXPECT_GE(work_of(dot, gemm, target()).operations, once);
}

TEST(KernelWork, SaysWhatAKernelComputes) {
  EXPECT_EQ(computes_text(body(kConv)), "conv 3x3");
  EXPECT_EQ(computes_text(body("graph @g(%x: f32[1, 8, 9, 9], %w: f32[8, 1, 5, 5]) {\n"
                               "  %c = conv %x, %w {groups = 8}\n  %y = max %c, 0\n"
                               "  return %y\n}")),
            "depthwise conv 5x5, max");
  EXPECT_EQ(computes_text(body("graph @g(%x: f32[4, 8]) { %t = transpose %x {permutation = [1, 0]} "
                               "%e = exp %t %s = reduce %e {kind = sum, axes = [0]} return %s }")),
            "exp, reduce sum");
  EXPECT_EQ(computes_text(body("graph @g(%x: f32[4, 8]) { %t = transpose %x {permutation = [1, 0]} "
                               "return %t }")),
            "transpose");
  EXPECT_EQ(computes_text(body("graph @g(%x: f32[4]) { %a = exp %x %b = tanh %a %c = neg %b "
                               "%d = abs %c %e = sqrt %d %f = log %e return %f }")),
            "exp, tanh, neg, abs +2");
}

}  // namespace
}  // namespace hone::HONE_FILE
