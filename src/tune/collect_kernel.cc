#include "tune/collect_kernel.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <unordered_set>

#include "kernel/kernel_text.h"
#include "kernel/schedule_text.h"
#include "planner/planner.h"
#include "planner/schedules.h"
#include "search/plan_search.h"
#include "tune/timed_schedules.h"

namespace hone {

Result<Plan> default_plan(const Graph& graph, const Target& target, const Cost& cost,
                          int64_t threads, const CancelToken* cancel) {
  Plan plan;
  plan.threads = threads;
  return complete(graph, std::move(plan), target, cost, {.cancel = cancel});
}

Result<std::optional<DefaultKernel>> kernel_at(const FrameEditor& frame, uint32_t step,
                                               PlanCost& price) {
  const Schedule schedule = HONE_TRY(price.schedule(frame, step));
  if (schedule.algorithm() == Algorithm::generic) return std::optional<DefaultKernel>();
  const uint64_t hash = frame.kernel(step).hash;
  DefaultKernel kernel{std::make_shared<const KernelFacts>(frame.body(step), hash), schedule};
  kernel.price = HONE_TRY(price.seconds(frame, step));
  return std::optional(std::move(kernel));
}

Result<std::vector<DefaultKernel>> default_kernels(const Graph& graph, const Target& target,
                                                   const Cost& cost, int64_t threads,
                                                   std::optional<double> least_seconds) {
  const Plan plan = HONE_TRY(default_plan(graph, target, cost, threads));
  const auto editor = HONE_TRY(PlanEditor::open(graph, plan, target));
  std::unordered_set<uint64_t> seen;
  std::vector<DefaultKernel> kernels;
  const FrameEditor& frame = editor->main();
  for (uint32_t s = 0; s < frame.planned().steps.size(); ++s) {
    const uint64_t hash = frame.kernel(s).hash;
    if (!frame.planned().steps[s].is_kernel || !seen.insert(hash).second) continue;
    const Schedule& schedule = plan.schedule.at(hash);
    if (schedule.algorithm() == Algorithm::generic) continue;
    DefaultKernel kernel{std::make_shared<const KernelFacts>(frame.body(s), hash), schedule};
    kernel.price = cost.kernel(kernel.facts, threads)->seconds(schedule);
    if (kernel.price >= least_seconds.value_or(least_kernel_seconds(target)))
      kernels.push_back(std::move(kernel));
  }
  std::ranges::sort(kernels, std::greater<>(), &DefaultKernel::price);
  return kernels;
}

Result<std::vector<DefaultKernel>> kernels_of_other_groups(const Graph& graph, const Target& target,
                                                           const Cost& cost, int64_t threads,
                                                           size_t plans, uint64_t seed) {
  constexpr size_t kMostEdits = 4;
  constexpr EditKind kKinds[] = {EditKind::join, EditKind::split};
  const Plan plan = HONE_TRY(default_plan(graph, target, cost, threads));
  const auto editor = HONE_TRY(PlanEditor::open(graph, plan, target));
  KernelStore store;
  PlanCost price(*editor, cost, store, planner_schedules(target, cost, store));
  PlanSearch space(*editor, kKinds);
  std::set<uint64_t> seen;
  const FrameEditor& frame = editor->main();
  for (uint32_t s = 0; s < frame.planned().steps.size(); ++s) seen.insert(frame.kernel(s).hash);
  std::vector<DefaultKernel> kernels;
  Rng rng(seed);
  Point now = space.start();
  for (size_t i = 0; i < plans; ++i) {
    if (i % kMostEdits == 0) now = space.start();
    const std::optional<Point> next = space.step(now, rng);
    if (!next) {
      now = space.start();
      continue;
    }
    now = *next;
    space.move_to(now);
    for (uint32_t s = 0; s < frame.planned().steps.size(); ++s) {
      if (!frame.planned().steps[s].is_kernel || !seen.insert(frame.kernel(s).hash).second)
        continue;
      std::optional<DefaultKernel> kernel = HONE_TRY(kernel_at(frame, s, price));
      if (kernel && kernel->price >= least_kernel_seconds(target))
        kernels.push_back(*std::move(kernel));
    }
  }
  return kernels;
}

Result<KernelTime> time_planned(const DefaultKernel& kernel, const Target& target,
                                MeasuredKernels& known, const MeterOptions& meter) {
  KernelTimer timer(kernel.facts, kernel.planned, target, known, meter);
  const Result<std::vector<double>> seconds = timer.seconds({&kernel.planned, 1});
  if (!seconds.ok()) HONE_TRY(unless_own(seconds.error(), meter.device.get()));
  const std::optional<KernelTime> time = HONE_TRY(known_time(kernel, target, known, meter));
  return time.value_or(KernelTime{std::numeric_limits<double>::infinity()});
}

Result<std::optional<KernelTime>> known_time(const DefaultKernel& kernel, const Target& target,
                                             MeasuredKernels& known, const MeterOptions& meter) {
  const auto body = std::make_shared<const KernelBody>(kernel.facts->body);
  const Result<KernelCandidate> candidate = candidate_of(body, kernel.planned, target);
  if (!candidate.ok()) return std::optional(KernelTime{std::numeric_limits<double>::infinity()});
  const std::string conditions = meter.conditions.text();
  std::optional<KernelTime> time = HONE_TRY(known.recall(*candidate, conditions, true));
  if (!time) time = HONE_TRY(known.time_of(kernel.facts->hash, kernel.planned, conditions));
  return time;
}

Status add_kernels(DataSet& set, const std::string& program, KernelOrigin origin,
                   std::span<const DefaultKernel> kernels) {
  std::vector<KnownText> texts;
  std::vector<ProgramKernel> rows;
  for (const DefaultKernel& kernel : kernels) {
    const uint64_t hash = kernel.facts->hash;
    texts.push_back({"kernel", hash, print(kernel.facts->body)});
    rows.push_back({hash, program, print(kernel.planned), kernel.price, origin});
  }
  HONE_TRY(set.log().add({}, texts));
  return set.add(rows);
}

Result<bool> collect_schedules(const DefaultKernel& kernel, const Target& target,
                               const CollectOptions& options, KernelTimer& timer) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point began = Clock::now();
  const auto count = options.schedules;
  for (const auto& [by, trials] :
       {std::pair("random", count / 2), std::pair("evolutionary", count)}) {
    ScheduleSearch space(kernel.facts, target, kernel.planned);
    TimedSchedules times(space, timer);
    const auto more = trials - static_cast<int64_t>(timer.timed().seconds.size());
    if (more < 1) continue;
    const double left =
        options.seconds - std::chrono::duration<double>(Clock::now() - began).count();
    if (left <= 0) return false;
    const SearchResult found = HONE_TRY(HONE_TRY(find_search(by))
                                            ->run(space, times,
                                                  {.budget = {.seconds = left, .trials = more + 1},
                                                   .seed = options.seed ^ kernel.facts->hash,
                                                   .cancel = options.cancel}));
    if (found.end == SearchEnd::seconds || found.end == SearchEnd::cancelled) return false;
  }
  return true;
}

}  // namespace hone
