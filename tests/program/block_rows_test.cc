#include "kernel/algorithms/block_rows.h"

#include <gtest/gtest.h>

#include "ir/functional.h"
#include "ir/text.h"
#include "kernel/schedule_space.h"
#include "program/tiles/calling.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/program/block_programs.h"
#include "tests/program/block_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;
using tested::says;

// Something that rows of one or two dims share: softmax, norms, reductions, products with a vector.
class RandomRows {
 public:
  explicit RandomRows(Rng& rng) : rng_(rng) {}

  Graph graph() {
    constexpr DType kTypes[] = {DType::f32, DType::f32, DType::f64, DType::f16, DType::bf16};
    const bool has_two = rng_.chance(0.25);
    const int64_t longest = has_two ? 20 : rng_.chance(0.3) ? 300 : 70;
    const DType dtype = rng_.pick(kTypes);
    x_ = b_.parameter("x", dtype,
                      {rng_.between(1, 3), rng_.between(1, 5), rng_.between(1, longest)});
    if (rng_.chance(0.3)) x_ = maximum(x_, 0);
    if (rng_.chance(0.2)) x_ = transpose(x_, {1, 0, 2});
    axes_ = has_two ? Ints{1, 2} : Ints{2};
    switch (rng_.below(5)) {
      case 0: return b_.finish({softmax()}).value();
      case 1: return b_.finish({norm()}).value();
      case 2: return b_.finish({dotted(), reduce("max", x_, {2})}).value();
      case 3: return b_.finish({reduce("max", x_, axes_) - reduce("sum", x_, axes_)}).value();
      default: return b_.finish({dotted()}).value();
    }
  }

 private:
  Value all(Value of_row) {
    Ints map;
    for (int i = 0; i < of_row.rank(); ++i) map.push_back(i);
    return broadcast(of_row, x_.dims(), map);
  }
  Value softmax() {
    const Value e = exp(x_ - all(reduce("max", x_, axes_)));
    return e / all(reduce("sum", e, axes_));
  }
  Value norm() {
    const Value centered = x_ - all(reduce("sum", x_, axes_) * 0.1);
    const Value variance = reduce("sum", centered * centered, axes_);
    const Value scale = b_.parameter("w", x_.dtype(), {x_.dim(2)});
    return centered * all(rsqrt(variance + 0.5)) * broadcast(scale, x_.dims(), {2});
  }
  Value dotted() {
    const Value w = b_.parameter("v", x_.dtype(), {x_.dim(2)});
    return b_.op(Opcode::dot, {x_, w}, {{"lhs_contract", Ints{2}}, {"rhs_contract", Ints{0}}});
  }

  Rng& rng_;
  Builder b_;
  Value x_;
  Ints axes_;
};

void check_random(uint64_t first, uint64_t count) {
  int checked = 0, kept = 0, several = 0, blocks = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    KernelBody body = body_of_all(RandomRows(rng).graph());
    draw_layouts(body, {}, rng);
    donate_some(body, rng);
    Schedule schedule;
    for (int i = 0; i < 40 && schedule.algorithm() != Algorithm::block_rows; ++i)
      schedule = random_schedule(body, any_gpu(), rng);
    if (schedule.algorithm() != Algorithm::block_rows) continue;
    SCOPED_TRACE(print(body.graph));
    check_block_kernel(body, schedule, random_inputs(body.graph, rng));
    if (testing::Test::HasFailure()) return;
    ++checked;
    kept += schedule.get<BlockRowsFields>().kept;
    several += schedule.get<BlockRowsFields>().warps > 1 ? 1 : 0;
    blocks += schedule.threads > 0 ? 1 : 0;
  }
  EXPECT_GT(checked, static_cast<int>(count) / 2);
  EXPECT_GT(kept, checked / 20);
  EXPECT_GT(several, checked / 3);
  EXPECT_GT(blocks, checked / 3);
}

TEST(BlocksRows, ComputeWhatTheReferenceDoes) { check_random(0, tested::share_of(60, 2)); }
TEST(BlocksRows, DISABLED_SweepRows) { check_random(1'000'000, 3'000); }

// ---- A softmax ----------------------------------------------------------------------------------

KernelBody softmax_body(int64_t length) {
  return body_of_all(
      parse_graph(
          fmt::format(
              "graph @g(%x: f32[3, {0}]) {{ %m = reduce %x {{kind = max, axes = [1]}} "
              "%b = broadcast %m {{dims = [3, {0}], map = [0]}} %d = sub %x, %b "
              "%e = exp %d %s = reduce %e {{kind = sum, axes = [1]}} "
              "%c = broadcast %s {{dims = [3, {0}], map = [0]}} %y = div %e, %c return %y }}",
              length))
          .value());
}
Schedule rows_of(int warps, int kept) {
  return {.order = {0, 1}, .threads = 1, .own = BlockRowsFields{.warps = warps, .kept = kept}};
}

TEST(BlocksRows, HaveATextForm) {
  const Schedule schedule = rows_of(4, 1);
  EXPECT_EQ(print(schedule),
            "{algorithm = block_rows, order = [0, 1], threads = 1, warps = 4, kept = 1}");
}

// A row that is kept is read once; threads side by side read neighbours.
TEST(BlocksRows, ReadWholeSectors) {
  const KernelBody body = softmax_body(1024);
  Rng rng(1);
  const std::vector<Tensor> inputs = random_inputs(body.graph, rng);
  for (int kept : {0, 1}) {
    const TileProgram program = build_kernel(body, rows_of(4, kept), "k").value();
    EXPECT_EQ(block_threads(program.phases[0], program), 128);
    SimtCounts counts;
    ASSERT_TRUE(interpret(program, inputs, {.counts = &counts}).ok());
    EXPECT_EQ(counts.sectors, counts.least_sectors);
    // Accesses of 32 numbers: the reads of a row, once or three times, and its results.
    EXPECT_EQ(counts.global_accesses, 3 * 1024 / 32 * (kept == 1 ? 2 : 4));
    EXPECT_EQ(counts.bank_conflicts, 0);
    EXPECT_EQ(counts.barriers, 3 * 2);
  }
}

// ---- Planted faults -----------------------------------------------------------------------------

TEST(BlocksRows, EachBarrierThatIsMissingIsFound) {
  const KernelBody body = softmax_body(300);
  Rng rng(1);
  const std::vector<Tensor> inputs = random_inputs(body.graph, rng);
  const std::string text = print(build_kernel(body, rows_of(4, 1), "k").value());
  for (int n : {0, 1}) {
    const TileProgram program = parse_tiles(changed(text, "barrier\n", "\n", n)).value();
    ASSERT_TRUE(verify(program).ok());
    EXPECT_THAT(interpret(program, inputs), refuses(ErrorCode::bad_input, "element ... of"));
  }
}

// The last number of a row is the largest, so each guard matters.
TEST(BlocksRows, AGuardThatIsOffByOneIsFound) {
  const KernelBody body = body_of_all(
      parse_graph("graph @g(%x: f32[3, 300]) { %m = reduce %x {kind = max, axes = [1]} "
                  "%b = broadcast %m {dims = [3, 300], map = [0]} %y = sub %x, %b return %y }")
          .value());
  std::vector<double> rising(900);
  for (size_t i = 0; i < rising.size(); ++i) rising[i] = 0.5 * static_cast<double>(i);
  const std::vector<Tensor> inputs = {Tensor::from_reals(Type::get(DType::f32, {3, 300}), rising)};
  const std::vector<Tensor> expected =
      evaluate(body.graph, inputs, {.numerics = Numerics::rounded}).value();
  const std::string text = print(build_kernel(body, rows_of(4, 0), "k").value());
  int found = 0, places = 0;
  for (;; ++places) {
    const std::string less = changed(text, "< 300", "< 299", places);
    if (less.empty()) break;
    for (const std::string& other : {less, changed(text, "< 300", "< 301", places)}) {
      const TileProgram program = parse_tiles(other).value();
      const Result<std::vector<Tensor>> actual =
          verify(program).ok() ? interpret(program, inputs) : bad_input("it is refused");
      found += !actual.ok() || !compare((*actual)[0], expected[0], {})->passed() ? 1 : 0;
    }
  }
  EXPECT_EQ(places, 3) << text;
  EXPECT_EQ(found, 2 * places) << text;
}

// ---- What is refused ----------------------------------------------------------------------------

TEST(BlocksRows, SayWhatTheyCannotDo) {
  const KernelBody body = softmax_body(300);
  const auto status = [&](const Schedule& schedule, const Target& target = any_gpu()) {
    return check_schedule(body, schedule, target);
  };
  EXPECT_TRUE(status(rows_of(4, 1)).ok());
  EXPECT_THAT(status(rows_of(4, 1), Target{}), refuses(ErrorCode::unsupported, "GPU"));
  EXPECT_THAT(status(rows_of(3, 1)), refuses(ErrorCode::bad_input, "3 warps"));
  EXPECT_THAT(status(rows_of(4, 2)), refuses(ErrorCode::bad_input, "kept ... 2"));
  Schedule points = rows_of(4, 0);
  points.threads = 2;
  EXPECT_TRUE(status(points).ok());
  points.order = {1, 0};
  points.threads = 1;
  EXPECT_THAT(status(points), refuses(ErrorCode::unsupported, "nothing that its points share"));
  points = rows_of(4, 0);
  points.lanes = {{1, 4}};
  EXPECT_THAT(status(points), refuses(ErrorCode::bad_input, "lanes"));
  EXPECT_THAT(check_schedule(softmax_body(4000), rows_of(1, 1), any_gpu()),
              refuses(ErrorCode::limit, "125 numbers ... 32"));
}

}  // namespace
}  // namespace hone::HONE_FILE
