#include "tune/first_times.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "planner/schedules.h"
#include "program/frame.h"
#include "program/lower/lower.h"
#include "tune/kernel_timer.h"

namespace hone {
namespace {

constexpr size_t kMostCandidates = 6;
constexpr double kMostPrice = 2;      // times that of the planned one
constexpr double kLeastGain = 0.03;   // a logarithm: less may be where operands lie
constexpr double kDeviations = 2;     // of the noise
constexpr double kStart = 0.3;        // seconds of a race beside its launches: to compile
constexpr double kLaunches = 9 * 12;  // of a candidate in a race, warm runs and places with it

using Clock = std::chrono::steady_clock;

// Rows without which the planner's choice is by another algorithm, or leaves out much of one.
bool decides_algorithm(const Heuristic& row) {
  const auto is_its = [&](Algorithm each) { return name(each) == row.name; };
  return std::ranges::any_of(kAlgorithms, is_its) || row.flag == &Heuristics::packing ||
         row.flag == &Heuristics::chain_blocks;
}

// The planner's choice without one of its heuristics.
Status add_without(bool Heuristics::* row, const KernelUse& use, const Target& target,
                   const Cost& cost, int64_t threads, std::vector<Schedule>& all) {
  PlannerOptions options;
  options.heuristics.*row = false;
  ScheduleChooser chooser(target, cost, threads, options);
  all.push_back(HONE_TRY(chooser.choose(use.facts))->schedule);
  return {};
}

// A race on this machine.
FirstRace race_here(const Target& target, MeasuredKernels& known) {
  return [&](const KernelUse& use, std::span<const Schedule> schedules,
             const MeterOptions& meter) -> Result<std::vector<KernelTime>> {
    KernelTimer timer(use.facts, schedules[0], target, known, meter);
    HONE_TRY(timer.seconds(schedules));
    std::vector<KernelTime> times;
    const std::string conditions = meter.conditions.text();
    const auto body = std::shared_ptr<const KernelBody>(use.facts, &use.facts->body);
    for (const Schedule& schedule : schedules) {
      const KernelCandidate candidate = HONE_TRY(candidate_of(body, schedule, target));
      const auto time = HONE_TRY(known.time(candidate.code, conditions));
      times.push_back(time.value_or(KernelTime{std::numeric_limits<double>::infinity(), 0}));
    }
    return times;
  };
}

class FirstTimes {
 public:
  FirstTimes(const Graph& graph, const Target& target, const Cost& cost,
             const FirstTimesOptions& options)
      : graph_(graph), target_(target), cost_(cost), options_(options) {}

  Result<Plan> run(Plan plan) {
    if (!options_.measures && (!options_.log || options_.log() == nullptr)) return plan;
    const Program program = HONE_TRY(lower(graph_, plan, target_, options_.cancel));
    const std::vector<KernelUse> uses = kernel_uses(program, cost_);
    double all = 0;
    for (const KernelUse& use : uses) all += use.weight;
    const bool is_cold = weights_are_cold(program);
    for (const KernelUse& use : uses) {
      if (use.weight < std::max(options_.least_share * all, options_.least_seconds)) break;
      MeterOptions meter;
      meter.conditions.threads = program.threads;
      if (is_cold) meter.conditions.cold = use.is_constant;
      meter.cancel = options_.cancel;
      HONE_TRY(revise(use, meter, plan));
    }
    return plan;
  }

 private:
  // As the tuner has it, so that both know each other's times.
  bool weights_are_cold(const Program& program) const {
    int64_t bytes = 0;
    for (const program::FrameRef& frame : program::all_frames(program.main))
      for (const program::Buffer& buffer : frame->buffers)
        if (buffer.role == program::Role::constant && buffer.type.is_static())
          bytes += buffer.type.static_bytes();
    return !target_.caches.empty() && bytes > target_.caches.back().bytes;
  }

  MeasuredKernels& known() {
    if (!known_) known_.emplace(options_.log ? options_.log() : nullptr, target_, options_.version);
    return *known_;
  }

  Status revise(const KernelUse& use, const MeterOptions& meter, Plan& plan) {
    if (!options_.measures && !HONE_TRY(known().has_kernel(use.hash))) return {};
    const std::vector<Schedule> candidates =
        first_candidates(use, target_, cost_, meter.conditions.threads);
    if (candidates.size() < 2) return {};
    std::vector<KernelTime> times = HONE_TRY(remembered(use, candidates, meter));
    const bool has_all = std::ranges::none_of(
        times, [](const KernelTime& time) { return std::isnan(time.seconds); });
    if (!has_all) {
      if (!options_.measures || !has_time(use, candidates.size())) return {};
      Result<std::vector<KernelTime>> raced =
          options_.race ? options_.race(use, candidates, meter)
                        : race_here(target_, known())(use, candidates, meter);
      // A kernel that cannot be timed alone has its price.
      if (!raced.ok())
        return raced.error().code() == ErrorCode::interrupted ? Status(raced.error()) : Status();
      times = *std::move(raced);
    }
    const auto best = static_cast<size_t>(
        std::ranges::min_element(times, {}, &KernelTime::seconds) - times.begin());
    if (!is_surely_faster(times[best], times[0])) return {};
    return take(use, candidates[best], times[0].seconds / times[best].seconds, plan);
  }

  // Not a number: nothing is known of it.
  Result<std::vector<KernelTime>> remembered(const KernelUse& use,
                                             std::span<const Schedule> candidates,
                                             const MeterOptions& meter) {
    std::vector<KernelTime> times;
    for (const Schedule& each : candidates) {
      const auto time = HONE_TRY(known().time_of(use.hash, each, meter.conditions.text()));
      times.push_back(time.value_or(KernelTime{std::numeric_limits<double>::quiet_NaN(), 0}));
    }
    return times;
  }

  bool has_time(const KernelUse& use, size_t candidates) const {
    const double spent = std::chrono::duration<double>(Clock::now() - began_).count();
    const double launch =
        cost_.kernel(use.facts, 1)->seconds(use.schedule);  // on one thread: the longest
    return spent + kStart + kLaunches * static_cast<double>(candidates) * launch < options_.seconds;
  }

  // A schedule may not fit the layouts of the plan.
  Status take(const KernelUse& use, const Schedule& schedule, double gain, Plan& plan) {
    Plan other = plan;
    other.schedule[use.hash] = schedule;
    if (!check_complete(other, graph_, target_).ok()) return {};
    plan = std::move(other);
    if (options_.told)
      options_.told(
          fmt::format("{}: a schedule is {:.2f}x as fast as the planned one", use.name, gain));
    return {};
  }

  const Graph& graph_;
  const Target& target_;
  const Cost& cost_;
  const FirstTimesOptions& options_;
  const Clock::time_point began_ = Clock::now();
  std::optional<MeasuredKernels> known_;
};

}  // namespace

std::vector<Schedule> first_candidates(const KernelUse& use, const Target& target, const Cost& cost,
                                       int64_t threads) {
  std::vector<Schedule> all = {use.schedule};
  const Cost& usual = cost.baseline() != nullptr ? *cost.baseline() : cost;
  for (const Cost* each : {&usual, &cost}) {
    if (each == &cost && &usual == &cost) break;
    ScheduleChooser chooser(target, *each, threads);
    if (const auto chosen = chooser.choose(use.facts); chosen.ok())
      all.push_back((*chosen)->schedule);
  }
  for (const Heuristic& row : kHeuristics)
    if (decides_algorithm(row) && !add_without(row.flag, use, target, usual, threads, all).ok())
      break;
  const auto priced = cost.kernel(use.facts, threads);
  const auto by_usual = usual.kernel(use.facts, threads);
  const double most = kMostPrice * by_usual->seconds(use.schedule);
  std::vector<Schedule> candidates;
  for (const Schedule& each : all) {
    if (std::ranges::find(candidates, each) != candidates.end()) continue;
    if (candidates.size() == kMostCandidates) break;
    const bool is_dear = !candidates.empty() && (priced->is_surely_cheaper(use.schedule, each) ||
                                                 by_usual->seconds(each) > most);
    if (!is_dear && check_schedule(use.facts->body, each, target).ok()) candidates.push_back(each);
  }
  return candidates;
}

bool is_surely_faster(const KernelTime& other, const KernelTime& usual) {
  if (!std::isfinite(usual.seconds) || !std::isfinite(other.seconds)) return false;
  const double gain = std::log(usual.seconds / other.seconds);
  return gain > std::max(kLeastGain, kDeviations * std::hypot(other.noise, usual.noise));
}

Result<Plan> with_first_times(const Graph& graph, Plan plan, const Target& target, const Cost& cost,
                              const FirstTimesOptions& options) {
  return FirstTimes(graph, target, cost, options).run(std::move(plan));
}

}  // namespace hone
