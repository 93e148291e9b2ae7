#include "assign/json.h"
#include "assign/solve.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/source.h"

#include <chrono>

namespace hone::cli {
namespace {

Result<AssignProblem> load_assign(const std::string& path) {
  if (path == "-") return parse_assign_json(HONE_TRY(read_stdin()), "<stdin>");
  return parse_assign_json(HONE_TRY(read_file(path, kMaxAssignBytes)), path);
}

Result<Assignment> load_assignment(const std::string& path) {
  return parse_assignment(HONE_TRY(read_file(path, kMaxAssignBytes)), path);
}

std::string bounds_text(const AssignBounds& bounds) {
  if (!bounds.cost) return fmt::format("no solution yet, bound {}", bounds.bound);
  return fmt::format("cost {}, bound {}, gap {:.3f} %", *bounds.cost, bounds.bound,
                     100 * bounds.gap());
}

// Tells of better costs and bounds, but not of each where many follow one another.
class AssignTeller {
 public:
  explicit AssignTeller(Progress& progress) : progress_(&progress) {
    progress_->start(0, "better answers");
  }

  void operator()(const AssignBounds& bounds) {
    progress_->advance();
    const std::string text = bounds_text(bounds);
    progress_->now(text);
    const AssignClock::time_point now = AssignClock::now();
    if (now < due_) return;
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    // At first often, later every few seconds.
    due_ = now + std::chrono::milliseconds(seconds < 2 ? 500 : 2000);
    progress_->note(fmt::format("{}, after {}", text, format_seconds(seconds)));
  }

 private:
  using AssignClock = std::chrono::steady_clock;
  Progress* progress_;
  const AssignClock::time_point begin_ = AssignClock::now();
  AssignClock::time_point due_ = begin_;
};

Status judge_assignment(const AssignProblem& problem, const std::string& path, Console& console) {
  const AssignValue value = HONE_TRY(evaluate(problem, HONE_TRY(load_assignment(path))));
  const std::string limit =
      problem.usage_limit ? fmt::format(" of {}", *problem.usage_limit) : ", without a limit";
  console.note("cost {}; highest usage {}{}, at moment {}", value.cost, value.peak, limit,
               value.peak_moment);
  return check_fits(problem, value);
}

Result<AssignOptions> assign_options(const Arguments& arguments, Console& console) {
  AssignOptions options;
  options.seconds = arguments.real("seconds");
  options.steps = arguments.integer("steps");
  options.seed = static_cast<uint64_t>(arguments.integer("seed"));
  options.threads = static_cast<int>(std::clamp<int64_t>(arguments.integer("threads"), 0, 3));
  options.reduce = !arguments.given("no-reduce");
  options.search = arguments.text("search");
  options.cancel = &console.cancel();
  if (options.threads < 1 || options.threads > 2)
    return usage_error("--threads: 1 or 2 are possible, not {}", arguments.integer("threads"));
  for (std::string_view option : {"steps", "seconds"})
    if (arguments.real(option) < 0) return usage_error("--{} is negative", option);
  if (arguments.given("from")) options.start = HONE_TRY(load_assignment(arguments.text("from")));
  return options;
}

}  // namespace

Status cmd_assign(const Arguments& arguments, Console& console) {
  if (arguments.given("check") && (arguments.given("from") || arguments.given("output")))
    return usage_error("--check judges a solution; --from and --output are for looking for one");
  AssignOptions options = HONE_TRY(assign_options(arguments, console));
  const AssignProblem problem = HONE_TRY(load_assign(arguments.text("FILE")));
  if (arguments.given("check")) return judge_assignment(problem, arguments.text("check"), console);

  const std::unique_ptr<Progress> progress = console.progress();
  options.better = AssignTeller(*progress);
  const Console::Keeping keeping(console);
  const AssignResult result = HONE_TRY(solve(problem, options));
  progress->finish();
  if (result.bounds.cost)
    HONE_TRY(write_text(arguments.text("output"), print_assignment(result.assignment), console));
  console.note("{} nodes, {} edges; {} nodes, {} edges and {} moments after the reduction",
               problem.nodes.size(), problem.edges.size(), result.core.nodes, result.core.edges,
               result.core.times);
  console.note("{}{}; {} steps, {} sweeps", bounds_text(result.bounds),
               result.verdict == AssignVerdict::optimal ? ", the least" : "", result.steps,
               result.sweeps);
  HONE_TRY(console.cancel().check());
  if (result.bounds.cost) return {};
  const AssignValue value = HONE_TRY(evaluate(problem, result.assignment));
  return over_limit("no solution was found; of the closest: {}",
                    check_fits(problem, value).error().what())
      .with_hint("more --seconds may find one; nothing is saved");
}

}  // namespace hone::cli
