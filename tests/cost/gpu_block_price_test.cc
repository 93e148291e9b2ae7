#include "cost/gpu_block_price.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "target/gpu_presets.h"
#include "tests/program/random_kernels.h"

namespace hone::HONE_FILE {
namespace {

// Parts of sums have the type of sums: twice as many bytes are written and read of f64.
TEST(GpuBlockPrice, PartsOfSumsHaveTheBytesOfTheirType) {
  const Target gpu = *preset_gpu("sm_90");
  // Seconds of accesses that two more parts of the reduction add. Accesses to the operands are the
  // same, as no step is added.
  const auto added = [&](std::string_view dtype) {
    const KernelFacts facts(body_of_all(
        parse_graph(fmt::format("graph @g(%x: {0}[64, 1024], %w: {0}[64, 1024]) {{ %y = dot %x, %w "
                                "{{lhs_contract = [1], rhs_contract = [1]}} return %y }}",
                                dtype))
            .value()));
    const auto access = [&](int splits) {
      const Schedule schedule = {.order = {0, 1},
                                 .threads = 2,
                                 .own = BlockTilesFields{.rows = 32,
                                                         .columns = 32,
                                                         .depth = 16,
                                                         .own_rows = 4,
                                                         .own_columns = 2,
                                                         .splits = splits}};
      return block_tiles_times(facts, schedule, gpu).access;
    };
    return access(4) - access(2);
  };
  // Each of the 64 * 64 sums of a part is written once, and read once.
  const double bytes = gpu.caches.back().bytes_per_second * static_cast<double>(gpu.cores);
  EXPECT_NEAR(added("f32") * bytes, 2.0 * 64 * 64 * 2 * 4, 1);
  EXPECT_NEAR(added("f64") * bytes, 2.0 * 64 * 64 * 2 * 8, 1);
  EXPECT_NEAR(added("bf16") * bytes, 2.0 * 64 * 64 * 2 * 4, 1);
}

// 150 tiles are two turns of 132 processors; shares of their steps are one and a bit.
TEST(GpuBlockPrice, SharesOfUnevenTilesCostLess) {
  const Target gpu = *preset_gpu("sm_90");
  const auto times = [&](int64_t rows, int shares) {
    const KernelFacts facts(body_of_all(
        parse_graph(fmt::format("graph @g(%x: f32[{}, 4096], %w: f32[640, 4096]) {{ %y = dot %x, "
                                "%w {{lhs_contract = [1], rhs_contract = [1]}} return %y }}",
                                rows))
            .value()));
    const Schedule schedule = {.order = {0, 1},
                               .threads = 2,
                               .own = BlockTilesFields{.rows = 128,
                                                       .columns = 64,
                                                       .depth = 16,
                                                       .own_rows = 8,
                                                       .own_columns = 4,
                                                       .ahead = 1,
                                                       .shares = shares}};
    return block_tiles_times(facts, schedule, gpu);
  };
  const GpuTimes apart = times(15 * 128, 0), shared = times(15 * 128, 132);
  EXPECT_LT(shared.arithmetic, 0.65 * apart.arithmetic);
  EXPECT_GT(shared.access, apart.access);  // of parts, at the ends of shares
  // 130 tiles give all processors but two one: shares gain little.
  EXPECT_GT(times(13 * 128, 132).arithmetic, 0.95 * times(13 * 128, 0).arithmetic);
}

// Products of that shape took this on an H200, in microseconds: a step of 64 points, and what a
// block takes beside its steps.
TEST(GpuBlockPrice, WarpgroupsTakeAsLongAsProductsLikeTheirsDid) {
  struct Measured {
    int columns;
    double step, ends;
  };
  const Target gpu = *preset_gpu("sm_90");
  for (const Measured& tile : {Measured{256, .569, 6.9}, {128, .300, 4.9}, {64, .236, 3.8}}) {
    const auto microseconds = [&](int64_t steps) {
      const KernelFacts facts(body_of_all(
          parse_graph(
              fmt::format("graph @g(%x: bf16[128, {0}], %w: bf16[{1}, {0}]) {{ %y = dot %x, "
                          "%w {{lhs_contract = [1], rhs_contract = [1]}} return %y }}",
                          64 * steps, tile.columns))
              .value()));
      const Schedule schedule = {.order = {0, 1},
                                 .threads = 2,
                                 .own = BlockTilesFields{.rows = 128,
                                                         .columns = tile.columns,
                                                         .depth = 64,
                                                         .products = Products::matrix,
                                                         .ahead = 3,
                                                         .groups = 1}};
      return 1e6 * block_tiles_times(facts, schedule, gpu).arithmetic;
    };
    const double step = (microseconds(128) - microseconds(64)) / 64;
    EXPECT_NEAR(step, tile.step, 0.2 * tile.step);
    EXPECT_NEAR(microseconds(64) - 64 * step, tile.ends, 0.1 * tile.ends);
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
