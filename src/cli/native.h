#pragma once

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "compile/native_engine.h"
#include "ir/model.h"

#include <string>
#include <vector>

// Models as native code, from the command line.

namespace hone::cli {

class Console;

struct NativeOptions {
  Target target;
  Plan plan;
  std::string plan_file;  // empty: none
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
// What they say of a compilation. They outlive it.
CompileOptions compile_options(const NativeOptions& options);

// Whether this machine can run what is compiled for the target.
Status check_runs_here(const Target& target);

// A model that is ready to run; its graphs are compiled when they are first run.
class NativeModel {
 public:
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs);

 private:
  friend Result<NativeModel> native_model(const Model&, const RunInputs&, const NativeOptions&,
                                          Console&);
  std::shared_ptr<Progress> progress_;
  const CancelToken* cancel_ = nullptr;
  std::shared_ptr<NativeEngine> engine_;
  GraphRef graph_;                       // if the model is but one
  std::shared_ptr<ModelRunner> runner_;  // if it is not
};
// Sizes are bound to those of the inputs. The options outlive the model.
Result<NativeModel> native_model(const Model& model, const RunInputs& inputs,
                                 const NativeOptions& options, Console& console);

// One run.
Result<std::vector<Tensor>> run_native(const Model& model, const RunInputs& inputs,
                                       const NativeOptions& options, Console& console);

}  // namespace hone::cli
