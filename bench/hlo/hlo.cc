// Modules of HLO: instructions that are read in a second, and the most memory that this takes. Then
// the speed of functions of JAX and of the modules that run on a CPU, in turns with JAX on 1 and on
// 2 threads. HONE_JAX_PYTHON names an interpreter with JAX; without it these rows are left out.

#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "bench/onnx_runtime.h"
#include "front/hlo/hlo.h"

namespace {

using namespace hone;
using bench::root;

std::vector<std::filesystem::path> modules() {
  std::vector<std::filesystem::path> found;
  std::error_code none;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(root() / "build/bench/hlo", none))
    if (entry.is_regular_file() &&
        (entry.path().extension() == ".txt" || entry.path().extension() == ".hlo"))
      found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

// Of a process that reads the file, beyond one that does nothing.
double peak_bytes(const std::filesystem::path& path) {
  const auto peak = [&](bool loads) {
    const pid_t child = fork();
    if (child == 0) _exit(!loads || load_hlo(path).ok() ? 0 : 1);
    int status = 0;
    rusage usage = {};
    wait4(child, &status, 0, &usage);
    return static_cast<double>(usage.ru_maxrss) * 1024;
  };
  return peak(true) - peak(false);
}

void import(benchmark::State& state, const std::filesystem::path& path) {
  constexpr int64_t kMost = int64_t{1} << 30;
  const std::string text = read_file(path, kMost).value();
  int64_t instructions = 0;
  for (std::string_view line : split_lines(text))
    if (line.starts_with(' ') && line.find(" = ") != std::string_view::npos) ++instructions;
  for (auto _ : state)
    if (!load_hlo(path).ok()) state.SkipWithError("it cannot be read");
  state.counters["instructions"] = static_cast<double>(instructions);
  state.counters["instructions_per_s"] = benchmark::Counter(
      static_cast<double>(instructions), benchmark::Counter::kIsIterationInvariantRate);
  state.counters["file_MB"] = static_cast<double>(text.size()) / 1e6;
  state.counters["peak_MB"] = peak_bytes(path) / 1e6;
}

// The script prints for each model its name and the two medians in seconds.
void against_jax(benchmark::State& state, const std::string& python) {
  const std::string command =
      fmt::format("PYTHONPATH='{0}/build/release/python' '{1}' -B '{0}/bench/hlo/rival.py' {2}",
                  root().lexically_normal().string(), python, state.range(0));
  double logs = 0, least = INFINITY;
  int count = 0;
  for (auto _ : state) {
    std::FILE* lines = popen(command.c_str(), "r");
    char name[64];
    double ours = 0, theirs = 0;
    while (lines != nullptr && std::fscanf(lines, "%63s %lf %lf", name, &ours, &theirs) == 3) {
      state.counters[name] = theirs / ours;
      least = std::min(least, theirs / ours);
      logs += std::log(theirs / ours);
      ++count;
    }
    if (lines == nullptr || pclose(lines) != 0 || count == 0)
      state.SkipWithError("rival.py failed");
  }
  if (count == 0) return;
  state.counters["geometric_mean"] = std::exp(logs / count);
  state.counters["least"] = least;
}

const bool kRegistered = [] {
  for (const std::filesystem::path& path : modules())
    benchmark::RegisterBenchmark(("import/" + path.stem().string()).c_str(), import, path)
        ->Unit(benchmark::kMillisecond);
  const char* python = std::getenv("HONE_JAX_PYTHON");
  if (python != nullptr)
    benchmark::RegisterBenchmark("against_jax/threads", against_jax, std::string(python))
        ->Arg(1)
        ->Arg(2)
        ->Iterations(1)
        ->Unit(benchmark::kSecond);
  return true;
}();

}  // namespace
