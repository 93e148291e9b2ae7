#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "ir/text.h"
#include "kernel/algorithms/block_chain.h"
#include "program/tiles/interpret.h"
#include "program/tiles/serial.h"
#include "program/tiles/simt.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/codegen/native.h"
#include "tests/codegen/ptx_facts.h"
#include "tests/program/block_attention.h"
#include "tests/program/block_programs.h"
#include "tests/program/block_testing.h"
#include "tests/program/kernel_testing.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(GpuBlocks, RowsStayInRegistersAndWarpsExchangeThem) {
  const TileProgram program = parse_tiles(kBlockSoftmax).value();
  for (int64_t capability : {80, 90}) {
    const GpuKernel kernel = compile_for_gpu(program, capability, "k").value();
    expect_facts(kernel, program, capability);
    const GpuPhase& phase = kernel.phases[0];
    EXPECT_EQ(phase.trip_of, TripOf::block);
    EXPECT_EQ(phase.block_threads, 128);
    EXPECT_EQ(phase.shared_bytes, 32);
    EXPECT_THAT(kernel.ptx, Not(HasSubstr(".local")));
    EXPECT_THAT(kernel.ptx, HasSubstr(".extern .shared"));
    EXPECT_THAT(kernel.ptx, HasSubstr("ld.shared.v4.f32"));
    EXPECT_EQ(count(kernel.ptx, "shfl.sync.bfly"), 10U);  // two combinations of five steps
    EXPECT_EQ(count(kernel.ptx, "bar.sync"), 3U);         // and one at the end of a row
    // Code for sm_90 may begin before others have written them.
    EXPECT_EQ(count(kernel.ptx, capability == 80 ? "ld.global.nc.f32" : "ld.global.f32"), 8U);
  }
}

TEST(GpuBlocks, TilesLieInTheMemoryOfABlock) {
  const TileProgram program = parse_tiles(kBlockProduct).value();
  const GpuKernel kernel = compile_for_gpu(program, 80, "k").value();
  expect_facts(kernel, program, 80);
  EXPECT_EQ(kernel.phases[0].block_threads, 256);
  EXPECT_EQ(kernel.phases[0].shared_bytes, 16 * 17 * 4 + 16 * 16 * 4);
  EXPECT_THAT(kernel.ptx, Not(HasSubstr(".local")));
  EXPECT_EQ(count(kernel.ptx, "bar.sync"), 3U);
  EXPECT_EQ(count(kernel.ptx, "st.shared"), 2U);
}

// Types of all widths go from lane to lane.
TEST(GpuBlocks, LanesExchangeNumbersOfAnyType) {
  for (std::string_view type : {"f64", "f32", "f16", "bf16", "i64", "i32", "i16", "u8"}) {
    const TileProgram program =
        parse_tiles(fmt::format("tiles @k(@x: {0}[4, 64]) -> (@y: {0}[4, 64]) {{ own @o: {0}[] "
                                "blocks i in 4 {{ threads t in 64 {{ %x = load @x[i, t] "
                                "store @o[] = %x }} combine @o[] by max threads u in 64 {{ "
                                "%m = load @o[] store @y[i, u] = %m }} }} }}",
                                type))
            .value();
    expect_compiles(program, 80);
    const GpuKernel kernel = compile_for_gpu(program, 80, "k").value();
    EXPECT_EQ(count(kernel.ptx, "shfl.sync.bfly"), type.ends_with("64") ? 10U : 5U) << type;
  }
}

// ---- By algorithms ------------------------------------------------------------------------------

KernelBody body_of_text(const std::string& text) { return body_of_all(parse_graph(text).value()); }

GpuKernel compiled(const TileProgram& program, int64_t capability) {
  const GpuKernel kernel = compile_for_gpu(program, capability, "k").value();
  expect_facts(kernel, program, capability);
  return kernel;
}

TEST(GpuBlocks, ARowThatIsKeptIsReadOnce) {
  const KernelBody body = body_of_text(
      "graph @g(%x: f32[30, 1024]) { %m = reduce %x {kind = max, axes = [1]} "
      "%b = broadcast %m {dims = [30, 1024], map = [0]} %d = sub %x, %b %e = exp %d "
      "%s = reduce %e {kind = sum, axes = [1]} "
      "%c = broadcast %s {dims = [30, 1024], map = [0]} %y = div %e, %c return %y }");
  const Schedule schedule = {
      .order = {0, 1}, .threads = 1, .own = BlockRowsFields{.warps = 4, .kept = 1}};
  const GpuKernel kernel = compiled(build_kernel(body, schedule, "k").value(), 80);
  EXPECT_EQ(kernel.phases[0].block_threads, 128);
  EXPECT_THAT(kernel.ptx, Not(HasSubstr(".local")));
  EXPECT_EQ(count(kernel.ptx, "ld.global.nc.f32"), 8U);
  EXPECT_EQ(count(kernel.ptx, "shfl.sync.bfly"), 10U);
  EXPECT_EQ(count(kernel.ptx, "bar.sync"), 3U);
}

KernelBody product_of(std::string_view dtype, bool flushes = false) {
  return body_of_text(
      fmt::format("graph @g(%x: {0}[200, 96], %w: {0}[96, 136], %b: {0}[136]) {{ "
                  "%d = dot %x, %w {{lhs_contract = [1], rhs_contract = [0], flush = {1}}} "
                  "%c = broadcast %b {{dims = [200, 136], map = [1]}} %y = add %d, %c return %y }}",
                  dtype, flushes));
}

TEST(GpuBlocks, SumsOfATileStayInRegisters) {
  const Schedule schedule = {
      .order = {0, 1},
      .threads = 2,
      .own = BlockTilesFields{
          .rows = 64, .columns = 64, .depth = 16, .own_rows = 4, .own_columns = 4, .ahead = 2}};
  for (int64_t capability : {80, 90}) {
    const GpuKernel kernel =
        compiled(build_kernel(product_of("f32"), schedule, "k").value(), capability);
    EXPECT_THAT(kernel.ptx, Not(HasSubstr(".local")));
    EXPECT_EQ(kernel.phases[0].shared_bytes, 3 * 2 * 16 * 68 * 4);
    EXPECT_THAT(kernel.ptx, HasSubstr("cp.async.ca.shared.global"));  // rows lie across
    EXPECT_THAT(kernel.ptx, HasSubstr("cp.async.cg.shared.global"));
    EXPECT_THAT(kernel.ptx, HasSubstr("cp.async.commit_group"));
    EXPECT_THAT(kernel.ptx, HasSubstr("cp.async.wait_group"));
    EXPECT_EQ(count(kernel.ptx, "fma.rn.f32") % 16, 0U);
  }
}

TEST(GpuBlocks, WarpsMultiplyOnTensorCores) {
  const Schedule schedule = {.order = {0, 1},
                             .threads = 2,
                             .own = BlockTilesFields{.rows = 64,
                                                     .columns = 64,
                                                     .depth = 16,
                                                     .own_rows = 32,
                                                     .own_columns = 32,
                                                     .products = Products::matrix,
                                                     .ahead = 1}};
  for (const auto& [dtype, name] :
       {std::pair("bf16", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
        std::pair("f16", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")}) {
    const GpuKernel kernel = compiled(build_kernel(product_of(dtype), schedule, "k").value(), 80);
    EXPECT_THAT(kernel.ptx, Not(HasSubstr(".local")));
    EXPECT_EQ(count(kernel.ptx, name), 8U);
    EXPECT_EQ(count(kernel.ptx, "ldmatrix.sync.aligned.m8n8.x4.shared.b16"), 4U);
    EXPECT_THAT(kernel.ptx, Not(HasSubstr("ld.shared")));  // factors come as matrices
  }
}

TEST(GpuBlocks, PartsOfAReductionAreAddedByASecondKernel) {
  const Schedule schedule = {.order = {0, 1},
                             .threads = 2,
                             .own = BlockTilesFields{.rows = 64,
                                                     .columns = 64,
                                                     .depth = 16,
                                                     .own_rows = 4,
                                                     .own_columns = 4,
                                                     .ahead = 1,
                                                     .splits = 4}};
  const GpuKernel kernel = compiled(build_kernel(product_of("f32"), schedule, "k").value(), 80);
  ASSERT_EQ(kernel.phases.size(), 2U);
  EXPECT_EQ(kernel.phases[0].trip_of, TripOf::block);
  EXPECT_EQ(kernel.phases[1].trip_of, TripOf::thread);
  EXPECT_EQ(kernel.phases[1].shared_bytes, 0);
}

TEST(GpuBlocks, BlocksShareTheStepsOfAllTiles) {
  for (const auto& [dtype, products] :
       {std::pair("f32", Products::plain), std::pair("bf16", Products::matrix)}) {
    const bool by_warps = products == Products::matrix;
    const Schedule schedule = {.order = {0, 1},
                               .threads = 2,
                               .own = BlockTilesFields{.rows = 64,
                                                       .columns = 64,
                                                       .depth = 16,
                                                       .own_rows = by_warps ? 32 : 4,
                                                       .own_columns = by_warps ? 32 : 4,
                                                       .products = products,
                                                       .ahead = 2,
                                                       .shares = 7}};
    const TileProgram program = build_kernel(product_of(dtype), schedule, "k").value();
    for (int64_t capability : {80, 90}) {
      const GpuKernel kernel = compiled(program, capability);
      ASSERT_EQ(kernel.phases.size(), 2U);
      EXPECT_EQ(kernel.phases[0].trip_of, TripOf::block);
      EXPECT_EQ(trips_of(program.phases[0], program).value(), 7);
      EXPECT_THAT(kernel.ptx, Not(HasSubstr(".local")));
      EXPECT_THAT(kernel.ptx, HasSubstr("cp.async.wait_group"));
    }
  }
}

TEST(GpuBlocks, AttentionIsOneKernel) {
  const KernelBody body = body_of_text(
      "graph @g(%q: f32[2, 50, 16], %k: f32[2, 50, 16], %v: f32[2, 50, 16]) { "
      "%s = dot %q, %k {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2]} "
      "%m = reduce %s {kind = max, axes = [2]} %b = broadcast %m {dims = [2, 50, 50], map = [0, "
      "1]} "
      "%d = sub %s, %b %e = exp %d %t = reduce %e {kind = sum, axes = [2]} "
      "%c = broadcast %t {dims = [2, 50, 50], map = [0, 1]} %p = div %e, %c "
      "%y = dot %p, %v {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]} "
      "return %y }");
  const Schedule schedule = {
      .order = {0, 1}, .threads = 2, .own = BlockChainFields{.block = {{1, 8}}, .warps = 4}};
  const TileProgram program = build_kernel(body, schedule, "k").value();
  for (int64_t capability : {80, 90}) {
    const GpuKernel kernel = compiled(program, capability);
    ASSERT_EQ(kernel.phases.size(), 1U);
    EXPECT_EQ(kernel.phases[0].block_threads, 128);
    EXPECT_EQ(kernel.phases[0].shared_bytes, (8 * 50 + 8 + 8 + 8 * 50) * 4);
    EXPECT_THAT(kernel.ptx, Not(HasSubstr(".local")));
    EXPECT_EQ(count(kernel.ptx, "shfl.sync.bfly"), 10U);
  }
}

// An attention of 16-bit numbers in steps of its keys: sums stay in registers.
TEST(GpuBlocks, ChainsMultiplyOnTensorCoresStepByStep) {
  for (DType dtype : {DType::bf16, DType::f16}) {
    const KernelBody body = body_of_all(attention(
        {.groups = 2, .queries = 64, .keys = 200, .width = 64, .is_causal = true, .dtype = dtype}));
    Schedule schedule = simplest_block_chain(body).value();
    schedule.own = BlockChainFields{.block = {{3, 64}, {5, 64}}, .warps = 4};
    const TileProgram program = build_kernel(body, schedule, "k").value();
    for (int64_t capability : {80, 90}) {
      const GpuKernel kernel = compiled(program, capability);
      ASSERT_EQ(kernel.phases.size(), 1U);
      EXPECT_THAT(kernel.ptx, Not(HasSubstr(".local")));
      EXPECT_THAT(kernel.ptx, HasSubstr(dtype == DType::bf16 ? "m16n8k16.row.col.f32.bf16.bf16.f32"
                                                             : "m16n8k16.row.col.f32.f16.f16.f32"));
    }
  }
}

TEST(GpuBlocks, WarpsMultiplyF32AsParts) {
  const Schedule schedule = {.order = {0, 1},
                             .threads = 2,
                             .own = BlockTilesFields{.rows = 64,
                                                     .columns = 64,
                                                     .depth = 16,
                                                     .own_rows = 32,
                                                     .own_columns = 32,
                                                     .products = Products::matrix,
                                                     .ahead = 0}};
  const GpuKernel kernel =
      compiled(build_kernel(product_of("f32", true), schedule, "k").value(), 80);
  EXPECT_THAT(kernel.ptx, Not(HasSubstr(".local")));
  EXPECT_EQ(count(kernel.ptx, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"), 6 * 8U);
  EXPECT_EQ(kernel.phases[0].shared_bytes, 2 * 3 * 64 * 16 * 2);
}

TEST(GpuBlocks, WarpsMultiplyF32OfFewerBits) {
  const TileProgram program =
      parse_tiles(
          "tiles @k(@x: u32[32, 6]) -> (@y: f32[32, 4]) { own @l: u32[4] own @r: u32[2] "
          "own @s: f32[4] blocks i in 1 { threads t in 32 { %zero = number 0.0: f32 "
          "unroll k in 4 { %l = load @x[t, k] store @l[k] = %l store @s[k] = %zero } "
          "unroll k in 2 { %r = load @x[t, 4 + k] store @r[k] = %r } } "
          "multiply @s[], @l[], @r[] as f32 "
          "threads t in 32 { unroll k in 4 { %s = load @s[k] store @y[t, k] = %s } } } }")
          .value();
  EXPECT_THAT(compiled(program, 80).ptx,
              HasSubstr("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"));
}

// Random kernels by all algorithms of blocks become PTX, and the second oracle computes them. Every
// second seed draws an attention.
void check_blocks(uint64_t first, uint64_t count) {
  const Target host = host_target().value();
  int checked = 0, chains = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const bool is_attention = seed % 2 == 1;
    KernelBody body =
        body_of_all(is_attention ? attention(random_attention(rng)) : RandomGemm(rng).graph());
    draw_layouts(body, {}, rng);
    Schedule schedule = random_schedule(body, any_gpu(), rng);
    for (int i = 0; i < 60 && is_attention && schedule.algorithm() != Algorithm::block_chain; ++i)
      schedule = random_schedule(body, any_gpu(), rng);
    const bool is_chain = schedule.algorithm() == Algorithm::block_chain;
    if (schedule.algorithm() != Algorithm::block_rows &&
        schedule.algorithm() != Algorithm::block_tiles && !is_chain)
      continue;
    SCOPED_TRACE(print(schedule));
    const TileProgram program = build_kernel(body, schedule, "k").value();
    expect_compiles(program, seed % 4 < 2 ? 80 : 90);
    const std::vector<Tensor> memory = memory_of(body, random_inputs(body.graph, rng));
    expect_close(run_native(serial_form(simt_form(program)), memory, host, 2).value(),
                 interpret(program, memory).value(), 16);
    if (testing::Test::HasFailure()) return;
    ++checked;
    chains += is_chain ? 1 : 0;
  }
  EXPECT_GT(chains, 0);
  EXPECT_GT(checked, chains);
}

TEST(GpuBlocks, RandomKernelsHaveCode) { check_blocks(0, tested::share_of(12, 2)); }
TEST(GpuBlocks, DISABLED_SweepKernels) { check_blocks(1'000'000, 2'000); }

// Ops with an order, sums and copies: PTX for each, and a CPU that takes threads in turns has what
// the interpreter has.
TEST(GpuBlocks, SharedWorkHasCode) {
  const Target host = host_target().value();
  const std::pair<std::string, Schedule> cases[] = {
      {"graph @g(%x: f32[2, 500]) { %y = cumulative %x {kind = sum, axis = 1} return %y }",
       {.own = BlockScanFields{.warps = 2, .points = 2, .parts = 2}}},
      {"graph @g(%x: bf16[100, 40]) { %y = cumulative %x {kind = max, axis = 0} return %y }",
       {.own = BlockScanFields{.warps = 4, .points = 2, .parts = 2}}},
      {"graph @g(%x: bf16[300], %p: i64[300]) { %y, %q = sort %x, %p {axis = 0} return %y, %q }",
       {.own = BlockSortFields{.warps = 2, .pairs = 1}}},
      {"graph @g(%x: f32[300], %p: i64[300]) { %y, %q = sort %x, %p {axis = 0, first = 20} "
       "return %y, %q }",
       {.own = BlockSortFields{.warps = 2, .pairs = 1}}},
      {"graph @g(%x: f32[50, 3], %i: i32[300, 1], %u: f32[300, 3]) { %y = scatter %x, %i, %u "
       "{window_dims = [1], inserted_dims = [0], index_map = [0], index_vector_dim = 1, "
       "combine = add} return %y }",
       {.own = BlockScatterFields{.warps = 1, .pairs = 2}}},
      {"graph @g(%x: f32[50], %i: i64[90, 1], %u: f32[4, 90]) { %y = scatter %x, %i, %u "
       "{window_dims = [0], inserted_dims = [], index_map = [0], index_vector_dim = 1, "
       "combine = mul} return %y }",
       {.own = BlockScatterFields{.warps = 1, .pairs = 2}}},
      {"graph @g(%x: f32[512, 70]) { %y = reduce %x {kind = sum, axes = [0]} return %y }",
       {.order = {0},
        .threads = 1,
        .own = BlockSumsFields{.warps = 4, .columns = 32, .splits = 4}}},
      {"graph @g(%x: f32[5, 300], %w: f32[300, 70]) { %y = dot %x, %w {lhs_contract = [1], "
       "rhs_contract = [0]} return %y }",
       {.order = {0, 1},
        .threads = 2,
        .own = BlockSumsFields{.warps = 4, .columns = 32, .splits = 2}}},
      {"graph @g(%x: f32[1, 16, 10, 10], %w: f32[20, 16, 3, 3]) { %y = conv %x, %w "
       "{winograd = 4} return %y }",
       {.order = {0, 1, 2, 3},
        .threads = 4,
        .own = BlockWinogradFields{.points = 4,
                                   .stages = {{.order = {0, 1, 2, 3},
                                               .threads = 4,
                                               .own = BlockTilesFields{.rows = 16,
                                                                       .columns = 32,
                                                                       .depth = 16,
                                                                       .own_rows = 16,
                                                                       .own_columns = 16,
                                                                       .products = Products::matrix,
                                                                       .ahead = 1}}}}}},
      {"graph @g(%x: f32[50, 70]) { %t = transpose %x {permutation = [1, 0]} %y = exp %t "
       "return %y }",
       {.order = {0, 1}, .threads = 2, .own = BlockCopyFields{.warps = 8}}}};
  for (const auto& [text, schedule] : cases) {
    SCOPED_TRACE(print(schedule));
    const KernelBody body = body_of_text(text);
    ASSERT_TRUE(check_schedule(body, schedule, any_gpu()).ok());
    const TileProgram program = build_kernel(body, schedule, "k").value();
    for (int64_t capability : {80, 90}) {
      const GpuKernel kernel = compiled(program, capability);
      EXPECT_THAT(kernel.ptx, Not(HasSubstr(".local")));
    }
    Rng rng(1);
    std::vector<Tensor> memory = memory_of(body, random_inputs(body.graph, rng));
    if (const std::optional<PreparedInput> prepared = prepared_input(body, schedule))
      memory[prepared->parameter] = prepared->value(memory[prepared->parameter]);
    expect_close(run_native(serial_form(simt_form(program)), memory, host, 2).value(),
                 interpret(program, memory).value(), 16);
  }
}

// The second oracle has the bits of the interpreter.
TEST(GpuBlocks, ACpuTakesThreadsInTurns) {
  const TileProgram program = parse_tiles(kBlockProduct).value();
  Rng rng(1);
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < 2; ++i) {
    std::vector<int64_t> integers(static_cast<size_t>(program.buffers[i].type.static_elements()));
    for (int64_t& one : integers) one = rng.between(-1'000'000, 1'000'000);
    inputs.push_back(Tensor::from_integers(program.buffers[i].type, integers));
  }
  const Target host = host_target().value();
  const TileProgram serial = serial_form(simt_form(program));
  EXPECT_EQ(compile_like_gpu(program, host, "kernel").value(),
            compile_tiles(serial, host, "kernel").value());
  const std::vector<Tensor> actual = run_native(serial, inputs, host, 3).value();
  EXPECT_TRUE(std::ranges::equal(actual[0].bytes(), interpret(program, inputs).value()[0].bytes()));
  EXPECT_THAT(compile_tiles(program, host, "kernel"),
              tested::refuses(ErrorCode::unsupported, "blocks ... CPU"));
}

TEST(GpuBlocks, RowsOnACpuAreCloseToTheInterpreter) {
  const TileProgram program = parse_tiles(kBlockSoftmax).value();
  Rng rng(1);
  std::vector<double> reals(3000);
  for (double& one : reals) one = rng.uniform(-3, 3);
  const std::vector<Tensor> inputs = {Tensor::from_reals(program.buffers[0].type, reals)};
  const TileProgram serial = serial_form(simt_form(program));
  expect_close(run_native(serial, inputs, host_target().value(), 2).value(),
               interpret(program, inputs).value());
}

}  // namespace
}  // namespace hone::HONE_FILE
