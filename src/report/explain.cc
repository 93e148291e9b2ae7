#include "report/explain.h"

#include <algorithm>
#include <functional>

#include "kernel/algorithms/algorithm.h"
#include "kernel/kernel_name.h"
#include "kernel/schedule_space.h"
#include "program/tasks.h"
#include "report/kernel_work.h"
#include "target/fingerprint.h"
#include "target/memory_speed.h"
#include "tune/kernel_candidate.h"
#include "tune/kernel_meter.h"

namespace hone {
namespace {

constexpr size_t kMostPriced = 2000;  // schedules of an algorithm that is looked at

class Explainer {
 public:
  Explainer(const Target& target, const Cost& cost, int64_t threads, const ExplainOptions& options)
      : target_(target),
        cost_(cost),
        learned_(cost.learned()),
        threads_(threads),
        options_(options) {}

  // `moved`: bytes of a launch.
  Result<ExplainedKernel> kernel(const PlannedKernel& planned, double moved) const {
    const auto facts = std::make_shared<const KernelFacts>(planned.body, planned.hash);
    const std::unique_ptr<PricedKernel> price = cost_.kernel(facts, threads_);
    ExplainedKernel kernel;
    kernel.hash = planned.hash;
    kernel.name = kernel_name(planned.body.graph);
    kernel.layers = layers_of(planned, options_.layers);
    kernel.chosen = HONE_TRY(figures(*facts, *price, *planned.schedule));
    if (learned_ != nullptr) kernel.trust = learned_->trust(facts, *planned.schedule, threads_);
    const KernelWork work = work_of(planned.body, *planned.schedule, target_);
    const double peak = work.peak * static_cast<double>(threads_);
    if (peak > 0) kernel.arithmetic_roof = work.operations / peak;
    const double rate = memory_speed(target_, threads_);
    if (rate > 0) kernel.memory_roof = moved / rate;
    if (options_.planned == nullptr) return kernel;
    const auto before = options_.planned->schedule.find(planned.hash);
    if (before != options_.planned->schedule.end() && before->second != *planned.schedule)
      kernel.planned = HONE_TRY(figures(*facts, *price, before->second));
    return kernel;
  }

  // The cheapest of each algorithm but the chosen one.
  std::vector<ScheduleFigures> others(const PlannedKernel& planned) const {
    const auto facts = std::make_shared<const KernelFacts>(planned.body, planned.hash);
    const std::unique_ptr<PricedKernel> price = cost_.kernel(facts, threads_);
    const ScheduleSpace space(facts->body, *facts, target_);
    std::map<Algorithm, Schedule> starts;
    const Schedule simplest = space.simplest();
    starts.emplace(simplest.algorithm(), simplest);
    for (const Schedule& next : space.neighbours(simplest)) starts.emplace(next.algorithm(), next);
    std::vector<ScheduleFigures> found;
    for (const auto& [algorithm, start] : starts)
      if (algorithm != planned.schedule->algorithm())
        found.push_back(descend(space, *price, start, [by = algorithm](const Schedule& next) {
          return next.algorithm() == by;
        }));
    std::ranges::sort(found, {}, &ScheduleFigures::priced);
    return found;
  }

  // The search starts from the chosen schedule with its outermost loops divided. Blocks of a GPU
  // have threads of their own.
  std::optional<Undivided> undivided(const PlannedKernel& planned) const {
    if (threads_ < 2 || planned.schedule->threads > 0 ||
        def_of(planned.schedule->algorithm()).is_for_gpu())
      return {};
    const auto facts = std::make_shared<const KernelFacts>(planned.body, planned.hash);
    const std::unique_ptr<PricedKernel> price = cost_.kernel(facts, threads_);
    const ScheduleSpace space(facts->body, *facts, target_);
    const auto is_divided = [](const Schedule& schedule) { return schedule.threads > 0; };
    Schedules starts = space.neighbours(*planned.schedule);
    Schedule outer = *planned.schedule;
    outer.threads = 1;
    const Status may_be = check_schedule(facts->body, *facts, outer, target_);
    if (may_be.ok()) starts.push_back(outer);
    std::erase_if(starts, [&](const Schedule& start) { return !is_divided(start); });
    if (starts.empty()) return Undivided{.divided = {}, .why = may_be.error().what()};
    const Schedule start = *std::ranges::min_element(
        starts, {}, [&](const Schedule& one) { return price->seconds(one); });
    ScheduleFigures divided = descend(space, *price, start, is_divided);
    divided.terms = price->terms(divided.schedule);
    return Undivided{.divided = std::move(divided), .why = ""};
  }

 private:
  Result<ScheduleFigures> figures(const KernelFacts& facts, PricedKernel& price,
                                  const Schedule& schedule) const {
    ScheduleFigures figures = {.schedule = schedule,
                               .priced = price.seconds(schedule),
                               .source = std::string(price.source(schedule)),
                               .terms = price.terms(schedule)};
    if (options_.log == nullptr) return figures;
    const Result<KernelCandidate> candidate =
        candidate_of(std::make_shared<const KernelBody>(facts.body), schedule, target_);
    if (!candidate.ok()) return figures;  // it is of a loop's parts, which no tuner has measured
    const std::vector<Record> records =
        HONE_TRY(options_.log->find({.kind = "kernel",
                                     .code = candidate->code,
                                     .target = fingerprint(target_),
                                     .outcome = Outcome::measured}));
    const std::string threads = fmt::format(" threads={} ", threads_);
    for (const Record& record : records)  // the last of equal conditions counts
      if ((" " + record.conditions + " ").find(threads) != std::string::npos)
        figures.measured[record.conditions] = typical(record.seconds);
    return figures;
  }

  // From neighbour to the cheapest neighbour of the same kind, until none is cheaper.
  static ScheduleFigures descend(const ScheduleSpace& space, PricedKernel& price, Schedule start,
                                 const std::function<bool(const Schedule&)>& is_of_kind) {
    ScheduleFigures best = {.schedule = std::move(start)};
    best.priced = price.seconds(best.schedule);
    bool is_better = true;
    for (size_t priced = 0; is_better && priced < kMostPriced;) {
      is_better = false;
      for (Schedule& next : space.neighbours(best.schedule)) {
        if (!is_of_kind(next)) continue;
        ++priced;
        const double seconds = price.seconds(next, best.priced);
        if (seconds >= best.priced) continue;
        best = {.schedule = std::move(next), .priced = seconds};
        is_better = true;
      }
    }
    return best;
  }

  const Target& target_;
  const Cost& cost_;
  const LearnedCost* const learned_;  // null: the price is none
  const int64_t threads_;
  const ExplainOptions& options_;
};

}  // namespace

namespace {

void add_rewrites(const Plan& plan, const std::string& place, std::vector<std::string>& all) {
  for (const Rewrite& each : plan.rewrite) all.push_back(place + print(each));
  for (const auto& [key, inner] : plan.region)
    add_rewrites(inner, fmt::format("{}region %{}, ", place, key), all);
}

}  // namespace

double Explanation::priced() const {
  double sum = 0;
  for (const ExplainedKernel& kernel : kernels) sum += kernel.priced();
  return sum;
}

size_t Explanation::unknown() const {
  return static_cast<size_t>(std::ranges::count_if(kernels, [](const ExplainedKernel& kernel) {
    return kernel.trust && kernel.chosen.source == "analytic";
  }));
}

Result<Explanation> explain(const Graph& graph, const Plan& plan, const Target& target,
                            const Cost& cost, const ExplainOptions& options) {
  if (!graph.is_static()) return bad_input("sizes are open, and what kernels cost depends on them");
  Explanation explanation = {.threads = plan.threads.value_or(1), .kernels = {}};
  if (const LearnedCost* learned = cost.learned()) explanation.learned = learned->place();
  add_rewrites(plan, "", explanation.rewrites);
  const Explainer explainer(target, cost, explanation.threads, options);
  const std::map<std::string, PlannedKernel> planned = HONE_TRY(planned_kernels(graph, plan));
  const auto editor = HONE_TRY(PlanEditor::open(graph, plan, target));
  const Tasks tasks = tasks_of(*editor);
  const std::unordered_map<uint64_t, double> launches = launches_of(tasks);
  std::map<uint64_t, double> moved;  // by a launch of each kernel
  for (const Task* task : in_order(tasks))
    if (task->kernels.size() == 1)
      moved[task->kernels[0]] = static_cast<double>(task->moved.value());
  std::map<uint64_t, size_t> known;
  std::map<uint64_t, const PlannedKernel*> by_hash;
  for (const auto& [step, kernel] : planned) {
    const auto [at, is_new] = known.try_emplace(kernel.hash, explanation.kernels.size());
    if (is_new) {
      const double bytes = moved[kernel.hash];
      explanation.kernels.push_back(HONE_TRY(explainer.kernel(kernel, bytes)));
      explanation.kernels.back().launches = launches.at(kernel.hash);
    }
    ++explanation.kernels[at->second].steps;
    by_hash[kernel.hash] = &kernel;
  }
  std::ranges::sort(explanation.kernels, {}, [](const ExplainedKernel& kernel) {
    return std::pair(-kernel.priced(), kernel.hash);
  });
  for (size_t i = 0; i < std::min(options.most, explanation.kernels.size()); ++i) {
    ExplainedKernel& kernel = explanation.kernels[i];
    kernel.others = explainer.others(*by_hash[kernel.hash]);
    kernel.undivided = explainer.undivided(*by_hash[kernel.hash]);
  }
  return explanation;
}

}  // namespace hone
