#include "session/duels.h"

#include <algorithm>

#include "base/file.h"
#include "front/front_end.h"
#include "session/onnx_runtime.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostRounds = 24;

DuelSide side_of(const DuelRuns& runs, RunBlock block) {
  return {.run = std::move(block), .leave = runs.leave, .place = [&runs]() -> Status {
            HONE_TRY(runs.place());
            return runs.run();  // warm, there
          }};
}

// `runs` runs in all, in `rounds` blocks.
RunBlock block_of_runs(int64_t runs, int64_t rounds, const std::function<Status()>& run) {
  return [=, round = int64_t{0}]() mutable -> Result<std::vector<double>> {
    const int64_t count = runs / rounds + (round++ < runs % rounds ? 1 : 0);
    std::vector<double> samples;
    for (int64_t i = 0; i < count; ++i) samples.push_back(HONE_TRY(measure_once(run)));
    return samples;
  };
}

}  // namespace

Result<Duel> duel_of_runs(const MeasureOptions& options, const CancelToken& cancel,
                          const DuelRuns& a, const DuelRuns& b) {
  for (int64_t i = 0; i < options.warmup; ++i) {
    HONE_TRY(a.run());
    HONE_TRY(b.run());
  }
  if (options.runs > 0) {
    const int64_t rounds = std::min(options.runs, kMostRounds);
    return measure_in_turns(rounds, cancel, side_of(a, block_of_runs(options.runs, rounds, a.run)),
                            side_of(b, block_of_runs(options.runs, rounds, b.run)));
  }
  const double one = HONE_TRY(measure_once(a.run));
  const int64_t rounds = std::clamp(static_cast<int64_t>(options.seconds / std::max(one, 1e-9)),
                                    kLeastDuelRounds, kMostRounds);
  const double block = options.seconds / static_cast<double>(rounds);
  return measure_in_turns(rounds, cancel, side_of(a, block_of(block, a.run)),
                          side_of(b, block_of(block, b.run)));
}

Result<RuntimeDuel> duel_with_onnx_runtime(const RuntimeRival& of, const MeasureOptions& options,
                                           const CancelToken& cancel, const DuelRuns& runs) {
  const OnnxRuntime runtime = HONE_TRY(find_onnx_runtime("", &cancel));
  const TempDir folder = HONE_TRY(TempDir::create(fs::temp_directory_path()));
  // The file as it is, which may have other sizes open. A model that is not a file is exported.
  fs::path model = of.model;
  const FrontEnd* const front = recognized_front_end(file_beginning(model));
  if (front == nullptr || front->extension != ".onnx") {
    model = folder.path() / "model.onnx";
    HONE_TRY(save_source(HONE_TRY(with_sizes(of.graphs, of.sizes)), model));
  }
  HONE_TRY(write_onnx_runtime_inputs(folder.path(), of.inputs));
  // It loads the model in each block.
  const OnnxRuntimeBlock block = {
      .threads = of.threads, .seconds = options.seconds / static_cast<double>(kLeastDuelRounds)};
  const auto run_rival = [&] {
    return run_onnx_runtime(runtime, model, folder.path(), block, &cancel);
  };
  const RunBlock run_warm = block_of(block.seconds, runs.run);
  const auto run_model = [&]() -> Result<std::vector<double>> {
    for (int64_t i = 0; i < options.warmup; ++i) HONE_TRY(runs.run());
    return run_warm();
  };
  Duel times = HONE_TRY(measure_in_turns(
      kLeastDuelRounds, cancel, {.run = run_model, .leave = runs.leave, .place = runs.place},
      {.run = run_rival}));
  return RuntimeDuel{runtime.name(), std::move(times)};
}

}  // namespace hone
