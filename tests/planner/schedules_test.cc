#include "planner/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "cost/analytic.h"
#include "cost/gpu_cost.h"
#include "ir/text.h"
#include "plan/planned_kernels.h"
#include "planner/schedules.h"
#include "rewrite/prepare.h"
#include "target/gpu_presets.h"
#include "tests/program/random_kernels.h"
#include "tests/target/target_testing.h"
#include "zoo/random/generator.h"

// Which schedules the planner finds for kernels: algorithms, threads, products.

namespace hone::HONE_FILE {
namespace {

Target target() { return parse_target(kSampleTarget, "t").value(); }

// One image of few tiles: threads that divide it would each read all weights.
TEST(PlannerSchedules, ThreadsDivideTheFeaturesOfASmallImage) {
  Builder b;
  Rng rng(1);
  const Value weights = b.constant(random_tensor(Type::get(DType::f32, {512, 512, 3, 3}), rng));
  const Value x = b.parameter("x", DType::f32, {1, 512, 7, 7});
  const Value y =
      b.op(Opcode::conv, {x, weights}, {{"pad_low", Ints{1, 1}}, {"pad_high", Ints{1, 1}}});
  const Graph graph = prepare(b.finish({y}).value()).value();
  const AnalyticCost cost(target());
  Plan given;
  given.threads = 2;
  const Plan plan = complete(graph, given, target(), cost, {}).value();
  const PlannedKernel kernel = planned_kernels(graph, plan).value().at("k0");
  ASSERT_EQ(kernel.schedule->algorithm(), Algorithm::winograd) << print(plan);
  EXPECT_GT(kernel.schedule->get<WinogradFields>().parts, 1) << print(plan);
  EXPECT_EQ(kernel.schedule->threads, 4);
  Schedule whole = *kernel.schedule;
  whole.get<WinogradFields>().parts = 0;
  EXPECT_LT(cost.launch(kernel.body, *kernel.schedule, 2),
            0.8 * cost.launch(kernel.body, whole, 2));
}

// A product of few rows with weights: the rows are packed once, or once by each thread.
TEST(PlannerSchedules, ThreadsDivideProductsOfFewRowsInLargeBlocks) {
  const AnalyticCost cost(target());
  const auto seconds = [&](int64_t features, int64_t threads) {
    Builder b;
    Rng rng(1);
    const Value weights = b.constant(random_tensor(Type::get(DType::f32, {features, 1024}), rng));
    const Value x = b.parameter("x", DType::f32, {50, 1, 1024});
    const Value y =
        b.op(Opcode::dot, {x, weights}, {{"lhs_contract", Ints{2}}, {"rhs_contract", Ints{1}}});
    const Graph graph = prepare(b.finish({y}).value()).value();
    Plan given;
    given.threads = threads;
    const Plan plan = complete(graph, given, target(), cost, {}).value();
    const PlannedKernel kernel = planned_kernels(graph, plan).value().at("k0");
    EXPECT_EQ(kernel.schedule->algorithm(), Algorithm::gemm) << print(plan);
    return cost.launch(kernel.body, *kernel.schedule, threads);
  };
  // With 8,001 rows, each thread takes as many whole tiles, and one what they leave.
  for (int64_t features : {4096, 8001})
    EXPECT_LT(seconds(features, 2), 0.6 * seconds(features, 1)) << features;
}

// A conv in groups of `channels` channels between others.
Graph groups_between_convs(int64_t channels, int64_t image) {
  Builder b;
  Rng rng(1);
  const auto conv = [&](Value x, int64_t side, int64_t groups) {
    const int64_t features = x.dim(1).value();
    const Type type = Type::get(DType::f32, {features, features / groups, side, side});
    return b.op(Opcode::conv, {x, b.constant(random_tensor(type, rng))},
                {{"pad_low", Ints{side / 2, side / 2}},
                 {"pad_high", Ints{side / 2, side / 2}},
                 {"groups", groups}});
  };
  const Value x = b.parameter("x", DType::f32, {1, 256, image, image});
  const Value y = conv(conv(conv(x, 1, 1), 3, 256 / channels), 1, 1);
  return prepare(b.finish({y}).value()).value();
}

TEST(PlannerSchedules, ConvsInGroupsHaveRegisterTilesAlongTheirFeatures) {
  const Graph graph = groups_between_convs(16, 14);
  const AnalyticCost cost(target());
  // The price of the one in groups, between the two others.
  const auto seconds = [&](const PlannerOptions& options) {
    const Plan plan = complete(graph, {}, target(), cost, options).value();
    const PlannedKernel kernel = planned_kernels(graph, plan).value().at("k1");
    return cost.launch(kernel.body, *kernel.schedule, plan.threads.value_or(1));
  };
  PlannerOptions all, options;
  ASSERT_TRUE(leave_out(all.heuristics, "winograd").ok());
  ASSERT_TRUE(leave_out(options.heuristics, "winograd").ok());
  ASSERT_TRUE(leave_out(options.heuristics, "shared_columns").ok());
  EXPECT_LT(1.02 * seconds(all), seconds(options));
}

// Not where a group has too few channels to make up for what the transforms take.
TEST(PlannerSchedules, ConvsInGroupsAreTransformedWhereThatPays) {
  const auto algorithm = [](int64_t channels, int64_t image) {
    const Graph graph = groups_between_convs(channels, image);
    const Plan alone = parse_plan("plan @g { threads = 1 }").value();
    const Plan plan = complete(graph, alone, target(), AnalyticCost(target())).value();
    return planned_kernels(graph, plan).value().at("k1").schedule->algorithm();
  };
  EXPECT_NE(algorithm(4, 28), Algorithm::winograd);
  EXPECT_EQ(algorithm(16, 28), Algorithm::winograd);
}

// A conv of bytes, less what is lost by rounding.
Value quantized_conv(Value x, std::string_view name, int64_t channels = 64) {
  Builder& b = x.builder();
  Rng rng(static_cast<uint64_t>(name[0]));
  const Type type = Type::get(DType::i8, {channels, channels, 1, 1});
  const Value w = b.constant(random_tensor(type, rng), name);
  const Value sum = b.op(Opcode::conv, {x, w}, {{"accumulate", std::string("i32")}});
  return cast(cast(sum, DType::f32) * 0.01, DType::u8);
}

TEST(PlannerSchedules, ProductsOfBytesAreQuadsOrOnAMatrixUnit) {
  Builder b;
  const Value x = b.parameter("x", DType::u8, {1, 64, 28, 28});
  const Graph graph =
      prepare(b.finish({quantized_conv(quantized_conv(x, "v"), "w")}).value()).value();
  const auto count = [&](Products products, const PlannerOptions& options) {
    const Plan plan = complete(graph, {}, target(), AnalyticCost(target()), options).value();
    int count = 0;
    for (const auto& [kernel, schedule] : plan.schedule)
      if (const auto* own = schedule.if_is<GemmFields>())
        count += own->products == products ? 1 : 0;
    return count;
  };
  EXPECT_GE(count(Products::matrix, {}), 1);
  PlannerOptions options;
  ASSERT_TRUE(leave_out(options.heuristics, "matrix").ok());
  EXPECT_EQ(count(Products::matrix, options), 0);
  EXPECT_GE(count(Products::quads, options), 1);
  ASSERT_TRUE(leave_out(options.heuristics, "quads").ok());
  EXPECT_EQ(count(Products::quads, options), 0);
}

// Where the graph permits it and the machine has the unit; f16 has no numbers that it takes for 0.
// Large ones, in which packing for eight threads pays.
TEST(PlannerSchedules, ProductsOfRealsAreOnAMatrixUnit) {
  Target unit = target();
  unit.extensions.insert(Extension::amx_bf16);
  unit.peak(DType::bf16) = 16 * unit.peak(DType::f32);
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    Builder b;
    const Value x = b.parameter("x", dtype, {1024, 1024}),
                w = b.parameter("w", dtype, {1024, 1024});
    const Attrs contract = {{"lhs_contract", Ints{1}}, {"rhs_contract", Ints{0}}};
    const Graph graph = b.finish({b.op(Opcode::dot, {x, w}, contract)}).value();
    for (bool flushes : {false, true}) {
      const Graph prepared = prepare(graph, {.flushes_denormals = flushes}).value();
      const Plan plan = complete(prepared, {}, unit).value();
      const Products products = plan.schedule.begin()->second.get<GemmFields>().products;
      EXPECT_EQ(products == Products::matrix, flushes || dtype == DType::f16) << name(dtype);
    }
  }
}

// Where the graph permits it and the machine has the instruction.
TEST(PlannerSchedules, ProductsOfBf16ArePairs) {
  Builder b;
  const Value x = b.parameter("x", DType::bf16, {256, 256});
  const Value w = b.parameter("w", DType::bf16, {256, 256});
  const Graph graph =
      b.finish({b.op(Opcode::dot, {x, w}, {{"lhs_contract", Ints{1}}, {"rhs_contract", Ints{0}}})})
          .value();
  const auto products = [&](bool flushes, const Target& target, const PlannerOptions& options) {
    const Graph prepared = prepare(graph, {.flushes_denormals = flushes}).value();
    const Plan plan = complete(prepared, {}, target, AnalyticCost(target), options).value();
    return plan.schedule.begin()->second.get<GemmFields>().products;
  };
  EXPECT_EQ(products(true, target(), {}), Products::pairs);
  EXPECT_EQ(products(false, target(), {}), Products::plain);
  Target older = target();
  older.extensions.erase(Extension::avx512_bf16);
  EXPECT_EQ(products(true, older, {}), Products::plain);
  PlannerOptions options;
  ASSERT_TRUE(leave_out(options.heuristics, "pairs").ok());
  EXPECT_EQ(products(true, target(), options), Products::plain);
}

// A row alone has no registers to share, but lanes.
TEST(PlannerSchedules, ARowOfBytesIsMultipliedInQuads) {
  Builder b;
  Rng rng(1);
  const Value x = b.parameter("x", DType::u8, {1, 512});
  const Value w = b.constant(random_tensor(Type::get(DType::i8, {512, 1000}), rng), "w");
  const Value sum = b.op(
      Opcode::dot, {x, w},
      {{"lhs_contract", Ints{1}}, {"rhs_contract", Ints{0}}, {"accumulate", std::string("i32")}});
  const Plan plan = complete(prepare(b.finish({sum}).value()).value(), {}, target()).value();
  ASSERT_EQ(plan.schedule.size(), 1u);
  const Schedule& schedule = plan.schedule.begin()->second;
  ASSERT_NE(schedule.if_is<GemmFields>(), nullptr) << print(plan);
  EXPECT_EQ(schedule.get<GemmFields>().products, Products::quads);
  EXPECT_EQ(schedule.lanes.size(), 1u);
}

// Words of weights that fill whole pages have room in a cache: nothing is packed for each run.
TEST(PlannerSchedules, WeightsOfBytesLieInWords) {
  Builder b;
  Rng rng(1);
  const Value x = b.parameter("x", DType::u8, {1, 512, 7, 7});
  const Value w = b.constant(random_tensor(Type::get(DType::i8, {512, 512, 3, 3}), rng), "w");
  const Value y =
      b.op(Opcode::conv, {quantized_conv(x, "v", 512), w},
           {{"pad_low", Ints{1, 1}}, {"pad_high", Ints{1, 1}}, {"accumulate", std::string("i32")}});
  const Graph graph =
      prepare(
          b.finish({quantized_conv(cast(cast(y, DType::f32) * 0.01, DType::u8), "u", 512)}).value())
          .value();
  Target machine = target();
  machine.isa = Isa::avx512;
  machine.extensions = {Extension::avx512_vnni};
  machine.caches = {{.bytes = 32 << 10, .bytes_per_second = 384e9},
                    {.bytes = 1 << 20, .bytes_per_second = 96e9},
                    {.bytes = 32 << 20, .cores = 2, .bytes_per_second = 24e9}};
  const Plan plan = complete(graph, {}, machine).value();
  const Layout::Part last = plan.layout.at("w").parts.back();
  EXPECT_TRUE(last.dim == 1 && last.block == 4 && last.is_inner) << print(plan);
}

// Otherwise one of them would write sums of i32 for the kernel of the other.
TEST(PlannerSchedules, KernelsOfContractionsWriteWhatIsNarrow) {
  Builder b;
  const Value x = b.parameter("x", DType::u8, {1, 64, 28, 28});
  const auto reals = [](Value v) { return cast(v, DType::f32); };
  const Value sum = reals(quantized_conv(x, "v")) + reals(quantized_conv(x, "w"));
  const Graph graph = prepare(b.finish({cast(sum * 0.5, DType::u8)}).value()).value();
  const Plan plan = complete(graph, {}, target()).value();
  ASSERT_EQ(plan.fuse.size(), 2u) << print(plan);
  for (const Group& group : plan.fuse) EXPECT_GT(group.nodes.size(), 3u) << print(plan);
}

// ---- GPUs ---------------------------------------------------------------------------------------

// The schedules of a graph on a GPU.
std::vector<Schedule> on_gpu(std::string_view text, const Heuristics& heuristics = {},
                             const Target& gpu = *preset_gpu("sm_90")) {
  const Graph graph = prepare(parse_graph(text).value()).value();
  const Plan plan = complete(graph, {}, gpu, GpuCost(gpu), {.heuristics = heuristics}).value();
  std::vector<Schedule> all;
  for (const auto& [hash, schedule] : plan.schedule) all.push_back(schedule);
  return all;
}

TEST(PlannerSchedules, BlocksOfAGpuHaveLongRows) {
  constexpr std::string_view kSoftmax =
      "graph @g(%x: f32[1024, 4096]) { %y = softmax %x {axis = 1} return %y }";
  const std::vector<Schedule> all = on_gpu(kSoftmax);
  ASSERT_EQ(all.size(), 1U);
  ASSERT_EQ(all[0].algorithm(), Algorithm::block_rows) << print(all[0]);
  EXPECT_EQ(all[0].threads, 1);
  EXPECT_EQ(all[0].get<BlockRowsFields>().kept, 1);
  EXPECT_GT(all[0].get<BlockRowsFields>().warps, 1);
  Heuristics without;
  without.rows = false;
  for (const Schedule& schedule : on_gpu(kSoftmax, without))
    EXPECT_NE(schedule.algorithm(), Algorithm::block_rows);
  // A thread adds a few numbers by itself.
  const std::vector<Schedule> short_rows =
      on_gpu("graph @g(%x: f32[65536, 2]) { %y = reduce %x {kind = sum, axes = [1]} return %y }");
  EXPECT_EQ(short_rows.at(0).algorithm(), Algorithm::nest) << print(short_rows[0]);
}

// The only kernel of a graph on a GPU.
Schedule one_on_gpu(std::string_view text) {
  const std::vector<Schedule> all = on_gpu(text);
  EXPECT_EQ(all.size(), 1U);
  return all.at(0);
}

TEST(PlannerSchedules, BlocksOfAGpuShareOpsWithAnOrder) {
  const Schedule scan = one_on_gpu(
      "graph @g(%x: f32[1000000]) { %y = cumulative %x {kind = sum, axis = 0} return %y }");
  ASSERT_EQ(scan.algorithm(), Algorithm::block_scan) << print(scan);
  EXPECT_GT(scan.get<BlockScanFields>().parts, 1);
  const Schedule rows = one_on_gpu(
      "graph @g(%x: f32[4096, 4096]) { %y = cumulative %x {kind = sum, axis = 1} return %y }");
  ASSERT_EQ(rows.algorithm(), Algorithm::block_scan) << print(rows);
  const Schedule sort = one_on_gpu(
      "graph @g(%x: f32[50257], %p: i32[50257]) { %y, %q = sort %x, %p "
      "{axis = 0, descending = true} return %y, %q }");
  EXPECT_EQ(sort.algorithm(), Algorithm::block_sort) << print(sort);
  const Schedule scatter = one_on_gpu(
      "graph @g(%x: f32[50257, 768], %i: i64[1024, 1], %u: f32[1024, 768]) { %y = scatter %x, %i, "
      "%u {window_dims = [1], inserted_dims = [0], index_map = [0], index_vector_dim = 1, "
      "combine = add} return %y }");
  EXPECT_EQ(scatter.algorithm(), Algorithm::block_scatter) << print(scatter);
}

TEST(PlannerSchedules, BlocksOfAGpuShareFewSums) {
  const Schedule all = one_on_gpu(
      "graph @g(%x: f32[4096, 4096]) { %y = reduce %x {kind = sum, axes = [0, 1]} return %y }");
  ASSERT_EQ(all.algorithm(), Algorithm::block_sums) << print(all);
  EXPECT_GT(all.get<BlockSumsFields>().splits, 1);
  const Schedule columns = one_on_gpu(
      "graph @g(%x: f32[8192, 1024]) { %y = reduce %x {kind = sum, axes = [0]} return %y }");
  ASSERT_EQ(columns.algorithm(), Algorithm::block_sums) << print(columns);
  EXPECT_EQ(columns.get<BlockSumsFields>().columns, 32);
  const Schedule vector = one_on_gpu(
      "graph @g(%x: f32[1, 4096], %w: f32[4096, 4096]) { %y = dot %x, %w "
      "{lhs_contract = [1], rhs_contract = [0]} return %y }");
  ASSERT_EQ(vector.algorithm(), Algorithm::block_sums) << print(vector);
  EXPECT_EQ(vector.get<BlockSumsFields>().columns, 32);
  const Schedule rows = one_on_gpu(
      "graph @g(%x: f32[4, 4096], %w: f32[4096, 4096]) { %y = dot %x, %w "
      "{lhs_contract = [1], rhs_contract = [0]} return %y }");
  ASSERT_EQ(rows.algorithm(), Algorithm::block_sums) << print(rows);
  EXPECT_GT(rows.get<BlockSumsFields>().splits, 1);
}

TEST(PlannerSchedules, BlocksOfAGpuTransposeInTheirMemory) {
  const Schedule schedule = one_on_gpu(
      "graph @g(%x: f32[4096, 4096]) { %t = transpose %x {permutation = [1, 0]} "
      "%y = exp %t return %y }");
  ASSERT_EQ(schedule.algorithm(), Algorithm::block_copy) << print(schedule);
  EXPECT_EQ(schedule.order, (std::vector<int>{0, 1}));
}

TEST(PlannerSchedules, BlocksOfAGpuHaveTilesOfProducts) {
  const auto product = [](std::string_view dtype, const Heuristics& heuristics = {}) {
    const std::vector<Schedule> all =
        on_gpu(fmt::format("graph @g(%x: {0}[2048, 1024], %w: {0}[1024, 2048]) {{ %y = dot %x, %w "
                           "{{lhs_contract = [1], rhs_contract = [0]}} return %y }}",
                           dtype),
               heuristics);
    return all.at(0);
  };
  for (const auto& [dtype, products] :
       {std::pair("i32", Products::plain), {"f32", Products::matrix}, {"bf16", Products::matrix}}) {
    const Schedule schedule = product(dtype);
    ASSERT_EQ(schedule.algorithm(), Algorithm::block_tiles) << print(schedule);
    EXPECT_EQ(schedule.get<BlockTilesFields>().products, products) << dtype;
  }
  Heuristics without;
  without.matrix = false;
  EXPECT_EQ(product("bf16", without).get<BlockTilesFields>().products, Products::plain);
  without.gemm = false;
  EXPECT_NE(product("f32", without).algorithm(), Algorithm::block_tiles);
}

// Transforms pay where many channels are summed. Preparing would withdraw the permission: it asks
// constant weights.
TEST(PlannerSchedules, TilesOfConvsAreTransformedOnAGpu) {
  const Target gpu = *preset_gpu("sm_90");
  const auto conv = [](int64_t channels, const Target& target, const Heuristics& heuristics = {},
                       int64_t images = 32) {
    const Graph graph =
        parse_graph(fmt::format("graph @g(%x: f32[{1}, {0}, 28, 28], %w: f32[{0}, {0}, 3, 3]) {{ "
                                "%y = conv %x, %w {{pad_low = [1, 1], pad_high = [1, 1], winograd "
                                "= 4}} return %y }}",
                                channels, images))
            .value();
    const Plan plan =
        complete(graph, {}, target, GpuCost(target), {.heuristics = heuristics}).value();
    return plan.schedule.begin()->second;
  };
  const Schedule many = conv(256, gpu), few = conv(3, gpu);
  ASSERT_EQ(many.algorithm(), Algorithm::block_winograd) << print(many);
  EXPECT_EQ(many.get<BlockWinogradFields>().points, 4);
  EXPECT_NE(few.algorithm(), Algorithm::block_winograd) << print(few);
  Heuristics without;
  ASSERT_TRUE(leave_out(without, "winograd").ok());
  EXPECT_EQ(conv(256, gpu, without).algorithm(), Algorithm::block_tiles);
  // The transformed tiles of 256 images are 925 MB: too many for code of cards of any size.
  Target card = gpu;
  card.cpu = "a card that is there";
  EXPECT_EQ(conv(256, gpu, {}, 256).algorithm(), Algorithm::block_tiles);
  EXPECT_EQ(conv(256, card, {}, 256).algorithm(), Algorithm::block_winograd);
}

// Only chips of capability 9.0 have their instructions.
TEST(PlannerSchedules, WarpgroupsOfHopperMultiplyLargeProducts) {
  const auto groups = [](int64_t capability, std::string_view dtype) {
    const Schedule schedule =
        on_gpu(fmt::format("graph @g(%x: {0}[2048, 1024], %w: {0}[2048, 1024]) {{ %y = dot %x, %w "
                           "{{lhs_contract = [1], rhs_contract = [1]}} return %y }}",
                           dtype),
               {}, gpu_like_preset(capability))
            .at(0);
    return schedule.get<BlockTilesFields>().groups;
  };
  EXPECT_EQ(groups(90, "bf16"), 1);
  EXPECT_EQ(groups(90, "f16"), 1);
  EXPECT_EQ(groups(90, "f32"), 1);
  EXPECT_EQ(groups(90, "i32"), 0);
  for (int64_t capability : {80, 89, 100}) EXPECT_EQ(groups(capability, "bf16"), 0) << capability;
}

// A few tiles with long sums would leave most of the chip idle.
TEST(PlannerSchedules, BlocksOfAGpuDivideLongSumsOfFewTiles) {
  const auto splits = [](int64_t lines, int64_t points) {
    const Schedule schedule =
        on_gpu(fmt::format("graph @g(%x: bf16[{0}, {1}], %w: bf16[{1}, {0}]) {{ %y = dot %x, %w "
                           "{{lhs_contract = [1], rhs_contract = [0]}} return %y }}",
                           lines, points))
            .at(0);
    const auto* own = schedule.if_is<BlockTilesFields>();
    EXPECT_NE(own, nullptr) << print(schedule);
    return own == nullptr ? 0 : own->splits;
  };
  EXPECT_GT(splits(128, 16384), 1);
  EXPECT_EQ(splits(4096, 1024), 1);
}

// 150 tiles of 128 x 64 would leave most of 132 processors idle in their second turn.
TEST(PlannerSchedules, BlocksOfAGpuShareTheStepsOfUnevenTiles) {
  const Schedule schedule =
      on_gpu(
          "graph @g(%x: f32[1920, 4096], %w: f32[4096, 640]) { %y = dot %x, %w "
          "{lhs_contract = [1], rhs_contract = [0]} return %y }")
          .at(0);
  const auto* own = schedule.if_is<BlockTilesFields>();
  ASSERT_NE(own, nullptr) << print(schedule);
  EXPECT_GT(own->shares, 0) << print(schedule);
}

constexpr std::string_view kAttention =
    "graph @g(%q: f32[1, 12, 128, 64], %k: f32[1, 12, 128, 64], %v: f32[1, 12, 128, 64]) { "
    "%s = dot %q, %k {lhs_batch = [0, 1], rhs_batch = [0, 1], lhs_contract = [3], "
    "rhs_contract = [3]} %p = softmax %s {axis = 3} "
    "%y = dot %p, %v {lhs_batch = [0, 1], rhs_batch = [0, 1], lhs_contract = [3], "
    "rhs_contract = [2]} return %y }";

TEST(PlannerSchedules, BlocksOfAGpuKeepScoresOfAttention) {
  const std::vector<Schedule> all = on_gpu(kAttention);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].algorithm(), Algorithm::block_chain) << print(all[0]);
}

// Tensor cores multiply the steps of long rows. Each block has many queries then.
TEST(PlannerSchedules, BlocksOfAGpuTakeLongRowsOfAttentionInSteps) {
  std::string text(kAttention);
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"f32", "bf16"}, {"128", "2048"}})
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  const std::vector<Schedule> all = on_gpu(text);
  ASSERT_EQ(all.size(), 1U);
  ASSERT_EQ(all[0].algorithm(), Algorithm::block_chain) << print(all[0]);
  const std::vector<Tile>& block = all[0].get<BlockChainFields>().block;
  ASSERT_EQ(block.size(), 2U) << print(all[0]);
  EXPECT_GE(block[0].count, 16);
  EXPECT_EQ(block[1].dim, 4);
}

// A GPU on which chains by blocks take a day.
class DearBlockChains : public GpuCost {
 public:
  using GpuCost::GpuCost;
  std::string version() const override { return "dear " + GpuCost::version(); }
  std::unique_ptr<PricedKernel> kernel(std::shared_ptr<const KernelFacts> facts,
                                       int64_t threads) const override {
    return std::make_unique<Kernel>(GpuCost::kernel(std::move(facts), threads));
  }

 private:
  class Kernel : public PricedKernel {
   public:
    explicit Kernel(std::unique_ptr<PricedKernel> usual) : usual_(std::move(usual)) {}
    void price(std::span<const Schedule> schedules, double limit,
               std::span<double> seconds) override {
      usual_->price(schedules, limit, seconds);
      for (size_t i = 0; i < schedules.size(); ++i)
        if (schedules[i].algorithm() == Algorithm::block_chain) seconds[i] = 86'400;
    }

   private:
    const std::unique_ptr<PricedKernel> usual_;
  };
};

TEST(PlannerSchedules, ChainsByBlocksAreChosenByTheirPrice) {
  const Target gpu = *preset_gpu("sm_90");
  const Graph graph = prepare(parse_graph(kAttention).value()).value();
  const KernelBody body = body_of_all(graph);
  const auto algorithm = [&](const Cost& cost) {
    return (*ScheduleChooser(gpu, cost, 1).choose(body))->schedule.algorithm();
  };
  EXPECT_EQ(algorithm(GpuCost(gpu)), Algorithm::block_chain);
  EXPECT_EQ(algorithm(DearBlockChains(gpu)), Algorithm::chain);
}

}  // namespace
}  // namespace hone::HONE_FILE
