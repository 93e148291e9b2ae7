#include "cli/native.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include "base/file.h"
#include "base/text.h"
#include "cli/budget.h"
#include "cli/cache.h"
#include "cli/console.h"
#include "cli/gpu.h"
#include "cli/log.h"
#include "cli/machines.h"
#include "cli/prices.h"
#include "cli/source.h"
#include "cost/analytic.h"
#include "session/first_times.h"
#include "session/found_rewrites.h"
#include "session/gpu.h"
#include "session/known_plans.h"
#include "target/gpu_presets.h"
#include "target/levels.h"
#include "tune/measured_cost.h"

namespace hone::cli {

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
    console.note("compiled code is not kept: {}{}{}", usable.error().what(),
                 hint.empty() ? "" : "; ", hint);
  }
  return cache.ok() ? std::move(cache) : std::unique_ptr<CompileCache>();
}

namespace {

// The file of an option. A report of a fault holds it.
Result<std::string> read_kept(const std::string& file, std::string_view option, int64_t limit,
                              Console& console) {
  std::string text = HONE_TRY(read_file(file, limit));
  console.keep_for_report(fmt::format("given.{}", option), text);
  return text;
}

// A pass that prepares the graph, or a heuristic of the planner.
Status leave_out(NativeOptions& options, std::string_view name) {
  Status pass = check_can_leave_out(name);
  if (pass.ok()) {
    options.prepare.without.emplace_back(name);
    return {};
  }
  const Status heuristic = hone::leave_out(options.heuristics, name);
  if (!heuristic.ok()) {
    std::string hint = fmt::format("{}; {}", pass.error().hint(), heuristic.error().hint());
    return std::move(pass).error().with_hint(std::move(hint));
  }
  if (options.plan_seed)
    return usage_error("--plan-seed draws the whole plan; it does not go with '{}'", name);
  return {};
}

Status read_plans(NativeOptions& options, const std::string& file, std::string_view option,
                  Console& console) {
  options.plans =
      HONE_TRY(parse_plans(HONE_TRY(read_kept(file, option, kMaxPlanText, console)), file));
  // The graph may have been edited, too: then names alone say what plans are for.
  if (options.drops_unfit)
    for (PlacedPlan& one : options.plans) one.plan.graph_hash = 0;
  return {};
}

// The prices of a file of coefficients.
Status take_prices(NativeOptions& options, const std::string& file, Console& console) {
  const std::string text = HONE_TRY(read_kept(file, "prices", kMaxPricesText, console));
  options.cost =
      std::make_shared<AnalyticCost>(options.target,
                                     HONE_TRY(parse_prices(text, options.target.name, file)));
  return {};
}

// The times of kernels in the log, in place of the price of the options.
Status take_measured(NativeOptions& options, const Arguments& arguments) {
  const std::unique_ptr<Log> log = HONE_TRY(find_log(arguments));
  if (log == nullptr)
    return bad_input("--cost measured: there is no log of measurements")
        .with_hint("'hone tune' and 'hone calibrate' measure");
  std::shared_ptr<const Cost> otherwise = options.cost;
  if (otherwise == nullptr) otherwise = std::make_shared<AnalyticCost>(options.target);
  options.cost = HONE_TRY(measured_cost(*log, options.target, std::move(otherwise)));
  return {};
}

void keep_fitted_for_report(const KnownPrices& known, const Target& target, Console& console) {
  const Result<std::optional<FittedFile>> fitted = known.fitted(target);
  if (fitted.ok() && *fitted)
    console.keep_for_report("given.prices", print((*fitted)->prices, target.name));
}

Result<double> sureness_of(const Arguments& arguments) {
  if (!arguments.given("sure")) return kUsualSureness;
  const double sure = arguments.real("sure");
  if (sure >= 0.5 && sure <= 0.999) return sure;
  return usage_error("--sure: {} is not a probability from 0.5 to 0.999", sure);
}

// The price that --cost names. Coefficients are of the analytic price, so whoever gives some means
// that.
Status take_cost(NativeOptions& options, const Arguments& arguments, Console& console) {
  const std::string word = arguments.given("cost") ? arguments.text("cost") : "";
  const std::string prices = arguments.given("prices") ? arguments.text("prices") : "";
  const auto note = [&](std::string_view line) { console.note("{}", line); };
  const KnownPrices known = user_prices(HONE_TRY(sureness_of(arguments)));
  if (!prices.empty() && prices != "default") HONE_TRY(take_prices(options, prices, console));
  if (prices.empty()) {
    keep_fitted_for_report(known, options.target, console);
    options.cost = (word.empty() || word == "measured") ? known.cost(options.target, note)
                                                        : known.analytic(options.target, note);
  }
  if (word == "measured") return take_measured(options, arguments);
  if (word.empty() || word == "analytic") return {};
  options.cost = HONE_TRY(known.cost_by(word, options.target, options.cost, note));
  return {};
}

// A log that is opened when something is to be timed; null: what is timed is not kept.
std::function<Log*()> late_log(const Arguments& arguments, bool writes, Console& console) {
  return [&, writes, log = std::shared_ptr<Log>(), is_asked = false]() mutable {
    if (std::exchange(is_asked, true)) return log.get();
    Result<std::unique_ptr<Log>> opened =
        writes ? open_log(arguments, console) : find_log(arguments);
    if (opened.ok())
      log = *std::move(opened);
    else if (writes)
      console.note("times of kernels are not kept: {}", opened.error().what());
    return log.get();
  };
}

// Times of long kernels decide where prices may be wrong: those of the log, and new ones of this
// machine.
void take_first_times(NativeOptions& options, const Arguments& arguments, LogPlans plans,
                      Console& console) {
  if (arguments.given("no-measure") || arguments.given("target") || options.target.gpu) return;
  FirstTimesOptions times;
  times.measures =
      plans == LogPlans::timed && check_runs_here(options.target, Console::labels()).ok();
  times.log = late_log(arguments, times.measures, console);
  times.version = HONE_VERSION;
  times.cancel = &console.cancel();
  times.told = [&console](std::string_view line) {
    console.note("{} (--no-measure: without)", line);
  };
  options.revise = first_times_by(options.cost, std::move(times));
}

// The log's best plans count where nobody says how to plan. A log that cannot be read costs speed,
// nothing else.
Status take_log(NativeOptions& options, const Arguments& arguments, LogPlans plans,
                Console& console) {
  for (std::string_view other : {"no-log", "plan-seed", "without", "prices", "cost", "sure"})
    if (arguments.given(other)) return {};
  HONE_TRY(check_named_log(arguments));
  Result<std::unique_ptr<Log>> found = find_log(arguments);
  if (!found.ok()) console.note("plans of the log are not used: {}", found.error().what());
  if (!found.ok()) return {};
  take_first_times(options, arguments, plans, console);
  if (*found == nullptr) return {};
  options.best_plan = known_plans(
      *std::move(found), [&console](std::string_view line) { console.note("{}", line); },
      "--no-log", options.assumed_decades);
  return {};
}

}  // namespace

Status take_plans(NativeOptions& options, const std::string& file, std::string_view option,
                  const Arguments& arguments, Console& console) {
  HONE_TRY(read_plans(options, file, option, console));
  if (!arguments.given("threads")) return {};
  return set_threads(options, arguments.integer("threads"), console.labels());
}

namespace {

bool wants_no_cpu(const Arguments& arguments) {
  return arguments.given("isa") && arguments.text("isa") == "none";
}

bool wants_all_levels(const Arguments& arguments) {
  return arguments.given("isa") && arguments.text("isa") == "all";
}

Result<Target> given_target(const Arguments& arguments, Console& console) {
  if (!arguments.given("target")) return host_target();
  const std::string& file = arguments.text("target");
  const std::vector<std::string_view> names = split(file, ',');
  if (names.size() > 1 && preset_gpu(trim(names[0])))
    return usage_error("--target {}: a list of GPUs is for a file: -o FILE.honec", excerpt(file));
  if (const std::optional<Target> gpu = HONE_TRY(named_gpu(file))) return *gpu;
  return parse_target(HONE_TRY(read_kept(file, "target", kMaxTargetText, console)), file);
}

// "1e±10", also as "1e+-10" and "1e10".
Result<int32_t> assumed_decades(const Arguments& arguments) {
  if (!arguments.given("assume-range")) return 0;
  const std::string& text = arguments.text("assume-range");
  std::string_view digits = text;
  for (std::string_view start : {"1e±", "1e+-", "1e"})
    if (digits.starts_with(start)) {
      digits.remove_prefix(start.size());
      break;
    }
  int32_t decades = 0;
  const char* const end = digits.data() + digits.size();
  const auto [read, error] = std::from_chars(digits.data(), end, decades);
  if (digits.size() == text.size() || error != std::errc() || read != end || decades < 1 ||
      decades > kMaxAssumedDecades)
    return usage_error("--assume-range {}: not a range of magnitudes", excerpt(text))
        .with_hint(fmt::format("write it as 1e+-10 or 1e±10, up to 1e+-{}", kMaxAssumedDecades));
  return decades;
}

Result<NativeOptions> options_for(Target target, const Arguments& arguments, Console& console,
                                  DefaultCache cache, LogPlans plans) {
  NativeOptions options;
  options.target = std::move(target);
  options.assumed_decades = HONE_TRY(assumed_decades(arguments));
  options.prepare.flushes_denormals = arguments.given("flush-denormals");
  options.prepare.is_for_gpu = options.target.gpu.has_value();
  if (arguments.given("plan-lenient") && !arguments.given("plan"))
    return usage_error("--plan-lenient needs --plan");
  options.drops_unfit = arguments.given("plan-lenient");
  if (arguments.given("plan"))
    HONE_TRY(read_plans(options, arguments.text("plan"), "plan", console));
  if (arguments.given("plan-seed")) {
    for (std::string_view other : {"plan", "threads"})
      if (arguments.given(other))
        return usage_error("--plan-seed draws the whole plan; it does not go with --{}", other);
    options.plan_seed = static_cast<uint64_t>(arguments.integer("plan-seed"));
  }
  if (arguments.given("threads") && !options.target.gpu)
    HONE_TRY(set_threads(options, arguments.integer("threads"), console.labels()));
  for (std::string_view list : arguments.list("without"))
    for (std::string_view name : split(list, ',')) {
      Status left_out = leave_out(options, trim(name));
      if (!left_out.ok()) return std::move(left_out).error().about("--without");
    }
  if (options.target.gpu)
    options.cost = HONE_TRY(cost_of_gpu(arguments, options.target, console));
  else
    HONE_TRY(take_cost(options, arguments, console));
  options.cache = HONE_TRY(cache_of(arguments, cache, console));
  if (plans != LogPlans::left) HONE_TRY(take_log(options, arguments, plans, console));
  HONE_TRY(take_level(options, arguments, console));
  return options;
}

}  // namespace

Status take_level(NativeOptions& options, const Arguments& arguments, Console& console) {
  if (!arguments.given("optimize") || arguments.text("optimize") == "2") return {};
  for (std::string_view other : {"plan", "plan-seed"})
    if (arguments.given(other))
      return usage_error("--{} has rewrites of its own; it does not go with -O3", other);
  return take_rewrites(options, kPriceMargin, arguments, console);
}

Status take_rewrites(NativeOptions& options, double margin, const Arguments& arguments,
                     Console& console) {
  Face face = console.face();
  face.cancel = &console.cancel();
  options.find_rewrites =
      rewrites_by_search({.seconds = HONE_TRY(parse_budget(arguments.text("rewrite-budget"))),
                          .margin = margin,
                          .assumed_decades = options.assumed_decades,
                          .heuristics = options.heuristics,
                          .cost = options.cost,
                          .cache = options.cache.get(),
                          .face = face});
  return {};
}

Result<NativeOptions> native_options(const Arguments& arguments, Console& console,
                                     DefaultCache cache, LogPlans plans) {
  if (const std::optional<int> number = HONE_TRY(given_gpu(arguments))) {
    const std::shared_ptr<const CudaDevice> device = HONE_TRY(open_gpu(*number));
    NativeOptions options =
        HONE_TRY(options_for(HONE_TRY(gpu_target(*device)), arguments, console, cache, plans));
    options.device = device;
    return options;
  }
  Target target = HONE_TRY(given_target(arguments, console));
  if (target.gpu && arguments.given("threads"))
    return usage_error("--threads is about CPUs, and --target names a GPU");
  if (wants_all_levels(arguments))
    return usage_error("--isa all is for files that several machines run: -o FILE.honec");
  if (wants_no_cpu(arguments))
    return usage_error("--isa none is for files: -o FILE.honec, with GPUs that --target names");
  if (arguments.given("isa"))
    target = restricted(std::move(target), *isa_from_name(arguments.text("isa")));
  return options_for(std::move(target), arguments, console, cache, plans);
}

Result<NativeOptions> native_options_for(const Target& target, const Arguments& arguments,
                                         Console& console, DefaultCache cache, LogPlans plans) {
  return options_for(target, arguments, console, cache, plans);
}

namespace {

struct GpuOfFile {
  Target target;
  std::shared_ptr<const CudaDevice> device = nullptr;  // if it is of this machine
};

// The GPUs that a file is asked for; none: it is for CPUs. Code for the oldest one runs on all
// later ones.
Result<std::vector<GpuOfFile>> gpus_of_file(const Arguments& arguments, Console& console) {
  constexpr std::string_view kOldest = "sm_80";
  std::vector<GpuOfFile> gpus;
  if (const std::optional<int> number = HONE_TRY(given_gpu(arguments))) {
    std::shared_ptr<const CudaDevice> device = HONE_TRY(open_gpu(*number));
    gpus.push_back({HONE_TRY(gpu_target(*device)), device});
  } else if (arguments.given("target")) {
    const std::string list = arguments.text("target");
    const std::vector<std::string_view> names = split(list, ',');
    std::string_view other;
    for (std::string_view name : names)
      if (std::optional<Target> gpu = preset_gpu(trim(name)))
        gpus.push_back({*std::move(gpu)});
      else
        other = trim(name);
    if (!gpus.empty() && gpus.size() < names.size())
      return usage_error("--target: there is no GPU '{}'", excerpt(other))
          .with_hint("sm_80, sm_89 and sm_90 have names; code for the CPU is in the file, too");
    if (gpus.empty()) gpus.push_back({HONE_TRY(given_target(arguments, console))});
  }
  if (gpus.empty() || !gpus.front().target.gpu) return std::vector<GpuOfFile>();
  const auto capability = [](const GpuOfFile& gpu) { return gpu.target.gpu->capability; };
  const bool has_oldest = std::ranges::find(gpus, kMinCapability, capability) != gpus.end();
  if (!has_oldest && !arguments.given("plan")) gpus.push_back({*preset_gpu(kOldest)});
  std::ranges::sort(gpus, std::greater(), capability);
  const auto same = std::ranges::unique(gpus, {}, capability);
  gpus.erase(same.begin(), same.end());
  if (!arguments.given("plan")) return gpus;
  if (gpus.size() > 1)
    return usage_error("--plan is for one GPU, and --target names {}", gpus.size());
  for (std::string_view option : {"isa", "threads"})
    if (arguments.given(option))
      return usage_error("--{} is about CPUs, and with --plan the file is for a GPU alone", option);
  return gpus;
}

// The levels of instructions of a CPU, the best first.
Status add_levels_of_cpu(Target target, const Arguments& arguments, Console& console,
                         std::vector<NativeOptions>& levels) {
  std::vector<Target> targets;
  if (wants_all_levels(arguments))
    targets = levels_of(target);
  else if (arguments.given("isa"))
    targets.push_back(restricted(std::move(target), *isa_from_name(arguments.text("isa"))));
  else
    targets.push_back(std::move(target));
  for (Target& level : targets)
    levels.push_back(HONE_TRY(
        options_for(std::move(level), arguments, console, DefaultCache::user, LogPlans::taken)));
  return {};
}

}  // namespace

Result<std::vector<NativeOptions>> native_levels(const Arguments& arguments, Console& console) {
  if (wants_all_levels(arguments))
    for (std::string_view option : {"plan", "prices", "cost"})
      if (arguments.given(option))
        return usage_error("--isa all plans for each level by itself; --{} is for one", option);
  std::vector<NativeOptions> levels;
  for (GpuOfFile& gpu : HONE_TRY(gpus_of_file(arguments, console))) {
    levels.push_back(HONE_TRY(options_for(std::move(gpu.target), arguments, console,
                                          DefaultCache::user, LogPlans::taken)));
    levels.back().device = std::move(gpu.device);
  }
  const bool has_gpu = !levels.empty();
  if (!has_gpu && wants_no_cpu(arguments))
    return usage_error("--isa none leaves code for CPUs out, and no GPU is named")
        .with_hint("--target sm_90, or --device cuda");
  if (has_gpu && (arguments.given("plan") || wants_no_cpu(arguments))) return levels;
  HONE_TRY(add_levels_of_cpu(HONE_TRY(has_gpu ? host_target() : given_target(arguments, console)),
                             arguments, console, levels));
  return levels;
}

std::string GivenGraphs::heading(size_t i) const {
  if (graphs.size() == 1) return "";
  return fmt::format("{}# segment {} of {}: {}\n", i == 0 ? "" : "\n", i + 1, graphs.size(),
                     escape(graphs[i]->name()));
}

Result<GivenGraphs> given_graphs(const Source& source, const NativeOptions& options,
                                 Console& console) {
  const Bindings sizes = HONE_TRY(given_sizes(source, console));
  GivenGraphs given;
  given.model = HONE_TRY(with_sizes(source.model, sizes));
  given.graphs = graphs_of(given.model);
  given.plans = HONE_TRY(plans_of(given.graphs, source.model, sizes, options, Console::labels()));
  if (first_deferred(given.model) != nullptr)
    console.note("left out: segments that are made from the data of a run");
  return given;
}

Status refuse_native_options(const Arguments& arguments) {
  for (std::string_view option :
       {"target", "isa", "prices", "cost", "sure", "no-measure", "threads", "plan", "pipeline",
        "plan-lenient", "plan-seed", "without", "cache", "optimize", "assume-range", "quick-start"})
    if (arguments.given(option))
      return usage_error("--{} is for native code; the reference does not take it", option);
  return {};
}

}  // namespace hone::cli
