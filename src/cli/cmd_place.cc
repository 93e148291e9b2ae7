#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/cache.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/explain_placement.h"
#include "cli/place_subject.h"
#include "cli/source.h"
#include "lab/models/compiled_policy.h"
#include "lab/models/tune_placement.h"
#include "place/joint.h"
#include "place/partition_json.h"
#include "place/placer.h"
#include "place/policy.h"
#include "place/sort_by.h"
#include "place/task_text.h"
#include "place/text.h"
#include "program/device_programs.h"
#include "report/placement_text.h"
#include "search/placed_graph.h"

namespace hone::cli {
namespace {

std::string milliseconds(double seconds) { return fmt::format("{:.6g} ms", 1e3 * seconds); }

// ---- Files -------------------------------------------------------------------------------------

Status write_problem(const PlaceProblem& problem, const std::string& path, Console& console) {
  if (path.ends_with(".json")) {
    const std::string text = HONE_TRY(print_partition_json(problem));
    return write_text(path, text, console);
  }
  if (path.ends_with(".txt")) return write_text(path, HONE_TRY(print_task_text(problem)), console);
  return write_text(path, print(problem), console);
}

Result<DevicePlacement> load_split(const std::string& path, const PlaceProblem& problem) {
  const std::string text = HONE_TRY(read_file(path, static_cast<int64_t>(kMaxPartitionBytes)));
  const DevicePlacement placement = HONE_TRY(parse_split(text, path, problem));
  HONE_TRY(check(problem, placement));
  return placement;
}

// ---- Tables ------------------------------------------------------------------------------------

std::string devices_text(const PlaceJudge& judge, const DevicePlacement& placement,
                         const PlaceTimeline& timeline) {
  const PlaceProblem& problem = judge.problem();
  TextTable table("rlrrrrr", {"device", "target", "nodes", "computing", "load", "memory", "of"});
  const std::vector<double> loads = judge.loads(placement);
  for (uint32_t d = 0; d < problem.devices(); ++d) {
    const PlaceDevice& device = judge.devices()[d];
    int64_t nodes = 0;
    double computing = 0;
    for (uint32_t i = 0; i < problem.nodes.size(); ++i) {
      if (placement.device[i] != d) continue;
      ++nodes;
      computing += problem.nodes[i].seconds[device.target];
    }
    table.add_row({std::to_string(d), problem.system.targets[device.target].name,
                   std::to_string(nodes), milliseconds(computing), milliseconds(loads[d]),
                   format_bytes(timeline.memory[d].peak), format_bytes(device.memory)});
  }
  return table.to_string();
}

std::string placers_text(const PlaceResult& result) {
  TextTable table("lrrrl", {"placer", "value", "took", "placements", ""});
  for (const PlacerOutcome& one : result.placers)
    table.add_row({std::string(one.name), one.value == kCannotRun ? "-" : milliseconds(one.value),
                   format_seconds(one.seconds), std::to_string(one.trials), one.note});
  return table.to_string();
}

// "step 3.1 ms, load 4 ms": the goal first.
std::string values_text(const PlaceJudge& judge, const DevicePlacement& placement,
                        const PlaceTimeline& timeline, PlaceGoal goal) {
  const double load = std::ranges::max(judge.loads(placement));
  const std::string step = fmt::format("step {}", milliseconds(timeline.seconds()));
  return goal == PlaceGoal::step ? fmt::format("{}, load {}", step, milliseconds(load))
                                 : fmt::format("load {}, {}", milliseconds(load), step);
}

std::string bound_text(const PlaceBounds& bounds, double value, PlaceGoal goal) {
  const double gap = value > 0 ? std::max(0.0, 1 - bounds.of(goal) / value) : 0;
  return fmt::format("bound {} ({}), gap {:.2f} %", milliseconds(bounds.of(goal)),
                     bounds.name_of(goal), 100 * gap);
}

// The tables of --explain and the drawing of --plot.
Status tell_more(const PlaceJudge& judge, const DevicePlacement& placement,
                 const PlaceTimeline& timeline, PlaceGoal goal, const Arguments& arguments,
                 Console& console) {
  HONE_TRY(write_placement_plot(judge, timeline, arguments, console));
  if (const int64_t rows = arguments.integer("explain"); rows > 0)
    console.write("\n" +
                  placement_text(judge, placement, timeline, goal, static_cast<size_t>(rows)));
  return {};
}

Status judge_split(const PlaceJudge& judge, const std::string& path, PlaceGoal goal,
                   const Arguments& arguments, Console& console) {
  const DevicePlacement placement = HONE_TRY(load_split(path, judge.problem()));
  const PlaceTimeline timeline = HONE_TRY(judge.timeline(placement));
  const double value =
      goal == PlaceGoal::step ? timeline.seconds() : std::ranges::max(judge.loads(placement));
  HONE_TRY(judge.check_memory(placement, timeline));
  console.write(devices_text(judge, placement, timeline));
  HONE_TRY(tell_more(judge, placement, timeline, goal, arguments, console));
  console.note("{}; {}", values_text(judge, placement, timeline, goal),
               bound_text(place_bounds(judge), value, goal));
  return {};
}

// The plan of a model or the programs of its devices, or the nodes of each device.
Result<std::string> output_text(const PlaceSubject& subject, const PlaceJudge& judge,
                                const DevicePlacement& placement, const PlaceTimeline& timeline,
                                const Arguments& arguments, Console& console) {
  if (subject.model && arguments.text("output").ends_with(".plan"))
    return print(subject.model->plan, steps_of(*subject.model, placement));
  if (subject.model)
    return print(HONE_TRY(placed_programs(*subject.model, placement, subject.costs,
                                          {.cancel = &console.cancel()}))
            .programs);
  std::vector<uint32_t> order = judge.order();
  sort_by(order, [&](uint32_t i) { return timeline.start(i); });
  return print_split(subject.problem(), placement, order, judge.loads(placement));
}

// A program that the PATH has; empty: none.
std::filesystem::path found_program(std::string_view name) {
  namespace fs = std::filesystem;
  std::error_code failed;
  const char* const path = std::getenv("PATH");
  for (const std::string_view folder : split(path == nullptr ? "" : path, ':'))
    if (!folder.empty() && fs::is_regular_file(fs::path(folder) / name, failed))
      return fs::path(folder) / name;
  return {};
}

PlaceSolver found_solver() {
  std::error_code failed;
  return {.program = found_program("cbc"),
          .metis = found_program("gpmetis"),
          .scratch = std::filesystem::temp_directory_path(failed)};
}

Result<PlaceOptions> place_options(const Arguments& arguments, Console& console) {
  PlaceOptions options;
  options.goal = arguments.text("goal") == "load" ? PlaceGoal::load : PlaceGoal::step;
  options.by = arguments.text("by");
  options.seconds = arguments.real("seconds");
  options.trials = arguments.integer("trials");
  options.seed = static_cast<uint64_t>(arguments.integer("seed"));
  options.cancel = &console.cancel();
  options.solver = found_solver();
  if (!(options.seconds >= 0)) return usage_error("--seconds is negative");
  if (options.trials < 0) return usage_error("--trials is negative");
  if (!options.by.empty()) {
    const Result<const PlacerRow*> row = find_placer(options.by);
    if (!row.ok()) return Error(row.error()).as(ErrorCode::usage).about("--by");
  }
  return options;
}

// A damaged or foreign file does not stop the search: its rivals place without it.
Result<std::optional<PlacePolicy>> given_policy(const Arguments& arguments, Console& console) {
  if (!arguments.given("policy")) return std::optional<PlacePolicy>();
  const std::string file = arguments.text("policy");
  Result<PlacePolicy> policy = PlacePolicy::read(file);
  if (policy.ok()) return std::optional(*std::move(policy));
  std::error_code failed;
  if (!std::filesystem::exists(file, failed)) return std::move(policy).error();
  console.note("{} ({}); the policy that comes with hone takes its place", policy.error().what(),
               policy.error().where());
  return std::optional<PlacePolicy>();
}

// A folder that cannot be used costs time, and nothing else, unless the user named it.
Result<CompileOptions> policy_compile_options(std::unique_ptr<CompileCache>& cache,
                                              const Arguments& arguments, Console& console) {
  if (arguments.text("cache") != "none") {
    Result<std::unique_ptr<CompileCache>> opened = open_cache(arguments);
    if (!opened.ok() && arguments.given("cache")) return opened.error();
    if (opened.ok()) cache = *std::move(opened);
  }
  CompileOptions compile;
  compile.cache = cache.get();
  compile.cancel = &console.cancel();
  return compile;
}

// Tunes the policy for the problem; what it finds is the start of the search.
Status tune(const PlaceJudge& judge, int64_t steps, std::optional<PlacePolicy>& policy,
            PlaceOptions& options, const Arguments& arguments, Console& console) {
  const PlacePolicy* const known = policy ? &*policy : shipped_policy();
  if (known == nullptr)
    return unsupported("this build has no policy of placement to tune")
        .with_hint("'hone train placement -o FILE' makes one, for --policy FILE");
  const auto start = std::chrono::steady_clock::now();
  PlacementTuning tuning = {
      .goal = options.goal, .steps = steps, .seed = options.seed, .start = options.start};
  std::unique_ptr<CompileCache> cache;
  tuning.compile = HONE_TRY(policy_compile_options(cache, arguments, console));
  const std::unique_ptr<Progress> progress = console.progress();
  progress->start(steps, "steps of tuning");
  tuning.told = [&](int64_t /*step*/, double value) {
    progress->advance();
    progress->now(fmt::format("{} {}", name(options.goal), milliseconds(value)));
  };
  TunedPlacement tuned = HONE_TRY(tune_placement(judge, *known, tuning));
  progress->finish();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  console.note("tuned in {} steps and {}: {} {}, before {}", steps, format_seconds(took.count()),
               name(options.goal), milliseconds(tuned.value), milliseconds(tuned.before));
  policy = std::move(tuned.policy);
  options.start = std::move(tuned.placement);
  return {};
}

// The policy as a program for the problem.
Status compile_policy(const PlaceJudge& judge, std::optional<PlacePolicy>& policy,
                      const PlaceOptions& options, const Arguments& arguments, Console& console) {
  const PlacePolicy* const known = policy ? &*policy : shipped_policy();
  if (known == nullptr) return unsupported("this build has no policy of placement to compile");
  std::unique_ptr<CompileCache> cache;
  CompileOptions compile = HONE_TRY(policy_compile_options(cache, arguments, console));
  PlaceRun run(judge, options);
  const PolicyView view(run);
  policy = HONE_TRY(compiled_policy(*known, view, sizes_of(view), compile));
  return {};
}

// Fusions, devices and order together.
Status place_with_fusions(const PlaceSubject& subject, const PlaceOptions& options,
                          const Arguments& arguments, Console& console) {
  const PlaceProblem& problem = subject.problem();
  JointOptions joint = {.goal = options.goal,
                        .seconds = options.seconds,
                        .trials = options.trials,
                        .seed = options.seed,
                        .policy = options.policy,
                        .cancel = options.cancel};
  const Console::Keeping keeping(console);
  const JointPlacement found = HONE_TRY(place_jointly(problem, joint));
  const FusedProblem fused = fused_problem(problem, found.fused);
  const PlaceJudge judge(fused.problem);
  DevicePlacement placement;
  for (const uint32_t node : fused.last_of) {
    placement.device.push_back(found.placement.device[node]);
    placement.priority.push_back(found.placement.priority.empty() ? 0
                                                                  : found.placement.priority[node]);
  }
  const PlaceTimeline timeline = HONE_TRY(judge.timeline(placement));
  if (arguments.given("output")) {
    std::vector<uint32_t> order = PlaceJudge(problem).order();
    sort_by(order, [&](uint32_t i) { return timeline.start(fused.node_of[i]); });
    HONE_TRY(write_text(arguments.text("output"),
                        print_split(problem, found.placement, order, judge.loads(placement)),
                        console));
  }
  if (arguments.text("output") != "-") console.write(devices_text(judge, placement, timeline));
  HONE_TRY(tell_more(judge, placement, timeline, options.goal, arguments, console));
  console.note("{} nodes, {} tensors, {} devices; {} of {} fusions are made", problem.nodes.size(),
               problem.tensors.size(), problem.devices(), std::ranges::count(found.fused, 1),
               found.fused.size());
  const PlaceProblem fastest = fastest_problem(problem);
  console.note("{}; {}", values_text(judge, placement, timeline, options.goal),
               bound_text(place_bounds(PlaceJudge(fastest)), found.value, options.goal));
  return console.cancel().check();
}

Status check_what_goes_together(const Arguments& arguments) {
  if (arguments.text("output") == "-" && arguments.integer("explain") > 0)
    return usage_error("--explain writes where the placement goes; -o names a file for that");
  if (arguments.given("plot") && arguments.text("plot") == "-")
    return usage_error("--plot names a file; tables have the standard output");
  const std::string by = arguments.text("by");
  const bool asks_policy = by.empty() || by == "policy" || by == "guided";
  if (arguments.given("compiled") && (arguments.given("check") || !asks_policy))
    return usage_error("--compiled is of the policy, which nobody asks here");
  return {};
}

}  // namespace

Status cmd_place(const Arguments& arguments, Console& console) {
  if (arguments.given("check") && (arguments.given("from") || arguments.given("output")))
    return usage_error("--check judges a placement; --from and --output are for looking for one");
  HONE_TRY(check_what_goes_together(arguments));
  PlaceOptions options = HONE_TRY(place_options(arguments, console));
  const PlaceSubject subject = HONE_TRY(given_place_subject(arguments, console));
  const PlaceProblem& problem = subject.problem();
  if (arguments.given("problem"))
    HONE_TRY(write_problem(problem, arguments.text("problem"), console));
  const PlaceJudge judge(problem);
  if (arguments.given("check"))
    return judge_split(judge, arguments.text("check"), options.goal, arguments, console);
  const std::string from = arguments.text("from");
  if (!from.empty()) options.start = HONE_TRY(load_split(from, problem));

  std::optional<PlacePolicy> policy = HONE_TRY(given_policy(arguments, console));
  const bool makes_fusions = !problem.fusions.empty() && arguments.text("fuse") == "yes";
  for (const std::string_view option : {"by", "tune", "from", "compiled"})
    if (makes_fusions && arguments.given(option))
      return usage_error("--{} decides devices and order alone", option)
          .with_hint("--fuse no makes no fusions");
  if (makes_fusions) {
    if (policy) options.policy = &*policy;
    return place_with_fusions(subject, options, arguments, console);
  }
  if (const int64_t steps = arguments.integer("tune"); steps > 0)
    HONE_TRY(tune(judge, steps, policy, options, arguments, console));
  if (arguments.given("compiled"))
    HONE_TRY(compile_policy(judge, policy, options, arguments, console));
  if (policy) options.policy = &*policy;
  const std::unique_ptr<Progress> progress = console.progress();
  progress->start(0, "better placements");
  options.better = [&](double value, double bound) {
    progress->advance();
    progress->now(fmt::format("{} {}, bound {}", name(options.goal), milliseconds(value),
                              milliseconds(bound)));
  };
  const Console::Keeping keeping(console);
  const PlaceResult result = HONE_TRY(place(judge, options));
  progress->finish();
  const PlaceTimeline timeline = HONE_TRY(judge.timeline(result.placement));
  if (arguments.given("output")) {
    const std::string text =
        HONE_TRY(output_text(subject, judge, result.placement, timeline, arguments, console));
    HONE_TRY(write_text(arguments.text("output"), text, console));
  }
  if (arguments.text("output") != "-") {
    console.write(placers_text(result));
    console.write("\n" + devices_text(judge, result.placement, timeline));
  }
  HONE_TRY(tell_more(judge, result.placement, timeline, options.goal, arguments, console));
  console.note("{} nodes, {} tensors, {} devices", problem.nodes.size(), problem.tensors.size(),
               problem.devices());
  console.note("{} by {}; {}", values_text(judge, result.placement, timeline, options.goal),
               result.by, bound_text(result.bounds, result.value, options.goal));
  return console.cancel().check();
}

}  // namespace hone::cli
