#include "cli/native.h"

#include "base/file.h"
#include "cli/cache.h"
#include "cli/console.h"
#include "plan/assign.h"

namespace hone::cli {

namespace {

// A folder that is not safe is an error if the user named it. One that cannot be written to costs
// time, nothing else.
Result<std::unique_ptr<CompileCache>> cache_of(const Arguments& arguments, DefaultCache fallback,
                                               Console& console) {
  const bool is_named = arguments.given("cache");
  if (is_named ? arguments.text("cache") == "none" : fallback == DefaultCache::none)
    return std::unique_ptr<CompileCache>();
  Result<std::unique_ptr<CompileCache>> cache = open_cache(arguments);
  if (!cache.ok() && is_named) return cache;
  const Status usable = cache.ok() ? check_entries_fit(**cache) : Status(cache.error());
  if (!usable.ok()) {
    const std::string& hint = usable.error().hint();
    console.note("what is compiled is not kept: {}{}{}", usable.error().what(),
                 hint.empty() ? "" : "; ", hint);
  }
  return cache.ok() ? std::move(cache) : std::unique_ptr<CompileCache>();
}

// The file of an option. A report of a fault holds it.
Result<std::string> read_kept(const Arguments& arguments, std::string_view option, int64_t limit,
                              Console& console) {
  std::string text = HONE_TRY(read_file(arguments.text(option), limit));
  console.keep_for_report(fmt::format("given.{}", option), text);
  return text;
}

}  // namespace

Result<NativeOptions> native_options(const Arguments& arguments, Console& console,
                                     DefaultCache cache) {
  NativeOptions options;
  if (arguments.given("target")) {
    const std::string& file = arguments.text("target");
    options.target = HONE_TRY(
        parse_target(HONE_TRY(read_kept(arguments, "target", kMaxTargetText, console)), file));
  } else {
    options.target = HONE_TRY(host_target());
  }
  if (arguments.given("isa"))
    options.target = restricted(std::move(options.target), *isa_from_name(arguments.text("isa")));
  if (arguments.given("plan")) {
    options.plans = HONE_TRY(parse_plans(
        HONE_TRY(read_kept(arguments, "plan", kMaxPlanText, console)), arguments.text("plan")));
  }
  if (arguments.given("plan-seed")) {
    if (arguments.given("plan") || arguments.given("threads"))
      return usage_error(
          "--plan-seed draws the whole plan; it goes with neither --plan nor --threads");
    options.plan_seed = static_cast<uint64_t>(arguments.integer("plan-seed"));
  }
  if (arguments.given("threads")) {
    const int64_t threads = arguments.integer("threads");
    if (threads > options.target.cores)
      return usage_error("--threads: {} is outside of 1..{}, the target's cores", threads,
                         options.target.cores);
    options.threads = threads;
    for (auto& [plan, place] : options.plans) {
      if (plan.threads.value_or(threads) != threads)
        return usage_error("--threads {}, but the plan says {}", threads, *plan.threads)
            .within(place);
      plan.threads = threads;
    }
  }
  options.cache = HONE_TRY(cache_of(arguments, cache, console));
  return options;
}

Status refuse_native_options(const Arguments& arguments) {
  for (std::string_view option : {"target", "isa", "threads", "plan", "plan-seed", "cache"})
    if (arguments.given(option))
      return usage_error("--{} is for native code, the reference does not take it", option);
  return {};
}

Result<Model> with_sizes(const Model& model, const Bindings& sizes) {
  const Graph* graph = single_graph(model);
  if (graph != nullptr) return model_of(HONE_TRY(specialize(*graph, sizes)));
  return specialize(model, sizes);
}

Result<std::vector<const PlacedPlan*>> plans_of(std::span<const Graph* const> graphs,
                                                const Model& model, const Bindings& sizes,
                                                const NativeOptions& options) {
  Result<std::vector<const PlacedPlan*>> plans = assign_plans(options.plans, graphs);
  if (plans.ok() || !plans.error().hint().empty()) return plans;
  const bool is_open = assign_plans(options.plans, graphs_of(model)).ok();
  std::string hint = is_open ? "it is for open sizes" : "it may be for other sizes";
  hint += sizes.empty()
              ? "; --dim and --shape choose them"
              : fmt::format("; 'hone compile' with {} makes one for these", dim_options(sizes));
  return std::move(plans).error().with_hint(hint);
}

CompileOptions compile_options(const NativeOptions& options, const PlacedPlan* plan) {
  CompileOptions compile;
  compile.plan.threads = options.threads;
  if (plan != nullptr) {
    compile.plan = plan->plan;
    compile.plan_place = plan->place;
  }
  compile.plan_seed = options.plan_seed;
  compile.cache = options.cache.get();
  return compile;
}

Result<CompileOptions> compile_options(const Graph& graph, const Model& model,
                                       const Bindings& sizes, const NativeOptions& options) {
  const Graph* const graphs[] = {&graph};
  return compile_options(options, HONE_TRY(plans_of(graphs, model, sizes, options))[0]);
}

Status check_runs_here(const Target& target) {
  Status has = check_has(HONE_TRY(host_instructions()), target.instructions(), "the target");
  if (has.ok()) return {};
  return std::move(has).error().with_hint(
      "'hone compile' makes code for other machines without running it");
}

namespace {

// A model with as many of its sizes as numbers as its plans want.
struct PlannedModel {
  Model model;
  std::vector<const PlacedPlan*> plans;  // by graph
};

Result<PlannedModel> planned_model(const Model& model, const RunInputs& inputs,
                                   const NativeOptions& options) {
  Model bound = HONE_TRY(with_sizes(model, inputs.bindings));
  Result<std::vector<const PlacedPlan*>> plans =
      plans_of(graphs_of(bound), model, inputs.bindings, options);
  if (plans.ok()) return PlannedModel{std::move(bound), std::move(*plans)};
  for (const Bindings& sizes : {inputs.chosen, Bindings()}) {
    bound = HONE_TRY(with_sizes(model, sizes));
    Result<std::vector<const PlacedPlan*>> fit = assign_plans(options.plans, graphs_of(bound));
    if (fit.ok()) return PlannedModel{std::move(bound), std::move(*fit)};
  }
  const std::string& hint = plans.error().hint();
  if (inputs.bindings.size() < 2 || hint.empty()) return plans.error();
  return Error(plans.error())
      .with_hint(hint + "; one that leaves some of them open wants the others from --dim");
}

}  // namespace

Result<NativeModel> native_model(const Model& model, const RunInputs& inputs,
                                 const NativeOptions& options, Console& console,
                                 std::function<void(Stage, double)> observer) {
  HONE_TRY(check_runs_here(options.target));
  PlannedModel planned = HONE_TRY(planned_model(model, inputs, options));

  NativeModel native;
  native.progress_ = console.progress();
  native.cancel_ = &console.cancel();
  const bool is_single = single_graph(model) != nullptr;
  CompileOptions compile = compile_options(options, is_single ? planned.plans[0] : nullptr);
  compile.progress = native.progress_.get();
  compile.cancel = native.cancel_;
  compile.memory_limit = inputs.memory_left;
  compile.observer = std::move(observer);
  native.engine_ = std::make_shared<NativeEngine>(options.target, std::move(compile));
  if (is_single) {
    native.graph_ = std::get<GraphSegment>(planned.model.segments[0].kind).graph;
    return native;
  }
  const std::vector<const Graph*> graphs = graphs_of(planned.model);
  for (size_t i = 0; i < graphs.size(); ++i)
    if (planned.plans[i] != nullptr) native.engine_->set_plan(graphs[i], *planned.plans[i]);
  native.runner_ = std::make_shared<ModelRunner>(std::move(planned.model), native.engine_);
  return native;
}

Result<std::vector<Tensor>> NativeModel::run(std::span<const Tensor> inputs) {
  if (graph_ != nullptr) return engine_->run(graph_, inputs);
  EvalOptions options;
  options.cancel = cancel_;
  return runner_->run(inputs, options);
}

Result<std::vector<Tensor>> run_native(const Model& model, const RunInputs& inputs,
                                       const NativeOptions& options, Console& console) {
  NativeModel native = HONE_TRY(native_model(model, inputs, options, console));
  return native.run(inputs.tensors);
}

}  // namespace hone::cli
