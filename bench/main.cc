// The main of every benchmark: Google Benchmark's table on stdout, hone's JSON in a file.
//   bench_NAME [--json=PATH --name=NAME --commit=HASH] [its own flags] [those of Google Benchmark]

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "bench/flags.h"

namespace {

// Prints as usual and keeps each run as a row.
class Recorder : public benchmark::ConsoleReporter {
 public:
  Recorder() : ConsoleReporter(isatty(STDOUT_FILENO) ? OO_ColorTabular : OO_Tabular) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      failed_ |= run.error_occurred;
      if (!run.error_occurred) add(run);
    }
  }

  bool failed() const { return failed_; }
  const nlohmann::ordered_json& rows() const { return rows_; }
  const nlohmann::ordered_json& summary() const { return summary_; }

 private:
  void add(const Run& run) {
    std::string name = run.benchmark_name();
    double to_ns = 1e9 / benchmark::GetTimeUnitMultiplier(run.time_unit);
    nlohmann::ordered_json row = {{"name", name},
                                  {"real_ns", run.GetAdjustedRealTime() * to_ns},
                                  {"cpu_ns", run.GetAdjustedCPUTime() * to_ns},
                                  {"iterations", run.iterations}};
    if (!run.report_label.empty()) row["label"] = run.report_label;
    summary_[name + " real_ns"] = row["real_ns"];
    for (const auto& [counter, value] : run.counters) {
      row[counter] = value.value;
      summary_[name + " " + counter] = value.value;
    }
    rows_.push_back(std::move(row));
  }

  bool failed_ = false;
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
  nlohmann::ordered_json summary_ = nlohmann::ordered_json::object();
};

// "model name : X" of /proc/cpuinfo, with the number of processors.
std::string machine() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string line, model = "unknown";
  int processors = 0;
  while (std::getline(cpuinfo, line)) {
    processors += line.starts_with("processor");
    if (line.starts_with("model name")) model = line.substr(line.find(':') + 2);
  }
  return fmt::format("{} x {}", processors, model);
}

// Takes "--flag=value" out of the arguments, so that Google Benchmark does not see it.
std::string take_flag(std::vector<char*>& args, std::string_view flag) {
  for (auto it = args.begin(); it != args.end(); ++it) {
    std::string_view arg = *it;
    if (!arg.starts_with(flag)) continue;
    args.erase(it);
    return std::string(arg.substr(flag.size()));
  }
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<char*> args(argv, argv + argc);
  std::string json = take_flag(args, "--json=");
  std::string name = take_flag(args, "--name=");
  std::string commit = take_flag(args, "--commit=");

  std::erase_if(args, [](const char* arg) { return hone::bench::Flag::take(arg); });
  hone::bench::Rows::add_all();

  int count = static_cast<int>(args.size());
  args.push_back(nullptr);
  benchmark::Initialize(&count, args.data());
  if (benchmark::ReportUnrecognizedArguments(count, args.data())) return 2;
  Recorder recorder;
  benchmark::RunSpecifiedBenchmarks(&recorder);
  if (json.empty()) return recorder.failed();

  nlohmann::ordered_json report = {{"name", name},
                                   {"machine", machine()},
                                   {"commit", commit},
                                   {"rows", recorder.rows()},
                                   {"summary", recorder.summary()}};
  std::ofstream file(json);
  file << report.dump(2) << "\n";
  file.close();
  if (!file) fmt::print(stderr, "error: cannot write {}\n", json);
  return recorder.failed() || !file;
}
