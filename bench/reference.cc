// Multiply-adds per second of the reference evaluator's dot and conv, on one and two threads.

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "ir/op_def.h"
#include "ir/reference/run.h"

namespace hone::HONE_FILE {
namespace {

struct Case {
  std::string name;
  std::string op;
  Dims lhs;
  Dims rhs;
};

const std::vector<Case> kCases = {
    {"dot 512x512x512", "dot {lhs_contract = [1], rhs_contract = [0]}", {512, 512}, {512, 512}},
    {"dot 128x768x3072", "dot {lhs_contract = [1], rhs_contract = [0]}", {128, 768}, {768, 3072}},
    {"dot transposed 256x256x256",
     "dot {lhs_contract = [0], rhs_contract = [1]}",
     {256, 256},
     {256, 256}},
    {"dot row 1x2048x2048",
     "dot {lhs_contract = [1], rhs_contract = [0]}",
     {1, 2048},
     {2048, 2048}},
    {"dot column 2048x2048x1",
     "dot {lhs_contract = [1], rhs_contract = [0]}",
     {2048, 2048},
     {2048, 1}},
    {"dot batch 12x128x64x128",
     "dot {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2]}",
     {12, 128, 64},
     {12, 128, 64}},
    {"dot batch 4096x8x8x8",
     "dot {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}",
     {4096, 8, 8},
     {4096, 8, 8}},
    {"conv 3x3 64@56",
     "conv {pad_low = [1, 1], pad_high = [1, 1]}",
     {1, 64, 56, 56},
     {64, 64, 3, 3}},
    {"conv 3x3 64@56 channels last",
     "conv {order = \"b01f_01io->b01f\", pad_low = [1, 1], pad_high = [1, 1]}",
     {1, 56, 56, 64},
     {3, 3, 64, 64}},
    {"conv 3x3 512@7",
     "conv {pad_low = [1, 1], pad_high = [1, 1]}",
     {1, 512, 7, 7},
     {512, 512, 3, 3}},
    {"conv 1x1 256@28", "conv", {1, 256, 28, 28}, {128, 256, 1, 1}},
    {"conv 1x1 1280@1", "conv", {1, 1280, 1, 1}, {1280, 1280, 1, 1}},
    {"conv 7x7/2 3@224",
     "conv {stride = [2, 2], pad_low = [3, 3], pad_high = [3, 3]}",
     {1, 3, 224, 224},
     {64, 3, 7, 7}},
    {"conv 3x3 dilated 64@28",
     "conv {kernel_dilation = [2, 2], pad_low = [2, 2], pad_high = [2, 2]}",
     {1, 64, 28, 28},
     {64, 64, 3, 3}},
    {"conv 3x3 transposed 64@28",
     "conv {input_dilation = [2, 2], pad_low = [1, 1], pad_high = [2, 2]}",
     {1, 64, 28, 28},
     {64, 64, 3, 3}},
    {"conv 3x3 32 groups 128@56",
     "conv {groups = 32, pad_low = [1, 1], pad_high = [1, 1]}",
     {1, 128, 56, 56},
     {128, 4, 3, 3}},
    {"conv 3x3 depthwise 96@112",
     "conv {groups = 96, pad_low = [1, 1], pad_high = [1, 1]}",
     {1, 96, 112, 112},
     {96, 1, 3, 3}},
    {"conv 5x5/2 depthwise 240@28",
     "conv {groups = 240, stride = [2, 2], pad_low = [2, 2], pad_high = [2, 2]}",
     {1, 240, 28, 28},
     {240, 1, 5, 5}},
    {"conv 3x3 depthwise 96@112 channels last",
     "conv {order = \"b01f_01io->b01f\", groups = 96, pad_low = [1, 1], pad_high = [1, 1]}",
     {1, 112, 112, 96},
     {3, 3, 1, 96}},
    {"conv 1-d 64@4096", "conv {pad_low = [2], kernel_dilation = [2]}", {1, 64, 4096}, {64, 64, 2}},
    {"conv 3-d 16@16",
     "conv {pad_low = [1, 1, 1], pad_high = [1, 1, 1]}",
     {1, 16, 16, 16, 16},
     {32, 16, 3, 3, 3}},
};

template <class D>
Buffer<D> random_buffer(Type type, uint64_t seed) {
  Buffer<D> buffer(type);
  Rng rng(seed);
  if (buffer.holds_reals()) {
    for (auto& x : buffer.reals()) x = static_cast<typename D::Real>(rng.uniform(-1, 1));
  } else {
    for (auto& x : buffer.ints()) x = rng.between(-100, 100);
  }
  return buffer;
}

template <class D>
void run(benchmark::State& state, const Case& test, DType dtype) {
  Op op = *parse_op(test.op);
  std::vector<Type> types = {Type::get(dtype, test.lhs), Type::get(dtype, test.rhs)};
  Application application = {op, types};
  std::vector<Type> results = *infer(application);
  Buffer<D> lhs = random_buffer<D>(types[0], 1);
  Buffer<D> rhs = random_buffer<D>(types[1], 2);
  std::vector<const Buffer<D>*> operands = {&lhs, &rhs};
  std::vector<Buffer<D>> outputs = {Buffer<D>(results[0])};
  ThreadPool pool(static_cast<int>(state.range(0)));
  EvalState shared{EvalOptions()};
  EvalContext context = {.pool = pool, .state = shared, .devices = {0}};
  for (auto _ : state) {
    EvalCall<D> call = {
        .op = op, .operands = operands, .results = outputs, .regions = {}, .context = context};
    HONE_CHECK(op.def().eval->template entry<D>().local(call).ok());
    benchmark::ClobberMemory();
  }
  double macs = flops(application, results) / 2 * static_cast<double>(state.iterations());
  state.counters["GMAC/s"] = benchmark::Counter(macs / 1e9, benchmark::Counter::kIsRate);
}

template <class D>
void add(const std::string& mode, const Case& test, DType dtype) {
  benchmark::RegisterBenchmark((mode + " " + test.name).c_str(),
                               [=](benchmark::State& state) { run<D>(state, test, dtype); })
      ->Arg(1)
      ->Arg(2)
      ->ArgName("threads")
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

const bool kAdded = [] {
  for (const Case& test : kCases) {
    add<WideDomain>("wide", test, DType::f32);
    add<Fp32Domain>("fp32", test, DType::f32);
  }
  add<WideDomain>("i32", kCases[0], DType::i32);
  return true;
}();

}  // namespace
}  // namespace hone::HONE_FILE
