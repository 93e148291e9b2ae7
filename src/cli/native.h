#pragma once

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "compile/native_engine.h"
#include "ir/model.h"

#include <functional>
#include <span>
#include <string>
#include <vector>

// Models as native code, from the command line.

namespace hone::cli {

class Console;

struct NativeOptions {
  Target target;
  std::vector<PlacedPlan> plans;   // of --plan, with the threads of --threads
  std::optional<int64_t> threads;  // of --threads
  std::optional<uint64_t> plan_seed;
  std::unique_ptr<CompileCache> cache;  // null: none
};
// Where nothing else is said, what is compiled is kept in the user's folder, or nowhere.
enum class DefaultCache : uint8_t { user, none };
// --target, --isa, --threads, --plan, --plan-seed, --cache.
Result<NativeOptions> native_options(const Arguments& arguments, Console& console,
                                     DefaultCache cache = DefaultCache::user);
// For what is not compiled: an error if one of them is given.
Status refuse_native_options(const Arguments& arguments);
// The model for these sizes. Those of a model of one graph must fit it.
Result<Model> with_sizes(const Model& model, const Bindings& sizes);
// The plan of each of these graphs, null where none is given. They are those of `model`, whose
// `sizes` were bound. An error if a plan is for none of them; it says if only the sizes are others.
Result<std::vector<const PlacedPlan*>> plans_of(std::span<const Graph* const> graphs,
                                                const Model& model, const Bindings& sizes,
                                                const NativeOptions& options);
// What they say of a compilation under a plan that may be null. They outlive it.
CompileOptions compile_options(const NativeOptions& options, const PlacedPlan* plan);
// The same for the one graph of the model.
Result<CompileOptions> compile_options(const Graph& graph, const Model& model,
                                       const Bindings& sizes, const NativeOptions& options);

// Whether this machine can run what is compiled for the target.
Status check_runs_here(const Target& target);

// A model that is ready to run; its graphs are compiled when they are first run.
class NativeModel {
 public:
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs);
  NativeEngine& engine() { return *engine_; }

 private:
  friend Result<NativeModel> native_model(const Model&, const RunInputs&, const NativeOptions&,
                                          Console&, std::function<void(Stage, double)>);
  std::shared_ptr<Progress> progress_;
  const CancelToken* cancel_ = nullptr;
  std::shared_ptr<NativeEngine> engine_;
  GraphRef graph_;                       // if the model is but one
  std::shared_ptr<ModelRunner> runner_;  // if it is not
};
// Sizes are bound to those of the inputs, unless the plans are for the model with all its sizes
// open, or all but those that were chosen. The options outlive the model, and so does what the
// observer of its compilations needs.
Result<NativeModel> native_model(const Model& model, const RunInputs& inputs,
                                 const NativeOptions& options, Console& console,
                                 std::function<void(Stage, double)> observer = {});

// One run.
Result<std::vector<Tensor>> run_native(const Model& model, const RunInputs& inputs,
                                       const NativeOptions& options, Console& console);

}  // namespace hone::cli
