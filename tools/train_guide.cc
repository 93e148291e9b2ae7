// train_guide SECONDS [SEED]: betters the learned guide of the memory planner by simple evolution,
// and prints it as src/alloc/learned_guide.def. A change is kept if the search then takes fewer
// steps, in the geometric mean, over generated problems.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "alloc/blocks.h"
#include "alloc/floor_search.h"
#include "alloc/generate.h"
#include "alloc/guide.h"

namespace hone {
namespace {

constexpr int kProblems = 100;
constexpr int64_t kMostNodes = 10'000;  // of a problem; what takes more counts as twice that

struct Task {
  Packing packing;
  int64_t capacity;
};

// All of it but what is alive in some stretches of time is thinned out: the load has peaks.
void thin_out(MemoryProblem& problem, int64_t end, int stretches, double keep, Rng& rng) {
  std::vector<std::pair<int64_t, int64_t>> whole;
  for (int i = 0; i < stretches; ++i) {
    const int64_t begin = rng.between(0, end - 1);
    whole.emplace_back(begin, begin + rng.between(1, end / 8));
  }
  std::erase_if(problem.buffers, [&](const MemoryBuffer& b) {
    const bool is_whole = std::ranges::any_of(
        whole, [&](const auto& s) { return b.begin < s.second && s.first < b.end; });
    return !is_whole && !rng.chance(keep);
  });
}

// Without slack; with a little everywhere; with slack but for some peaks; the same with short
// lives; long or short lives without slack; all of these with pieces of one order of magnitude, or
// of all.
Task task(int kind, Rng& rng) {
  GuillotineOptions options{.buffers = rng.between(100, 400)};
  if (rng.chance(0.4)) options.by_area = rng.uniform(0, 0.8);
  if (kind == 1) options.buffers = rng.between(100, 250);
  if (kind == 3) options.in_time = 0.7;
  if (kind == 4) options.in_time = rng.uniform(0.35, 0.7);
  MemoryProblem problem = guillotine(options, rng);
  if (kind == 1) thin_out(problem, options.capacity, 0, rng.uniform(0.85, 0.98), rng);
  if (kind == 2 || kind == 3)
    thin_out(problem, options.capacity, static_cast<int>(rng.between(1, 4)), rng.uniform(0.3, 0.9),
             rng);
  return {std::move(blocks_of(problem).value().spaces[0]), options.capacity};
}

// A guide as what can be changed.
struct Candidate {
  std::vector<Preferences> preferences;
  double backtracks;
  Guide guide() const { return {with_plain(preferences), backtracks}; }
};

Candidate changed(Candidate candidate, double step, Rng& rng) {
  // What is a share of the capacity has larger weights than logarithms have.
  constexpr double kScale[] = {0.7, 0.7, 8, 8, 8};
  for (Preferences& each : candidate.preferences) {
    for (size_t i = 0; i < each.section.size(); ++i)
      if (rng.chance(0.15)) each.section[i] += static_cast<float>(kScale[i] * step * rng.normal());
    for (float& weight : each.block)
      if (rng.chance(0.15)) weight += static_cast<float>(0.7 * step * rng.normal());
  }
  if (rng.chance(0.1))
    candidate.backtracks =
        std::clamp(candidate.backtracks * std::exp(0.5 * rng.normal()), 50.0, 5'000.0);
  if (rng.chance(0.1))
    std::swap(candidate.preferences[rng.below(candidate.preferences.size())],
              candidate.preferences[rng.below(candidate.preferences.size())]);
  return candidate;
}

struct Score {
  double sum = 0;  // of the logarithms of steps
  int solved = 0;
};

// Stops where it is worse than that.
Score score(const Candidate& candidate, const std::vector<Task>& tasks, double worst) {
  Score score;
  for (const Task& task : tasks) {
    Limits limits(0, kMostNodes, nullptr);
    MemoryCounts counts;
    const bool is_solved =
        search_floors(task.packing, task.capacity, {}, candidate.guide(), limits, counts).found ==
        Found::placement;
    score.solved += is_solved;
    score.sum += std::log(static_cast<double>(is_solved ? counts.nodes : 2 * kMostNodes));
    if (score.sum > worst) break;
  }
  return score;
}

void print(const Candidate& candidate) {
  fmt::print("// Written by ./dev train-guide.\nconstexpr Preferences kLearned[] = {{\n");
  for (const Preferences& each : candidate.preferences)
    fmt::print("    {{{{{:.3g}}}, {{{:.3g}}}}},\n", fmt::join(each.section, ", "),
               fmt::join(each.block, ", "));
  fmt::print("}};\nconstexpr double kLearnedBacktracks = {:.4g};\n", candidate.backtracks);
}

int train(double seconds, uint64_t seed) {
  std::vector<Task> tasks;
  for (int i = 0; i < kProblems; ++i) {
    Rng rng(1'000'000 + static_cast<uint64_t>(i));  // tests and benchmarks take smaller seeds
    tasks.push_back(task(i % 5, rng));
  }
  const Guide& present = learned_guide();
  const size_t plain = plain_guide().preferences.size();
  Candidate best{
      {present.preferences.begin(), present.preferences.end() - static_cast<ptrdiff_t>(plain)},
      present.backtracks};
  Score least = score(best, tasks, HUGE_VAL);
  Rng rng(seed);
  double step = 0.5;
  const auto begin = std::chrono::steady_clock::now();
  const auto is_over = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() >
           seconds;
  };
  for (int trial = 0; !is_over(); ++trial) {
    const Candidate candidate = changed(best, step, rng);
    const Score of = score(candidate, tasks, least.sum);
    step = std::clamp(step * (of.sum < least.sum ? 1.2 : 0.98), 0.1, 1.0);
    if (of.sum >= least.sum) continue;
    best = candidate;
    least = of;
    fmt::print(stderr, "trial {}: {:.0f} steps in the mean, {} of {} solved\n", trial,
               std::exp(least.sum / kProblems), least.solved, kProblems);
  }
  print(best);
  return 0;
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0;
  if (argc > 3 || seconds <= 0) {
    fmt::print(stderr, "train_guide SECONDS [SEED]\n");
    return 2;
  }
  return hone::train(seconds, argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
}
