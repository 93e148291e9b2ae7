#include <fnmatch.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <thread>

#include "base/file.h"
#include "base/subprocess.h"
#include "base/team.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/devices.h"
#include "cli/gpu.h"
#include "cli/native.h"
#include "cli/outputs.h"
#include "cli/source.h"
#include "oracle/case_process.h"
#include "oracle/conformance.h"
#include "report/conformance_text.h"
#include "session/echo.h"

namespace hone::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMiB = int64_t{1} << 20;

CaseMode mode_of(std::string_view text) {
  for (CaseMode mode : kCaseModes)
    if (name(mode) == text) return mode;
  return CaseMode::plain;
}

Result<CaseMode> mode_of(const Arguments& arguments) {
  if (arguments.given("constants") && arguments.given("symbolic"))
    return usage_error("--constants and --symbolic do not go together");
  if (arguments.given("constants")) return CaseMode::constants;
  return arguments.given("symbolic") ? CaseMode::symbolic : CaseMode::plain;
}

Result<std::vector<ConformanceCase>> chosen_cases(const Arguments& arguments) {
  const std::vector<std::string> texts = arguments.list("DIR");
  const std::vector<fs::path> folders(texts.begin(), texts.end());
  std::vector<ConformanceCase> cases = HONE_TRY(find_conformance_cases(folders));
  if (cases.empty())
    return bad_input("there are no test cases in {}", name_list(texts))
        .with_hint(
            "a case is a folder with model.onnx and test_data_set_0/output_0.pb, or with "
            "model.onnx and output_0.npy, or a text of StableHLO with checks");
  const size_t all = cases.size();
  if (!arguments.given("filter")) return cases;
  const std::string pattern = arguments.text("filter");
  std::erase_if(cases, [&](const ConformanceCase& one) {
    return fnmatch(pattern.c_str(), one.name.c_str(), 0) != 0;
  });
  if (cases.empty()) return bad_input("none of the {} cases matches '{}'", all, excerpt(pattern));
  return cases;
}

// A device runs compiled code, unless the reference is asked for.
std::string backend_of(const Arguments& arguments) {
  const bool is_left_open = !arguments.given("backend");
  return is_left_open && arguments.given("device") ? "native" : arguments.text("backend");
}

CaseOutcome crash(std::string reason) {
  CaseOutcome outcome;
  outcome.reason = std::move(reason);
  return outcome;
}

// A process of its own for each case: whatever happens there, the run goes on.
class Runner {
 public:
  Runner(const Arguments& arguments, CaseMode mode, bool is_on_gpu, const CancelToken& cancel)
      : cancel_(cancel) {
    limits_.wall_seconds = arguments.real("time-limit");
    // The memory that a GPU's driver reserves counts as the process's.
    if (!is_on_gpu) limits_.memory_bytes = arguments.integer("memory-limit") * kMiB;
    options_ = {"--mode", std::string(name(mode))};
    options_.insert(options_.end(), {"--backend", backend_of(arguments), "--memory-limit",
                                     arguments.text("memory-limit")});
    for (const char* option : {"rtol", "atol", "isa", "plan-seed", "cache", "device"}) {
      if (!arguments.given(option)) continue;
      options_.push_back(fmt::format("--{}", option));
      options_.push_back(arguments.text(option));
    }
  }

  // None: cancelled.
  CaseOutcome run(const ConformanceCase& one) {
    std::vector<std::string> words = {"conformance-case"};
    words.insert(words.end(), options_.begin(), options_.end());
    if (!one.program.empty()) words.insert(words.end(), {"--program", one.program});
    words.insert(words.end(), {"--", one.folder.string()});
    const Result<ProcessResult> process = run_process(kThisProgram, words, limits_, &cancel_);
    if (!process.ok()) return crash(process.error().what());
    CaseOutcome outcome = outcome_of(*process);
    outcome.seconds = process->seconds;
    outcome.max_rss = process->max_rss;
    return outcome;
  }

  // How many had too little memory or too few threads.
  int64_t limited() const { return limited_; }

 private:
  CaseOutcome outcome_of(const ProcessResult& process) {
    if (process.timed_out)
      return crash(fmt::format("no result within {}", format_seconds(limits_.wall_seconds)));
    if (process.signal != 0) return crash(fmt::format("killed by {}", signal_name(process.signal)));
    if (const Status limits = check_limits(process); !limits.ok()) {
      ++limited_;
      return crash(limits.error().what());
    }
    Result<CaseOutcome> outcome = parse_outcome(process.out);
    if (process.exit_code == 0 && outcome.ok()) return std::move(*outcome);
    const std::vector<std::string_view> talk = split_lines(process.err);
    return crash(fmt::format("exit code {}: {}", process.exit_code,
                             talk.empty() ? "it said nothing" : excerpt(talk[0])));
  }

  const CancelToken& cancel_;
  std::atomic<int64_t> limited_ = 0;
  ProcessLimits limits_;
  std::vector<std::string> options_;
};

Result<ConformanceReport> run_cases(std::vector<ConformanceCase> cases, const Arguments& arguments,
                                    bool is_on_gpu, Console& console, int64_t& limited) {
  ConformanceReport report;
  report.mode = HONE_TRY(mode_of(arguments));
  report.tolerance = tolerance_of(arguments);
  for (ConformanceCase& one : cases) report.rows.push_back({std::move(one), {}});
  Runner runner(arguments, report.mode, is_on_gpu, console.cancel());
  const std::unique_ptr<Progress> progress = console.progress();
  const int64_t all = static_cast<int64_t>(report.rows.size());
  int64_t jobs = std::max(1U, std::thread::hardware_concurrency());
  if (arguments.given("jobs")) jobs = arguments.integer("jobs");
  ThreadPool pool(static_cast<int>(std::min(jobs, all)));
  progress->start(all, "cases");
  pool.parallel_for(0, all, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && !console.cancel().cancelled(); ++i) {
      ConformanceRow& row = report.rows[static_cast<size_t>(i)];
      row.outcome = runner.run(row.which);
      progress->advance();
    }
  });
  progress->finish();
  HONE_TRY(console.cancel().check());
  limited = runner.limited();
  return report;
}

Status write_report(std::string_view option, const Arguments& arguments, const std::string& text,
                    Console& console) {
  return arguments.given(option) ? write_text(arguments.text(option), text, console) : Status();
}

}  // namespace

Status cmd_conformance(const Arguments& arguments, Console& console) {
  const bool prints_report = arguments.text("json") == "-" || arguments.text("markdown") == "-";
  HONE_TRY(given_devices(arguments));
  // Each case would say that it is not there.
  const std::optional<int> gpu = HONE_TRY(given_gpu(arguments));
  if (gpu) HONE_TRY(open_gpu(*gpu));
  std::vector<ConformanceCase> cases = HONE_TRY(chosen_cases(arguments));
  int64_t limited = 0;
  const ConformanceReport report =
      HONE_TRY(run_cases(std::move(cases), arguments, gpu.has_value(), console, limited));

  if (!prints_report) console.write(conformance_text(report, arguments.given("verbose")));
  HONE_TRY(write_report("json", arguments, conformance_json(report), console));
  HONE_TRY(write_report("markdown", arguments, conformance_markdown(report), console));
  const ClassCounts counts = class_counts(report);
  const int64_t wrong = counts[static_cast<size_t>(CaseClass::wrong)];
  const int64_t crashed = counts[static_cast<size_t>(CaseClass::crashed)];
  if (wrong + crashed == 0) return {};
  if (wrong + crashed == limited)
    return over_limit("{} of {} cases had too little memory or too few threads", limited,
                      report.rows.size())
        .with_hint("--memory-limit gives a case more, --jobs 1 runs one at a time");
  return check_failed("of {} cases {} are wrong and {} crashed", report.rows.size(), wrong,
                      crashed);
}

Status cmd_conformance_case(const Arguments& arguments, Console& console) {
  CaseOptions options;
  options.mode = mode_of(arguments.text("mode"));
  if (arguments.given("program")) options.program = arguments.text("program");
  options.tolerance = tolerance_of(arguments);
  if (const int64_t limit = arguments.integer("memory-limit"); limit > 0)
    options.max_bytes = limit * kMiB;
  NativeOptions native;
  if (arguments.text("backend") == "native") {
    native = HONE_TRY(native_options(arguments, console));
    CompileOptions compile = compile_options(native, nullptr);
    // Threads that the system does not give are no outcome of the case.
    if (!native.target.gpu) compile.team = HONE_TRY(Team::create({.threads = native.target.cores}));
    compile.memory_limit = options.max_bytes;
    options.compile = [&native,
                       compile](const Model& model) -> Result<std::shared_ptr<const Runnable>> {
      return std::shared_ptr<const Runnable>(
          HONE_TRY(NativeModel::make(model, native.target, compile)));
    };
  }
  // The case is the reproducer; the one that main() would save is not needed.
  CaseOutcome outcome;
  try {
    outcome = run_conformance_case(arguments.text("FOLDER"), options);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& fault) {
    outcome = crash(fmt::format("a fault of hone: {}", fault.what()));
  }
  console.write(outcome_line(outcome));
  return {};
}

}  // namespace hone::cli
