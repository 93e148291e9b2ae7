// Is what the standard's own cases compute what hone computes? A case is right if its outputs are
// those of ONNX Runtime, where that has the op; otherwise if they are those that the case expects.
// (Some cases expect what their generator happened to give: sums without saturation, and the like.)
//
//   HONE_CASES=FOLDER ./dev bench standard        cases as `hone conformance` takes them

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/onnx_runtime.h"
#include "io/npy.h"
#include "io/onnx/onnx.h"
#include "ir/reference/evaluate_model.h"
#include "oracle/compare.h"
#include "oracle/conformance.h"
#include "oracle/conformance_data.h"

namespace {

using hone::Error;
using hone::Model;
using hone::Result;
using hone::Status;
using hone::Tensor;

namespace fs = std::filesystem;

// What a case is held to, and whether it holds.
struct Verdict {
  bool by_rival = false;
  bool is_right = false;
};

Result<std::vector<Tensor>> rival_outputs(const fs::path& folder, const Model& model,
                                          const std::vector<Tensor>& inputs) {
  const fs::path work = hone::bench::root() / "build/bench/standard" / folder.filename().string();
  fs::remove_all(work);
  fs::create_directories(work);
  for (size_t i = 0; i < inputs.size(); ++i)
    HONE_TRY(hone::write_npy(work / fmt::format("in{}.npy", i), inputs[i]));
  HONE_TRY(hone::bench::run_onnx_runtime(folder / "model.onnx", work));
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < model.outputs.size(); ++i)
    outputs.push_back(HONE_TRY(hone::read_npy(work / fmt::format("out{}.npy", i))));
  return outputs;
}

bool agrees(const Tensor& actual, const Tensor& expected) {
  constexpr hone::Tolerance kTolerance = {.relative = 1e-3, .absolute = 1e-6};
  const Result<hone::Comparison> comparison = hone::compare(actual, expected, kTolerance);
  return comparison.ok() && comparison->passed();
}

bool is_expected(const std::vector<Tensor>& outputs, const hone::CaseData& data) {
  for (const hone::ExpectedOutput& expected : data.outputs) {
    const Tensor& actual = outputs[expected.index];
    if (!agrees(actual, hone::with_lacking_type(expected.tensor, actual.dtype()))) return false;
  }
  return true;
}

// An error where hone does not read the file.
Result<Verdict> judge(const fs::path& folder) {
  const Model model = HONE_TRY(hone::load_onnx(folder / "model.onnx"));
  Verdict verdict = {.is_right = true};
  for (const hone::DataSet& set : HONE_TRY(hone::data_sets_of(folder))) {
    const hone::CaseData data = HONE_TRY(hone::read_data_set(set, model));
    const std::vector<Tensor> outputs =
        HONE_TRY(hone::evaluate_model(model, data.inputs, {.numerics = hone::Numerics::rounded}));
    if (is_expected(outputs, data)) continue;
    const Result<std::vector<Tensor>> rival = rival_outputs(folder, model, data.inputs);
    verdict.by_rival = rival.ok();
    if (!rival.ok()) return Verdict{};
    for (size_t i = 0; i < outputs.size(); ++i)
      verdict.is_right = verdict.is_right && agrees(outputs[i], (*rival)[i]);
  }
  return verdict;
}

void run(benchmark::State& state, const fs::path& folder) {
  for (auto _ : state) {
    const Result<Verdict> verdict = judge(folder);
    if (!verdict.ok()) return state.SkipWithError(verdict.error().to_string().c_str());
    state.counters["right"] = verdict->is_right ? 1 : 0;
    state.counters["by_rival"] = verdict->by_rival ? 1 : 0;
    if (!verdict->is_right) return state.SkipWithError("WRONG");
  }
}

const int registered = [] {
  const char* folder = std::getenv("HONE_CASES");
  if (folder == nullptr) return 0;
  const Result<std::vector<hone::ConformanceCase>> cases =
      hone::find_conformance_cases({{fs::path(folder)}});
  if (!cases.ok()) return 0;
  for (const hone::ConformanceCase& one : *cases) {
    const auto once = [path = one.folder](benchmark::State& state) { run(state, path); };
    benchmark::RegisterBenchmark(one.name.c_str(), once)
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  }
  return 0;
}();

}  // namespace
