// What compiled models cost where they are deployed: loading a large file, starting a C program
// that has the runtime alone, and a call beyond its kernels.

#include <benchmark/benchmark.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/subprocess.h"
#include "compile/compilation.h"
#include "compile/honec.h"
#include "ir/text.h"
#include "runtime/hone.h"
#include "target/target.h"

namespace {

using namespace hone;
namespace fs = std::filesystem;

const fs::path& scratch() {
  static const TempDir folder = TempDir::create(fs::temp_directory_path()).value();
  return folder.path();
}

// A model that copies the first of its 500 MB of weights.
std::string large_file() {
  const std::string path = scratch() / "large.honec";
  if (fs::exists(path)) return path;
  using image::Place;
  const Type weights = Type::get(DType::f32, {125'000'000});
  Image image = {.name = "large"};
  image.outputs = {{"y", Type::get(DType::f32, {1})}};
  image.constants = {Tensor::zeros(weights)};
  image.commands = {{"first", image::Copy{{Place::Region::constant, 0, 0, 4, {}},
                                          {Place::Region::output, 0, 0, 4, {}}}}};
  const HonecProgram program = {&image, ""};
  HONE_CHECK(write_honec(path, {&program, 1}, "bench").ok(), "{}", path);
  return path;
}

// One kernel that takes some nanoseconds.
std::string small_file() {
  const std::string path = scratch() / "small.honec";
  if (fs::exists(path)) return path;
  const Graph graph = parse_graph("graph @small(%x: f32[8]) { %y = neg %x return %y }").value();
  CompileOptions options;
  options.plan.threads = 1;
  Compilation compilation(graph, host_target().value(), std::move(options));
  const HonecProgram program = {compilation.image().value(), ""};
  HONE_CHECK(write_honec(path, {&program, 1}, "bench").ok(), "{}", path);
  return path;
}

void load_500_mb(benchmark::State& state) {
  const std::string path = large_file();
  for (auto _ : state) {
    hone_model* model = nullptr;
    if (hone_load(path.c_str(), nullptr, &model, nullptr) != HONE_OK)
      state.SkipWithError("it does not load");
    hone_free(model);
  }
}
BENCHMARK(load_500_mb)->Unit(benchmark::kMillisecond);

void call(benchmark::State& state) {
  hone_model* model = nullptr;
  HONE_CHECK(hone_load(small_file().c_str(), nullptr, &model, nullptr) == HONE_OK, "small");
  float x[8] = {}, y[8] = {};
  const void* inputs[] = {x};
  void* outputs[] = {y};
  for (auto _ : state)
    if (hone_run(model, inputs, 1, outputs, 1, nullptr) != HONE_OK)
      state.SkipWithError("it does not run");
  hone_free(model);
}
BENCHMARK(call)->Unit(benchmark::kMicrosecond);

// examples/run_model.c, built by the C compiler beside this program's build.
std::string c_program() {
  const fs::path build = fs::canonical("/proc/self/exe").parent_path();
  const fs::path root = build.parent_path().parent_path();
  const std::string program = scratch() / "run_model";
  if (fs::exists(program)) return program;
  const auto runs = [](const std::vector<std::string>& words) {
    const Result<ProcessResult> result = run_process("/usr/bin/env", words);
    return result.ok() && result->signal == 0 && result->exit_code == 0;
  };
  const bool made =
      runs({"cc", "-O1", "-I" + (root / "src/runtime").string(),
            (root / "examples/run_model.c").string(), (build / "libhone_runtime.a").string(),
            "-lfmt", "-lstdc++", "-lm", "-pthread", "-s", "-o", program});
  return made ? program : "";
}

// The whole life of a process that loads a small model and runs it once. `bytes` is the size of the
// program with the runtime in it, stripped.
void start_up(benchmark::State& state) {
  const std::string program = c_program();
  if (program.empty()) return state.SkipWithError("there is no C compiler");
  const std::string model = small_file();
  for (auto _ : state) {
    const Result<ProcessResult> result = run_process(program, {model});
    if (!result.ok() || result->exit_code != 0) return state.SkipWithError("it does not run");
    state.SetIterationTime(result->seconds);
  }
  state.counters["bytes"] = static_cast<double>(fs::file_size(program));
}
BENCHMARK(start_up)->Unit(benchmark::kMillisecond)->UseManualTime();

}  // namespace
