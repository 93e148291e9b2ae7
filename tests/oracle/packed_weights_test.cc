// Products that unpack weights of a few bits themselves: one kernel, under random schedules, at all
// levels of instructions.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "front/decoder/blocks.h"
#include "front/decoder/rounded_product.h"
#include "ir/functional.h"
#include "ir/op_facts.h"
#include "kernel/schedule_space.h"
#include "oracle/differential.h"
#include "plan/planned.h"
#include "plan/random_plan.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"
#include "tests/front/gguf_file.h"
#include "tests/front/onnx_testing.h"
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

// In one kernel.
void check(DifferentialCase one, Rng& rng) {
  one.judge = Judge::accurate;
  one.isa = kIsas[rng.below(static_cast<uint64_t>(host().isa) + 1)];
  const Graph prepared = prepare(one.graph).value();
  one.plan = one_kernel(prepared, restricted(host(), one.isa), rng);
  EXPECT_EQ(one.plan.fuse.size(), 1U);
  const DifferentialOutcome outcome = run_case(one, host(), team());
  EXPECT_FALSE(is_failure(outcome.verdict)) << outcome.reason << "\n" << print(one);
}

void check(uint64_t seed) {
  SCOPED_TRACE(seed);
  Rng rng(seed);
  DifferentialCase one = {.graph = product(rng), .inputs = {}};
  one.inputs = random_inputs(one.graph, seed).value();
  check(std::move(one), rng);
}

// ---- MatMulNBits --------------------------------------------------------------------------------

constexpr int64_t kRows[] = {1, 3, 16};

// The weights are constants that are too large to be unpacked ahead. `level`: of accuracy.
DifferentialCase n_bits(Rng& rng, int64_t level) {
  using namespace onnx_testing;  // NOLINT: operands of a node
  const int64_t bits = int64_t{2} << rng.below(3), block = int64_t{16} << rng.below(3);
  // Sums of groups of more rows than half a block have no room.
  const int64_t rows = std::min(kRows[rng.below(3)], level == kLevelOfBytes ? block / 2 : kRows[2]);
  // 128: in panels. As bytes the numbers take a fourth of what they take as reals.
  const int64_t times = level == kLevelOfBytes ? 4 : 1;
  const int64_t columns = times * (rng.chance(0.5) ? 128 : rng.between(100, 130));
  const int64_t depth = rng.chance(0.5) ? 192 : rng.between(170, 260);
  const int64_t blocks = (depth + block - 1) / block, zero_bytes = (blocks * bits + 7) / 8;
  const auto random = [&](const Ints& dims) {
    const Type type = type_of(DType::u8, dims);
    std::vector<int64_t> values(static_cast<size_t>(type.static_elements()));
    for (int64_t& value : values) value = rng.between(0, 255);
    return Tensor::from_integers(type, values);
  };
  Numbers scales(static_cast<size_t>(columns * blocks));
  for (double& scale : scales) scale = std::ldexp(static_cast<double>(rng.between(1, 9)), -6);
  const Tensor x = reals({rows, depth}, Numbers(static_cast<size_t>(rows * depth)));
  std::vector<Operand> operands = {x, random({columns, blocks, block * bits / 8}),
                                   reals({columns * blocks}, scales)};
  if (rng.chance(0.6)) operands.emplace_back(random({columns, zero_bytes}));
  for (size_t i = 1; i < operands.size(); ++i) operands[i].is_constant = true;
  const std::string model = node_model("MatMulNBits", 1, operands,
                                       {{"K", depth},
                                        {"N", columns},
                                        {"bits", bits},
                                        {"block_size", block},
                                        {"accuracy_level", level}},
                                       {.domain = "com.microsoft"});
  DifferentialCase one = {
      .graph = *single_graph(parse_onnx(std::as_bytes(std::span(model)), "n.onnx", ".").value()),
      .inputs = {}};
  one.inputs = random_inputs(one.graph, rng.below(1000)).value();
  return one;
}

void check_n_bits(uint64_t seed) {
  SCOPED_TRACE(seed);
  Rng rng(seed);
  DifferentialCase one = n_bits(rng, 0);
  check(std::move(one), rng);
}

TEST(PackedWeights, OfMatMulNBitsAreUnpackedInTheProduct) {
  for (uint64_t seed = 0; seed < 14; ++seed) check_n_bits(seed);
}

// ---- Products of rounded data -------------------------------------------------------------------

struct Quads {
  int products = 0;  // in words, of the plans
  int passed = 0;    // plans: numbers near the middle of two bytes may be rounded either way
};

// Several kernels: of the planner or any, with its schedules or any.
void check_rounded(uint64_t seed, Quads& quads) {
  SCOPED_TRACE(seed);
  Rng rng(seed);
  DifferentialCase one = n_bits(rng, kLevelOfBytes);
  one.isa = kIsas[rng.below(static_cast<uint64_t>(host().isa) + 1)];
  const Target target = restricted(host(), one.isa);
  const Graph prepared = prepare(one.graph).value();
  if (rng.chance(0.2)) {
    one.plan = random_plan(prepared, target, seed);
  } else {
    one.plan = complete(prepared, {}, target).value();
    const PlannedGraph frame = planned(one.plan, prepared).value();
    const Users users(*frame.graph);
    for (const Step& step : frame.steps) {
      const KernelBody body = body_of(frame, users, step);
      Schedule& schedule = one.plan.schedule.at(kernel_hash(body));
      if (rng.chance(0.4)) schedule = random_schedule(body, target, rng);
      const auto* gemm = schedule.if_is<GemmFields>();
      quads.products += gemm != nullptr && gemm->products == Products::quads;
    }
  }
  const DifferentialOutcome outcome = run_case(one, host(), team());
  EXPECT_FALSE(is_failure(outcome.verdict)) << outcome.reason << "\n" << print(one);
  quads.passed += outcome.verdict == Verdict::passed;
}

TEST(PackedWeights, OfRoundedDataAreMultipliedInWords) {
  Quads quads;
  for (uint64_t seed = 0; seed < 24; ++seed) check_rounded(seed, quads);
  EXPECT_GT(quads.products, 8);
  EXPECT_GT(quads.passed, 20);
}

// ---- Blocks of language models ------------------------------------------------------------------

void check_blocks(uint64_t seed) {
  SCOPED_TRACE(seed);
  constexpr uint32_t kTypes[kBlockFormats] = {gguf::kQ4_0, gguf::kQ4_1, gguf::kQ5_0, gguf::kQ5_1,
                                              gguf::kQ8_0, gguf::kQ4_K, gguf::kQ5_K, gguf::kQ6_K};
  Rng rng(seed);
  const uint64_t number = rng.below(kBlockFormats);
  const BlockLayout& layout = layout_of(static_cast<BlockFormat>(number));
  const int64_t rows = kRows[rng.below(3)], columns = rng.between(1, 20);
  const int64_t blocks = rng.between(1, layout.elements > 32 ? 2 : 5);
  Builder b("blocks");
  const Value x = b.parameter("x", DType::f32, {rows, blocks * layout.elements});
  const Type stored = Type::get(DType::u8, {columns, blocks * layout.bytes});
  const Value w = b.parameter("w", stored);
  DifferentialCase one = {
      .graph = b.finish({product_of_blocks(x, w, static_cast<BlockFormat>(number))}).value(),
      .inputs = {}};
  one.inputs = random_inputs(one.graph, seed).value();
  const std::string bytes = gguf::random_bytes(
      kTypes[number], static_cast<uint64_t>(columns * blocks * layout.elements), 1, seed);
  one.inputs[1] = Tensor::copy_of(stored, std::as_bytes(std::span(bytes)));
  check(std::move(one), rng);
}

TEST(PackedWeights, OfBlocksAreUnpackedInTheProduct) {
  for (uint64_t seed = 0; seed < 16; ++seed) check_blocks(seed);
}

// ---- Dequantized ones ---------------------------------------------------------------------------

TEST(PackedWeights, AreUnpackedInTheProduct) {
  for (uint64_t seed = 0; seed < 60; ++seed) check(seed);
}

TEST(PackedWeights, DISABLED_SweepOfProducts) {
  Quads quads;
  for (uint64_t seed = 1000; seed < 6000; ++seed) {
    check(seed);
    if (seed % 5 == 0) check_n_bits(seed), check_blocks(seed), check_rounded(seed, quads);
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
