#include <algorithm>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/budget.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/devices.h"
#include "cli/gpu.h"
#include "cli/log.h"
#include "cli/prices.h"
#include "cli/programs.h"
#include "cli/small_sets.h"
#include "cli/source.h"
#include "cost/gpu_cost.h"
#include "lab/data/collect_layouts.h"
#include "lab/data/configured_graph.h"
#include "lab/data/export_data.h"
#include "lab/data/layout_text.h"
#include "report/data_set_text.h"
#include "session/gpu.h"
#include "session/native.h"
#include "tune/build_data_set.h"
#include "tune/collect_plans.h"
#include "zoo/spec.h"

namespace hone::cli {
namespace {

constexpr double kProbeSeconds = 4;
constexpr size_t kPlansInTurns = 24;  // of a program

Result<std::string> given_folder(const Arguments& arguments) {
  if (!arguments.given("output")) return usage_error("-o names the folder of the data set");
  return arguments.text("output");
}

void add_random(const Arguments& arguments, int64_t count, std::vector<NamedProgram>& programs) {
  // Seeds of graphs are numbers of 63 bits, also behind the largest seed of a set.
  const uint64_t first = static_cast<uint64_t>(arguments.integer("seed")) * 1'000'000;
  for (uint64_t i = 0; i < static_cast<uint64_t>(count); ++i)
    programs.push_back(random_program(static_cast<int64_t>((first + i) & INT64_MAX)));
}

std::vector<NamedProgram> given_programs(const Arguments& arguments, Console& console) {
  std::vector<NamedProgram> programs;
  for (const std::string& model : arguments.list("MODEL")) {
    if (model != "zoo") {
      programs.push_back(program_of(model, console));
      continue;
    }
    std::vector<NamedProgram> zoo = zoo_programs(console);
    std::ranges::move(zoo, std::back_inserter(programs));
  }
  add_random(arguments, arguments.integer("random-graphs"), programs);
  return programs;
}

// A name of nothing is a mistake of the command line, and not a program to leave out.
Status check_models(const Arguments& arguments) {
  std::error_code failed;
  for (const std::string& model : arguments.list("MODEL")) {
    if (model == "-") return usage_error("a data set reads no model from the standard input");
    std::string_view spec = model;
    if (consume_prefix(spec, "zoo:")) {
      HONE_TRY(check_zoo_spec(spec));
      continue;
    }
    if (model == "zoo" || std::filesystem::exists(model, failed)) continue;
    return bad_input("there is no file '{}'", excerpt(model));
  }
  return {};
}

// Assignments are drawn and schedules chosen by the analytic price, so that what was measured stays
// known. This one says what a plan costs, as far as the user has a better one. Null: no other.
Result<std::shared_ptr<const Cost>> other_cost(const Arguments& arguments, const Target& target,
                                               Console& console) {
  const std::string word = arguments.text("cost"), task = arguments.text("task");
  if ((task != "layout" && task != "plans") || word == "analytic")
    return std::shared_ptr<const Cost>();
  const auto note = [&](std::string_view line) { console.note("{}", line); };
  if (word.empty()) return user_prices().cost(target, note);
  return user_prices().cost_by(word, target, user_prices().analytic(target, note), note);
}

}  // namespace

namespace {

// --small has numbers of its own where other options say nothing.
Status build_small(const Arguments& arguments, const std::string& folder,
                   std::vector<NamedProgram> programs, BuildOptions options,
                   LayoutCollector& layouts, const Target& target, Console& console) {
  if (!arguments.given("budget")) options.seconds = kSmallSeconds;
  if (!arguments.given("schedules")) options.schedules = kSmallSchedules;
  if (!arguments.given("plans")) options.plans = kSmallPlans;
  options.probe_seconds = kProbeSeconds;
  layouts.whole = 0;
  const size_t given = programs.size();
  if (!arguments.given("random-graphs")) add_random(arguments, kSmallGraphs, programs);
  std::ranges::move(zoo_programs(console), std::back_inserter(programs));
  return build_small_sets(folder, options, programs, given, layouts, target, console);
}

// This machine, or the GPU that --device names, which the options get.
Result<Target> measured_target(const Arguments& arguments, BuildOptions& options) {
  HONE_TRY(given_devices(arguments));  // it refuses options that do not go with a GPU
  if (const std::optional<int> number = HONE_TRY(given_gpu(arguments))) {
    const std::string task = arguments.text("task");
    if (arguments.given("small") || (task != "tile" && task != "fusion"))
      return unsupported("only single kernels are measured on a GPU")
          .with_hint("--task tile or fusion, without --small");
    options.device = HONE_TRY(open_gpu(*number));
    options.probe_seconds = 0;  // the driver says what there is
    options.is_cold = true;     // as weights and what another kernel has written long ago
    return gpu_target(*options.device);
  }
  Target target = HONE_TRY(host_target());
  if (arguments.given("isa"))
    target = restricted(std::move(target), *isa_from_name(arguments.text("isa")));
  HONE_TRY(check_runs_here(target, Console::labels()));
  return target;
}

}  // namespace

Status cmd_dataset_build(const Arguments& arguments, Console& console) {
  const std::string folder = HONE_TRY(given_folder(arguments));
  BuildOptions options;
  if (arguments.given("budget")) options.seconds = HONE_TRY(parse_budget(arguments.text("budget")));
  options.kernel_seconds = HONE_TRY(parse_budget(arguments.text("each")));
  if (arguments.given("kernels"))
    options.kernels = static_cast<size_t>(arguments.integer("kernels"));
  const std::string task = arguments.text("task");
  if (arguments.given("small") && arguments.given("task"))
    return usage_error("--small makes sets of tasks of its own, not of --task {}", task);
  if (task == "fusion") options.task = DataTask::fusion;
  LayoutCollector layouts;
  PlanCollector plans;
  if (task == "layout") options.collector = &layouts;
  if (task == "plans") options.collector = &plans;
  plans.seconds = std::min(plans.seconds, options.kernel_seconds);
  options.schedules = arguments.integer("schedules");
  options.plans = arguments.given("plans") ? static_cast<size_t>(arguments.integer("plans"))
                  : task == "plans"        ? kPlansInTurns
                                           : BuildOptions().plans;
  layouts.whole = static_cast<size_t>(arguments.integer("whole"));
  options.threads = arguments.integer("threads");
  options.seed = arguments.integer("seed");
  options.version = HONE_VERSION;
  options.probe_seconds = std::min(kProbeSeconds, options.seconds / 20);
  HONE_TRY(check_models(arguments));
  const Target target = HONE_TRY(measured_target(arguments, options));
  std::unique_ptr<Log> from;
  if (arguments.given("from")) from = HONE_TRY(Log::open(arguments.text("from"), Log::Mode::read));
  options.from = from.get();
  const std::shared_ptr<const Cost> cost = analytic_cost(target);
  options.cost = cost.get();
  const std::shared_ptr<const Cost> other = HONE_TRY(other_cost(arguments, target, console));
  layouts.rival = other.get();
  plans.cost = other != nullptr ? other : cost;
  layouts.renews = arguments.given("renew");
  options.cancel = &console.cancel();
  const std::unique_ptr<Progress> progress = console.progress();
  options.progress = progress.get();
  std::vector<NamedProgram> programs = given_programs(arguments, console);
  // The other tasks need the graphs: without models those of the set.
  if (programs.empty() && task != "tile")
    for (const std::string& name : HONE_TRY(DataSet::open(folder)).programs())
      programs.push_back(program_named(name, console));
  if (arguments.given("small"))
    return build_small(arguments, folder, std::move(programs), std::move(options), layouts, target,
                       console);
  const Console::Keeping keeping(console);
  const BuiltSet built = HONE_TRY(build_data_set(folder, programs, target, options));
  console.write(built_text(built));
  if (built.failed > 0 && built.failed == built.wanted)
    return over_limit("none of the {} kernels can be measured", built.wanted)
        .with_hint("the lines above say why, kernel by kernel");
  return built.was_cancelled ? console.cancel().check() : Status();
}

Status cmd_dataset_inspect(const Arguments& arguments, Console& console) {
  const std::string json = arguments.text("json");
  const DataSet set = HONE_TRY(DataSet::open(arguments.text("SET")));
  const KernelData data = HONE_TRY(load_kernel_data(set));
  const std::vector<LayoutCounts> layouts = HONE_TRY(count_layouts(set));
  if (!json.empty() && json != "-") HONE_TRY(write_file_atomic(json, data_set_json(data, layouts)));
  console.write(json == "-" ? data_set_json(data, layouts)
                            : kernel_data_text(data) + layout_counts_text(layouts));
  return {};
}

Status cmd_dataset_merge(const Arguments& arguments, Console& console) {
  const std::string folder = HONE_TRY(given_folder(arguments));
  // All first: nothing is made if one of them does not fit.
  std::vector<DataSet> sets;
  for (const std::string& folder_of_one : arguments.list("SET"))
    sets.push_back(HONE_TRY(DataSet::open(folder_of_one)));
  std::error_code failed;
  for (const DataSet& set : sets)
    if (std::filesystem::exists(std::filesystem::path(set.folder()) / "plans", failed))
      return usage_error("'{}' has plans that ran in turns, which are not merged", set.folder())
          .with_hint("'hone train plans SET...' learns from several sets");
  for (const DataSet& set : sets)
    if (Status same = check_same(sets[0].info(), set.info()); !same.ok())
      return std::move(same).error().within(
          fmt::format("'{}' and '{}'", sets[0].folder(), set.folder()));
  DataSet into = HONE_TRY(DataSet::make(folder, sets[0].info()));
  for (const DataSet& set : sets) {
    const MergedSets merged = HONE_TRY(merge(into, set));
    const int64_t layouts = HONE_TRY(merge_layouts(into, set));
    console.note("added {} records, {} kernels of programs and {} files of layouts from {} to {}",
                 merged.added.records, merged.kernels, layouts, set.folder(), folder);
  }
  return {};
}

namespace {

Result<Exported> exported_files(const std::filesystem::path& what, const std::string& folder,
                                const DataExport& options) {
  std::error_code failed;
  if (std::filesystem::exists(what / "dataset.json", failed))
    return export_data(HONE_TRY(DataSet::open(what.native())), folder, options);
  if (std::filesystem::is_directory(what, failed) || what.extension() == ".npz")
    return export_data(what, folder, options);
  return export_data(HONE_TRY(tpu::read_tuning_data(what)), folder, options);
}

}  // namespace

Status cmd_dataset_export(const Arguments& arguments, Console& console) {
  const std::string what = arguments.text("WHAT");
  if (!arguments.given("output")) return usage_error("-o names the folder for the files");
  const std::string folder = arguments.text("output");
  DataExport options;
  options.published_only = arguments.text("schema") == "tpu";
  if (arguments.text("features") == "extended") options.features = tpu::FeatureSet::extended;
  if (arguments.given("split")) options.split = HONE_TRY(read_split(arguments.text("split")));
  const bool is_set = !are_graphs(what);
  if (options.features == tpu::FeatureSet::extended &&
      (is_set || std::filesystem::path(what).extension() != ".pb"))
    return usage_error("--features is for a file of measurements of TpuGraphs; '{}' is not one",
                       excerpt(what));
  if (options.split && !is_set)
    return usage_error("--split is for data sets; '{}' does not name programs", excerpt(what));
  const Exported exported = HONE_TRY(exported_files(what, folder, options));
  console.note("wrote {} files to {}", exported.files, folder);
  if (!exported.lost.empty()) console.note("columns that are lost: {}", join(exported.lost, ", "));
  if (!exported.lost_arrays.empty())
    console.note("arrays that are lost: {}", join(exported.lost_arrays, ", "));
  return {};
}

// A set without schedules of kernels is one of layouts.
Status cmd_dataset_split(const Arguments& arguments, Console& console) {
  const std::string output = arguments.text("output");
  const DataSet set = HONE_TRY(DataSet::open(arguments.text("SET")));
  const KernelData data = HONE_TRY(load_kernel_data(set));
  const std::vector<LayoutCounts> layouts = HONE_TRY(count_layouts(set));
  const bool has_kernels = !data.kernels.empty();
  std::vector<std::string> programs = programs_of(data);
  if (!has_kernels) {
    for (const LayoutCounts& each : layouts) programs.push_back(each.program);
    std::ranges::sort(programs);
    programs.erase(std::ranges::unique(programs).begin(), programs.end());
  }
  const auto text = [&](const ProgramSplit& split) {
    return has_kernels ? split_text(data, split) : split_text(layouts, split);
  };
  if (arguments.given("check")) {
    const ProgramSplit split = HONE_TRY(read_split(arguments.text("check")));
    HONE_TRY(check(split, programs));
    console.write(text(split));
    return {};
  }
  SplitShares shares = {.validation = arguments.real("validation"), .test = arguments.real("test")};
  std::set<std::string_view> families;
  for (const std::string& program : programs) families.insert(family_of(program));
  if (families.size() == 2 && !arguments.given("validation")) {
    console.note("there are two families of programs: none is for validation");
    shares.validation = 0;
  }
  const ProgramSplit split =
      HONE_TRY(random_split(programs, static_cast<uint64_t>(arguments.integer("seed")), shares));
  HONE_TRY(write_text(output, print(split), console));
  if (output != "-") console.write(text(split));
  return {};
}

}  // namespace hone::cli
