// train_guide SECONDS [SEED]: betters the learned guide of the memory planner by simple evolution,
// and prints it as src/alloc/learned_guide.def. A change is kept if the search then takes fewer
// steps, in the geometric mean, over generated problems.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <vector>

#include "alloc/blocks.h"
#include "alloc/floor_search.h"
#include "alloc/generate.h"
#include "alloc/guide.h"

namespace hone {
namespace {

// Where little fails it matters what is placed next, where much does how far the search goes back.
// So every other problem is hard: the guide that was made by hand takes this many steps.
constexpr size_t kProblems = 320;
constexpr uint64_t kKinds = 6;
constexpr int64_t kHardNodes = 1'000;
constexpr int64_t kMostNodes = 6'000;  // of a problem; what takes more counts as twice that

struct Task {
  BlockPacking packing;
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

Task task_of(const MemoryProblem& problem, int64_t capacity) {
  return {std::move(blocks_of(problem).value().spaces[0]), capacity};
}

// All of the capacity is in use at each moment. Many have no placement.
Task full_task(Rng& rng) {
  constexpr int64_t kCapacity = 1 << 16, kLongest = 6;
  const int64_t moments = rng.between(8, 24), unit = int64_t{1} << rng.between(8, 12);
  const int64_t largest = kCapacity / unit / rng.between(2, 5);
  std::vector<int64_t> free(static_cast<size_t>(moments), kCapacity);
  MemoryProblem problem;
  for (int64_t begin = 0; begin < moments; ++begin)
    while (free[static_cast<size_t>(begin)] > 0) {
      const auto first = free.begin() + begin;
      const auto most = first + std::min(moments - begin, rng.between(1, kLongest));
      const auto end = std::find(first, most, 0);
      const int64_t size = std::min(*std::min_element(first, end), rng.between(1, largest) * unit);
      std::for_each(first, end, [&](int64_t& room) { room -= size; });
      problem.buffers.push_back({.begin = begin, .end = end - free.begin(), .size = size});
    }
  return task_of(problem, kCapacity);
}

// Without slack; with a little everywhere; with slack but for some peaks; the same with short
// lives; long or short lives without slack. All of these have pieces of one order of magnitude, or
// of all. Or full, and not cut from one rectangle.
Task task(uint64_t kind, Rng& rng) {
  if (kind == 5) return full_task(rng);
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
  return task_of(problem, options.capacity);
}

// How many steps it takes; nothing if it takes more than `most`.
std::optional<int64_t> steps(const Task& task, const Guide& guide, int64_t most) {
  Limits limits(0, most, nullptr);
  MemoryCounts counts;
  if (search_floors(task.packing, task.capacity, {}, guide, limits, counts).found == Found::limit)
    return std::nullopt;
  return counts.nodes;
}

std::vector<Task> training_tasks() {
  std::vector<Task> tasks;
  for (uint64_t seed = 1'000'000; tasks.size() < kProblems; ++seed) {  // others take smaller ones
    Rng rng(seed);
    Task drawn = task(seed % kKinds, rng);
    if (tasks.size() % 2 == 0 || !steps(drawn, plain_guide(), kHardNodes))
      tasks.push_back(std::move(drawn));
  }
  return tasks;
}

// A guide as what can be changed.
struct Candidate {
  std::vector<Preferences> preferences;
  JumpWeights jump;
  Guide guide() const { return {with_plain(preferences), jump}; }
};

void change(std::vector<Preferences>& preferences, double step, Rng& rng) {
  // Shares of the capacity have larger weights than logarithms have.
  constexpr double kScale[] = {0.7, 0.7, 8, 8, 8};
  for (Preferences& each : preferences) {
    for (size_t i = 0; i < each.section.size(); ++i)
      if (rng.chance(0.15)) each.section[i] += static_cast<float>(kScale[i] * step * rng.normal());
    for (float& weight : each.block)
      if (rng.chance(0.15)) weight += static_cast<float>(0.7 * step * rng.normal());
  }
  if (rng.chance(0.1))
    std::swap(preferences[rng.below(preferences.size())],
              preferences[rng.below(preferences.size())]);
}

void change(JumpWeights& jump, double step, Rng& rng) {
  constexpr double kScale[] = {1, 0.05, 0.4, 1, 0.4};
  for (size_t i = 0; i < jump.failure.size(); ++i)
    if (rng.chance(0.4)) jump.failure[i] += kScale[i] * step * rng.normal();
  for (double& weight : jump.decision)
    if (rng.chance(0.4)) weight += 0.4 * step * rng.normal();
}

Candidate changed(Candidate candidate, double step, Rng& rng) {
  if (rng.chance(0.5))
    change(candidate.jump, step, rng);
  else
    change(candidate.preferences, step, rng);
  return candidate;
}

// The logarithms of steps, task by task. Stops where it is so far behind the best that it will
// hardly be better in the end: by more than what is chance in as many tasks.
std::vector<double> logs_of_steps(const Candidate& candidate, const std::vector<Task>& tasks,
                                  const std::vector<double>& best) {
  const Guide guide = candidate.guide();
  std::vector<double> logs;
  double behind = 0;
  for (const Task& task : tasks) {
    const int64_t nodes = steps(task, guide, kMostNodes).value_or(2 * kMostNodes);
    logs.push_back(std::log(static_cast<double>(nodes)));
    if (best.empty()) continue;
    behind += logs.back() - best[logs.size() - 1];
    if (behind > std::sqrt(static_cast<double>(logs.size()))) break;
  }
  return logs;
}

double mean(const std::vector<double>& values) {
  return std::reduce(values.begin(), values.end()) / static_cast<double>(values.size());
}

void print(const Candidate& candidate) {
  fmt::print("// Written by ./dev train-guide.\nconstexpr Preferences kLearned[] = {{\n");
  for (const Preferences& each : candidate.preferences)
    fmt::print("    {{{{{:.3g}}}, {{{:.3g}}}}},\n", fmt::join(each.section, ", "),
               fmt::join(each.block, ", "));
  fmt::print("}};\nconstexpr JumpWeights kLearnedJump = {{{{{:.3g}}}, {{{:.3g}}}}};\n",
             fmt::join(candidate.jump.failure, ", "), fmt::join(candidate.jump.decision, ", "));
}

int train(double seconds, uint64_t seed) {
  const std::vector<Task> tasks = training_tasks();
  const Guide& present = learned_guide();
  const size_t plain = plain_guide().preferences.size();
  Candidate best{
      {present.preferences.begin(), present.preferences.end() - static_cast<ptrdiff_t>(plain)},
      present.jump};
  std::vector<double> least = logs_of_steps(best, tasks, {});
  Rng rng(seed);
  double step = 0.5;
  const auto begin = std::chrono::steady_clock::now();
  const auto is_over = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() >
           seconds;
  };
  for (int trial = 0; !is_over(); ++trial) {
    const Candidate candidate = changed(best, step, rng);
    std::vector<double> logs = logs_of_steps(candidate, tasks, least);
    const bool is_better = logs.size() == tasks.size() && mean(logs) < mean(least);
    step = std::clamp(step * (is_better ? 1.2 : 0.98), 0.1, 1.0);
    if (!is_better) continue;
    best = candidate;
    least = std::move(logs);
    fmt::print(stderr, "trial {}: {:.0f} steps in the mean\n", trial, std::exp(mean(least)));
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
