#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "kernel/kernel_name.h"
#include "learn/kernel_data.h"
#include "measure/samples.h"
#include "program/tasks.h"
#include "report/plan_picture.h"
#include "target/fingerprint.h"

namespace hone {
namespace {

// Records of one kernel, those of the conditions that most of them have: others do not compare.
Result<std::vector<Record>> records_of(const Log& log, uint64_t kernel, const Target& target,
                                       int64_t threads) {
  std::vector<Record> found = HONE_TRY(log.find({.kind = "kernel",
                                                 .subject = kernel,
                                                 .target = fingerprint(target),
                                                 .outcome = Outcome::measured}));
  const std::string wanted = fmt::format(" threads={} ", threads);
  std::map<std::string, size_t> counts;
  for (const Record& record : found)
    if ((" " + record.conditions + " ").find(wanted) != std::string::npos)
      ++counts[record.conditions];
  if (counts.empty()) return std::vector<Record>();
  const auto by_count = [](const auto& one) { return one.second; };
  const std::string most = std::ranges::max_element(counts, {}, by_count)->first;
  std::erase_if(found, [&](const Record& record) { return record.conditions != most; });
  return found;
}

// The chosen schedule and the fastest ones stay.
void bound(TriedKernel& kernel, size_t most, size_t& left_out) {
  if (kernel.points.size() <= most) return;
  std::ranges::sort(kernel.points, {}, [](const TriedKernel::Point& point) {
    return std::tuple(!point.is_chosen, point.measured, point.id);
  });
  left_out += kernel.points.size() - most;
  kernel.points.resize(most);
  std::ranges::sort(kernel.points, {}, &TriedKernel::Point::id);
}

// Kernels count from the first measurement on with what their first schedule takes.
std::vector<std::pair<int64_t, double>> progress_of(std::span<const TriedKernel> kernels) {
  struct Trial {
    int64_t id;
    size_t kernel;
    double seconds;
  };
  std::vector<Trial> trials;
  std::vector<double> best;
  double sum = 0;
  for (size_t i = 0; i < kernels.size(); ++i) {
    for (const TriedKernel::Point& point : kernels[i].points)
      trials.push_back({point.id, i, point.measured});
    best.push_back(kernels[i].points.front().measured);
    sum += kernels[i].launches * best[i];
  }
  std::ranges::sort(trials, {}, &Trial::id);
  std::vector<std::pair<int64_t, double>> progress = {{0, sum}};
  for (size_t i = 0; i < trials.size(); ++i) {
    const Trial& trial = trials[i];
    if (trial.seconds >= best[trial.kernel]) continue;
    sum -= kernels[trial.kernel].launches * (best[trial.kernel] - trial.seconds);
    best[trial.kernel] = trial.seconds;
    progress.emplace_back(static_cast<int64_t>(i) + 1, sum);
  }
  progress.emplace_back(static_cast<int64_t>(trials.size()), sum);
  return progress;
}

}  // namespace

Result<TuningPicture> tuning_picture(const Graph& graph, const Plan& plan, const Target& target,
                                     const Cost& cost, const Log& log,
                                     const PictureBounds& bounds) {
  const int64_t threads = plan.threads.value_or(1);
  const std::map<std::string, PlannedKernel> planned = HONE_TRY(planned_kernels(graph, plan));
  std::map<uint64_t, const PlannedKernel*> uses;
  for (const auto& [step, kernel] : planned) uses.try_emplace(kernel.hash, &kernel);
  const auto editor = HONE_TRY(PlanEditor::open(graph, plan, target));
  const std::unordered_map<uint64_t, double> launches = launches_of(tasks_of(*editor));
  TuningPicture picture;
  picture.best = best_plan(log, graph, target, threads);
  size_t points = 0;
  for (const auto& [hash, planned_kernel] : uses) {
    const std::vector<Record> records = HONE_TRY(records_of(log, hash, target, threads));
    if (records.empty()) continue;
    const auto facts = std::make_shared<const KernelFacts>(planned_kernel->body, hash);
    const std::unique_ptr<PricedKernel> price = cost.kernel(facts, threads);
    TriedKernel kernel = {.name = kernel_name(planned_kernel->body.graph),
                          .launches = launches.at(hash),
                          .points = {}};
    for (const Record& record : records) {
      const Result<Schedule> schedule = schedule_of(record.choice);
      if (!schedule.ok() || !check_schedule(facts->body, *facts, *schedule, target).ok()) continue;
      kernel.points.push_back({price->seconds(*schedule), typical(record.seconds),
                               *schedule == *planned_kernel->schedule, record.id});
    }
    bound(kernel, std::min(bounds.points, bounds.all_points - std::min(points, bounds.all_points)),
          picture.left_out);
    points += kernel.points.size();
    if (!kernel.points.empty()) picture.kernels.push_back(std::move(kernel));
  }
  if (!picture.kernels.empty()) picture.progress = progress_of(picture.kernels);
  std::ranges::sort(picture.kernels, std::greater<>(), [](const TriedKernel& kernel) {
    return kernel.launches * kernel.points.front().measured;
  });
  return picture;
}

}  // namespace hone
