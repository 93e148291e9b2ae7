#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "compile/native_model.h"
#include "ir/model.h"
#include "session/face.h"
#include "session/inputs.h"

// Models as native code.

namespace hone {

struct NativeOptions {
  Target target;
  std::vector<PlacedPlan> plans;   // of graphs of the model
  bool drops_unfit = false;        // what of them does not fit is dropped; the face is told
  int32_t assumed_decades = 0;     // of inputs, by rewrites (known_ranges.h)
  std::optional<int64_t> threads;  // set_threads()
  decltype(CompileOptions::best_plan) best_plan = {};
  decltype(CompileOptions::find_rewrites) find_rewrites = {};
  decltype(CompileOptions::revise) revise = {};
  PrepareOptions prepare = {};
  Heuristics heuristics = {};                  // of the planner
  std::shared_ptr<const Cost> cost = nullptr;  // null: analytic, with default coefficients
  std::optional<uint64_t> plan_seed;           // every decision is drawn at random
  // The observers of compilations (CompileOptions); they outlive these.
  decltype(CompileOptions::observer) observer = {};
  KernelObserver kernel_observer = {};
  QuickStart quick_start = QuickStart::never;
  std::unique_ptr<CompileCache> cache;       // null: none
  std::shared_ptr<Team> team;                // that runs it; null: one of its own
  std::shared_ptr<const CudaDevice> device;  // that runs it, if the target is a GPU
};
// At most the target's cores; of all plans too, which must not say another number.
Status set_threads(NativeOptions& options, int64_t threads, const Labels& labels = {});

// The plan of each of these graphs, null where none is given. They are those of `model`, whose
// `sizes` were bound. An error if a plan is for none of them; it says if only the sizes are others.
Result<std::vector<const PlacedPlan*>> plans_of(std::span<const Graph* const> graphs,
                                                const Model& model, const Bindings& sizes,
                                                const NativeOptions& options,
                                                const Labels& labels = {});
// The options of a compilation under a plan that may be null. Options, plan and what the
// face points to outlive it.
CompileOptions compile_options(const NativeOptions& options, const PlacedPlan* plan,
                               const Face& face = {});
// The same for the one graph of the model.
Result<CompileOptions> compile_options(const Graph& graph, const Model& model,
                                       const Bindings& sizes, const NativeOptions& options,
                                       const Face& face = {});

// True if this machine can run what is compiled for the target: a GPU needs a device.
Status check_runs_here(const Target& target, const Labels& labels = {});
Status check_runs_here(const NativeOptions& options, const Labels& labels = {});

// The model, ready to run; its graphs are compiled when they are first run. Sizes are bound to
// those of the inputs, unless the plans are for the model with all its sizes open, or all but those
// that were chosen. The options outlive the model, and so does what the face and the observers
// point to. `observer` is told, too.
Result<std::shared_ptr<NativeModel>> native_model(const Model& model, const RunInputs& inputs,
                                                  const NativeOptions& options,
                                                  const Face& face = {},
                                                  decltype(CompileOptions::observer) observer = {});

// One run.
Result<std::vector<Tensor>> run_native(const Model& model, const RunInputs& inputs,
                                       const NativeOptions& options, const Face& face = {});

}  // namespace hone
