#include "base/file.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/division.h"
#include "cli/explain_placement.h"
#include "cli/explain_sharding.h"
#include "cli/gpu.h"
#include "cli/log.h"
#include "cli/machines.h"
#include "cli/named_plan.h"
#include "cli/native.h"
#include "cli/pipelines.h"
#include "cli/sharding.h"
#include "cli/source.h"
#include "cost/gpu_cost.h"
#include "report/explain.h"
#include "report/system_explanation.h"
#include "session/gpu.h"
#include "target/gpu_presets.h"

namespace hone::cli {
namespace {

struct Subject {
  const Source& source;
  const Bindings& sizes;
  const Graph& graph;
  std::unique_ptr<Log> log;        // null: none is read
  const Target* target = nullptr;  // to plan for; null: this machine
};

Result<NamedPlan> plan_of(const Subject& subject, const std::string& word, std::string_view option,
                          const Arguments& arguments, Console& console) {
  return named_plan(word, option, subject.graph, subject.source.model, subject.sizes, arguments,
                    console, subject.target);
}

Result<Explanation> explained(const NamedPlan& plan, const ExplainOptions& options) {
  const Graph* graph = HONE_TRY(plan.code->graph());
  const Plan* decided = HONE_TRY(plan.code->plan());
  Explanation made =
      HONE_TRY(explain(*graph, *decided, plan.options.target, plan.code->cost(), options));
  if (plan.options.target.gpu) made.gpu = HONE_TRY(gpu_share(*plan.code));
  return made;
}

// The GPU that --device names. A plan needs none: without one it is for all that hone runs on.
Result<std::optional<Target>> named_gpu(const Arguments& arguments, Console& console) {
  const std::optional<int> number = HONE_TRY(given_gpu(arguments));
  if (!number) return std::optional<Target>();
  const Result<std::shared_ptr<const CudaDevice>> device = open_gpu(*number);
  if (device.ok()) return std::optional(HONE_TRY(gpu_target(**device)));
  constexpr std::string_view kAny = "sm_80";
  console.note("{}; the plan is for {} (--target: another one)", device.error().what(), kAny);
  return preset_gpu(kAny);
}

// The plan of the log, if nobody says another one and the log has one.
Result<NamedPlan> chosen_plan(const Subject& subject, const Arguments& arguments,
                              Console& console) {
  const std::string word = arguments.text("PLAN");
  if (!word.empty()) return plan_of(subject, word, "plan", arguments, console);
  if (subject.log != nullptr && !arguments.given("without")) {
    Result<NamedPlan> best = plan_of(subject, "log", "plan", arguments, console);
    if (best.ok()) console.note("the log's plan (--no-log: without)");
    if (best.ok()) return best;
  }
  return plan_of(subject, "default", "plan", arguments, console);
}

Status tell_difference(const Subject& subject, const Arguments& arguments, Console& console) {
  const NamedPlan a = HONE_TRY(chosen_plan(subject, arguments, console));
  const NamedPlan b =
      HONE_TRY(plan_of(subject, arguments.text("diff"), "diff", arguments, console));
  ExplainOptions options;
  options.log = subject.log.get();
  options.most = 0;
  const Explanation first = HONE_TRY(explained(a, options));
  const Explanation second = HONE_TRY(explained(b, options));
  console.write(explained_difference(first, second, a.name, b.name));
  const std::string lines = diff(**a.code->plan(), **b.code->plan());
  console.write(lines.empty() ? "the plans are the same\n" : "\n" + lines);
  return {};
}

// Exchanges of devices are planned for the system, unless a plan is named.
Result<std::optional<SystemPlans>> planned_for(const System& system, const Subject& subject,
                                               const Arguments& arguments, Console& console) {
  const std::string word = arguments.text("PLAN");
  if (!has_exchanges(subject.graph) || (word != "" && word != "default"))
    return std::optional<SystemPlans>();
  SystemPlanOptions options;
  std::vector<std::shared_ptr<const Cost>> costs;
  for (const Target& target : system.targets) {
    const NativeOptions native = HONE_TRY(
        native_options_for(target, arguments, console, DefaultCache::user, LogPlans::left));
    costs.push_back(native.cost ? native.cost : analytic_cost(target));
    options.said.emplace_back().threads = native.threads;
    options.prepare = native.prepare;
    options.heuristics = native.heuristics;
  }
  options.cancel = &console.cancel();
  return std::optional(HONE_TRY(plan_for_system(subject.graph, system, costs, options)));
}

// The model on each device of a system.
Status tell_system(Subject& subject, const System& system, const Arguments& arguments,
                   Console& console) {
  const std::optional<SystemPlans> found =
      HONE_TRY(planned_for(system, subject, arguments, console));
  std::vector<NamedPlan> named;
  std::vector<TargetPlan> plans;
  for (size_t i = 0; i < system.targets.size(); ++i) {
    subject.target = &system.targets[i];
    named.push_back(found ? HONE_TRY(plan_of(subject, "default", "plan", arguments, console))
                          : HONE_TRY(chosen_plan(subject, arguments, console)));
    Compilation& code = *named.back().code;
    TargetPlan& plan = plans.emplace_back();
    plan.graph = found ? &found->graphs[i] : HONE_TRY(code.graph());
    plan.plan = found ? &found->plans[i] : HONE_TRY(code.plan());
    plan.cost = &code.cost();
    if (!has_exchanges(*plan.graph)) plan.program = HONE_TRY(code.program());
  }
  const SystemTimeline explanation = HONE_TRY(system_timeline(system, plans));
  if (arguments.given("trace")) {
    Trace trace;
    const SystemTimeline drawn =
        HONE_TRY(system_timeline(system, plans, system.device_count() > kMostDrawnDevices));
    add_timeline(trace, drawn.timeline, drawn.jobs(), names_of(drawn));
    if (const int64_t lost = trace.lost(); lost > 0)
      console.note("{} jobs have no room in the trace", lost);
    HONE_TRY(write_file_atomic(arguments.text("trace"), trace.json("hone explain")));
  }
  console.write(explanation_text(system, explanation, subject.graph.name(),
                                 static_cast<size_t>(arguments.integer("top"))));
  if (found && !found->overlaps.empty())
    console.write("\n" + overlaps_text(*found, static_cast<size_t>(arguments.integer("top"))));
  return {};
}

// The model on several devices, which divide its batch.
Status tell_division(const Graph& graph, const Arguments& arguments, Console& console) {
  const Division division = HONE_TRY(given_division(graph, arguments, console));
  const Source source = {.model = model_of(division.graph)};
  const Bindings no_sizes;
  Subject subject = {source, no_sizes, division.graph, {}};
  return tell_system(subject, division.system, arguments, console);
}

// The model on several devices, which divide its values.
Status tell_mesh(const Graph& graph, const Arguments& arguments, Console& console) {
  const ToldSharding told = HONE_TRY(tell_sharding(graph, arguments, console));
  const Source source = {.model = model_of(told.partition.graph)};
  const Bindings no_sizes;
  Subject subject = {source, no_sizes, told.partition.graph, {}};
  return tell_system(subject, told.system, arguments, console);
}

Status check_options(const Arguments& arguments) {
  if (arguments.given("diff") && arguments.given("json"))
    return usage_error("--diff is for people; it does not go with --json");
  if (arguments.given("why") && arguments.given("diff"))
    return usage_error("--why tells of one plan; it does not go with --diff");
  for (std::string_view several : {"system", "devices", "device", "mesh", "shard", "pipeline"}) {
    if (!arguments.given(several) || HONE_TRY(given_gpu(arguments))) continue;
    for (std::string_view other : {"diff", "why", "json"})
      if (arguments.given(other))
        return usage_error("--{} tells when each job runs; it does not go with --{}", several,
                           other);
    for (std::string_view other : {"isa", "target"})
      if (arguments.given(other))
        return usage_error("the devices of a system have targets; --{} does not go with --{}",
                           several, other)
            .with_hint("'hone system show NAME --target FILE' prints it with another target");
  }
  const bool are_devices = names_devices(arguments) || names_sharding(arguments);
  if (arguments.given("pipeline"))
    for (std::string_view other : {"mesh", "shard", "batch", "trace"})
      if (arguments.given(other))
        return usage_error("--pipeline tells of a plan of stages; it does not go with --{}", other);
  if (arguments.given("pipeline") && !arguments.text("PLAN").empty())
    return usage_error("a plan of kernels is of one device; it does not go with --pipeline");
  HONE_TRY(check_mesh_search(arguments));
  if (names_sharding(arguments) && arguments.given("batch"))
    return usage_error("--batch divides the batch alone; it does not go with --shard");
  if (arguments.given("batch") && !are_devices) return usage_error("--batch needs --devices");
  if (are_devices && !arguments.text("PLAN").empty() && arguments.text("PLAN") != "default")
    return usage_error("a plan is of one device; it does not go with --devices");
  const bool has_timeline = HONE_TRY(explained_device_plan(arguments)).has_value();
  if (arguments.given("trace") && !arguments.given("system") && !are_devices && !has_timeline)
    return usage_error("--trace is of a timeline; it needs --system or --devices");
  if (arguments.given("plot") && !has_timeline)
    return usage_error("--plot is of a plan that places kernels on devices")
        .with_hint("'hone place MODEL -o FILE.plan' makes one");
  return {};
}

}  // namespace

Status cmd_explain(const Arguments& arguments, Console& console) {
  const std::string json = arguments.text("json");
  HONE_TRY(check_options(arguments));
  const Source source = HONE_TRY(given_source(arguments.text("MODEL"), arguments, console));
  const Bindings sizes = HONE_TRY(given_sizes(source, console));
  const Model model = HONE_TRY(with_sizes(source.model, sizes));
  const Graph* const graph = single_graph(model);
  if (graph == nullptr) return no_single_graph(model, "hone explain");
  if (!graph->symbols().empty())
    return usage_error("the cost of kernels depends on the open sizes")
        .with_hint("--dim NAME=N and --shape NAME=DIMS choose them");
  if (const std::optional<DevicePlan> plan = HONE_TRY(explained_device_plan(arguments)))
    return tell_placement(*plan, *graph, arguments, console);
  Subject subject = {source, sizes, *graph, {}};
  if (!arguments.given("no-log")) {
    HONE_TRY(check_named_log(arguments));
    // Without it there are no measured times, and no plan 'log'.
    Result<std::unique_ptr<Log>> found = find_log(arguments);
    if (!found.ok()) console.note("the log is not used: {}", found.error().what());
    if (found.ok()) subject.log = *std::move(found);
  }
  if (arguments.given("pipeline")) return tell_pipeline(*graph, arguments, console);
  if (names_sharding(arguments)) return tell_mesh(*graph, arguments, console);
  if (names_devices(arguments)) return tell_division(*graph, arguments, console);
  if (arguments.given("system")) {
    const System system = HONE_TRY(load_system(arguments.text("system"), ""));
    return tell_system(subject, system, arguments, console);
  }
  const std::optional<Target> gpu = HONE_TRY(named_gpu(arguments, console));
  if (gpu) subject.target = &*gpu;
  if (arguments.given("diff")) return tell_difference(subject, arguments, console);

  const NamedPlan plan = HONE_TRY(chosen_plan(subject, arguments, console));
  const NamedPlan planned = HONE_TRY(plan_of(subject, "default", "plan", arguments, console));
  const auto top = static_cast<size_t>(arguments.integer("top"));
  const ExplainOptions options = {.log = subject.log.get(),
                                  .planned = *planned.code->plan(),
                                  .layers = source.layers,
                                  .most = top};
  const Explanation explanation = HONE_TRY(explained(plan, options));
  if (json == "-") {
    console.write(explanation_json(explanation));
    return {};
  }
  if (!json.empty()) HONE_TRY(write_file_atomic(json, explanation_json(explanation)));
  if (arguments.given("why")) {
    console.write(trust_text(explanation, top));
    return {};
  }
  if (const size_t unknown = explanation.unknown(); unknown > 0)
    console.note("{} of {} different kernels have the analytic price alone (--why: why)", unknown,
                 explanation.kernels.size());
  console.write(explanation_text(explanation, top));
  return {};
}

}  // namespace hone::cli
