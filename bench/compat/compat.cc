// Are exported models what they were in another runtime? Every zoo model is exported, run in ONNX
// Runtime on seeded inputs, and compared with what hone's reference gives.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/subprocess.h"
#include "io/npy.h"
#include "io/onnx/onnx.h"
#include "ir/reference/evaluate.h"
#include "report/compare.h"
#include "zoo/inputs.h"
#include "zoo/zoo.h"

namespace {

using hone::Comparison;
using hone::Error;
using hone::Graph;
using hone::Result;
using hone::Status;
using hone::Tensor;

namespace fs = std::filesystem;

// The root of the repository: this program is in build/PRESET.
fs::path root() { return fs::read_symlink("/proc/self/exe").parent_path() / "../.."; }

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

Result<Outcome> run(const std::string& model, int opset) {
  const fs::path folder = root() / "build/bench/compat" / fmt::format("{}_{}", model, opset);
  fs::create_directories(folder);
  const Graph graph = HONE_TRY(hone::build_zoo_model(model, {.size = hone::ZooSize::tiny}));
  HONE_TRY(hone::save_onnx(folder / "model.onnx", hone::model_of(graph), {.opset = opset}));
  const std::vector<Tensor> inputs = HONE_TRY(hone::random_inputs(graph, 1));
  for (size_t i = 0; i < inputs.size(); ++i)
    HONE_TRY(hone::write_npy(folder / fmt::format("in{}.npy", i), inputs[i]));
  const std::vector<Tensor> expected = HONE_TRY(hone::evaluate(graph, inputs));
  for (size_t i = 0; i < expected.size(); ++i)
    HONE_TRY(hone::write_npy(folder / fmt::format("expected{}.npy", i), expected[i]));
  const fs::path modules = root() / "build/bench/onnxruntime/node_modules";
  const hone::ProcessResult result = HONE_TRY(hone::run_process(
      "/usr/bin/env",
      {"node", root() / "bench/compat/run.js", modules, folder / "model.onnx", folder},
      {.wall_seconds = 120}));
  if (result.exit_code != 0 || result.signal != 0)
    return hone::bad_input("ONNX Runtime: {}{}", result.err,
                           result.signal != 0 ? hone::signal_name(result.signal) : "");
  return compare_outputs(folder, expected);
}

void compat(benchmark::State& state, const std::string& model, int opset) {
  for (auto _ : state) {
    const Result<Outcome> outcome = run(model, opset);
    if (!outcome.ok()) return state.SkipWithError(outcome.error().to_string().c_str());
    if (outcome->bad > 0) return state.SkipWithError(outcome->text.c_str());
    state.counters["elements"] = static_cast<double>(outcome->elements);
    state.counters["max_difference"] = outcome->worst;
  }
}

const int registered = [] {
  for (const hone::ZooEntry& entry : hone::zoo_entries())
    for (int opset : {17, 21}) {
      const std::string name(entry.name);
      benchmark::RegisterBenchmark(fmt::format("{}/opset{}", name, opset).c_str(),
                                   [=](benchmark::State& state) { compat(state, name, opset); })
          ->Iterations(1)
          ->Unit(benchmark::kMillisecond);
    }
  return 0;
}();

}  // namespace
