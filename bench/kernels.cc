// How near kernels come to what one core of this machine can do: typical ones as graphs of their
// own, compiled under the planner's plan for one thread, by the prices that come with hone. Weights
// are constants, as in models; all else that a kernel does with its operands is in its time. Two
// roofs are measured in turns with each kernel, so that what else the core's other threads do slows
// all of them down: multiply-adds in registers, and a copy of as many bytes as the kernel reads and
// writes. Convs are also measured without Winograd's transforms ("direct").

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "compile/compilation.h"
#include "ir/functional.h"
#include "ir/summary.h"
#include "ir/text.h"
#include "session/known_prices.h"
#include "target/probe_kernels.h"
#include "zoo/inputs.h"

namespace hone::HONE_FILE {
namespace {

struct Case {
  std::string_view name;
  std::string_view text;  // a graph; all parameters but the first become constants
};

constexpr Case kCases[] = {
    {"gemm_1008x1024x1024", R"(
graph @g(%x: f32[1008, 1024], %w: f32[1024, 1024]) {
  %y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  return %y
})"},
    {"gemm_128x768x3072_bias_gelu", R"(
graph @g(%x: f32[128, 768], %w: f32[768, 3072], %b: f32[3072]) {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %c = broadcast %b {dims = [128, 3072], map = [1]}
  %a = add %h, %c
  %y = gelu %a
  return %y
})"},
    {"gemm_1x2048x1000", R"(
graph @g(%x: f32[1, 2048], %w: f32[2048, 1000]) {
  %y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  return %y
})"},
    {"batched_gemm_12x128x64x128", R"(
graph @g(%x: f32[12, 128, 64], %w: f32[12, 64, 128]) {
  %y = dot %x, %w {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}
  return %y
})"},
    {"conv7x7_s2_3_64_at_224", R"(
graph @g(%x: f32[1, 3, 224, 224], %w: f32[64, 3, 7, 7]) {
  %y = conv %x, %w {stride = [2, 2], pad_low = [3, 3], pad_high = [3, 3]}
  return %y
})"},
    {"conv3x3_64_at_56", R"(
graph @g(%x: f32[1, 64, 56, 56], %w: f32[64, 64, 3, 3]) {
  %y = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1]}
  return %y
})"},
    {"conv3x3_128_at_28", R"(
graph @g(%x: f32[1, 128, 28, 28], %w: f32[128, 128, 3, 3]) {
  %y = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1]}
  return %y
})"},
    {"conv3x3_256_at_14", R"(
graph @g(%x: f32[1, 256, 14, 14], %w: f32[256, 256, 3, 3]) {
  %y = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1]}
  return %y
})"},
    {"conv3x3_512_at_7", R"(
graph @g(%x: f32[1, 512, 7, 7], %w: f32[512, 512, 3, 3]) {
  %y = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1]}
  return %y
})"},
    {"conv3x3_64_at_56_relu", R"(
graph @g(%x: f32[1, 64, 56, 56], %w: f32[64, 64, 3, 3]) {
  %c = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1]}
  %y = relu %c
  return %y
})"},
    {"conv1x1_64_256_at_56", R"(
graph @g(%x: f32[1, 64, 56, 56], %w: f32[256, 64, 1, 1]) {
  %y = conv %x, %w
  return %y
})"},
    {"conv1x1_512_128_at_28", R"(
graph @g(%x: f32[1, 512, 28, 28], %w: f32[128, 512, 1, 1]) {
  %y = conv %x, %w
  return %y
})"},
    {"conv1x1_1024_256_at_14", R"(
graph @g(%x: f32[1, 1024, 14, 14], %w: f32[256, 1024, 1, 1]) {
  %y = conv %x, %w
  return %y
})"},
    {"conv1x1_512_2048_at_7", R"(
graph @g(%x: f32[1, 512, 7, 7], %w: f32[2048, 512, 1, 1]) {
  %y = conv %x, %w
  return %y
})"},
    {"conv1x1_s2_256_512_at_56", R"(
graph @g(%x: f32[1, 256, 56, 56], %w: f32[512, 256, 1, 1]) {
  %y = conv %x, %w {stride = [2, 2]}
  return %y
})"},
    {"conv3_64_at_4096", R"(
graph @g(%x: f32[1, 64, 4096], %w: f32[64, 64, 3]) {
  %y = conv %x, %w {pad_low = [1], pad_high = [1]}
  return %y
})"},
    {"transposed4x4_s2_128_64_at_28", R"(
graph @g(%x: f32[1, 128, 28, 28], %w: f32[64, 128, 4, 4]) {
  %y = conv %x, %w {pad_low = [2, 2], pad_high = [2, 2], input_dilation = [2, 2]}
  return %y
})"},
    {"depthwise5x5_240_at_28", R"(
graph @g(%x: f32[1, 240, 28, 28], %w: f32[240, 1, 5, 5]) {
  %y = conv %x, %w {pad_low = [2, 2], pad_high = [2, 2], groups = 240}
  return %y
})"},
    {"depthwise3x3_96_at_112", R"(
graph @g(%x: f32[1, 96, 112, 112], %w: f32[96, 1, 3, 3]) {
  %y = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1], groups = 96}
  return %y
})"},
    {"depthwise3x3_384_at_14", R"(
graph @g(%x: f32[1, 384, 14, 14], %w: f32[384, 1, 3, 3]) {
  %y = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1], groups = 384}
  return %y
})"},
    {"grouped3x3_g32_128_at_56", R"(
graph @g(%x: f32[1, 128, 56, 56], %w: f32[128, 4, 3, 3]) {
  %y = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1], groups = 32}
  return %y
})"},
    {"max_pool3x3_s2_64_at_112", R"(
graph @g(%x: f32[1, 64, 112, 112]) {
  %y = window_reduce %x {kind = max, window = [1, 1, 3, 3], stride = [1, 1, 2, 2],
                           pad_low = [0, 0, 1, 1], pad_high = [0, 0, 1, 1]}
  return %y
})"},
    {"average_pool3x3_192_at_35", R"(
graph @g(%x: f32[1, 192, 35, 35]) {
  %y = window_reduce %x {kind = sum, window = [1, 1, 3, 3], stride = [1, 1, 1, 1],
                           pad_low = [0, 0, 1, 1], pad_high = [0, 0, 1, 1]}
  return %y
})"},
    {"softmax_1536x128", R"(
graph @g(%x: f32[1536, 128]) {
  %y = softmax %x
  return %y
})"},
    {"attention_12x512x64", R"(
graph @g(%x: f32[12, 512, 64], %k: f32[12, 64, 512], %v: f32[12, 512, 64]) {
  %s = dot %x, %k {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}
  %p = softmax %s {axis = 2}
  %y = dot %p, %v {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}
  return %y
})"},
    {"layer_norm_128x768", R"(
graph @g(%x: f32[128, 768], %s: f32[768], %b: f32[768]) {
  %y = layer_norm %x, %s, %b
  return %y
})"},
    {"gelu_128x3072", R"(
graph @g(%x: f32[128, 3072]) {
  %y = gelu %x
  return %y
})"},
    {"add_relu_256x56x56", R"(
graph @g(%x: f32[256, 56, 56], %z: f32[256, 56, 56]) {
  %a = add %x, %z
  %y = relu %a
  return %y
})"},
    {"transpose_12x128x64", R"(
graph @g(%x: f32[128, 12, 64]) {
  %y = transpose %x {permutation = [1, 0, 2]}
  return %y
})"},
};

Result<Graph> graph_of(const Case& c) {
  const Graph given = HONE_TRY(parse_graph(c.text));
  const std::vector<Tensor> values = HONE_TRY(random_inputs(given, 1));
  Builder b("kernel");
  std::vector<Value> arguments = {b.parameter("x", given.input_types()[0])};
  for (size_t i = 1; i < values.size(); ++i) arguments.push_back(b.constant(values[i]));
  return b.finish(b.inlined(given, arguments));
}

// Convolutions and pools.
bool is_of_images(const Case& c) {
  return c.text.find(" = conv ") != std::string_view::npos ||
         c.text.find(" = window_reduce ") != std::string_view::npos;
}

// In a model, layouts are as its neighbours and it agree on: here two 1x1 convolutions, which are
// not measured. Its result is called "y".
Result<Graph> between_convs(const Graph& given) {
  Builder b("between");
  const auto conv1x1 = [&](Value x) {
    const int64_t channels = x.dim(1).value();
    Dims dims(static_cast<size_t>(x.rank()), 1);
    dims[0] = dims[1] = channels;
    const Type type = Type::get(DType::f32, dims);
    const size_t count = static_cast<size_t>(channels * channels);
    return conv(x, b.constant(Tensor::from_reals(type, std::vector<double>(count, 0.5))));
  };
  const Value x = conv1x1(b.parameter("x", given.input_types()[0]));
  return b.finish({conv1x1(b.inlined(given, std::vector{x})[0].named("y"))});
}

// The image with nothing but the command that computes "y", which reads its input.
Result<Image> image_of_y(const Plan& plan, const Image& whole) {
  const auto group = std::ranges::find_if(plan.fuse, [](const Group& group) {
    return std::ranges::find(group.nodes, "y") != group.nodes.end();
  });
  if (group == plan.fuse.end()) return unsupported("no kernel of the plan computes %y");
  const auto y = std::ranges::find(whole.commands, group->kernel, &image::Command::name);
  Image image = whole;
  image.commands = {*y};
  std::vector<image::Place>& places = std::get<image::Launch>(image.commands[0].kind).buffers;
  const auto x = std::ranges::find(places, image::Place::Region::arena, &image::Place::region);
  *x = {.region = image::Place::Region::input, .bytes = x->bytes};
  image.inputs = {{"x", Type::get(DType::f32, {x->bytes / 4})}};
  image.outputs = {};
  return image;
}

// Of this thread, which does all the work: what others did on its core meanwhile does not count.
double now() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// What one sample of ten reaches, as in `hone target probe`: others only slow samples down.
double best(std::vector<double>& samples) {
  const auto chosen = samples.begin() + static_cast<ptrdiff_t>(samples.size() / 10);
  std::nth_element(samples.begin(), chosen, samples.end());
  return *chosen;
}

// Operations per second of multiply-adds in registers, in samples of half a millisecond.
class Peak {
 public:
  explicit Peak(const Target& target) {
    for (const PeakKernel& kernel : peak_kernels(target.isa, target.extensions))
      if (kernel.dtype == DType::f32) kernel_ = kernel;
    while (time() < 5e-4) repetitions_ *= 2;
  }
  void sample() { samples_.push_back(time()); }
  double rate() { return kernel_.operations * static_cast<double>(repetitions_) / best(samples_); }

 private:
  double time() const {
    const double start = now();
    kernel_.run(repetitions_);
    return now() - start;
  }

  PeakKernel kernel_ = {};
  int64_t repetitions_ = 1024;
  std::vector<double> samples_;
};

// Bytes per second of a copy that reads and writes so many.
class CopyRate {
 public:
  explicit CopyRate(int64_t bytes)
      : bytes_(bytes), from_(static_cast<size_t>(bytes / 2), std::byte{1}), to_(from_.size()) {
    repetitions_ = std::max<int64_t>(1, (int64_t{4} << 20) / std::max<int64_t>(bytes, 1));
  }
  void sample() {
    const double start = now();
    for (int64_t i = 0; i < repetitions_; ++i) {
      std::memcpy(to_.data(), from_.data(), to_.size());
      benchmark::ClobberMemory();
    }
    samples_.push_back(now() - start);
  }
  double rate() { return static_cast<double>(bytes_ * repetitions_) / best(samples_); }

 private:
  int64_t bytes_, repetitions_;
  std::vector<std::byte> from_, to_;
  std::vector<double> samples_;
};

Tensor random(Type type) {
  Rng rng(2);
  std::vector<double> numbers(static_cast<size_t>(type.static_elements()));
  for (double& number : numbers) number = rng.normal();
  return Tensor::from_reals(type, numbers);
}

enum class Setting : uint8_t { alone, between_convs, direct, direct_between_convs };

Status measure(benchmark::State& state, const Case& c, Setting setting) {
  const bool is_between =
      setting == Setting::between_convs || setting == Setting::direct_between_convs;
  const Target target = HONE_TRY(host_target());
  const Graph alone = HONE_TRY(graph_of(c));
  CompileOptions options;
  options.plan.threads = 1;
  options.cost = KnownPrices({}, true).cost(target, [](std::string_view) {});
  options.heuristics.winograd = setting == Setting::alone || setting == Setting::between_convs;
  options.heuristics.pool_chains = false;  // y is a kernel of its own
  Compilation compilation(is_between ? HONE_TRY(between_convs(alone)) : alone, target, options);
  Image image = *HONE_TRY(compilation.image());
  if (is_between) image = HONE_TRY(image_of_y(*HONE_TRY(compilation.plan()), image));
  const std::shared_ptr<const Executable> executable = HONE_TRY(Executable::load(image));
  const Tensor input = random(executable->inputs()[0].type);
  Tensor output = Tensor::zeros(alone.output_types()[0]);
  const void* from[] = {input.bytes().data()};
  void* to[] = {output.mutable_bytes().data()};
  const std::span<void* const> outputs(to, executable->outputs().size());
  HONE_TRY(executable->run(from, outputs));

  const GraphSummary summary = HONE_TRY(summarize(alone));
  const int64_t bytes = summary.constant_bytes + alone.input_types()[0].static_bytes() +
                        alone.output_types()[0].static_bytes();
  Peak peak(target);
  CopyRate copy(bytes);
  std::vector<double> samples;
  for (auto _ : state) {
    peak.sample();
    copy.sample();
    const double start = now();
    HONE_TRY(executable->run(from, outputs));
    samples.push_back(now() - start);
    state.SetIterationTime(samples.back());
  }
  const double seconds = best(samples);
  state.counters["best_us"] = 1e6 * seconds;
  state.counters["gops"] = 1e-9 * summary.flops / seconds;
  state.counters["gbytes"] = 1e-9 * static_cast<double>(bytes) / seconds;
  state.counters["peak_gops"] = 1e-9 * peak.rate();
  state.counters["percent_of_peak"] = 100 * summary.flops / seconds / peak.rate();
  state.counters["percent_of_copy"] = 100 * static_cast<double>(bytes) / seconds / copy.rate();
  return {};
}

const int registered = [] {
  const auto add = [](const Case& c, Setting setting, std::string_view suffix) {
    const auto run = [&c, setting](benchmark::State& state) {
      const Status status = measure(state, c, setting);
      if (!status.ok()) state.SkipWithError(status.error().to_string().c_str());
    };
    const std::string name = fmt::format("{}{}", c.name, suffix);
    benchmark::RegisterBenchmark(name.c_str(), run)->UseManualTime()->Unit(benchmark::kMicrosecond);
  };
  for (const Case& c : kCases) {
    add(c, Setting::alone, "");
    if (!is_of_images(c)) continue;
    // A transposed conv becomes several kernels.
    const bool is_one = c.text.find("input_dilation") == std::string_view::npos;
    if (is_one) add(c, Setting::between_convs, "/between_convs");
    if (c.name.find("conv3") == std::string_view::npos) continue;
    add(c, Setting::direct, "/direct");
    add(c, Setting::direct_between_convs, "/direct_between_convs");
  }
  return 0;
}();

}  // namespace
}  // namespace hone::HONE_FILE
