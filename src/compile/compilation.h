#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "codegen/kernels.h"
#include "compile/compile_time.h"
#include "cost/kernel_store.h"
#include "plan/plan.h"
#include "planner/heuristics.h"
#include "program/program.h"
#include "rewrite/prepare.h"
#include "runtime/cuda/gpu_kernel.h"
#include "runtime/executable.h"
#include "runtime/image.h"

// The whole way from a Graph to something that runs.

namespace hone {

class CudaDevice;
class EarlyCode;
class KeptImage;

// The stages, in this order.
enum class CompileStage : uint8_t { graph, plan, program, kernels, image, executable };
inline constexpr CompileStage kStages[] = {CompileStage::graph,   CompileStage::plan,
                                           CompileStage::program, CompileStage::kernels,
                                           CompileStage::image,   CompileStage::executable};
std::string_view name(CompileStage stage);

struct CompileOptions {
  // A seed: every decision is drawn at random, for tests.
  std::optional<uint64_t> plan_seed = {};
  PrepareOptions prepare = {};
  Plan plan = {};                           // what is decided already
  const PlacedPlan* placed_plan = nullptr;  // the same with its place in a file, for errors
  // Entries that do not fit are dropped instead of refused; the observer is told each entry.
  bool drops_unfit = false;
  std::function<void(std::string_view)> dropped = {};
  // A plan that somebody knows to be better than the planner's plan of a prepared graph. Asked
  // where `plan` says no more than threads, with their number; what does not fit counts as unknown.
  // It may have rewrites of the graph.
  std::function<std::optional<Plan>(const Graph& graph, const Target& target, int64_t threads)>
      best_plan = {};
  // Rewrites that pay: a plan of nothing else. Asked for where `plan` says no more than threads and
  // no better plan is known, with the graph as it was given. One that has no rewrites means that
  // none pays.
  std::function<Result<Plan>(const Graph& given, const Target& target, int64_t threads)>
      find_rewrites = {};
  // Another plan of the same kernels in place of the planner's, such as one by measured schedules.
  // Asked where `plan` says no more than threads and no better plan is known.
  std::function<Result<Plan>(const Graph& graph, Plan plan, const Target& target)> revise = {};
  Heuristics heuristics = {};  // for what is open
  // The prices that the planner chooses by; null: the analytic ones, with default coefficients.
  std::shared_ptr<const Cost> cost = nullptr;
  KernelStore* known = nullptr;                        // PlannerOptions::known
  CompileCache* cache = nullptr;                       // of plans and kernels that were made before
  std::shared_ptr<const CudaDevice> device = nullptr;  // that runs it, if the target is a GPU
  std::shared_ptr<Team> team = nullptr;                // that runs it; null: one of its own
  int64_t memory_limit = INT64_MAX;                    // of the executable (LoadOptions)
  QuickStart quick_start = QuickStart::never;          // of runnable()
  Progress* progress = nullptr;
  const CancelToken* cancel = nullptr;  // looked at between stages, and in those that take long
  // Told what each stage took, when it is done.
  std::function<void(CompileStage, double seconds)> observer = {};
  KernelObserver kernel_observer = {};
};

// A graph on its way. Each stage is done when it is first asked for, after those before it; whoever
// wants a plan waits for no code. Not for several threads at once.
class Compilation {
 public:
  Compilation(Graph graph, Target target, CompileOptions options = {});

  Result<const Graph*> graph();  // rewritten, if the plan is, and prepared
  Result<const Plan*> plan();    // complete
  Result<const Program*> program();
  // For a GPU: those of kernels that run on the CPU beside it have objects.
  Result<std::span<const KernelCode>> kernels();
  // For a GPU: by kernel, why it runs on the CPU; empty: it does not. After kernels().
  std::span<const std::string> reasons_for_cpu() const { return on_cpu_; }
  // For a GPU: the code by kernel, as a GpuImage has it. After kernels().
  std::span<const GpuKernel> gpu_kernels() const { return gpu_kernels_; }
  Result<const Image*> image();                            // of a graph whose sizes are numbers
  Result<std::shared_ptr<const Executable>> executable();  // of a CPU
  // Ready to run, on the device of the options if the target is a GPU. With a quick start it may be
  // EarlyCode; the stages `kernels`, `image` and `executable` are told for its quick code then. If
  // somebody asks for kernels afterwards, they are its real code.
  Result<std::shared_ptr<const Runnable>> runnable();
  Result<std::shared_ptr<const Runnable>> runnable_for(const Bindings& sizes);

  const Cost& cost() const { return *options_.cost; }
  const Target& target() const { return target_; }

  // An image of a graph with open sizes, for these; no code is made.
  Result<Image> image_for(const Bindings& sizes);
  // For all sizes at once.
  Result<OpenImage> open_image();

 private:
  bool says_how() const;  // the plan says more than threads
  Result<Graph> rewritten_as_said();
  Result<Graph> graph_of_best(Graph graph);
  Error placed(Error error) const;
  Result<Image> finished(Result<Image> image) const;
  bool keeps_image() const;
  KeptImage kept() const;
  Result<bool> finds_image();
  Result<const Image*> found_image();
  Result<bool> starts_quickly();
  Result<std::shared_ptr<const EarlyCode>> early();
  Result<std::vector<KernelCode>> made_kernels();
  Result<std::shared_ptr<const Runnable>> loaded(const Image& image) const;
  Result<Plan> completed(const Plan& plan) const;
  Result<Plan> completed_as_said() const;
  Result<Plan> completed_leniently() const;
  // The stage's result, made by `make` if it is not there.
  template <class T, class Make>
  Result<const T*> at(CompileStage stage, std::optional<T>& slot, const Make& make);

  const Graph given_;
  const Target target_;
  const CompileOptions options_;
  Plan rewrites_;             // of the graph below; nothing else
  std::optional<Plan> best_;  // for it, known to be better than the planner's
  std::optional<Graph> graph_;
  std::optional<Plan> plan_;
  std::optional<Program> program_;
  std::optional<std::vector<KernelCode>> kernels_;
  std::vector<GpuKernel> gpu_kernels_;  // of a GPU: by kernel
  std::vector<std::string> on_cpu_;
  std::optional<Image> image_;
  std::optional<std::shared_ptr<const Executable>> executable_;
  bool is_looked_for_ = false;  // the image, in the cache, which lacks it
  // With a quick start.
  std::optional<std::vector<KernelCode>> quick_kernels_;
  std::optional<Image> quick_image_;
  std::optional<std::shared_ptr<const EarlyCode>> early_;
};

}  // namespace hone
