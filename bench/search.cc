// What each search gains by the analytic price, and in how many trials and seconds: over kernels of
// the zoo (schedules), and over models (layouts, groups and other edits), from the planner's
// choice.
//   schedules/SEARCH   the distinct kernels of a model with the largest prices, in turn
//   layouts/SEARCH     of models, for the planner's groups
//   edits/SEARCH       of models: groups, layouts, copies, views, threads
// "ratio" is the geometric mean of price before by price after; "most" is the largest; "trials" and
// "s" are per kernel or model, "until" how many trials of them came before the last improvement.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "cost/analytic.h"
#include "planner/planner.h"
#include "planner/schedules.h"
#include "rewrite/prepare.h"
#include "search/layout_search.h"
#include "search/plan_search.h"
#include "search/schedule_search.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

constexpr std::string_view kModels[] = {"resnet50", "mobilenet_v2", "bert_base", "mixer"};
constexpr size_t kKernels = 4;  // of a model
constexpr SearchBudget kOfKernel{.seconds = 10, .trials = 2000};
constexpr SearchBudget kOfModel{.seconds = 60, .trials = 2000};
constexpr int64_t kLocalPrices = 20'000;  // in place of trials: each is of one kernel of many

const Target& host() {
  static const Target target = host_target().value();
  return target;
}
const Cost& cost() {
  static const AnalyticCost cost(host());
  return cost;
}

struct Planned {
  Graph graph;
  Plan plan;
};

const Planned& planned(std::string_view model) {
  static std::map<std::string_view, Planned> known;
  if (const auto at = known.find(model); at != known.end()) return at->second;
  Graph graph = prepare(build_zoo_model(model).value()).value();
  Plan plan = complete(graph, {}, host()).value();
  return known.emplace(model, Planned{std::move(graph), std::move(plan)}).first->second;
}

class Results {
 public:
  void add(const SearchResult& found) {
    const double ratio = found.start_cost / found.cost;
    logarithms_ += std::log(ratio);
    most_ = std::max(most_, ratio);
    trials_ += static_cast<double>(found.trials);
    until_ += static_cast<double>(found.history.back().trial);
    seconds_ += found.seconds;
    ++count_;
  }
  void report(benchmark::State& state) const {
    state.counters["ratio"] = std::exp(logarithms_ / count_);
    state.counters["most"] = most_;
    state.counters["trials"] = trials_ / count_;
    state.counters["until"] = until_ / count_;
    state.counters["s"] = seconds_ / count_;
  }

 private:
  double logarithms_ = 0, most_ = 1, trials_ = 0, until_ = 0, seconds_ = 0;
  int count_ = 0;
};

// ---- Schedules ----------------------------------------------------------------------------------

struct Kernel {
  std::shared_ptr<const KernelFacts> facts;
  Schedule schedule;
  double seconds = 0;
};

std::vector<Kernel> kernels() {
  std::vector<Kernel> all;
  for (std::string_view model : kModels) {
    const auto& [graph, plan] = planned(model);
    const auto editor = PlanEditor::open(graph, plan, host()).value();
    std::vector<Kernel> of_model;
    std::set<uint64_t> seen;
    const FrameEditor& frame = editor->main();
    for (uint32_t s = 0; s < frame.planned().steps.size(); ++s) {
      const uint64_t hash = frame.kernel(s).hash;
      if (!frame.planned().steps[s].is_kernel || !seen.insert(hash).second) continue;
      Kernel kernel{std::make_shared<KernelFacts>(frame.body(s), hash), plan.schedule.at(hash)};
      kernel.seconds = cost().kernel(kernel.facts, *plan.threads)->seconds(kernel.schedule);
      of_model.push_back(std::move(kernel));
    }
    std::ranges::sort(of_model, std::greater<>(), &Kernel::seconds);
    if (of_model.size() > kKernels) of_model.resize(kKernels);
    all.insert(all.end(), of_model.begin(), of_model.end());
  }
  return all;
}

void schedules(benchmark::State& state, const SearchRow& row) {
  static const std::vector<Kernel> all = kernels();
  Results results;
  for (auto _ : state) {
    for (const Kernel& kernel : all) {
      ScheduleSearch space(kernel.facts, host(), kernel.schedule);
      const std::unique_ptr<PricedKernel> priced = cost().kernel(kernel.facts, host().cores);
      PricedSchedules prices(space, *priced);
      results.add(row.get().run(space, prices, {.budget = kOfKernel, .seed = 1}).value());
    }
  }
  results.report(state);
}

// ---- Plans --------------------------------------------------------------------------------------

// The planner's plan of a model, to be edited, and its price.
struct Edited {
  explicit Edited(const Planned& model)
      : editor(PlanEditor::open(model.graph, model.plan, host()).value()),
        price(*editor, cost(), store, planner_schedules(host(), cost(), store)) {
    editor->main().clear_offsets();
  }
  KernelStore store;
  std::unique_ptr<PlanEditor> editor;
  PlanCost price;
};

void layouts(benchmark::State& state, const SearchRow& row) {
  Results results;
  for (auto _ : state) {
    for (std::string_view model : kModels) {
      Edited edited(planned(model));
      LayoutSearch space(edited.editor->main(), edited.price);
      PricedLayouts prices(space);
      SearchBudget budget = kOfModel;
      if (row.name == "dynamic") budget.trials = kLocalPrices;
      results.add(row.get().run(space, prices, {.budget = budget, .seed = 1}).value());
    }
  }
  results.report(state);
}

void edits(benchmark::State& state, const SearchRow& row) {
  Results results;
  for (auto _ : state) {
    for (std::string_view model : kModels) {
      Edited edited(planned(model));
      PlanSearch space(*edited.editor, kEditsOfShape);
      PricedPlans prices(space, edited.price);
      results.add(row.get().run(space, prices, {.budget = kOfModel, .seed = 1}).value());
    }
  }
  results.report(state);
}

void add(std::string_view kind, void (*run)(benchmark::State&, const SearchRow&)) {
  for (const SearchRow& row : searches()) {
    // These spaces are far too large to list, and only layouts have local prices.
    if (row.name == "exhaustive" || (row.name == "dynamic" && kind != "layouts")) continue;
    benchmark::RegisterBenchmark(fmt::format("{}/{}", kind, row.name).c_str(), run, row)
        ->Iterations(1)
        ->Unit(benchmark::kSecond);
  }
}

const int registered = [] {
  add("schedules", schedules);
  add("layouts", layouts);
  add("edits", edits);
  return 0;
}();

}  // namespace
}  // namespace hone::HONE_FILE
