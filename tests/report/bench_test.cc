#include "report/bench_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ir/functional.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

BenchReport report() {
  BenchReport report;
  report.model = "m.onnx";
  report.threads = 2;
  report.target = "avx512-2c";
  report.isa = "avx512";
  report.inputs = {{"x", "f32[4, 8]"}};
  report.sizes = {{"N", Dim(4)}};
  for (int i = 0; i < 100; ++i) report.timing.seconds.push_back(1e-3 + 1e-8 * i);
  report.peak_bytes = 1 << 20;
  return report;
}

TEST(BenchReport, SaysWhatWasMeasured) {
  EXPECT_EQ(bench_title(report()), "threads 2, target avx512-2c (avx512), x f32[4, 8], N=4\n");
  BenchReport many = report();
  for (int i = 0; i < 5; ++i) many.inputs.emplace_back("y", "f32[]");
  EXPECT_THAT(bench_title(many), HasSubstr("x f32[4, 8], y f32[], y f32[], 3 more inputs, N=4"));
  EXPECT_EQ(bench_text(report()),
            "min 1.00 ms, median 1.00 ms, p90 1.00 ms, p99 1.00 ms, of 100 runs\n"
            "memory 1.0 MiB at most\n");
  EXPECT_EQ(bench_warning(report()), "");
}

TEST(BenchReport, SaysHowNearRunsComeToTheMemorysSpeed) {
  BenchReport one = report();
  one.weights = WeightRoof{.bytes = 10 << 20, .bytes_per_second = 20.0 * (1 << 30)};
  one.timing.seconds = {1e-3, 1e-3, 1e-3};
  EXPECT_THAT(bench_text(one),
              HasSubstr("weights of 10.0 MiB: 9.8 GiB a second, 49 % of what the memory delivers"));
  const auto json = nlohmann::json::parse(bench_json(one));
  EXPECT_EQ(json["weights"]["bytes"], 10 << 20);
  EXPECT_NEAR(json["weights"]["of_memory"].get<double>(), 0.488, 0.001);
}

// Two matrices of 64 KB, one of them a table of which rows are taken.
Model tables() {
  Builder b("g");
  const Value x = b.parameter("x", DType::f32, {4, 128});
  const Value at = b.parameter("at", DType::i64, {4});
  const Tensor numbers = Tensor::zeros(Type::get(DType::f32, {128, 128}));
  const Value w = b.constant(numbers, "w"), table = b.constant(numbers, "table");
  return model_of(b.finish({matmul(x, w) + take(table, at)}).value());
}

TEST(BenchReport, CountsWeightsThatAreReadWhole) {
  Target target;
  target.caches = {{.bytes = 32 << 10}};
  target.memory_one_core = 1e9, target.memory_all_cores = 3e9;
  const std::optional<WeightRoof> roof = weight_roof(tables(), target, 1);
  ASSERT_TRUE(roof);
  EXPECT_EQ(roof->bytes, 64 << 10);
  EXPECT_EQ(roof->bytes_per_second, 1e9);
  EXPECT_EQ(weight_roof(tables(), target, 2)->bytes_per_second, 2e9);
  EXPECT_EQ(weight_roof(tables(), target, 3)->bytes_per_second, 3e9);
  EXPECT_EQ(weight_roof(tables(), target, 64)->bytes_per_second, 3e9) << "all that there is";
  target.caches = {{.bytes = 64 << 10}};
  EXPECT_FALSE(weight_roof(tables(), target, 1)) << "they stay in the cache";
}

// The same product, and a branch that reads weights of its own.
Model product(bool has_branch) {
  Builder b("g");
  const Value p = b.parameter("p", DType::boolean, {}), x = b.parameter("x", DType::f32, {4, 128});
  const Tensor numbers = Tensor::zeros(Type::get(DType::f32, {128, 128}));
  const Value y = matmul(x, b.constant(numbers, "w"));
  if (!has_branch) return model_of(b.finish({y}).value());
  const std::vector<Type> types = {y.type()};
  const GraphRef more = b.region("then", types, [&](Builder& in, std::span<const Value> read) {
    return std::vector<Value>{matmul(read[0], in.constant(numbers, "v"))};
  });
  const GraphRef same = b.region("else", types, [](Builder&, std::span<const Value> read) {
    return std::vector<Value>{read[0]};
  });
  const std::vector<Value> operands = {p, y};
  return model_of(b.finish(b.ops(Opcode::if_, operands, {}, {more, same})).value());
}

// A branch that is not taken reads nothing.
TEST(BenchReport, CountsNoWeightsBesideBranches) {
  Target target;
  target.caches = {{.bytes = 32 << 10}};
  target.memory_one_core = target.memory_all_cores = 1e9;
  EXPECT_TRUE(weight_roof(product(false), target, 1));
  EXPECT_FALSE(weight_roof(product(true), target, 1));
}

TEST(BenchReport, WarnsWhereFiguresMeanLittle) {
  BenchReport wide = report();
  wide.load = 7;
  for (int i = 80; i < 100; ++i) wide.timing.seconds[static_cast<size_t>(i)] = 2e-3;
  EXPECT_EQ(bench_warning(wide), "p90 is 2 x the median; the machine's load is 7");
  BenchReport loaded = report();
  loaded.load = 1.5;
  loaded.cores = 2;
  EXPECT_EQ(bench_warning(loaded), "the machine's load is 1.5 on 2 cores");
  loaded.cores = 4;
  EXPECT_EQ(bench_warning(loaded), "");
  BenchReport even = report();
  even.rival = {"p.plan", even.timing, 1.01, Interval{0.98, 1.04}};
  EXPECT_THAT(bench_warning(even), HasSubstr("contains 1"));
  EXPECT_THAT(bench_text(even), HasSubstr("\np.plan takes 1.01 times as long (0.98 to 1.04)\n"));
  even.rival->interval.reset();
  EXPECT_THAT(bench_warning(even), HasSubstr("too few rounds"));
}

TEST(BenchReport, IsData) {
  BenchReport one = report();
  one.rival = {"p.plan", one.timing, 1.5, Interval{1.4, 1.6}};
  const auto json = nlohmann::json::parse(bench_json(one, "[]"));
  EXPECT_EQ(json["threads"], 2);
  EXPECT_EQ(json["sizes"]["N"], "4");
  EXPECT_EQ(json["inputs"]["x"], "f32[4, 8]");
  EXPECT_EQ(json["seconds"]["runs"], 100);
  EXPECT_DOUBLE_EQ(json["seconds"]["min"], 1e-3);
  EXPECT_EQ(json["rival"]["ratio_interval"][0], 1.4);
  EXPECT_TRUE(json["load"].is_null());
  EXPECT_TRUE(json["profile"].is_array());
  EXPECT_FALSE(nlohmann::json::parse(bench_json(report())).contains("rival"));
}

}  // namespace
}  // namespace hone::HONE_FILE
