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

// Of every command that compiles.
inline constexpr Option kTargetOption = {
    .name = "target",
    .take = Take::file,
    .value = "FILE",
    .doc = "the machine to compile for, as 'hone target probe' writes it (default: this one)"};
inline constexpr Option kIsaOption = {.name = "isa",
                                      .take = Take::word,
                                      .value = "LEVEL",
                                      .doc = "use no more of the machine than this",
                                      .words = kIsaWords};
inline constexpr Option kThreadsOption = {.name = "threads",
                                          .take = Take::integer,
                                          .value = "N",
                                          .doc = "that work on a kernel (default: one per core)",
                                          .low = 1,
                                          .high = Team::kMaxThreads};
inline constexpr Option kPlanOption = {
    .name = "plan",
    .take = Take::file,
    .value = "FILE",
    .doc = "decisions, whole or in part; what it leaves open is decided as always"};

inline constexpr Option kPlanSeedOption = {
    .name = "plan-seed",
    .take = Take::integer,
    .value = "N",
    .doc = "draw every decision at random from this seed: to test that any plan computes the same"};
inline constexpr Option kNativeCacheOption = {
    .name = "cache",
    .take = Take::file,
    .value = "DIR",
    .doc = "the folder of compiled kernels (default: see 'hone help cache ls'); none: no cache"};

struct NativeOptions {
  Target target;
  Plan plan;
  std::optional<uint64_t> plan_seed;
  std::unique_ptr<KernelCache> cache;  // null: none
};
// --target, --isa, --threads, --plan, --plan-seed, --cache.
Result<NativeOptions> native_options(const Arguments& arguments, Console& console);
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
