#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/rng.h"
#include "compile/gpu_kernels.h"
#include "compile/native_model.h"
#include "ir/functional.h"
#include "ir/text.h"
#include "oracle/accuracy_runs.h"
#include "target/gpu_presets.h"
#include "tests/base/says_testing.h"
#include "tests/fake_cuda/backing_testing.h"
#include "zoo/inputs.h"
#include "zoo/zoo.h"

// Whole graphs on the fake GPU.

namespace hone::HONE_FILE {
namespace {

using tested::FakeCuda;
using tested::GpuBacking;
using tested::refuses;

Target card() { return *preset_gpu("sm_90"); }

// All outputs of a few runs, as accurate as the rule asks.
void expect_accurate(const Graph& graph, const Runnable& code) {
  std::vector<std::vector<AccuracyRun>> outputs(graph.outputs().size());
  for (uint64_t seed = 1; seed <= kAccuracyRuns; ++seed) {
    const std::vector<Tensor> inputs = random_inputs(graph, seed).value();
    const auto reference = [&](Numerics numerics) {
      return evaluate(graph, inputs, {.numerics = numerics, .real_outputs_as_f64 = true}).value();
    };
    const std::vector<Tensor> wide = reference(Numerics::wide), fp32 = reference(Numerics::fp32);
    const Result<std::vector<Tensor>> actual = code.run(inputs);
    ASSERT_TRUE(actual.ok()) << actual.error().to_string();
    for (size_t i = 0; i < wide.size(); ++i) outputs[i].push_back({(*actual)[i], wide[i], fp32[i]});
  }
  for (const std::vector<AccuracyRun>& runs : outputs) {
    const Result<Accuracy> result = accuracy(runs);
    ASSERT_TRUE(result.ok()) << result.error().to_string();
    EXPECT_TRUE(result->passed()) << result->to_string();
  }
}

void expect_right(const Graph& graph, const CompileOptions& options = {}) {
  SCOPED_TRACE(graph.name());
  const FakeCuda cuda;
  GpuBacking backing;
  CompileOptions on_device = options;
  on_device.device = cuda.device().value();
  Compilation code(graph, card(), on_device);
  const Status added = backing.add(cuda, *code.program().value(), card());
  ASSERT_TRUE(added.ok()) << added.error().to_string();
  const Result<std::shared_ptr<const Runnable>> runnable = code.runnable();
  ASSERT_TRUE(runnable.ok()) << runnable.error().to_string();
  expect_accurate(graph, **runnable);
}

Graph tiny(std::string_view name) {
  return build_zoo_model(std::string(name), {.size = ZooSize::tiny}).value();
}

TEST(GpuModel, IsAsAccurateAsFp32) {
  for (std::string_view name : {"mlp", "lstm", "squeezenet"}) expect_right(tiny(name));
}

TEST(GpuModel, DISABLED_SweepZoo) {
  for (const ZooEntry& entry : zoo_entries()) expect_right(tiny(entry.name));
}

// Rows of different reductions, and views.
TEST(GpuModel, ReducesAndMovesData) {
  expect_right(parse_graph(R"(
    graph @rows(%x: f32[6, 40]) {
      %s = softmax %x {axis = 1}
      %t = transpose %x {permutation = [1, 0]}
      %r = reduce %x {kind = max, axes = [1]}
      return %s, %t, %r
    })")
                   .value());
}

// Several launches of a kernel pass on what lies in memory of the device.
TEST(GpuModel, OrdersDataAndAddsItUp) {
  expect_right(parse_graph(R"(
    graph @orders(%x: f32[9000], %i: i32[300, 1], %u: f32[300]) {
      %s = sort %x {axis = 0, descending = true}
      %c = cumulative %x {kind = sum, axis = 0}
      %z = scatter %x, %i, %u {window_dims = [], inserted_dims = [0], index_map = [0],
                               index_vector_dim = 1, combine = add}
      %r = reduce %x {kind = sum, axes = [0]}
      return %s, %c, %z, %r
    })")
                   .value());
}

// Weights are transformed when the model is compiled, and lie in memory of the device so. The first
// of a row come from several blocks, and windows of a scatter overlap.
TEST(GpuModel, TransformsTilesAndSharesWhatHasAnOrder) {
  Rng rng(1);
  Builder b;
  const Type weights = Type::get(DType::f32, {8, 6, 3, 3});
  std::vector<double> numbers(static_cast<size_t>(weights.static_elements()));
  for (double& each : numbers) each = rng.normal();
  const Value image = b.parameter("image", DType::f32, {2, 6, 9, 7});
  const Value conv = b.op(Opcode::conv, {image, b.constant(Tensor::from_reals(weights, numbers))},
                          {{"pad_low", Ints{1, 1}}, {"pad_high", Ints{1, 1}}});
  const std::vector<Value> best =
      b.ops(Opcode::top_k, {{b.parameter("row", DType::f32, {9000})}}, {{"k", Dims{20}}});
  const Value added =
      b.op(Opcode::scatter,
           {b.parameter("x", DType::f32, {70}), b.parameter("i", DType::i32, {40, 1}),
            b.parameter("u", DType::f32, {40, 5})},
           {{"window_dims", Ints{1}},
            {"inserted_dims", Ints{}},
            {"index_map", Ints{0}},
            {"index_vector_dim", int64_t{1}},
            {"combine", "add"}});
  const Graph graph = b.finish({maximum(conv, 0), best[0], best[1], added}).value();
  CompileOptions options;
  options.revise = [](const Graph&, Plan plan, const Target&) -> Result<Plan> {
    const Schedule product = {.order = {0, 1, 2, 3},
                              .threads = 4,
                              .own = BlockTilesFields{.rows = 16,
                                                      .columns = 32,
                                                      .depth = 16,
                                                      .own_rows = 16,
                                                      .own_columns = 16,
                                                      .products = Products::matrix,
                                                      .ahead = 1}};
    for (auto& [hash, schedule] : plan.schedule) {
      if (schedule.order.size() == 4)
        schedule = {.order = {0, 1, 2, 3},
                    .threads = 4,
                    .own = BlockWinogradFields{.points = 2, .stages = {product}}};
      if (schedule.if_is<BlockSortFields>() != nullptr)
        schedule.own = BlockSortFields{.warps = 8, .pairs = 2};
    }
    return plan;
  };
  Compilation code(graph, card(), options);
  const auto kernels = code.kernels();
  ASSERT_TRUE(kernels.ok()) << kernels.error().to_string();
  std::set<Algorithm> algorithms;
  for (const auto& [hash, schedule] : code.plan().value()->schedule)
    algorithms.insert(schedule.algorithm());
  for (Algorithm algorithm :
       {Algorithm::block_winograd, Algorithm::block_sort, Algorithm::block_scatter})
    EXPECT_TRUE(algorithms.contains(algorithm)) << name(algorithm);
  for (const std::string& reason : code.reasons_for_cpu()) EXPECT_EQ(reason, "");
  expect_right(graph, options);
}

// Products of halves by warpgroups: their maps are made for each launch, and held against what the
// kernel was made for.
TEST(GpuModel, WarpgroupsOfHopperMultiply) {
  const Graph graph = parse_graph(R"(
    graph @groups(%x: bf16[100, 200], %v: bf16[136, 200], %w: bf16[136, 72]) {
      %h = dot %x, %v {lhs_contract = [1], rhs_contract = [1]}
      %y = dot %h, %w {lhs_contract = [1], rhs_contract = [0]}
      return %y
    })")
                          .value();
  CompileOptions options;
  options.revise = [](const Graph&, Plan plan, const Target&) -> Result<Plan> {
    for (auto& [hash, schedule] : plan.schedule)
      schedule.own = BlockTilesFields{.rows = 64,
                                      .columns = 128,
                                      .depth = 64,
                                      .products = Products::matrix,
                                      .ahead = 2,
                                      .groups = 1};
    return plan;
  };
  Compilation code(graph, card(), options);
  ASSERT_TRUE(code.kernels().ok());
  ASSERT_EQ(code.gpu_kernels().size(), 2U);
  for (const GpuKernel& kernel : code.gpu_kernels()) {
    EXPECT_TRUE(kernel.is_exact);
    EXPECT_EQ(kernel.phases.at(0).maps.size(), 2U);
  }
  expect_right(graph, options);
}

TEST(GpuModel, ThreadsDivideKernelsThatHaveNoVectors) {
  Compilation code(tiny("mlp"), card());
  const Plan& plan = *code.plan().value();
  ASSERT_FALSE(plan.schedule.empty());
  for (const auto& [hash, schedule] : plan.schedule) {
    EXPECT_TRUE(schedule.lanes.empty());
    EXPECT_TRUE(schedule.unroll.empty());
    EXPECT_GT(schedule.threads, 0);
  }
  ASSERT_TRUE(code.kernels().ok());
  for (const std::string& reason : code.reasons_for_cpu()) EXPECT_EQ(reason, "");
}

TEST(GpuModel, NeedsADeviceToRunAndIsNoCodeForACpu) {
  Compilation code(tiny("mlp"), card());
  EXPECT_THAT(code.runnable(), refuses(ErrorCode::unsupported, "sm_90...GPU...--device cuda"));
  EXPECT_THAT(code.executable(), refuses(ErrorCode::unsupported, "sm_90...CPU"));
}

// The first sizes have code of their own; from the second ones on, code is for all sizes.
TEST(GpuModel, TakesSizesAsTheyCome) {
  const auto graph = std::make_shared<const Graph>(parse_graph(R"(
    graph @rows(%x: f32[N, 4], %w: f32[4, 300]) -> f32[N, 300] where N in 1..64 {
      %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
      %y = tanh %h
      return %y
    })")
                                                       .value());
  const FakeCuda cuda;
  GpuBacking backing;
  const auto sized = [&](int64_t rows) { return specialize(*graph, {{"N", rows}}).value(); };
  for (const Graph& each : {sized(2), *graph}) {
    Compilation code(each, card());
    ASSERT_TRUE(backing.add(cuda, *code.program().value(), card()).ok());
  }
  const auto model =
      NativeModel::make(model_of(*graph), card(), {.device = cuda.device().value()}).value();
  for (int64_t rows : {2, 5, 7, 64, 2}) {
    SCOPED_TRACE(rows);
    expect_accurate(sized(rows), *model);
  }
  EXPECT_EQ(model->code().compiled(), 2);
}

TEST(GpuModel, MachineCodeIsKeptInTheCache) {
  const TempDir parent = TempDir::create(std::filesystem::temp_directory_path()).value();
  const auto cache = CompileCache::open(parent.path() / "cache").value();
  const FakeCuda cuda;
  GpuBacking backing;
  for (int time = 0; time < 2; ++time) {
    Compilation code(tiny("mlp"), card(), {.cache = cache.get(), .device = cuda.device().value()});
    if (time == 0) ASSERT_TRUE(backing.add(cuda, *code.program().value(), card()).ok());
    expect_accurate(tiny("mlp"), *code.runnable().value());
  }
  const std::vector<CompileCache::Entry> entries = cache->list();
  const auto cubins = std::ranges::count(entries, "cubin of a kernel", &CompileCache::Entry::title);
  EXPECT_EQ(cubins, static_cast<int64_t>(backing.kernels()));
}

}  // namespace
}  // namespace hone::HONE_FILE
