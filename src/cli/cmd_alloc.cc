#include "alloc/csv.h"
#include "alloc/plan_memory.h"
#include "alloc/search.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/source.h"
#include "measure/timing.h"
#include "report/memory_plot.h"
#include "report/memory_text.h"

#include <chrono>

namespace hone::cli {
namespace {

Result<MemoryCsv> load_table(const std::string& path) {
  if (path == "-") return parse_memory_csv(HONE_TRY(read_stdin()), "<stdin>");
  return parse_memory_csv(HONE_TRY(read_file(path, kMaxMemoryCsvBytes)), path);
}

// One at most is the standard output.
Status check_standard_output(const Arguments& arguments) {
  std::string_view to_stdout;
  for (std::string_view option : {"output", "plot", "json"}) {
    if (arguments.text(option) != "-") continue;
    if (!to_stdout.empty())
      return usage_error("--{} and --{} both write to the standard output", to_stdout, option)
          .with_hint("-o FILE writes the table to a file");
    to_stdout = option;
  }
  return {};
}

Result<std::vector<int64_t>> capacities(const std::string& text) {
  std::vector<int64_t> capacities;
  if (text.empty()) return capacities;
  for (std::string_view word : split(text, ',')) {
    const Result<int64_t> capacity = parse_int(word);
    if (!capacity.ok() || *capacity < 0)
      return usage_error("--capacity: '{}' is not a number of bytes", excerpt(word));
    capacities.push_back(*capacity);
  }
  if (capacities.size() > kMaxMemorySpaces)
    return usage_error("--capacity: {} numbers, of at most {} spaces", capacities.size(),
                       kMaxMemorySpaces);
  return capacities;
}

// Tells of better placements, but not of each where many follow one another.
class Teller {
 public:
  Teller(Progress& progress, uint32_t spaces) : progress_(&progress), spaces_(spaces) {
    progress_->start(0, "better answers");
  }

  void operator()(uint32_t space, const MemoryBounds& bounds) {
    progress_->advance();
    const Clock::time_point now = Clock::now();
    if (now < due_) return;
    due_ = now + std::chrono::milliseconds(200);
    const std::string where = spaces_ > 1 ? fmt::format("space {}: ", space) : "";
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    progress_->note(fmt::format("{}height {}, bound {}, after {}", where, bounds.height,
                                bounds.bound, format_seconds(seconds)));
  }

 private:
  using Clock = std::chrono::steady_clock;
  Progress* progress_;
  uint32_t spaces_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point due_ = begin_;
};

Status write_output(const std::string& path, const std::string& content, Console& console) {
  return path.empty() ? Status() : write_text(path, content, console);
}

bool is_found(const MemoryCsv& csv, const MemoryPlan& plan) {
  return plan.verdict != MemoryVerdict::infeasible &&
         plan.offsets.size() == csv.problem.buffers.size();
}

Status save(const MemoryCsv& csv, const MemoryPlan& plan, double seconds,
            const Arguments& arguments, Console& console) {
  if (arguments.given("json"))
    HONE_TRY(write_output(arguments.text("json"), memory_json(csv.problem, plan, seconds, csv.ids),
                          console));
  if (!is_found(csv, plan)) return {};
  HONE_TRY(write_output(arguments.text("output"), print_memory_csv(csv, plan.offsets), console));
  if (!arguments.given("plot")) return {};
  return write_output(arguments.text("plot"), plot_memory(csv.problem, plan.offsets, csv.ids),
                      console);
}

// Neither placed nor proved, and nobody stopped it: then the time was over, or there are too many
// buffers.
Error without_answer(bool is_found, bool is_late, const std::string& known) {
  const std::string_view saved =
      is_found ? "the best placement so far is saved" : "there is no placement to save";
  if (!is_late)
    return over_limit(
               "too many buffers for the complete search, which takes at most {} of a space, "
               "without aliases: {}",
               kMaxSearchedBlocks, known)
        .with_hint(std::string(saved));
  return over_limit("the deadline passed before the answer was known: {}", known)
      .with_hint(fmt::format("{}; a longer --deadline may find {}", saved,
                             is_found ? "a better one" : "a placement"));
}

}  // namespace

Status cmd_alloc(const Arguments& arguments, Console& console) {
  HONE_TRY(check_standard_output(arguments));
  const std::vector<int64_t> capacity = HONE_TRY(capacities(arguments.text("capacity")));
  MemoryCsv csv = HONE_TRY(load_table(arguments.text("FILE")));
  csv.problem.capacity = capacity;
  HONE_TRY(check_each_alone(csv));

  MemoryOptions options;
  options.minimize = arguments.given("minimize") || !arguments.given("capacity");
  options.seconds = arguments.real("deadline");
  options.cancel = &console.cancel();
  for (const MemoryTechnique& technique : kMemoryTechniques)
    if (arguments.given(fmt::format("no-{}", technique.name)))
      options.techniques.*technique.flag = false;
  const std::unique_ptr<Progress> progress = console.progress();
  options.better = Teller(*progress, space_count(csv.problem));
  const Console::Keeping keeping(console);
  MemoryPlan plan;
  const double seconds = HONE_TRY(measure_once([&]() -> Status {
    plan = HONE_TRY(plan_memory(csv.problem, options));
    return {};
  }));
  progress->finish();

  HONE_TRY(save(csv, plan, seconds, arguments, console));
  if (plan.verdict == MemoryVerdict::infeasible)
    return check_failed("{}", witness_text(csv.problem, plan, csv.ids));
  const std::vector<std::string> lines = memory_lines(csv.problem, plan);
  for (const std::string& line : lines) console.say(line);
  console.note("{} nodes, {} backtracks, {} restarts in {}", plan.counts.nodes,
               plan.counts.backtracks, plan.counts.restarts, format_seconds(seconds));
  if (plan.verdict == MemoryVerdict::placed) return {};
  HONE_TRY(console.cancel().check());
  return without_answer(is_found(csv, plan), options.seconds > 0 && seconds >= options.seconds,
                        join(lines, "; "));
}

}  // namespace hone::cli
