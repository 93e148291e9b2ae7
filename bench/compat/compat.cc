// Are exported models what they were in another runtime? Every zoo model, and models whose sizes
// depend on data, are exported, run in ONNX Runtime on given inputs, and compared with what hone's
// reference gives. Models of ops that hone reads alone (ai.onnx.ml, the newest opsets) are compared
// the same way; ensembles of trees are raced as well.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/subprocess.h"
#include "base/text.h"
#include "bench/onnx_runtime.h"
#include "compile/compilation.h"
#include "formats/npy.h"
#include "front/onnx/onnx.h"
#include "ir/graph.h"
#include "ir/model_text.h"
#include "ir/reference/evaluate_model.h"
#include "oracle/compare.h"
#include "target/target.h"
#include "zoo/inputs.h"
#include "zoo/zoo.h"

namespace {

using hone::Comparison;
using hone::Error;
using hone::Graph;
using hone::Model;
using hone::Result;
using hone::Status;
using hone::Tensor;

namespace fs = std::filesystem;

struct Outcome {
  int64_t elements = 0;
  int64_t bad = 0;
  double worst = 0;
  std::string text;  // of the first output that differs
};

Result<Outcome> compare_outputs(const fs::path& folder, const std::vector<Tensor>& expected) {
  constexpr hone::Tolerance kTolerance = {.relative = 1e-3, .absolute = 1e-4};
  Outcome outcome;
  for (size_t i = 0; i < expected.size(); ++i) {
    const Tensor actual = HONE_TRY(hone::read_npy(folder / fmt::format("out{}.npy", i)));
    const Comparison c = HONE_TRY(hone::compare(actual, expected[i], kTolerance));
    outcome.elements += c.elements;
    outcome.bad += c.bad;
    outcome.worst = std::max(outcome.worst, c.max_difference);
    if (!c.passed() && outcome.text.empty())
      outcome.text = fmt::format("output {}: {}", i, c.to_string());
  }
  return outcome;
}

Result<Outcome> run_in_both(const std::string& name, int opset, const Model& model,
                            const std::vector<Tensor>& inputs) {
  const fs::path folder =
      hone::bench::root() / "build/bench/compat" / fmt::format("{}_{}", name, opset);
  fs::remove_all(folder);
  fs::create_directories(folder);
  HONE_TRY(hone::save_onnx(folder / "model.onnx", model, {.opset = opset}));
  for (size_t i = 0; i < inputs.size(); ++i)
    HONE_TRY(hone::write_npy(folder / fmt::format("in{}.npy", i), inputs[i]));
  const std::vector<Tensor> expected = HONE_TRY(hone::evaluate_model(model, inputs));
  for (size_t i = 0; i < expected.size(); ++i)
    HONE_TRY(hone::write_npy(folder / fmt::format("expected{}.npy", i), expected[i]));
  HONE_TRY(hone::bench::run_onnx_runtime(folder / "model.onnx", folder));
  return compare_outputs(folder, expected);
}

Result<Outcome> run_zoo(const std::string& name, int opset) {
  const Graph graph = HONE_TRY(hone::build_zoo_model(name, {.size = hone::ZooSize::tiny}));
  return run_in_both(name, opset, hone::model_of(graph), HONE_TRY(hone::random_inputs(graph, 1)));
}

// ---- Small models: several segments, spelled out ops -------------------------------------------

// The positive elements, turned; the first three of all where there are none.
constexpr std::string_view kIf = R"(
model @choose(%x: f32[N]) -> (%y: f32[K], %z: f32[K]) where N in 3..64, K in 0..64 {
  %any, %count, %packed = run %x
    graph @select(%x: f32[P]) where P in 3..64 {
      %misses = compare %x, 0 {direction = le}
      %key = cast %misses {dtype = i64}
      %keys, %packed = sort %key, %x {axis = 0}
      %hits = not %misses
      %ones = cast %hits {dtype = i64}
      %count = reduce %ones {kind = sum, axes = [0]}
      %any = compare %count, 0 {direction = gt}
      return %any, %count, %packed
    }
  %y = if %any {
    %found, %n = run %packed, %count crop %found[0] to %n
      graph @turn(%p: f32[P], %n: i64[]) where P in 3..64 {
        %t = neg %p
        return %t, %n
      }
    yield %found
  } else {
    %first = run %x
      graph @first(%x: f32[P]) where P in 3..64 {
        %a = slice %x {start = [0], limit = [3]}
        return %a
      }
    yield %first
  }
  %z = run %y
    graph @twice(%y: f32[M]) where M in 0..64 {
      %z = add %y, %y
      return %z
    }
}
)";

// Grows until it is long enough or the trips are used up, and keeps a row for each iteration.
constexpr std::string_view kLoop = R"(
model @grow(%trips: i64[], %x: f32[N]) -> (%y: f32[L], %rows: f32[R, 2])
    where N in 1..64, L in 1..65536, R in 0..1000 {
  %none, %yes = run graph @start() {
    %0 = constant [] : f32[0, 2]
    %1 = constant true : bool[]
    return %0, %1
  }
  %y, %rows = loop trip %trips while %yes counter %i with %state = %x grow %none {
    %next, %row, %more = run %state, %i graph @step(%s: f32[S], %i: i64[]) where S in 1..65536 {
      %t = add %s, %s
      %next = concat %s, %t {axis = 0}
      %sum = reduce %s {kind = sum, axes = [0]}
      %r = cast %i {dtype = f32}
      %a = reshape %sum {dims = [1, 1]}
      %b = reshape %r {dims = [1, 1]}
      %row = concat %b, %a {axis = 1}
      %more = compare %sum, 1000 {direction = lt}
      return %next, %row, %more
    }
    yield %next grow %row while %more
  }
}
)";

// What ONNX has no op for.
constexpr std::string_view kBits = R"(
graph @bits(%x: f32[10]) {
  %pattern = bitcast %x {dtype = i32}
  %next = add %pattern, 1
  %y = bitcast %next {dtype = f32}
  %half = cast %x {dtype = f16}
  %h = bitcast %half {dtype = u16}
  %wide = cast %h {dtype = i32}
  return %pattern, %y, %wide
}
)";

Tensor reals(const std::vector<double>& values) {
  return Tensor::from_reals(
      hone::Type::get(hone::DType::f32, {static_cast<int64_t>(values.size())}), values);
}

struct Case {
  std::string name;
  std::string_view text;
  std::vector<Tensor> inputs;
};

std::vector<Case> small_models() {
  const auto trips = [](int64_t n) {
    return Tensor::from_integers(hone::Type::scalar(hone::DType::i64), hone::Ints{n});
  };
  return {
      {"if_found", kIf, {reals({1, -2, 3, 0, 5})}},
      {"if_none", kIf, {reals({-1, -2, -3, -4})}},
      {"loop_trips", kLoop, {trips(3), reals({1, 2})}},
      {"loop_condition", kLoop, {trips(100), reals({1, 2, 3})}},
      {"loop_none", kLoop, {trips(0), reals({4})}},
      {"bits", kBits, {reals({0, -0.0, 1, -1.5, 3.14159, 1e-40, -6e-8, 1e30, INFINITY, -1e9})}}};
}

Result<Outcome> run_small(const Case& c, int opset) {
  return run_in_both(c.name, opset, HONE_TRY(hone::parse_model(c.text)), c.inputs);
}

// ---- Ops that are read alone: models.js writes them
// ----------------------------------------------

Result<std::vector<Tensor>> read_inputs(const fs::path& folder, size_t count) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < count; ++i)
    inputs.push_back(HONE_TRY(hone::read_npy(folder / fmt::format("in{}.npy", i))));
  return inputs;
}

// Medians, in turns with ONNX Runtime, of a model whose speed counts.
struct Speed {
  double hone_us = 0;
  double rival_us = 0;
};

double median(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  return seconds.empty() ? 0 : 1e6 * seconds[seconds.size() / 2];
}

Result<Speed> race(const fs::path& folder, const Model& model, std::span<const Tensor> inputs) {
  constexpr double kSeconds = 1;
  constexpr int kRounds = 3;
  const hone::Graph* const graph = hone::single_graph(model);
  if (graph == nullptr) return hone::unsupported("'{}' is no single graph", model.name);
  const hone::Graph& open = *graph;
  std::vector<hone::Type> types;
  for (const Tensor& input : inputs) types.push_back(input.type());
  const hone::Target target = HONE_TRY(hone::host_target());
  hone::CompileOptions options;
  options.plan.threads = 1;
  hone::Compilation compilation(
      HONE_TRY(specialize(open, HONE_TRY(bind_inputs(open, types)))), target, options);
  const std::shared_ptr<const hone::Executable> executable = HONE_TRY(compilation.executable());
  std::vector<double> ours, theirs;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (auto now = start; now - start < std::chrono::duration<double>(kSeconds);) {
      HONE_TRY(executable->run(inputs));
      const auto end = std::chrono::steady_clock::now();
      ours.push_back(std::chrono::duration<double>(end - now).count());
      now = end;
    }
    const std::vector<double> more = HONE_TRY(
        hone::bench::run_onnx_runtime(folder / "model.onnx", folder, {.seconds = kSeconds}));
    theirs.insert(theirs.end(), more.begin(), more.end());
  }
  return Speed{median(std::move(ours)), median(std::move(theirs))};
}

Result<Outcome> run_read(const fs::path& folder, std::optional<Speed>& speed) {
  const Model model = HONE_TRY(hone::load_onnx(folder / "model.onnx"));
  const std::vector<Tensor> inputs = HONE_TRY(read_inputs(folder, model.inputs.size()));
  HONE_TRY(hone::bench::run_onnx_runtime(folder / "model.onnx", folder));
  const std::vector<Tensor> computed = HONE_TRY(hone::evaluate_model(model, inputs));
  const Outcome outcome = HONE_TRY(compare_outputs(folder, computed));
  const bool is_race = folder.filename().string().starts_with("speed_");
  if (is_race) speed = HONE_TRY(race(folder, model, inputs));
  return outcome;
}

// ---- All of them -------------------------------------------------------------------------------

void report(benchmark::State& state, const std::function<Result<Outcome>()>& run) {
  for (auto _ : state) {
    const Result<Outcome> outcome = run();
    if (!outcome.ok()) return state.SkipWithError(outcome.error().to_string().c_str());
    if (outcome->bad > 0) return state.SkipWithError(outcome->text.c_str());
    state.counters["elements"] = static_cast<double>(outcome->elements);
    state.counters["max_difference"] = outcome->worst;
  }
}

void add(const std::string& name, const std::function<Result<Outcome>(int opset)>& run) {
  for (int opset : {17, 21}) {
    const auto once = [=](benchmark::State& state) { report(state, [=] { return run(opset); }); };
    benchmark::RegisterBenchmark(fmt::format("{}/opset{}", name, opset).c_str(), once)
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  }
}

void report_read(benchmark::State& state, const fs::path& folder) {
  std::optional<Speed> speed;
  report(state, [&] { return run_read(folder, speed); });
  if (!speed) return;
  state.counters["hone_us"] = speed->hone_us;
  state.counters["rival_us"] = speed->rival_us;
  state.counters["times_faster"] = speed->rival_us / speed->hone_us;
}

// The folders that models.js made.
std::vector<fs::path> read_models() {
  const fs::path folder = hone::bench::root() / "build/bench/compat/read";
  const Result<hone::ProcessResult> made = hone::run_process(
      "/usr/bin/env", {"node", hone::bench::root() / "bench/compat/models.js", folder}, {});
  std::vector<fs::path> folders;
  if (!made.ok() || made->exit_code != 0) return folders;
  for (std::string_view name : hone::split_lines(made->out))
    if (!name.empty()) folders.push_back(folder / name);
  return folders;
}

const int registered = [] {
  for (const hone::ZooEntry& entry : hone::zoo_entries()) {
    const std::string name(entry.name);
    add(name, [=](int opset) { return run_zoo(name, opset); });
  }
  for (const fs::path& folder : read_models())
    benchmark::RegisterBenchmark(fmt::format("read/{}", folder.filename().string()).c_str(),
                                 [=](benchmark::State& state) { report_read(state, folder); })
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  for (const Case& c : small_models()) add(c.name, [=](int opset) { return run_small(c, opset); });
  return 0;
}();

}  // namespace
