#include "session/native.h"

#include "base/text.h"
#include "plan/assign.h"
#include "session/sizes.h"
#include "session/source.h"

namespace hone {

Status set_threads(NativeOptions& options, int64_t threads, const Labels& labels) {
  if (threads < 1 || threads > options.target.cores)
    return usage_error("{}: {} is outside of 1..{}, the target's cores", labels.threads, threads,
                       options.target.cores);
  options.threads = threads;
  for (PlacedPlan& one : options.plans) {
    if (one.plan.threads.value_or(threads) != threads)
      return usage_error("{} {}, but the plan says {}", labels.threads, threads, *one.plan.threads)
          .within(one.place_of("threads"));
    one.plan.threads = threads;
  }
  return {};
}

Result<std::vector<const PlacedPlan*>> plans_of(std::span<const Graph* const> graphs,
                                                const Model& model, const Bindings& sizes,
                                                const NativeOptions& options,
                                                const Labels& labels) {
  // The inputs of a later segment were computed: no range is known for them.
  if (options.assumed_decades > 0 && graphs.size() > 1)
    return unsupported("a range is assumed of the inputs of one graph; '{}' has {} segments",
                       model.name, graphs.size());
  Result<std::vector<const PlacedPlan*>> plans =
      assign_plans(options.plans, graphs, options.prepare);
  if (plans.ok() || !plans.error().hint().empty()) return plans;
  PrepareOptions other = options.prepare;
  other.flushes_denormals = !other.flushes_denormals;
  if (assign_plans(options.plans, graphs, other).ok())
    return std::move(plans).error().with_hint(fmt::format(
        "it is for this model {} {}", other.flushes_denormals ? "with" : "without", labels.flush));
  const bool is_open = assign_plans(options.plans, graphs_of(model), options.prepare).ok();
  std::string hint = is_open ? "it is for open sizes" : "it may be for other sizes";
  hint += sizes.empty() ? fmt::format("; {} and {} choose them", labels.size, labels.shape)
                        : fmt::format("; {} with {} makes one for these", labels.compile,
                                      size_text(sizes, labels));
  return std::move(plans).error().with_hint(hint);
}

CompileOptions compile_options(const NativeOptions& options, const PlacedPlan* plan,
                               const Face& face) {
  CompileOptions compile;
  compile.plan.threads = options.threads;
  if (plan != nullptr) {
    compile.plan = plan->plan;
    compile.placed_plan = plan;
    compile.drops_unfit = options.drops_unfit;
    compile.dropped = face.notice;
  }
  compile.best_plan = options.best_plan;
  compile.find_rewrites = options.find_rewrites;
  compile.revise = options.revise;
  compile.prepare = options.prepare;
  compile.heuristics = options.heuristics;
  compile.plan_seed = options.plan_seed;
  compile.cost = options.cost;
  compile.cache = options.cache.get();
  compile.quick_start = options.quick_start;
  compile.team = options.team;
  compile.device = options.device;
  compile.observer = options.observer;
  compile.kernel_observer = options.kernel_observer;
  compile.progress = face.progress;
  compile.cancel = face.cancel;
  return compile;
}

Result<CompileOptions> compile_options(const Graph& graph, const Model& model,
                                       const Bindings& sizes, const NativeOptions& options,
                                       const Face& face) {
  const Graph* const graphs[] = {&graph};
  const std::vector<const PlacedPlan*> plans =
      HONE_TRY(plans_of(graphs, model, sizes, options, face.labels));
  return compile_options(options, plans[0], face);
}

Status check_runs_here(const NativeOptions& options, const Labels& labels) {
  return options.device != nullptr ? Status() : check_runs_here(options.target, labels);
}

Status check_runs_here(const Target& target, const Labels& labels) {
  if (target.gpu)
    return unsupported("the target '{}' is a GPU, which runs code where a device is chosen",
                       target.name)
        .with_hint(fmt::format("{} makes code for it without running it", labels.compile));
  Status has = check_has(HONE_TRY(host_instructions()), target.instructions(), "the target");
  if (has.ok()) return {};
  return std::move(has).error().with_hint(
      fmt::format("{} makes code for other machines without running it", labels.compile));
}

namespace {

// A model with as many of its sizes as numbers as its plans want.
struct PlannedModel {
  Model model;
  std::vector<const PlacedPlan*> plans;  // by graph
};

Result<PlannedModel> planned_model(const Model& model, const RunInputs& inputs,
                                   const NativeOptions& options, const Labels& labels) {
  Model bound = HONE_TRY(with_sizes(model, inputs.bindings));
  Result<std::vector<const PlacedPlan*>> plans =
      plans_of(graphs_of(bound), model, inputs.bindings, options, labels);
  if (plans.ok()) return PlannedModel{std::move(bound), std::move(*plans)};
  for (const Bindings& sizes : {inputs.chosen, Bindings()}) {
    bound = HONE_TRY(with_sizes(model, sizes));
    Result<std::vector<const PlacedPlan*>> fit =
        assign_plans(options.plans, graphs_of(bound), options.prepare);
    if (fit.ok()) return PlannedModel{std::move(bound), std::move(*fit)};
  }
  const std::string& hint = plans.error().hint();
  if (inputs.bindings.size() < 2 || hint.empty()) return plans.error();
  return Error(plans.error())
      .with_hint(fmt::format("{}; one that leaves some of them open wants the others from {}", hint,
                             labels.size));
}

}  // namespace

Result<std::shared_ptr<NativeModel>> native_model(const Model& model, const RunInputs& inputs,
                                                  const NativeOptions& options, const Face& face,
                                                  decltype(CompileOptions::observer) observer) {
  HONE_TRY(check_runs_here(options, face.labels));
  PlannedModel planned = HONE_TRY(planned_model(model, inputs, options, face.labels));
  const bool is_single = single_graph(model) != nullptr;
  CompileOptions compile = compile_options(options, is_single ? planned.plans[0] : nullptr, face);
  compile.memory_limit = inputs.memory_left.native;
  if (observer)
    compile.observer = [first = options.observer, observer](CompileStage stage, double seconds) {
      if (first) first(stage, seconds);
      observer(stage, seconds);
    };
  if (is_single) planned.plans.clear();  // it is that of the options
  return NativeModel::make(std::move(planned.model), options.target, std::move(compile),
                           planned.plans);
}

Result<std::vector<Tensor>> run_native(const Model& model, const RunInputs& inputs,
                                       const NativeOptions& options, const Face& face) {
  const auto native = HONE_TRY(native_model(model, inputs, options, face));
  return native->run(inputs.tensors, {.cancel = face.cancel});
}

}  // namespace hone
