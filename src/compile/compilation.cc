#include "compile/compilation.h"

#include <chrono>

#include "compile/cached_plan.h"
#include "cost/analytic.h"
#include "plan/random_plan.h"
#include "program/lower/lower.h"

namespace hone {

std::string_view name(CompileStage stage) {
  switch (stage) {
    case CompileStage::graph: return "graph";
    case CompileStage::plan: return "plan";
    case CompileStage::program: return "program";
    case CompileStage::kernels: return "kernels";
    case CompileStage::image: return "image";
    case CompileStage::executable: return "executable";
  }
  HONE_CHECK(false, "a stage {}", static_cast<int>(stage));
}

namespace {

CompileOptions with_cost(CompileOptions options, const Target& target) {
  if (options.cost == nullptr) options.cost = std::make_shared<AnalyticCost>(target);
  return options;
}

}  // namespace

Compilation::Compilation(Graph graph, Target target, CompileOptions options)
    : given_(std::move(graph)),
      target_(std::move(target)),
      options_(with_cost(std::move(options), target_)) {}

template <class T, class Make>
Result<const T*> Compilation::at(CompileStage stage, std::optional<T>& slot, const Make& make) {
  if (slot) return &*slot;
  if (options_.cancel != nullptr) HONE_TRY(options_.cancel->check());
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  slot = HONE_TRY(make());
  const std::chrono::duration<double> elapsed = Clock::now() - start;
  if (options_.observer) options_.observer(stage, elapsed.count());
  return &*slot;
}

Result<const Graph*> Compilation::graph() {
  return at(CompileStage::graph, graph_, [&] { return prepare(given_, options_.prepare); });
}

Status Compilation::check_given_plan() const {
  Status fits = check(options_.plan, *graph_, target_);
  if (fits.ok() || options_.plan_place.empty()) return fits;
  Error error = std::move(fits).error().within(options_.plan_place);
  // Whatever the reason: the file asks for what cannot be.
  if (error.code() == ErrorCode::unsupported) return std::move(error).as(ErrorCode::bad_input);
  return error;
}

Result<const Plan*> Compilation::plan() {
  const Graph* graph = HONE_TRY(this->graph());
  return at(CompileStage::plan, plan_, [&]() -> Result<Plan> {
    if (options_.plan_seed) return random_plan(*graph, target_, *options_.plan_seed);
    HONE_TRY(check_given_plan());
    return cached_plan(
        *graph, options_.plan, target_, cost(), options_.cache,
        {.cancel = options_.cancel, .heuristics = options_.heuristics, .known = options_.known});
  });
}

Result<const Program*> Compilation::program() {
  const Plan* plan = HONE_TRY(this->plan());
  return at(CompileStage::program, program_,
            [&] { return lower(*graph_, *plan, target_, options_.cancel); });
}

Result<std::span<const KernelCode>> Compilation::kernels() {
  const Program* program = HONE_TRY(this->program());
  const std::vector<KernelCode>* kernels = HONE_TRY(at(
      CompileStage::kernels, kernels_,
      [&] {
        return compile_kernels(
            program->kernels, target_, default_pool(),
            {.cache = options_.cache, .progress = options_.progress, .cancel = options_.cancel});
      }));
  return std::span<const KernelCode>(*kernels);
}

Result<const Image*> Compilation::image() {
  const std::span<const KernelCode> kernels = HONE_TRY(this->kernels());
  return at(CompileStage::image, image_, [&] { return instantiate(*program_, {}, kernels); });
}

Result<Image> Compilation::image_for(const Bindings& sizes) {
  const std::span<const KernelCode> kernels = HONE_TRY(this->kernels());
  return instantiate(*program_, sizes, kernels);
}

Result<std::shared_ptr<const Executable>> Compilation::executable() {
  const Image* image = HONE_TRY(this->image());
  return *HONE_TRY(at(
      CompileStage::executable, executable_,
      [&] {
        return Executable::load(*image,
                                {.team = options_.team, .memory_limit = options_.memory_limit});
      }));
}

}  // namespace hone
