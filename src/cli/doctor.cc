#include "cli/doctor.h"

#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "base/text_table.h"
#include "cache/compile_cache.h"
#include "cli/arguments.h"
#include "cli/cache.h"
#include "cli/console.h"
#include "cli/gpu.h"
#include "cli/load.h"
#include "cli/log.h"
#include "cli/prices.h"
#include "cost/analytic.h"
#include "report/load_text.h"
#include "session/compiled.h"
#include "session/rivals.h"
#include "target/levels.h"
#include "tune/judged_log.h"

#include <nlohmann/json.hpp>

namespace hone::cli {
namespace {

namespace fs = std::filesystem;
using State = Finding::State;

constexpr double kPatience = 20;        // seconds that a program may take to say its version
constexpr size_t kJudgedKernels = 100;  // of the log, the latest
constexpr double kGoodRegret = 0.05;

// A small file of the kernel, without blanks at its ends; "": it is not there.
std::string kernel_says(const char* path) {
  const Result<std::string> text = read_file(path, 1 << 16);
  return text.ok() ? std::string(trim(*text)) : "";
}

// ---- The machine --------------------------------------------------------------------------------

Finding cores(const Target& target) {
  const auto processors = static_cast<int64_t>(std::thread::hardware_concurrency());
  std::string text = fmt::format("{}, {} logical processors", target.cores, processors);
  return {.name = "cores", .text = std::move(text)};
}

Finding caches(const Target& target) {
  std::vector<std::string> sizes;
  for (const CacheLevel& cache : target.caches)
    sizes.push_back(cache.cores == 1
                        ? format_bytes(cache.bytes)
                        : fmt::format("{} for {} cores", format_bytes(cache.bytes), cache.cores));
  return {.name = "caches", .text = join(sizes, ", ")};
}

Finding memory(const Target& target) {
  std::string text = format_bytes(target.memory_bytes);
  for (std::string_view line : split_lines(kernel_says("/proc/meminfo"))) {
    if (!consume_prefix(line, "MemAvailable:")) continue;
    const std::vector<std::string_view> words = split_words(line);
    const Result<int64_t> kib = words.empty() ? Result<int64_t>(0) : parse_int(words[0]);
    if (!kib.ok()) continue;
    text += fmt::format(", {} of it free", format_bytes(std::min(*kib << 10, target.memory_bytes)));
  }
  return {.name = "memory", .text = std::move(text)};
}

Finding huge_pages() {
  const std::string text = kernel_says("/sys/kernel/mm/transparent_hugepage/enabled");
  Finding finding = {.name = "huge pages", .text = "this system does not say", .way_out = ""};
  const size_t from = text.find('['), to = text.find(']');
  if (from == std::string::npos || to == std::string::npos || to < from) return finding;
  const std::string chosen = text.substr(from + 1, to - from - 1);
  finding.text = "transparent: " + chosen;
  if (chosen == "always") return finding;
  finding.state = State::note;
  finding.way_out =
      "large models run a little faster after "
      "'echo always > /sys/kernel/mm/transparent_hugepage/enabled', as root";
  return finding;
}

Finding clock() {
  const std::string governor = kernel_says("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (governor.empty()) return {.name = "clock", .text = "of the system's choosing"};
  Finding finding = {.name = "clock", .text = "governor " + excerpt(governor), .way_out = ""};
  if (governor == "performance") return finding;
  finding.state = State::note;
  finding.way_out = "measurements vary less after 'cpupower frequency-set -g performance', as root";
  return finding;
}

Finding load(const Target& target) {
  const double load = machine_load();
  if (load < 0) return {.name = "load", .text = "not known"};
  Finding finding = {.name = "load", .text = fmt::format("{:.1f} in the last minute", load)};
  if (load_warning(load, target.cores).empty()) return finding;
  finding.state = State::note;
  finding.way_out = "other programs work on these cores: measure when they are done";
  return finding;
}

FindingGroup machine(const Target& target) {
  Finding instructions = {.name = "instructions", .text = instructions_text(target.instructions())};
  if (target.isa < Isa::avx2) {
    instructions.state = State::note;
    instructions.way_out = "code for processors with AVX2 takes a quarter of the time";
  }
  return {"machine",
          {{.name = "processor", .text = target.cpu.empty() ? "x86-64" : excerpt(target.cpu)},
           std::move(instructions),
           cores(target),
           caches(target),
           memory(target),
           huge_pages(),
           clock(),
           load(target)}};
}

// ---- hone ---------------------------------------------------------------------------------------

Finding from_error(std::string name, const Error& error, std::string_view otherwise) {
  const std::string where = error.where().empty() ? "" : fmt::format(" ({})", error.where());
  return {.name = std::move(name),
          .text = fmt::format("{}: {}{}", otherwise, error.what(), where),
          .state = State::missing,
          .way_out = error.hint()};
}

// The folder nearest to the path that is there.
fs::path existing(fs::path path) {
  std::error_code failed;
  while (!fs::exists(path, failed) && path.has_parent_path() && path != path.parent_path())
    path = path.parent_path();
  return path;
}

bool may_write(const fs::path& path) { return access(existing(path).c_str(), W_OK) == 0; }

Finding cache(const Arguments& arguments) {
  const Result<std::unique_ptr<CompileCache>> opened = open_cache(arguments);
  if (!opened.ok()) return from_error("cache", opened.error(), "compiled code is not kept");
  int64_t bytes = 0, entries = 0;
  for (const CompileCache::Entry& entry : (*opened)->list()) {
    bytes += entry.bytes;
    ++entries;
  }
  const std::string folder = (*opened)->folder().native();
  if (!may_write(folder))
    return {
        .name = "cache",
        .text = fmt::format("compiled code is not kept: {} cannot be written to", folder),
        .state = State::missing,
        .way_out = fmt::format("'chmod u+w {}', or XDG_CACHE_HOME or --cache name another folder",
                               existing(folder).native())};
  return {.name = "cache",
          .text = fmt::format("{} entries, {} in {}", entries, format_bytes(bytes), folder)};
}

Finding log(const Arguments& arguments) {
  const Result<std::string> path = log_path(arguments);
  if (!path.ok()) return from_error("log", path.error(), "measurements are not kept");
  const Result<std::unique_ptr<Log>> found = find_log(arguments);
  if (!found.ok()) return from_error("log", found.error(), "it cannot be read");
  if (!may_write(*path))
    return {.name = "log",
            .text = fmt::format("measurements are not kept: {} cannot be written to", *path),
            .state = State::missing,
            .way_out = "HONE_LOG or --log name another file"};
  if (*found == nullptr)
    return {.name = "log",
            .text = fmt::format("none yet; {}", *path),
            .state = State::note,
            .way_out = "'hone tune MODEL' looks for a faster plan, and remembers it there"};
  const Result<LogCounts> counts = (*found)->counts();
  if (!counts.ok()) return from_error("log", counts.error(), "it cannot be read");
  return {.name = "log",
          .text = fmt::format("{} records, {} plans in {}", counts->records, counts->plans, *path)};
}

// How good the prices are for what was measured here, and what would better them.
Finding prices_here(const Target& target, const Arguments& arguments) {
  Finding finding = {.name = "prices here",
                     .text = "unknown: no kernel was measured here on one thread",
                     .state = State::note,
                     .way_out =
                         "'hone tune MODEL' and 'hone bench MODEL' measure kernels, by which "
                         "prices are judged"};
  const Result<std::unique_ptr<Log>> log = find_log(arguments);
  if (!log.ok() || *log == nullptr) return finding;
  std::shared_ptr<const Cost> cost = user_prices().cost(target, [](std::string_view) {});
  if (cost == nullptr) cost = std::make_shared<AnalyticCost>(target);
  const Result<LogVerdict> verdict = judge_by_log(**log, target, *cost, kJudgedKernels);
  if (!verdict.ok() || verdict->kernels == 0) return finding;
  const bool is_good = verdict->regret <= kGoodRegret;
  finding.text = fmt::format(
      "the first of {} schedules of {} kernels is {:.0f} % slower than the fastest, tau {:.2f}",
      verdict->schedules, verdict->kernels, 100 * verdict->regret, verdict->tau);
  finding.state = is_good ? State::good : State::note;
  finding.way_out = is_good ? ""
                    : cost->learned() == nullptr
                        ? "'hone train cost --budget 15m' learns a price of this machine"
                        : "'hone train cost' goes on, and 'hone tune MODEL' finds what prices miss";
  return finding;
}

// How well the model knows this processor.
Finding learned_prices(const KnownModel& known) {
  const KernelModel& model = *known.model;
  Finding finding = {.name = "prices", .text = "learned, " + known.place};
  if (!model.knows_processor()) {
    finding.text +=
        ", from other processors: choices of the formula stay where others are not sure";
    finding.state = State::note;
    finding.way_out = "'hone train cost --budget 15m' learns from kernels of this processor";
    return finding;
  }
  finding.text +=
      fmt::format(", from {} kernels of this processor", std::min(model.own, model.kernels.size()));
  if (const RegretBound* bound = model.bound_of(""))
    finding.text += fmt::format("; for nine of ten the first by price is at most {:.0f} % slower",
                                100 * bound->slower[0]);
  return finding;
}

Finding prices(const Target& target) {
  const KnownPrices known = user_prices();
  const Result<std::optional<KnownModel>> model = known.model(target);
  if (model.ok() && *model) return learned_prices(**model);
  if (!model.ok()) return from_error("prices", model.error(), "the learned ones are not used");
  const Result<std::optional<FittedFile>> fitted = known.fitted(target);
  if (fitted.ok() && *fitted) return {.name = "prices", .text = "fitted, " + (*fitted)->file};
  if (!fitted.ok()) return from_error("prices", fitted.error(), "the fitted ones are not used");
  return {.name = "prices",
          .text = "the default ones",
          .state = State::note,
          .way_out =
              "'hone calibrate' fits them to this machine in minutes, and keeps the fit if whole "
              "models are faster by it"};
}

// The finding says whether the user's model of whole plans counts. There is none without a file.
std::optional<Finding> plan_model(const Target& target) {
  const KnownPrices known = user_prices();
  std::shared_ptr<const Cost> cost = known.cost(target, [](std::string_view) {});
  if (cost == nullptr) cost = std::make_shared<AnalyticCost>(target);
  const Result<std::shared_ptr<const PlanModel>> found = known.plans(target, *cost);
  if (!found.ok()) return from_error("plans", found.error(), "their model is not used");
  if (*found == nullptr) return std::nullopt;
  const PlanModel& model = **found;
  const std::string file = known.plans_file(target).value();
  if (cost->learned() == nullptr || !model.gains())
    return Finding{.name = "plans",
                   .text = fmt::format("not ranked by {}: {}", file,
                                       model.gains() ? "there is no learned price beside it"
                                                     : "none of its choices gained"),
                   .state = State::note,
                   .way_out = model.gains() ? "'hone train cost --budget 15m' learns a price"
                                            : "'hone dataset build --task plans' adds programs"};
  return Finding{.name = "plans",
                 .text = fmt::format("ranked by {}, {:.1f} % faster for unseen programs", file,
                                     100 * std::expm1(model.gain))};
}

FindingGroup use(const Target& target, const Arguments& arguments) {
  std::vector<std::string> levels;
  for (const Target& level : levels_of(target))
    levels.push_back(instructions_text(level.instructions()));
  FindingGroup group = {"hone",
                        {{.name = "version", .text = HONE_VERSION},
                         {.name = "levels", .text = join(levels, "; ")},
                         {.name = "threads", .text = fmt::format("{}, one per core", target.cores)},
                         cache(arguments),
                         log(arguments),
                         prices(target),
                         prices_here(target, arguments)}};
  if (const std::optional<Finding> model = plan_model(target)) group.findings.push_back(*model);
  return group;
}

// ---- Programs -----------------------------------------------------------------------------------

// The first line of what a program prints; none: it is not there, or fails.
std::optional<std::string> first_line(const std::vector<std::string>& words, Console& console) {
  const Result<ProcessResult> result =
      run_process("/usr/bin/env", words, {.wall_seconds = kPatience}, &console.cancel());
  if (!result.ok() || result->signal != 0 || result->exit_code != 0) return std::nullopt;
  const std::string_view text = trim(result->out.empty() ? result->err : result->out);
  return excerpt(split(text, '\n')[0]);
}

struct Tool {
  std::string_view name;
  std::vector<std::string> words;
  std::string_view what_for;
  std::string_view way_out;
};

Finding ask(const Tool& tool, Console& console) {
  if (std::optional<std::string> line = first_line(tool.words, console))
    return {.name = std::string(tool.name), .text = *std::move(line)};
  return {.name = std::string(tool.name),
          .text = fmt::format("not found; {}", tool.what_for),
          .state = State::missing,
          .way_out = std::string(tool.way_out)};
}

std::vector<std::string> version_in_python(std::string_view module) {
  return {"python3", "-c",
          fmt::format("import importlib.metadata as m; print(m.version('{}'))", module)};
}

Finding onnx_runtime(Console& console) {
  Finding finding = {.name = "ONNX Runtime", .text = ""};
  const Result<RivalEngine> found = find_rival(Rival::onnxruntime, {}, &console.cancel());
  if (found.ok()) {
    finding.text = found->name();
    return finding;
  }
  finding.text = fmt::format("not found; 'hone bench --vs onnxruntime' compares with it");
  finding.state = State::missing;
  finding.way_out = found.error().hint();
  return finding;
}

Finding perf(Console& console) {
  Finding finding = ask({"perf",
                         {"perf", "--version"},
                         "'perf record hone bench ...' shows instructions of kernels",
                         "apt-get install linux-perf"},
                        console);
  const std::string paranoid = kernel_says("/proc/sys/kernel/perf_event_paranoid");
  const Result<int64_t> level = parse_int(paranoid);
  if (finding.state != State::good || !level.ok() || *level < 2 || geteuid() == 0) return finding;
  finding.state = State::note;
  finding.text += fmt::format(", kernel.perf_event_paranoid {}", *level);
  finding.way_out = "'sysctl kernel.perf_event_paranoid=1' lets users count events, as root";
  return finding;
}

FindingGroup programs(Console& console) {
  const char* const named = std::getenv("CC");
  const std::string compiler = named != nullptr && *named != '\0' ? named : "cc";
  std::vector<std::string> words;
  for (std::string_view word : split_words(compiler)) words.emplace_back(word);
  words.emplace_back("--version");
  FindingGroup group = {"programs", {onnx_runtime(console)}};
  const Tool tools[] = {
      {"PyTorch", version_in_python("torch"), "models are exported with it: torch.onnx.export",
       "pip install torch"},
      {"C compiler", words, "'hone compile --emit library' makes libraries with it",
       "apt-get install gcc; the environment variable CC names another one"},
      {"Graphviz",
       {"dot", "-V"},
       "it draws what 'hone inspect --dot' writes",
       "apt-get install graphviz"}};
  for (const Tool& tool : tools) group.findings.push_back(ask(tool, console));
  group.findings.push_back(perf(console));
  return group;
}

// ---- GPUs ---------------------------------------------------------------------------------------

Finding gpu(const std::shared_ptr<const CudaDriver>& driver, int number) {
  const std::string name = fmt::format("cuda:{}", number);
  const auto device = CudaDevice::open(driver, number);
  if (!device.ok()) return from_error(name, device.error(), "it is not used");
  const Result<int64_t> free = (*device)->free_bytes();
  if (!free.ok()) return from_error(name, free.error(), "it does not work");
  return {.name = name,
          .text = fmt::format("{}, sm_{}, {} SMs, {} of memory, {} of it free",
                              excerpt((*device)->name()), (*device)->capability(), (*device)->sms(),
                              format_bytes((*device)->memory_bytes()), format_bytes(*free))};
}

FindingGroup gpus() {
  const Result<std::shared_ptr<const CudaDriver>> driver = CudaDriver::open(cuda_library());
  if (!driver.ok())
    return {"GPUs",
            {{.name = "driver",
              .text = fmt::format("models run on the CPU: {}", driver.error().what()),
              .state = State::missing,
              .way_out = "with an NVIDIA GPU and its driver, '--device cuda' runs models there"}}};
  FindingGroup group = {"GPUs",
                        {{.name = "driver", .text = cuda_version_text((*driver)->version())}}};
  for (int i = 0; i < (*driver)->devices(); ++i) group.findings.push_back(gpu(*driver, i));
  return group;
}

std::string_view word(State state) {
  switch (state) {
    case State::good: return "";
    case State::note: return "note";
    case State::missing: return "missing";
  }
  return "";
}

}  // namespace

Result<Diagnosis> diagnose(const Arguments& arguments, Console& console) {
  const Target target = HONE_TRY(host_target());
  Diagnosis diagnosis = {machine(target), use(target, arguments), gpus(), programs(console)};
  HONE_TRY(console.cancel().check());
  return diagnosis;
}

std::string diagnosis_text(const Diagnosis& diagnosis, const Console& console) {
  std::string text;
  for (const FindingGroup& group : diagnosis) {
    TextTable table("ll");
    for (const Finding& finding : group.findings) table.add_row({finding.name, finding.text});
    if (!text.empty()) text += "\n";
    text += console.styled(Style::bold, group.name) + "\n" + table.to_string("  ");
  }
  TextTable ways("lll");
  for (const FindingGroup& group : diagnosis)
    for (const Finding& finding : group.findings)
      if (finding.state != State::good && !finding.way_out.empty())
        ways.add_row({std::string(word(finding.state)), finding.name, finding.way_out});
  if (!ways.empty())
    text += "\n" + console.styled(Style::bold, "to do") + "\n" + ways.to_string("  ");
  return text;
}

std::string diagnosis_json(const Diagnosis& diagnosis) {
  using Json = nlohmann::ordered_json;
  Json json = Json::object();
  for (const FindingGroup& group : diagnosis)
    for (const Finding& finding : group.findings)
      json[group.name].push_back(
          {{"name", finding.name},
           {"text", finding.text},
           {"state", finding.state == State::good ? "good" : std::string(word(finding.state))},
           {"way_out", finding.way_out}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hone::cli
