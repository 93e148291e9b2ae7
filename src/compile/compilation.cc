#include "compile/compilation.h"

#include <chrono>

#include "base/late_progress.h"
#include "compile/cached_plan.h"
#include "compile/early_code.h"
#include "compile/gpu_kernels.h"
#include "compile/kept_image.h"
#include "cost/gpu_cost.h"
#include "cost/program_price.h"
#include "plan/drop_unfit.h"
#include "plan/random_plan.h"
#include "plan/rewritten.h"
#include "program/lower/lower.h"
#include "runtime/cuda/cuda_executable.h"

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
  if (options.cost == nullptr) options.cost = analytic_cost(target);
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

bool Compilation::says_how() const {
  Plan but_threads = options_.plan;
  but_threads.threads.reset();
  return but_threads != Plan() || options_.plan_seed;
}

Result<const Graph*> Compilation::graph() {
  return at(CompileStage::graph, graph_, [&]() -> Result<Graph> {
    if (has_rewrites(options_.plan)) return rewritten_as_said();
    Graph graph = HONE_TRY(prepare(given_, options_.prepare));
    if (says_how()) return graph;
    const int64_t threads = options_.plan.threads.value_or(target_.cores);
    if (options_.best_plan) best_ = options_.best_plan(graph, target_, threads);
    if (best_) return graph_of_best(std::move(graph));
    const auto& find = options_.find_rewrites;
    if (find) rewrites_ = HONE_TRY(find(given_, target_, threads));
    if (!has_rewrites(rewrites_)) return graph;
    return prepare(HONE_TRY(rewritten(given_, rewrites_)), options_.prepare);
  });
}

Result<Graph> Compilation::rewritten_as_said() {
  Result<Graph> graph = rewritten(given_, options_.plan);
  if (graph.ok()) {
    rewrites_ = only_rewrites(options_.plan);
  } else {
    Error why = placed(std::move(graph).error());
    if (!options_.drops_unfit) return why;
    if (options_.dropped) options_.dropped(fmt::format("dropped all rewrites: {}", why.what()));
  }
  return prepare(has_rewrites(rewrites_) ? *graph : given_, options_.prepare);
}

// A plan that does not fit counts as unknown.
Result<Graph> Compilation::graph_of_best(Graph graph) {
  if (has_rewrites(*best_)) {
    Result<Graph> made = rewritten(given_, *best_);
    if (made.ok()) made = prepare(*made, options_.prepare);
    if (made.ok() && check_complete(*best_, *made, target_).ok()) {
      rewrites_ = only_rewrites(*best_);
      return made;
    }
    best_.reset();
  }
  if (best_ && !check_complete(*best_, graph, target_).ok()) best_.reset();
  return graph;
}

// Whatever the reason: a file asks for what cannot be.
Error Compilation::placed(Error error) const {
  if (options_.placed_plan == nullptr) return error;
  error = options_.placed_plan->placed(std::move(error));
  return error.code() == ErrorCode::unsupported ? std::move(error).as(ErrorCode::bad_input) : error;
}

Result<Plan> Compilation::completed(const Plan& plan) const {
  LateProgress progress(options_.progress);
  progress.start(0, "kernels planned");
  return cached_plan(*graph_, plan, target_, cost(), options_.cache,
                     {.cancel = options_.cancel,
                      .progress = &progress,
                      .heuristics = options_.heuristics,
                      .known = options_.known});
}

Result<Plan> Compilation::completed_leniently() const {
  Plan partial = without_rewrites(options_.plan);  // what is wrong with them is told already
  partial.graph_hash = 0;
  partial.target.clear();
  // Cheap checks come first; the last one is that the given decisions fit the others.
  std::vector<DroppedEntry> dropped = HONE_TRY(
      drop_unfit(partial, [&](const Plan& plan) { return check(plan, *graph_, target_); }));
  std::optional<Plan> whole;
  const auto complete = [&](const Plan& plan) -> Status {
    whole = HONE_TRY(completed(plan));
    return {};
  };
  const std::vector<DroppedEntry> more = HONE_TRY(drop_unfit(partial, complete));
  dropped.insert(dropped.end(), more.begin(), more.end());
  if (options_.dropped)
    for (const auto& [entry, reason] : dropped) {
      const std::string place =
          options_.placed_plan == nullptr ? "" : options_.placed_plan->place_of(entry) + ": ";
      options_.dropped(fmt::format("dropped {}{}: {}", place, entry, reason));
    }
  return *std::move(whole);
}

Result<Plan> Compilation::completed_as_said() const {
  Status fits = check(options_.plan, *graph_, target_);
  if (!fits.ok()) return placed(std::move(fits).error());
  Result<Plan> plan = completed(options_.plan);
  // Only now is it known whether what was said fits what is decided for it.
  const bool is_refused = !plan.ok() && plan.error().code() == ErrorCode::bad_input;
  return is_refused ? placed(std::move(plan).error()) : std::move(plan);
}

Result<const Plan*> Compilation::plan() {
  const Graph* graph = HONE_TRY(this->graph());
  return at(CompileStage::plan, plan_, [&]() -> Result<Plan> {
    if (options_.plan_seed) return random_plan(*graph, target_, *options_.plan_seed);
    if (best_) return *best_;
    Plan plan = HONE_TRY(options_.drops_unfit ? completed_leniently() : completed_as_said());
    const bool is_open = options_.revise && !says_how();
    if (is_open) plan = HONE_TRY(options_.revise(*graph_, std::move(plan), target_));
    set_rewrites(plan, rewrites_);
    return plan;
  });
}

Result<const Program*> Compilation::program() {
  const Plan* plan = HONE_TRY(this->plan());
  return at(CompileStage::program, program_,
            [&] { return lower(*graph_, *plan, target_, options_.cancel); });
}

Result<std::span<const KernelCode>> Compilation::kernels() {
  HONE_TRY(this->program());
  const std::vector<KernelCode>* kernels =
      HONE_TRY(at(CompileStage::kernels, kernels_, [&] { return made_kernels(); }));
  return std::span<const KernelCode>(*kernels);
}

Result<std::vector<KernelCode>> Compilation::made_kernels() {
  const KernelOptions options = {.cache = options_.cache,
                                 .progress = options_.progress,
                                 .cancel = options_.cancel,
                                 .observer = options_.kernel_observer};
  if (early_) return (*early_)->code(options_.progress, options_.cancel);
  if (!target_.gpu) return compile_kernels(program_->kernels, target_, default_pool(), options);
  GpuCode code = HONE_TRY(compile_gpu_kernels(*program_, target_, default_pool(), options));
  gpu_kernels_ = std::move(code.gpu);
  on_cpu_ = std::move(code.on_cpu);
  return std::move(code.code);
}

Result<Image> Compilation::finished(Result<Image> image) const {
  if (image.ok()) image->flushes_denormals = options_.prepare.flushes_denormals;
  return image;
}

Result<const Image*> Compilation::image() {
  if (image_) return &*image_;
  const std::span<const KernelCode> kernels = HONE_TRY(this->kernels());
  return at(CompileStage::image, image_, [&]() -> Result<Image> {
    return finished(image_of(*program_, gpu_kernels_, {}, kernels));
  });
}

Result<Image> Compilation::image_for(const Bindings& sizes) {
  const std::span<const KernelCode> kernels = HONE_TRY(this->kernels());
  return finished(image_of(*program_, gpu_kernels_, sizes, kernels));
}

Result<OpenImage> Compilation::open_image() {
  const std::span<const KernelCode> kernels = HONE_TRY(this->kernels());
  if (target_.gpu)
    return unsupported("code for a GPU is made for sizes that are numbers, on '{}'", target_.name);
  OpenImage open = HONE_TRY(instantiate_open(*program_, kernels));
  open.image.flushes_denormals = options_.prepare.flushes_denormals;
  return open;
}

// Drawn plans are for tests.
bool Compilation::keeps_image() const {
  return options_.cache != nullptr && !options_.plan_seed && graph_->is_static();
}

KeptImage Compilation::kept() const {
  return {*graph_, *plan_, target_, options_.prepare.flushes_denormals, *options_.cache};
}

// Whoever only runs the graph needs no program. True if the image is made, or the cache has it.
Result<bool> Compilation::finds_image() {
  HONE_TRY(this->plan());
  if (image_ || program_ || is_looked_for_ || !keeps_image()) return image_.has_value();
  std::optional<Image> found = kept().find();
  is_looked_for_ = !found;
  if (!found) return false;
  Progress& progress = options_.progress != nullptr ? *options_.progress : no_progress();
  const auto kernels = static_cast<int64_t>(found->kernels.size());
  progress.start(kernels, "kernels");
  progress.advance(kernels);
  progress.finish("all from the cache");
  HONE_TRY(at(CompileStage::image, image_, [&]() -> Result<Image> { return *std::move(found); }));
  return true;
}

Result<const Image*> Compilation::found_image() {
  if (HONE_TRY(finds_image())) return &*image_;
  const Image* made = HONE_TRY(image());
  if (is_looked_for_ && !early_) kept().put(*made);
  return made;
}

// ---- A quick start ------------------------------------------------------------------------------

// If nobody knows the price of a run, it does not.
Result<bool> Compilation::starts_quickly() {
  const QuickStart when = options_.quick_start;
  if (when == QuickStart::never || target_.gpu || executable_ || kernels_) return false;
  if (!HONE_TRY(graph())->is_static() || HONE_TRY(finds_image())) return false;
  HONE_TRY(program());
  if (when == QuickStart::always) return true;
  const CompileTime time = compile_time(program_->kernels, target_, options_.cache);
  // A program whose run takes no time is not worth a price.
  const int64_t threads = default_pool().threads();
  if (!ends_sooner(time, threads, 0)) return false;
  const Result<ProgramPrice> run = price(*program_, cost());
  return run.ok() && ends_sooner(time, threads, run->total());
}

Result<std::shared_ptr<const EarlyCode>> Compilation::early() {
  HONE_TRY(at(
      CompileStage::kernels, quick_kernels_,
      [&] {
        return compile_kernels(program_->kernels, target_, default_pool(),
                               {.cache = options_.cache,
                                .effort = CodeEffort::quick,
                                .progress = options_.progress,
                                .cancel = options_.cancel,
                                .observer = options_.kernel_observer});
      }));
  HONE_TRY(at(
      CompileStage::image, quick_image_,
      [&] { return finished(instantiate(*program_, {}, *quick_kernels_)); }));
  EarlyParts parts = {.image = *std::move(quick_image_),
                      .kernels = program_->kernels,
                      .target = target_,
                      .load = {.team = options_.team, .memory_limit = options_.memory_limit},
                      .cache = options_.cache,
                      .observer = options_.kernel_observer};
  if (is_looked_for_)
    parts.keep = [graph = *graph_, plan = *plan_, target = target_,
                  flushes = options_.prepare.flushes_denormals,
                  cache = options_.cache](const Image& image) {
      KeptImage(graph, plan, target, flushes, *cache).put(image);
    };
  return *HONE_TRY(
      at(CompileStage::executable, early_, [&] { return EarlyCode::load(std::move(parts)); }));
}

Result<std::shared_ptr<const Runnable>> Compilation::loaded(const Image& image) const {
  if (!target_.gpu)
    return Result<std::shared_ptr<const Runnable>>(HONE_TRY(
        Executable::load(image, {.team = options_.team, .memory_limit = options_.memory_limit})));
  if (options_.device == nullptr)
    return unsupported("the target '{}' is a GPU, and no device is chosen to run it", target_.name)
        .with_hint("--device cuda chooses one");
  return Result<std::shared_ptr<const Runnable>>( HONE_TRY(
      CudaExecutable::load({image, gpu_kernels_}, options_.device,
                           {.cubins = cubin_store(options_.cache), .team = options_.team})));
}

Result<std::shared_ptr<const Runnable>> Compilation::runnable() {
  if (early_ || HONE_TRY(starts_quickly()))
    return Result<std::shared_ptr<const Runnable>>(early_ ? *early_ : HONE_TRY(early()));
  if (!target_.gpu) return Result<std::shared_ptr<const Runnable>>(HONE_TRY(executable()));
  return loaded(*HONE_TRY(image()));
}

Result<std::shared_ptr<const Runnable>> Compilation::runnable_for(const Bindings& sizes) {
  return loaded(HONE_TRY(image_for(sizes)));
}

Result<std::shared_ptr<const Executable>> Compilation::executable() {
  if (target_.gpu)
    return unsupported("code for the GPU '{}' is not code for this machine's CPU", target_.name);
  const Image* image = HONE_TRY(found_image());
  return *HONE_TRY(at(
      CompileStage::executable, executable_,
      [&] {
        return Executable::load(*image,
                                {.team = options_.team, .memory_limit = options_.memory_limit});
      }));
}

}  // namespace hone
