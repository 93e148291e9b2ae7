// Throughput of the content hash, which keys caches and interning.

#include "base/hash.h"

#include <benchmark/benchmark.h>

#include <cstddef>
#include <vector>

namespace hone::HONE_FILE {
namespace {

void hash_bytes(benchmark::State& state) {
  std::vector<std::byte> data(static_cast<size_t>(state.range(0)), std::byte{7});
  for (auto _ : state) benchmark::DoNotOptimize(hone::hash_bytes(data));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(hash_bytes)->Arg(16)->Arg(256)->Arg(1 << 20);

}  // namespace
}  // namespace hone::HONE_FILE
