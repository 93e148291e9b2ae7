#include "kernel/algorithms/block_chain.h"

#include <gtest/gtest.h>

#include "kernel/schedule_space.h"
#include "program/tiles/calling.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/program/block_attention.h"
#include "tests/program/block_programs.h"
#include "tests/program/block_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

void check_random(uint64_t first, uint64_t count) {
  int checked = 0, in_blocks = 0, by_warps = 0, in_steps = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    KernelBody body = body_of_all(attention(random_attention(rng)));
    draw_layouts(body, {}, rng);
    Schedule schedule;
    for (int i = 0; i < 60 && schedule.algorithm() != Algorithm::block_chain; ++i)
      schedule = random_schedule(body, any_gpu(), rng);
    if (schedule.algorithm() != Algorithm::block_chain) continue;
    SCOPED_TRACE(print(body.graph));
    check_block_kernel(body, schedule, random_inputs(body.graph, rng));
    if (testing::Test::HasFailure()) return;
    ++checked;
    in_blocks += schedule.get<BlockChainFields>().block.empty() ? 0 : 1;
    const std::vector<BlockStage> stages = block_stages(body, schedule).value();
    for (const BlockStage& stage : stages) by_warps += stage.is_by_warp ? 1 : 0;
    in_steps += stages.back().row.steps() > 1 ? 1 : 0;
  }
  EXPECT_GT(checked, static_cast<int>(count) / 2);
  EXPECT_GT(in_blocks, checked / 5);
  EXPECT_GT(by_warps, checked / 5);
  EXPECT_GT(in_steps, checked / 6);
}

TEST(BlocksChain, ComputesAttention) { check_random(0, tested::share_of(24, 2)); }
TEST(BlocksChain, DISABLED_SweepAttention) { check_random(1'000'000, 1'000); }

constexpr Attention kCausal = {
    .batch = 2, .groups = 2, .heads = 2, .queries = 10, .keys = 40, .width = 8, .is_causal = true};

Schedule four_queries(const KernelBody& body) {
  Schedule schedule = simplest_block_chain(body).value();
  schedule.own = BlockChainFields{.block = {{3, 4}}, .warps = 2};
  return schedule;
}

TEST(BlocksChain, ScoresOfAnAttentionNeverLeaveTheChip) {
  const KernelBody body = body_of_all(attention(kCausal));
  const Schedule schedule = four_queries(body);
  EXPECT_EQ(print(schedule),
            "{algorithm = block_chain, order = [0, 1, 2, 3], threads = 4, block = [3:4], "
            "warps = 2}");
  const TileProgram program = build_kernel(body, schedule, "k").value();
  // Scores, maxima, sums and weights of four queries.
  int64_t bytes = 0;
  for (const TileBuffer& buffer : program.buffers) {
    EXPECT_NE(buffer.role, BufferRole::shared);
    EXPECT_NE(buffer.role, BufferRole::scratch);
    if (buffer.role == BufferRole::block) bytes += buffer.type.static_elements() * 4;
  }
  EXPECT_EQ(bytes, (4 * 40 + 4 + 4 + 4 * 40) * 4);
  EXPECT_EQ(program.phases.size(), 1U);
  EXPECT_EQ(block_threads(program.phases[0], program), 64);
  Rng rng(1);
  check_block_kernel(body, schedule, random_inputs(body.graph, rng));
}

TEST(BlocksChain, ThreadsOfAWarpShareLongSums) {
  const KernelBody body = body_of_all(attention({.queries = 3, .keys = 200, .width = 8}));
  const std::string text =
      print(build_kernel(body, simplest_block_chain(body).value(), "k").value());
  EXPECT_NE(text.find("combine @sum[] by max"), std::string::npos) << text;
  EXPECT_NE(text.find("combine @sum_2[] by add"), std::string::npos) << text;
}

// Scores of two dims, of which the first is long: a warp divides that one.
TEST(BlocksChain, ThreadsOfAWarpShareTheLongestDim) {
  constexpr std::string_view kText =
      "graph @g(%q: f32[3, 8], %k: f32[70, 3, 8], %v: f32[70, 3, 8]) { "
      "%s = dot %q, %k {lhs_contract = [1], rhs_contract = [2]} "
      "%m = reduce %s {kind = max, axes = [1, 2]} "
      "%b = broadcast %m {dims = [3, 70, 3], map = [0]} %d = sub %s, %b %e = exp %d "
      "%t = reduce %e {kind = sum, axes = [1, 2]} "
      "%c = broadcast %t {dims = [3, 70, 3], map = [0]} %p = div %e, %c "
      "%y = dot %p, %v {lhs_contract = [1, 2], rhs_contract = [0, 1]} return %y }";
  const KernelBody body = body_of_all(parse_graph(kText).value());
  Schedule schedule = simplest_block_chain(body).value();
  schedule.own = BlockChainFields{.warps = 2};
  int by_warps = 0;
  const std::vector<BlockStage> stages = block_stages(body, schedule).value();
  for (const BlockStage& stage : stages) {
    if (!stage.is_by_warp) continue;
    ++by_warps;
    EXPECT_EQ(stage.terms, 210);
    EXPECT_EQ(stage.split, 1);
    // A thread has 3 of 70 terms at most, three times, and a warp combines in 5 steps.
    EXPECT_EQ(steps_of_stage(stage, 64), 3 * 3 + 5);
  }
  EXPECT_EQ(by_warps, 2);
  Rng rng(1);
  check_block_kernel(body, schedule, random_inputs(body.graph, rng));
}

// ---- The row of a softmax in steps
// ---------------------------------------------------------------

Schedule in_steps(const KernelBody& body, std::vector<Tile> block, int warps = 2) {
  Schedule schedule = simplest_block_chain(body).value();
  schedule.own = BlockChainFields{.block = std::move(block), .warps = warps};
  return schedule;
}
constexpr int kHeads = 2, kQueries = 3, kRow = 5;  // dims of the results, and behind them

int64_t bytes_of_block(const KernelBody& body, const Schedule& schedule) {
  int64_t bytes = 0;
  const std::vector<BlockStage> stages = block_stages(body, schedule).value();
  for (const BlockStage& stage : stages) bytes += stage.bytes;
  return bytes;
}

// 40 keys are two steps of 16 and a rest.
TEST(BlocksChain, TakesTheRowOfASoftmaxInSteps) {
  for (bool divides_weights : {true, false}) {
    Attention wanted = kCausal;
    wanted.divides_weights = divides_weights;
    const KernelBody body = body_of_all(attention(wanted));
    const Schedule schedule = in_steps(body, {{kQueries, 4}, {kRow, 16}});
    // Scores and weights of a step; of each query a maximum, the largest score, a scale and a sum.
    EXPECT_EQ(bytes_of_block(body, schedule), 4 * (2 * 4 * 16 + 4 * 4));
    Rng rng(1);
    check_block_kernel(body, schedule, random_inputs(body.graph, rng));
  }
}

TEST(BlocksChain, RowsLongerThanTheMemoryOfABlockAreTakenInSteps) {
  const KernelBody body = body_of_all(attention({.queries = 2, .keys = 20'000, .width = 4}));
  EXPECT_EQ(row_of_softmax(body), 20'000);
  EXPECT_FALSE(check_schedule(body, simplest_block_chain(body).value(), any_gpu()).ok());
  const Schedule schedule = in_steps(body, {{kRow, 64}});
  EXPECT_TRUE(check_schedule(body, schedule, any_gpu()).ok());
  EXPECT_EQ(bytes_of_block(body, schedule), 4 * (2 * 64 + 4));
}

// Other chains have no such row: its maxima would be those of something else.
TEST(BlocksChain, StepsNeedASoftmax) {
  const auto row = [](std::string_view name, std::string_view by) {
    std::string text =
        "graph @g(%q: f32[6, 8], %k: f32[70, 8], %v: f32[70, 8]) { "
        "%s = dot %q, %k {lhs_contract = [1], rhs_contract = [1]} "
        "%m = reduce %s {kind = max, axes = [1]} %b = broadcast %m {dims = [6, 70], map = [0]} "
        "%d = sub %s, %b %e = exp %d %t = reduce %e {kind = sum, axes = [1]} "
        "%c = broadcast %t {dims = [6, 70], map = [0]} %p = div %e, %c "
        "%y = dot %p, %v {lhs_contract = [1], rhs_contract = [0]} return %y }";
    const size_t at = text.find(name);
    if (at != std::string::npos) text.replace(at, name.size(), by);
    return row_of_softmax(body_of_all(parse_graph(text).value()));
  };
  EXPECT_EQ(row("", ""), 70);
  EXPECT_EQ(row("kind = max", "kind = min"), std::nullopt);
  EXPECT_EQ(row("exp %d", "tanh %d"), std::nullopt);
  EXPECT_EQ(row("div %e", "mul %e"), std::nullopt);
  EXPECT_EQ(row("sub %s, %b", "sub %b, %s"), std::nullopt);
  // Integers are other weights. A step has the weights of its own points alone.
  const auto with_weights = [&](const std::string& made, std::string_view product = "dot %w, %v") {
    return row("%y = dot %p, %v", made + " %y = " + std::string(product));
  };
  EXPECT_EQ(with_weights("%h = cast %p {dtype = bf16} %w = cast %h {dtype = f32}"), 70);
  EXPECT_EQ(with_weights("%h = cast %p {dtype = i32} %w = cast %h {dtype = f32}"), std::nullopt);
  EXPECT_EQ(with_weights("%w = reverse %p {axes = [0]}"), std::nullopt);
  EXPECT_EQ(with_weights("%w = reverse %p {axes = [1]}"), std::nullopt);
  EXPECT_EQ(with_weights("%h = reverse %p {axes = [1]} %w = reverse %h {axes = [1]}"), 70);
  EXPECT_EQ(with_weights("%h = reshape %p {dims = [6, 7, 10]} "
                         "%i = transpose %h {permutation = [0, 2, 1]} "
                         "%w = reshape %i {dims = [6, 70]}"),
            std::nullopt);
  EXPECT_EQ(with_weights("%h = reshape %p {dims = [1, 6, 70]} %w = reshape %h {dims = [6, 70]}"),
            70);
}

// Squares of weights are scaled otherwise.
TEST(BlocksChain, StepsNeedEachWeightOnce) {
  const auto row = [](std::string_view data) {
    const std::string text =
        "graph @g(%q: f32[6, 8], %k: f32[70, 8], %v: f32[6, 70]) { "
        "%s = dot %q, %k {lhs_contract = [1], rhs_contract = [1]} "
        "%m = reduce %s {kind = max, axes = [1]} %b = broadcast %m {dims = [6, 70], map = [0]} "
        "%d = sub %s, %b %e = exp %d %t = reduce %e {kind = sum, axes = [1]} "
        "%c = broadcast %t {dims = [6, 70], map = [0]} %p = div %e, %c %w = div %v, %c "
        "%y = dot %p, " +
        std::string(data) +
        " {lhs_batch = [0], rhs_batch = [0], lhs_contract = [1], rhs_contract = [1]} return %y }";
    return row_of_softmax(body_of_all(parse_graph(text).value()));
  };
  EXPECT_EQ(row("%v"), 70);
  EXPECT_EQ(row("%p"), std::nullopt);
  EXPECT_EQ(row("%w"), std::nullopt);
}

// Each number is as the reference has it: a number by the rule, an infinity, or NaN.
void expect_specials(const Attention& wanted, const ChangeInputs& change) {
  const KernelBody body = body_of_all(attention(wanted));
  Rng rng(5);
  std::vector<Tensor> inputs = random_inputs(body.graph, rng);
  change(inputs, rng);
  const Tensor expected = evaluate(body.graph, inputs, {}).value()[0];
  const bool by_tensor_cores = wanted.dtype != DType::f32;
  const double tolerance = by_tensor_cores ? 0.05 : 1e-4;
  for (int step : by_tensor_cores ? std::vector{16} : std::vector{4, 16, 64}) {
    const Schedule schedule = in_steps(body, {{kQueries, 4}, {kRow, step}});
    EXPECT_EQ(block_stages(body, schedule)->back().tiles.has_value(), by_tensor_cores);
    const TileProgram program = build_kernel(body, schedule, "k").value();
    const Tensor actual = interpret(program, inputs).value()[0];
    for (int64_t i = 0; i < expected.elements(); ++i) {
      const double wants = expected.real_at(i), has = actual.real_at(i);
      if (std::isfinite(wants))
        EXPECT_NEAR(has, wants, tolerance) << i << " of step " << step;
      else
        EXPECT_TRUE(std::isnan(wants) ? std::isnan(has) : has == wants) << i << ": " << has;
    }
  }
}

Tensor changed_at(const Tensor& input, double number, const std::function<bool(int64_t)>& at) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < input.elements(); ++i)
    numbers.push_back(at(i) ? number : input.real_at(i));
  return Tensor::from_reals(input.type(), numbers);
}

// Threads multiply f32, and tensor cores multiply numbers of 16 bits.
class BlocksChainSpecials : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(All, BlocksChainSpecials,
                         testing::Values(DType::f32, DType::bf16, DType::f16),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST_P(BlocksChainSpecials, StepsKeepInfinitiesAndNaN) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  Attention causal = kCausal;
  causal.dtype = GetParam();
  Attention masked = causal;
  masked.masked = -kInfinite;
  expect_specials(masked, [](std::vector<Tensor>&, Rng&) {});
  constexpr int64_t kWidth = kCausal.width, kKeys = kCausal.keys;
  const auto key_of = [](int64_t i) { return i / kWidth % kKeys; };
  // Scores of the first 20 keys are -inf, or those of all, since all of q is above 0.
  for (int64_t keys : {int64_t{20}, kKeys})
    expect_specials({.queries = 5, .keys = kKeys, .width = kWidth, .dtype = GetParam()},
                    [&](std::vector<Tensor>& inputs, Rng&) {
                      inputs[0] = changed_at(inputs[0], 0.5, [](int64_t) { return true; });
                      inputs[1] = changed_at(inputs[1], -kInfinite,
                                             [&](int64_t i) { return key_of(i) < keys; });
                    });
  // A key, or data of a key, whether it is masked or not: in the first step, or in the last one,
  // which has fewer keys.
  for (size_t input : {1, 2})
    for (double number : {kInfinite, -kInfinite, std::nan("")})
      for (const Attention& wanted : {causal, masked})
        for (int64_t place : {int64_t{37}, kWidth * (kKeys - 1) + 1})
          expect_specials(wanted, [&](std::vector<Tensor>& inputs, Rng&) {
            inputs[input] =
                changed_at(inputs[input], number, [&](int64_t i) { return i == place; });
          });
}

// The weights of a row without any are NaN, also if nothing divides their product.
TEST(BlocksChain, RowsOfNothingAreNaN) {
  constexpr std::string_view kText =
      "graph @g(%q: f32[6, 8], %k: f32[70, 8], %v: f32[70, 8]) { "
      "%s = dot %q, %k {lhs_contract = [1], rhs_contract = [1]} "
      "%m = reduce %s {kind = max, axes = [1]} %b = broadcast %m {dims = [6, 70], map = [0]} "
      "%d = sub %s, %b %e = exp %d %t = reduce %e {kind = sum, axes = [1]} %u = exp %t "
      "%y = dot %e, %v {lhs_contract = [1], rhs_contract = [0]} "
      "%c = broadcast %u {dims = [6, 8], map = [0]} %r = div %y, %c return %r }";
  const KernelBody body = body_of_all(parse_graph(kText).value());
  const Schedule schedule = in_steps(body, {{0, 4}, {2, 16}});
  Rng rng(1);
  std::vector<Tensor> inputs = random_inputs(body.graph, rng);
  inputs[0] = changed_at(inputs[0], 0.5, [](int64_t) { return true; });
  inputs[1] =
      changed_at(inputs[1], -std::numeric_limits<double>::infinity(), [](int64_t) { return true; });
  const Tensor results = interpret(build_kernel(body, schedule, "k").value(), inputs).value()[0];
  for (int64_t i = 0; i < results.elements(); ++i) EXPECT_TRUE(std::isnan(results.real_at(i)));
}

// ---- Tensor cores -------------------------------------------------------------------------------

TEST(BlocksChain, TensorCoresMultiplyNumbersOf16Bits) {
  for (DType dtype : {DType::bf16, DType::f16}) {
    const KernelBody body = body_of_all(attention(
        {.heads = 2, .queries = 13, .keys = 40, .width = 24, .is_causal = true, .dtype = dtype}));
    for (const auto& [block, warps] : {std::pair(std::vector<Tile>{{kQueries, 8}}, 4),
                                       {{{kQueries, 16}, {kRow, 32}}, 1},
                                       {{{kHeads, 2}, {kQueries, 4}, {kRow, 8}}, 2}}) {
      const Schedule schedule = in_steps(body, block, warps);
      Rng rng(1);
      check_block_kernel(body, schedule, random_inputs(body.graph, rng));
      const std::vector<BlockStage> stages = block_stages(body, schedule).value();
      const auto products = std::ranges::count_if(stages, [&](const BlockStage& stage) {
        return stage.tiles && stage.tiles->numbers == dtype;
      });
      EXPECT_EQ(products, 2);
    }
  }
}

// Scores, maxima and sums are numbers of f32; weights have the type that the graph gives them.
TEST(BlocksChain, TensorCoresReadWeightsFromMemoryOfTheBlock) {
  const KernelBody body =
      body_of_all(attention({.queries = 32, .keys = 64, .width = 16, .dtype = DType::bf16}));
  const Schedule schedule = in_steps(body, {{kQueries, 16}, {kRow, 32}});
  std::vector<DType> held;
  const std::vector<BlockStage> stages = block_stages(body, schedule).value();
  for (const BlockStage& stage : stages)
    if (stage.held) held.push_back(stage.held->dtype());
  EXPECT_EQ(held, (std::vector{DType::f32, DType::f32, DType::f32, DType::bf16}));
  Rng rng(1);
  check_block_kernel(body, schedule, random_inputs(body.graph, rng));
}

// The n-th place of `from` changed to `to`: found by the verifier, the interpreter or the results.
struct Fault {
  std::string from, to;
  int places;
};
void expect_found(const KernelBody& body, const Schedule& schedule,
                  const std::vector<Fault>& faults) {
  Rng rng(3);
  const std::vector<Tensor> inputs = random_inputs(body.graph, rng);
  const Tensor expected = evaluate(body.graph, inputs, {.numerics = Numerics::rounded}).value()[0];
  const std::string text = print(build_kernel(body, schedule, "k").value());
  for (const Fault& fault : faults)
    for (int n = 0; n < fault.places; ++n) {
      SCOPED_TRACE(fault.from + std::to_string(n));
      const std::string wrong = changed(text, fault.from, fault.to, n);
      ASSERT_FALSE(wrong.empty()) << text;
      const Result<TileProgram> program = parse_tiles(wrong);
      ASSERT_TRUE(program.ok());
      if (!verify(*program).ok()) continue;
      const Result<std::vector<Tensor>> actual = interpret(*program, inputs);
      EXPECT_TRUE(!actual.ok() || !compare((*actual)[0], expected, {})->passed()) << wrong;
    }
}

TEST(BlocksChain, EachPlantedFaultIsFound) {
  const KernelBody body = body_of_all(attention(kCausal));
  expect_found(body, four_queries(body),
               {{"barrier\n", "\n", 4},
                {"by max\n", "by min\n", 1},
                {"< 10", "< 9", 1},
                {"< 10", "< 11", 1}});
}

// A step has three barriers, and so has the rest of the row. One more stands before the results.
TEST(BlocksChain, EachFaultInAStepIsFound) {
  const KernelBody body = body_of_all(attention(kCausal));
  expect_found(body, in_steps(body, {{kQueries, 4}, {kRow, 16}}),
               {{"barrier\n", "\n", 7},
                {"by max\n", "by min\n", 2},
                {"load @scale", "load @largest", 4},
                {"< 10", "< 9", 1}});
}

TEST(BlocksChain, SaysWhatItCannotDo) {
  const KernelBody body = body_of_all(attention(kCausal));
  const auto status = [&](const auto& change) {
    Schedule schedule = four_queries(body);
    change(schedule, schedule.get<BlockChainFields>());
    return check_schedule(body, schedule, any_gpu());
  };
  EXPECT_TRUE(status([](Schedule&, BlockChainFields&) {}).ok());
  EXPECT_THAT(check_schedule(body, four_queries(body), Target{}),
              refuses(ErrorCode::unsupported, "GPU"));
  EXPECT_THAT(status([](Schedule&, BlockChainFields& own) { own.warps = 3; }),
              refuses(ErrorCode::bad_input, "3 warps"));
  EXPECT_THAT(status([](Schedule&, BlockChainFields& own) { own.block[0].count = 3; }),
              refuses(ErrorCode::bad_input, "3 points of dim 3"));
  EXPECT_THAT(status([](Schedule& schedule, BlockChainFields&) { schedule.threads = 2; }),
              refuses(ErrorCode::bad_input, "4 dims"));
  // A block may ask for more memory than the 48 KiB that each one has.
  const auto with_keys = [](int64_t keys) {
    const KernelBody body = body_of_all(attention({.queries = 2, .keys = keys, .width = 4}));
    return check_schedule(body, simplest_block_chain(body).value(), any_gpu());
  };
  EXPECT_TRUE(with_keys(7'000).ok());
  // More is not everywhere where the code runs.
  EXPECT_EQ(any_gpu().gpu->block_shared_bytes, 163 << 10);
  EXPECT_THAT(with_keys(20'000), refuses(ErrorCode::limit, "bytes of memory, more than 101376"));
}

}  // namespace
}  // namespace hone::HONE_FILE
