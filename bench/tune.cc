// What tuning gains over the default plan of this build, in turns: models of the zoo at full size,
// at one thread, at two, and with AVX2 alone. A row takes 3 minutes, or what
// HONE_TUNE_SECONDS says. Rows are kept in build/bench/tune.rows as they come; one that is there,
// of this processor and code, is not measured again: delete the file to begin anew. The log is
// build/bench/tune.db.
//   gain, low, high  of the whole model, and its interval
//   schedules, ...   the gain when that kind of decision was changed
//   seconds_95       when 95 % of the gain was there

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/onnx_runtime.h"
#include "kernel/schedule_space.h"
#include "target/fingerprint.h"
#include "tune/tuner.h"
#include "zoo/zoo.h"

namespace hone::bench {
namespace {

namespace fs = std::filesystem;
using Row = std::map<std::string, double>;

constexpr std::string_view kModels[] = {
    "mobilenet_v2", "efficientnet_b0", "resnet50",  "inception_v3", "shufflenet_v2", "unet",
    "vit_b16",      "mixer",           "bert_base", "gpt2_decode",  "lstm",          "dlrm"};

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
double seconds() {
  const char* text = std::getenv("HONE_TUNE_SECONDS");
  return text == nullptr ? 180 : std::atof(text);
}
fs::path rows_file() { return root() / "build" / "bench" / "tune.rows"; }

// A row holds for one processor, the code of this program and a budget.
std::string key_of(std::string_view model, const Setting& setting, const Target& target) {
  const fs::path self = fs::read_symlink("/proc/self/exe");
  return fmt::format("{} {} {:016x} {} {}", model, setting.name, fingerprint(target),
                     fs::last_write_time(self).time_since_epoch().count(), seconds());
}

std::map<std::string, Row> known_rows() {
  std::map<std::string, Row> rows;
  std::ifstream file(rows_file());
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json row = nlohmann::json::parse(line, nullptr, false);
    if (row.is_object()) rows[row.value("key", "")] = row.value("row", Row());  // not cut off
  }
  return rows;
}

Result<Row> tune_row(std::string_view model, const Setting& setting, const Target& target) {
  const Graph graph = HONE_TRY(build_zoo_model(model));
  const std::unique_ptr<Log> log =
      HONE_TRY(Log::open((root() / "build" / "bench" / "tune.db").native()));
  TuneOptions options;
  options.seconds = seconds();
  options.threads = setting.threads;
  options.log = log.get();
  options.version = "bench";
  const Tuned tuned = HONE_TRY(tune(graph, target, options));
  Row row = {{"gain", tuned.gain()},
             {"low", 1},
             {"high", 1},
             {"kernels", static_cast<double>(tuned.kernels)},
             {"measured", static_cast<double>(tuned.measured)},
             {"reused", static_cast<double>(tuned.reused)},
             {"seconds", tuned.seconds}};
  if (tuned.is_default) return row;
  const Interval ratio = *tuned.confirmation.times.interval;
  row["low"] = 1 / ratio.high;
  row["high"] = 1 / ratio.low;
  double gain = 1;
  for (const TuneShare& share : tuned.shares) {
    gain *= share.gain;
    double& of_kind = row.try_emplace(share.what, 1).first->second;
    of_kind *= share.gain;
    if (gain >= 0.95 * tuned.gain() && !row.contains("seconds_95"))
      row["seconds_95"] = share.seconds;
  }
  return row;
}

std::map<std::string, std::vector<double>>& gains() {
  static std::map<std::string, std::vector<double>> gains;
  return gains;
}

Status measure(benchmark::State& state, std::string_view model, const Setting& setting) {
  const Target host = HONE_TRY(host_target());
  const Target target = restricted(host, setting.isa);
  if (setting.threads > target.cores) return over_limit("the machine has fewer cores");
  const std::string key = key_of(model, setting, target);
  std::map<std::string, Row> rows = known_rows();
  for (auto _ : state) {
    if (!rows.contains(key)) {
      rows[key] = HONE_TRY(tune_row(model, setting, target));
      std::ofstream(rows_file(), std::ios::app)
          << nlohmann::json{{"key", key}, {"row", rows[key]}}.dump() << std::endl;
    }
    state.SetIterationTime(rows[key]["seconds"]);
  }
  for (const auto& [name, value] : rows[key]) state.counters[name] = value;
  gains()[std::string(setting.name)].push_back(rows[key]["gain"]);
  return {};
}

void add_mean(benchmark::State& state, std::string_view setting) {
  const std::vector<double>& all = gains()[std::string(setting)];
  double sum = 0;
  for (double gain : all) sum += std::log(gain);
  for (auto _ : state) state.SetIterationTime(0);
  if (all.empty()) return;
  state.counters["gain"] = std::exp(sum / static_cast<double>(all.size()));
  state.counters["models"] = static_cast<double>(all.size());
}

// ---- Candidates --------------------------------------------------------------------------------

// How many different candidates of some kernels of a model are measured in a minute: two at a time,
// each to the end of the race, as one compilation of each allows; and in batches, of which most
// drop out early.
void count_candidates(benchmark::State& state) {
  constexpr size_t kKernels = 8, kCandidates = 24, kBatch = 12;
  const Target target = host_target().value();
  Compilation compilation(build_zoo_model("mobilenet_v2").value(), target);
  const Program& program = **compilation.program();
  const auto minutes = [&](size_t batch, bool drops) {
    const double start = now();
    for (size_t k = 0; k < kKernels; ++k) {
      const program::Kernel& kernel = program.kernels[k];
      KernelMeter meter =
          KernelMeter::make(candidate_of(kernel.body, *kernel.schedule, target).value(), target,
                            {.drops = drops})
              .value();
      Rng rng(k);
      std::map<uint64_t, KernelCandidate> different;
      while (different.size() < kCandidates) {
        KernelCandidate one =
            candidate_of(kernel.body, random_schedule(*kernel.body, target, rng), target).value();
        different.try_emplace(one.code, std::move(one));
      }
      std::vector<KernelCandidate> all;
      for (auto& [code, one] : different) all.push_back(std::move(one));
      for (size_t from = 0; from < all.size(); from += batch)
        HONE_CHECK(meter.race(std::span(all).subspan(from, batch)).ok(), "a race");
    }
    return (now() - start) / 60;
  };
  const double all = kKernels * kCandidates;
  for (auto _ : state) {
    state.counters["alone_a_minute"] = all / minutes(2, false);
    state.counters["batch_a_minute"] = all / minutes(kBatch, true);
  }
  state.counters["ratio"] = state.counters["batch_a_minute"] / state.counters["alone_a_minute"];
}
BENCHMARK(count_candidates)->Name("candidates")->Iterations(1)->Unit(benchmark::kSecond);

const int registered = [] {
  const auto add = [](const std::string& name, const auto& run) {
    benchmark::RegisterBenchmark(name.c_str(), run)
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kSecond);
  };
  for (const Setting& setting : kSettings) {
    for (std::string_view model : kModels)
      add(fmt::format("{}/{}", model, setting.name), [=](benchmark::State& state) {
        const Status status = measure(state, model, setting);
        if (!status.ok()) state.SkipWithError(status.error().to_string().c_str());
      });
    add(fmt::format("geometric_mean/{}", setting.name),
        [=](benchmark::State& state) { add_mean(state, setting.name); });
  }
  return 0;
}();

}  // namespace
}  // namespace hone::bench
