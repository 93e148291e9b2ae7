#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cost/learned_cost.h"
#include "log/log.h"
#include "plan/plan.h"
#include "report/profile.h"
#include "session/cpu_kernels.h"

// Why a plan is as it is: per kernel what was chosen, what it costs, and what else there was.

namespace hone {

// A schedule of a kernel, and what is known of its time. Seconds are of one launch.
struct ScheduleFigures {
  Schedule schedule;
  double priced = 0;
  std::string source = "analytic";              // what the price stands on
  std::vector<PriceTerm> terms = {};            // empty: the price has none
  std::map<std::string, double> measured = {};  // by conditions, of this very code
};

// Why one thread computes a kernel though there are more.
struct Undivided {
  std::optional<ScheduleFigures> divided;  // the cheapest found of what threads divide
  std::string why;                         // without one: what forbids it
};

struct ExplainedKernel {
  uint64_t hash = 0;
  std::string name;  // of its ops
  std::vector<std::string> layers;
  int64_t steps = 0;    // of the plan that launch it
  double launches = 0;  // in a run (launches_of)
  ScheduleFigures chosen;
  std::vector<ScheduleFigures> others;  // the cheapest found of each other algorithm, by price
  // The times that no schedule of this algorithm beats, if the target's rates are right. The first
  // is for its operations at the peak of the units that it uses. The second is for all operands,
  // read or written once at the rate of memory. 0: the target does not say.
  double arithmetic_roof = 0, memory_roof = 0;
  std::optional<ScheduleFigures> planned;   // by the planner, which has decided otherwise
  std::optional<Undivided> undivided;       // none: threads divide it, or there is one
  std::optional<LearnedCost::Trust> trust;  // in the chosen schedule's price, if that is learned

  double priced() const { return launches * chosen.priced; }
};

struct Explanation {
  int64_t threads = 1;
  std::vector<std::string> rewrites = {};  // of the graph, in their order: "@fold(%a)"
  std::vector<ExplainedKernel> kernels;    // different ones, the dearest first
  std::string learned = {};                // where the model of learned prices is from
  std::optional<GpuShare> gpu = {};        // of a plan for a GPU
  double priced() const;                   // all of them
  // For a learned price: the kernels that the analytic price speaks for alone.
  size_t unknown() const;
};

struct ExplainOptions {
  const Log* log = nullptr;       // of measurements; null: none
  const Plan* planned = nullptr;  // the planner's, to compare with; null: none
  LayerNames layers = {};
  size_t most = SIZE_MAX;  // how many of the dearest kernels show what else there was
};

// Explains a complete plan of a prepared graph whose sizes are numbers.
Result<Explanation> explain(const Graph& graph, const Plan& plan, const Target& target,
                            const Cost& cost, const ExplainOptions& options = {});

// At most 100 columns wide: the `most` dearest kernels, each with its schedule, price and roofs.
std::string explanation_text(const Explanation& explanation, size_t most);
// For learned prices: a table of what the prices of the `most` dearest kernels stand on, and why
// networks have no say in those where they have none.
std::string trust_text(const Explanation& explanation, size_t most);
std::string explanation_json(const Explanation& explanation);
// Kernels that only one of the plans has, or that it carries out in another way, with what they
// cost under each.
std::string explained_difference(const Explanation& first, const Explanation& second,
                                 std::string_view first_name, std::string_view second_name);

}  // namespace hone
