#include <algorithm>
#include <atomic>
#include <filesystem>
#include <numeric>
#include <thread>

#include "base/file.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "oracle/case_process.h"
#include "oracle/decision_counts.h"
#include "oracle/differential.h"
#include "oracle/reduce.h"

namespace hone::cli {
namespace {

constexpr int64_t kSeedsPerProcess = 10;
constexpr double kSecondsPerSeed = 60;  // at most, on average

Isa highest_isa(const Arguments& arguments) {
  return arguments.given("isa") ? *isa_from_name(arguments.text("isa")) : Isa::avx512;
}

Derives derives(const Arguments& arguments) {
  return arguments.given("derived") ? Derives::always : Derives::sometimes;
}

DifferentialCase case_of(uint64_t seed, const Target& host, const Arguments& arguments) {
  return random_case(seed, host, highest_isa(arguments), derives(arguments));
}

struct Failure {
  uint64_t seed;
  Verdict verdict;
  std::string reason;
};

struct Tally {
  explicit Tally(int64_t cores) : decisions(cores) {}

  std::array<int64_t, std::size(kVerdicts)> verdicts = {};
  DecisionCounts decisions;
  std::vector<Failure> failures;

  void add(uint64_t seed, Verdict verdict, std::string reason) {
    ++verdicts[static_cast<size_t>(verdict)];
    if (is_failure(verdict)) failures.push_back({seed, verdict, std::move(reason)});
  }
  int64_t cases() const { return std::accumulate(verdicts.begin(), verdicts.end(), int64_t{0}); }
  int64_t failed() const { return std::ssize(failures); }
};

// The lines of a child: "begin SEED", "end VERDICT REASON", and at its end "count TIMES ROW", a row
// being "DECISION\tVALUE".
class ChildReport {
 public:
  explicit ChildReport(Tally& tally) : tally_(tally) {}

  void read(std::string_view line) {
    if (consume_prefix(line, "begin ")) {
      const Result<int64_t> seed = parse_int(line);
      if (seed.ok()) open_ = static_cast<uint64_t>(*seed);
    } else if (consume_prefix(line, "end ")) {
      const std::string_view word = line.substr(0, line.find(' '));
      line.remove_prefix(std::min(line.size(), word.size() + 1));
      for (Verdict verdict : kVerdicts)
        if (open_ && name(verdict) == word)
          tally_.add(*open_, verdict, unescape(line).ok() ? *unescape(line) : std::string(line));
      open_.reset();
    } else if (consume_prefix(line, "count ")) {
      const std::vector<std::string_view> cells = split(line, '\t');
      if (cells.size() == 3 && parse_int(cells[2]).ok())
        tally_.decisions.add(cells[0], cells[1], *parse_int(cells[2]));
    }
  }
  std::optional<uint64_t> open() const { return open_; }  // a seed that did not end

 private:
  Tally& tally_;
  std::optional<uint64_t> open_;
};

// The end of a process, and its seed, if it had come to one.
Error limit_of(Error limit, std::optional<uint64_t> seed) {
  if (seed) limit = std::move(limit).about(fmt::format("seed {}", *seed));
  return std::move(limit).with_hint("cases need more memory or threads than the system gives");
}

// Seeds in processes of their own, a process for some seeds; one that ends early is followed by
// another that goes on behind the seed at which it ended.
Status run_seeds(uint64_t first, uint64_t last, const Arguments& arguments, Tally& tally,
                 std::mutex& mutex, Console& console, Progress& progress) {
  ProcessLimits limits;
  limits.output_bytes = int64_t{64} << 20;
  while (first < last && !console.cancel().cancelled()) {
    limits.wall_seconds = kSecondsPerSeed * static_cast<double>(last - first);
    std::vector<std::string> words = {"fuzz-cases",
                                      "--seed",
                                      fmt::format("{}", first),
                                      "--count",
                                      fmt::format("{}", last - first),
                                      "--isa",
                                      std::string(name(highest_isa(arguments)))};
    if (derives(arguments) == Derives::always) words.emplace_back("--derived");
    const ProcessResult process =
        HONE_TRY(run_process(kThisProgram, words, limits, &console.cancel()));
    std::lock_guard lock(mutex);
    const size_t known = tally.failures.size();
    ChildReport report(tally);
    for (std::string_view line : split_lines(process.out)) report.read(line);
    Status limits = check_limits(process);
    if (limits.ok() && !report.open() && process.exit_code != 0)
      return fault("the process for some cases failed: {}", process.err);
    const uint64_t next = report.open() ? *report.open() + 1 : last;
    if (limits.ok() && report.open())
      tally.add(*report.open(), Verdict::crashed, how_it_ended(process));
    for (const Failure& failure : std::span(tally.failures).subspan(known))
      console.note("seed {}: {}: {}", failure.seed, name(failure.verdict), failure.reason);
    if (!limits.ok()) return limit_of(std::move(limits).error(), report.open());
    progress.advance(static_cast<int64_t>(next - first));
    first = next;
  }
  return {};
}

Status run_all(uint64_t first, uint64_t count, const Arguments& arguments, Tally& tally,
               Console& console) {
  const std::unique_ptr<Progress> progress = console.progress();
  const auto pieces = static_cast<int64_t>((count + kSeedsPerProcess - 1) / kSeedsPerProcess);
  const int64_t cores = std::max(1U, std::thread::hardware_concurrency());
  const int64_t jobs = arguments.given("jobs") ? arguments.integer("jobs") : cores;
  ThreadPool pool(static_cast<int>(std::min(jobs, pieces)));
  std::mutex mutex;
  Status state;
  std::atomic<bool> has_failed = false;
  progress->start(static_cast<int64_t>(count), "cases");
  pool.parallel_for(0, pieces, 1, [&](int64_t begin, int64_t) {
    if (has_failed) return;
    const uint64_t from = static_cast<uint64_t>(begin) * kSeedsPerProcess;
    const uint64_t to = std::min(count, from + kSeedsPerProcess);
    Status done = run_seeds(first + from, first + to, arguments, tally, mutex, console, *progress);
    std::lock_guard lock(mutex);
    if (done.ok() || !state.ok()) return;
    state = std::move(done);
    has_failed = true;
  });
  progress->finish();
  HONE_TRY(console.cancel().check());
  return state;
}

Status save_failure(const Failure& failure, const Target& host, const Arguments& arguments,
                    Console& console) {
  const std::filesystem::path folder = arguments.text("save");
  HONE_TRY(make_folders(folder));
  const auto path = [&](std::string_view suffix) {
    return (folder / fmt::format("{}{}.case", failure.seed, suffix)).string();
  };
  const DifferentialCase one = case_of(failure.seed, host, arguments);
  HONE_TRY(write_file_atomic(path(""), print(one)));
  console.note("wrote {}", path(""));
  if (arguments.given("no-reduce")) return {};
  const CaseProcess process({kThisProgram, {"reduce-case"}}, arguments.real("time-limit"),
                            console.cancel());
  const DifferentialCase reduced =
      reduce(one, failure.verdict, host,
             [&](const DifferentialCase& smaller) { return process.verdict(smaller); });
  HONE_TRY(console.cancel().check());
  HONE_TRY(write_file_atomic(path(".reduced"), print(reduced)));
  console.note("wrote {}", path(".reduced"));
  return {};
}

Status check_counts(const DecisionCounts& decisions, int64_t least) {
  for (const DecisionCounts::Row& row : decisions.rows())
    if (row.times < least)
      return check_failed("{} = {} came up {} times, fewer than {} times", row.decision, row.value,
                          row.times, least);
  return {};
}

}  // namespace

// Seeds are numbers of the command line, so the last of them is, too.
Status check_last_seed(const Arguments& arguments) {
  const int64_t seed = arguments.integer("seed"), count = arguments.integer("count");
  if (count - 1 <= INT64_MAX - seed) return {};
  return usage_error("--seed {} --count {}: the last seed is above {}", seed, count, INT64_MAX);
}

Status cmd_fuzz(const Arguments& arguments, Console& console) {
  HONE_TRY(check_last_seed(arguments));
  const Target host = HONE_TRY(host_target());
  Tally tally(host.cores);
  // Who interrupts it sees what is known until then; so does who has too little memory.
  const Console::Keeping keeping(console);
  const Status ended =
      run_all(static_cast<uint64_t>(arguments.integer("seed")),
              static_cast<uint64_t>(arguments.integer("count")), arguments, tally, console);
  const bool is_cut = !ended.ok() && (ended.error().code() == ErrorCode::interrupted ||
                                      ended.error().code() == ErrorCode::limit);
  if (!ended.ok() && !is_cut) return ended;
  console.write(tally.decisions.to_string());
  std::vector<std::string> counts;
  for (Verdict verdict : kVerdicts)
    counts.push_back(
        fmt::format("{} {}", tally.verdicts[static_cast<size_t>(verdict)], name(verdict)));
  const std::string of = ended.ok() ? "" : fmt::format(" of {}", arguments.integer("count"));
  console.print("\n{}{} cases: {}\n", tally.cases(), of, join(counts, ", "));
  HONE_TRY(ended);
  std::ranges::sort(tally.failures, {}, &Failure::seed);
  for (const Failure& failure : tally.failures)
    HONE_TRY(save_failure(failure, host, arguments, console));
  if (tally.failed() > 0)
    return check_failed("{} of {} cases failed", tally.failed(), arguments.integer("count"));
  return check_counts(tally.decisions, arguments.integer("at-least"));
}

Status cmd_fuzz_cases(const Arguments& arguments, Console& console) {
  HONE_TRY(check_last_seed(arguments));
  const Target host = HONE_TRY(host_target());
  const std::shared_ptr<Team> team = HONE_TRY(Team::create({.threads = host.cores}));
  const auto first = static_cast<uint64_t>(arguments.integer("seed"));
  const auto count = static_cast<uint64_t>(arguments.integer("count"));
  DecisionCounts decisions(host.cores);
  for (uint64_t seed = first; seed - first < count; ++seed) {
    // The next case may be the last one of this process.
    console.print("begin {}\n", seed);
    HONE_TRY(console.flush());
    const DifferentialOutcome outcome = run_case(case_of(seed, host, arguments), host, team);
    if (outcome.plan) decisions.add(*outcome.plan);
    console.print("end {} {}\n", name(outcome.verdict), escape(outcome.reason));
  }
  for (const DecisionCounts::Row& row : decisions.rows())
    console.print("count {}\t{}\t{}\n", row.decision, row.value, row.times);
  return {};
}

}  // namespace hone::cli
