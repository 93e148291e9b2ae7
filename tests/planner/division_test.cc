// A plan that other numbers of threads carry out gives the same bits.

#include "planner/division.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "compile/compilation.h"
#include "cost/analytic.h"
#include "front/decoder/blocks.h"
#include "ir/functional.h"
#include "rewrite/prepare.h"
#include "tests/front/gguf_file.h"
#include "zoo/inputs.h"
#include "zoo/random/random_graph.h"

namespace hone::HONE_FILE {
namespace {

constexpr int64_t kCores = 8;

Target machine() {
  Target target = host_target().value();
  target.cores = kCores;
  return target;
}

// Two norms with products between them, and a gate whose exponents end in parts of vectors.
Graph layers(int64_t rows) {
  constexpr int64_t kWidth = 92, kHidden = 310;
  Builder b("layers");
  const Value x = b.parameter("x", DType::f32, {rows, kWidth});
  const Value v = b.parameter("v", DType::f32, {kWidth, kHidden});
  const Value w = b.parameter("w", DType::f32, {kHidden, kWidth});
  const Value scale = b.parameter("scale", DType::f32, {kWidth});
  const Value y = matmul(silu(matmul(rms_norm(x, scale), v)), w);
  return b.finish({softmax(rms_norm(x + y, scale))}).value();
}

Graph attention(int64_t rows) {
  constexpr int64_t kHeads = 6, kTokens = 70, kWidth = 24;
  Builder b("attention");
  const Value q = b.parameter("q", DType::f32, {kHeads, rows, kWidth});
  const Value k = b.parameter("k", DType::f32, {kHeads, kTokens, kWidth});
  const Value v = b.parameter("v", DType::f32, {kHeads, kTokens, kWidth});
  const Value scores = dot_general(q, k, {0}, {0}, {2}, {2});
  return b.finish({dot_general(softmax(scores), v, {0}, {0}, {2}, {1})}).value();
}

Graph packed(int64_t rows, BlockFormat format) {
  constexpr int64_t kColumns = 264, kDepth = 512;
  const BlockLayout& layout = layout_of(format);
  constexpr uint32_t kTypes[kBlockFormats] = {gguf::kQ4_0, gguf::kQ4_1, gguf::kQ5_0, gguf::kQ5_1,
                                              gguf::kQ8_0, gguf::kQ4_K, gguf::kQ5_K, gguf::kQ6_K};
  const std::string bytes =
      gguf::random_bytes(kTypes[static_cast<size_t>(format)], kColumns * kDepth, 1, 3);
  const Type stored = Type::get(DType::u8, {kColumns, kDepth / layout.elements * layout.bytes});
  Builder b("packed");
  const Value x = b.parameter("x", DType::f32, {rows, kDepth});
  const Value w = b.constant(Tensor::copy_of(stored, std::as_bytes(std::span(bytes))), "w");
  return b.finish({product_of_blocks(x, w, format)}).value();
}

std::vector<std::vector<std::byte>> bits_of(const Graph& graph, const Plan& plan,
                                            const std::shared_ptr<Team>& team) {
  Compilation compilation(graph, machine(), {.plan = plan, .team = team});
  const auto code = compilation.executable().value();
  const std::vector<Tensor> outputs = code->run(random_inputs(graph, 1).value()).value();
  std::vector<std::vector<std::byte>> all;
  for (const Tensor& output : outputs)
    all.emplace_back(output.bytes().begin(), output.bytes().end());
  return all;
}

// Says how many schedules change.
size_t check(const Graph& graph, std::initializer_list<int64_t> numbers) {
  static const auto kTeam = Team::create({.threads = kCores}).value();
  const Target target = machine();
  const AnalyticCost cost(target);
  const Graph prepared = prepare(graph).value();
  const Plan plan = complete(prepared, {}, target, cost).value();
  const auto wanted = bits_of(graph, plan, kTeam);
  size_t changed = 0;
  for (const int64_t threads : numbers) {
    SCOPED_TRACE(threads);
    const Plan divided = divided_among(threads, prepared, plan, target, cost).value();
    EXPECT_EQ(divided.threads, threads);
    EXPECT_TRUE(check_complete(divided, prepared, target).ok());
    EXPECT_EQ(bits_of(graph, divided, kTeam), wanted);
    for (const auto& [kernel, schedule] : divided.schedule) {
      if (threads == 1) EXPECT_EQ(schedule.threads, 0) << print(schedule);
      changed += schedule != plan.schedule.at(kernel);
    }
    Plan but_schedules = divided;
    but_schedules.schedule = plan.schedule;
    but_schedules.threads = plan.threads;
    EXPECT_EQ(but_schedules, plan) << "kernels, layouts and places stay";
  }
  return changed;
}

TEST(Divisions, ChangeNoBits) {
  size_t changed = 0;
  for (const int64_t rows : {1, 5, 40}) {
    SCOPED_TRACE(rows);
    changed += check(layers(rows), {1, 2, 3, 4, 7});
    changed += check(attention(rows), {1, 3, 7});
    for (const BlockFormat format : {BlockFormat::q8_0, BlockFormat::q4_1, BlockFormat::q4_k})
      changed += check(packed(rows, format), {1, 3});
  }
  EXPECT_GT(changed, 20U);
}

TEST(Divisions, OfRandomGraphsChangeNoBits) {
  for (uint64_t seed = 0; seed < 16; ++seed) {
    SCOPED_TRACE(seed);
    check(random_graph({.seed = seed}), {1, 3});
  }
}

// A learned price may have no number for a schedule that it has never seen.
class NoNumbers : public Cost {
 public:
  struct Kernel : PricedKernel {
    void price(std::span<const Schedule>, double, std::span<double> seconds) override {
      std::ranges::fill(seconds, std::numeric_limits<double>::quiet_NaN());
    }
  };
  std::string version() const override { return "no numbers"; }
  std::unique_ptr<PricedKernel> kernel(std::shared_ptr<const KernelFacts>, int64_t) const override {
    return std::make_unique<Kernel>();
  }
  double copy(double) const override { return 0; }
  double command() const override { return 0; }
};

TEST(Divisions, StayAsTheyAreWithoutPrices) {
  const Target target = machine();
  const Graph prepared = prepare(layers(40)).value();
  const Plan plan = complete(prepared, {}, target, AnalyticCost(target)).value();
  const Plan divided = divided_among(3, prepared, plan, target, NoNumbers()).value();
  EXPECT_EQ(divided.threads, 3);
  EXPECT_EQ(divided.schedule, plan.schedule);
}

TEST(Divisions, CanBeStopped) {
  const Target target = machine();
  const AnalyticCost cost(target);
  const Graph prepared = prepare(layers(40)).value();
  const Plan plan = complete(prepared, {}, target, cost).value();
  CancelToken cancel;
  cancel.cancel();
  const Result<Plan> stopped = divided_among(3, prepared, plan, target, cost, {.cancel = &cancel});
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code(), ErrorCode::interrupted);
}

TEST(Divisions, AmongAsManyThreadsChangeNothing) {
  const Target target = machine();
  const AnalyticCost cost(target);
  const Graph prepared = prepare(layers(40)).value();
  const Plan plan = complete(prepared, {}, target, cost).value();
  EXPECT_EQ(divided_among(kCores, prepared, plan, target, cost).value(), plan);
}

}  // namespace
}  // namespace hone::HONE_FILE
