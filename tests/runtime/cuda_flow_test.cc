#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>

#include "base/rng.h"
#include "runtime/cuda/cuda_executable.h"
#include "runtime/cuda/decide_kernel.h"
#include "tests/base/says_testing.h"
#include "tests/codegen/ptx_facts.h"
#include "tests/fake_cuda/library_testing.h"

// Control flow of a graph on a GPU: unrolled, decided by the GPU, or by the CPU.

namespace hone::HONE_FILE {
namespace {

using image::Place;
using tested::FakeCuda;
using tested::KeptCubins;
using tested::refuses;

constexpr char kPtx[] = ".version 7.0 // mixes, counts, asks";
constexpr fake::Gpu kOld = {.version = kConditionsVersion - 10};

// y = 3 y + symbol, modulo a prime.
void mix(void* const* buffers, const int64_t* symbols, void*, int64_t, int64_t) {
  auto* y = static_cast<int32_t*>(buffers[0]);
  *y = static_cast<int32_t>((int64_t{3} * *y + symbols[0]) % 1'000'003);
}
// n -= 1; is n not negative?
void count(void* const* buffers, const int64_t*, void*, int64_t, int64_t) {
  auto* n = static_cast<int32_t*>(buffers[0]);
  *static_cast<uint8_t*>(buffers[1]) = --*n >= 0 ? 1 : 0;
}
// Is y odd?
void ask(void* const* buffers, const int64_t*, void*, int64_t, int64_t) {
  *static_cast<uint8_t*>(buffers[1]) = *static_cast<const int32_t*>(buffers[0]) % 2 != 0 ? 1 : 0;
}
// The third time it cancels.
CancelToken* cancelled = nullptr;
int times_counted = 0;
void count_and_cancel(void* const* buffers, const int64_t*, void*, int64_t, int64_t) {
  if (++times_counted == 3) cancelled->cancel();
  *static_cast<uint8_t*>(buffers[1]) = 1;
}

enum Kernels : uint32_t { kMix, kCount, kAsk };

void add_kernels(const FakeCuda& cuda) {
  cuda.add(kPtx, "mix", {.function = mix, .buffers = 1, .symbols = 1});
  cuda.add(kPtx, "count", {.function = count, .buffers = 2});
  cuda.add(kPtx, "ask", {.function = ask, .buffers = 2});
}

Place result() { return {Place::Region::output, 0, 0, 4, {}}; }
Place arena(int64_t offset, int64_t bytes) { return {Place::Region::arena, 0, offset, bytes, {}}; }
image::Command mixing(int64_t symbol) { return {"mix", image::Launch{kMix, {result()}, {symbol}}}; }

// An image whose commands change y, which begins as x.
GpuImage image_of(image::Block commands, int64_t arena_bytes, uint32_t loops) {
  GpuImage made;
  Image& image = made.image;
  const Type number = Type::get(DType::i32, {1});
  image.name = "flow";
  image.inputs = {{"x", number}};
  image.outputs = {{"y", number}};
  image.arena_bytes = arena_bytes;
  image.loops = loops;
  for (const char* name : {"mix", "count", "ask"}) {
    image.kernels.push_back({.name = name, .object = nullptr, .phases = {{name, 1, false}}});
    GpuPhase phase;
    phase.symbol = name;
    phase.block_threads = 32;
    made.kernels.push_back({.ptx = kPtx, .capability = 80, .phases = {phase}});
  }
  image.commands = {{"begin", image::Copy{{Place::Region::input, 0, 0, 4, {}}, result()}}};
  std::ranges::move(commands, std::back_inserter(image.commands));
  return made;
}

Tensor number(int64_t value) {
  return Tensor::from_integers(Type::get(DType::i32, {1}), {{value}});
}

// `trips` times by a counter in the arena, which `init` sets there.
image::Command repeated(int64_t at, image::Block body) {
  return {"while",
          image::While{{{"count", image::Launch{kCount, {arena(at, 4), arena(at + 4, 1)}}}},
                       arena(at + 4, 1),
                       std::move(body)}};
}

// Random blocks, loops and branches in one another.
class RandomFlow {
 public:
  explicit RandomFlow(uint64_t seed) : rng_(seed) {}

  GpuImage make() {
    image::Block commands = block(3);
    GpuImage made = image_of({}, std::max<int64_t>(arena_, 256), loops_);
    // Counters begin with numbers that constants have.
    std::ranges::move(commands, std::back_inserter(made.image.commands));
    for (int64_t trips = 0; trips < 4; ++trips) made.image.constants.push_back(number(trips));
    return made;
  }

 private:
  image::Block block(int depth) {
    image::Block made;
    for (uint64_t i = 0, all = 1 + rng_.below(3); i < all; ++i) add(made, depth);
    return made;
  }

  void add(image::Block& to, int depth) {
    const uint64_t kind = depth == 0 ? 0 : rng_.below(4);
    const int64_t at = arena_;
    if (kind == 0) to.push_back(mixing(static_cast<int64_t>(rng_.below(1000))));
    if (kind == 1) {
      const uint32_t loop = loops_++;
      const auto trips = static_cast<int64_t>(rng_.below(4));
      to.push_back({"each", image::Repeat{loop, trips, rng_.below(2) == 0, block(depth - 1)}});
    }
    if (kind == 2) {
      arena_ += 64;
      const Place trips = {Place::Region::constant, static_cast<uint32_t>(rng_.below(4)), 0, 4, {}};
      to.push_back({"trips", image::Copy{trips, arena(at, 4)}});
      to.push_back(repeated(at, block(depth - 1)));
    }
    if (kind == 3) {
      arena_ += 64;
      to.push_back({"ask", image::Launch{kAsk, {result(), arena(at, 1)}}});
      image::Block then = block(depth - 1);
      image::Block otherwise = rng_.below(2) == 0 ? image::Block() : block(depth - 1);
      to.push_back({"if", image::Branch{arena(at, 1), std::move(then), std::move(otherwise)}});
    }
  }

  Rng rng_;
  int64_t arena_ = 0;
  uint32_t loops_ = 0;
};

// ---- Known counts ------------------------------------------------------------------------------

TEST(CudaFlow, ALoopOfAKnownCountIsUnrolledInAGraph) {
  const FakeCuda cuda(kOld);
  add_kernels(cuda);
  const auto device = cuda.device().value();
  const auto load = [&](int64_t trips) {
    return CudaExecutable::load(
               image_of({{"each", image::Repeat{0, trips, false, {mixing(1), mixing(2)}}}}, 0, 1),
               device)
        .value();
  };
  const auto fits = load(CudaExecutable::kMostSteps / 2 - 1);
  EXPECT_TRUE(fits->is_one_graph());
  const fake::Counts before = cuda.counts();
  const std::vector<Tensor> made = fits->run({{number(5)}}).value();
  const fake::Counts after = cuda.counts();
  EXPECT_EQ(after.launches - before.launches, CudaExecutable::kMostSteps - 2);
  EXPECT_LE(after.calls - before.calls, 6) << "one launch for all of them";
  int64_t y = 5;
  for (int64_t i = 0; i < CudaExecutable::kMostSteps - 2; ++i) y = (3 * y + 1 + i % 2) % 1'000'003;
  EXPECT_EQ(made[0].as<int32_t>()[0], y);
  // The copy to the output is a step, too.
  const auto too_long = load(CudaExecutable::kMostSteps / 2);
  EXPECT_FALSE(too_long->is_one_graph());
  EXPECT_TRUE(too_long->run({{number(5)}}).ok());
}

// ---- Conditions --------------------------------------------------------------------------------

GpuImage five_trips() {
  GpuImage made =
      image_of({{"trips", image::Copy{{Place::Region::constant, 0, 0, 4, {}}, arena(0, 4)}},
                repeated(0, {mixing(7)})},
               64, 0);
  made.image.constants = {number(5)};
  return made;
}

TEST(CudaFlow, TheGpuDecides) {
  const FakeCuda cuda;
  add_kernels(cuda);
  const auto device = cuda.device().value();
  const auto code = CudaExecutable::load(five_trips(), device).value();
  const CudaEntry entered = device->enter().value();  // so a run has no way to go, nor back
  EXPECT_TRUE(code->is_one_graph());
  for (int run = 0; run < 2; ++run) {
    const fake::Counts before = cuda.counts();
    ASSERT_TRUE(code->run({{number(1)}}).ok());
    const fake::Counts after = cuda.counts();
    EXPECT_EQ(after.decisions - before.decisions, 6);
    EXPECT_EQ(after.launches - before.launches, 5 + 6);
    EXPECT_EQ(after.copied_from - before.copied_from, 4) << "the result alone";
    EXPECT_LE(after.calls - before.calls, 6) << "one launch for all of it";
    EXPECT_EQ(after.allocations, before.allocations);
  }
}

TEST(CudaFlow, TheCpuDecidesIfTheDriverRefusesConditions) {
  const auto run = [](const fake::Gpu& gpu, bool is_resident) {
    const FakeCuda cuda(gpu);
    add_kernels(cuda);
    const auto device = cuda.device().value();
    CudaLoadOptions options;
    if (is_resident) options.resident = {0};
    const auto code = CudaExecutable::load(five_trips(), device, options).value();
    const auto arrays = CudaArrays::make(device, {number(1).type()}, "arrays").value();
    EXPECT_TRUE(arrays->write({{number(1)}}).ok());
    const CudaArray at[] = {arrays->at(0)};
    CancelToken cancel;
    Tensor made;
    for (int time = 0; time < 2; ++time) {
      const RunOptions with = {.cancel = &cancel};
      made = (is_resident ? code->run_beside({}, at, with) : code->run({{number(1)}}, with))
                 .value()[0];
      EXPECT_EQ(code->is_one_graph(), !gpu.refuses_conditions);
    }
    EXPECT_EQ(cuda.counts().decisions == 0, gpu.refuses_conditions);
    return made;
  };
  for (const bool is_resident : {false, true})
    EXPECT_TRUE(run({}, is_resident).same_bytes(run({.refuses_conditions = true}, is_resident)));
}

// It comes from the cache of machine code. Without one the driver compiles it, once for a GPU.
TEST(CudaFlow, OneKernelDecidesForAllModels) {
  KeptCubins cubins;
  const auto load_two = [](const FakeCuda& cuda, const CudaLoadOptions& options) {
    add_kernels(cuda);
    const auto device = cuda.device().value();
    const auto first = CudaExecutable::load(five_trips(), device, options).value(),
               second = CudaExecutable::load(five_trips(), device, options).value();
    for (const auto& code : {first, second}) {
      EXPECT_TRUE(code->is_one_graph());
      EXPECT_TRUE(code->run({{number(1)}}).ok());
    }
    return cuda.counts();
  };
  EXPECT_EQ(load_two(FakeCuda(), {}).texts, 1);
  for (int64_t links : {2, 0}) {
    const fake::Counts counts = load_two(FakeCuda(), {.cubins = cubins.store()});
    EXPECT_EQ(counts.texts, 0);
    EXPECT_EQ(counts.links, links) << "that of the model and this one";
  }
  cubins.kept.clear();
  for (int64_t links : {2, 0}) {
    const FakeCuda cuda;
    cuda.add(kDecidePtx, kDecideFunction, {.fate = {.is_refused = true}});
    const fake::Counts counts = load_two(cuda, {.cubins = cubins.store()});
    EXPECT_EQ(counts.texts, 1) << "its linker lacks the function";
    EXPECT_EQ(counts.links, links) << "it is asked once";
  }
}

// Code may take long to be made: constants of other models go to the GPU meanwhile.
TEST(CudaFlow, NobodyWaitsForMachineCodeOfOthers) {
  const FakeCuda cuda;
  const auto device = cuda.device().value();
  std::future<bool> resident;
  const auto module = device->shared_module(kDecidePtx, [&] {
    resident = std::async(std::launch::async, [&] { return device->resident(number(1)).ok(); });
    EXPECT_EQ(resident.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    return CudaModule::load(device, kDecidePtx);
  });
  EXPECT_TRUE(module.ok() && resident.get());
}

// The planted fault would be one of the fake driver.
TEST(CudaFlow, KernelsInBlocksOfConditionsBeginInTurn) {
  std::string ptx;
  for (const char* name : {"mix", "count", "ask"})
    ptx += fmt::format(".visible .entry {}(\ngriddepcontrol.wait;\n}}\n", name);
  const FakeCuda cuda;
  cuda.add(ptx, "mix", {.function = mix, .buffers = 1, .symbols = 1});
  cuda.add(ptx, "ask", {.function = ask, .buffers = 2});
  cuda.add(ptx, "count", {.function = count, .buffers = 2});
  GpuImage image =
      image_of({mixing(1),
                mixing(2),
                {"ask", image::Launch{kAsk, {result(), arena(0, 1)}}},
                {"if", image::Branch{arena(0, 1), {mixing(3), mixing(4)}, {mixing(5), mixing(6)}}}},
               64, 0);
  for (GpuKernel& kernel : image.kernels) kernel.ptx = ptx, kernel.capability = 90;
  const auto code = CudaExecutable::load(image, cuda.device().value()).value();
  EXPECT_TRUE(code->is_one_graph());
  EXPECT_EQ(cuda.counts().early, 2) << "the second one, and the one that asks";
  for (const int64_t x : {1, 2}) {
    int64_t y = 3 * (3 * x + 1) + 2;
    const int64_t first = y % 2 != 0 ? 3 : 5;
    y = 3 * (3 * y + first) + first + 1;
    EXPECT_EQ(code->run({{number(x)}}).value()[0].as<int32_t>()[0], y);
  }
}

TEST(CudaFlow, AgreesWithTheCpuThatDecides) {
  const FakeCuda cuda;
  int graphs = 0, decisions = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const GpuImage image = RandomFlow(seed).make();
    std::vector<Tensor> results[2];
    for (const bool is_old : {false, true}) {
      cuda.reset({.version = is_old ? kOld.version : kConditionsVersion, .seed = seed});
      add_kernels(cuda);
      const auto code = CudaExecutable::load(image, cuda.device().value()).value();
      graphs += !is_old && code->is_one_graph() ? 1 : 0;
      for (int64_t x : {1, 2, 1}) {
        Result<std::vector<Tensor>> made = code->run({{number(x)}});
        ASSERT_TRUE(made.ok()) << made.error().to_string();
        results[is_old ? 1 : 0].push_back((*made)[0]);
      }
      if (!is_old) decisions += cuda.counts().decisions > 0 ? 1 : 0;
      ASSERT_EQ(cuda.faults(), "") << seed;
    }
    for (size_t i = 0; i < results[0].size(); ++i)
      ASSERT_TRUE(results[0][i].same_bytes(results[1][i])) << seed;
  }
  EXPECT_EQ(graphs, 300);
  EXPECT_GT(decisions, 100);
}

// A loop that never ends by itself.
TEST(CudaFlow, EndsALoopOfTheGpuIfTheRunIsCancelled) {
  const FakeCuda cuda;
  add_kernels(cuda);
  cuda.add(kPtx, "count", {.function = count_and_cancel, .buffers = 2});
  const GpuImage image = image_of({repeated(0, {mixing(7)})}, 64, 0);
  const auto code = CudaExecutable::load(image, cuda.device().value()).value();
  ASSERT_TRUE(code->is_one_graph());
  for (int run = 0; run < 2; ++run) {
    CancelToken cancel;
    cancelled = &cancel;
    times_counted = 0;
    EXPECT_THAT(code->run({{number(1)}}, {.cancel = &cancel}),
                refuses(ErrorCode::interrupted, "stopped"));
    EXPECT_GE(times_counted, 3);
  }
}

TEST(CudaFlow, TheAssemblerTakesTheKernelThatDecides) {
  if (assembler() == nullptr) GTEST_SKIP() << "no assembler of NVIDIA";
  for (int64_t capability : {80, 90})
    EXPECT_EQ(assembler_says(kDecidePtx, capability, false, true), "");
}

}  // namespace
}  // namespace hone::HONE_FILE
