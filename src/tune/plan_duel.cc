#include "tune/plan_duel.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <sstream>

#include "base/forked.h"
#include "base/subprocess.h"
#include "oracle/compare.h"
#include "runtime/executable.h"

namespace hone {
namespace {

constexpr double kDuelSampleSeconds = 1e-3;

// "" or how outputs differ: an element by more than a thousandth of itself and, of f32, a ten
// thousandth of the largest. Both plans have errors of their own: through many layers of
// transformed products those of plain sums and of theirs were 2e-5 of the largest apart.
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

// The messages: "1": the first runs; "w why": the outputs of the second are wrong, or it does not
// load; "t x": a run of both takes x seconds; "late": there is no time for more; "a x", "b x":
// samples of the first and the second, in turns; "A x name", "B x name": a kernel's mean.
void run_both(const Image& first, const Image& second, std::span<const Tensor> inputs,
              const DuelOptions& options, const Tell& tell) {
  const std::shared_ptr<Team> team =
      Team::create({.threads = std::max(first.threads, second.threads)}).value();
  const auto load = [&](const Image& image) { return Executable::load(image, {.team = team}); };
  const auto start = std::chrono::steady_clock::now();
  const auto left = [&] {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    return options.most_seconds - elapsed.count();
  };
  const auto a = load(first).value();
  const double before = left();
  const std::vector<Tensor> expected = a->run(inputs).value();
  tell("1");
  // The first run may take twice as long as others do.
  if (const double run = 0.5 * (before - left()); 2 * DuelOptions::kLeastRuns * run > left()) {
    tell(fmt::format("t {:.9g}", 2 * run));
    return tell("late");
  }
  const auto loaded = load(second);
  if (!loaded.ok()) return tell("w " + loaded.error().what());
  const std::shared_ptr<const Executable>& b = *loaded;
  const Result<std::vector<Tensor>> actual = b->run(inputs);
  if (!actual.ok()) return tell("w " + actual.error().what());
  if (std::string how = duel_difference(*actual, expected); !how.empty()) return tell("w " + how);

  int64_t repeats = 1;  // of short runs, for one sample
  const auto seconds = [&](const Executable& executable, Profile* profile = nullptr) {
    const double all = measure_once([&]() -> Status {
                         for (int64_t i = 0; i < repeats; ++i)
                           HONE_TRY(executable.run(inputs, {.profile = profile}));
                         return {};
                       }).value();
    return all / static_cast<double>(repeats);
  };
  double one = seconds(*a) + seconds(*b);
  tell(fmt::format("t {:.9g}", one));
  if (DuelOptions::kLeastRounds * one > left()) return tell("late");
  const double wanted = std::min(options.seconds, left());
  repeats = std::max<int64_t>(1, static_cast<int64_t>(kDuelSampleSeconds / one));
  one *= static_cast<double>(repeats);
  const int64_t rounds = std::clamp(static_cast<int64_t>(wanted / one), DuelOptions::kLeastRounds,
                                    DuelOptions::kMostRounds);
  const auto samples =
      std::max<int64_t>(1, static_cast<int64_t>(wanted / (one * static_cast<double>(rounds))));
  const auto block = [&](const Executable& executable, char name) {
    Profile profile;
    Profile* const asked = options.by_kernel ? &profile : nullptr;
    for (int64_t i = 0; i < samples; ++i)
      tell(fmt::format("{} {:.9g}", name, seconds(executable, asked)));
    std::map<std::string, double> kernels;
    for (const CommandTime& command : profile)
      if (!command.kernel.empty()) kernels[command.kernel] += command.seconds;
    for (const auto& [kernel, all] : kernels)
      tell(fmt::format("{} {:.9g} {}", name == 'a' ? 'A' : 'B',
                       all / static_cast<double>(samples * repeats), kernel));
  };
  for (int64_t round = 0; round < rounds; ++round) {
    if (round >= DuelOptions::kLeastRounds && left() < 0) break;
    tell("round");
    if (round % 2 == 0) block(*a, 'a');
    block(*b, 'b');
    if (round % 2 != 0) block(*a, 'a');
  }
}

// Of each round.
using Samples = std::vector<std::vector<double>>;

// The samples of all rounds, as measure_in_turns() takes them.
Result<Duel> evaluate(Samples a, Samples b) {
  size_t next_a = 0, next_b = 0;
  const auto from = [](Samples& rounds, size_t& next) {
    return [&]() -> Result<std::vector<double>> { return rounds[next++]; };
  };
  const CancelToken never;
  return measure_in_turns(static_cast<int64_t>(a.size()), never, from(a, next_a), from(b, next_b));
}

}  // namespace

Result<PlanDuel> duel(const Image& first, const Image& second, std::span<const Tensor> inputs,
                      const DuelOptions& options) {
  PlanDuel result;
  bool first_runs = false;
  Samples a, b;
  std::map<std::string, std::array<Samples, 2>> kernels;
  const ForkedWork work = [&](const Tell& tell) { run_both(first, second, inputs, options, tell); };
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
  if (!first_runs) return over_limit("the plan that others are compared with cannot be run");
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
      result.kernels[kernel] = HONE_TRY(evaluate(std::move(rounds[0]), std::move(rounds[1])));
  result.times = HONE_TRY(evaluate(std::move(a), std::move(b)));
  result.outcome = Outcome::measured;
  return result;
}

}  // namespace hone
