#include <gtest/gtest.h>

#include <map>

#include "ir/functional.h"
#include "plan/random_plan.h"
#include "planner/planner.h"
#include "program/run.h"
#include "tests/base/share_testing.h"
#include "tests/program/block_attention.h"
#include "tests/program/block_testing.h"
#include "tests/program/lower_testing.h"
#include "zoo/random/random_graph.h"

// Random graphs under random plans of a GPU: the interpreter against the reference, the second
// oracle against the interpreter, bit for bit.

namespace hone::HONE_FILE {
namespace {

// The program as a CPU runs what a GPU does: each block is one thread.
Program serial(Program program) {
  for (program::Kernel& kernel : program.kernels)
    kernel.tiles = serial_form(simt_form(kernel.tiles));
  return program;
}

// Each eighth has special numbers.
Specials specials_of_graph(uint64_t seed) {
  Rng rng(seed);
  return seed % 8 == 5 ? Specials::drawn(rng) : Specials();
}

// Each eighth is an attention: other random graphs have no chain of products.
Graph source_of(uint64_t seed) {
  if (seed % 8 == 3) {
    Rng rng(seed);
    Attention sizes = random_attention(rng);
    sizes.dtype = DType::f32;
    return attention(sizes);
  }
  const bool continuous = seed % 2 == 0;
  return random_graph({.seed = 7 * seed,
                       .min_steps = continuous ? 8 : 2,
                       .max_steps = continuous ? 12 : 4,
                       .max_elements = 64,
                       .continuous = continuous,
                       .specials = specials_of_graph(seed)});
}

// How many kernels each algorithm made.
using Made = std::map<Algorithm, int>;

// The program computes what its graph means, and the same bits as one by one.
void check_program(const Graph& graph, const Program& program, const std::vector<Tensor>& inputs,
                   bool are_special = false) {
  const Result<std::vector<Tensor>> actual = run(program, inputs);
  ASSERT_TRUE(actual.ok()) << actual.error().to_string();
  if (are_special)
    expect_specials(graph, inputs, *actual);
  else
    expect_same(*actual, evaluated(graph, inputs));
  const Result<std::vector<Tensor>> again = run(serial(program), inputs);
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  for (size_t i = 0; i < actual->size(); ++i)
    EXPECT_TRUE(std::ranges::equal((*again)[i].bytes(), (*actual)[i].bytes())) << "output " << i;
}

void check_random(uint64_t first, uint64_t count, Made& made) {
  for (uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); ++seed) {
    const Graph source = source_of(seed);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, print(source)));
    const Graph graph = prepared(source);
    const Target& gpu = seed % 3 == 0 ? hopper() : any_gpu();
    const Result<Program> program = lower(graph, random_plan(graph, gpu, seed), gpu);
    ASSERT_TRUE(program.ok()) << program.error().to_string();
    for (const program::Kernel& kernel : program->kernels) ++made[kernel.schedule->algorithm()];
    const Specials specials = specials_of_graph(seed);
    check_program(graph, *program, random_graph_inputs(graph, seed, specials), specials.any());
  }
}

// Small whole numbers, whose sums are exact in any order.
std::vector<Tensor> whole_numbers(const Graph& graph, uint64_t seed) {
  Rng rng(seed);
  std::vector<Tensor> inputs;
  for (const ValueId input : graph.inputs()) {
    std::vector<double> numbers(static_cast<size_t>(graph.type(input).static_elements()));
    for (double& number : numbers) number = static_cast<double>(rng.between(-3, 3));
    inputs.push_back(Tensor::from_reals(graph.type(input), numbers));
  }
  return inputs;
}

int parts_of_blocks(const Program& program, int BlockTilesFields::* field) {
  int most = 0;
  for (const program::Kernel& kernel : program.kernels)
    if (const auto* own = kernel.schedule->if_is<BlockTilesFields>(); own != nullptr)
      most = std::max(most, own->*field);
  return most;
}

constexpr Algorithm kCommon[] = {Algorithm::nest,        Algorithm::block_rows,
                                 Algorithm::block_tiles, Algorithm::block_chain,
                                 Algorithm::block_sums,  Algorithm::block_copy};
// Few random graphs have their ops.
constexpr Algorithm kRare[] = {Algorithm::block_scan, Algorithm::block_sort,
                               Algorithm::block_scatter};

// Whatever random plans are like, they have kernels of all these algorithms of a GPU.
void expect_all(Made made, std::span<const Algorithm> algorithms, int of_each) {
  for (Algorithm algorithm : algorithms) EXPECT_GE(made[algorithm], of_each) << name(algorithm);
}

TEST(GpuGraphs, ComputeWhatTheReferenceDoes) {
  Made made;
  check_random(0, tested::share_of(160, 2), made);
  expect_all(made, kCommon, 2);
}
// Random graphs are too small for them on most chips. Parts of sums lie in memory that the plan
// gives to other buffers before and after.
TEST(GpuGraphs, BlocksShareStepsAndTakePartsOfThem) {
  const Graph graph =
      prepared(parse_graph("graph @g(%x: f32[40, 64], %w: f32[64, 45], %v: f32[45, 33]) { "
                           "%a = dot %x, %w {lhs_contract = [1], rhs_contract = [0]} %b = neg %a "
                           "%y = dot %b, %v {lhs_contract = [1], rhs_contract = [0]} return %y }")
                   .value());
  Target small = any_gpu();
  small.cores = 4;
  constexpr int kOfEach = 2;
  int shared = 0, in_parts = 0;
  for (uint64_t seed = 0; seed < 400 && !testing::Test::HasFailure(); ++seed) {
    if (shared >= kOfEach && in_parts >= kOfEach) break;
    SCOPED_TRACE(seed);
    const Result<Program> program = lower(graph, random_plan(graph, small, seed), small);
    ASSERT_TRUE(program.ok()) << program.error().to_string();
    const bool has_shares = parts_of_blocks(*program, &BlockTilesFields::shares) > 0,
               has_parts = parts_of_blocks(*program, &BlockTilesFields::splits) > 1;
    const bool is_new = (has_shares && shared < kOfEach) || (has_parts && in_parts < kOfEach);
    if (!is_new) continue;
    check_program(graph, *program, whole_numbers(graph, seed));
    shared += has_shares ? 1 : 0;
    in_parts += has_parts ? 1 : 0;
  }
  EXPECT_GE(shared, kOfEach);
  EXPECT_GE(in_parts, kOfEach);
}
// The second product reads what the first one wrote, both of numbers that boxes have.
TEST(GpuGraphs, WarpgroupsMultiply) {
  const Graph graph =
      prepared(parse_graph("graph @g(%x: bf16[40, 72], %w: bf16[72, 80], %v: bf16[33, 80]) { "
                           "%a = dot %x, %w {lhs_contract = [1], rhs_contract = [0]} %b = neg %a "
                           "%y = dot %b, %v {lhs_contract = [1], rhs_contract = [1]} return %y }")
                   .value());
  const Plan partial = parse_plan("plan @g { fuse @h = {%a, %b} fuse @k = {%y} }").value();
  Plan plan = complete(graph, partial, hopper()).value();
  for (auto& [hash, schedule] : plan.schedule)
    schedule = {.order = {0, 1},
                .threads = 2,
                .own = BlockTilesFields{.rows = 64,
                                        .columns = 64,
                                        .depth = 64,
                                        .products = Products::matrix,
                                        .ahead = 1,
                                        .groups = 1}};
  const Result<Program> program = lower(graph, plan, hopper());
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  EXPECT_EQ(program->kernels.size(), 2U);
  EXPECT_EQ(parts_of_blocks(*program, &BlockTilesFields::groups), 1);
  check_program(graph, *program, random_graph_inputs(graph, 1));
}

// Weights are a constant, which is transformed when the program is made. Random graphs have few
// such convs, and small sorts.
TEST(GpuGraphs, TransformTilesAndSortTheFirst) {
  Rng rng(1);
  Builder b;
  const Type weights = Type::get(DType::f32, {8, 6, 3, 3});
  std::vector<double> numbers(static_cast<size_t>(weights.static_elements()));
  for (double& each : numbers) each = rng.normal();
  const Value x = b.parameter("x", DType::f32, {1, 6, 7, 9});
  const Value y = b.op(Opcode::conv, {x, b.constant(Tensor::from_reals(weights, numbers))},
                       {{"pad_low", Ints{1, 1}}, {"pad_high", Ints{1, 0}}});
  const std::vector<Value> best =
      b.ops(Opcode::top_k, {{b.parameter("v", DType::f32, {2, 150})}}, {{"k", Dims{7}}});
  const Graph graph = prepared(b.finish({maximum(y, 0), best[0], best[1]}).value());
  Made made;
  constexpr int kOfEach = 2;
  for (uint64_t seed = 0; seed < 400 && !testing::Test::HasFailure(); ++seed) {
    if (made[Algorithm::block_winograd] >= kOfEach && made[Algorithm::block_sort] >= kOfEach) break;
    SCOPED_TRACE(seed);
    const Result<Program> program = lower(graph, random_plan(graph, any_gpu(), seed), any_gpu());
    ASSERT_TRUE(program.ok()) << program.error().to_string();
    Made here;
    bool is_small = true;  // what the interpreter runs in a moment
    for (const program::Kernel& kernel : program->kernels) {
      ++here[kernel.schedule->algorithm()];
      const auto* winograd = kernel.schedule->if_is<BlockWinogradFields>();
      if (winograd == nullptr) continue;
      const auto& tile = winograd->stages[0].get<BlockTilesFields>();
      is_small = is_small && tile.rows * tile.columns * tile.depth <= 32 * 32 * 16;
    }
    const bool is_new = here[Algorithm::block_winograd] > 0 ||
                        (here[Algorithm::block_sort] > 0 && made[Algorithm::block_sort] < kOfEach);
    if (!is_small || !is_new) continue;
    for (const auto& [algorithm, count] : here) made[algorithm] += count;
    check_program(graph, *program, random_graph_inputs(graph, seed));
  }
  expect_all(made, {{Algorithm::block_winograd, Algorithm::block_sort}}, kOfEach);
}
TEST(GpuGraphs, DISABLED_SweepGraphs) {
  Made made;
  check_random(1'000'000, 3'000, made);
  expect_all(made, kCommon, 50);
  expect_all(made, kRare, 5);
}

}  // namespace
}  // namespace hone::HONE_FILE
