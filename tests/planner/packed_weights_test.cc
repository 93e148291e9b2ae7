// Weights of a few bits that the product which reads them unpacks.

#include <gtest/gtest.h>

#include "base/rng.h"
#include "cost/analytic.h"
#include "cost/plan_cost.h"
#include "ir/functional.h"
#include "plan/edit.h"
#include "plan/planned.h"
#include "planner/planner.h"
#include "planner/schedules.h"
#include "rewrite/prepare.h"
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

TEST(PackedWeights, JoinWhereThatCostsLess) {
  Heuristics apart;
  apart.fuse_operands = false;
  for (int64_t rows : {1, 16, 300}) {
    const Graph graph = prepare(product(rows, DType::u4, true)).value();
    EXPECT_LE(seconds_of(graph, plan_of(graph)), seconds_of(graph, plan_of(graph, apart)) * 1.001)
        << rows;
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
