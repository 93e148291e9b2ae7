#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/budget.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/devices.h"
#include "cli/load.h"
#include "cli/log.h"
#include "cli/memory_limit.h"
#include "cli/native.h"
#include "cli/quantizing.h"
#include "cli/source.h"
#include "report/load_text.h"
#include "report/tune_text.h"
#include "runtime/cuda/device.h"
#include "session/memory.h"
#include "tune/tuner.h"

namespace hone::cli {
namespace {

void take(const NativeOptions& native, TuneOptions& options) {
  options.threads = native.threads.value_or(native.target.cores);
  options.prepare = native.prepare;
  options.heuristics = native.heuristics;
  options.cost = native.cost;
  options.find_rewrites = native.find_rewrites;
  options.cache = native.cache.get();
  options.device = native.device;
  options.version = HONE_VERSION;
}

// Bytes for what a run computes on the way.
Result<int64_t> memory_for(const Graph& graph, const NativeOptions& native,
                           const Arguments& arguments, Console& console) {
  const int64_t left =
      HONE_TRY(memory_left(graph, {}, Engine::native, limited_face(arguments, console))).native;
  if (native.device == nullptr) return left;
  return std::min(left, HONE_TRY(native.device->free_bytes()));
}

// The graphs whose sizes are numbers, by their places in the model.
Result<std::vector<size_t>> graphs_to_tune(const GivenGraphs& given, Console& console) {
  std::vector<size_t> closed;
  for (size_t i = 0; i < given.graphs.size(); ++i)
    if (given.graphs[i]->symbols().empty()) closed.push_back(i);
  if (closed.empty())
    return usage_error("the time of a run depends on the open sizes")
        .with_hint("--dim NAME=N and --shape NAME=DIMS choose them");
  if (closed.size() < given.graphs.size())
    console.note("left out: {} of {} segments, whose sizes are open",
                 given.graphs.size() - closed.size(), given.graphs.size());
  return closed;
}

Status write_out(const std::string& file, const std::string& text, Console& console) {
  if (file == "-") console.write(text);
  return file.empty() || file == "-" ? Status() : write_file_atomic(file, text);
}

}  // namespace

Status cmd_tune(const Arguments& arguments, Console& console) {
  const double seconds = HONE_TRY(parse_budget(arguments.text("budget")));
  TuneOptions options;
  options.search = arguments.text("search");
  options.seed = static_cast<uint64_t>(arguments.integer("seed"));
  HONE_TRY(find_search(options.search));
  if (arguments.given("only")) HONE_TRY(try_only(options, arguments.text("only")));
  const std::string output = arguments.text("output");
  const std::string json = arguments.text("json");

  HONE_TRY(given_devices(arguments));
  NativeOptions native =
      HONE_TRY(native_options(arguments, console, DefaultCache::user, LogPlans::left));
  // Rewrites are measured before they are kept.
  if (native.find_rewrites) HONE_TRY(take_rewrites(native, 0, arguments, console));
  HONE_TRY(check_runs_here(native, Console::labels()));
  const Source read = HONE_TRY(given_source(arguments.text("MODEL"), arguments, console));
  const std::optional<Lowered> lowered =
      HONE_TRY(lowered_source(read, arguments, arguments.integer("seed"), native, console));
  const Source& source = lowered ? lowered->source : read;
  const GivenGraphs given = HONE_TRY(given_graphs(source, native, console));
  const std::vector<size_t> closed = HONE_TRY(graphs_to_tune(given, console));
  WantedLog log = HONE_TRY(wanted_log(arguments, console));
  if (const std::string loaded = load_warning(machine_load(), native.target.cores); !loaded.empty())
    console.note("{}: what is faster than the default plan may not be known", loaded);

  take(native, options);
  // How often each segment runs, only a run tells: each has an equal part.
  options.seconds = seconds / static_cast<double>(closed.size());
  options.log = log.log.get();
  options.cancel = &console.cancel();
  const std::unique_ptr<Progress> progress = console.progress();
  options.progress = progress.get();
  options.told = [&](std::string_view line) { progress->note(line); };

  std::vector<TunedGraph> tuned;
  std::string plans, text;
  const Console::Keeping keeping(console);
  for (size_t i : closed) {
    const Graph& graph = *given.graphs[i];
    options.memory_limit = HONE_TRY(memory_for(graph, native, arguments, console));
    Result<Tuned> one = tune(graph, native.target, options);
    // Before there was a default plan to keep: the segments before it have theirs.
    if (!one.ok() && one.error().code() == ErrorCode::interrupted && !tuned.empty()) break;
    if (!one.ok()) return std::move(one).error();
    plans += given.heading(i) + print(one->plan);
    text += given.heading(i) + tune_text(*one);
    tuned.push_back({escape(graph.name()), *std::move(one)});
    if (tuned.back().tuned.was_cancelled) break;
  }
  HONE_TRY(write_out(output, plans, console));
  HONE_TRY(write_out(json, tune_json(tuned), console));
  if (output != "-" && json != "-") console.write(text);
  for (const TunedGraph& one : tuned)
    if (one.tuned.unwritten) tell_unwritten(*one.tuned.unwritten, log, console);
  HONE_TRY(console.cancel().check());
  if (log.unwritten && output.empty())
    return Error(*log.unwritten).about("the plan is not kept").with_hint("-o FILE keeps it");
  return {};
}

}  // namespace hone::cli
