#include "kernel/algorithms/block_tiles.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "ir/functional.h"
#include "ir/text.h"
#include "kernel/schedule_space.h"
#include "program/tiles/calling.h"
#include "rewrite/passes.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/program/block_programs.h"
#include "tests/program/block_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

// The product of two matrices, which may lie either way, with something behind it.
Graph random_product(Rng& rng) {
  constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16, DType::i32};
  Builder b;
  const DType dtype = rng.pick(kTypes);
  const int64_t rows = rng.between(1, 70), columns = rng.between(1, 70);
  const int64_t depth = rng.chance(0.3) ? 16 * rng.between(1, 4) : rng.between(1, 60);
  const bool left = rng.chance(0.5), right = rng.chance(0.5);
  const Value x = b.parameter("x", dtype, left ? Dims{depth, rows} : Dims{rows, depth});
  const Value w = b.parameter("w", dtype, right ? Dims{columns, depth} : Dims{depth, columns});
  Value y = b.op(Opcode::dot, {x, w},
                 {{"lhs_contract", Ints{left ? 0 : 1}},
                  {"rhs_contract", Ints{right ? 1 : 0}},
                  {"flush", rng.chance(0.5)}});
  if (rng.chance(0.5)) y = y + broadcast(b.parameter("b", dtype, {columns}), y.dims(), {1});
  if (rng.chance(0.5)) y = maximum(y, 0);
  return b.finish({y}).value();
}

// One that the interpreter runs in a moment.
bool is_small(const Schedule& schedule) {
  const auto* own = schedule.if_is<BlockTilesFields>();
  return own != nullptr && own->rows * own->columns * own->depth <= 32 * 32 * 16;
}

// The same by a few blocks that share all steps, if that is legal.
Schedule with_shares(const KernelBody& body, const Schedule& schedule, Rng& rng) {
  Schedule shared = schedule;
  auto& own = shared.get<BlockTilesFields>();
  own.splits = 1;
  own.shares = static_cast<int>(rng.between(2, 9));
  return check_schedule(body, shared, any_gpu()).ok() ? shared : schedule;
}

struct Seen {
  int checked = 0, by_warps = 0, ahead = 0, shared = 0;
};

void check_random(uint64_t first, uint64_t count, bool is_plain, Seen& seen) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    KernelBody body = body_of_all(is_plain ? random_product(rng) : RandomGemm(rng).graph());
    if (!is_plain || rng.chance(0.3)) draw_layouts(body, {}, rng);
    if (const auto product = tiled_product(KernelFacts(body)); product.ok() && product->times > 12)
      continue;
    donate_some(body, rng);
    Schedule schedule;
    for (int i = 0; i < 100 && !is_small(schedule); ++i)
      schedule = random_schedule(body, any_gpu(), rng);
    if (!is_small(schedule)) continue;
    // Drawn schedules are for many more processors than these products have steps for.
    if (rng.chance(0.6)) schedule = with_shares(body, schedule, rng);
    SCOPED_TRACE(print(body.graph));
    std::vector<Tensor> inputs = random_inputs(body.graph, rng);
    if (rng.chance(0.3))
      for (Tensor& input : inputs)
        if (input.dtype() == DType::f32) make_wild(input, 0.05, rng);
    check_block_kernel(body, schedule, inputs);
    if (testing::Test::HasFailure()) return;
    const BlockTilesFields& own = schedule.get<BlockTilesFields>();
    ++seen.checked;
    seen.by_warps += own.products == Products::matrix ? 1 : 0;
    seen.ahead += own.ahead > 0 ? 1 : 0;
    seen.shared += own.shares > 0 ? 1 : 0;
  }
}

TEST(BlocksTiles, ComputeProducts) {
  Seen seen;
  const auto count = static_cast<int>(tested::share_of(30, 2));
  check_random(0, static_cast<uint64_t>(count), true, seen);
  EXPECT_GT(seen.checked, count / 2);
  EXPECT_GT(seen.by_warps, count / 10);
  EXPECT_GT(seen.ahead, count / 4);
  EXPECT_GT(seen.shared, count / 8);
}
TEST(BlocksTiles, ComputeContractions) {
  Seen seen;
  const auto count = static_cast<int>(tested::share_of(20, 2));
  check_random(500, static_cast<uint64_t>(count), false, seen);
  EXPECT_GT(seen.checked, count / 4);
}
TEST(BlocksTiles, DISABLED_SweepProducts) {
  Seen seen;
  check_random(1'000'000, 1'500, true, seen);
}
TEST(BlocksTiles, DISABLED_SweepContractions) {
  Seen seen;
  check_random(2'000'000, 1'500, false, seen);
}

// ---- One product --------------------------------------------------------------------------------

KernelBody product_body(std::string_view dtype, int64_t rows, int64_t columns, int64_t depth) {
  return body_of_all(
      parse_graph(fmt::format("graph @g(%x: {0}[{1}, {3}], %w: {0}[{2}, {3}]) {{ %y = dot %x, %w "
                              "{{lhs_contract = [1], rhs_contract = [1]}} return %y }}",
                              dtype, rows, columns, depth))
          .value());
}
// f32. Two parts are where denormal numbers may count as 0.
KernelBody split_body(int64_t rows, int64_t columns, int64_t depth, int64_t parts = 3) {
  return body_of_all(
      parse_graph(fmt::format("graph @g(%x: f32[{}, {}], %w: f32[{}, {}]) {{ %y = dot %x, %w "
                              "{{lhs_contract = [1], rhs_contract = [1], flush = {}, "
                              "parts = {}}} return %y }}",
                              rows, depth, columns, depth, parts == 2, parts))
          .value());
}
Schedule tiles_of(const BlockTilesFields& own) {
  return {.order = {0, 1}, .threads = 2, .own = own};
}
constexpr BlockTilesFields kPlain = {
    .rows = 32, .columns = 32, .depth = 16, .own_rows = 4, .own_columns = 2, .ahead = 1};
constexpr BlockTilesFields kOnTensorCores = {.rows = 32,
                                             .columns = 32,
                                             .depth = 32,
                                             .own_rows = 32,
                                             .own_columns = 16,
                                             .products = Products::matrix,
                                             .ahead = 2};

constexpr BlockTilesFields kInParts = {.rows = 16,
                                       .columns = 16,
                                       .depth = 32,
                                       .own_rows = 16,
                                       .own_columns = 16,
                                       .products = Products::matrix,
                                       .ahead = 1};

TEST(BlocksTiles, HaveATextForm) {
  EXPECT_EQ(
      print(tiles_of(kOnTensorCores)),
      "{algorithm = block_tiles, order = [0, 1], threads = 2, rows = 32, columns = 32, "
      "depth = 32, own_rows = 32, own_columns = 16, products = matrix, ahead = 2, splits = 1}");
}

TEST(BlocksTiles, CopyPiecesAheadAndReadThemWithoutConflicts) {
  const KernelBody body = product_body("bf16", 64, 64, 96);
  BlockTilesFields own = kOnTensorCores;
  own.depth = 64;
  const TileProgram program = build_kernel(body, tiles_of(own), "k").value();
  const std::string text = print(program);
  EXPECT_NE(text.find("copy 8 @lhs["), std::string::npos) << text;
  EXPECT_NE(text.find("copy 8 @rhs["), std::string::npos) << text;
  EXPECT_NE(text.find("wait 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" as bf16\n"), std::string::npos) << text;
  EXPECT_EQ(block_threads(program.phases[0], program), 64);
  Rng rng(1);
  SimtCounts counts;
  ASSERT_TRUE(interpret(program, random_inputs(body.graph, rng), {.counts = &counts}).ok());
  EXPECT_EQ(counts.bank_conflicts, 0);
  EXPECT_NE(text.find("matrices 4 @rows[i] = @lhs["), std::string::npos) << text;
  EXPECT_NE(text.find("matrices 4 @columns["), std::string::npos) << text;
}

// Pieces of a line change places.
TEST(BlocksTiles, PiecesOfLinesAreInOtherBanks) {
  for (int depth : {16, 32, 64}) {
    SCOPED_TRACE(depth);
    const KernelBody body = product_body("bf16", 64, 64, 96);
    BlockTilesFields own = kOnTensorCores;
    own.depth = depth;
    own.ahead = 1;
    const std::string text = print(build_kernel(body, tiles_of(own), "k").value());
    Rng rng(1);
    const std::vector<Tensor> inputs = random_inputs(body.graph, rng);
    SimtCounts counts;
    ASSERT_TRUE(interpret(parse_tiles(text).value(), inputs, {.counts = &counts}).ok());
    EXPECT_EQ(counts.bank_conflicts, 0) << text;
  }
}

bool finds(const KernelBody& body, const BlockTilesFields& own, const std::string& from,
           const std::string& to, int n);

// ---- Parts of the reduction --------------------------------------------------------------------

constexpr BlockTilesFields kInSplits = {.rows = 32,
                                        .columns = 32,
                                        .depth = 8,
                                        .own_rows = 4,
                                        .own_columns = 2,
                                        .ahead = 1,
                                        .splits = 4};

TEST(BlocksTiles, BlocksTakePartsOfTheReduction) {
  BlockTilesFields by_warps = kOnTensorCores;
  by_warps.depth = 16;
  by_warps.splits = 2;
  BlockTilesFields at_once = kInSplits;
  at_once.ahead = 0;
  for (const auto& [body, own] : {std::pair(product_body("f32", 40, 45, 100), kInSplits),
                                  std::pair(product_body("f32", 40, 45, 64), at_once),
                                  std::pair(product_body("i32", 5, 45, 57), kInSplits),
                                  std::pair(product_body("bf16", 40, 45, 90), by_warps)}) {
    Rng rng(1);
    check_block_kernel(body, tiles_of(own), random_inputs(body.graph, rng));
    const TileProgram program = build_kernel(body, tiles_of(own), "k").value();
    ASSERT_EQ(program.phases.size(), 2U);
    EXPECT_EQ(trips_of(program.phases[0], program).value(),
              (body.graph.type(body.graph.outputs()[0]).dim(0).value() + 31) / 32 * 2 * own.splits);
  }
}

// 33 points are 5 steps: two parts of two, a last one of one, and none for a fourth.
TEST(BlocksTiles, NoPartOfTheReductionIsEmpty) {
  const auto status = [](int64_t points) {
    return check_schedule(product_body("f32", 40, 45, points), tiles_of(kInSplits), any_gpu());
  };
  EXPECT_THAT(status(33), refuses(ErrorCode::unsupported, "33 points ... 4 parts"));
  EXPECT_THAT(status(48), refuses(ErrorCode::unsupported, "48 points ... 4 parts"));
  EXPECT_TRUE(status(49).ok());
  EXPECT_THAT(status(31), refuses(ErrorCode::unsupported, "31 points ... 4 parts"));
}

// They come in order, whatever order blocks run in: so bits are the same from run to run.
TEST(BlocksTiles, PartsAreAddedInOrder) {
  const KernelBody body = product_body("f32", 20, 20, 128);
  const std::string text = print(build_kernel(body, tiles_of(kInSplits), "k").value());
  size_t last = text.rfind("blocks part in 4");
  ASSERT_NE(last, std::string::npos) << text;
  for (int part = 0; part < 4; ++part) {
    const size_t at = text.find(fmt::format("load @parts[{}, i0, i1]", part), last);
    EXPECT_NE(at, std::string::npos) << part << text;
    last = at;
  }
}

TEST(BlocksTiles, FaultsOfPartsOfTheReductionAreFound) {
  const KernelBody body = product_body("f32", 40, 45, 100);
  for (const auto& [from, to] :
       {std::pair("32*part", "24*part"), std::pair("@parts[2,", "@parts[1,"),
        std::pair("< 100", "< 99"), std::pair("@parts[part,", "@parts[0,")})
    EXPECT_TRUE(finds(body, kInSplits, from, to, 0)) << from;
}

// ---- Blocks that share all steps ---------------------------------------------------------------

// Four tiles of seven steps, and six blocks with five steps each.
constexpr BlockTilesFields kShared = [] {
  BlockTilesFields own = kInSplits;
  own.splits = 1;
  own.shares = 6;
  return own;
}();

TEST(BlocksTiles, BlocksShareTheStepsOfAllTiles) {
  BlockTilesFields by_warps = kOnTensorCores;
  by_warps.depth = 16;
  by_warps.shares = 5;
  BlockTilesFields at_once = kShared, whole = kShared, ahead = kShared, in_batches = kShared;
  at_once.ahead = 0;
  whole.shares = 2;  // two tiles each: none has parts
  ahead.ahead = 3;   // more than a tile has left
  in_batches.shares = 4;
  const Graph batched =
      parse_graph(
          "graph @g(%x: f32[3, 20, 40], %w: f32[3, 40, 33]) { %d = dot %x, %w {lhs_contract "
          "= [2], rhs_contract = [1], lhs_batch = [0], rhs_batch = [0]} %y = neg %d "
          "return %y }")
          .value();
  for (const auto& [body, own, phases] :
       {std::tuple(product_body("f32", 40, 45, 50), kShared, 2U),
        std::tuple(product_body("f32", 40, 45, 56), at_once, 2U),
        std::tuple(product_body("f32", 40, 45, 56), whole, 1U),
        std::tuple(product_body("f32", 40, 45, 50), ahead, 2U),
        std::tuple(product_body("i32", 40, 45, 17), kShared, 2U),
        std::tuple(product_body("bf16", 40, 45, 90), by_warps, 2U),
        std::tuple(body_of_all(batched), in_batches, 2U)}) {
    Schedule schedule = tiles_of(own);
    if (body.graph.type(body.graph.outputs()[0]).rank() == 3)
      schedule.order = {0, 1, 2}, schedule.threads = 3;
    SCOPED_TRACE(print(schedule));
    Rng rng(1);
    check_block_kernel(body, schedule, random_inputs(body.graph, rng));
    const TileProgram program = build_kernel(body, schedule, "k").value();
    EXPECT_EQ(program.phases.size(), phases);
  }
}

// As counted tile by tile, and step by step.
TEST(BlocksTiles, PartsOfSharedTilesAreCounted) {
  for (int64_t tiles = 1; tiles <= 12; ++tiles)
    for (int64_t steps = 1; steps <= 9; ++steps)
      for (int64_t share = 1; share <= tiles * steps; ++share) {
        const int64_t all = tiles * steps;
        const TileShares shares = {tiles, steps, share, (all + share - 1) / share};
        int64_t most = 1, divided = 0, ends = 0;
        for (int64_t tile = 0; tile < tiles; ++tile) {
          std::set<int64_t> blocks;
          for (int64_t step = 0; step < steps; ++step) blocks.insert((tile * steps + step) / share);
          most = std::max<int64_t>(most, std::ssize(blocks));
          divided += blocks.size() > 1 ? 1 : 0;
          ends += std::ssize(blocks) - 1;
        }
        SCOPED_TRACE(fmt::format("{} tiles of {} steps in shares of {}", tiles, steps, share));
        ASSERT_EQ(shares.most_parts(), most);
        ASSERT_EQ(shares.divided(), divided);
        ASSERT_EQ(shares.ends_within(), ends);
      }
}

// A plan may say anything of any size: it is judged at once, and no number overflows.
TEST(BlocksTiles, SharesOfHugeProductsAreJudgedAtOnce) {
  BlockTilesFields own = {.rows = 16, .columns = 16, .depth = 8, .own_rows = 2, .shares = 2};
  const auto status = [&](int64_t lines, int64_t depth) {
    return check_schedule(product_body("f32", lines, lines, depth), tiles_of(own), any_gpu());
  };
  EXPECT_TRUE(status(int64_t{1} << 20, 16).ok());
  EXPECT_THAT(status(int64_t{1} << 20, int64_t{1} << 20),
              refuses(ErrorCode::limit, "4294967296 tiles of 131072 steps"));
}

// A block has memory for two parts, and a thread of the second phase has a point of a tile that
// blocks divide: few of many tiles. The price counts the same.
TEST(BlocksTiles, SecondPhasesHaveDividedTilesAlone) {
  BlockTilesFields large = {.rows = 128,
                            .columns = 128,
                            .depth = 16,
                            .own_rows = 8,
                            .own_columns = 8,
                            .ahead = 0,
                            .shares = 132};
  BlockTilesFields splits = kInSplits;
  for (const auto& [body, own, sums, bytes] :
       {std::tuple(product_body("f32", 53 * 128, 20 * 128, 512), large, 131 * 128 * 128,
                   132 * 2 * 128 * 128 * 4),  // 1,060 tiles
        std::tuple(product_body("f32", 40, 45, 50), kShared, 5 * 32 * 32, 6 * 2 * 32 * 32 * 4),
        std::tuple(product_body("f32", 40, 45, 100), splits, 40 * 45, 4 * 40 * 45 * 4)}) {
    const TileProgram program = build_kernel(body, tiles_of(own), "k").value();
    ASSERT_EQ(program.phases.size(), 2U);
    EXPECT_EQ(trips_of(program.phases[1], program).value(), sums);
    const auto parts = std::ranges::find_if(
        program.buffers, [](const auto& buffer) { return buffer.role == BufferRole::shared; });
    ASSERT_NE(parts, program.buffers.end());
    EXPECT_EQ(parts->type.static_bytes(), bytes);
    const KernelFacts facts(body);
    EXPECT_EQ(part_sums(tiled_product(facts).value(), block_tile(facts, own)).sums, sums);
  }
}

// They come in order, whatever order blocks run in.
TEST(BlocksTiles, PartsOfSharedTilesAreAddedInOrder) {
  const KernelBody body = product_body("f32", 40, 45, 50);
  const TileProgram program = build_kernel(body, tiles_of(kShared), "k").value();
  EXPECT_EQ(trips_of(program.phases[0], program).value(), 6);
  const std::string text = print(program);
  EXPECT_NE(text.find("blocks share in 6"), std::string::npos) << text;
  size_t last = text.find("threads first in 5");
  ASSERT_NE(last, std::string::npos) << text;
  for (const char* part :
       {"load @parts[first, 0,", "load @parts[first + 1, 1,", "load @parts[first + 2, 1,"}) {
    const size_t at = text.find(part, last);
    EXPECT_NE(at, std::string::npos) << part << text;
    last = at;
  }
}

TEST(BlocksTiles, FaultsOfSharesAreFound) {
  const KernelBody body = product_body("f32", 40, 45, 50);
  for (const auto& [from, to] :
       {std::pair("barrier\n", "\n"),     // nobody waits for a step
        std::pair("wait 0\n", "\n"),      // of a copy
        std::pair("group\n", "\n"),       // copies of two steps
        std::pair("@lhs[0,", "@lhs[1,"),  // a stage of the ring
        std::pair("5*share - 7*tile", "5*share - 6*tile"),
        std::pair("load @parts[first + 1,", "load @parts[first,"), std::pair("< 28", "< 27")})
    EXPECT_TRUE(finds(body, kShared, from, to, 0)) << from;
}

bool is_wrong(const KernelBody& body, const TileProgram& program);

// A guard of loads from parts, or of stores to them or to results, in a phase.
struct GuardFault {
  size_t phase;
  bool is_load, of_parts;
  std::array<int64_t, 2> from, to;  // bounds
};

// Says how many guards were changed.
int plant(tile::Block& body, std::span<const TileBuffer> buffers, const GuardFault& fault) {
  int planted = 0;
  const auto change = [&](tile::BufferId buffer, std::vector<Guard>& guards) {
    if ((buffers[buffer].role == BufferRole::shared) != fault.of_parts) return;
    for (Guard& guard : guards)
      if (guard.lower == Dim(fault.from[0]) && guard.upper == Dim(fault.from[1])) {
        guard.lower = fault.to[0], guard.upper = fault.to[1];
        ++planted;
      }
  };
  for (tile::Statement& statement : body) {
    if (auto* loop = std::get_if<tile::Loop>(&statement.kind))
      planted += plant(loop->body, buffers, fault);
    if (auto* load = std::get_if<tile::Load>(&statement.kind); load != nullptr && fault.is_load)
      change(load->buffer, load->guards);
    if (auto* store = std::get_if<tile::Store>(&statement.kind); store != nullptr && !fault.is_load)
      change(store->buffer, store->guards);
  }
  return planted;
}

// Six tiles of four steps, and four blocks with six each: the second one ends with a tile of its
// own, which the second phase must leave alone.
TEST(BlocksTiles, FaultsOfGuardsOfSharesAreFound) {
  const KernelBody batched = body_of_all(
      parse_graph(
          "graph @g(%x: f32[3, 20, 32], %w: f32[3, 32, 33]) { %y = dot %x, %w {lhs_contract "
          "= [2], rhs_contract = [1], lhs_batch = [0], rhs_batch = [0]} return %y }")
          .value());
  BlockTilesFields own = kShared;
  own.shares = 4;
  const Schedule even = {.order = {0, 1, 2}, .threads = 3, .own = own};
  const KernelBody short_shares = product_body("f32", 40, 45, 50);
  const std::array<int64_t, 2> whole = {0, 1}, divided = {1, 2}, none = {2, 3};
  for (const auto& [body, schedule, fault] :
       {std::tuple(batched, even, GuardFault{0, false, false, whole, divided}),
        std::tuple(batched, even, GuardFault{0, false, true, divided, none}),
        std::tuple(batched, even, GuardFault{1, false, false, divided, {0, 2}}),
        std::tuple(batched, even, GuardFault{1, true, true, divided, none}),
        // Blocks within a tile are not its first.
        std::tuple(short_shares, tiles_of(kShared), GuardFault{1, false, false, whole, {0, 2}})}) {
    TileProgram program = build_kernel(body, schedule, "k").value();
    ASSERT_EQ(program.phases.size(), 2U);
    EXPECT_FALSE(is_wrong(body, program)) << print(program);
    EXPECT_GT(plant(program.phases[fault.phase].body, program.buffers, fault), 0) << print(program);
    EXPECT_TRUE(is_wrong(body, program)) << print(program);
  }
}

// ---- f32 as parts of bf16 -----------------------------------------------------------------------

TEST(BlocksTiles, OfPartsAreAsAccurateAsF32) {
  for (const auto& [depth, parts] : {std::pair(1, 3), std::pair(20, 3), std::pair(600, 3)}) {
    SCOPED_TRACE(depth);
    const KernelBody body = split_body(16, 16, depth, parts);
    const std::string text = print(build_kernel(body, tiles_of(kInParts), "k").value());
    for (bool cuts_sums : {false, true}) {
      const Accuracy result = accuracy_of(body, text, cuts_sums);
      EXPECT_TRUE(result.passed()) << cuts_sums << ": " << result.to_string();
    }
  }
}

// Two parts are for long sums. Here are about as few terms as they take, and sums are cut off.
TEST(BlocksTiles, OfTwoPartsInLongSumsAreAsAccurateAsF32) {
  constexpr int64_t kDepth = 8704;
  const KernelBody body = split_body(16, 16, kDepth, 2);
  Rng rng(1);
  Builder b;
  const Value x = b.parameter("x", DType::f32, {16, kDepth});
  const Value w = b.constant(random_inputs(body.graph, rng)[1]);
  const Value y = b.op(Opcode::dot, {x, w}, {{"lhs_contract", Ints{1}}, {"rhs_contract", Ints{1}}});
  const Graph permitted = permit_flushing(b.finish({y}).value()).value();
  EXPECT_EQ(permitted.op(permitted.producer(permitted.outputs()[0])).integer("parts"), 2);
  const auto judged = [](const KernelBody& deep) {
    return accuracy_of(deep, print(build_kernel(deep, tiles_of(kInParts), "k").value()), true);
  };
  const Accuracy result = judged(body);
  EXPECT_TRUE(result.passed()) << result.to_string();
  EXPECT_FALSE(judged(split_body(16, 16, 64, 2)).passed()) << "short sums need three";
}

// Each product of parts counts, and so does the plain addition.
TEST(BlocksTiles, FaultsOfPartsAreFoundByTheirAccuracy) {
  const KernelBody body = split_body(16, 16, 200);
  const std::string text = print(build_kernel(body, tiles_of(kInParts), "k").value());
  const std::string product = "multiply @step_sums[0], ";
  int products = 0;
  for (size_t at = text.find(product); at != std::string::npos; at = text.find(product, at + 1)) {
    std::string without = text;
    without.erase(at, text.find('\n', at) - at);
    EXPECT_FALSE(accuracy_of(body, without, false).passed()) << "product " << products;
    ++products;
  }
  EXPECT_EQ(products, 6);
}

TEST(BlocksTiles, OfPartsHaveInfinitiesAndNan) {
  const KernelBody body = split_body(16, 16, 24);
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const Specials specials = Specials::drawn(rng);
    check_on_specials(body, tiles_of(kInParts), random_inputs(body.graph, rng, specials));
  }
}

// Steps with wild numbers are taken as f32, and other steps of the same tile are not.
TEST(BlocksTiles, OfPartsAreAccurateForAllNumbers) {
  BlockTilesFields at_once = kInParts, ahead = kInParts, shared = kInParts, splits = kInParts;
  at_once.ahead = 0;
  ahead.ahead = 3;
  shared.shares = 3;
  splits.splits = 2;
  for (const BlockTilesFields& own : {at_once, kInParts, ahead, shared, splits}) {
    SCOPED_TRACE(print(tiles_of(own)));
    expect_accurate_for_all_numbers(split_body(16, 20, 150), tiles_of(own));
    if (testing::Test::HasFailure()) return;
  }
}

// The block votes by what each fill of a stage left, however far copies run ahead.
TEST(BlocksTiles, FaultsOfWildNumbersAreFound) {
  struct Fault {
    std::string from, to;
  };
  for (int ahead : {0, 2}) {
    BlockTilesFields own = kInParts;
    own.ahead = ahead;
    const KernelBody body = split_body(16, 16, 100);
    const std::string text = print(build_kernel(body, tiles_of(own), "k").value());
    // The second of four steps has them on the left, and the third one on the right.
    const ChangeInputs some_steps = [](std::vector<Tensor>& inputs, Rng&) {
      for (size_t side = 0; side < 2; ++side) {
        scale(inputs[side], -60);
        std::vector<double> numbers;
        for (int64_t i = 0; i < inputs[side].elements(); ++i) {
          const auto step = static_cast<size_t>(i % 100 / 32);
          numbers.push_back(std::ldexp(inputs[side].real_at(i), step == side + 1 ? 160 : 0));
        }
        inputs[side] = Tensor::from_reals(inputs[side].type(), numbers);
      }
    };
    const auto passes = [&](const std::string& changed_text) {
      return accuracy_of(body, changed_text, false, some_steps).passed();
    };
    EXPECT_TRUE(passes(text));
    std::vector<Fault> faults = {{"for tame in 1 from wild to 1", "for tame in 1 from 0 to 1"},
                                 {"for once in 1 from 0 to wild", "for once in 1 from 1 to wild"}};
    if (ahead > 0) faults.push_back({"vote wild = @wild_lhs[1]", "vote wild = @wild_lhs[0]"});
    for (const Fault& fault : faults) {
      const std::string wrong = changed(text, fault.from, fault.to);
      ASSERT_NE(wrong, "") << fault.from << text;
      EXPECT_FALSE(passes(wrong)) << fault.from;
    }
    // Either side counts: the left one of the second step, the right one of the third.
    for (int fill : ahead == 0 ? std::array{0, 1} : std::array{2, 5}) {
      const std::string wrong = changed(text, "{direction = ne}", "{direction = lt}", fill);
      ASSERT_NE(wrong, "") << text;
      EXPECT_FALSE(passes(wrong)) << "fill " << fill;
    }
  }
}

// ---- f32 as tf32, where that is asked for -------------------------------------------------------

KernelBody tf32_body(int64_t rows, int64_t columns, int64_t depth, std::string_view w_dims) {
  return body_of_all(
      parse_graph(
          fmt::format("graph @g(%x: f32[{0}, {2}], %w: f32[{3}]) {{ %y = dot %x, %w "
                      "{{lhs_contract = [1], rhs_contract = [{4}], parts = 1}} return %y }}",
                      rows, columns, depth, w_dims,
                      w_dims == fmt::format("{}, {}", columns, depth) ? 1 : 0))
          .value());
}

// Numbers of 11 bits are multiplied exactly. Others lose their last 13 bits.
TEST(BlocksTiles, OfTf32MultiplyElevenBits) {
  constexpr uint32_t kBits = 0xffffe000;
  BlockTilesFields at_once = kOnTensorCores, shared = kOnTensorCores;
  at_once.ahead = 0;
  at_once.depth = 16;
  shared.shares = 3;
  for (const char* w_dims : {"45, 72", "72, 45", "40, 70"})
    for (const BlockTilesFields& own : {kOnTensorCores, at_once, shared}) {
      const bool is_odd = std::string_view(w_dims) == "40, 70";  // no pieces of 16 bytes
      const KernelBody body = tf32_body(50, is_odd ? 40 : 45, is_odd ? 70 : 72, w_dims);
      SCOPED_TRACE(print(body.graph));
      Rng rng(1);
      std::vector<Tensor> inputs = random_inputs(body.graph, rng);
      const TileProgram program = build_kernel(body, tiles_of(own), "k").value();
      const Tensor rough = interpret(program, inputs).value()[0];
      const Tensor exact = evaluate(body.graph, inputs, {.numerics = Numerics::wide}).value()[0];
      double most = 0;
      for (int64_t i = 0; i < exact.elements(); ++i)
        most = std::max(most, std::abs(rough.real_at(i) - exact.real_at(i)));
      EXPECT_GT(most, 1e-5);
      EXPECT_LT(most, 2e-2);
      for (Tensor& input : inputs) {
        std::vector<double> cut;
        for (int64_t i = 0; i < input.elements(); ++i)
          cut.push_back(std::bit_cast<float>(
              std::bit_cast<uint32_t>(static_cast<float>(input.real_at(i))) & kBits));
        input = Tensor::from_reals(input.type(), cut);
      }
      check_block_kernel(body, tiles_of(own), inputs);
      if (testing::Test::HasFailure()) return;
    }
}

TEST(BlocksTiles, OfTf32ReadLinesWithoutConflicts) {
  for (int depth : {16, 32}) {
    const KernelBody body = tf32_body(64, 64, 96, "64, 96");
    BlockTilesFields own = kOnTensorCores;
    own.depth = depth;
    const TileProgram program = build_kernel(body, tiles_of(own), "k").value();
    EXPECT_NE(print(program).find("copy 4 @lhs["), std::string::npos) << print(program);
    Rng rng(1);
    SimtCounts counts;
    ASSERT_TRUE(interpret(program, random_inputs(body.graph, rng), {.counts = &counts}).ok());
    EXPECT_EQ(counts.bank_conflicts, 0) << print(program);
  }
}

TEST(BlocksTiles, OfTf32SayWhatTheyCannotDo) {
  const KernelBody body = tf32_body(64, 64, 96, "64, 96");
  BlockTilesFields own = kOnTensorCores;
  own.depth = 64;
  EXPECT_THAT(check_schedule(body, tiles_of(own), any_gpu()),
              refuses(ErrorCode::bad_input, "f32 takes 64 points, more than 32"));
}

// ---- Layouts ------------------------------------------------------------------------------------

// A warp's rows end within a block of the layout.
TEST(BlocksTiles, StoreInLayoutsOfBlocks) {
  KernelBody body = product_body("bf16", 56, 40, 32);
  body.outputs[0] = Layout::row_major(2);
  body.outputs[0].parts[0].block = 8;
  body.outputs[0].parts.push_back({.dim = 0, .block = 8, .is_inner = true});
  BlockTilesFields own = kOnTensorCores;
  own.rows = own.own_rows = 16;
  own.own_columns = 32;
  Rng rng(1);
  check_block_kernel(body, tiles_of(own), random_inputs(body.graph, rng));
}

// ---- Planted faults -----------------------------------------------------------------------------

// True if the verifier, the interpreter or the results find that the program is not as it should
// be. The interpreter refuses to read what nobody wrote.
bool is_wrong(const KernelBody& body, const TileProgram& program) {
  if (!verify(program).ok()) return true;
  Rng rng(7);
  const std::vector<Tensor> inputs = random_inputs(body.graph, rng);
  const Result<std::vector<Tensor>> actual = interpret(program, inputs);
  const std::vector<Tensor> expected =
      evaluate(body.graph, inputs, {.numerics = Numerics::rounded}).value();
  return !actual.ok() ||
         !compare((*actual)[0], expected[0], default_tolerance(expected[0].dtype()))->passed();
}

// The n-th place of `from` changed to `to`: found by the verifier, the interpreter or the results.
// False: there are fewer places.
bool finds(const KernelBody& body, const BlockTilesFields& own, const std::string& from,
           const std::string& to, int n) {
  const std::string text =
      changed(print(build_kernel(body, tiles_of(own), "k").value()), from, to, n);
  if (text.empty()) return false;
  const Result<TileProgram> program = parse_tiles(text);
  EXPECT_TRUE(program.ok()) << from;
  EXPECT_TRUE(!program.ok() || is_wrong(body, *program))
      << "the fault " << from << " -> " << to << " at place " << n << " is not found\n"
      << text;
  return true;
}

TEST(BlocksTiles, EachPlantedFaultIsFound) {
  struct Fault {
    std::string from, to;
    int places;
  };
  for (const auto& [body, own] : {std::pair(product_body("f32", 40, 45, 50), kPlain),
                                  std::pair(product_body("bf16", 40, 45, 80), kOnTensorCores)}) {
    const bool by_warps = own.products == Products::matrix;
    const std::vector<Fault> faults = {
        {"barrier\n", "\n", 1},  // a step is read before all have copied it
        {by_warps ? "wait 1\n" : "wait 0\n", "\n", by_warps ? 1 : 2},
        {by_warps ? "wait 1\n" : "wait 0\n", "wait 2\n", 1},
        {"group\n", "\n", 1},  // the copies of the first step belong to the second one
        {by_warps ? "mod(step, 3)" : "mod(step, 2)",
         by_warps ? "mod(step + 1, 3)" : "mod(step + 1, 2)", 1},  // the phase of the ring
        {"< 40", "< 39", 1},
        {"< 40", "< 41", 1},
        {by_warps ? "< 80" : "< 50", by_warps ? "< 72" : "< 49", 1}};
    for (const Fault& fault : faults)
      for (int n = 0; n < fault.places; ++n)
        EXPECT_TRUE(finds(body, own, fault.from, fault.to, n)) << fault.from << " " << n;
    // A swizzle that those who write and those who read do not share, on either side.
    if (by_warps)
      for (int n = 0; n < 2; ++n)
        EXPECT_TRUE(finds(body, own, "floordiv(mod(t, 8), 2)", "0", n)) << n;
  }
}

// ---- What is refused ----------------------------------------------------------------------------

TEST(BlocksTiles, SayWhatTheyCannotDo) {
  const KernelBody body = product_body("f32", 64, 64, 64);
  const auto status = [&](BlockTilesFields own) {
    return check_schedule(body, tiles_of(own), any_gpu());
  };
  EXPECT_TRUE(status(kPlain).ok());
  EXPECT_THAT(check_schedule(body, tiles_of(kPlain), Target{}),
              refuses(ErrorCode::unsupported, "GPU"));
  EXPECT_THAT(check_schedule(product_body("i32", 64, 64, 64), tiles_of(kInParts), any_gpu()),
              refuses(ErrorCode::unsupported, "bf16, f16 and f32 alone"));
  BlockTilesFields own = kPlain;
  own.rows = 48;
  EXPECT_THAT(status(own), refuses(ErrorCode::bad_input, "48 rows"));
  own = kPlain;
  own.own_rows = 3;
  EXPECT_THAT(status(own), refuses(ErrorCode::bad_input, "thread ... 3 rows"));
  own = {.rows = 128, .columns = 128, .depth = 16};
  EXPECT_THAT(status(own), refuses(ErrorCode::unsupported, "16384 threads"));
  own = {.rows = 128, .columns = 128, .depth = 64, .own_rows = 8, .own_columns = 8};
  EXPECT_THAT(status(own), refuses(ErrorCode::limit, "bytes"));
  own = {.rows = 64,
         .columns = 64,
         .depth = 16,
         .own_rows = 64,
         .own_columns = 64,
         .products = Products::matrix};
  EXPECT_THAT(check_schedule(split_body(64, 64, 64), tiles_of(own), any_gpu()),
              refuses(ErrorCode::limit, "128 sums, more than 64"));
  own = kPlain;
  own.shares = 1;
  EXPECT_THAT(status(own), refuses(ErrorCode::bad_input, "1 blocks share"));
  own.shares = 4;
  own.splits = 2;
  EXPECT_THAT(status(own), refuses(ErrorCode::unsupported, "splits = 1"));
  own.splits = 1;
  own.shares = 16;  // of 16 steps
  EXPECT_THAT(status(own), refuses(ErrorCode::unsupported, "16 steps...two for each"));
  own = kPlain;
  own.products = Products::quads;
  EXPECT_THAT(status(own), refuses(ErrorCode::unsupported, "quads"));
  Schedule order = tiles_of(kPlain);
  order.order = {1, 0};
  EXPECT_THAT(check_schedule(body, order, any_gpu()), refuses(ErrorCode::bad_input, "ascending"));
}

}  // namespace
}  // namespace hone::HONE_FILE
