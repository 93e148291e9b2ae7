// What each heuristic of the planner buys: how much more the zoo costs without it.
//   price/NAME   by the analytic price, over all models that have a plan within seconds
//   time/NAME    measured, default and without it in turns, over a few models that differ by it
// "ratio" is the geometric mean, "most" and "least" are single models. Only prices take minutes:
// --benchmark_filter=price.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "compile/compilation.h"
#include "cost/analytic.h"
#include "cost/program_price.h"
#include "planner/heuristics.h"
#include "zoo/inputs.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kTimed[] = {"squeezenet", "mobilenet_v2", "densenet121",
                                       "bert_base",  "gpt2_decode",  "lstm"};
constexpr int kPairs = 15;  // of runs that are timed

// A model that is planned with some heuristics.
struct Planned {
  std::unique_ptr<Compilation> code;
  double seconds = 0;  // the price
};

const Target& host() {
  static const Target target = host_target().value();
  return target;
}

Planned planned(std::string_view model, const Heuristics& heuristics) {
  Planned result;
  result.code = std::make_unique<Compilation>(build_zoo_model(model).value(), host(),
                                              CompileOptions{.heuristics = heuristics});
  const Program& program = *result.code->program().value();
  result.seconds = price(program, AnalyticCost(host())).value().total();
  return result;
}

const Planned& with_all(std::string_view model) {
  static std::map<std::string_view, Planned> known;
  const auto [at, is_new] = known.try_emplace(model);
  if (is_new) at->second = planned(model, {});
  return at->second;
}

Heuristics without(const Heuristic& row) {
  Heuristics heuristics;
  heuristics.*row.flag = false;
  return heuristics;
}

// Ratios of models, more than 1 where the heuristic gains.
class Ratios {
 public:
  void add(std::string_view model, double ratio) {
    logarithms_ += std::log(ratio);
    ++count_;
    if (ratio != 1) ++changed_;
    if (ratio > most_) most_ = ratio, most_model_ = model;
    least_ = std::min(least_, ratio);
  }
  void report(benchmark::State& state) const {
    state.counters["ratio"] = count_ == 0 ? 1 : std::exp(logarithms_ / count_);
    state.counters["most"] = most_;
    state.counters["least"] = least_;
    state.counters["changed"] = changed_;
    state.SetLabel(std::string(most_model_));
  }

 private:
  double logarithms_ = 0, most_ = 1, least_ = 1;
  int count_ = 0, changed_ = 0;
  std::string_view most_model_;
};

void predict(benchmark::State& state, const Heuristic& row) {
  Ratios ratios;
  for (auto _ : state)
    for (const ZooEntry& model : zoo_entries())
      ratios.add(model.name,
                 planned(model.name, without(row)).seconds / with_all(model.name).seconds);
  ratios.report(state);
}

double seconds_of(const Executable& executable, const std::vector<Tensor>& inputs) {
  const Clock::time_point start = Clock::now();
  benchmark::DoNotOptimize(executable.run(inputs).value());
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The median of pairs, one behind the other.
double time_ratio(Compilation& before, Compilation& after) {
  const std::vector<Tensor> inputs = random_inputs(*before.graph().value(), 1).value();
  const std::shared_ptr<const Executable> a = before.executable().value();
  const std::shared_ptr<const Executable> b = after.executable().value();
  std::vector<double> ratios;
  for (int i = 0; i <= kPairs; ++i) {
    const double seconds = seconds_of(*a, inputs), without = seconds_of(*b, inputs);
    if (i > 0) ratios.push_back(without / seconds);  // the first warms up
  }
  std::ranges::nth_element(ratios, ratios.begin() + kPairs / 2);
  return ratios[kPairs / 2];
}

void measure(benchmark::State& state, const Heuristic& row) {
  Ratios ratios;
  for (auto _ : state) {
    for (std::string_view model : kTimed) {
      const Planned other = planned(model, without(row));
      Compilation& all = *with_all(model).code;
      if (*other.code->plan().value() == *all.plan().value()) continue;
      ratios.add(model, time_ratio(all, *other.code));
    }
  }
  ratios.report(state);
}

const int registered = [] {
  for (const Heuristic& row : kHeuristics)
    benchmark::RegisterBenchmark(fmt::format("price/{}", row.name).c_str(), predict, row)
        ->Iterations(1)
        ->Unit(benchmark::kSecond);
  for (const Heuristic& row : kHeuristics)
    benchmark::RegisterBenchmark(fmt::format("time/{}", row.name).c_str(), measure, row)
        ->Iterations(1)
        ->Unit(benchmark::kSecond);
  return 0;
}();

}  // namespace
}  // namespace hone::HONE_FILE
