#include "session/duels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/file.h"
#include "base/text.h"
#include "formats/npy.h"
#include "front/front_end.h"
#include "ir/summary.h"
#include "oracle/compare.h"

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

// ---- Rivals
// --------------------------------------------------------------------------------------

namespace {

// The files that the rivals read.
struct RivalFiles {
  TempDir folder;  // of inputs and outputs
  fs::path model;
};

Result<RivalFiles> files_of(const RivalsOf& of) {
  TempDir folder = HONE_TRY(TempDir::create(fs::temp_directory_path()));
  // The file as it is, which may have other sizes open. A model that is not a file is exported.
  fs::path model = of.model;
  const FrontEnd* const front = recognized_front_end(file_beginning(model));
  if (front == nullptr || front->extension != ".onnx") {
    model = folder.path() / "model.onnx";
    HONE_TRY(save_source(HONE_TRY(with_sizes(of.graphs, of.sizes)), model));
  }
  HONE_TRY(write_rival_inputs(folder.path(), of.inputs));
  return RivalFiles{std::move(folder), std::move(model)};
}

// The largest difference of an output, in parts of that output's largest number; infinity if a
// shape is another. Outputs that are no reals differ by 0 or by infinity.
Result<double> difference_of(const std::vector<Tensor>& outputs, const fs::path& folder) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  double worst = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor theirs = HONE_TRY(read_npy(folder / fmt::format("out{}.npy", i)));
    if (theirs.type() != outputs[i].type()) return kNever;
    if (theirs.byte_size() == 0) continue;
    if (!is_real(theirs.dtype())) {
      if (!theirs.same_bytes(outputs[i])) return kNever;
      continue;
    }
    const TensorStatistics range = statistics(outputs[i]);
    const double scale = std::max({std::abs(range.min), std::abs(range.max), 1e-30});
    worst = std::max(worst, HONE_TRY(compare(theirs, outputs[i], {})).max_difference / scale);
  }
  return worst;
}

// A rival in the duels of all.
struct Contender {
  RivalEngine engine;
  std::vector<std::vector<double>> rounds = {};
  std::optional<double> difference = {};
};

class RivalRounds {
 public:
  RivalRounds(const RivalsOf& of, const MeasureOptions& options, const CancelToken& cancel,
              const DuelRuns& runs)
      : of_(of), options_(options), cancel_(cancel), runs_(runs) {}

  Result<RivalDuels> measure(std::span<const Rival> rivals, const RivalHosts& hosts) {
    is_alone_ = rivals.size() == 1;
    for (const Rival rival : rivals) {
      Result<RivalEngine> found = find_rival(rival, hosts, &cancel_);
      if (found.ok())
        contenders_.push_back({*std::move(found)});
      else
        HONE_TRY(miss(rival, found.error()));
    }
    files_ = HONE_TRY(files_of(of_));
    if (of_.outputs) HONE_TRY(compare_outputs());
    for (int64_t round = 0; round < kLeastDuelRounds && !contenders_.empty(); ++round)
      HONE_TRY(run_round(round));
    return judged_all();
  }

 private:
  // Goes on without it if there are others.
  Status miss(Rival rival, const Error& why) {
    HONE_TRY(cancel_.check());
    if (is_alone_) return why;
    missing_.push_back(fmt::format("{}: {}", row_of(rival).name, why.what()));
    if (!why.hint().empty()) missing_.back() += fmt::format(" ({})", why.hint());
    return {};
  }

  // Calls `run` with each, in this order; those that fail leave.
  template <class Run>
  Status each(bool is_reversed, const Run& run) {
    if (is_reversed) std::ranges::reverse(contenders_);
    std::vector<Contender> left;
    for (Contender& one : contenders_) {
      const Status good = run(one);
      if (good.ok())
        left.push_back(std::move(one));
      else
        HONE_TRY(miss(one.engine.rival, good.error()));
    }
    contenders_ = std::move(left);
    if (is_reversed) std::ranges::reverse(contenders_);
    return {};
  }

  Status compare_outputs() {
    const std::vector<Tensor> outputs = HONE_TRY(of_.outputs());
    return each(false, [&](Contender& one) -> Status {
      HONE_TRY(run_rival(one.engine, files_->model, files_->folder.path(),
                         {.threads = of_.threads, .writes_outputs = true}, &cancel_));
      one.difference = HONE_TRY(difference_of(outputs, files_->folder.path()));
      return {};
    });
  }

  Status run_round(int64_t round) {
    runs_.leave();
    HONE_TRY(cancel_.check());
    HONE_TRY(runs_.place());
    if (!b_begins(round)) HONE_TRY(run_model());
    HONE_TRY(each(
        round % 2 != 0,
        [&](Contender& one) -> Status {
          HONE_TRY(cancel_.check());
          // It loads the model in each block.
          one.rounds.push_back(
              HONE_TRY(run_rival(one.engine, files_->model, files_->folder.path(),
                                 {.threads = of_.threads, .seconds = seconds()}, &cancel_)));
          return {};
        }));
    if (b_begins(round)) HONE_TRY(run_model());
    return {};
  }

  Status run_model() {
    HONE_TRY(cancel_.check());
    for (int64_t i = 0; i < options_.warmup; ++i) HONE_TRY(runs_.run());
    model_.push_back(HONE_TRY(block_of(seconds(), runs_.run)()));
    return {};
  }

  Result<RivalDuels> judged_all() {
    RivalDuels all = {.duels = {}, .missing = std::move(missing_)};
    for (Contender& one : contenders_)
      all.duels.push_back({one.engine.name(), judged(model_, one.rounds), one.difference});
    std::ranges::sort(all.duels, {}, [](const RivalDuel& one) { return one.times.ratio; });
    if (!all.duels.empty()) return all;
    return unsupported("no rival is there that runs the model").with_hint(join(all.missing, "; "));
  }

  double seconds() const { return options_.seconds / static_cast<double>(kLeastDuelRounds); }

  const RivalsOf& of_;
  const MeasureOptions& options_;
  const CancelToken& cancel_;
  const DuelRuns& runs_;
  bool is_alone_ = false;
  std::optional<RivalFiles> files_;
  std::vector<Contender> contenders_;
  std::vector<std::vector<double>> model_;  // its rounds
  std::vector<std::string> missing_;
};

}  // namespace

Result<RivalDuels> duel_with_rivals(const RivalsOf& of, std::span<const Rival> rivals,
                                    const RivalHosts& hosts, const MeasureOptions& options,
                                    const CancelToken& cancel, const DuelRuns& runs) {
  return RivalRounds(of, options, cancel, runs).measure(rivals, hosts);
}

}  // namespace hone
