// Importing ONNX files: one of 100 MB, whose weights stay mapped, and one of 50,000 nodes.

#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "front/onnx/onnx.h"
#include "ir/functional.h"

namespace hone::HONE_FILE {
namespace {

using hone::Builder;
using hone::DType;
using hone::Model;
using hone::Tensor;
using hone::Type;
using hone::Value;

// y = x w0 w1 ...: `count` matrices of 10 MB.
Model weighty(int64_t count) {
  constexpr int64_t kSide = 1620;
  Builder b("weighty");
  Value x = b.parameter("x", DType::f32, {1, kSide});
  for (int64_t i = 0; i < count; ++i) {
    Type type = Type::get(DType::f32, {kSide, kSide});
    std::vector<float> numbers(static_cast<size_t>(kSide * kSide), static_cast<float>(i));
    x = matmul(x, b.constant(Tensor::of<float>(type, numbers), fmt::format("w{}", i)));
  }
  return hone::model_of(*b.finish({x}));
}

Model long_chain(int64_t nodes) {
  Builder b("chain");
  Value x = b.parameter("x", DType::f32, {hone::Symbol::get("N", 1, 64), 784});
  Value y = x;
  for (int64_t i = 0; i < nodes; ++i)
    y = i % 3 == 0 ? exp(y) : i % 3 == 1 ? y + x : (y * x).named(fmt::format("layer{}", i));
  return hone::model_of(*b.finish({y}));
}

// The file of the model, which is removed at the end.
class SavedModel {
 public:
  SavedModel(const Model& model, bool is_external)
      : folder_(std::move(*hone::TempDir::create(std::filesystem::temp_directory_path()))) {
    hone::ExportOptions options;
    options.external_data = is_external;
    const std::vector<std::filesystem::path> files =
        hone::save_onnx(path(), model, options).value();
    for (const std::filesystem::path& file : files)
      bytes_ += static_cast<int64_t>(std::filesystem::file_size(file));
  }
  std::filesystem::path path() const { return folder_.path() / "model.onnx"; }
  int64_t bytes() const { return bytes_; }

 private:
  hone::TempDir folder_;
  int64_t bytes_ = 0;
};

// What a process that does nothing but load the file takes at most, beyond one that does nothing.
double peak_bytes(const std::filesystem::path& path) {
  auto peak = [&](bool loads) {
    pid_t child = fork();
    if (child == 0) {
      bool good = !loads || hone::load_onnx(path).ok();
      _exit(good ? 0 : 1);
    }
    int status = 0;
    rusage usage = {};
    wait4(child, &status, 0, &usage);
    return static_cast<double>(usage.ru_maxrss) * 1024;
  };
  return peak(true) - peak(false);
}

void load(benchmark::State& state, const Model& model, bool is_external) {
  SavedModel file(model, is_external);
  for (auto _ : state) benchmark::DoNotOptimize(hone::load_onnx(file.path()).ok());
  state.counters["file_MB"] = static_cast<double>(file.bytes()) / 1e6;
  state.counters["peak_of_file"] = peak_bytes(file.path()) / static_cast<double>(file.bytes());
}

void load_100_megabytes(benchmark::State& state) { load(state, weighty(10), false); }
BENCHMARK(load_100_megabytes)->Unit(benchmark::kMillisecond);

void load_100_megabytes_external(benchmark::State& state) { load(state, weighty(10), true); }
BENCHMARK(load_100_megabytes_external)->Unit(benchmark::kMillisecond);

void load_50000_nodes(benchmark::State& state) { load(state, long_chain(50000), false); }
BENCHMARK(load_50000_nodes)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hone::HONE_FILE
