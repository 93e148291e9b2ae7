#include "kernel/algorithms/block_sums.h"

#include <gtest/gtest.h>

#include "ir/functional.h"
#include "ir/text.h"
#include "kernel/algorithms/block_copy.h"
#include "kernel/schedule_space.h"
#include "program/tiles/calling.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/program/block_programs.h"
#include "tests/program/block_testing.h"

// Blocks that share memory which is read once: sums of many points, and elements that move.

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

KernelBody parsed(const std::string& text) { return body_of_all(parse_graph(text).value()); }

// Reductions of any dims and kind, and products, with something before and after.
Graph random_sums(Rng& rng) {
  if (rng.chance(0.3)) return RandomGemm(rng).graph();
  constexpr DType kTypes[] = {DType::f32, DType::f32, DType::f64, DType::bf16, DType::i32};
  Builder b;
  Value x = b.parameter("x", rng.pick(kTypes),
                        {rng.between(1, 6), rng.between(1, 200), rng.between(1, 50)});
  if (rng.chance(0.3)) x = maximum(x, 0);
  if (rng.chance(0.3)) x = transpose(x, {2, 0, 1});
  Ints axes;
  for (int64_t axis = 0; axis < 3; ++axis)
    if (rng.chance(0.5)) axes.push_back(axis);
  if (axes.empty()) axes = {1};
  Value y = reduce(rng.chance(0.5) ? "sum" : "max", x, axes);
  if (rng.chance(0.3)) y = y + y;
  return b.finish({y}).value();
}

// Transposes, with something before and after, and other operands.
Graph random_copy(Rng& rng) {
  constexpr DType kTypes[] = {DType::f32, DType::f64, DType::bf16, DType::u8};
  Builder b;
  const DType dtype = rng.pick(kTypes);
  Value x = b.parameter("x", dtype, {rng.between(1, 3), rng.between(1, 90), rng.between(1, 90)});
  if (rng.chance(0.3)) x = maximum(x, 1);
  Ints permutation = {0, 2, 1};
  rng.shuffle(permutation);
  Value y = transpose(x, permutation);
  if (rng.chance(0.4)) y = y + b.parameter("z", dtype, y.dims());
  if (rng.chance(0.2)) y = pad(y, {0, 1, 0}, {1, 0, 2});
  return b.finish({y}).value();
}

void check_random(Algorithm algorithm, uint64_t first, uint64_t count) {
  int checked = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    KernelBody body =
        body_of_all(algorithm == Algorithm::block_sums ? random_sums(rng) : random_copy(rng));
    draw_layouts(body, {}, rng);
    Schedule schedule;
    for (int i = 0; i < 60 && schedule.algorithm() != algorithm; ++i)
      schedule = random_schedule(body, any_gpu(), rng);
    if (schedule.algorithm() != algorithm) continue;
    SCOPED_TRACE(print(body.graph));
    check_block_kernel(body, schedule, random_inputs(body.graph, rng));
    if (testing::Test::HasFailure()) return;
    ++checked;
  }
  EXPECT_GT(checked, static_cast<int>(count) / 3);
}

TEST(BlockSums, ComputeWhatTheReferenceDoes) {
  check_random(Algorithm::block_sums, 0, tested::share_of(60, 2));
}
TEST(BlockCopy, ComputesWhatTheReferenceDoes) {
  check_random(Algorithm::block_copy, 0, tested::share_of(60, 2));
}
TEST(BlockSums, DISABLED_SweepSumsAndCopies) {
  check_random(Algorithm::block_sums, 1'000'000, 1'000);
  check_random(Algorithm::block_copy, 1'000'000, 1'000);
}

// ---- Sums ---------------------------------------------------------------------------------------

const std::string kColumns =
    "graph @g(%x: f32[512, 64]) { %y = reduce %x {kind = sum, axes = [0]} return %y }";
const std::string kTranspose =
    "graph @g(%x: f32[96, 64]) { %t = transpose %x {permutation = [1, 0]} %y = exp %t return %y }";

Schedule columns_of(int warps, int splits) {
  return {.order = {0},
          .threads = 1,
          .own = BlockSumsFields{.warps = warps, .columns = 32, .splits = splits}};
}
Schedule copy_by(int warps) {
  return {.order = {0, 1}, .threads = 2, .own = BlockCopyFields{.warps = warps}};
}

SimtCounts counts_of(const KernelBody& body, const Schedule& schedule) {
  Rng rng(1);
  SimtCounts counts;
  const Result<std::vector<Tensor>> results =
      interpret(build_kernel(body, schedule, "k").value(), random_inputs(body.graph, rng),
                {.counts = &counts});
  EXPECT_TRUE(results.ok()) << results.error().to_string();
  return counts;
}

TEST(BlockSums, ThreadsSideBySideHaveColumns) {
  const SimtCounts counts = counts_of(parsed(kColumns), columns_of(4, 1));
  EXPECT_EQ(counts.sectors, counts.least_sectors);
  EXPECT_EQ(counts.global_accesses, 512 * 64 / 32 + 64 / 32);
  EXPECT_EQ(counts.bank_conflicts, 0);
}

TEST(BlockSums, BlocksShareASum) {
  const TileProgram program = build_kernel(parsed(kColumns), columns_of(4, 8), "k").value();
  ASSERT_EQ(program.phases.size(), 2U);
  EXPECT_EQ(program.phases[0].exec, Exec::blocks);
  EXPECT_EQ(program.phases[1].exec, Exec::threads);
}

// A few rows are multiplied by a matrix that is read once: each number of it serves all rows.
TEST(BlockSums, RowsOfAProductShareItsColumns) {
  const KernelBody body = parsed(
      "graph @g(%x: f32[5, 300], %w: f32[300, 70], %b: f32[70]) { "
      "%d = dot %x, %w {lhs_contract = [1], rhs_contract = [0]} "
      "%c = broadcast %b {dims = [5, 70], map = [1]} %y = add %d, %c return %y }");
  for (int splits : {1, 4}) {
    const Schedule schedule = {.order = {0, 1},
                               .threads = 2,
                               .own = BlockSumsFields{.warps = 4, .columns = 32, .splits = splits}};
    Rng rng(1);
    check_block_kernel(body, schedule, random_inputs(body.graph, rng));
    const TileProgram program = build_kernel(body, schedule, "k").value();
    EXPECT_EQ(trips_of(program.phases[0], program), Dim(3 * splits));
    EXPECT_NE(print(program).find("unroll row in 5"), std::string::npos) << print(program);
  }
}

// The same if the points of a sum are neighbours: a block has the sums of all rows with a column.
TEST(BlockSums, RowsOfAProductShareASumOfNeighbours) {
  const KernelBody body = parsed(
      "graph @g(%x: f32[7, 256], %w: f32[5, 256]) { "
      "%y = dot %x, %w {lhs_contract = [1], rhs_contract = [1]} return %y }");
  for (int splits : {1, 2}) {
    const Schedule schedule = {
        .order = {0, 1}, .threads = 2, .own = BlockSumsFields{.warps = 2, .splits = splits}};
    Rng rng(1);
    check_block_kernel(body, schedule, random_inputs(body.graph, rng));
    const TileProgram program = build_kernel(body, schedule, "k").value();
    EXPECT_EQ(trips_of(program.phases[0], program), Dim(5 * splits));
    EXPECT_NE(print(program).find("unroll row in 7"), std::string::npos) << print(program);
  }
}

TEST(BlockCopy, ReadsAndWritesWholeSectors) {
  const SimtCounts counts = counts_of(parsed(kTranspose), copy_by(8));
  EXPECT_EQ(counts.sectors, counts.least_sectors);
  EXPECT_EQ(counts.global_accesses, 2 * 96 * 64 / 32);
  EXPECT_EQ(counts.bank_conflicts, 0);
}

TEST(BlockSums, HaveATextForm) {
  EXPECT_EQ(print(columns_of(4, 2)),
            "{algorithm = block_sums, order = [0], threads = 1, warps = 4, columns = 32, "
            "splits = 2}");
  EXPECT_EQ(print(copy_by(8)), "{algorithm = block_copy, order = [0, 1], threads = 2, warps = 8}");
}

// ---- Planted faults -----------------------------------------------------------------------------

TEST(BlockSums, ABarrierThatIsMissingIsFound) {
  for (const auto& [body, schedule] :
       {std::pair(parsed(kColumns), columns_of(4, 2)), std::pair(parsed(kTranspose), copy_by(4))}) {
    Rng rng(1);
    const std::vector<Tensor> inputs = random_inputs(body.graph, rng);
    const std::string text = print(build_kernel(body, schedule, "k").value());
    const TileProgram program = parse_tiles(changed(text, "barrier\n", "\n")).value();
    ASSERT_TRUE(verify(program).ok());
    EXPECT_THAT(interpret(program, inputs), refuses(ErrorCode::bad_input, "element ... of"));
  }
}

// ---- What is refused ----------------------------------------------------------------------------

TEST(BlockSums, SayWhatTheyCannotDo) {
  const auto status = [](const std::string& text, const Schedule& schedule) {
    return check_schedule(parsed(text), schedule, any_gpu());
  };
  EXPECT_TRUE(status(kColumns, columns_of(4, 2)).ok());
  EXPECT_THAT(status(kColumns, columns_of(3, 2)), refuses(ErrorCode::bad_input, "3 warps"));
  EXPECT_THAT(status(kColumns, columns_of(8, 128)),
              refuses(ErrorCode::bad_input, "1024 parts ... 512"));
  EXPECT_THAT(status("graph @g(%x: f32[7, 64]) { %m = reduce %x {kind = max, axes = [1]} "
                     "%b = broadcast %m {dims = [7, 64], map = [0]} %y = sub %x, %b return %y }",
                     {.order = {0, 1}, .threads = 2, .own = BlockSumsFields{}}),
              refuses(ErrorCode::unsupported, "one sum of its own"));
  EXPECT_TRUE(status(kTranspose, copy_by(4)).ok());
  EXPECT_THAT(status("graph @g(%x: f32[96, 64]) { %y = exp %x return %y }", copy_by(4)),
              refuses(ErrorCode::unsupported, "neighbours along dim 0"));
  EXPECT_THAT(status(kTranspose, copy_by(3)), refuses(ErrorCode::bad_input, "3 warps"));
}

}  // namespace
}  // namespace hone::HONE_FILE
