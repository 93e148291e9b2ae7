#include "cost/kernel_price.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "ir/text.h"
#include "kernel/schedule_space.h"
#include "rewrite/prepare.h"
#include "tests/target/target_testing.h"
#include "zoo/random/random_graph.h"

namespace hone::HONE_FILE {
namespace {

Target target() { return parse_target(kSampleTarget, "t").value(); }

// All nodes of a graph as one kernel.
KernelBody body(std::string_view text) {
  const Graph graph = parse_graph(text).value();
  std::vector<NodeId> nodes;
  for (NodeId n : graph.nodes())
    if (graph.opcode(n) != Opcode::parameter && graph.opcode(n) != Opcode::constant)
      nodes.push_back(n);
  return body_of(graph, nodes, {});
}

KernelBody product(int64_t rows, int64_t columns, int64_t depth, DType type = DType::f32) {
  return body(
      fmt::format("graph @g(%x: {3}[{0}, {2}], %w: {3}[{2}, {1}]) -> {3}[{0}, {1}] {{ "
                  "%y = dot %x, %w {{lhs_contract = [1], rhs_contract = [0]}} return %y }}",
                  rows, columns, depth, name(type)));
}

KernelPrice price_of(const KernelBody& body, int64_t threads = 1,
                     const Target& target = HONE_FILE::target()) {
  return KernelPrice(KernelFacts(body), target, {}, threads);
}

constexpr std::string_view kExp =
    "graph @g(%x: f32[1024, 4096]) -> f32[1024, 4096] { %y = exp %x return %y }";
constexpr std::string_view kTransposed = R"(graph @g(%x: f32[100000, 1000]) -> f32[1000, 100000] {
  %y = transpose %x {permutation = [1, 0]}
  return %y
})";

Schedule nest(std::vector<int> order, std::vector<Tile> lanes = {}, std::vector<Tile> unroll = {}) {
  Schedule schedule;
  schedule.own = NestFields();
  schedule.order = std::move(order);
  schedule.lanes = std::move(lanes);
  schedule.unroll = std::move(unroll);
  return schedule;
}

// A product's packed panels with a register tile of rows x lanes.
Schedule gemm(int64_t rows, int64_t lanes) {
  Schedule schedule = nest({0, 1}, {{1, lanes}}, {{0, rows}});
  schedule.own = GemmFields{
      .block = {{0, 16 * rows}}, .pack_lhs = Packing::panels, .pack_rhs = Packing::panels};
  return schedule;
}

TEST(KernelPrice, LanesPayWhereElementsAreNeighbours) {
  const KernelPrice price = price_of(body(kExp));
  const double scalar = price.seconds(nest({0, 1}));
  EXPECT_LT(price.seconds(nest({0, 1}, {{1, 16}})), 0.3 * scalar);
  EXPECT_GT(price.seconds(nest({1, 0}, {{0, 16}})), price.seconds(nest({0, 1}, {{1, 16}})));
}

TEST(KernelPrice, MemoryIsPaidByTheLine) {
  const KernelPrice price = price_of(body(kTransposed));
  // Reading 64-byte lines for 4 bytes each, unless tiles use them up: a column fits no cache.
  const double plain = price.terms(nest({0, 1})).memory;
  EXPECT_GT(plain, 4 * price.terms(nest({0, 1}, {}, {{0, 16}})).memory);
}

TEST(KernelPrice, ThreadsPayForLargeKernelsOnly) {
  const auto gain = [&](std::string_view text) {
    const KernelPrice price = price_of(body(text), 8);
    Schedule schedule = nest({0, 1}, {{1, 16}});
    const double alone = price.seconds(schedule);
    schedule.threads = 1;
    return alone / price.seconds(schedule);
  };
  EXPECT_GT(gain(kExp), 3);
  EXPECT_LT(gain("graph @g(%x: f32[8, 16]) -> f32[8, 16] { %y = exp %x return %y }"), 1);
}

// A tile of 128 rows and one of 69 are two phases, which no two threads work on at once.
TEST(KernelPrice, ThreadsWaitBeforeTheSmallerTilesAtTheEnd) {
  const auto arithmetic = [&](int64_t rows, int64_t tile, int64_t threads) {
    Schedule schedule = gemm(1, 16);
    schedule.get<GemmFields>().block = {{0, tile}};
    schedule.threads = threads > 1 ? 1 : 0;
    return price_of(product(rows, 1024, 1024), threads).terms(schedule).arithmetic;
  };
  EXPECT_DOUBLE_EQ(arithmetic(197, 128, 2), arithmetic(197, 128, 1));
  EXPECT_DOUBLE_EQ(arithmetic(256, 128, 2), arithmetic(256, 128, 1) / 2);
  // Six tiles of 32 are three after another, and five rows come after them.
  EXPECT_DOUBLE_EQ(arithmetic(197, 32, 2), arithmetic(197, 32, 1) * (3 * 32 + 5) / 197);
}

// Groups of a conv are one conv after another.
TEST(KernelPrice, WinogradTakesEachGroupForItself) {
  const auto terms = [&](int64_t groups) {
    const KernelPrice price = price_of(body(fmt::format(
        "graph @g(%x: f32[1, {0}, 14, 14], %w: f32[{0}, 16, 3, 3]) {{ %y = conv %x, %w "
        "{{pad_low = [1, 1], pad_high = [1, 1], groups = {1}, winograd = 4}} return %y }}",
        16 * groups, groups)));
    return price.terms({.order = {0, 2, 3, 1},
                        .lanes = {{1, 16}},
                        .unroll = {{3, 4}},
                        .own = WinogradFields{.points = 4, .block = {{2, 4}, {3, 4}}}});
  };
  const KernelTerms two = terms(2), all = terms(8);
  EXPECT_GT(two.total(), 2 * terms(1).total());  // nothing is hidden, and more counts
  EXPECT_DOUBLE_EQ(all.arithmetic, 4 * two.arithmetic);
  EXPECT_DOUBLE_EQ(all.access, 4 * two.access);
  EXPECT_DOUBLE_EQ(all.overhead, 4 * two.overhead);
  EXPECT_GE(all.memory, 4 * two.memory);
}

// Rows are packed once for all columns, but by each trip anew if threads share the columns, too.
TEST(KernelPrice, ThreadsHaveNoPackedOperandInCommon) {
  const auto overhead = [&](int divided) {
    Schedule schedule = gemm(14, 32);
    schedule.get<GemmFields>().pack_rhs = Packing::no;
    schedule.threads = divided;
    return price_of(product(1008, 4096, 64), 2).terms(schedule).overhead;
  };
  EXPECT_GT(overhead(2), 3 * overhead(1));
}

TEST(KernelPrice, RegisterTilesOfProductsReachThePeak) {
  const KernelPrice price = price_of(product(1008, 1024, 1024));
  const double flops = 2.0 * 1008 * 1024 * 1024;
  const auto efficiency = [&](const Schedule& schedule) {
    return flops / price.seconds(schedule) / target().peak(DType::f32);
  };
  EXPECT_GT(efficiency(gemm(14, 32)), 0.6);
  EXPECT_LT(efficiency(gemm(14, 32)), 1);
  EXPECT_GT(efficiency(gemm(14, 32)), 1.5 * efficiency(gemm(1, 16)));
  EXPECT_GT(efficiency(gemm(14, 32)), 1.1 * efficiency(gemm(28, 64)));  // too many registers
  EXPECT_LT(efficiency(nest({0, 1})), 0.05);
}

// Two vectors of six rows each leave room for both vectors and the number that goes to all their
// lanes; of seven rows they do not. AVX-512 takes that number from memory.
TEST(KernelPrice, ANumberForAllLanesTakesARegister) {
  const KernelBody body = product(1008, 1024, 1024);
  const auto arithmetic = [&](Isa isa, int64_t rows, int64_t lanes) {
    return price_of(body, 1, restricted(target(), isa)).terms(gemm(rows, lanes)).arithmetic;
  };
  EXPECT_DOUBLE_EQ(arithmetic(Isa::avx2, 6, 16), arithmetic(Isa::avx2, 4, 16));
  EXPECT_GT(arithmetic(Isa::avx2, 7, 16), 1.1 * arithmetic(Isa::avx2, 6, 16));
  EXPECT_DOUBLE_EQ(arithmetic(Isa::avx512, 14, 32), arithmetic(Isa::avx512, 7, 32));
}

// The loop of a sum is as short with a long epilogue behind it as without: what is read more slowly
// is the epilogue alone.
TEST(KernelPrice, CodeBehindASumDoesNotSlowTheSum) {
  std::string text =
      "graph @g(%x: f32[1008, 1024], %w: f32[1024, 1024]) -> f32[1008, 1024] {\n"
      "%0 = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}\n";
  for (int i = 0; i < 16; ++i) text += fmt::format("%{} = exp %{}\n", i + 1, i);
  const KernelBody with_epilogue = body(text + "return %16 }"), plain = product(1008, 1024, 1024);
  const double exps = price_of(body(kExp)).terms(nest({0, 1}, {{1, 16}})).arithmetic * 16 *
                      (1008 * 1024.0) / (1024 * 4096.0);
  for (const Schedule& schedule : {gemm(14, 32), gemm(6, 16)}) {
    const double sum = price_of(plain).terms(schedule).arithmetic;
    const double both = price_of(with_epilogue).terms(schedule).arithmetic;
    EXPECT_GT(both, sum + 0.9 * exps);
    EXPECT_LT(both, sum + 8 * exps);  // code of 28 x 16 exps is read slowly
  }
}

// Lanes along the features of a group read each of its channels once for all of them; those of two
// groups take two vectors and choose. A window has no padding to ask for.
TEST(KernelPrice, LanesOfAGroupShareItsChannels) {
  const auto seconds = [](int64_t groups, Packing packing) {
    KernelBody conv = body(
        fmt::format("graph @g(%x: f32[1, 128, 14, 14], %w: f32[128, {}, 3, 3]) {{ %y = conv %x, "
                    "%w {{pad_low = [1, 1], pad_high = [1, 1], groups = {}}} return %y }}",
                    128 / groups, groups));
    conv.inputs[0] = conv.outputs[0] = parse_layout("[0, 1/16, 2, 3, 1%16]").value();
    conv.inputs[1] = parse_layout("[0/16, 2, 3, 1, 0%16]").value();
    Schedule schedule = nest({0, 1, 2, 3}, {{1, 16}}, {{3, 14}});
    schedule.own = GemmFields{.block = {{2, 14}}, .pack_lhs = packing};
    EXPECT_TRUE(check_schedule(conv, schedule, target()).ok());
    return price_of(conv).seconds(schedule) * static_cast<double>(groups);
  };
  const double whole = seconds(8, Packing::window);
  EXPECT_LT(whole, 1.4 * seconds(1, Packing::window));
  EXPECT_GT(seconds(16, Packing::window), 1.4 * whole);
  EXPECT_GT(seconds(8, Packing::no), 1.4 * whole);
}

TEST(KernelPrice, SumsTakeWhatTheirTypeTakes) {
  // With peaks `times` times as high as the sample's, or as those of f32 where it has none.
  const auto terms = [](DType type, DType changed, double times) {
    Target target = HONE_FILE::target();
    const double other = target.peak(DType::f32) * 32 / bits(changed);
    target.peak(changed) = times * (target.peak(changed) > 0 ? target.peak(changed) : other);
    return price_of(product(256, 256, 256, type), 1, target).terms(gemm(8, 16));
  };
  for (DType type : {DType::f64, DType::i32, DType::i64}) {
    const KernelTerms slow = terms(type, type, 0.25), fast = terms(type, type, 1);
    EXPECT_NEAR(slow.arithmetic, 4 * fast.arithmetic, 1e-9 * slow.arithmetic) << name(type);
    EXPECT_EQ(slow.access, fast.access) << name(type);
    EXPECT_EQ(fast.arithmetic, terms(type, DType::f16, 1).arithmetic) << name(type);
  }
  // No code reaches these.
  for (DType type : {DType::f16, DType::bf16, DType::i8}) {
    EXPECT_EQ(terms(type, type, 0.25).arithmetic, terms(type, type, 1).arithmetic) << name(type);
    EXPECT_EQ(terms(type, type, 1).arithmetic, terms(DType::f32, type, 1).arithmetic);
  }
}

// Panels have them as f32; code without panels makes that of them at each use.
TEST(KernelPrice, SmallRealsAreWidenedInPanels) {
  const auto arithmetic = [](DType type, Packing packing) {
    Schedule schedule = gemm(8, 16);
    schedule.get<GemmFields>().pack_lhs = schedule.get<GemmFields>().pack_rhs = packing;
    return price_of(product(256, 256, 256, type)).terms(schedule).arithmetic;
  };
  for (DType type : {DType::f16, DType::bf16}) {
    EXPECT_EQ(arithmetic(type, Packing::panels), arithmetic(DType::f32, Packing::panels));
    EXPECT_GT(arithmetic(type, Packing::no), 1.2 * arithmetic(DType::f32, Packing::no));
  }
}

KernelBody softmax(int64_t rows, int64_t columns) {
  const Graph graph =
      prepare(parse_graph(fmt::format("graph @g(%x: f32[{0}, {1}]) -> f32[{0}, {1}] {{ "
                                      "%y = softmax %x {{axis = 1}} return %y }}",
                                      rows, columns))
                  .value())
          .value();
  std::vector<NodeId> nodes;
  for (NodeId n : graph.nodes())
    if (graph.opcode(n) != Opcode::parameter) nodes.push_back(n);
  return body_of(graph, nodes, {});
}

// Panels of 16 columns: those of 512 rows lie eight pages apart, those of 500 rows do not lie pages
// apart. The sample's first cache has as many places as pages.
TEST(KernelPrice, PanelsPagesApartDisplaceEachOther) {
  const auto access = [&](int64_t depth, int64_t panels) {
    KernelBody vector = product(1, 1024, depth);
    vector.inputs[1] = parse_layout("[1/16, 0, 1%16]").value();
    const KernelPrice price = price_of(vector);
    const Schedule schedule = nest({0, 1}, {{1, 16}}, {{1, panels}});
    Features features;
    price.describe(schedule, features);
    EXPECT_EQ(features.crowded > 0, depth == 512 && panels == 16) << depth << " " << panels;
    return price.terms(schedule).access / static_cast<double>(depth);
  };
  ASSERT_LT(target().caches.front().bytes, 16 * 4096);
  EXPECT_GT(access(512, 16), 1.5 * access(500, 16));
  EXPECT_NEAR(access(512, 8), access(500, 8), 0.1 * access(500, 8));
}

// Eight parts of a concat, each with work of its own.
KernelBody parts() {
  std::string inputs, parts, names;
  for (int i = 0; i < 8; ++i) {
    inputs += fmt::format("{}%x{}: f32[64, 32]", i > 0 ? ", " : "", i);
    parts += fmt::format("%e{0} = exp %x{0}\n", i);
    names += fmt::format("{}%e{}", i > 0 ? ", " : "", i);
  }
  return body(
      fmt::format("graph @g({}) -> f32[512, 32] {{ {} %y = concat {} {{axis = 0}} "
                  "return %y }}",
                  inputs, parts, names));
}

TEST(KernelPrice, BetweenCutsOneOperandIsComputed) {
  const KernelPrice price = price_of(parts());
  const KernelPrice whole =
      price_of(body("graph @g(%x: f32[512, 32]) -> f32[512, 32] { %y = exp %x return %y }"));
  Schedule schedule = nest({0, 1}, {{1, 16}});
  const KernelTerms cut = price.terms(schedule), alone = whole.terms(schedule);
  EXPECT_NEAR(cut.arithmetic, alone.arithmetic, 0.1 * alone.arithmetic);
  EXPECT_NEAR(cut.access, alone.access, 0.1 * alone.access);
  // Loops that threads divide do not end there, and all parts are computed for each point.
  schedule.threads = 1;
  EXPECT_NEAR(price.terms(schedule).arithmetic, 8 * alone.arithmetic, 0.1 * alone.arithmetic);
  EXPECT_GT(price.terms(schedule).access, 2 * alone.access);
}

TEST(KernelPrice, TilesEndAtCuts) {
  const KernelPrice price = price_of(parts());
  EXPECT_EQ(price.seconds(nest({0, 1}, {{1, 16}}, {{0, 128}})),
            price.seconds(nest({0, 1}, {{1, 16}}, {{0, 64}})));
  Features features;
  price.describe(nest({0, 1}, {{0, 64}}), features);
  EXPECT_GT(features.cut, 0.8);
  // Lanes go past a cut.
  price.describe(nest({0, 1}, {{0, 128}}), features);
  EXPECT_EQ(features.cut, 0);
}

// A core follows a few runs of neighbours ahead of time.
TEST(KernelPrice, RunsThatGoOnBeginOnce) {
  const KernelPrice price =
      price_of(body("graph @g(%x: f32[512, 1000]) -> f32[512, 1000] { %y = neg %x return %y }"));
  const auto access = [&](int64_t rows) {
    return price.terms(nest({0, 1}, {{1, 16}}, {{0, rows}})).access;
  };
  EXPECT_EQ(access(8), access(1));
  EXPECT_GT(access(16), 1.5 * access(8));
  // So do blocks of channels.
  KernelBody blocks =
      body("graph @g(%x: f32[512, 1000]) -> f32[512, 1000] { %y = neg %x return %y }");
  blocks.inputs[0] = blocks.outputs[0] = parse_layout("[0/16, 1, 0%16]").value();
  const KernelPrice by_block = price_of(blocks);
  const double few = by_block.terms(nest({0, 1}, {{0, 16}}, {{0, 8}})).access;
  EXPECT_GT(by_block.terms(nest({0, 1}, {{0, 16}}, {{0, 16}})).access, 1.5 * few);
  // Down the columns each tile begins anew.
  EXPECT_GT(price.terms(nest({1, 0}, {{1, 16}})).access, 1.5 * access(1));
}

TEST(KernelPrice, BytesOfLargeTilesComeInBursts) {
  const KernelPrice price = price_of(body(kExp));
  const double small = price.terms(nest({0, 1}, {{1, 16}})).memory;
  const double large = price.terms(nest({0, 1}, {{1, 16}}, {{1, 16}})).memory;
  EXPECT_GT(large, 1.03 * small);
  EXPECT_LT(large, 1.06 * small);
  // An array that is mostly read has no bursts.
  const KernelPrice vector = price_of(product(1, 512, 512));
  const double one = vector.terms(nest({0, 1}, {{1, 16}})).memory;
  EXPECT_NEAR(vector.terms(nest({0, 1}, {{1, 16}}, {{1, 2}})).memory, one, 0.002 * one);
}

TEST(KernelPrice, SumsOfARowAreTakenOnce) {
  const KernelPrice price = price_of(softmax(512, 1024));
  Schedule schedule = nest({0, 1}, {{1, 16}});
  const double scalar_sums = price.seconds(schedule);
  schedule.get<NestFields>().row = 1;
  EXPECT_LT(price.seconds(schedule), 0.5 * scalar_sums);
  // exp twice for each of half a million elements, at some 30 slots of 16 lanes.
  EXPECT_LT(price.seconds(schedule), 1e-3);
}

TEST(KernelPrice, OneReductionReadsAfterAnother) {
  constexpr int64_t kRows = 64, kColumns = 1 << 20;
  Schedule schedule = nest({0, 1}, {{1, 16}});
  schedule.get<NestFields>().row = 1;
  // For the maximum, for the sum and for the quotient, and the result is written.
  const double bytes = 4.0 * 4 * kRows * kColumns;
  EXPECT_LT(price_of(softmax(kRows, kColumns)).terms(schedule).memory,
            1.5 * bytes / target().memory_one_core);
}

// Nothing stands between loops that threads divide, on one thread neither.
TEST(KernelPrice, DividedLoopsTakeSumsAgainInEachTrip) {
  const KernelPrice price = price_of(softmax(512, 1024));
  Schedule schedule = nest({0, 1}, {{1, 16}});
  const auto arithmetic = [&](int divided) {
    schedule.threads = divided;
    return price.terms(schedule).arithmetic;
  };
  EXPECT_EQ(arithmetic(1), arithmetic(0));
  EXPECT_GT(arithmetic(2), 30 * arithmetic(1));  // 64 trips of columns
  // And each trip has to find its place.
  schedule.threads = 0;
  const double alone = price.terms(schedule).overhead;
  schedule.threads = 1;
  EXPECT_GT(price.terms(schedule).overhead, alone);
}

TEST(KernelPrice, SumsGoToMemoryBetweenBlocksOfAReduction) {
  const KernelPrice price = price_of(product(112, 128, 64));
  const auto terms = [&](int64_t depth) {
    Schedule schedule = gemm(14, 32);
    if (depth > 0) schedule.get<GemmFields>().block.push_back({2, depth});
    return price.terms(schedule);
  };
  EXPECT_EQ(terms(64).access, terms(0).access);  // one block is all of it
  EXPECT_GT(terms(16).access, terms(0).access);
  EXPECT_GT(terms(1).access, 3 * terms(1).arithmetic);
}

TEST(KernelPrice, BytesHaveAFactorByWhereTheyComeFrom) {
  const KernelFacts facts(body(kTransposed));
  const auto memory = [&](double Prices::* factor) {
    Prices prices;
    prices.second_cache = prices.third_cache = prices.memory = 0;
    if (factor != nullptr) prices.*factor = 2;
    return KernelPrice(facts, target(), prices, 1).terms(nest({0, 1})).memory;
  };
  EXPECT_EQ(memory(nullptr), 0);
  double most = 0;
  for (double Prices::* factor : {&Prices::second_cache, &Prices::third_cache, &Prices::memory}) {
    EXPECT_GT(memory(factor), 0);
    most = std::max(most, memory(factor));
  }
  EXPECT_DOUBLE_EQ(most, 2 * price_of(body(kTransposed)).terms(nest({0, 1})).memory);
}

// A shared cache holds the whole of a kernel's arrays once, and the trips that threads are at.
TEST(KernelPrice, ThreadsFillASharedCacheTogether) {
  Prices prices;
  prices.second_cache = prices.third_cache = 0;
  const auto from_memory = [&](const KernelBody& body, int64_t threads) {
    Schedule schedule = nest({0, 1}, {{1, 16}});
    schedule.threads = 1;
    return KernelPrice(KernelFacts(body), target(), prices, threads).terms(schedule).memory;
  };
  const auto exps = [](int64_t rows) {
    return body(fmt::format(
        "graph @g(%x: f32[{0}, 1024]) -> f32[{0}, 1024] {{ %y = exp %x return %y }}", rows));
  };
  for (const int64_t threads : {1, 8}) {
    EXPECT_EQ(from_memory(exps(4096), threads), 0);      // 32 of 105 MiB
    EXPECT_GT(from_memory(exps(4 * 4096), threads), 0);  // 128
  }
  // Each image's 20 MiB are read again for each column of its result.
  const KernelBody images = body(R"(graph @g(%x: f32[64, 4096, 1280], %w: f32[64, 1280, 16])
    -> f32[64, 4096, 16] {
    %y = dot %x, %w {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}
    return %y
  })");
  const auto columns_outside = [&](int64_t threads) {
    Schedule schedule = nest({0, 2, 1}, {}, {{1, 4}});
    schedule.threads = 1;
    return KernelPrice(KernelFacts(images), target(), prices, threads).terms(schedule).memory;
  };
  EXPECT_GT(columns_outside(8), 2 * columns_outside(1));
}

// A scatter copies its operand and goes through the updates once, not once for each result.
TEST(KernelPrice, AScatterComesToEachUpdateOnce) {
  const auto seconds = [](int64_t rows, int64_t updates) {
    const KernelBody scatter = body(fmt::format(
        "graph @g(%x: f32[{0}, 768], %i: i64[{1}], %u: f32[{1}, 768]) -> f32[{0}, 768] {{ "
        "%y = scatter %x, %i, %u {{window_dims = [1], inserted_dims = [0], index_map = [0], "
        "index_vector_dim = 1, combine = add}} return %y }}",
        rows, updates));
    return price_of(scatter).seconds({.own = GenericFields()});
  };
  const double copied = price_of(body(kTransposed)).memory_seconds() * 50257 * 768 / 1e8;
  EXPECT_GT(seconds(50257, 1024), copied);
  EXPECT_LT(seconds(50257, 1024), 4 * copied);
  // Few results and many updates: their number decides.
  const double few = seconds(16, 1000), many = seconds(16, 100'000);
  EXPECT_GT(many, 50 * few);
  EXPECT_LT(many, 150 * few);
}

TEST(KernelPrice, EverySchedulePricesToANumber) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Graph graph = prepare(random_graph({.seed = seed, .symbolic = seed % 3 == 0})).value();
    const Users users(graph);
    Rng rng(seed);
    for (NodeId n : graph.nodes()) {
      if (!check_group(graph, users, {&n, 1}).ok()) continue;
      const KernelBody alone = body_of(graph, users, {&n, 1}, {});
      const KernelPrice price = price_of(alone, 4);
      for (int i = 0; i < 4; ++i) {
        const Schedule schedule = random_schedule(alone, target(), rng);
        const double seconds = price.seconds(schedule);
        EXPECT_TRUE(std::isfinite(seconds) && seconds >= 0) << print(alone.graph) << seconds;
        EXPECT_EQ(price.seconds(schedule, 1.01 * seconds + 1e-12), seconds);
        for (const double limit : {0.1 * seconds, 0.9 * seconds})
          EXPECT_GE(price.seconds(schedule, limit), limit);
      }
    }
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
