// What compiled models cost where they are deployed: loading a large file, starting a C program
// that has the runtime alone, a call beyond its kernels from C and from Python, `import hone`, and
// what several threads make of one loaded model.

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "compile/compilation.h"
#include "compile/honec.h"
#include "ir/text.h"
#include "runtime/hone.h"
#include "target/target.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

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

// Planned for one thread.
void write_model(const Graph& graph, const std::string& path) {
  CompileOptions options;
  options.plan.threads = 1;
  Compilation compilation(graph, host_target().value(), std::move(options));
  const HonecProgram program = {compilation.image().value(), ""};
  HONE_CHECK(write_honec(path, {&program, 1}, "bench").ok(), "{}", path);
}

// One kernel that takes some nanoseconds.
std::string small_file() {
  const std::string path = scratch() / "small.honec";
  if (!fs::exists(path))
    write_model(parse_graph("graph @small(%x: f32[8]) { %y = neg %x return %y }").value(), path);
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

// Buffers of the caller; an output lies in its donor.
void run_calls(benchmark::State& state, const std::string& file) {
  hone_model* model = nullptr;
  HONE_CHECK(hone_load(file.c_str(), nullptr, &model, nullptr) == HONE_OK, "{}", file);
  std::vector<std::vector<double>> held;
  const auto buffer = [&](const hone_port* port) -> void* {
    return held.emplace_back(port->bytes / sizeof(double) + 1).data();
  };
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (size_t i = 0; i < hone_input_count(model); ++i)
    inputs.push_back(buffer(hone_input(model, i)));
  for (size_t i = 0; i < hone_output_count(model); ++i) {
    const int64_t donor = hone_output_donor(model, i);
    outputs.push_back(donor < 0 ? buffer(hone_output(model, i))
                                : const_cast<void*>(inputs[static_cast<size_t>(donor)]));
  }
  for (auto _ : state)
    if (hone_run(model, inputs.data(), inputs.size(), outputs.data(), outputs.size(), nullptr) !=
        HONE_OK)
      state.SkipWithError("it does not run");
  hone_free(model);
}

void call(benchmark::State& state) { run_calls(state, small_file()); }
BENCHMARK(call)->Unit(benchmark::kMicrosecond);

// One kernel, and 24 caches of a decoder that it does not touch: what ports cost.
void call_of_many_ports(benchmark::State& state) {
  const std::string path = scratch() / "ports.honec";
  if (!fs::exists(path)) {
    std::string parameters = "%x: f32[8]", results = "%y";
    for (int i = 0; i < 24; ++i) {
      parameters += fmt::format(", %c{}: f32[64] donate {}", i, i + 1);
      results += fmt::format(", %c{}", i);
    }
    write_model(parse_graph(fmt::format("graph @ports({}) {{ %y = neg %x return {} }}", parameters,
                                        results))
                    .value(),
                path);
  }
  run_calls(state, path);
}
BENCHMARK(call_of_many_ports)->Unit(benchmark::kMicrosecond);

fs::path build_folder() { return fs::canonical("/proc/self/exe").parent_path(); }

// examples/run_model.c, built by the C compiler beside this program's build.
std::string c_program() {
  const fs::path build = build_folder();
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

// The life of a process without output, by the clock; run_process() waits in larger steps.
std::optional<double> seconds_of(const std::string& program, const std::string& argument) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  char* const words[] = {const_cast<char*>(program.c_str()), const_cast<char*>(argument.c_str()),
                         nullptr};
  pid_t child = 0;
  int status = 0;
  const auto start = std::chrono::steady_clock::now();
  const bool ran = posix_spawn(&child, program.c_str(), &files, nullptr, words, environ) == 0 &&
                   waitpid(child, &status, 0) == child && status == 0;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  posix_spawn_file_actions_destroy(&files);
  return ran ? std::optional(elapsed.count()) : std::nullopt;
}

// The whole life of a process that loads a small model and runs it once. `bytes` is the size of the
// program with the runtime in it, stripped. `true_ms` is that of a process that does nothing.
void start_up(benchmark::State& state) {
  const std::string program = c_program();
  if (program.empty()) return state.SkipWithError("there is no C compiler");
  const std::string model = small_file();
  for (auto _ : state) {
    const std::optional<double> seconds = seconds_of(program, model);
    if (!seconds) return state.SkipWithError("it does not run");
    state.SetIterationTime(*seconds);
  }
  state.counters["bytes"] = static_cast<double>(fs::file_size(program));
  state.counters["true_ms"] = 1e3 * seconds_of("/bin/true", "").value_or(0);
}
BENCHMARK(start_up)->Unit(benchmark::kMillisecond)->UseManualTime();

// ---- Python ------------------------------------------------------------------------------------

// The number that a program of $PYTHON, or python3, prints, with the package of the build folder.
std::optional<double> python_number(const std::string& code) {
  const char* const python = std::getenv("PYTHON");
  const std::string path = "PYTHONPATH=" + (build_folder() / "python").string();
  const Result<ProcessResult> result =
      run_process("/usr/bin/env", {path, python == nullptr ? "python3" : python, "-B", "-c", code});
  if (!result.ok() || result->exit_code != 0) return std::nullopt;
  const Result<double> number = parse_double(trim(result->out));
  return number.ok() ? std::optional(*number) : std::nullopt;
}

void python_rows(benchmark::State& state, const std::string& code) {
  for (auto _ : state) {
    const std::optional<double> seconds = python_number(code);
    if (!seconds)
      return state.SkipWithError("no hone, or no numpy: ./dev build python, PYTHON=...");
    state.SetIterationTime(*seconds);
  }
}

// Elapsed, in a new process.
void import_hone(benchmark::State& state) {
  python_rows(state,
              "import time; t = time.perf_counter(); import hone; print(time.perf_counter() - t)");
}
BENCHMARK(import_hone)->Unit(benchmark::kMillisecond)->UseManualTime();

std::string four_inputs_file() {
  const std::string path = scratch() / "four.honec";
  if (!fs::exists(path))
    write_model(parse_graph("graph @four(%a: f32[8], %b: f32[8], %c: f32[8], %d: f32[8]) {"
                            "  %e = add %a, %b %f = add %c, %d %y = add %e, %f return %y }")
                    .value(),
                path);
  return path;
}

// A call, the median of many rounds.
void python_call(benchmark::State& state, const std::string& file, int64_t numbers,
                 const char* how) {
  python_rows(state, fmt::format(R"(
import time, statistics, numpy as np, hone
model = hone.load({:?})
arrays = [np.ones({}, np.float32) for _ in model.inputs]
out = np.empty({}, np.float32)
bound = model.bind(arrays)
call = lambda: {}
once = 200 if out.size < 1000 else 5
rounds = []
for _ in range(100):
    began = time.perf_counter()
    for _ in range(once):
        call()
    rounds.append((time.perf_counter() - began) / once)
print(statistics.median(rounds)))",
                                 file, numbers, numbers, how));
}

// Four arrays of 8 numbers.
void python_call_of_four(benchmark::State& state, const char* how) {
  python_call(state, four_inputs_file(), 8, how);
}

// A result of 64 MB: beyond `bound` is what new memory for it costs.
void python_call_of_64_mb(benchmark::State& state, const char* how) {
  constexpr int64_t kNumbers = int64_t{16} << 20;
  const std::string path = scratch() / "wide.honec";
  if (!fs::exists(path))
    write_model(
        parse_graph(fmt::format("graph @wide(%x: f32[{0}]) {{ %y = neg %x return %y }}", kNumbers))
            .value(),
        path);
  python_call(state, path, kNumbers, how);
}

const int calls = [] {
  const std::pair<const char*, const char*> ways[] = {
      {"returned", "model(*arrays)"}, {"out", "model(*arrays, out=out)"}, {"bound", "bound()"}};
  const auto add = [&](const std::string& name, const auto& run, benchmark::TimeUnit unit) {
    for (const auto& [way, code] : ways)
      benchmark::RegisterBenchmark((name + "/" + way).c_str(), run, code)
          ->Unit(unit)
          ->UseManualTime()
          ->Iterations(3);
  };
  add("python_call_of_four", python_call_of_four, benchmark::kMicrosecond);
  add("python_call_of_64_mb", python_call_of_64_mb, benchmark::kMillisecond);
  return 0;
}();

// ---- Threads -----------------------------------------------------------------------------------

// So many threads run one loaded model, whose kernels run on one thread each. "agrees" is 1 if all
// outputs were those of one thread; "runs" are per second.
void threads(benchmark::State& state) {
  const std::string path = scratch() / "mlp.honec";
  if (!fs::exists(path)) write_model(build_zoo_model("mlp").value(), path);
  hone_model* model = nullptr;
  HONE_CHECK(hone_load(path.c_str(), nullptr, &model, nullptr) == HONE_OK, "mlp");
  const std::vector<float> x(hone_input(model, 0)->bytes / sizeof(float), 0.25F);
  const size_t numbers = hone_output(model, 0)->bytes / sizeof(float);
  const void* inputs[] = {x.data()};
  const auto run = [&](std::vector<float>& y) {
    void* outputs[] = {y.data()};
    return hone_run(model, inputs, 1, outputs, 1, nullptr) == HONE_OK;
  };
  std::vector<float> expected(numbers);
  HONE_CHECK(run(expected), "mlp");
  constexpr int kRuns = 200;  // of each thread
  std::atomic<bool> agrees = true;
  const auto work = [&] {
    std::vector<float> y(numbers);
    for (int i = 0; i < kRuns; ++i)
      if (!run(y) || y != expected) agrees = false;
  };
  int64_t runs = 0;
  for (auto _ : state) {
    std::vector<std::thread> workers;
    for (int64_t i = 0; i < state.range(0); ++i) workers.emplace_back(work);
    for (std::thread& worker : workers) worker.join();
    runs += kRuns * state.range(0);
  }
  state.counters["agrees"] = agrees ? 1 : 0;
  state.counters["runs"] =
      benchmark::Counter(static_cast<double>(runs), benchmark::Counter::kIsRate);
  hone_free(model);
}
BENCHMARK(threads)->Arg(1)->Arg(2)->Arg(4)->Arg(8)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hone::HONE_FILE
