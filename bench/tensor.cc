// Reading numbers out of tensors (256 KiB, within the caches), archives of weights, and dims.

#include "tensor/tensor.h"

#include <benchmark/benchmark.h>

#include <filesystem>

#include "base/file.h"
#include "formats/npz.h"

namespace hone::HONE_FILE {
namespace {

Tensor make(DType dtype, int64_t bytes) {
  return Tensor::zeros(Type::get(dtype, {bytes * 8 / bits(dtype)}));
}

template <class Out>
void read(benchmark::State& state, DType dtype) {
  Tensor tensor = make(dtype, 1 << 18);
  std::vector<Out> out(static_cast<size_t>(tensor.elements()));
  for (auto _ : state) {
    tensor.read_reals(0, std::span(out));
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * tensor.elements());
}
void floats(benchmark::State& state, DType dtype) { read<float>(state, dtype); }
void doubles(benchmark::State& state, DType dtype) { read<double>(state, dtype); }
BENCHMARK_CAPTURE(floats, f32, DType::f32);
BENCHMARK_CAPTURE(floats, f16, DType::f16);
BENCHMARK_CAPTURE(floats, bf16, DType::bf16);
BENCHMARK_CAPTURE(floats, f8e4m3fn, DType::f8e4m3fn);
BENCHMARK_CAPTURE(floats, i8, DType::i8);
BENCHMARK_CAPTURE(floats, i4, DType::i4);
BENCHMARK_CAPTURE(doubles, f32, DType::f32);
BENCHMARK_CAPTURE(doubles, f64, DType::f64);

void from_reals(benchmark::State& state, DType dtype) {
  std::vector<double> values(1 << 16, 1.1);
  Type type = Type::get(dtype, {1 << 16});
  for (auto _ : state) benchmark::DoNotOptimize(Tensor::from_reals(type, values));
  state.SetItemsProcessed(state.iterations() * (1 << 16));
}
BENCHMARK_CAPTURE(from_reals, f32, DType::f32);
BENCHMARK_CAPTURE(from_reals, bf16, DType::bf16);
BENCHMARK_CAPTURE(from_reals, i32, DType::i32);

void npz(benchmark::State& state) {
  TempDir folder = TempDir::create(std::filesystem::temp_directory_path()).value();
  std::filesystem::path path = folder.path() / "t.npz";
  std::vector<NamedTensor> tensors;
  for (int i = 0; i < 8; ++i) tensors.push_back({fmt::format("{}", i), make(DType::f32, 1 << 26)});
  if (!write_npz(path, tensors).ok()) return state.SkipWithError("cannot write");
  for (auto _ : state) {
    auto file = std::make_shared<const MappedFile>(MappedFile::open(path).value());
    benchmark::DoNotOptimize(parse_npz(file->bytes(), "t.npz", file).value());
  }
  state.counters["file_bytes"] = static_cast<double>(std::filesystem::file_size(path));
}
BENCHMARK(npz)->Name("open_npz_of_512_MiB");

void symbolic_add(benchmark::State& state) {
  Dim n = Symbol::get("N", 1, 64), m = Symbol::get("M", 1, 64);
  for (auto _ : state) benchmark::DoNotOptimize(n + m);
}
BENCHMARK(symbolic_add);

void symbolic_ceildiv(benchmark::State& state) {
  Dim n = Symbol::get("N", 1, 64);
  for (auto _ : state) benchmark::DoNotOptimize(ceildiv(n, 4));
}
BENCHMARK(symbolic_ceildiv);

void symbolic_multiply(benchmark::State& state) {
  Dim n = Symbol::get("N", 1, 64), m = Symbol::get("M", 1, 64) + Dim(1);
  for (auto _ : state) benchmark::DoNotOptimize(n * m);
}
BENCHMARK(symbolic_multiply);

void static_dims(benchmark::State& state) {
  Dim n = 12;
  for (auto _ : state) benchmark::DoNotOptimize(n = floordiv(n * 4 + 3, 4));
}
BENCHMARK(static_dims);

void make_type(benchmark::State& state) {
  Dims dims = {32, 128, 768};
  for (auto _ : state) benchmark::DoNotOptimize(Type::get(DType::f32, dims));
}
BENCHMARK(make_type);

}  // namespace
}  // namespace hone::HONE_FILE
