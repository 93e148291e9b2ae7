// Throughput of the vector math as plain C++ on this machine, and its steps.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <vector>

#include "codegen/math/cost.h"
#include "codegen/math/evaluate.h"
#include "codegen/math/functions.h"

namespace hone::HONE_FILE {
namespace {

using hone::DType;
using hone::Opcode;

template <class T>
void evaluate(benchmark::State& state, Opcode opcode) {
  std::vector<T> x(1 << 12), y, result(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i % 97) / 97;
  if (hone::math::operands_of(opcode) == 2) y.assign(x.rbegin(), x.rend());
  for (auto _ : state) {
    hone::math::evaluate(opcode, true, x, y, result);
    benchmark::DoNotOptimize(result.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(x.size()));
  hone::math::StepCounts steps =
      hone::math::count_steps(opcode, sizeof(T) == 4 ? DType::f32 : DType::f64);
  state.counters["steps_32"] = steps.total_32();
  state.counters["steps_64"] = steps.total_64();
}

const bool registered = [] {
#define HONE_MATH(name, operands, how, exact)                                 \
  benchmark::RegisterBenchmark(#name "/f32", &evaluate<float>, Opcode::name); \
  benchmark::RegisterBenchmark(#name "/f64", &evaluate<double>, Opcode::name);
  HONE_MATH_FUNCTIONS(HONE_MATH)
#undef HONE_MATH
  return true;
}();

}  // namespace
}  // namespace hone::HONE_FILE
