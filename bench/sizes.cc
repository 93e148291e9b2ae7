// What it costs when sizes change from run to run: a model that finds a number of rows, which is
// another one each time, and works on them; and a product by code for all sizes beside code for its
// own. Counters of the first: the median and the 99th percentile of a run after the tenth size,
// their ratio, and how often code was made after the tenth.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/rng.h"
#include "compile/native_model.h"
#include "ir/model_text.h"
#include "ir/text.h"

namespace hone::HONE_FILE {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kRows = 1024;
constexpr int kRuns = 200;

// Picks the rows whose score is above 0.5, and computes with those.
constexpr std::string_view kDetector =
    R"(model @detector(%x: f32[1024, 512], %w: f32[512, 512], %scores: f32[1024])
    -> (%y: f32[n, 512]) where n in 0..1024 {
  %kept, %n = run %scores crop %kept[0] to %n
    graph @select(%scores: f32[1024]) -> (i64[1024], i64[]) {
      %half = constant 0.5 : f32[]
      %halves = broadcast %half {dims = [1024], map = []} : f32[1024]
      %good = compare %scores, %halves {direction = gt} : bool[1024]
      %ones = cast %good {dtype = i64} : i64[1024]
      %n = reduce %ones {kind = sum, axes = [0]} : i64[]
      %rows = iota {dtype = i64, dims = [1024], axis = 0} : i64[1024]
      %sorted, %order = sort %scores, %rows {axis = 0, descending = true} : f32[1024], i64[1024]
      return %order, %n
    }
  %y = run %kept, %x, %w
    graph @head(%kept: i64[n], %x: f32[1024, 512], %w: f32[512, 512])
        -> f32[n, 512] where n in 0..1024 {
      %rows = gather %x, %kept {offset_dims = [1], collapsed_dims = [0], index_map = [0],
                               index_vector_dim = 1, sizes = [1, 512]} : f32[n, 512]
      %h = dot %rows, %w {lhs_contract = [1], rhs_contract = [0]} : f32[n, 512]
      %y = logistic %h : f32[n, 512]
      return %y
    }
}
)";

Tensor normal(Type type, Rng& rng) {
  std::vector<double> numbers(static_cast<size_t>(type.static_elements()));
  for (double& number : numbers) number = rng.normal();
  return Tensor::from_reals(type, numbers);
}

void detections(benchmark::State& state) {
  const Model model = parse_model(kDetector).value();
  Rng rng(1);
  const Tensor x = normal(Type::get(DType::f32, {kRows, 512}), rng);
  const Tensor w = normal(Type::get(DType::f32, {512, 512}), rng);
  // Half of the rows, a fifth more or less: the work is about the same, the sizes are not.
  std::vector<Tensor> scores;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> numbers(kRows);
    const int good = (kRows - kRuns) / 2 + (run * 77) % kRuns;  // each once
    for (int row = 0; row < kRows; ++row)
      numbers[static_cast<size_t>(row)] = row < good ? 0.9 : 0.1;
    scores.push_back(Tensor::from_reals(Type::get(DType::f32, {kRows}), numbers));
  }
  for (auto _ : state) {
    const auto native = NativeModel::make(model, host_target().value()).value();
    std::vector<double> seconds;
    int64_t compiled_after_ten = 0;
    for (int run = 0; run < kRuns; ++run) {
      const Clock::time_point start = Clock::now();
      Result<std::vector<Tensor>> outputs =
          native->run(std::vector{x, w, scores[static_cast<size_t>(run)]});
      if (!outputs.ok()) return state.SkipWithError(outputs.error().to_string().c_str());
      if (run >= 10) seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
      if (run == 9) compiled_after_ten = native->code().compiled();
    }
    std::ranges::sort(seconds);
    const double median = seconds[seconds.size() / 2], high = seconds[seconds.size() * 99 / 100];
    state.SetIterationTime(median);
    state.counters["median_us"] = 1e6 * median;
    state.counters["p99_us"] = 1e6 * high;
    state.counters["p99_by_median"] = high / median;
    state.counters["compiled_after_ten"] =
        static_cast<double>(native->code().compiled() - compiled_after_ten);
  }
}
// A product whose rows are open, by code for all sizes and by code for its own, in turns.
void open_rows(benchmark::State& state, int64_t inner) {
  const GraphRef graph = std::make_shared<const Graph>(
      parse_graph(fmt::format(R"(graph @g(%x: f32[n, {0}], %w: f32[{0}, {0}]) -> f32[n, {0}]
          where n in 1..1024 {{
        %h = dot %x, %w {{lhs_contract = [1], rhs_contract = [0]}}
        %y = logistic %h
        return %y
      }})",
                              inner))
          .value());
  Rng rng(1);
  const auto inputs_of = [&](int64_t rows) {
    return std::vector{normal(Type::get(DType::f32, {rows, inner}), rng),
                       normal(Type::get(DType::f32, {inner, inner}), rng)};
  };
  CompileOptions options;
  options.plan.threads = 1;
  const std::vector<Tensor> inputs = inputs_of(state.range(0));
  const Target target = host_target().value();
  const auto sized = NativeModel::make(model_of(*graph), target, options).value();
  const auto open = NativeModel::make(model_of(*graph), target, options).value();
  for (int64_t rows : {3, 5})  // the second size makes code for all
    if (!open->run(inputs_of(rows)).ok()) return state.SkipWithError("no code for all sizes");
  std::vector<double> seconds[2];
  for (auto _ : state) {
    for (const auto& native : {sized, open}) {
      const Clock::time_point start = Clock::now();
      if (!native->run(inputs).ok()) return state.SkipWithError("a run failed");
      seconds[native == open].push_back(
          std::chrono::duration<double>(Clock::now() - start).count());
    }
    state.SetIterationTime(seconds[1].back());
  }
  for (auto& each : seconds) std::ranges::sort(each);
  const auto best = [](const std::vector<double>& each) { return each[each.size() / 10]; };
  state.counters["sized_us"] = 1e6 * best(seconds[0]);
  state.counters["open_us"] = 1e6 * best(seconds[1]);
  state.counters["ratio"] = best(seconds[1]) / best(seconds[0]);
}
BENCHMARK_CAPTURE(open_rows, inner_512, 512)->ArgsProduct({{1, 4, 16, 100, 512}})->UseManualTime();
BENCHMARK_CAPTURE(open_rows, inner_1024, 1024)
    ->ArgsProduct({{1, 4, 16, 100, 512}})
    ->UseManualTime();

BENCHMARK(detections)->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hone::HONE_FILE
