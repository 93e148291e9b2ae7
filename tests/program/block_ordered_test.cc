#include "kernel/algorithms/block_ordered.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

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

// Few numbers, so that many are equal, with the special ones among the reals.
Tensor tied(Type type, Rng& rng) {
  const double specials[] = {-0.0, std::nan(""), std::numeric_limits<double>::infinity()};
  std::vector<double> reals;
  std::vector<int64_t> integers;
  for (int64_t i = 0; i < type.static_elements(); ++i) {
    integers.push_back(rng.between(-3, 3));
    reals.push_back(rng.chance(0.2) ? specials[rng.below(3)]
                                    : static_cast<double>(integers.back()));
  }
  return is_real(type.dtype()) ? Tensor::from_reals(type, reals)
                               : Tensor::from_integers(type, integers);
}

// Indices of places, some of them out of bounds.
Tensor places(Type type, int64_t count, Rng& rng) {
  std::vector<int64_t> integers;
  for (int64_t i = 0; i < type.static_elements(); ++i) integers.push_back(rng.between(-1, count));
  return Tensor::from_integers(type, integers);
}

struct Case {
  Graph graph;
  std::vector<Tensor> inputs;
};

Graph parsed(const std::string& text) { return parse_graph(text).value(); }

// Rows along any axis of up to three dims.
Dims random_dims(Rng& rng, int axis, int rank, int64_t longest) {
  Dims dims;
  for (int dim = 0; dim < rank; ++dim) dims.emplace_back(rng.between(1, dim == axis ? longest : 3));
  return dims;
}

Case random_scan(Rng& rng) {
  constexpr DType kTypes[] = {DType::f32, DType::f64, DType::bf16, DType::i32, DType::u8};
  const DType dtype = rng.pick(kTypes);
  const int rank = static_cast<int>(rng.between(1, 3)), axis = static_cast<int>(rng.below(rank));
  Dims dims = random_dims(rng, axis, rank, 400);
  // Rows side by side.
  if (axis + 1 < rank && rng.chance(0.5)) dims.back() = rng.between(16, 40);
  const Type type = Type::get(dtype, dims);
  const std::vector<std::string_view> kinds = {"sum", "product", "max", "min"};
  Graph graph = parsed(
      fmt::format("graph @g(%x: {}) {{ %y = cumulative %x {{kind = {}, axis = {}, exclusive = {}, "
                  "reverse = {}}} return %y }}",
                  type.to_string(), rng.pick(kinds), axis, rng.chance(0.3), rng.chance(0.3)));
  return {graph, random_inputs(graph, rng)};
}

Case random_sort(Rng& rng) {
  const std::vector<DType> types = {DType::f32, DType::f64, DType::bf16,
                                    DType::i32, DType::u8,  DType::i64};
  const int rank = static_cast<int>(rng.between(1, 3)), axis = static_cast<int>(rng.below(rank));
  const Dims dims = random_dims(rng, axis, rank, rng.chance(0.5) ? 300 : 40);
  const int64_t count = rng.between(1, 3);
  std::string operands, results, inputs;
  Case made;
  for (int64_t i = 0; i < count; ++i) {
    const Type type = Type::get(rng.pick(types), dims);
    made.inputs.push_back(tied(type, rng));
    const std::string comma = i > 0 ? ", " : "";
    inputs += fmt::format("{}%x{}: {}", comma, i, type.to_string());
    operands += fmt::format("{}%x{}", comma, i);
    results += fmt::format("{}%y{}", comma, i);
  }
  const int64_t length = dims[static_cast<size_t>(axis)].value();
  const int64_t first = rng.chance(0.5) ? rng.between(1, std::min<int64_t>(length, 80)) : 0;
  made.graph = parsed(fmt::format(
      "graph @g({}) {{ {} = sort {} {{axis = {}, descending = {}, keys = {}, first = {}}} "
      "return {} }}",
      inputs, results, operands, axis, rng.chance(0.5), rng.between(1, count), first, results));
  return made;
}

// Rows of a table, elements of a matrix, a matrix for each batch, or windows that overlap. The dims
// of such windows may come ahead of those of lookups.
Case random_scatter(Rng& rng) {
  const int64_t rows = rng.between(1, 20), columns = rng.between(1, 9),
                lookups = rng.between(1, 200);
  constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::i32, DType::u8};
  const DType dtype = rng.pick(kTypes);
  const std::vector<std::string_view> ways = {"replace", "add", "mul", "min", "max"};
  Type x, indices, updates;
  std::string dims;
  switch (rng.below(4)) {
    case 0:
      x = Type::get(dtype, {rows, columns});
      indices = Type::get(DType::i32, {lookups, 1});
      updates = Type::get(dtype, {lookups, columns});
      dims = "window_dims = [1], inserted_dims = [0], index_map = [0], index_vector_dim = 1";
      break;
    case 1:
      x = Type::get(dtype, {rows, 3, columns});
      indices = Type::get(DType::i8, {lookups, 2});
      updates = Type::get(dtype, {2, lookups, 1});
      dims = "window_dims = [0, 2], inserted_dims = [0], index_map = [2, 0], index_vector_dim = 1";
      break;
    case 2:
      x = Type::get(dtype, {rows, 3, columns});
      indices = Type::get(rng.chance(0.5) ? DType::i32 : DType::i64, {rng.between(1, 30), 2});
      updates = Type::get(dtype, {rng.between(1, std::min<int64_t>(rows, 3)), 3, indices.dim(0),
                                  rng.between(1, std::min<int64_t>(columns, 3))});
      dims =
          "window_dims = [0, 1, 3], inserted_dims = [], index_map = [2, 0], index_vector_dim = 1";
      break;
    default:
      x = Type::get(dtype, {4, rows});
      indices = Type::get(DType::i64, {4, lookups});
      updates = Type::get(dtype, {4, lookups});
      dims =
          "window_dims = [], inserted_dims = [1], operand_batch_dims = [0], "
          "index_batch_dims = [0], index_map = [1], index_vector_dim = 2";
  }
  Case made = {parsed(fmt::format("graph @g(%x: {}, %i: {}, %u: {}) {{ %y = scatter %x, %i, %u "
                                  "{{{}, combine = {}}} return %y }}",
                                  x.to_string(), indices.to_string(), updates.to_string(), dims,
                                  rng.pick(ways))),
               {}};
  made.inputs = random_inputs(made.graph, rng);
  made.inputs[1] = places(indices, std::max(rows, columns), rng);
  return made;
}

Case random_case(Algorithm algorithm, Rng& rng) {
  if (algorithm == Algorithm::block_scan) return random_scan(rng);
  return algorithm == Algorithm::block_sort ? random_sort(rng) : random_scatter(rng);
}

void check_random(Algorithm algorithm, uint64_t first, uint64_t count) {
  int checked = 0, several = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const Case made = random_case(algorithm, rng);
    KernelBody body = body_of_all(made.graph);
    draw_layouts(body, {}, rng);
    // Large blocks take the interpreter long.
    const auto fits = [&](const Schedule& schedule) {
      return schedule.algorithm() == algorithm && ordered_shape(body, schedule).threads <= 128;
    };
    Schedule schedule;
    for (int i = 0; i < 200 && !fits(schedule); ++i)
      schedule = random_schedule(body, any_gpu(), rng);
    ASSERT_TRUE(fits(schedule));
    SCOPED_TRACE(print(body.graph));
    check_block_kernel(body, schedule, made.inputs);
    const TileProgram program = build_kernel(body, schedule, "k").value();
    const OrderedShape blocks = ordered_shape(body, schedule);
    EXPECT_LE(chip_layout(program).bytes, blocks.bytes);
    if (testing::Test::HasFailure()) return;
    ++checked;
    several += blocks.blocks > 1 ? 1 : 0;
  }
  EXPECT_GT(several, checked / 5);
  EXPECT_LT(several, checked);
}

TEST(BlockScan, ComputesWhatTheReferenceDoes) {
  check_random(Algorithm::block_scan, 0, tested::share_of(60, 2));
}
TEST(BlockSort, ComputesWhatTheReferenceDoes) {
  check_random(Algorithm::block_sort, 0, tested::share_of(60, 2));
}
TEST(BlockScatter, ComputesWhatTheReferenceDoes) {
  check_random(Algorithm::block_scatter, 0, tested::share_of(60, 2));
}
TEST(BlockOrdered, DISABLED_Sweep) {
  for (Algorithm algorithm :
       {Algorithm::block_scan, Algorithm::block_sort, Algorithm::block_scatter})
    check_random(algorithm, 1'000'000, 1'000);
}

// ---- Each by itself -----------------------------------------------------------------------------

const std::string kScan =
    "graph @g(%x: f32[2, 500]) { %y = cumulative %x {kind = sum, axis = 1} return %y }";
const std::string kSort =
    "graph @g(%x: f32[2, 300], %p: i32[2, 300]) { %y, %q = sort %x, %p {axis = 1} "
    "return %y, %q }";
const std::string kScatter =
    "graph @g(%x: f32[50, 3], %i: i32[300, 1], %u: f32[300, 3]) { %y = scatter %x, %i, %u "
    "{window_dims = [1], inserted_dims = [0], index_map = [0], index_vector_dim = 1, "
    "combine = add} return %y }";

constexpr BlockScanFields kParts = {.warps = 2, .points = 2, .parts = 2};
constexpr BlockSortFields kPieces = {.warps = 2, .pairs = 1};

TEST(BlockOrdered, HaveATextForm) {
  EXPECT_EQ(print(Schedule{.own = kParts}),
            "{algorithm = block_scan, warps = 2, points = 2, parts = 2}");
  EXPECT_EQ(print(Schedule{.own = kPieces}), "{algorithm = block_sort, warps = 2, pairs = 1}");
}

// The sums of a long row keep the accuracy of f32.
TEST(BlockScan, KeepsTheAccuracyOfF32) {
  const KernelBody body = body_of_all(
      parsed("graph @g(%x: f32[1, 5000]) { %y = cumulative %x {kind = sum, axis = 1} return %y }"));
  const std::string text =
      print(build_kernel(body, {.own = BlockScanFields{.warps = 4, .points = 4, .parts = 4}}, "k")
                .value());
  EXPECT_TRUE(accuracy_of(body, text, false).passed());
}

// Threads side by side read and write neighbours.
TEST(BlockScan, ReadsWholeSectors) {
  const KernelBody body = body_of_all(
      parsed("graph @g(%x: f32[2, 1024]) { %y = cumulative %x {kind = sum, axis = 1} return %y }"));
  Rng rng(1);
  SimtCounts counts;
  const TileProgram program =
      build_kernel(body, {.own = BlockScanFields{.warps = 4, .points = 4}}, "k").value();
  ASSERT_TRUE(interpret(program, random_inputs(body.graph, rng), {.counts = &counts}).ok());
  EXPECT_EQ(counts.sectors, counts.least_sectors);
  EXPECT_EQ(counts.global_accesses, 2 * 2 * 1024 / 32);
}

// A piece of 128 by 28 steps, then pieces are merged by threads in one launch each.
TEST(BlockSort, MergesPiecesThatBlocksSorted) {
  const TileProgram program =
      build_kernel(body_of_all(parsed(kSort)), {.own = kPieces}, "k").value();
  ASSERT_EQ(program.phases.size(), 3U);
  EXPECT_EQ(program.phases[0].exec, Exec::blocks);
  EXPECT_EQ(program.phases[1].exec, Exec::threads);
  const TileProgram alone = build_kernel(body_of_all(parsed(kSort)),
                                         {.own = BlockSortFields{.warps = 4, .pairs = 2}}, "k")
                                .value();
  EXPECT_EQ(alone.phases.size(), 1U);
}

// The updates of a place are taken in their order, however many there are: no atomic, no rest.
TEST(BlockScatter, AddsTheUpdatesOfAPlaceInOrder) {
  const KernelBody body = body_of_all(parsed(kScatter));
  Rng rng(3);
  std::vector<Tensor> inputs = random_inputs(body.graph, rng);
  inputs[1] = places(body.graph.type(body.graph.inputs()[1]), 3, rng);
  const Schedule schedule = {.own = BlockScatterFields{.warps = 1, .pairs = 2}};
  const Tensor by_blocks = interpret(build_kernel(body, schedule, "k").value(), inputs).value()[0];
  const Tensor in_turn = interpret(build_kernel(body, {}, "k").value(), inputs).value()[0];
  EXPECT_TRUE(std::ranges::equal(by_blocks.bytes(), in_turn.bytes()));
}

TEST(BlockScatter, ChangesInPlace) {
  KernelBody body = body_of_all(parsed(kScatter));
  body.in_place = true;
  Rng rng(3);
  std::vector<Tensor> inputs = random_inputs(body.graph, rng);
  inputs[1] = places(body.graph.type(body.graph.inputs()[1]), 50, rng);
  const Schedule schedule = {.own = BlockScatterFields{.warps = 1, .pairs = 2}};
  ASSERT_TRUE(check_schedule(body, schedule, any_gpu()).ok());
  const TileProgram program = build_kernel(body, schedule, "k").value();
  std::vector<Tensor> memory = {inputs[1], inputs[2], inputs[0]};
  const Tensor actual = interpret(program, memory).value()[0];
  const std::vector<Tensor> expected =
      evaluate(body.graph, inputs, {.numerics = Numerics::rounded}).value();
  expect_close(std::vector{actual}, expected);
}

// ---- Planted faults -----------------------------------------------------------------------------

// A barrier fewer is a race that the interpreter finds.
void expect_all_barriers_matter(const std::string& graph, const Schedule& schedule, int barriers) {
  const KernelBody body = body_of_all(parsed(graph));
  Rng rng(1);
  const std::vector<Tensor> inputs = random_inputs(body.graph, rng);
  const std::string text = print(build_kernel(body, schedule, "k").value());
  int count = 0;
  for (;; ++count) {
    const std::string fewer = changed(text, "barrier\n", "\n", count);
    if (fewer.empty()) break;
    const TileProgram program = parse_tiles(fewer).value();
    ASSERT_TRUE(verify(program).ok());
    EXPECT_THAT(interpret(program, inputs), refuses(ErrorCode::bad_input, "element ... of"))
        << "barrier " << count << " of\n"
        << text;
  }
  EXPECT_EQ(count, barriers) << text;
}

TEST(BlockScan, EachBarrierThatIsMissingIsFound) {
  expect_all_barriers_matter(kScan, {.own = kParts}, 1 + 1 + 1 + 6 + 1);
  expect_all_barriers_matter(
      "graph @g(%x: f32[100, 40]) { %y = cumulative %x {kind = sum, axis = 0} return %y }",
      {.own = BlockScanFields{.warps = 4, .points = 2, .parts = 2}}, 1 + 1 + 2 + 1);
}
TEST(BlockSort, EachBarrierThatIsMissingIsFound) {
  expect_all_barriers_matter(kSort, {.own = kPieces}, 2);
}

// A search that ends a step early puts elements where others go.
TEST(BlockSort, ASearchThatIsTooShortIsFound) {
  const KernelBody body = body_of_all(parsed(kSort));
  Rng rng(1);
  const std::vector<Tensor> inputs = random_inputs(body.graph, rng);
  const std::string text = print(build_kernel(body, {.own = kPieces}, "k").value());
  const std::string shorter = changed(text, "for search in 8", "for search in 6");
  ASSERT_FALSE(shorter.empty()) << text;
  EXPECT_THAT(interpret(parse_tiles(shorter).value(), inputs),
              refuses(ErrorCode::bad_input, "element ... of"));
}

// Each block keeps the first of its piece, and each merge those of two.
TEST(BlockSort, PiecesKeepWhatIsAskedFor) {
  const auto phases = [](int64_t first) {
    const KernelBody body = body_of_all(parsed(fmt::format(
        "graph @g(%x: f32[2, 1000]) {{ %y = sort %x {{axis = 1, first = {}}} return %y }}",
        first)));
    return build_kernel(body, {.own = kPieces}, "k").value();
  };
  const TileProgram few = phases(10), all = phases(0);
  ASSERT_EQ(few.phases.size(), 4U);  // 8 pieces: a sort and three merges
  const std::vector<int64_t> threads = {2 * 80, 2 * 40, 2 * 20};
  for (size_t i = 0; i < threads.size(); ++i) {
    EXPECT_EQ(trips_of(few.phases[i + 1], few).value(), threads[i]);
    EXPECT_EQ(trips_of(all.phases[i + 1], all).value(), 2000);
  }
}

// All that is asked for may come from one of two pieces.
TEST(BlockSort, AMergeThatKeepsTooFewIsFound) {
  const KernelBody body = body_of_all(
      parsed("graph @g(%x: f32[300]) { %y = sort %x {axis = 0, first = 10} return %y }"));
  Rng rng(1);
  const std::vector<Tensor> inputs = random_inputs(body.graph, rng);
  const std::string text = print(build_kernel(body, {.own = kPieces}, "k").value());
  const std::string fewer = changed(text, "< 10", "< 9");
  ASSERT_FALSE(fewer.empty()) << text;
  const std::vector<Tensor> expected = evaluate(body.graph, inputs, {}).value();
  const Result<std::vector<Tensor>> actual = interpret(parse_tiles(fewer).value(), inputs);
  EXPECT_FALSE(actual.ok() && compare(actual->at(0), expected[0], {}).value().passed());
}

// ---- What is refused ----------------------------------------------------------------------------

TEST(BlockOrdered, SayWhatTheyCannotDo) {
  const auto status = [](const std::string& graph, const AlgorithmFields& own,
                         const Target& target = any_gpu()) {
    return check_schedule(body_of_all(parsed(graph)), {.own = own}, target);
  };
  EXPECT_TRUE(status(kScan, kParts).ok());
  EXPECT_THAT(status(kScan, kParts, Target{}), refuses(ErrorCode::unsupported, "GPU"));
  EXPECT_THAT(status(kSort, kParts), refuses(ErrorCode::unsupported, "not one cumulative"));
  EXPECT_THAT(status(kScan, kPieces), refuses(ErrorCode::unsupported, "not one sort"));
  EXPECT_THAT(status(kScan, BlockScanFields{.warps = 3}),
              refuses(ErrorCode::bad_input, "warps is 3"));
  EXPECT_THAT(status(kScan, BlockScanFields{.warps = 8, .parts = 4}),
              refuses(ErrorCode::bad_input, "2 parts ... 4"));
  EXPECT_THAT(status(kScan, BlockScanFields{.warps = 32}),
              refuses(ErrorCode::bad_input, "warps is 32, not one of 1 to 16"));
  EXPECT_THAT(status(kScan, BlockScanFields{.warps = 8, .points = 8}),
              refuses(ErrorCode::bad_input, "2048 elements ... 500"));
  EXPECT_THAT(status("graph @g(%x: f32[N]) where N in 1..64 { %y = sort %x {axis = 0} return %y }",
                     kPieces),
              refuses(ErrorCode::unsupported, "not numbers"));
  EXPECT_THAT(
      status("graph @g(%x: f64[9999], %p: f64[9999], %q: f64[9999]) { %y, %z, %w = sort %x, %p, %q "
             "{axis = 0, keys = 3} return %y, %z, %w }",
             BlockSortFields{.warps = 32, .pairs = 8}),
      refuses(ErrorCode::limit, "458752 bytes"));
}

}  // namespace
}  // namespace hone::HONE_FILE
