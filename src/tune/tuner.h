#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compile/compilation.h"
#include "tune/best_plan.h"
#include "tune/plan_duel.h"
#include "tune/tune_kernel.h"

// Finds a plan for a graph that is measured to be faster than the planner's.

namespace hone {

struct TuneOptions {
  double seconds = 180;  // for all
  int64_t threads = 1;
  uint64_t seed = 0;
  std::string search = "evolutionary";            // of schedules: a row of searches.def
  std::shared_ptr<const Search> own_search = {};  // in its place: one without a row
  PrepareOptions prepare = {};
  Heuristics heuristics = {};
  // The price that commands plan by; null: analytic. The search starts from the fastest of the
  // plans that this one, its baseline, and the analytic price with default coefficients choose.
  std::shared_ptr<const Cost> cost = nullptr;
  CompileCache* cache = nullptr;
  std::shared_ptr<const CudaDevice> device = nullptr;  // that runs it, if the target is a GPU
  Log* log = nullptr;                // what was measured before, and what is measured now
  std::string version = {};          // of hone, for the log
  int64_t memory_limit = INT64_MAX;  // bytes of what a run computes on the way
  const CancelToken* cancel = nullptr;
  Progress* progress = nullptr;  // counts seconds; started and finished by the tuner
  // Gets a line for each step: "kernel 3 of 12, dot_add: 1.21x".
  std::function<void(std::string_view)> told = {};
  // Which decisions it looks at.
  bool tries_schedules = true;
  bool tries_layouts = true;  // as switches of the planner say, and edits of the plan
  bool tries_groups = true;   // and chains: the same
  bool tries_threads = true;  // fewer than there may be
  // Rewrites of the graph, if somebody finds some (CompileOptions): they stay if they are faster.
  bool tries_rewrites = true;
  decltype(CompileOptions::find_rewrites) find_rewrites = {};
  PlanTimer timer = {};  // in the place of duel() and gpu_duel()
};

// A sort of decision, which may be searched alone.
struct TuneKind {
  std::string_view word;  // "groups", of a command line
  std::string_view name;  // "groups and chains", of a share
  bool TuneOptions::* flag;
};
inline constexpr TuneKind kTuneSchedules = {"schedules", "schedules",
                                            &TuneOptions::tries_schedules},
                          kTuneLayouts = {"layouts", "layouts", &TuneOptions::tries_layouts},
                          kTuneGroups = {"groups", "groups and chains", &TuneOptions::tries_groups},
                          kTuneThreads = {"threads", "threads", &TuneOptions::tries_threads},
                          kTuneRewrites = {"rewrites", "rewrites", &TuneOptions::tries_rewrites};
inline constexpr TuneKind kTuneKinds[] = {kTuneSchedules, kTuneLayouts, kTuneGroups, kTuneThreads,
                                          kTuneRewrites};
// These alone: "layouts,groups". An unknown word is refused with the list of what there is.
Status try_only(TuneOptions& options, std::string_view words);

// The gain of one sort of decision.
struct TuneShare {
  const TuneKind* kind = nullptr;
  double gain = 1;     // of the whole model, over the plan before
  double seconds = 0;  // since the beginning, when it was found
};

// How much of a model the log knew before.
struct KernelOverlap {
  int64_t kernels = 0, known = 0;  // different ones of the plan that the search begins with
  double share = 0;                // of the time of all, by price, that the known ones take
};

// A plan that the planner chooses, by some prices.
struct DefaultPlan {
  std::string_view prices;  // "learned prices", "fitted prices", "default prices"
  PlanDuel duel = {};       // with the best one of those before it; of the first, none
  bool is_best = false;     // of itself and those before it
};

struct Tuned {
  Plan plan;    // the default plan, unless another one is surely faster
  Plan before;  // the default plan: the best one of `defaults`
  // Different ones that were raced; the first is that of the Cost that commands plan by.
  std::vector<DefaultPlan> defaults = {};
  size_t start = 0;            // the one that the search starts from, and gains are over
  PlanDuel confirmation = {};  // the best plan that was found against the default plan
  bool is_default = true;
  bool was_known = false;  // the log had one to begin with
  // The log's plan, if this confirmation was in doubt and an earlier one was not.
  std::optional<KnownPlan> stays = {};
  std::vector<TuneShare> shares = {};
  int64_t kernels = 0, improved = 0;               // different ones
  int64_t trials = 0, measured = 0, compiles = 0;  // of schedules
  int64_t needed = 0;  // of those measured, until each kernel had one within 1 % of its fastest
  int64_t reused = 0;  // that the log knew
  KernelOverlap overlap = {};
  int64_t untried = 0;                  // plans for whose duel there was no time
  double least_seconds = 0;             // that this model needs; 0: the budget had them
  std::optional<Error> unwritten = {};  // why the log does not have all that was found
  double seconds = 0;
  bool was_cancelled = false;
  double gain() const { return is_default ? 1 : stays ? stays->gain : confirmation.gain(); }
};

// The graph has numbers as sizes, and the target is this machine or the GPU of the options.
// Cancelled or out of time: the best so far. A plan that is better is kept in the log.
Result<Tuned> tune(const Graph& graph, const Target& target, const TuneOptions& options);

}  // namespace hone
