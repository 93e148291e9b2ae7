// Weights of a few bits that the product which reads them unpacks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "cost/analytic.h"
#include "cost/plan_cost.h"
#include "front/decoder/blocks.h"
#include "ir/functional.h"
#include "ir/op_facts.h"
#include "plan/edit.h"
#include "plan/planned.h"
#include "plan/planned_kernels.h"
#include "planner/planner.h"
#include "planner/schedules.h"
#include "rewrite/prepare.h"
#include "tests/front/onnx_testing.h"
#include "tests/target/target_testing.h"

namespace hone::HONE_FILE {
namespace {

constexpr int64_t kColumns = 512, kDepth = 1024, kGroup = 32;

Target target() { return parse_target(kSampleTarget, "t").value(); }

Tensor bytes_of(Type type) {
  Rng rng(1);
  std::vector<std::byte> bytes(static_cast<size_t>(type.static_bytes()));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.below(256));
  return Tensor::copy_of(type, bytes);
}

// x by weights that are too large to be unpacked ahead.
Graph product(int64_t rows, DType dtype, bool is_transposed, bool reads_twice = false) {
  const Dims dims = is_transposed ? Dims{kColumns, kDepth} : Dims{kDepth, kColumns};
  const Dims scales =
      is_transposed ? Dims{kColumns, kDepth / kGroup} : Dims{kDepth / kGroup, kColumns};
  std::vector<double> values(static_cast<size_t>(kColumns * kDepth / kGroup));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.25 + static_cast<double>(i % 7);
  Builder b("packed");
  const Value x = b.parameter("x", DType::f32, {rows, kDepth});
  const Value q = b.constant(bytes_of(Type::get(dtype, dims)), "q");
  const Value s = b.constant(Tensor::from_reals(Type::get(DType::f32, scales), values), "s");
  const Value w = b.op(Opcode::dequantize, {q, s},
                       {{"axis", int64_t{is_transposed ? 1 : 0}}, {"block", kGroup}});
  Value y = dot_general(x, w, {}, {}, {1}, {is_transposed ? 1 : 0});
  if (reads_twice) y = y + reduce_sum(w, {is_transposed ? 1 : 0});
  return b.finish({y}).value();
}

// The largest value that a kernel leaves in memory, in elements.
int64_t largest_written(const Graph& graph, const Plan& plan) {
  int64_t most = 0;
  const PlannedGraph frame = planned(plan, graph).value();
  for (const Step& step : frame.steps)
    for (ValueId v : step.writes) most = std::max(most, graph.type(v).static_elements());
  return most;
}

Plan plan_of(const Graph& graph, const Heuristics& heuristics = {}) {
  return complete(graph, {}, target(), AnalyticCost(target()), {.heuristics = heuristics}).value();
}

TEST(PackedWeights, AreNeverInMemoryAsReals) {
  for (DType dtype : {DType::u4, DType::i4, DType::u2, DType::i8})
    for (bool is_transposed : {false, true}) {
      const Graph graph = prepare(product(1, dtype, is_transposed)).value();
      EXPECT_EQ(largest_written(graph, plan_of(graph)), kColumns) << name(dtype) << is_transposed;
    }
}

TEST(PackedWeights, AreUnpackedOnceForTwoReaders) {
  const Graph graph = prepare(product(1, DType::u4, true, true)).value();
  EXPECT_EQ(largest_written(graph, plan_of(graph)), kColumns * kDepth);
}

TEST(PackedWeights, StayApartWithoutTheHeuristic) {
  Heuristics heuristics;
  heuristics.fuse_operands = false;
  const Graph graph = prepare(product(1, DType::u4, true)).value();
  EXPECT_EQ(largest_written(graph, plan_of(graph, heuristics)), kColumns * kDepth);
}

double seconds_of(const Graph& graph, const Plan& plan) {
  const Target machine = target();
  const AnalyticCost cost(machine);
  KernelStore store;
  const std::unique_ptr<PlanEditor> editor = PlanEditor::open(graph, plan, machine).value();
  return PlanCost(*editor, cost, store, planner_schedules(machine, cost, store)).seconds().value();
}

TEST(PackedWeights, JoinWhereThatCostsLittle) {
  Heuristics apart;
  apart.fuse_operands = false;
  for (int64_t rows : {1, 16, 300}) {
    const Graph graph = prepare(product(rows, DType::u4, true)).value();
    EXPECT_LE(seconds_of(graph, plan_of(graph)), seconds_of(graph, plan_of(graph, apart)) * 1.26)
        << rows;
  }
}

size_t kernels_of(const Graph& graph) {
  const PlannedGraph frame = planned(plan_of(graph), graph).value();
  return static_cast<size_t>(std::ranges::count(frame.steps, true, &Step::is_kernel));
}

int64_t constant_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (NodeId n : graph.nodes())
    if (is_constant(graph.opcode(n))) bytes += graph.constant(n).byte_size();
  return bytes;
}

// ---- MatMulNBits --------------------------------------------------------------------------------

struct NBits {
  int64_t bits, rows;
  bool has_zeros;
  int64_t columns = kColumns;
};

Graph product_of_n_bits(const NBits& one) {
  using namespace onnx_testing;  // NOLINT: operands of a node
  const int64_t blocks = kDepth / kGroup, bytes = kGroup * one.bits / 8, columns = one.columns;
  const auto random = [](const Ints& dims) { return bytes_of(type_of(DType::u8, dims)); };
  std::vector<Operand> operands = {
      reals({one.rows, kDepth}, Numbers(static_cast<size_t>(one.rows * kDepth), 1)),
      constant(random({columns, blocks, bytes})),
      constant(reals({columns * blocks}, Numbers(static_cast<size_t>(columns * blocks), 0.25)))};
  if (one.has_zeros) operands.push_back(constant(random({columns * blocks * one.bits / 8})));
  const std::string model =
      node_model("MatMulNBits", 1, operands,
                 {{"K", kDepth}, {"N", columns}, {"bits", one.bits}, {"block_size", kGroup}},
                 {.domain = "com.microsoft"});
  return *single_graph(parse_onnx(std::as_bytes(std::span(model)), "test.onnx", ".").value());
}

TEST(PackedWeights, MatMulNBitsIsOneKernel) {
  for (int64_t bits : {2, 4, 8})
    for (int64_t rows : {1, 3, 16})
      for (bool has_zeros : {false, true}) {
        const Graph graph = prepare(product_of_n_bits({bits, rows, has_zeros})).value();
        EXPECT_EQ(kernels_of(graph), 1U) << bits << " bits, " << rows << " rows, " << has_zeros;
      }
}

// The zero points of these weights are too large to be folded. Nothing of them is in memory.
TEST(PackedWeights, MatMulNBitsOfManyColumnsIsOneKernel) {
  for (int64_t bits : {4, 8}) {
    const Graph graph = prepare(product_of_n_bits({bits, 1, false, 8192})).value();
    EXPECT_EQ(kernels_of(graph), 1U) << bits;
  }
}

// Rows of all columns would be a page each, so a step along the sum would take a page.
TEST(PackedWeights, LieInPanelsOfColumns) {
  const Graph graph = prepare(product_of_n_bits({4, 1, false, 8192})).value();
  const Plan plan = plan_of(graph);
  const PlannedGraph frame = planned(plan, graph).value();
  int matrices = 0;
  for (NodeId n : graph.nodes()) {
    if (!is_constant(graph.opcode(n)) || graph.constant(n).elements() < kDepth) continue;
    ++matrices;
    const Layout& layout = frame.layout[graph.result(n).index];
    const Layout::Part& last = layout.parts.back();
    EXPECT_TRUE(last.is_inner && last.block > 1) << print(layout);
    const Type stored = stored_type(layout, graph.type(graph.result(n)));
    EXPECT_LE(stored.dim(stored.rank() - 1).value(), kDepth) << stored.to_string();
  }
  EXPECT_GE(matrices, 2) << "numbers and scales";
}

// ---- Blocks of language models ------------------------------------------------------------------

TEST(PackedWeights, BlocksStayAsTheyLie) {
  for (int i = 0; i < kBlockFormats; ++i)
    for (int64_t rows : {1, 3, 32}) {
      const auto format = static_cast<BlockFormat>(i);
      const BlockLayout& layout = layout_of(format);
      SCOPED_TRACE(fmt::format("{}, {} rows", layout.name, rows));
      const Type stored = Type::get(DType::u8, {kColumns, kDepth / layout.elements * layout.bytes});
      Builder b("blocks");
      const Value x = b.parameter("x", DType::f32, {rows, kDepth});
      const Value y = product_of_blocks(x, b.constant(bytes_of(stored), "w"), format);
      const Graph graph = prepare(b.finish({y}).value()).value();
      EXPECT_LT(constant_bytes(graph), stored.static_bytes() + 64) << "no part is cut out";
      const Plan plan = plan_of(graph);
      EXPECT_EQ(kernels_of(graph), 1U);
      EXPECT_EQ(largest_written(graph, plan), rows * kColumns);
    }
}

// Halves of a byte come out together, so that each shift is by a constant.
TEST(PackedWeights, AllFieldsOfAByteAreUnpackedAtOnce) {
  for (const BlockFormat format : {BlockFormat::q4_0, BlockFormat::q4_1}) {
    const BlockLayout& layout = layout_of(format);
    SCOPED_TRACE(layout.name);
    Builder b("blocks");
    const Value x = b.parameter("x", DType::f32, {1, kDepth});
    const Type stored = Type::get(DType::u8, {kColumns, kDepth / layout.elements * layout.bytes});
    const Value y = product_of_blocks(x, b.constant(bytes_of(stored), "w"), format);
    const Graph graph = prepare(b.finish({y}).value()).value();
    const Plan plan = plan_of(graph);
    const std::map<std::string, PlannedKernel> kernels = planned_kernels(graph, plan).value();
    ASSERT_EQ(kernels.size(), 1U);
    const Schedule& schedule = *kernels.begin()->second.schedule;
    // Dims: rows, columns, blocks, halves, and the numbers of a half.
    ASSERT_NE(schedule.if_is<NestFields>(), nullptr);
    ASSERT_EQ(schedule.lanes.size(), 1U);
    EXPECT_EQ(schedule.lanes[0].dim, 4);
    EXPECT_THAT(schedule.unroll, testing::Contains(Tile{3, 2}));
  }
}

// A few rows share what is unpacked, by vectors along the bytes of a block. Formats of many fields
// have registers for fewer rows.
TEST(PackedWeights, FewRowsShareWhatIsUnpacked) {
  for (int i = 0; i < kBlockFormats; ++i)
    for (int64_t rows : {2, 4, 8}) {
      const auto format = static_cast<BlockFormat>(i);
      const BlockLayout& layout = layout_of(format);
      if (rows == 8 && layout.elements > 32) continue;
      SCOPED_TRACE(fmt::format("{}, {} rows", layout.name, rows));
      Builder b("blocks");
      const Value x = b.parameter("x", DType::f32, {rows, kDepth});
      const Type stored = Type::get(DType::u8, {kColumns, kDepth / layout.elements * layout.bytes});
      const Value y = product_of_blocks(x, b.constant(bytes_of(stored), "w"), format);
      const Graph graph = prepare(b.finish({y}).value()).value();
      const Plan plan = plan_of(graph);
      const std::map<std::string, PlannedKernel> kernels = planned_kernels(graph, plan).value();
      ASSERT_EQ(kernels.size(), 1U);
      const Schedule& schedule = *kernels.begin()->second.schedule;
      ASSERT_NE(schedule.if_is<NestFields>(), nullptr) << print(schedule);
      ASSERT_EQ(schedule.lanes.size(), 1U);
      EXPECT_GT(schedule.lanes[0].dim, 1) << "along the sum";
      EXPECT_THAT(schedule.unroll, testing::Contains(Tile{0, rows}));
    }
}

// The rows of a product, in these dims, by weights in blocks.
Graph product_of_rows(const Dims& rows, BlockFormat format) {
  const BlockLayout& layout = layout_of(format);
  Builder b("blocks");
  const Type stored = Type::get(DType::u8, {kColumns, kDepth / layout.elements * layout.bytes});
  const Value w = unpacked_as_they_lie(b.constant(bytes_of(stored), "w"), format);
  Dims dims = rows;
  Ints of_data, of_weights;
  for (int d = 1; d < w.rank(); ++d) {
    of_data.push_back(static_cast<int64_t>(dims.size()));
    of_weights.push_back(d);
    dims.push_back(w.dim(d));
  }
  const Value x = b.parameter("x", DType::f32, dims);
  return prepare(b.finish({dot_general(x, w, {}, {}, of_data, of_weights)}).value()).value();
}

// Few rows share what a nest unpacks in registers. Many rows are worth a copy of the weights: a
// matter of price.
TEST(PackedWeights, AreSharedByAsManyRowsAsThatPays) {
  const auto schedule_of = [](int64_t rows) {
    const Graph graph = product_of_rows({rows}, BlockFormat::q4_1);
    return *planned_kernels(graph, plan_of(graph)).value().begin()->second.schedule;
  };
  for (int64_t rows : {2, 4, 8}) EXPECT_NE(schedule_of(rows).if_is<NestFields>(), nullptr) << rows;
  for (int64_t rows : {256, 1024})
    EXPECT_NE(schedule_of(rows).if_is<GemmFields>(), nullptr) << rows;
}

TEST(PackedWeights, JoinTheProductOfRowsInSeveralDims) {
  for (const Dims& rows : {Dims{2, 4}, Dims{2, 2, 2}, Dims{2, 3, 4}, Dims{3, 5, 7}}) {
    const Graph graph = product_of_rows(rows, BlockFormat::q4_1);
    EXPECT_EQ(kernels_of(graph), 1U) << rows.size() << " dims";
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
