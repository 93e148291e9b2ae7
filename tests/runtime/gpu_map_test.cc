#include "runtime/cuda/gpu_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/cuda/cuda_executable.h"
#include "tests/base/says_testing.h"
#include "tests/fake_cuda/library_testing.h"

namespace hone::HONE_FILE {
namespace {

using image::Place;
using tested::FakeCuda;
using tested::refuses;
using tested::says;

constexpr char kPtx[] = ".version 8.0\n.target sm_90a\n// adds 1, by a map of what it reads";
constexpr int64_t kRows = 25, kColumns = 40, kBytes = kRows * kColumns * 4;

void add_one(void* const* buffers, const int64_t*, void*, int64_t begin, int64_t end) {
  const auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  for (int64_t i = begin; i < end; ++i) y[i] = x[i] + 1;
}

GpuMap map_of_rows() {
  return {.buffer = 0, .dtype = DType::f32, .dims = {kRows, kColumns}, .box = {8, 32}};
}
void add_kernel(const FakeCuda& cuda, const GpuMap& made_for = map_of_rows()) {
  cuda.add(kPtx, "add", {.function = add_one, .buffers = 2, .symbols = 0, .maps = {made_for}});
}

Type matrices(int64_t count) { return Type::get(DType::f32, {count, kRows, kColumns}); }
Place at(Place::Region region, uint32_t i, int64_t offset = 0) {
  return {region, i, offset, kBytes, {}};
}

// y = x + 1 + 1, through the arena: two launches of one kernel.
GpuImage image_of_two() {
  GpuImage made;
  made.image.name = "two";
  made.image.inputs = {{"x", matrices(1)}};
  made.image.outputs = {{"y", matrices(1)}};
  made.image.arena_bytes = kBytes;
  made.image.kernels = {
      {.name = "add", .object = nullptr, .phases = {{"add", kRows * kColumns, true}}}};
  made.kernels = {{.ptx = kPtx,
                   .capability = 90,
                   .is_exact = true,
                   .alignment = 16,
                   .phases = {{.symbol = "add", .block_threads = 128, .maps = {map_of_rows()}}}}};
  const Place x = at(Place::Region::input, 0), y = at(Place::Region::output, 0),
              between = at(Place::Region::arena, 0);
  made.image.commands = {{"first", image::Launch{0, {x, between}}},
                         {"second", image::Launch{0, {between, y}}}};
  return made;
}

// y[i] = x[i] + 1 for each of three matrices, in a loop.
GpuImage image_of_loop() {
  GpuImage made = image_of_two();
  made.image.inputs[0].type = made.image.outputs[0].type = matrices(3);
  made.image.loops = 1;
  Place x = at(Place::Region::input, 0), y = at(Place::Region::output, 0);
  x.steps = y.steps = {{0, kBytes}};
  made.image.commands = {{"each", image::Repeat{0, 3, false, {{"one", image::Launch{0, {x, y}}}}}}};
  return made;
}

Tensor numbers(int64_t count) {
  std::vector<double> values;
  for (int64_t i = 0; i < count * kRows * kColumns; ++i) values.push_back(static_cast<double>(i));
  return Tensor::from_reals(matrices(count), values);
}

void expect_sums(std::span<const float> y, float added) {
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], static_cast<float>(i) + added) << i;
}

TEST(GpuMaps, AreOfTheMemoryOfEachLaunch) {
  const FakeCuda cuda;
  add_kernel(cuda);
  const auto device = cuda.device().value();
  const auto two = CudaExecutable::load(image_of_two(), device).value();
  EXPECT_TRUE(two->is_one_graph());
  for (int run = 0; run < 2; ++run) expect_sums(two->run({{numbers(1)}}).value()[0].as<float>(), 2);
  const auto loop = CudaExecutable::load(image_of_loop(), device).value();
  expect_sums(loop->run({{numbers(3)}}).value()[0].as<float>(), 1);
}

// Between two runs of the graph, whose maps must stay as they are.
TEST(GpuMaps, AreOfArraysOfTheCaller) {
  const FakeCuda cuda;
  add_kernel(cuda);
  const auto device = cuda.device().value();
  const auto code = CudaExecutable::load(image_of_two(), device).value();
  const auto memory = CudaMemory::make(device, 16 << 10).value();
  const Tensor x = numbers(1);
  const cuda::Address from = memory->address(), to = from + (8 << 10);
  for (int run = 0; run < 2; ++run) {
    expect_sums(code->run({{x}}).value()[0].as<float>(), 2);
    const CudaEntry entered = device->enter().value();
    ASSERT_EQ(device->call().cuMemcpyHtoDAsync_v2(from, x.bytes().data(), kBytes, nullptr), 0);
    const cuda::Address inputs[] = {from}, outputs[] = {to};
    ASSERT_TRUE(code->run_on_device(inputs, outputs, nullptr).ok());
    Tensor y = numbers(1);
    ASSERT_EQ(device->call().cuMemcpyDtoHAsync_v2(y.mutable_bytes().data(), to, kBytes, nullptr),
              0);
    ASSERT_EQ(device->call().cuStreamSynchronize(nullptr), 0);
    expect_sums(y.as<float>(), 2);
  }
}

TEST(GpuMaps, BelongToAGpuAlone) {
  const FakeCuda cuda({.capability = 100});
  add_kernel(cuda);
  EXPECT_THAT(CudaExecutable::load(image_of_two(), cuda.device().value()),
              refuses(ErrorCode::unsupported, "'add'...sm_90 alone...sm_100"));
}

TEST(GpuMaps, AreRefusedWhereNoDriverMakesThem) {
  const auto refused = [](auto change, const std::string& why) {
    GpuMap map = map_of_rows();
    change(map);
    EXPECT_THAT(check_map(map, 2), refuses(ErrorCode::bad_input, why));
  };
  EXPECT_TRUE(check_map(map_of_rows(), 2).ok());
  refused([](GpuMap& map) { map.buffer = 2; }, "buffer 2, of 2");
  refused([](GpuMap& map) { map.buffer = -1; }, "buffer -1");
  refused([](GpuMap& map) { map.dtype = DType::i64; }, "i64");
  refused([](GpuMap& map) { map.dims = map.box = {1, 1, 1, 1, 1, 32}; }, "6 dims...5");
  refused([](GpuMap& map) { map.box = {32}; }, "2 dims...1");
  refused([](GpuMap& map) { map.box[0] = 257; }, "25 elements...257...dim 0");
  refused([](GpuMap& map) { map.dims[0] = 0; }, "0 elements");
  refused([](GpuMap& map) { map.dims[1] = 42; }, "168 bytes along dim 0...16");
  refused([](GpuMap& map) { map.box[1] = 16; }, "64 bytes...128");
}

// A map that is larger than its buffer would let a kernel read what is behind it.
TEST(GpuMaps, AreAsLargeAsTheirBuffers) {
  const FakeCuda cuda;
  add_kernel(cuda);
  GpuImage image = image_of_two();
  image.kernels[0].phases[0].maps[0].dims[0] = kRows + 1;
  EXPECT_THAT(CudaExecutable::load(image, cuda.device().value()),
              refuses(ErrorCode::bad_input, "command 'first'...buffer 0...4160...4000"));
}

// ---- Planted faults ----------------------------------------------------------------------------

// The fake driver finds this when a kernel that was made for this map gets the good one.
std::string fault_of(const GpuMap& made_for) {
  const FakeCuda cuda;
  add_kernel(cuda, made_for);
  const auto code = CudaExecutable::load(image_of_two(), cuda.device().value());
  EXPECT_FALSE(code.ok());
  std::string faults = cuda.faults();
  cuda.reset({});
  return faults;
}

TEST(PlantedMaps, AreFound) {
  GpuMap other = map_of_rows();
  other.buffer = 1;
  EXPECT_THAT(fault_of(other), says("buffer 1...other memory"));
  other = map_of_rows();
  other.box[0] = 7;
  EXPECT_THAT(fault_of(other), says("boxes of 8...dim 0, not 7"));
  other = map_of_rows();
  std::swap(other.dims[0], other.dims[1]);
  EXPECT_THAT(fault_of(other), says("40 elements along dim 1, not 25"));
}

// The map of a launch before, with an array that the caller has passed since.
TEST(PlantedMaps, OfOtherRunsAreFound) {
  const FakeCuda cuda;
  add_kernel(cuda);
  {
    const auto device = cuda.device().value();
    const auto memory = CudaMemory::make(device, 16 << 10).value();
    const auto module =
        CudaModule::load(device, make_cubin(*device, {kPtx, true}, {}).value()).value();
    const CudaEntry entered = device->enter().value();
    const cuda::Function function = module->function("add", 0).value();
    uint64_t words[] = {memory->address(), memory->address() + (8 << 10), 0, 0, kRows * kColumns};
    MapParameter map = map_parameter(*device, map_of_rows(), words[0]).value();
    void* parameters[] = {&words[0], &words[1], &words[2], &map, &words[3], &words[4]};
    const auto launch = [&] {
      const cuda::LaunchConfig config = {.grid = {8, 1, 1}, .block = {128, 1, 1}};
      return device->call().cuLaunchKernelEx(&config, function, parameters, nullptr);
    };
    EXPECT_EQ(launch(), cuda::kGood);
    EXPECT_EQ(device->call().cuStreamSynchronize(nullptr), cuda::kGood);
    words[0] += 4096;
    EXPECT_NE(launch(), cuda::kGood);
  }
  EXPECT_THAT(cuda.faults(), says("buffer 0...stale"));
  EXPECT_EQ(cuda.live(), 0);
  cuda.reset({});
}

}  // namespace
}  // namespace hone::HONE_FILE
