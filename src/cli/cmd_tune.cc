#include "base/file.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/budget.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/log.h"
#include "cli/native.h"
#include "cli/source.h"
#include "report/tune_text.h"
#include "tune/tuner.h"

namespace hone::cli {
namespace {

Status take_only(std::string_view only, TuneOptions& options) {
  if (only.empty()) return {};
  if (only != "shapes" && only != "threads" && only != "schedules")
    return usage_error("--only {}: there are shapes, threads and schedules", only);
  options.tries_shapes = only == "shapes";
  options.tries_threads = only == "threads";
  options.tries_schedules = only == "schedules";
  return {};
}

}  // namespace

Status cmd_tune(const Arguments& arguments, Console& console) {
  TuneOptions options;
  options.seconds = HONE_TRY(parse_budget(arguments.text("budget")));
  options.search = arguments.text("search");
  options.seed = static_cast<uint64_t>(arguments.integer("seed"));
  HONE_TRY(find_search(options.search));
  HONE_TRY(take_only(arguments.text("only"), options));
  const std::string output = arguments.text("output");
  const std::string json = arguments.text("json");
  for (const std::string& file : {output, json}) HONE_TRY(check_writable(file));

  const NativeOptions native = HONE_TRY(native_options(arguments, console));
  HONE_TRY(check_runs_here(native.target, Console::labels()));
  const Source source = HONE_TRY(given_source(arguments.text("MODEL"), arguments, console));
  const Graph* const graph = single_graph(source.model);
  if (graph == nullptr) return no_single_graph(source.model, "hone tune");
  if (!graph->symbols().empty())
    return usage_error("how long it takes depends on the open sizes")
        .with_hint("--dim NAME=N and --shape NAME=DIMS choose them");
  const std::unique_ptr<Log> log = HONE_TRY(wanted_log(arguments, console));

  options.threads = native.threads.value_or(native.target.cores);
  options.prepare = native.prepare;
  options.heuristics = native.heuristics;
  options.cost = native.cost;
  options.cache = native.cache.get();
  options.log = log.get();
  options.version = HONE_VERSION;
  options.cancel = &console.cancel();
  const std::unique_ptr<Progress> progress = console.progress();
  options.progress = progress.get();
  options.told = [&](std::string_view line) { progress->note(line); };
  const Tuned tuned = HONE_TRY(tune(*graph, native.target, options));

  if (output == "-")
    console.write(print(tuned.plan));
  else if (!output.empty())
    HONE_TRY(write_file_atomic(output, print(tuned.plan)));
  if (json == "-")
    console.write(tune_json(tuned));
  else if (!json.empty())
    HONE_TRY(write_file_atomic(json, tune_json(tuned)));
  if (output != "-" && json != "-") console.write(tune_text(tuned));
  if (tuned.unwritten) return not_kept(*tuned.unwritten, "-o FILE keeps the plan");
  return tuned.was_cancelled ? console.cancel().check() : Status();
}

}  // namespace hone::cli
