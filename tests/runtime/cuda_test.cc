#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include "base/checked_math.h"
#include "runtime/cuda/cuda_executable.h"
#include "runtime/cuda/cuda_memory_pool.h"
#include "tests/base/says_testing.h"
#include "tests/fake_cuda/library_testing.h"
#include "tests/runtime/compile.h"

namespace hone::HONE_FILE {
namespace {

using tested::FakeCuda;
using tested::KeptCubins;
using tested::refuses;
using tested::says;

constexpr int64_t kNumbers = 1000;
constexpr char kPtx[] = ".version 7.0 // adds a number, doubles";

// y[i] = x[i] + symbol, for the trips [begin, end).
void add_symbol(void* const* buffers, const int64_t* symbols, void*, int64_t begin, int64_t end) {
  const auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  for (int64_t i = begin; i < end; ++i) y[i] = x[i] + static_cast<float>(symbols[0]);
}
// y[i] *= w[0], through scratch, which every trip finds in an unknown state.
void scale(void* const* buffers, const int64_t*, void* scratch, int64_t begin, int64_t end) {
  const auto* w = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  auto* own = static_cast<float*>(scratch);
  for (int64_t i = begin; i < end; ++i) {
    own[0] = y[i];
    y[i] = own[0] * w[0];
  }
}
// Counts down: x -= 1, and says whether something is left.
void count_down(void* const* buffers, const int64_t*, void*, int64_t, int64_t) {
  auto* x = static_cast<float*>(buffers[0]);
  *static_cast<uint8_t*>(buffers[1]) = --*x > 0 ? 1 : 0;
}

using image::Place;
Place input(uint32_t i, int64_t bytes) { return {Place::Region::input, i, 0, bytes, {}}; }
Place output(uint32_t i, int64_t bytes) { return {Place::Region::output, i, 0, bytes, {}}; }
Place constant(uint32_t i, int64_t bytes) { return {Place::Region::constant, i, 0, bytes, {}}; }
Place arena(int64_t offset, int64_t bytes) { return {Place::Region::arena, 0, offset, bytes, {}}; }

Type numbers(int64_t count = kNumbers) { return Type::get(DType::f32, {count}); }

GpuKernel kernel_of(const char* function, GpuPhase phase = {}) {
  phase.symbol = function;
  if (phase.block_threads == 0) phase.block_threads = 128;
  return {.ptx = kPtx, .capability = 80, .phases = {phase}};
}

// y = (x + 5) * w: a launch, a copy, a launch.
GpuImage straight_image() {
  GpuImage made;
  Image& image = made.image;
  const int64_t bytes = 4 * kNumbers;
  image.name = "straight";
  image.inputs = {{"x", numbers()}};
  image.outputs = {{"y", numbers()}};
  image.constants = {Tensor::from_reals(numbers(1), std::vector<double>{3})};
  image.arena_bytes = bytes;
  image.kernels = {{.name = "add", .object = nullptr, .phases = {{"add", kNumbers, true}}},
                   {.name = "scale", .object = nullptr, .phases = {{"scale", kNumbers, true}}}};
  made.kernels = {kernel_of("add"), kernel_of("scale", {.symbol = "",
                                                        .block_threads = 64,
                                                        .shared_bytes = 64 << 10,
                                                        .scratch_bytes = 64})};
  image.commands = {
      {"add", image::Launch{0, {input(0, bytes), arena(0, bytes)}, {5}}},
      {"move", image::Copy{arena(0, bytes), output(0, bytes)}},
      {"scale", image::Launch{1, {constant(0, 4), output(0, bytes)}}},
  };
  return made;
}

// s' = s * w in the place of s, and y = (x + 5) * s'[0].
GpuImage carrying_image() {
  GpuImage made = straight_image();
  Image& image = made.image;
  const int64_t bytes = 4 * kNumbers;
  image.name = "carrying";
  image.inputs = {{"x", numbers()}, {"s", numbers()}, {"w", numbers(1)}};
  image.outputs = {{"y", numbers()}, {"s.next", numbers()}};
  image.donations = {{1, 1}};
  image.constants = {};
  image.commands = {
      {"keep", image::Copy{input(1, bytes), output(1, bytes)}},
      {"grow", image::Launch{1, {input(2, 4), output(1, bytes)}}},
      {"add", image::Launch{0, {input(0, bytes), output(0, bytes)}, {5}}},
      {"scale", image::Launch{1, {output(1, bytes), output(0, bytes)}}},
  };
  return made;
}

// The count of trips of a loop that ends when a kernel says so.
GpuImage looping_image() {
  GpuImage made;
  Image& image = made.image;
  image.name = "looping";
  image.inputs = {{"x", numbers(1)}};
  image.outputs = {{"left", numbers(1)}, {"trips", numbers(4)}};
  image.constants = {Tensor::from_reals(numbers(4), std::vector<double>{0, 0, 0, 0})};
  image.arena_bytes = 256;
  image.loops = 1;
  image.kernels = {{.name = "add", .object = nullptr, .phases = {{"add", 1, true}}},
                   {.name = "count", .object = nullptr, .phases = {{"count", 1, false}}}};
  made.kernels = {kernel_of("add"), kernel_of("count")};
  Place step = output(1, 4);
  step.steps = {{0, 4}};
  image.commands = {
      {"copy", image::Copy{input(0, 4), output(0, 4)}},
      {"clear", image::Copy{constant(0, 16), output(1, 16)}},
      {"each", image::Repeat{0, 4, false, {{"one", image::Launch{0, {input(0, 4), step}, {2}}}}}},
      {"loop", image::While{{{"count", image::Launch{1, {output(0, 4), arena(0, 1)}}}},
                            arena(0, 1),
                            {{"nothing", image::Copy{arena(64, 4), arena(128, 4)}}}}},
  };
  return made;
}

void add_kernels(const FakeCuda& cuda) {
  cuda.add(kPtx, "add", {.function = add_symbol, .buffers = 2, .symbols = 1});
  cuda.add(kPtx, "scale",
           {.function = scale,
            .buffers = 2,
            .symbols = 0,
            .cpu_scratch_bytes = 64,
            .thread_scratch_bytes = 64});
  cuda.add(kPtx, "count", {.function = count_down, .buffers = 2, .symbols = 0});
}

Tensor x_values(int64_t count = kNumbers) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i));
  return Tensor::from_reals(numbers(count), values);
}

void expect_straight(const Result<std::vector<Tensor>>& outputs) {
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  const std::span<const float> y = (*outputs)[0].as<float>();
  for (int64_t i = 0; i < kNumbers; ++i)
    ASSERT_EQ(y[static_cast<size_t>(i)], static_cast<float>(3 * (i + 5))) << i;
}

// ---- The driver --------------------------------------------------------------------------------

TEST(CudaDriver, IsRefusedWithTheReasonAndAWayOut) {
  const FakeCuda cuda;
  EXPECT_THAT(CudaDriver::open("/nowhere/libcuda.so.1"),
              refuses(ErrorCode::unsupported, "no NVIDIA driver...nowhere...CPU"));
  EXPECT_THAT(CudaDriver::open("libm.so.6"),
              refuses(ErrorCode::unsupported, "too old...libm.so.6...cuInit"));
  const auto with = [&](fake::Gpu gpu) {
    cuda.reset(gpu);
    return cuda.device();
  };
  EXPECT_THAT(with({.devices = 0}), refuses(ErrorCode::unsupported, "no GPU"));
  EXPECT_THAT(with({.version = 11080}),
              refuses(ErrorCode::unsupported, "too old...CUDA 11.8...CUDA 12.0"));
  EXPECT_THAT(with({.capability = 75}),
              refuses(ErrorCode::unsupported, "cuda:0...Fake GPU...sm_75...sm_80"));
  cuda.reset({.devices = 2});
  EXPECT_TRUE(cuda.device(1).ok());
  EXPECT_THAT(cuda.device(2), refuses(ErrorCode::unsupported, "cuda:2...2...CPU"));
}

TEST(CudaDriver, SaysWhatTheGpuIs) {
  const FakeCuda cuda({.capability = 89, .sms = 128, .memory = 1 << 20});
  const auto device = cuda.device().value();
  EXPECT_EQ(device->name(), "Fake GPU");
  EXPECT_EQ(device->capability(), 89);
  EXPECT_EQ(device->sms(), 128);
  EXPECT_EQ(device->memory_bytes(), 1 << 20);
  EXPECT_EQ(device->free_bytes().value(), 1 << 20);
  EXPECT_EQ(cuda_version_text(device->driver().version()), "CUDA 12.4");
}

// ---- Kernels that begin early -------------------------------------------------------------------

// Both kernels wait for those before them, as their texts say. `line` says it.
std::string waiting_ptx(const std::string& line) {
  return fmt::format(".visible .entry add(\n{0}\n}}\n.visible .entry scale(\n{0}\n}}\n", line);
}

GpuImage waiting_image(const std::string& ptx) {
  GpuImage made = straight_image();
  const int64_t bytes = 4 * kNumbers;
  // No copy between them: y = x + 5, y *= w.
  made.image.commands = {
      {"add", image::Launch{0, {input(0, bytes), output(0, bytes)}, {5}}},
      {"scale", image::Launch{1, {constant(0, 4), output(0, bytes)}}},
  };
  for (GpuKernel& kernel : made.kernels) kernel.ptx = ptx, kernel.capability = 90;
  return made;
}

void add_waiting(const FakeCuda& cuda, const std::string& ptx) {
  cuda.add(ptx, "add", {.function = add_symbol, .buffers = 2, .symbols = 1});
  cuda.add(ptx, "scale",
           {.function = scale,
            .buffers = 2,
            .symbols = 0,
            .cpu_scratch_bytes = 64,
            .thread_scratch_bytes = 64});
}

// The first kernel of a run has none before it.
TEST(CudaExecutable, KernelsThatWaitBeginEarly) {
  const std::string ptx = waiting_ptx("griddepcontrol.wait;");
  const FakeCuda cuda;
  add_waiting(cuda, ptx);
  const auto code = CudaExecutable::load(waiting_image(ptx), cuda.device().value()).value();
  expect_straight(code->run({{x_values()}}));
  EXPECT_EQ(cuda.counts().early, 1);
}

// A driver or a GPU that cannot, a copy between them, and a kernel that does not say it.
TEST(CudaExecutable, OtherKernelsBeginInTurn) {
  const std::string ptx = waiting_ptx("griddepcontrol.wait;");
  const auto early = [&](const fake::Gpu& gpu, const GpuImage& image, const std::string& text) {
    const FakeCuda cuda(gpu);
    add_waiting(cuda, text);
    const auto code = CudaExecutable::load(image, cuda.device().value()).value();
    expect_straight(code->run({{x_values()}}));
    return cuda.counts().early;
  };
  EXPECT_EQ(early({}, waiting_image(ptx), ptx), 1);
  EXPECT_EQ(early({.version = 12020}, waiting_image(ptx), ptx), 0);
  GpuImage old = waiting_image(ptx);
  for (GpuKernel& kernel : old.kernels) kernel.capability = 80;
  EXPECT_EQ(early({.capability = 80}, old, ptx), 0);
  const std::string plain = waiting_ptx("ret;");
  EXPECT_EQ(early({}, waiting_image(plain), plain), 0);
  GpuImage copies = straight_image();
  for (GpuKernel& kernel : copies.kernels) kernel.ptx = ptx;
  EXPECT_EQ(early({}, copies, ptx), 0);
}

// The planted fault: code that names the wait, but does not carry it out.
TEST(CudaExecutable, AWaitThatIsDroppedIsFound) {
  const std::string ptx = waiting_ptx("// griddepcontrol.wait;");
  const FakeCuda cuda;
  add_waiting(cuda, ptx);
  const auto code = CudaExecutable::load(waiting_image(ptx), cuda.device().value()).value();
  const std::vector<Tensor> outputs = code->run({{x_values()}}).value();
  EXPECT_NE(outputs[0].as<float>()[1], 18);
}

// ---- Runs --------------------------------------------------------------------------------------

TEST(CudaExecutable, RunsAStraightProgramAsOneGraph) {
  const FakeCuda cuda;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    cuda.reset({.seed = seed});
    add_kernels(cuda);
    const auto code = CudaExecutable::load(straight_image(), cuda.device().value()).value();
    EXPECT_TRUE(code->is_one_graph());
    for (int run = 0; run < 3; ++run) expect_straight(code->run({{x_values()}}));
    EXPECT_EQ(cuda.faults(), "");
  }
}

// Whatever it does, a run finds the memory that the load has made.
TEST(CudaExecutable, AllocatesNothingInARun) {
  const FakeCuda cuda;
  add_kernels(cuda);
  const auto device = cuda.device().value();
  const auto straight = CudaExecutable::load(straight_image(), device).value();
  const auto looping = CudaExecutable::load(looping_image(), device).value();
  const fake::Counts before = cuda.counts();
  for (int run = 0; run < 3; ++run) {
    expect_straight(straight->run({{x_values()}}));
    EXPECT_TRUE(looping->run({{x_values(1)}}).ok());
  }
  const fake::Counts after = cuda.counts();
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.graphs, before.graphs);
  EXPECT_EQ(after.copied_to - before.copied_to, 3 * (4 * kNumbers + 4));
}

TEST(CudaExecutable, DecidesOnTheHostIfTheDriverIsOld) {
  const FakeCuda cuda({.version = kConditionsVersion - 10});
  add_kernels(cuda);
  const auto code = CudaExecutable::load(looping_image(), cuda.device().value()).value();
  EXPECT_FALSE(code->is_one_graph());
  const Tensor three = Tensor::from_reals(numbers(1), std::vector<double>{3});
  const std::vector<Tensor> outputs = code->run({{three}}).value();
  EXPECT_EQ(outputs[0].as<float>()[0], 0);
  for (float one : outputs[1].as<float>()) EXPECT_EQ(one, 5);
}

TEST(CudaExecutable, TimesEachCommand) {
  const FakeCuda cuda;
  add_kernels(cuda);
  const auto code = CudaExecutable::load(straight_image(), cuda.device().value()).value();
  Profile profile;
  for (int run = 0; run < 2; ++run)
    expect_straight(code->run({{x_values()}}, {.profile = &profile}));
  ASSERT_EQ(profile.size(), 3U);
  EXPECT_EQ(profile[0].kernel, "add");
  EXPECT_EQ(profile[1].command, "move");
  for (const CommandTime& one : profile) {
    EXPECT_EQ(one.runs, 2);
    EXPECT_GT(one.seconds, 0);
    EXPECT_LE(one.least, one.seconds);
  }
}

TEST(CudaExecutable, TakesTurnsOnSeveralThreads) {
  const FakeCuda cuda;
  add_kernels(cuda);
  const auto code = CudaExecutable::load(straight_image(), cuda.device().value()).value();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int run = 0; run < 5; ++run) expect_straight(code->run({{x_values()}}));
    });
  for (std::thread& one : threads) one.join();
}

TEST(CudaExecutable, SharesConstantsOfTheSameTensor) {
  const FakeCuda cuda;
  add_kernels(cuda);
  const auto device = cuda.device().value();
  const GpuImage image = straight_image();
  const auto one = CudaExecutable::load(image, device).value();
  EXPECT_EQ(device->missing_bytes(image.image.constants), 0);
  const int64_t before = device->free_bytes().value();
  const auto two = CudaExecutable::load(image, device).value();
  EXPECT_EQ(before - device->free_bytes().value(), two->device_bytes() - 4);
}

TEST(CudaExecutable, RunsKernelsWithoutCodeForTheGpuOnTheCpu) {
  const FakeCuda cuda;
  add_kernels(cuda);
  GpuImage image = straight_image();
  image.image.kernels[1].object = tested::compile(R"(
      extern "C" void scale(void* const* buffers, const long*, void*, long begin, long end) {
        const float* w = static_cast<const float*>(buffers[0]);
        float* y = static_cast<float*>(buffers[1]);
        for (long i = begin; i < end; ++i) y[i] *= w[0];
      })");
  image.kernels[1] = {};
  const auto code = CudaExecutable::load(image, cuda.device().value()).value();
  EXPECT_FALSE(code->is_one_graph());
  expect_straight(code->run({{x_values()}}));
}

// ---- Runs beside what lies on the GPU ----------------------------------------------------------

const CudaLoadOptions kCarries = {.resident = {1, 2}};  // of carrying_image()

Tensor all_of(double value, int64_t count = kNumbers) {
  return Tensor::from_reals(numbers(count), std::vector<double>(static_cast<size_t>(count), value));
}

// s is 2 and w is 3.
std::unique_ptr<CudaArrays> arrays_on(const std::shared_ptr<const CudaDevice>& device) {
  std::unique_ptr<CudaArrays> made =
      CudaArrays::make(device, {numbers(), numbers(1)}, "arrays of a test").value();
  EXPECT_TRUE(made->write({{all_of(2), all_of(3, 1)}}).ok());
  return made;
}

TEST(CudaArrays, BeginAsZerosAndGiveBackWhatWasWritten) {
  const FakeCuda cuda;
  const auto device = cuda.device().value();
  const auto made = CudaArrays::make(device, {numbers(3), numbers(0), numbers(5)}, "some").value();
  EXPECT_EQ(made->at(2).address % CudaMemory::kAlignment, 0U);
  const std::vector<Tensor> zeros = made->read().value();
  for (const Tensor& each : zeros)
    for (float one : each.as<float>()) EXPECT_EQ(one, 0);
  const std::vector<Tensor> wanted = {x_values(3), x_values(0), x_values(5)};
  ASSERT_TRUE(made->write(wanted).ok());
  const std::vector<Tensor> read = made->read().value();
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(read[i].same_bytes(wanted[i]));
  EXPECT_THAT(CudaArrays::make(device, {numbers(1 << 29)}, "the numbers of a test"),
              refuses(ErrorCode::limit,
                      "1.0 GiB...free...2.0 GiB are needed for the numbers of a test...missing"));
}

// Some numbers go in and others come out, and nothing of the arrays crosses the bus.
TEST(CudaExecutable, ChangesArraysWhereTheyLie) {
  const FakeCuda cuda;
  add_kernels(cuda);
  const auto device = cuda.device().value();
  const auto code = CudaExecutable::load(carrying_image(), device, kCarries).value();
  EXPECT_TRUE(code->is_one_graph());
  const auto arrays = arrays_on(device), others = arrays_on(device);
  const auto expect_run = [&](const CudaArrays& beside, float factor) {
    const CudaArray both[] = {beside.at(0), beside.at(1)};
    const Result<std::vector<Tensor>> made = code->run_beside({{x_values()}}, both);
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    ASSERT_EQ(made->size(), 1U);
    const std::span<const float> y = (*made)[0].as<float>();
    for (int64_t i = 0; i < kNumbers; ++i)
      ASSERT_EQ(y[static_cast<size_t>(i)], static_cast<float>(i + 5) * factor) << i;
  };
  expect_run(*arrays, 6);
  expect_run(*others, 6);
  const fake::Counts before = cuda.counts();
  expect_run(*arrays, 18);
  expect_run(*others, 18);
  expect_run(*others, 54);
  const fake::Counts after = cuda.counts();
  EXPECT_EQ(after.copied_to - before.copied_to, 3 * 4 * kNumbers);
  EXPECT_EQ(after.copied_from - before.copied_from, 3 * 4 * kNumbers);
  EXPECT_EQ(after.copied, 0) << "the donor's place is the output's";
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.graphs, before.graphs) << "each pair of arrays has its graph";
  EXPECT_TRUE(arrays->read().value()[0].same_bytes(all_of(18)));
  EXPECT_TRUE(others->read().value()[0].same_bytes(all_of(54)));
}

TEST(CudaExecutable, AllocatesNothingForWhatLiesOnTheGpu) {
  const FakeCuda cuda;
  add_kernels(cuda);
  const auto device = cuda.device().value();
  const auto alone = CudaExecutable::load(carrying_image(), device).value();
  const auto beside = CudaExecutable::load(carrying_image(), device, kCarries).value();
  const auto piece = round_up(4 * kNumbers, CudaMemory::kAlignment);
  EXPECT_EQ(alone->device_bytes() - beside->device_bytes(), 2 * piece + CudaMemory::kAlignment);
  const std::vector<Tensor> made = alone->run({{x_values(), all_of(2), all_of(3, 1)}}).value();
  EXPECT_TRUE(made[1].same_bytes(all_of(6)));
}

// Arrays of a caller: the state changes where it lies, and a graph comes with the second run.
TEST(CudaExecutable, ChangesArraysOfTheCallerInPlace) {
  const FakeCuda cuda;
  add_kernels(cuda);
  const auto device = cuda.device().value();
  const auto code = CudaExecutable::load(carrying_image(), device).value();
  ASSERT_EQ(code->donors()[1], 1U);
  const auto ports =
      CudaArrays::make(device, {numbers(), numbers(), numbers(1), numbers()}, "arrays of a test")
          .value();
  ASSERT_TRUE(ports->write({{x_values(), all_of(2), all_of(3, 1), all_of(0)}}).ok());
  const auto at = [&](size_t i) { return ports->at(i).address; };
  const cuda::Address from[] = {at(0), at(1), at(2)}, to[] = {at(3), at(1)};
  const fake::Counts before = cuda.counts();
  for (int run = 0; run < 4; ++run) {
    const Status good = code->run_on_device(from, to, nullptr);
    ASSERT_TRUE(good.ok()) << good.error().to_string();
    EXPECT_EQ(cuda.counts().graphs - before.graphs, run > 0 ? 1 : 0) << run;
  }
  EXPECT_EQ(cuda.counts().allocations, before.allocations);
  EXPECT_EQ(cuda.counts().copied, 0);
  EXPECT_EQ(cuda.counts().copied_to, before.copied_to);
  const std::vector<Tensor> now = ports->read().value();
  EXPECT_TRUE(now[1].same_bytes(all_of(2 * 81)));
  EXPECT_EQ(now[3].as<float>()[1], 6 * 2 * 81);

  const auto refused = [&](size_t y, size_t s) {
    const cuda::Address other[] = {at(y), at(s)};
    return code->run_on_device(from, other, nullptr);
  };
  EXPECT_THAT(refused(1, 1), refuses(ErrorCode::bad_input, "overlaps"));
  EXPECT_THAT(refused(0, 1), refuses(ErrorCode::bad_input, "overlaps"));
  EXPECT_THAT(refused(3, 0), refuses(ErrorCode::bad_input, "overlaps"));
  const cuda::Address nowhere[] = {at(0), 0, at(2)};
  EXPECT_THAT(code->run_on_device(nowhere, to, nullptr),
              refuses(ErrorCode::bad_input, "input 's'...address 0"));
}

TEST(CudaExecutable, KeepsTheGraphsOfTheLastArrays) {
  const FakeCuda cuda;
  add_kernels(cuda);
  const auto device = cuda.device().value();
  const auto code = CudaExecutable::load(carrying_image(), device, kCarries).value();
  std::vector<std::unique_ptr<CudaArrays>> all;
  for (int i = 0; i < 20; ++i) all.push_back(arrays_on(device));
  const auto run = [&](const CudaArrays& beside) {
    const CudaArray both[] = {beside.at(0), beside.at(1)};
    return code->run_beside({{x_values()}}, both).ok();
  };
  const int64_t before = cuda.live();
  for (const auto& one : all) ASSERT_TRUE(run(*one));
  EXPECT_EQ(cuda.counts().graphs, 20);
  EXPECT_LT(cuda.live() - before, 20);
  ASSERT_TRUE(run(*all[19]));
  EXPECT_EQ(cuda.counts().graphs, 20);
  ASSERT_TRUE(run(*all[0]));
  EXPECT_EQ(cuda.counts().graphs, 21);
}

TEST(CudaExecutable, RefusesArraysThatDoNotFit) {
  const FakeCuda cuda;
  add_kernels(cuda);
  const auto device = cuda.device().value();
  const auto code = CudaExecutable::load(carrying_image(), device, kCarries).value();
  const auto arrays = arrays_on(device);
  const CudaArray both[] = {arrays->at(0), arrays->at(1)}, turned[] = {both[1], both[0]};
  EXPECT_THAT(code->run_beside({}, both), refuses(ErrorCode::bad_input, "0 inputs...1"));
  EXPECT_THAT(code->run({{x_values()}}), refuses(ErrorCode::bad_input, "0 inputs on the GPU...2"));
  EXPECT_THAT(code->run_beside({{x_values()}}, turned),
              refuses(ErrorCode::bad_input, "'s'...f32[1] on the GPU...f32[1000]"));
  CancelToken cancel;
  cancel.cancel();
  EXPECT_THAT(code->run_beside({{x_values()}}, both, {.cancel = &cancel}),
              refuses(ErrorCode::interrupted, "stopped"));
  EXPECT_TRUE(arrays->read().value()[0].same_bytes(all_of(2)));
}

// ---- Bad input ---------------------------------------------------------------------------------

TEST(CudaExecutable, SaysHowMuchMemoryIsMissing) {
  const FakeCuda cuda({.memory = 8 << 10});
  add_kernels(cuda);
  const Result<std::shared_ptr<const CudaExecutable>> code =
      CudaExecutable::load(straight_image(), cuda.device().value());
  EXPECT_THAT(code, refuses(ErrorCode::limit,
                            "Fake GPU...8.0 KiB...missing...a batch of about 107 would fit in "
                            "place of 1000...CPU"));
  EXPECT_EQ(cuda.counts().links, 0);  // it is known before anything is compiled
  cuda.reset({.memory = 256});
  add_kernels(cuda);
  GpuImage large = straight_image();
  large.image.constants = {x_values(100)};
  EXPECT_THAT(CudaExecutable::load(large, cuda.device().value()),
              refuses(ErrorCode::limit, "256 B...constants alone do not fit...CPU"));
}

// Threads without a trip have no scratch, and there are no more than scratch is for.
TEST(CudaExecutable, ThreadsThatWorkHaveScratch) {
  const FakeCuda cuda;
  const auto with = [&](int64_t trips, int64_t scratch) {
    cuda.reset({});
    add_kernels(cuda);
    cuda.add(kPtx, "scale",
             {.function = scale,
              .buffers = 2,
              .symbols = 0,
              .cpu_scratch_bytes = 64,
              .thread_scratch_bytes = scratch});
    GpuImage image = straight_image();
    image.image.kernels[1].phases[0].trips = trips;
    image.kernels[1].phases[0].scratch_bytes = scratch;
    const auto code = CudaExecutable::load(image, cuda.device().value()).value();
    EXPECT_TRUE(code->run({{x_values()}}).ok());
    return code->device_bytes();
  };
  const int64_t without = with(1, 0);
  EXPECT_EQ(with(1, 1 << 20) - without, 1 << 20);
  EXPECT_EQ(with(100, 64) - without, 6400);
  EXPECT_EQ(with(1000, 64 << 20) - without, kMaxGpuScratch);  // 4 threads of 64 in a block
}

// Some places are known when it is loaded, others move with a loop.
TEST(CudaExecutable, RefusesBuffersThatDoNotLieAsCodeWantsThem) {
  const FakeCuda cuda;
  add_kernels(cuda);
  const auto device = cuda.device().value();
  GpuImage straight = straight_image();
  for (GpuKernel& kernel : straight.kernels) kernel.alignment = 16;
  EXPECT_TRUE(CudaExecutable::load(straight, device).ok());
  straight.image.arena_bytes += 16;
  auto& places = std::get<image::Launch>(straight.image.commands[0].kind).buffers;
  places[1].offset = 16;
  EXPECT_TRUE(CudaExecutable::load(straight, device).ok());
  places[1].offset = 12;
  EXPECT_THAT(CudaExecutable::load(straight, device),
              refuses(ErrorCode::bad_input, "command 'add'...buffer 1...byte 12...multiple of 16"));
  straight.kernels[0].alignment = 4;
  EXPECT_TRUE(CudaExecutable::load(straight, device).ok());

  GpuImage looping = looping_image();
  looping.kernels[0].alignment = 4;
  EXPECT_TRUE(CudaExecutable::load(looping, device).ok());
  looping.kernels[0].alignment = 8;  // a trip moves by 4 bytes
  EXPECT_THAT(CudaExecutable::load(looping, device),
              refuses(ErrorCode::bad_input, "command 'one'...multiple of 8"));
}

TEST(CudaExecutable, RefusesWhatDoesNotFit) {
  const FakeCuda cuda;
  add_kernels(cuda);
  const auto device = cuda.device().value();
  const auto load = [&](auto change) {
    GpuImage image = straight_image();
    change(image);
    return CudaExecutable::load(image, device);
  };
  EXPECT_THAT(load([](GpuImage& one) { one.kernels.pop_back(); }),
              refuses(ErrorCode::bad_input, "1 kernels...2"));
  EXPECT_THAT(load([](GpuImage& one) { one.kernels[0].phases.clear(); }),
              refuses(ErrorCode::bad_input, "'add'...0 phases...1"));
  EXPECT_THAT(load([](GpuImage& one) { one.kernels[0].capability = 100; }),
              refuses(ErrorCode::unsupported, "sm_100...sm_90"));
  EXPECT_THAT(load([](GpuImage& one) { one.kernels[0].phases[0].block_threads = 2048; }),
              refuses(ErrorCode::bad_input, "2048 threads"));
  EXPECT_THAT(load([](GpuImage& one) { one.kernels[0].phases[0].shared_bytes = 1 << 20; }),
              refuses(ErrorCode::unsupported, "1048576 bytes of shared...232448...CPU"));
  EXPECT_THAT(load([](GpuImage& one) { one.image.arena_bytes = 8; }),
              refuses(ErrorCode::bad_input, "beyond"));
  // A leave, which kernels may use.
  EXPECT_TRUE(load([](GpuImage& one) { one.image.flushes_denormals = true; }).ok());
  EXPECT_THAT(load([](GpuImage& one) { one.kernels[0].ptx = "refused"; }),
              refuses(ErrorCode::limit,
                      "compiled a kernel...CUDA_ERROR_INVALID_PTX...ptxas error: line 1...CPU"));
  EXPECT_THAT(load([](GpuImage& one) { one.kernels[0].phases[0].symbol = "none"; }),
              refuses(ErrorCode::limit, "'none'"));
  const auto code = CudaExecutable::load(straight_image(), device).value();
  EXPECT_THAT(code->run({{x_values(3)}}),
              refuses(ErrorCode::bad_input, "'x'...f32[3]...f32[1000]"));
  EXPECT_THAT(code->run({}), refuses(ErrorCode::bad_input, "0 inputs...1"));
}

TEST(CudaExecutable, RefusesMoreSharedMemoryThanTheGpuHas) {
  const auto load = [](int capability, int64_t kib) -> Status {
    const FakeCuda cuda({.capability = capability});
    add_kernels(cuda);
    GpuImage image = straight_image();
    image.kernels[1].phases[0].shared_bytes = kib << 10;
    HONE_TRY(CudaExecutable::load(image, HONE_TRY(cuda.device())));
    return {};
  };
  for (const auto& [capability, most] :
       {std::pair{80, 163}, {86, 99}, {89, 99}, {90, 227}, {100, 227}, {120, 99}}) {
    EXPECT_TRUE(load(capability, most).ok()) << capability;
    EXPECT_THAT(load(capability, most + 1),
                refuses(ErrorCode::unsupported, "'scale'...bytes of shared memory...CPU"))
        << capability;
  }
}

// The whole way, with call number n failing: for each n the error names the driver's reason,
// nothing is left behind, and nothing waits.
void fail_each_call(const std::function<Status(const FakeCuda&)>& work, int code,
                    std::string_view reason, fake::Gpu gpu = {}) {
  const FakeCuda cuda;
  const auto go = [&](int64_t n) -> Status {
    gpu.failing_call = n;
    gpu.failing_code = code;
    cuda.reset(gpu);
    add_kernels(cuda);
    return work(cuda);
  };
  ASSERT_TRUE(go(0).ok());
  const int64_t calls = cuda.calls();
  ASSERT_GT(calls, 30);
  int64_t failed = 0;
  for (int64_t n = 1; n <= calls; ++n) {
    const Status status = go(n);
    EXPECT_EQ(cuda.live(), 0) << "call " << n;
    EXPECT_EQ(cuda.faults(), "") << "call " << n;
    if (status.ok()) continue;  // what gives things back fails without a word
    ++failed;
    EXPECT_THAT(status.error().to_string(), says(fmt::format("{}...the CPU runs it", reason)))
        << "call " << n;
  }
  EXPECT_GT(failed, calls / 2);
}

TEST(CudaExecutable, NamesTheCauseWhicheverCallFails) {
  const auto some_runs = [](const GpuImage& image, const Tensor& x, int runs = 2) {
    return [=](const FakeCuda& cuda) -> Status {
      const auto loaded = HONE_TRY(CudaExecutable::load(image, HONE_TRY(cuda.device())));
      for (int run = 0; run < runs; ++run) HONE_TRY(loaded->run({{x}}));
      return {};
    };
  };
  fail_each_call(some_runs(straight_image(), x_values()), 2, "CUDA_ERROR_OUT_OF_MEMORY");
  fail_each_call(some_runs(straight_image(), x_values()), 700, "CUDA_ERROR_ILLEGAL_ADDRESS...lost");
  // Calls that make conditions may fail: the CPU decides then.
  fail_each_call(some_runs(looping_image(), all_of(2, 1), 8), 218, "CUDA_ERROR_INVALID_PTX");
  fail_each_call(some_runs(looping_image(), all_of(2, 1)), 718, "CUDA_ERROR_INVALID_PC...lost");
  const fake::Gpu old = {.version = kConditionsVersion - 10};
  fail_each_call(some_runs(looping_image(), all_of(2, 1)), 2, "CUDA_ERROR_OUT_OF_MEMORY", old);
}

TEST(CudaExecutable, NamesTheCauseWhicheverCallFailsBesideArrays) {
  const auto runs = [](const FakeCuda& cuda) -> Status {
    const auto device = HONE_TRY(cuda.device());
    const auto code = HONE_TRY(CudaExecutable::load(carrying_image(), device, kCarries));
    const auto arrays = HONE_TRY(CudaArrays::make(device, {numbers(), numbers(1)}, "arrays"));
    HONE_TRY(arrays->write({{all_of(2), all_of(3, 1)}}));
    const CudaArray both[] = {arrays->at(0), arrays->at(1)};
    HONE_TRY(code->run_beside({{x_values()}}, both));
    HONE_TRY(code->run_beside({{x_values()}}, both));
    HONE_TRY(arrays->read());
    return {};
  };
  fail_each_call(runs, 2, "CUDA_ERROR_OUT_OF_MEMORY");
  fail_each_call(runs, 700, "CUDA_ERROR_ILLEGAL_ADDRESS...lost");
}

// A caller may use another GPU, by a context of its own.
TEST(CudaExecutable, CallersKeepTheirContext) {
  const FakeCuda cuda;
  add_kernels(cuda);
  auto device = cuda.device().value();
  const cuda::Functions call = device->call();
  int other = 0;
  const auto own = reinterpret_cast<cuda::Context>(&other);
  ASSERT_EQ(call.cuCtxSetCurrent(own), cuda::kGood);
  const auto is_own = [&] {
    cuda::Context now = nullptr;
    return call.cuCtxGetCurrent(&now) == cuda::kGood && now == own;
  };
  auto memory = CudaMemory::make(device, 16 << 10).value();
  EXPECT_TRUE(is_own());
  auto arrays = CudaArrays::make(device, {numbers()}, "arrays").value();
  EXPECT_TRUE(arrays->write({{x_values()}}).ok() && arrays->read().ok() && is_own());
  EXPECT_TRUE(device->free_bytes().ok() && device->answers().ok() && is_own());
  auto code = CudaExecutable::load(straight_image(), device).value();
  EXPECT_TRUE(is_own());
  expect_straight(code->run({{x_values()}}));
  EXPECT_TRUE(code->seconds(1).ok() && is_own());
  const cuda::Address inputs[] = {memory->address()}, outputs[] = {memory->address() + (8 << 10)};
  EXPECT_TRUE(code->run_on_device(inputs, outputs, nullptr).ok() && is_own());
  code.reset();
  memory.reset();
  arrays.reset();
  device.reset();
  EXPECT_TRUE(is_own());
  ASSERT_EQ(call.cuCtxSetCurrent(nullptr), cuda::kGood);
}

TEST(CudaMemoryPool, GivesBackWhatItKeepsIfMemoryIsShort) {
  const FakeCuda cuda({.memory = 1 << 20});
  const auto pool = std::make_shared<CudaMemoryPool>(cuda.device().value(), 1 << 20);
  const auto take = [&](int64_t bytes) { return pool->take(bytes, nullptr); };
  for (int time = 0; time < 2; ++time) ASSERT_TRUE(take(600 << 10).ok());
  EXPECT_EQ(cuda.counts().allocations, 1) << "the second one was kept";
  const auto larger = take(700 << 10).value();
  EXPECT_EQ(cuda.counts().allocations, 3) << "the first of two was refused";
  EXPECT_THAT(take(500 << 10), refuses(ErrorCode::limit, "CUDA_ERROR_OUT_OF_MEMORY"));
  EXPECT_EQ(cuda.counts().allocations, 4) << "nothing was kept that could go back";
}

// ---- Machine code ------------------------------------------------------------------------------

TEST(Cubins, AreMadeOnceAndKept) {
  const FakeCuda cuda;
  add_kernels(cuda);
  KeptCubins cubins;
  const auto device = cuda.device().value();
  for (int time = 0; time < 2; ++time) {
    const auto code =
        CudaExecutable::load(straight_image(), device, {.cubins = cubins.store()}).value();
    expect_straight(code->run({{x_values()}}));
    EXPECT_EQ(cubins.found, time);
  }
  ASSERT_EQ(cubins.kept.size(), 1U);
  EXPECT_THAT(cubins.kept.begin()->first, says("sm_90, driver 12040...adds a number"));
  std::vector<std::string> texts;
  for (int i = 0; i < 40; ++i) texts.push_back(fmt::format(".version 7.0 // {}", i));
  std::vector<PtxText> codes;
  for (const std::string& text : texts) codes.push_back({.text = text});
  const std::vector<std::string> made = make_cubins(*device, codes, {}).value();
  for (size_t i = 0; i < made.size(); ++i)
    for (size_t j = 0; j < i; ++j) EXPECT_NE(made[i], made[j]);
}

// Another driver made them, or they are cut off.
TEST(Cubins, AreMadeAgainIfTheDriverRefusesThem) {
  for (const bool is_elf : {true, false}) {
    const FakeCuda cuda({.refuses_cubins = is_elf});
    add_kernels(cuda);
    const auto device = cuda.device().value();
    const std::string made = make_cubin(*device, {.text = kPtx}, {}).value();
    cuda.reset({.refuses_cubins = is_elf});
    add_kernels(cuda);
    std::string put;
    const CubinStore store = {
        .find = [&](std::string_view) { return std::optional(is_elf ? made : "cut off"); },
        .put = [&](std::string_view, std::string_view cubin) { put = cubin; }};
    const auto code = CudaExecutable::load(straight_image(), device, {.cubins = store}).value();
    expect_straight(code->run({{x_values()}}));
    EXPECT_EQ(cuda.counts().links, 1);
    EXPECT_EQ(put, made) << "the next load finds a good one";
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
