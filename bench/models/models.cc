// Native code against ONNX Runtime on whole models: the zoo at full size, as hone exports it, some
// of it quantized to bytes, and the models beside the repository. Both run on as many threads, in
// turns: blocks of half a second, each of ONNX Runtime's in a process of its own, whose threads end
// with it, and with a pause before it in which hone's go to sleep.
// --benchmark_filter='resnet.*threads:1|mean' measures some;
// --page=FILE writes docs/performance-zoo.md of what was measured;
// --flush-denormals compiles with that option of hone.
// Rows are kept in build/bench/models.rows.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/flags.h"
#include "bench/models/page.h"
#include "bench/onnx_runtime.h"
#include "bench/real_models.h"
#include "bench/rows.h"
#include "compile/compilation.h"
#include "formats/npy.h"
#include "front/onnx/onnx.h"
#include "ir/summary.h"
#include "oracle/compare.h"
#include "session/known_prices.h"
#include "zoo/inputs.h"
#include "zoo/quantized.h"
#include "zoo/zoo.h"

namespace hone::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kBlocks = 3;
constexpr double kBlockSeconds = 0.5;
constexpr std::chrono::seconds kPause(1);
// Calling ONNX Runtime from node costs some 0.1 ms: shorter runs are left out of the mean.
constexpr double kShortest = 1e-3;
constexpr double kMostParameters = 5e8;  // of the zoo: files stay below 2 GB

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// ---- Models ------------------------------------------------------------------------------------

struct Case {
  std::string name;
  Graph graph;  // static
  std::vector<Tensor> inputs;
  fs::path folder;  // of inputs and outputs
  fs::path model;   // for ONNX Runtime
};

Result<Case> zoo_case(const std::string& name, const fs::path& folder) {
  const Graph graph = HONE_TRY(build_zoo_model(name));
  const std::vector<Tensor> inputs = HONE_TRY(random_inputs(graph, 1));
  HONE_TRY(save_onnx(folder / "model.onnx", model_of(graph)));
  return Case{name, graph, inputs, folder, folder / "model.onnx"};
}

// Of the zoo, with bytes.
constexpr std::string_view kQuantized = "_int8";
constexpr std::string_view kQuantizedModels[] = {"mobilenet_v2", "resnet18", "resnet50"};

bool is_quantized(std::string_view name) { return name.ends_with(kQuantized); }

// Its ranges are those of the inputs that are measured.
Result<Case> quantized_case(const std::string& name, const fs::path& folder) {
  const std::string zoo_name = name.substr(0, name.size() - kQuantized.size());
  const Graph reals = HONE_TRY(without_norms(HONE_TRY(build_zoo_model(zoo_name))));
  const std::vector<Tensor> inputs = HONE_TRY(random_inputs(reals, 1));
  Compilation compilation(HONE_TRY(ranges_of(reals)), HONE_TRY(host_target()));
  const std::shared_ptr<const Executable> ranges = HONE_TRY(compilation.executable());
  Graph graph = HONE_TRY(quantized(reals, HONE_TRY(ranges->run(inputs))));
  HONE_TRY(save_onnx(folder / "model.onnx", model_of(graph)));
  return Case{name, std::move(graph), inputs, folder, folder / "model.onnx"};
}

Result<Case> real_case(const std::string& name, const fs::path& folder) {
  RealModel real = HONE_TRY(load_real_model(name));
  return Case{name, std::move(real.graph), std::move(real.inputs), folder, real.file};
}

// The last one is kept for its next number of threads. Files are as large as the models: those of
// the one before go.
Result<const Case*> load_case(const std::string& name) {
  static std::optional<Case> last;
  if (last && last->name == name) return &*last;
  const fs::path folder = root() / "build/bench/models";
  last.reset();
  fs::remove_all(folder);
  fs::create_directories(folder);
  const std::vector<std::string> real = real_models();
  const bool is_real = std::ranges::find(real, name) != real.end();
  Case made = HONE_TRY(is_real              ? real_case(name, folder)
                       : is_quantized(name) ? quantized_case(name, folder)
                                            : zoo_case(name, folder));
  for (size_t i = 0; i < made.inputs.size(); ++i)
    HONE_TRY(write_npy(folder / fmt::format("in{}.npy", i), made.inputs[i]));
  last = std::move(made);
  return &*last;
}

// ---- Measuring ---------------------------------------------------------------------------------

// In order of size.
struct Samples {
  std::vector<double> seconds;

  void add(std::span<const double> more) {
    seconds.insert(seconds.end(), more.begin(), more.end());
    std::ranges::sort(seconds);
  }
  // What one run of ten reaches: what else the machine does only slows runs down.
  double best() const { return seconds[seconds.size() / 10]; }
  double median() const { return seconds[seconds.size() / 2]; }
};

Result<std::vector<double>> run_block(const Executable& executable,
                                      std::span<const Tensor> inputs) {
  HONE_TRY(executable.run(inputs));
  std::vector<double> samples;
  for (const Clock::time_point begin = Clock::now();
       samples.size() < 3 || seconds_since(begin) < kBlockSeconds;) {
    const Clock::time_point start = Clock::now();
    HONE_TRY(executable.run(inputs));
    samples.push_back(seconds_since(start));
  }
  return samples;
}

// The largest difference of an output, in parts of that output's largest number.
Result<double> difference(const Case& c, const std::vector<Tensor>& outputs) {
  double worst = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor expected = HONE_TRY(read_npy(c.folder / fmt::format("out{}.npy", i)));
    if (!is_real(expected.dtype()) || expected.type().static_elements() == 0) continue;
    const TensorStatistics range = statistics(expected);
    const double scale = std::max({std::abs(range.min), std::abs(range.max), 1e-30});
    worst = std::max(worst, HONE_TRY(compare(outputs[i], expected, {})).max_difference / scale);
  }
  return worst;
}

const Flag page("page", ""), flush_denormals("flush-denormals");

std::vector<ModelRow>& rows() {
  static std::vector<ModelRow> all;
  return all;
}

// A model on so many threads; times in seconds.
Result<Row> measure(const std::string& name, int64_t threads, const Target& target) {
  const Case& c = *HONE_TRY(load_case(name));
  CompileOptions options;
  options.plan.threads = threads;
  options.prepare.flushes_denormals = flush_denormals.is_given();
  // What comes with hone, as commands of a new user have it.
  options.cost = KnownPrices({}, true).cost(target, [](std::string_view) {});
  Row row;
  getloadavg(&row["load"], 1);
  const Clock::time_point start = Clock::now();
  Compilation compilation(c.graph, target, options);
  const std::shared_ptr<const Executable> executable = HONE_TRY(compilation.executable());
  row["compile"] = seconds_since(start);
  Samples native, rival;
  for (int block = 0; block < kBlocks; ++block) {
    native.add(HONE_TRY(run_block(*executable, c.inputs)));
    std::this_thread::sleep_for(kPause);
    rival.add(HONE_TRY(
        run_onnx_runtime(c.model, c.folder, {.threads = threads, .seconds = kBlockSeconds})));
  }
  row["hone"] = native.best();
  row["hone_median"] = native.median();
  row["rival"] = rival.best();
  row["rival_median"] = rival.median();
  row["difference"] = HONE_TRY(difference(c, HONE_TRY(executable->run(c.inputs))));
  return row;
}

Status report(benchmark::State& state, const std::string& name, int64_t threads) {
  const Target target = HONE_TRY(host_target());
  Row row;
  for (auto _ : state) {
    row = HONE_TRY(kept_row(
        {"models",
         fmt::format("{}/{}{}", name, threads, flush_denormals.is_given() ? "/flush" : ""), target,
         HONE_COMPILER_VERSION},
        [&] { return measure(name, threads, target); }));
    state.SetIterationTime(row["hone"]);
  }
  rows().push_back(
      {name, threads, row["hone"], row["rival"], row["difference"], is_quantized(name)});
  for (std::string time : {"hone", "hone_median", "rival", "rival_median"})
    state.counters[time + "_ms"] = 1e3 * row[time];
  state.counters["compile_s"] = row["compile"];
  state.counters["difference"] = row["difference"];
  state.counters["load"] = row["load"];
  state.counters["ratio"] = rows().back().ratio();
  state.SetLabel(target.cpu);
  return {};
}

void add_mean(benchmark::State& state, int64_t threads) {
  for (auto _ : state) state.SetIterationTime(0);
  state.counters["ratio"] = mean_ratio(rows(), threads, kShortest);
  if (page.text().empty() || rows().empty()) return;
  // The last mean has all rows.
  const Result<Target> target = host_target();
  const Status written =
      target.ok() ? write_page(page.text(), rows(), *target, kShortest) : target.error();
  if (!written.ok()) state.SkipWithError(written.error().to_string().c_str());
}

// ---- All of them -------------------------------------------------------------------------------

std::vector<std::string> models() {
  std::vector<std::string> names;
  for (const ZooEntry& entry : zoo_entries())
    if (entry.published.parameters <= kMostParameters) names.emplace_back(entry.name);
  for (std::string_view name : kQuantizedModels)
    names.push_back(fmt::format("{}{}", name, kQuantized));
  const std::vector<std::string> real = real_models();
  names.insert(names.end(), real.begin(), real.end());
  return names;
}

const int registered = [] {
  const auto add = [](const std::string& name, const auto& run) {
    benchmark::RegisterBenchmark(name.c_str(), run)
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  };
  constexpr int64_t kThreads[] = {1, 2};
  for (const std::string& name : models())
    for (int64_t threads : kThreads)
      add(fmt::format("{}/threads:{}", name, threads), [=](benchmark::State& state) {
        const Status status = report(state, name, threads);
        if (!status.ok()) state.SkipWithError(status.error().to_string().c_str());
      });
  for (int64_t threads : kThreads)
    add(fmt::format("geometric_mean/threads:{}", threads),
        [=](benchmark::State& state) { add_mean(state, threads); });
  return 0;
}();

}  // namespace
}  // namespace hone::bench
