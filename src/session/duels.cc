#include "session/duels.h"

#include <algorithm>

#include "base/file.h"
#include "session/onnx_runtime.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostRounds = 30;
constexpr int64_t kLeastRounds = 6;  // for an interval
constexpr int64_t kRivalRounds = 6;  // of ONNX Runtime, which loads the model in each

}  // namespace

Result<Duel> duel_of_runs(const MeasureOptions& options, const CancelToken& cancel,
                          const std::function<Status()>& a, const std::function<Status()>& b) {
  for (int64_t i = 0; i < options.warmup; ++i) {
    HONE_TRY(a());
    HONE_TRY(b());
  }
  int64_t rounds = options.runs;
  double block = 0;
  if (rounds == 0) {
    const double one = HONE_TRY(measure_once(a));
    block = options.seconds / static_cast<double>(kMostRounds);
    const double fit = options.seconds / std::max(one, 1e-9);
    rounds = fit >= static_cast<double>(kMostRounds)
                 ? kMostRounds
                 : std::max(kLeastRounds, static_cast<int64_t>(fit));
  }
  return measure_in_turns(rounds, cancel, block_of(block, a), block_of(block, b));
}

Result<RuntimeDuel> duel_with_onnx_runtime(const RuntimeRival& of, const MeasureOptions& options,
                                           const CancelToken& cancel,
                                           const std::function<Status()>& run) {
  const OnnxRuntime runtime = HONE_TRY(find_onnx_runtime("", &cancel));
  const TempDir folder = HONE_TRY(TempDir::create(fs::temp_directory_path()));
  // The file as it is, which may have other sizes open; what is no file is exported.
  fs::path model = of.model;
  if (!is_onnx_path(model)) {
    model = folder.path() / "model.onnx";
    HONE_TRY(save_source(HONE_TRY(with_sizes(of.graphs, of.sizes)), model));
  }
  HONE_TRY(write_onnx_runtime_inputs(folder.path(), of.inputs));
  const OnnxRuntimeBlock block = {.threads = of.threads,
                                  .seconds = options.seconds / static_cast<double>(kRivalRounds)};
  const auto run_rival = [&] {
    return run_onnx_runtime(runtime, model, folder.path(), block, &cancel);
  };
  const RunBlock run_warm = block_of(block.seconds, run);
  const auto run_model = [&]() -> Result<std::vector<double>> {
    for (int64_t i = 0; i < options.warmup; ++i) HONE_TRY(run());
    return run_warm();
  };
  Duel times = HONE_TRY(measure_in_turns(kRivalRounds, cancel, run_model, run_rival));
  return RuntimeDuel{runtime.name(), std::move(times)};
}

}  // namespace hone
