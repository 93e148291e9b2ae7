// Products that unpack weights of a few bits themselves: one kernel, under random schedules, at all
// levels of instructions.

#include <gtest/gtest.h>

#include "ir/functional.h"
#include "ir/op_facts.h"
#include "kernel/schedule_space.h"
#include "oracle/differential.h"
#include "plan/planned.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"
#include "tests/oracle/host_testing.h"
#include "zoo/inputs.h"

namespace hone::HONE_FILE {
namespace {

// x by weights that are inputs, so that no pass computes them ahead.
Graph product(Rng& rng) {
  constexpr DType kNumbers[] = {DType::u4, DType::i4, DType::u2, DType::i2, DType::u8, DType::i8};
  const DType dtype = kNumbers[rng.below(std::size(kNumbers))];
  const int64_t rows = rng.chance(0.4) ? 1 : rng.between(2, 18);
  const int64_t columns = rng.chance(0.5) ? 16 : rng.between(1, 40);
  const int64_t depth = rng.chance(0.5) ? 64 : rng.between(1, 70);
  const int64_t block = rng.chance(0.3) ? 0 : rng.chance(0.5) ? 16 : rng.between(1, 32);
  const bool is_transposed = rng.chance(0.5);  // as MatMulNBits has them
  const int axis = block == 0 ? (is_transposed ? 0 : 1) : (is_transposed ? 1 : 0);
  Dims dims = is_transposed ? Dims{columns, depth} : Dims{depth, columns}, scales = dims;
  if (block == 0)
    scales = {columns};
  else
    scales[static_cast<size_t>(axis)] = (depth + block - 1) / block;
  Builder b("packed");
  const Value x = b.parameter("x", DType::f32, {rows, depth});
  const Value q = b.parameter("q", dtype, dims), s = b.parameter("s", DType::f32, scales);
  std::vector<Value> operands = {q, s};
  if (rng.chance(0.5)) operands.push_back(b.parameter("z", dtype, scales));
  const Value w = b.op(Opcode::dequantize, operands, {{"axis", int64_t{axis}}, {"block", block}});
  Value y = dot_general(x, w, {}, {}, {1}, {is_transposed ? 1 : 0});
  if (rng.chance(0.3)) y = relu(y);
  return b.finish({y}).value();
}

// One kernel of all nodes, with the planner's schedule or any.
Plan one_kernel(const Graph& prepared, const Target& target, Rng& rng) {
  Plan plan;
  Group& group = plan.fuse.emplace_back(Group{"k0", {}});
  for (NodeId n : prepared.nodes())
    if (!is_parameter(prepared.opcode(n)) && !is_constant(prepared.opcode(n)))
      group.nodes.emplace_back(prepared.name(prepared.result(n)));
  plan.threads = rng.chance(0.5) ? 1 : target.cores;
  plan = complete(prepared, plan, target).value();
  if (rng.chance(0.3)) return plan;
  const PlannedGraph frame = planned(plan, prepared).value();
  const KernelBody body = body_of(frame, Users(prepared), frame.steps[0]);
  plan.schedule[kernel_hash(body)] = random_schedule(body, target, rng);
  return plan;
}

void check(uint64_t seed) {
  Rng rng(seed);
  DifferentialCase one = {.graph = product(rng), .inputs = {}, .judge = Judge::accurate};
  one.inputs = random_inputs(one.graph, seed).value();
  one.isa = kIsas[rng.below(static_cast<uint64_t>(host().isa) + 1)];
  const Graph prepared = prepare(one.graph).value();
  one.plan = one_kernel(prepared, restricted(host(), one.isa), rng);
  EXPECT_EQ(one.plan.fuse.size(), 1U);
  const DifferentialOutcome outcome = run_case(one, host(), team());
  EXPECT_FALSE(is_failure(outcome.verdict)) << seed << ": " << outcome.reason << "\n" << print(one);
}

TEST(PackedWeights, AreUnpackedInTheProduct) {
  for (uint64_t seed = 0; seed < 60; ++seed) check(seed);
}

TEST(PackedWeights, DISABLED_SweepOfProducts) {
  for (uint64_t seed = 1000; seed < 6000; ++seed) check(seed);
}

}  // namespace
}  // namespace hone::HONE_FILE
