#include "base/file.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/compiled.h"
#include "cli/console.h"
#include "cli/devices.h"
#include "cli/division.h"
#include "cli/explain_placement.h"
#include "cli/explain_sharding.h"
#include "cli/inputs.h"
#include "cli/load.h"
#include "cli/log.h"
#include "cli/machines.h"
#include "cli/native.h"
#include "cli/placed_model.h"
#include "cli/sharding.h"
#include "cli/shell_word.h"
#include "cli/source.h"
#include "cost/gpu_cost.h"
#include "report/model_report.h"
#include "report/placement_text.h"
#include "search/system_plan.h"

#include <cstdlib>
#include <filesystem>

namespace hone::cli {
namespace {

// The command line, rebuilt: options as their rows name them.
std::string command_line(const Arguments& arguments) {
  std::string line = fmt::format("hone report {}", shell_word(arguments.text("MODEL")));
  for (const Option& option : arguments.command().options) {
    if (!arguments.given(option.name)) continue;
    if (option.take == Take::nothing) {
      line += fmt::format(" --{}", option.name);
      continue;
    }
    const std::vector<std::string> values =
        option.repeats ? arguments.list(option.name)
                       : std::vector<std::string>{arguments.text(option.name)};
    for (const std::string& value : values)
      line += fmt::format(" --{} {}", option.name, shell_word(value));
  }
  return line;
}

ModelReport start_report(const Arguments& arguments, const NativeOptions& options) {
  ModelReport report;
  report.model = arguments.text("MODEL");
  report.version = HONE_VERSION;
  report.time = time_text();
  const std::string model = shell_word(report.model);
  report.commands = {command_line(arguments), fmt::format("hone bench {} --profile", model),
                     fmt::format("hone explain {}", model), fmt::format("hone check {}", model),
                     fmt::format("hone tune {}", model)};
  report.target = options.target;
  const bool is_planned = options.plans.size() == 1 && options.plans[0].plan.threads;
  report.threads = options.threads ? *options.threads
                   : is_planned    ? *options.plans[0].plan.threads
                                   : options.target.cores;
  report.load = machine_load();
  return report;
}

// Whose own plan it would be without the log and the options that say how to plan.
Result<NativeOptions> plain_options(const Arguments& arguments, Console& console) {
  NativeOptions plain =
      HONE_TRY(native_options(arguments, console, DefaultCache::user, LogPlans::left));
  plain.plans.clear();
  plain.plan_seed.reset();
  return plain;
}

// Notes that the log's plan was taken.
std::shared_ptr<bool> watch_log(NativeOptions& options) {
  auto taken = std::make_shared<bool>(false);
  if (!options.best_plan) return taken;
  options.best_plan = [ask = options.best_plan, taken](const Graph& graph, const Target& target,
                                                       int64_t threads) {
    std::optional<Plan> plan = ask(graph, target, threads);
    *taken = *taken || plan.has_value();
    return plan;
  };
  return taken;
}

// None: there is none, or it cannot be read, which costs the part that shows it.
std::unique_ptr<Log> log_of(const Arguments& arguments, ModelReport& report) {
  if (arguments.given("no-log")) return nullptr;
  Result<std::unique_ptr<Log>> found = find_log(arguments);
  if (found.ok()) return *std::move(found);
  report.notes.push_back(fmt::format("The log is not used: {}", found.error().what()));
  return nullptr;
}

// Does not read the model: what is wrong with its name is a fault of the command line.
Status check_is_there(const std::string& model) {
  if (model == "-" || model.starts_with("zoo:") || std::filesystem::exists(model)) return {};
  return bad_input("cannot read '{}': there is no such file", excerpt(model));
}

// The timeline of a model on each device of a system, or on devices that divide its batch.
Status draw_system(ModelReport& report, const Model& model, const NativeOptions& options,
                   const Arguments& arguments, Console& console) {
  const Graph* const whole = single_graph(model);
  if (whole == nullptr)
    return no_single_graph(
        model, names_devices(arguments) ? "hone report --devices" : "hone report --system");
  const auto division = [&]() -> Result<Division> {
    if (names_devices(arguments)) return given_division(*whole, arguments, console);
    return Division{HONE_TRY(load_system(arguments.text("system"), "")), *whole};
  };
  const auto [system, graph] = HONE_TRY(division());
  SystemPlanOptions wanted = {
      .prepare = options.prepare, .heuristics = options.heuristics, .cancel = &console.cancel()};
  std::vector<std::shared_ptr<const Cost>> costs;
  for (const Target& target : system.targets) {
    costs.push_back(analytic_cost(target));
    wanted.said.emplace_back().threads = options.threads;
  }
  const SystemPlans plans = HONE_TRY(plan_for_system(graph, system, costs, wanted));
  const bool merge = system.device_count() > kMostDrawnDevices;
  report.devices = timeline_picture(system, HONE_TRY(timeline_of(plans, system, costs, merge)));
  return {};
}

// When devices work under a plan that places kernels on them, and why.
Status draw_placement(ModelReport& report, const Model& model, const DevicePlan& plan,
                      const Arguments& arguments, Console& console) {
  const Graph* const whole = single_graph(model);
  if (whole == nullptr) return no_single_graph(model, "a plan with devices");
  const SaidPlacement said = HONE_TRY(said_by_plan(plan, *whole, arguments, console));
  const PlaceProblem problem = without_pins(said.placed.problem);
  const PlaceJudge judge(problem);
  const PlaceTimeline timeline = HONE_TRY(judge.timeline(said.placement));
  report.devices = timeline_picture(said.system.name, timeline.timeline, timeline.jobs.jobs(),
                                    names_of(timeline));
  constexpr size_t kRows = 20;
  report.placement = placement_text(judge, said.placement, timeline, PlaceGoal::step, kRows);
  return {};
}

// Who holds what of a model whose values devices divide, and when each of them works.
Status draw_mesh(ModelReport& report, const Model& model, const Arguments& arguments,
                 Console& console) {
  const Graph* const whole = single_graph(model);
  if (whole == nullptr) return no_single_graph(model, "hone report --mesh");
  DrawnSharding drawn = HONE_TRY(draw_sharding(*whole, arguments, console));
  report.sharding = std::move(drawn.picture);
  std::vector<std::shared_ptr<const Cost>> costs;
  for (const Target& target : drawn.system.targets) costs.push_back(analytic_cost(target));
  const bool merge = drawn.system.device_count() > kMostDrawnDevices;
  report.devices =
      timeline_picture(drawn.system,
                       HONE_TRY(timeline_of(drawn.plans, drawn.system, costs, merge)));
  return {};
}

// The model is read, run and measured, as far as it goes.
Status fill(ModelReport& report, const Arguments& arguments, NativeOptions& options,
            const DevicePlan* placed, Console& console) {
  const Face face = console.face();
  const auto failed = [&](std::string what, Error error) -> Status {
    const ErrorCode code = error.code();
    if (code == ErrorCode::usage || code == ErrorCode::interrupted) return error;
    report.failures.push_back({std::move(what), std::move(error)});
    return {};
  };
  Result<Source> source = given_source(report.model, arguments, console, {.runs_inputs = true});
  if (!source.ok()) {
    report.commands.resize(1);  // no other takes it
    return failed("read the model", std::move(source).error());
  }
  const std::unique_ptr<Log> log = log_of(arguments, report);
  const Graph signature = signature_of(source->model);
  Result<RunInputs> inputs =
      given_inputs(signature, source->open, arguments, Engine::native, console);
  if (!inputs.ok()) {
    HONE_TRY(summarize_into(report, source->model));
    return failed("make inputs", std::move(inputs).error());
  }
  HONE_TRY(check_all_chosen(*inputs));
  const Model model = HONE_TRY(with_sizes(source->model, inputs->bindings));
  HONE_TRY(summarize_into(report, model));
  if (placed != nullptr) {
    Status drawn = draw_placement(report, model, *placed, arguments, console);
    return drawn.ok() ? Status() : failed("draw the placement", std::move(drawn).error());
  }
  if (names_sharding(arguments)) {
    Status drawn = draw_mesh(report, model, arguments, console);
    return drawn.ok() ? Status() : failed("draw the mesh", std::move(drawn).error());
  }
  if (arguments.given("system") || names_devices(arguments)) {
    Status drawn = draw_system(report, model, options, arguments, console);
    return drawn.ok() ? Status() : failed("draw the system", std::move(drawn).error());
  }
  if (Status runs = check_runs_here(options, Console::labels()); !runs.ok()) {
    HONE_TRY(failed("run the model", std::move(runs).error()));
    return plan_into(report, model, options, source->layers, log.get(), face);
  }
  std::optional<NativeOptions> plain;
  const bool is_planned = !options.plans.empty() || options.plan_seed.has_value();
  if (is_planned || options.best_plan) plain = HONE_TRY(plain_options(arguments, console));
  const std::shared_ptr<bool> is_of_log = watch_log(options);
  if (!options.target.gpu) options.team = HONE_TRY(Team::create({.threads = options.target.cores}));
  if (plain) plain->team = options.team;
  if (options.target.gpu)
    report.notes.push_back("ONNX Runtime is left out: it would run on the CPU.");
  return measure_into(report, {.source = *source,
                               .inputs = *inputs,
                               .options = options,
                               .plain = plain ? &*plain : nullptr,
                               .has_other_plan = [&] { return is_planned || *is_of_log; },
                               .log = log.get(),
                               .seconds = arguments.real("seconds"),
                               .runs_rival = !arguments.given("alone") && !options.target.gpu,
                               .face = face});
}

}  // namespace

Status cmd_report(const Arguments& arguments, Console& console) {
  const std::string page = arguments.text("output"), json = arguments.text("json");
  if (page == "-" && json == "-")
    return usage_error("--output and --json cannot both be the standard output");
  HONE_TRY(check_is_there(arguments.text("MODEL")));
  HONE_TRY(check_devices(arguments));
  if (names_compiled(arguments)) return is_compiled(arguments.text("MODEL"));
  const std::optional<DevicePlan> placed = HONE_TRY(given_device_plan(arguments));
  NativeOptions options;
  if (placed) {
    HONE_TRY(check_options_of_placed(arguments));
    options.target = HONE_TRY(host_target());
  } else {
    options = HONE_TRY(native_options(arguments, console));
  }
  ModelReport report = start_report(arguments, options);
  HONE_TRY(fill(report, arguments, options, placed ? &*placed : nullptr, console));
  report.load_after = machine_load();
  if (!json.empty()) HONE_TRY(write_text(json, report_json(report) + "\n", console));
  HONE_TRY(write_text(page, report_page(report), console));
  if (report.failures.empty()) return {};
  return Error(report.failures[0].error).about("cannot " + report.failures[0].what);
}

}  // namespace hone::cli
