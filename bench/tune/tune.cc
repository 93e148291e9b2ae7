// What tuning gains over the default plan of this build, in turns: models of the zoo at full size
// and those beside the repository, at one thread, at two, and with AVX2 alone.
//   --models=A,B --settings=A,B   some of them
//   --seconds=S                   of a row (180)
//   --alone                       also each sort of decision alone, for the ceiling
//   --analytic                    also by the analytic price; else by the learned one, where hone
//                                 has a model of this processor
// Rows: MODEL/SETTING, with a log that is empty before; then with the log that it has filled:
//   /again        the same model for 5 s: `same` is 1 if the plan is that of the log
//   /copy         other weights and, of classifiers, another head, for a quarter of the time:
//                 `known` of its `kernels` are in the log, `share` of its time by price
//   /alone/KIND   that sort of decision alone, without a log
//   /analytic     by the analytic price, without a log
// Counters:
//   gain, low, high  of the whole model, and its interval; 1 if the default plan stays
//   schedules, ...   the gain when that sort of decision was changed
//   seconds_95       when 95 % of the gain was there
//   needed           measured schedules until each kernel had one within 1 % of its fastest
// Rows are kept in build/bench/tune.rows, and logs in build/bench/tune/.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "base/text.h"
#include "bench/flags.h"
#include "bench/onnx_runtime.h"
#include "bench/real_models.h"
#include "bench/rows.h"
#include "cache/compile_cache.h"
#include "cost/analytic.h"
#include "session/known_prices.h"
#include "target/fingerprint.h"
#include "tune/tuner.h"
#include "zoo/zoo.h"

namespace hone::bench {
namespace {

namespace fs = std::filesystem;

const Flag kSeconds("seconds", "180"), kAlone("alone"), kAnalytic("analytic"),
    kSettingNames("settings", ""),
    kModels("models",
            "mobilenet_v2,efficientnet_b0,resnet50,inception_v3,shufflenet_v2,unet,vit_b16,mixer,"
            "bert_base,gpt2_decode,lstm,dlrm");
constexpr double kSecondsAgain = 5;
constexpr double kOfCopy = 0.25;  // of the seconds
constexpr int64_t kOtherClasses = 10;

struct Setting {
  std::string_view name;
  int64_t threads;
  Isa isa;
};
constexpr Setting kSettings[] = {
    {"threads:1", 1, Isa::avx512}, {"threads:2", 2, Isa::avx512}, {"avx2", 1, Isa::avx2}};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// ---- Models -------------------------------------------------------------------------------------

const ZooEntry* zoo_entry(std::string_view name) {
  const auto entry = std::ranges::find(zoo_entries(), name, &ZooEntry::name);
  return entry == zoo_entries().end() ? nullptr : &*entry;
}

Result<Graph> model(std::string_view name) {
  if (zoo_entry(name) != nullptr) return build_zoo_model(name);
  return std::move(HONE_TRY(load_real_model(name)).graph);
}

Result<Graph> copy_of(std::string_view name) {
  ZooOptions options{.seed = 1};
  if (zoo_entry(name)->full.classes > 0) options.classes = kOtherClasses;
  return build_zoo_model(name, options);
}

// What the flag names, or else the zoo's and those beside the repository.
std::vector<std::string> models() {
  std::vector<std::string> names;
  for (std::string_view name : split(kModels.text(), ',')) names.emplace_back(name);
  if (kModels.is_given()) return names;
  const std::vector<std::string> real = real_models();
  names.insert(names.end(), real.begin(), real.end());
  return names;
}

// ---- Rows ---------------------------------------------------------------------------------------

// One row's model and machine.
struct Subject {
  std::string model;
  const Setting* setting;
  Target target;

  std::string name() const { return fmt::format("{}/{}", model, setting->name); }
  fs::path log() const {
    return root() / "build" / "bench" / "tune" /
           fmt::format("{}.{}.{:016x}.db", model, setting->name, fingerprint(target));
  }
};

std::string counter_of(const TuneKind& kind) {
  return kind.name == kTuneGroups.name ? "groups_and_chains" : std::string(kind.name);
}

Row row_of(const Tuned& tuned) {
  Row row = {{"gain", tuned.gain()},
             {"low", 1},
             {"high", 1},
             {"kernels", static_cast<double>(tuned.kernels)},
             {"measured", static_cast<double>(tuned.measured)},
             {"needed", static_cast<double>(tuned.needed)},
             {"reused", static_cast<double>(tuned.reused)},
             {"seconds", tuned.seconds}};
  for (const TuneKind& kind : kTuneKinds) row[counter_of(kind)] = 1;
  if (tuned.is_default) return row;
  if (tuned.stays) {
    row["low"] = tuned.stays->low;
    row["high"] = tuned.stays->high;
  } else {
    row["low"] = 1 / tuned.confirmation.times.interval->high;
    row["high"] = 1 / tuned.confirmation.times.interval->low;
  }
  double gain = 1;
  for (const TuneShare& share : tuned.shares) {
    gain *= share.gain;
    row[counter_of(*share.kind)] *= share.gain;
    if (gain >= 0.95 * tuned.gain() && !row.contains("seconds_95"))
      row["seconds_95"] = share.seconds;
  }
  return row;
}

// Code that was compiled before is at hand, as it is for hone's users.
CompileCache& cache() {
  static const std::unique_ptr<CompileCache> opened = [] {
    Result<std::unique_ptr<CompileCache>> cache =
        CompileCache::open(root() / "build" / "bench" / "tune" / "cache");
    HONE_CHECK(cache.ok(), "the cache of the benchmark cannot be opened");
    return *std::move(cache);
  }();
  return *opened;
}

// By what comes with hone, as for a new user, unless a price is given.
Result<Tuned> tune_for(const Graph& graph, const Subject& subject, double seconds,
                       TuneOptions options) {
  if (options.cost == nullptr)
    options.cost = KnownPrices({}, true).cost(subject.target, [](std::string_view) {});
  options.seconds = seconds;
  options.cache = &cache();
  options.threads = subject.setting->threads;
  options.version = HONE_VERSION;
  return tune(graph, subject.target, options);
}

Result<std::unique_ptr<Log>> empty_log(const fs::path& file) {
  for (const char* part : {"", "-wal", "-shm"}) fs::remove(file.native() + part);
  return Log::open(file.native());
}

// Of the log that the first row has filled, which stays as it is.
Result<std::unique_ptr<Log>> copied_log(const Subject& subject, std::string_view what) {
  const fs::path from = subject.log();
  if (!fs::exists(from))
    return bad_input("the log of {} is gone: delete its rows, too", subject.name());
  const std::unique_ptr<Log> filled = HONE_TRY(Log::open(from.native(), Log::Mode::read));
  std::unique_ptr<Log> log = HONE_TRY(empty_log(from.native() + std::string(what)));
  LogMerge merge(*log);
  HONE_TRY(merge.take_all(*filled));
  HONE_TRY(merge.finish());
  return log;
}

Result<Row> first(const Subject& subject) {
  const std::unique_ptr<Log> log = HONE_TRY(empty_log(subject.log()));
  const Graph graph = HONE_TRY(model(subject.model));
  return row_of(HONE_TRY(tune_for(graph, subject, kSeconds.number(), {.log = log.get()})));
}

Result<Row> again(const Subject& subject) {
  const std::unique_ptr<Log> log = HONE_TRY(copied_log(subject, ".again"));
  const Graph graph = HONE_TRY(model(subject.model));
  std::optional<std::string> known;
  HONE_TRY(log->visit_plans([&](const BestPlan& best) -> Status {
    known = best.plan;
    return {};
  }));
  const double start = now();
  const Tuned tuned = HONE_TRY(tune_for(graph, subject, kSecondsAgain, {.log = log.get()}));
  Row row = row_of(tuned);
  row["seconds"] = now() - start;
  row["same"] = print(tuned.plan) == known.value_or(print(tuned.before)) ? 1 : 0;
  return row;
}

Result<Row> fine_tuned(const Subject& subject) {
  const std::unique_ptr<Log> log = HONE_TRY(copied_log(subject, ".copy"));
  const Graph graph = HONE_TRY(copy_of(subject.model));
  const Tuned tuned =
      HONE_TRY(tune_for(graph, subject, kOfCopy * kSeconds.number(), {.log = log.get()}));
  Row row = row_of(tuned);
  row["kernels"] = static_cast<double>(tuned.overlap.kernels);
  row["known"] = static_cast<double>(tuned.overlap.known);
  row["share"] = tuned.overlap.share;
  row["plan_known"] = tuned.was_known ? 1 : 0;
  return row;
}

Result<Row> alone(const Subject& subject, const TuneKind& kind) {
  TuneOptions options;
  HONE_TRY(try_only(options, kind.word));
  const Graph graph = HONE_TRY(model(subject.model));
  return row_of(HONE_TRY(tune_for(graph, subject, kSeconds.number(), options)));
}

Result<Row> by_analytic(const Subject& subject) {
  const Graph graph = HONE_TRY(model(subject.model));
  const auto analytic = std::make_shared<AnalyticCost>(subject.target);
  return row_of(HONE_TRY(tune_for(graph, subject, kSeconds.number(), {.cost = analytic})));
}

// ---- All of them --------------------------------------------------------------------------------

Result<Subject> subject_of(const std::string& model, const Setting& setting) {
  const Target host = HONE_TRY(host_target());
  Subject subject = {model, &setting, restricted(host, setting.isa)};
  if (setting.threads > host.cores) return over_limit("the machine has fewer cores");
  return subject;
}

std::map<std::string_view, std::vector<double>>& gains() {
  static std::map<std::string_view, std::vector<double>> gains;
  return gains;
}

using Measure = std::function<Result<Row>(const Subject&)>;

Status measure(benchmark::State& state, const std::string& model, const Setting& setting,
               const std::string& what, const Measure& measure) {
  const Subject subject = HONE_TRY(subject_of(model, setting));
  fs::create_directories(subject.log().parent_path());
  const std::string name = fmt::format("{}{} {}", subject.name(), what, kSeconds.text());
  Row row;
  for (auto _ : state) {
    row = HONE_TRY(kept_row(
        {"tune", name, subject.target, HONE_TUNER_VERSION}, [&] { return measure(subject); }));
    state.SetIterationTime(row["seconds"]);
  }
  for (const auto& [counter, value] : row) state.counters[counter] = value;
  state.SetLabel(subject.target.cpu);
  if (what.empty()) gains()[setting.name].push_back(row["gain"]);
  return {};
}

void add_mean(benchmark::State& state, std::string_view setting) {
  const std::vector<double>& all = gains()[setting];
  double sum = 0;
  for (double gain : all) sum += std::log(gain);
  for (auto _ : state) state.SetIterationTime(0);
  if (all.empty()) return;
  state.counters["gain"] = std::exp(sum / static_cast<double>(all.size()));
  state.counters["least"] = *std::ranges::min_element(all);
  state.counters["models"] = static_cast<double>(all.size());
}

void add_row(const std::string& name, const std::function<void(benchmark::State&)>& run) {
  benchmark::RegisterBenchmark(name.c_str(), run)
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kSecond);
}

void add_rows(const std::string& model, const Setting& setting) {
  const auto add = [&](const std::string& what, const Measure& of) {
    add_row(fmt::format("{}/{}{}", model, setting.name, what),
            [=, &setting](benchmark::State& state) {
              const Status status = measure(state, model, setting, what, of);
              if (!status.ok()) state.SkipWithError(status.error().to_string().c_str());
            });
  };
  add("", first);
  add("/again", again);
  if (zoo_entry(model) != nullptr) add("/copy", fine_tuned);
  if (kAnalytic.is_given()) add("/analytic", by_analytic);
  if (!kAlone.is_given()) return;
  for (const TuneKind& kind : kTuneKinds)
    if (kind.name != kTuneThreads.name || setting.threads > 1)
      add(fmt::format("/alone/{}", kind.word),
          [&kind](const Subject& subject) { return alone(subject, kind); });
}

const Rows kRows([] {
  const std::vector<std::string_view> wanted = split(kSettingNames.text(), ',');
  for (const Setting& setting : kSettings) {
    if (kSettingNames.is_given() && std::ranges::find(wanted, setting.name) == wanted.end())
      continue;
    for (const std::string& model : models()) add_rows(model, setting);
    add_row(fmt::format("geometric_mean/{}", setting.name),
            [&setting](benchmark::State& state) { add_mean(state, setting.name); });
  }
});

}  // namespace
}  // namespace hone::bench
