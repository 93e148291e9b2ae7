#include "tune/plan_duel.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <sstream>

#include "base/forked.h"
#include "base/rng.h"
#include "base/subprocess.h"
#include "oracle/compare.h"
#include "runtime/load_elsewhere.h"

namespace hone {
namespace {

constexpr int64_t kShareOfCopies = 4;  // of the memory: constants of each side at most

// Both sides in this process, which nobody else uses. The messages: "1": the first runs. "w why":
// the outputs of the second are wrong, or it does not load. "t x": a run of both takes x seconds,
// with what it takes to place them. "late": the time is over. "a x", "b x": samples of the
// first and the second, in turns. "A x name", "B x name": a kernel's mean.
class Fight {
 public:
  Fight(const Image& first, const Image& second, std::span<const Tensor> inputs,
        const DuelOptions& options, const Tell& tell)
      : inputs_(inputs), options_(options), tell_(tell) {
    const auto team = Team::create({.threads = std::max(first.threads, second.threads)}).value();
    sides_[0] = {.image = &first, .team = team};
    sides_[1] = {.image = &second, .team = team};
  }

  void run() {
    if (!has_equal_outputs() || !has_time()) return;
    for (int64_t round = 0; round < rounds_; ++round) {
      if (round >= DuelOptions::kLeastRounds && left() < 0) break;
      tell_("round");
      const size_t begins = b_begins(round) ? 1 : 0;
      place_both(begins);
      for (const size_t side : {begins, 1 - begins}) block(side);
    }
  }

 private:
  struct Side {
    const Image* image = nullptr;
    std::shared_ptr<Team> team = nullptr;
    std::shared_ptr<const Executable> code = nullptr;
  };

  double left() const {
    const std::chrono::duration<double> elapsed = Clock::now() - start_;
    return options_.most_seconds - elapsed.count();
  }

  Result<std::vector<Tensor>> outputs(Side& side) {
    side.code = HONE_TRY(Executable::load(*side.image, {.team = side.team}));
    return side.code->run(inputs_);
  }

  bool has_equal_outputs() {
    const double before = left();
    const std::vector<Tensor> expected = outputs(sides_[0]).value();
    tell_("1");
    // The first run may take twice as long as others do.
    if (const double run = 0.5 * (before - left()); 2 * DuelOptions::kLeastRuns * run > left()) {
      tell_(fmt::format("t {:.9g}", 2 * run));
      tell_("late");
      return false;
    }
    const Result<std::vector<Tensor>> actual = outputs(sides_[1]);
    const std::string how =
        actual.ok() ? duel_difference(*actual, expected) : actual.error().what();
    if (!how.empty()) tell_("w " + how);
    return how.empty();
  }

  // Elsewhere, and warm there.
  void place_both(size_t begins) {
    for (Side& side : sides_) side.code.reset();
    for (const size_t at : {begins, 1 - begins}) {
      Side& side = sides_[at];
      side.code = load_elsewhere(*side.image, rng_, {.team = side.team},
                                 options_.memory_bytes / kShareOfCopies)
                      .value();
      HONE_CHECK(side.code->run(inputs_).ok(), "a plan that ran does not run elsewhere");
    }
  }

  // As many rounds as there is time for, of which placing takes half at most.
  bool has_time() {
    const double before = left();
    place_both(0);
    const double placing = before - left();
    const double one = seconds(sides_[0]) + seconds(sides_[1]);
    const double shortest = placing + one;
    tell_(fmt::format("t {:.9g}", shortest / 2));
    if (DuelOptions::kLeastRounds * shortest > left()) {
      tell_("late");
      return false;
    }
    const double wanted = std::min(options_.seconds, left());
    repeats_ = times_in(DuelOptions::kSampleSeconds, one, 1, DuelOptions::kMostRepeats);
    const double sample = one * static_cast<double>(repeats_);
    rounds_ = times_in(wanted, placing + std::max(placing, sample), DuelOptions::kLeastRounds,
                       DuelOptions::kMostRounds);
    const double round = wanted / static_cast<double>(rounds_);
    samples_ = std::max<int64_t>(1, static_cast<int64_t>((round - placing) / sample));
    return true;
  }

  // The times of a run.
  double seconds(const Side& side, Profile* profile = nullptr) const {
    const double all = measure_once([&]() -> Status {
                         for (int64_t i = 0; i < repeats_; ++i)
                           HONE_TRY(side.code->run(inputs_, {.profile = profile}));
                         return {};
                       }).value();
    return all / static_cast<double>(repeats_);
  }

  void block(size_t side) const {
    Profile profile;
    Profile* const asked = options_.by_kernel ? &profile : nullptr;
    for (int64_t i = 0; i < samples_; ++i)
      tell_(fmt::format("{} {:.9g}", "ab"[side], seconds(sides_[side], asked)));
    std::map<std::string, double> kernels;
    for (const CommandTime& command : profile)
      if (!command.kernel.empty()) kernels[command.kernel] += command.seconds;
    for (const auto& [kernel, all] : kernels)
      tell_(fmt::format("{} {:.9g} {}", "AB"[side], all / static_cast<double>(samples_ * repeats_),
                        kernel));
  }

  using Clock = std::chrono::steady_clock;
  const std::span<const Tensor> inputs_;
  const DuelOptions& options_;
  const Tell& tell_;
  const Clock::time_point start_ = Clock::now();
  Rng rng_ = Rng(0);  // of places
  Side sides_[2];
  int64_t rounds_ = 0;
  int64_t repeats_ = 1;  // of short runs, for one sample
  int64_t samples_ = 1;  // of a side in a round
};

// The times of each round.
using Samples = std::vector<std::vector<double>>;

}  // namespace

// An element may differ by a thousandth of itself or, of f32, a ten thousandth of the largest. Both
// plans have errors of their own: through many layers of transformed products those of plain sums
// and of theirs were 2e-5 of the largest apart.
std::string duel_difference(std::span<const Tensor> actual, std::span<const Tensor> expected) {
  constexpr double kErrors = 10;  // times those of another program's plain sums
  for (size_t i = 0; i < actual.size(); ++i) {
    Tolerance allowed = expected_tolerance(expected[i].dtype(), expected[i], {.relative = 1e-3});
    allowed.absolute *= kErrors;
    const Result<Comparison> same = compare(actual[i], expected[i], allowed);
    if (!same.ok()) return same.error().what();
    if (!same->passed()) return fmt::format("output {}: {}", i, same->to_string());
  }
  return "";
}

Result<PlanDuel> duel(const Image& first, const Image& second, std::span<const Tensor> inputs,
                      const DuelOptions& options) {
  PlanDuel result;
  bool first_runs = false;
  Samples a, b;
  std::map<std::string, std::array<Samples, 2>> kernels;
  const ForkedWork work = [&](const Tell& tell) {
    Fight(first, second, inputs, options, tell).run();
  };
  const auto told = [&](size_t, std::string_view message) {
    first_runs = first_runs || message == "1";
    if (message == "round") {
      a.emplace_back();
      b.emplace_back();
    } else if (message == "late") {
      result.lacks_time = true;
      result.outcome = Outcome::timed_out;
      result.detail = fmt::format("there is no time for {} runs of each", DuelOptions::kLeastRuns);
    } else if (message.starts_with("w ")) {
      result.outcome = Outcome::wrong;
      result.detail = message.substr(2);
    } else if (message.substr(1, 1) == " ") {
      double seconds = 0;
      std::string kernel;
      std::istringstream(std::string(message.substr(2))) >> seconds >> kernel;
      if (message[0] == 't')
        result.run_seconds = seconds;
      else if (message[0] == 'A' || message[0] == 'B')
        kernels[kernel][message[0] == 'B'].push_back({seconds});
      else
        (message[0] == 'a' ? a : b).back().push_back(seconds);
    }
  };
  const std::vector<ForkEnd> ends = HONE_TRY(run_forked(
      {&work, 1}, {.silence_seconds = options.run_seconds, .memory_bytes = options.memory_bytes},
      told, options.cancel));
  if (!first_runs) return over_limit("the plan that others are compared with does not run");
  if (result.outcome == Outcome::wrong || result.lacks_time) return result;
  if (!ends[0].is_done()) {
    result.outcome = ends[0].timed_out   ? Outcome::timed_out
                     : ends[0].no_memory ? Outcome::out_of_memory
                                         : Outcome::crashed;
    result.detail = ends[0].signal != 0 ? signal_name(ends[0].signal) : "";
    return result;
  }
  for (auto& [kernel, rounds] : kernels)
    if (rounds[0].size() == a.size() && rounds[1].size() == b.size())
      result.kernels[kernel] = judged(rounds[0], rounds[1]);
  result.times = judged(a, b);
  result.outcome = Outcome::measured;
  return result;
}

}  // namespace hone
