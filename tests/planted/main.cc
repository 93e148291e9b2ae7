#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "base/planted.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "oracle/differential.h"
#include "oracle/reduce.h"
#include "oracle/rewritten_case.h"
#include "tests/front/shape_files.h"
#include "tests/planted/messages.h"

// planted [FAULT...]: turns on one fault after another, runs random cases until one fails, and
// prints how long that took. A fault of the Python package is for the package's tests. Fails if
// more than two are not found within ten minutes of CPU time. planted --fault NAME: runs cases with
// that fault in this process until one fails. planted --reduce NAME: the same, and prints the case
// after it was reduced.

namespace hone {

Fault planted = Fault::none;

namespace {

constexpr double kSeconds = 600;  // of CPU time
constexpr int kMaxMissed = 2;

// Where a fault is: in what makes code of plans, in passes, in what applies rules, or in shapes
// that ONNX files compute. Others are in messages between devices, in timelines, or in Python.
enum class Where : uint8_t { code, pass, rules, shapes, messages, timeline, python };

struct Planted {
  Fault fault;
  std::string_view name;
  Where where = Where::code;
};
constexpr Planted kPlanted[] = {
#define HONE_FAULT(name, doc) {Fault::name, #name},
#define HONE_PASS_FAULT(name, doc) {Fault::name, #name, Where::pass},
#define HONE_RULE_FAULT(name, doc) {Fault::name, #name, Where::rules},
#define HONE_SHAPE_FAULT(name, doc) {Fault::name, #name, Where::shapes},
#define HONE_MESSAGE_FAULT(name, doc) {Fault::name, #name, Where::messages},
#define HONE_TIMELINE_FAULT(name, doc) {Fault::name, #name, Where::timeline},
#define HONE_PYTHON_FAULT(name, doc) {Fault::name, #name, Where::python},
#include "base/planted.def"
};

const Planted* find(std::string_view name) {
  for (const Planted& one : kPlanted)
    if (one.name == name) return &one;
  return nullptr;
}

DifferentialCase reduced(const DifferentialCase& one, Verdict verdict, const Target& host,
                         const std::shared_ptr<Team>& team) {
  return reduce(one, verdict, host, [&](const DifferentialCase& smaller) {
    return run_case(smaller, host, team).verdict;
  });
}

void print_seed(uint64_t seed) {
  const double seconds = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  fmt::print("seed {:6}  {:6.1f} s\n", seed, seconds);
  std::fflush(stdout);  // before what may end this process
}

int run_files(const Planted& wrong) {
  planted = wrong.fault;
  for (uint64_t seed = 0;; ++seed) {
    print_seed(seed);
    const shape_files::ShapeFile file = shape_files::random_file(seed);
    for (const auto& [outcome, reason] : shape_files::judged(file)) {
      if (outcome != shape_files::Outcome::wrong) continue;
      fmt::print("wrong: {}\n", escape(reason));
      return 0;
    }
  }
}

// Cases without a graph.
int run_texts(const Planted& wrong, std::string (*failed)(uint64_t seed)) {
  planted = wrong.fault;
  for (uint64_t seed = 0;; ++seed) {
    print_seed(seed);
    const std::string reason = failed(seed);
    if (reason.empty()) continue;
    fmt::print("wrong: {}\n", escape(reason));
    return 0;
  }
}

int run_cases(const Planted& wrong, bool reduces) {
  if (wrong.where == Where::shapes) return run_files(wrong);
  if (wrong.where == Where::messages) return run_texts(wrong, planted_cases::failed_messages);
  if (wrong.where == Where::timeline) return run_texts(wrong, planted_cases::failed_timeline);
  const Target host = host_target().value();
  const std::shared_ptr<Team> team = Team::create({.threads = host.cores}).value();
  for (uint64_t seed = 0;; ++seed) {
    // A plan is for the graph that passes and rules give; otherwise it is made without the fault.
    planted = wrong.where == Where::code ? Fault::none : wrong.fault;
    const DifferentialCase one = wrong.where == Where::rules
                                     ? random_rewritten_case(seed, host, Isa::avx512)
                                     : random_case(seed, host, Isa::avx512);
    print_seed(seed);
    planted = wrong.fault;
    const DifferentialOutcome outcome = run_case(one, host, team);
    if (!is_failure(outcome.verdict)) continue;
    fmt::print("{}: {}\n", name(outcome.verdict), escape(outcome.reason));
    if (reduces) fmt::print("{}", print(reduced(one, outcome.verdict, host, team)));
    return 0;
  }
}

// True if the tests of the Python package fail.
bool look_for_in_python(const Planted& one) {
  const Result<ProcessResult> process =
      run_process("/bin/bash", {HONE_PYTHON_TEST, HONE_BUILD, std::string(one.name)},
                  {.cpu_seconds = kSeconds, .output_bytes = int64_t{1} << 26});
  if (!process.ok()) {
    fmt::print("{}\n", process.error().to_string());
    return false;
  }
  const std::vector<std::string_view> said = split_lines(process->err);
  const std::string_view last = said.empty() ? "failed" : said.back();
  const bool is_skipped = process->signal == 0 && process->exit_code == 77;
  const bool is_found = !is_skipped && (process->signal != 0 || process->exit_code != 0);
  fmt::print("{:21} tests/python      {:6.1f} s  {}\n", one.name, process->seconds,
             is_skipped             ? "there is no Python package"
             : !is_found            ? "not found"
             : process->signal != 0 ? "crashed: " + signal_name(process->signal)
                                    : std::string(last.substr(0, 60)));
  std::fflush(stdout);
  return is_found;
}

// True if it was found.
bool look_for(const Planted& one) {
  if (one.where == Where::python) return look_for_in_python(one);
  const Result<ProcessResult> process =
      run_process("/proc/self/exe", {"--fault", std::string(one.name)},
                  {.cpu_seconds = kSeconds, .output_bytes = int64_t{1} << 26});
  if (!process.ok()) {
    fmt::print("{}\n", process.error().to_string());
    return false;
  }
  std::string_view last_seed, how;
  for (std::string_view line : split_lines(process->out))
    (line.starts_with("seed ") ? last_seed : how) = line;
  std::string found(how.substr(0, 60));
  if (process->timed_out)
    found = "not found";
  else if (process->signal != 0)
    found = "crashed: " + signal_name(process->signal);
  fmt::print("{:21} {}  {}\n", one.name, last_seed, found);
  std::fflush(stdout);
  return !process->timed_out;
}

int look_for_all(std::span<const std::string> names) {
  std::vector<const Planted*> wanted;
  for (const std::string& name : names) {
    wanted.push_back(find(name));
    if (wanted.back() != nullptr) continue;
    fmt::print(stderr, "there is no fault '{}'\n", name);
    return 2;
  }
  if (names.empty())
    for (const Planted& one : kPlanted) wanted.push_back(&one);
  int missed = 0;
  for (const Planted* one : wanted) missed += look_for(*one) ? 0 : 1;
  fmt::print("{} of {} found\n", std::ssize(wanted) - missed, wanted.size());
  return missed > (names.empty() ? kMaxMissed : 0) ? 1 : 0;
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool is_child = words.size() == 2 && (words[0] == "--fault" || words[0] == "--reduce");
  if (is_child && hone::find(words[1]) != nullptr)
    return hone::run_cases(*hone::find(words[1]), words[0] == "--reduce");
  return hone::look_for_all(words);
}
