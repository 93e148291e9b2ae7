#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.h"
#include "tests/base/says_testing.h"
#include "tests/codegen/ptx_facts.h"
#include "tests/program/random_kernels.h"

// Code of products by warpgroups.

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;
using testing::Not;

// Two blocks of two warpgroups multiply 128 rows and 64 columns. The operands of a step are boxes,
// two steps ahead.
std::string product(std::string_view dtype) {
  return fmt::format(R"(tiles @k(@x: {0}[256, 256], @w: {0}[64, 256]) -> (@y: f32[256, 64]) {{
  block swizzled @a: {0}[3, 128, 64]
  block swizzled @b: {0}[3, 64, 64]
  block @full: u64[3]
  own @sums: f32[8, 4]
  blocks i in 2 {{
    threads t in 1 {{
      unroll s in 3 {{ init 1 @full[s] }}
    }}
    barrier
    threads t2 in 256 {{
      %zero = number 0.0: f32
      unroll j in 8 {{ unroll n in 4 {{ store @sums[j, n] = %zero }} }}
    }}
    threads t3 in 1 {{
      unroll s2 in 2 {{
        expect 24576 @full[s2]
        fetch 128 @a[s2, 0] = @x[128*i, 64*s2] along 0 for @full[s2]
        fetch 64 @b[s2, 0] = @w[0, 64*s2] along 0 for @full[s2]
      }}
    }}
    for k in 4 {{
      await @full[mod(k, 3)] phase mod(floordiv(k, 3), 2)
      barrier
      threads t4 in 1 {{
        expect 24576 @full[mod(k + 2, 3)]
        fetch 128 @a[mod(k + 2, 3), 0] = @x[128*i, 64*k + 128] along 0 for @full[mod(k + 2, 3)]
        fetch 64 @b[mod(k + 2, 3), 0] = @w[0, 64*k + 128] along 0 for @full[mod(k + 2, 3)]
      }}
      multiply 64 @sums[], @a[mod(k, 3), 0], @b[mod(k, 3), 0] as {0}
    }}
    await @full[1] phase 1
    await @full[2] phase 1
    threads t6 in 256 {{
      unroll j2 in 8 {{ unroll h in 2 {{ unroll e in 2 {{
        %s = load @sums[j2, 2*h + e]
        store @y[128*i + 16*floordiv(t6, 32) + floordiv(mod(t6, 32), 4) + 8*h,
                 8*j2 + 2*mod(t6, 4) + e] = %s
      }} }} }}
    }}
  }}
}}
)",
                     dtype);
}

TEST(GpuGroups, MultiplyByInstructionsOfHopper) {
  for (std::string_view dtype : {"bf16", "f16"}) {
    const TileProgram program = parse_tiles(product(dtype)).value();
    const GpuKernel kernel = compile_for_gpu(program, 90, "k").value();
    EXPECT_TRUE(kernel.is_exact);
    expect_facts(kernel, program, 90);
    const std::string& ptx = kernel.ptx;
    EXPECT_THAT(ptx, HasSubstr(".target sm_90a\n"));
    EXPECT_THAT(ptx, Not(HasSubstr(".local")));
    EXPECT_THAT(ptx, HasSubstr(".extern .shared .align 1024"));
    EXPECT_EQ(count(ptx, fmt::format("wgmma.mma_async.sync.aligned.m64n64k16.f32.{0}.{0}", dtype)),
              4U);
    EXPECT_EQ(count(ptx, "wgmma.fence.sync.aligned;"), 1U);
    EXPECT_EQ(count(ptx, "wgmma.wait_group.sync.aligned 0;"), 1U);
    EXPECT_EQ(count(ptx, "cp.async.bulk.tensor.2d.shared::cluster.global"), 6U);
    EXPECT_EQ(count(ptx, "mbarrier.init.shared.b64"), 3U);
    EXPECT_EQ(count(ptx, "mbarrier.inval.shared.b64"), 3U);
    EXPECT_EQ(count(ptx, "fence.mbarrier_init.release.cluster"), 3U);
    EXPECT_EQ(count(ptx, "mbarrier.arrive.expect_tx.shared.b64 _, "), 3U);
    EXPECT_EQ(count(ptx, "mbarrier.try_wait.parity.shared.b64"), 3U);
    EXPECT_EQ(count(ptx, "ld.global"), 0U);
    EXPECT_EQ(count(ptx, "bar.sync"), 4U);
  }
}

TEST(GpuGroups, MapsSayWhatBoxesAreCopied) {
  const TileProgram program = parse_tiles(product("bf16")).value();
  const GpuKernel kernel = compile_for_gpu(program, 90, "k").value();
  ASSERT_EQ(kernel.phases.size(), 1U);
  const GpuPhase& phase = kernel.phases[0];
  EXPECT_EQ(phase.block_threads, 256);
  EXPECT_EQ(phase.shared_bytes, 3 * (128 + 64) * 128 + 32);
  const std::vector<GpuMap> maps = {{0, DType::bf16, {256, 256}, {128, 64}},
                                    {1, DType::bf16, {64, 256}, {64, 64}}};
  EXPECT_EQ(phase.maps, maps);
  EXPECT_EQ(count(kernel.ptx, ".param .align 64 .b8 "), 2U);
  EXPECT_GE(count(kernel.ptx, "cvta.param.u64"), 2U);
}

TEST(GpuGroups, AreForOneCapabilityAlone) {
  const TileProgram program = parse_tiles(product("bf16")).value();
  for (int64_t capability : {80, 89, 100})
    EXPECT_THAT(compile_for_gpu(program, capability, "k"),
                tested::refuses(ErrorCode::unsupported, "warpgroups...sm_90 alone"));
  EXPECT_THAT(compile_for_gpu(program, 90, "k", /*has_aligned_buffers=*/false),
              tested::refuses(ErrorCode::unsupported, "begins at any element"));
}

// ---- By the algorithm ---------------------------------------------------------------------------

// A product with a bias; `across`: the reduction is not along the last dim of the second operand.
KernelBody product_of(std::string_view dtype, bool across, int64_t columns = 136) {
  const std::string weights =
      across ? fmt::format("192, {}", columns) : fmt::format("{}, 192", columns);
  return body_of_all(
      parse_graph(fmt::format("graph @g(%x: {0}[200, 192], %w: {0}[{1}], %b: {0}[{2}]) {{ "
                              "%d = dot %x, %w {{lhs_contract = [1], rhs_contract = [{3}]}} "
                              "%c = broadcast %b {{dims = [200, {2}], map = [1]}} "
                              "%y = add %d, %c return %y }}",
                              dtype, weights, columns, across ? 0 : 1))
          .value());
}

GpuKernel kernel_of(const KernelBody& body, const BlockTilesFields& own) {
  const Schedule schedule = {.order = {0, 1}, .threads = 2, .own = own};
  const TileProgram program = build_kernel(body, schedule, "k").value();
  const GpuKernel kernel = compile_for_gpu(program, 90, "k").value();
  expect_facts(kernel, program, 90);
  EXPECT_THAT(kernel.ptx, Not(HasSubstr(".local")));
  return kernel;
}

constexpr BlockTilesFields kGroups = {.rows = 128,
                                      .columns = 128,
                                      .depth = 64,
                                      .products = Products::matrix,
                                      .ahead = 2,
                                      .groups = 1};

TEST(GpuGroups, TilesOfAllSizesStayInRegisters) {
  for (int rows : {64, 128, 256})
    for (int columns : {64, 128, 256}) {
      if (rows == 256 && columns == 256) continue;  // too many sums
      const std::string_view dtype = rows == columns ? "f16" : "bf16";
      SCOPED_TRACE(fmt::format("{} {} {}", dtype, rows, columns));
      BlockTilesFields own = kGroups;
      own.rows = rows;
      own.columns = columns;
      const GpuKernel kernel = kernel_of(product_of(dtype, false), own);
      EXPECT_THAT(kernel.ptx, HasSubstr(fmt::format("m64n{}k16.f32.{}", columns, dtype)));
      const GpuPhase& phase = kernel.phases.at(0);
      EXPECT_EQ(phase.block_threads, 2 * rows);
      const DType type = *dtype_from_name(dtype);
      const std::vector<GpuMap> maps = {{0, type, {200, 192}, {rows, 64}},
                                        {1, type, {136, 192}, {columns, 64}}};
      EXPECT_EQ(phase.maps, maps);
      EXPECT_EQ(count(kernel.ptx, "cp.async.bulk.tensor.2d"), 2U * 3);  // two ahead, and the loop
      EXPECT_EQ(count(kernel.ptx, "fence.proxy.async"), 0U);
    }
}

// Two boxes of 64 columns; the next 64 are 8,192 bytes away, the next 16 points 2,048.
TEST(GpuGroups, OperandsMayLieAcross) {
  const GpuKernel kernel = kernel_of(product_of("bf16", true), kGroups);
  const std::vector<GpuMap> maps = {{0, DType::bf16, {200, 192}, {128, 64}},
                                    {1, DType::bf16, {192, 136}, {64, 64}}};
  EXPECT_EQ(kernel.phases[0].maps, maps);
  EXPECT_EQ(count(kernel.ptx, "cp.async.bulk.tensor.2d"), 3U * 3);
  EXPECT_EQ(count(kernel.ptx, ", a, b, 1, 1, 1, 0, 1;"), 4U);
  EXPECT_EQ(count(kernel.ptx, "add.s64 a, a, 2;"), 3U);
  EXPECT_EQ(count(kernel.ptx, "add.s64 b, b, 128;"), 3U);
  const int64_t descriptor = (int64_t{1} << 62) + (int64_t{64} << 32) + (512 << 16);
  EXPECT_THAT(kernel.ptx, HasSubstr(fmt::format("{};", descriptor)));
}

// Numbers of f32 have instructions of half as many, and none for operands across.
TEST(GpuGroups, MultiplyTf32) {
  for (bool across : {false, true}) {
    SCOPED_TRACE(across);
    const KernelBody body = body_of_all(
        parse_graph(fmt::format("graph @g(%x: f32[200, 192], %w: f32[{}]) {{ %y = dot %x, %w "
                                "{{lhs_contract = [1], rhs_contract = [{}], parts = 1}} "
                                "return %y }}",
                                across ? "192, 136" : "136, 192", across ? 0 : 1))
            .value());
    BlockTilesFields own = kGroups;
    own.depth = 32;
    const GpuKernel kernel = kernel_of(body, own);
    EXPECT_TRUE(kernel.is_exact);
    EXPECT_EQ(count(kernel.ptx, "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32"), 4U);
    EXPECT_EQ(count(kernel.ptx, ", a, b, 1, 1, 1;"), 4U);
    EXPECT_EQ(count(kernel.ptx, "add.s64 b, b, 2;"), 3U);
    std::vector<GpuMap> maps = {{0, DType::f32, {200, 192}, {128, 32}}};
    if (!across) maps.push_back({1, DType::f32, {136, 192}, {128, 32}});
    EXPECT_EQ(kernel.phases[0].maps, maps);
    EXPECT_EQ(count(kernel.ptx, "fence.proxy.async"), across ? 1U : 0U);
  }
}

// Rows of 137 numbers begin anywhere.
TEST(GpuGroups, OperandsThatAreNoBoxesAreStoredByThreads) {
  const GpuKernel kernel = kernel_of(product_of("bf16", true, 137), kGroups);
  EXPECT_EQ(kernel.phases[0].maps.size(), 1U);
  EXPECT_THAT(kernel.ptx, HasSubstr("fence.proxy.async.shared::cta"));
  EXPECT_THAT(kernel.ptx, HasSubstr("wgmma.mma_async"));
}

// Stages, parts of the reduction, and steps that blocks share.
TEST(GpuGroups, BlocksTakePartsAndShareSteps) {
  for (int ahead : {0, 3})
    for (const auto& [splits, shares] : {std::pair(1, 0), {2, 0}, {1, 3}}) {
      SCOPED_TRACE(fmt::format("{} {} {}", ahead, splits, shares));
      BlockTilesFields own = kGroups;
      own.ahead = ahead;
      own.splits = splits;
      own.shares = shares;
      const GpuKernel kernel = kernel_of(product_of("bf16", false), own);
      EXPECT_EQ(kernel.phases.size(), splits + shares > 1 ? 2U : 1U);
      for (size_t i = 0; i < kernel.phases.size(); ++i)
        EXPECT_EQ(kernel.phases[i].maps.size(), i == 0 ? 2U : 0U);
    }
}

// A place that a thread reads is where boxes and products have it: pieces of 16 bytes, by an
// exclusive or with the row.
TEST(GpuGroups, ThreadsReachSwizzledMemory) {
  const TileProgram program =
      parse_tiles(
          "tiles @k(@x: f32[2, 64, 32]) -> (@y: f32[2, 64, 32]) { block swizzled @a: f32[64, 32] "
          "blocks i in 2 { threads t in 64 { for c in 32 { %x = load @x[i, t, c] "
          "store @a[t, c] = %x } } fence barrier threads u in 64 { for d in 32 { "
          "%v = load @a[63 - u, d] store @y[i, u, d] = %v } } } }")
          .value();
  const GpuKernel kernel = compile_for_gpu(program, 90, "k").value();
  expect_facts(kernel, program, 90);
  EXPECT_THAT(kernel.ptx, HasSubstr("fence.proxy.async.shared::cta;"));
  EXPECT_GE(count(kernel.ptx, "xor.b"), 2U);
}

}  // namespace
}  // namespace hone::HONE_FILE
