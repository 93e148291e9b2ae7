#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>

#include "base/checked_math.h"
#include "base/file.h"
#include "base/rng.h"
#include "codegen/gpu/gpu_code.h"
#include "compile/compilation.h"
#include "compile/honec.h"
#include "ir/text.h"
#include "program/tiles/calling.h"
#include "program/tiles/serial.h"
#include "program/tiles/simt.h"
#include "runtime/cuda/cuda_executable.h"
#include "runtime/hone.h"
#include "runtime/honec_layout.h"
#include "runtime/loaded_model.h"
#include "session/compiled.h"
#include "session/deployed.h"
#include "target/gpu_presets.h"
#include "tests/base/says_testing.h"
#include "tests/fake_cuda/backing_testing.h"
#include "zoo/inputs.h"
#include "zoo/zoo.h"

// Compiled models with code for GPUs, on the fake one.

namespace hone::HONE_FILE {
namespace {

using tested::FakeCuda;
using tested::GpuBacking;
using tested::refuses;

Graph mlp(int64_t batch = 2) {
  return build_zoo_model("mlp", {.size = ZooSize::tiny, .batch = batch}).value();
}

// A graph for a GPU, and what a file needs of it.
struct Code {
  Compilation compilation;
  std::vector<GpuKernel> kernels;

  explicit Code(const Graph& graph, std::string_view gpu, CompileOptions options = {})
      : compilation(graph, *preset_gpu(gpu), std::move(options)) {
    EXPECT_TRUE(compilation.image().ok());
    kernels.assign(compilation.gpu_kernels().begin(), compilation.gpu_kernels().end());
  }
  HonecProgram program() {
    return {.image = compilation.image().value(),
            .plan = print(*compilation.plan().value()),
            .capability = compilation.target().gpu->capability,
            .gpu = kernels};
  }
  Status back(const FakeCuda& cuda, GpuBacking& backing) {
    return backing.add(cuda, *compilation.program().value(), compilation.target());
  }
  // As if the first kernel copied boxes of its first buffer.
  Code& with_map() {
    kernels[0].is_exact = true;
    kernels[0].phases[0].maps = {{0, DType::bf16, {12, 72}, {8, 64}}};
    return *this;
  }
};

std::string bytes_of(std::span<const HonecProgram> programs) {
  return honec_bytes(programs, "1.2.3").value().joined();
}

Result<HonecFile> parse(std::string_view bytes) {
  auto memory = std::make_shared<Memory>(
      Memory::map(round_up(static_cast<int64_t>(bytes.size()), Memory::kPage)).value());
  std::memcpy(memory->data(), bytes.data(), bytes.size());
  const std::span<const std::byte> all(memory->data(), bytes.size());
  return HonecFile::parse(std::move(memory), all);
}

Result<HonecFile> file_of(std::vector<HonecProgram> programs) { return parse(bytes_of(programs)); }

// The error of a file whose first program has this kernel in place of its first one.
Status refused_with(Code& code, const std::function<void(GpuKernel&)>& change) {
  const std::vector<GpuKernel> good = code.kernels;
  change(code.kernels[0]);
  const Result<HonecFile> file = file_of({code.program()});
  code.kernels = good;
  if (!file.ok()) return file.error();
  const Result<GpuImage> image = file->gpu_image(0);
  return image.ok() ? Status() : Status(image.error());
}

std::vector<Tensor> outputs_of(const Runnable& code, const std::vector<Tensor>& inputs) {
  Result<std::vector<Tensor>> outputs = code.run(inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.error().to_string();
  return outputs.ok() ? *std::move(outputs) : std::vector<Tensor>();
}

TEST(GpuFile, ComputesTheSameBitsAsTheModelAndKeepsMachineCode) {
  const FakeCuda cuda;
  GpuBacking backing;
  const auto device = cuda.device().value();
  Code code(mlp(), "sm_80", {.device = device});
  ASSERT_TRUE(code.back(cuda, backing).ok());
  const std::vector<Tensor> inputs = random_inputs(mlp(), 1).value();
  const std::vector<Tensor> expected = outputs_of(*code.compilation.runnable().value(), inputs);

  const Result<HonecFile> file = file_of({code.program()});
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  EXPECT_EQ(file->version(), honec::kGpuVersion);
  EXPECT_EQ(file->gpu_image(0)->kernels, code.kernels);
  std::map<std::string, std::string, std::less<>> kept;
  int found = 0;
  const CubinStore store = {
      .find = [&](std::string_view key) -> std::optional<std::string> {
        const auto known = kept.find(key);
        if (known == kept.end()) return std::nullopt;
        ++found;
        return known->second;
      },
      .put = [&](std::string_view key, std::string_view cubin) { kept.emplace(key, cubin); }};
  for (int time = 0; time < 2; ++time) {
    const auto loaded = LoadedModel::load(*file, {.threads = 1, .device = device, .cubins = store});
    ASSERT_TRUE(loaded.ok()) << loaded.error().to_string();
    EXPECT_EQ((*loaded)->single(), nullptr);
    const std::vector<Tensor> actual = outputs_of(**loaded, inputs);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) EXPECT_TRUE(actual[i].same_bytes(expected[i]));
    EXPECT_EQ(found > 0, time > 0);
  }
  EXPECT_TRUE(file->verify().ok());
}

TEST(GpuFile, EachGpuTakesTheNewestCodeThatItRuns) {
  const FakeCuda cuda;
  Code newer(mlp(), "sm_90"), older(mlp(), "sm_80");
  const HonecFile file = file_of({newer.program(), older.program()}).value();
  const Instructions machine = host_instructions().value();
  EXPECT_EQ(file.choose_for_gpu(90, machine).value(), 0);
  EXPECT_EQ(file.choose_for_gpu(120, machine).value(), 0);
  EXPECT_EQ(file.choose_for_gpu(89, machine).value(), 1);
  EXPECT_EQ(file.choose_for_gpu(80, machine).value(), 1);
  EXPECT_TRUE(file.is_for_gpus());
  const HonecFile newest = file_of({newer.program()}).value();
  EXPECT_THAT(newest.choose_for_gpu(80, machine),
              refuses(ErrorCode::unsupported, "sm_90...sm_80...--target sm_80"));
}

TEST(GpuFile, CodeForOneGpuIsForItAlone) {
  const FakeCuda cuda;
  Code newer(mlp(), "sm_90"), older(mlp(), "sm_80");
  const HonecFile file = file_of({newer.with_map().program(), older.program()}).value();
  EXPECT_EQ(file.version(), honec::kExactGpuVersion);
  EXPECT_EQ(file.gpu_image(0)->kernels, newer.kernels);
  const Instructions machine = host_instructions().value();
  EXPECT_EQ(file.choose_for_gpu(90, machine).value(), 0);
  for (int64_t other : {100, 120, 89, 80})
    EXPECT_EQ(file.choose_for_gpu(other, machine).value(), 1) << other;
  EXPECT_EQ(needs_text(file.programs()[0]), "sm_90 alone");
  const HonecFile newest = file_of({newer.program()}).value();
  EXPECT_THAT(newest.choose_for_gpu(100, machine),
              refuses(ErrorCode::unsupported, "sm_90 alone...sm_100...--target sm_80"));
}

TEST(GpuFile, MachinesWithoutTheDeviceAreToldWhatItNeeds) {
  const FakeCuda cuda;
  Code code(mlp(), "sm_80");
  const HonecFile file = file_of({code.program()}).value();
  EXPECT_THAT(LoadedModel::load(file), refuses(ErrorCode::unsupported, "GPUs...sm_80...CPU"));
  EXPECT_THAT(load_honec(file), refuses(ErrorCode::unsupported, "GPUs...sm_80...--device cuda"));
  Compilation cpu(mlp(), host_target().value());
  const HonecFile other = file_of({{.image = cpu.image().value()}}).value();
  EXPECT_EQ(other.version(), honec::kVersion);
  EXPECT_FALSE(other.is_for_gpus());
  EXPECT_THAT(LoadedModel::load(other, {.device = cuda.device().value()}),
              refuses(ErrorCode::unsupported, "CPUs...the CPU runs it...sm_80"));
}

TEST(GpuFile, IsDeployedAndLoadedByItsPath) {
  const FakeCuda cuda;
  GpuBacking backing;
  const auto device = cuda.device().value();
  const Target target = *preset_gpu("sm_80");
  const DeployedGraph made = deployed_graph(mlp(), 0, target, {}, {}).value();
  const HonecProgram program = made.program();
  EXPECT_EQ(program.capability, 80);
  Code code(mlp(), "sm_80");
  ASSERT_TRUE(code.back(cuda, backing).ok());
  const TempDir folder = TempDir::create(std::filesystem::temp_directory_path()).value();
  const std::filesystem::path path = folder.path() / "m.honec";
  ASSERT_TRUE(write_honec(path, {&program, 1}, "1.2.3").ok());
  const Result<CompiledModel> model = load_compiled(path, {}, 1, {.device = device});
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  EXPECT_EQ(outputs_of(*model->runnable, model->inputs.tensors).size(), 1);
  EXPECT_EQ(needs_text(model->chosen()), "sm_80");
  EXPECT_THAT(load_compiled(path, {}, 1),
              refuses(ErrorCode::unsupported, "m.honec...GPUs...sm_80...CPU"));
}

// One file may have code for both.
TEST(GpuFile, CpuAndGpuTakeTheirOwnProgram) {
  const FakeCuda cuda;
  GpuBacking backing;
  Code gpu(mlp(), "sm_80");
  ASSERT_TRUE(gpu.back(cuda, backing).ok());
  Compilation cpu(mlp(), host_target().value());
  const HonecFile file = file_of({gpu.program(), {.image = cpu.image().value()}}).value();
  const std::vector<Tensor> inputs = random_inputs(mlp(), 1).value();
  const auto on_cpu = LoadedModel::load(file).value();
  EXPECT_NE(on_cpu->single(), nullptr);
  EXPECT_EQ(outputs_of(*on_cpu, inputs).size(), 1);
  const auto on_gpu = LoadedModel::load(file, {.device = cuda.device().value()}).value();
  EXPECT_EQ(outputs_of(*on_gpu, inputs).size(), 1);
}

TEST(GpuFile, ARunTakesTheSizesOfItsInputs) {
  const FakeCuda cuda;
  GpuBacking backing;
  Code two(mlp(2), "sm_80"), four(mlp(4), "sm_80");
  for (Code* code : {&two, &four}) ASSERT_TRUE(code->back(cuda, backing).ok());
  const HonecFile file = file_of({two.program(), four.program()}).value();
  const auto loaded = LoadedModel::load(file, {.device = cuda.device().value()}).value();
  for (int64_t batch : {2, 4})
    EXPECT_EQ(outputs_of(*loaded, random_inputs(mlp(batch), 1).value())[0].type().dims()[0], batch);
  EXPECT_THAT(loaded->run(random_inputs(mlp(3), 1).value()),
              refuses(ErrorCode::bad_input, "3x16...2x16...4x16"));
}

// A kernel without code for the GPU has machine code in the file.
TEST(GpuFile, AKernelOnTheCpuStaysThere) {
  const FakeCuda cuda;
  GpuBacking backing;
  Code code(mlp(), "sm_80");
  ASSERT_TRUE(code.back(cuda, backing).ok());
  const std::vector<Tensor> inputs = random_inputs(mlp(), 1).value();
  const HonecFile whole = file_of({code.program()}).value();
  const auto device = cuda.device().value();
  const std::vector<Tensor> expected =
      outputs_of(*LoadedModel::load(whole, {.device = device}).value(), inputs);

  Image image = *code.compilation.image().value();
  const TileProgram& tiles = code.compilation.program().value()->kernels[0].tiles;
  const std::string object = compile_like_gpu(tiles, host_target().value(), "beside").value();
  image.kernels[0].object = std::make_shared<const std::string>(object);
  image.kernels[0].needs = host_instructions().value();
  const std::vector<std::string> names = phase_symbols(simt_form(tiles), "beside");
  for (size_t p = 0; p < names.size(); ++p) image.kernels[0].phases[p].symbol = names[p];
  image.kernels[0].scratch_bytes = scratch_layout(serial_form(simt_form(tiles))).bytes.value();
  HonecProgram program = code.program();
  program.image = &image;
  const HonecFile file = file_of({program}).value();
  EXPECT_TRUE(file.gpu_image(0)->kernels[0].phases.empty());
  EXPECT_EQ(file.programs()[0].needs, host_instructions().value());
  const auto loaded = LoadedModel::load(file, {.device = device});
  ASSERT_TRUE(loaded.ok()) << loaded.error().to_string();
  EXPECT_TRUE(outputs_of(**loaded, inputs)[0].same_bytes(expected[0]));
  if (host_instructions().value() != Instructions())
    EXPECT_THAT(file.choose_for_gpu(80, Instructions()),
                refuses(ErrorCode::unsupported, "CPU beside the GPU"));
}

// Memory of the fake GPU is memory of the process. Kernels use what is aligned where it lies.
TEST(GpuFile, RunsOnArraysOfTheDevice) {
  const FakeCuda cuda;
  GpuBacking backing;
  const auto device = cuda.device().value();
  Code code(mlp(), "sm_80");
  ASSERT_TRUE(code.back(cuda, backing).ok());
  const auto loaded =
      load_honec_on_gpu(file_of({code.program()}).value(), {.device = device}).value();
  const std::vector<Tensor> inputs = random_inputs(mlp(), 1).value();
  const Tensor expected = outputs_of(*loaded, inputs)[0];
  for (uint64_t offset : {0, 4}) {
    SCOPED_TRACE(offset);
    const auto x = CudaMemory::make(device, inputs[0].byte_size() + 4).value();
    const auto y = CudaMemory::make(device, expected.byte_size() + 4).value();
    const cuda::Address from = x->address() + offset, to = y->address() + offset;
    std::memcpy(reinterpret_cast<void*>(from), inputs[0].bytes().data(), inputs[0].bytes().size());
    const Status good = loaded->run_on_device({&from, 1}, {&to, 1}, nullptr);
    ASSERT_TRUE(good.ok()) << good.error().to_string();
    EXPECT_EQ(
        std::memcmp(reinterpret_cast<void*>(to), expected.bytes().data(), expected.bytes().size()),
        0);
  }
}

// ---- C -----------------------------------------------------------------------------------------

// The error of a call, freed with it.
struct Said {
  hone_error* error = nullptr;
  ~Said() { hone_error_free(error); }
};
hone_code code_of_load(const std::string& path, hone_load_options options, hone_model** model) {
  Said said;
  const hone_code code = hone_load(path.c_str(), &options, model, &said.error);
  EXPECT_EQ(hone_error_text(said.error)[0] == '\0', code == HONE_OK);
  return code;
}

TEST(GpuFile, RunsFromC) {
  const FakeCuda cuda;
  GpuBacking backing;
  Code code(mlp(), "sm_80");
  ASSERT_TRUE(code.back(cuda, backing).ok());
  const HonecProgram program = code.program();
  const TempDir folder = TempDir::create(std::filesystem::temp_directory_path()).value();
  const std::string path = folder.path() / "m.honec", driver = FakeCuda::library();
  ASSERT_TRUE(write_honec(path, {&program, 1}, "1").ok());
  hone_load_options options = {};
  options.struct_size = sizeof options;
  options.device = "cuda";
  options.driver = driver.c_str();
  const std::string cache = folder.path() / "cache";
  options.cache = cache.c_str();
  hone_model* model = nullptr;
  ASSERT_EQ(code_of_load(path, options, &model), HONE_OK);
  EXPECT_EQ(hone_size_count(model), 0U);
  // The second load compiles nothing, unless it names no cache.
  const int64_t links = cuda.counts().links;
  EXPECT_GT(links, 0);
  for (const auto& [kept, more] : {std::pair{cache.c_str(), int64_t{0}}, {nullptr, links}}) {
    hone_free(model);
    options.cache = kept;
    ASSERT_EQ(code_of_load(path, options, &model), HONE_OK);
    EXPECT_EQ(cuda.counts().links, links + more);
  }

  const auto device = cuda.device().value();
  const Tensor input = random_inputs(mlp(), 1).value()[0];
  std::vector<std::byte> expected(hone_output(model, 0)->bytes);
  const void* const in = input.bytes().data();
  void* out = expected.data();
  ASSERT_EQ(hone_run(model, &in, 1, &out, 1, nullptr), HONE_OK);
  const auto x = CudaMemory::make(device, input.byte_size()).value();
  const auto y = CudaMemory::make(device, std::ssize(expected)).value();
  std::memcpy(reinterpret_cast<void*>(x->address()), in, input.bytes().size());
  const uint64_t from = x->address(), to = y->address(), nowhere = 0;
  ASSERT_EQ(hone_run_on_gpu(model, &from, 1, &to, 1, nullptr, nullptr), HONE_OK);
  EXPECT_EQ(std::memcmp(reinterpret_cast<void*>(to), expected.data(), expected.size()), 0);
  EXPECT_EQ(hone_run_on_gpu(model, &from, 1, &from, 1, nullptr, nullptr), HONE_BAD_INPUT);
  EXPECT_EQ(hone_run_on_gpu(model, &from, 1, &nowhere, 1, nullptr, nullptr), HONE_BAD_INPUT);
  EXPECT_EQ(hone_run_on_gpu(model, &from, 1, &to, 0, nullptr, nullptr), HONE_USAGE);
  EXPECT_EQ(hone_run_on_gpu(nullptr, &from, 1, &to, 1, nullptr, nullptr), HONE_USAGE);
  hone_free(model);
}

// A state stays where it lies, as the cache of a decoder.
TEST(GpuFile, ChangesAStateInPlaceFromC) {
  const FakeCuda cuda;
  GpuBacking backing;
  const Graph graph = parse_graph(R"(graph @sum(%x: f32[8], %s: f32[8] donate 1)
      -> (f32[8], f32[8]) { %t = add %s, %x %y = mul %t, %x return %y, %t })")
                          .value();
  Code code(graph, "sm_80");
  ASSERT_TRUE(code.back(cuda, backing).ok());
  const HonecProgram program = code.program();
  const TempDir folder = TempDir::create(std::filesystem::temp_directory_path()).value();
  const std::string path = folder.path() / "m.honec", driver = FakeCuda::library();
  ASSERT_TRUE(write_honec(path, {&program, 1}, "1").ok());
  hone_load_options options = {};
  options.struct_size = sizeof options;
  options.device = "cuda";
  options.driver = driver.c_str();
  hone_model* model = nullptr;
  ASSERT_EQ(code_of_load(path, options, &model), HONE_OK);
  EXPECT_EQ(hone_output_donor(model, 0), -1);
  EXPECT_EQ(hone_output_donor(model, 1), 1);
  EXPECT_EQ(hone_output_donor(model, 2), -1);

  const Type type = Type::get(DType::f32, {8});
  const Tensor three = Tensor::from_reals(type, std::vector<double>(8, 3));
  const auto arrays =
      CudaArrays::make(cuda.device().value(), {type, type, type}, "arrays of a test").value();
  ASSERT_TRUE(arrays->write({{three, Tensor::zeros(type), Tensor::zeros(type)}}).ok());
  const uint64_t from[] = {arrays->at(0).address, arrays->at(1).address},
                 to[] = {arrays->at(2).address, arrays->at(1).address};
  for (int run = 0; run < 3; ++run)
    ASSERT_EQ(hone_run_on_gpu(model, from, 2, to, 2, nullptr, nullptr), HONE_OK);
  EXPECT_EQ(cuda.counts().copied, 0);
  const std::vector<Tensor> now = arrays->read().value();
  EXPECT_EQ(now[1].real_at(7), 9);
  EXPECT_EQ(now[2].real_at(7), 27);
  const uint64_t turned[] = {to[1], to[0]};
  EXPECT_EQ(hone_run_on_gpu(model, from, 2, turned, 2, nullptr, nullptr), HONE_BAD_INPUT);
  hone_free(model);
}

TEST(GpuFile, CIsToldWhatIsMissing) {
  const FakeCuda cuda;
  Code code(mlp(), "sm_80");
  Compilation cpu(mlp(), host_target().value());
  const std::vector<HonecProgram> programs = {code.program(), {.image = cpu.image().value()}};
  const TempDir folder = TempDir::create(std::filesystem::temp_directory_path()).value();
  const std::string path = folder.path() / "m.honec", driver = FakeCuda::library();
  ASSERT_TRUE(write_honec(path, programs, "1").ok());
  hone_load_options options = {};
  options.struct_size = sizeof options;
  options.driver = driver.c_str();
  hone_model* model = nullptr;
  options.device = "cuda:7";
  EXPECT_EQ(code_of_load(path, options, &model), HONE_UNSUPPORTED);
  options.device = "gpu";
  EXPECT_EQ(code_of_load(path, options, &model), HONE_USAGE);
  options.device = "cuda";
  options.driver = "/nowhere/libcuda.so.1";
  EXPECT_EQ(code_of_load(path, options, &model), HONE_UNSUPPORTED);
  EXPECT_EQ(model, nullptr);
  // Options of an older header name no device.
  options.struct_size = offsetof(hone_load_options, device);
  ASSERT_EQ(code_of_load(path, options, &model), HONE_OK);
  const uint64_t address = 256;
  EXPECT_EQ(hone_run_on_gpu(model, &address, 1, &address, 1, nullptr, nullptr), HONE_USAGE);
  hone_free(model);
}

// ---- Hostile files -----------------------------------------------------------------------------

TEST(GpuFile, WhatNoGpuLaunchesIsRefusedByItsPlace) {
  Code code(mlp(), "sm_80");
  const std::string place = "program, byte...kernel...";
  const auto phase = [&](const std::function<void(GpuPhase&)>& change) {
    return refused_with(code, [&](GpuKernel& kernel) { change(kernel.phases[0]); });
  };
  for (int64_t threads : {int64_t{0}, int64_t{1025}, int64_t{-1}, INT64_MAX})
    EXPECT_THAT(phase([&](GpuPhase& one) { one.block_threads = threads; }),
                refuses(ErrorCode::bad_input, place + "threads"));
  for (int64_t bytes : {int64_t{-1}, INT64_MAX})
    EXPECT_THAT(phase([&](GpuPhase& one) { one.shared_bytes = bytes; }),
                refuses(ErrorCode::bad_input, place + "shared memory"));
  for (int64_t bytes : {int64_t{-64}, int64_t{63}, int64_t{1} << 40})
    EXPECT_THAT(phase([&](GpuPhase& one) { one.scratch_bytes = bytes; }),
                refuses(ErrorCode::bad_input, place + "scratch"));
  EXPECT_THAT(refused_with(code, [](GpuKernel& one) { one.capability = 81; }),
              refuses(ErrorCode::bad_input, "program, byte...capability of a kernel is 81"));
  EXPECT_THAT(refused_with(code, [](GpuKernel& one) { one.ptx[20] = '\0'; }),
              refuses(ErrorCode::bad_input, place + "byte 20"));
  EXPECT_THAT(refused_with(code, [](GpuKernel& one) { one.ptx.clear(); }),
              refuses(ErrorCode::bad_input, place + "empty"));
  for (int64_t bytes : {int64_t{0}, int64_t{-16}, int64_t{24}, int64_t{512}, INT64_MIN})
    EXPECT_THAT(refused_with(code, [&](GpuKernel& one) { one.alignment = bytes; }),
                refuses(ErrorCode::bad_input, place + "multiples of"));
  EXPECT_TRUE(refused_with(code, [](GpuKernel&) {}).ok());
}

TEST(GpuFile, MapsThatNoDriverMakesAreRefusedByTheirPlace) {
  Code code(mlp(), "sm_90");
  code.with_map();
  const auto map = [&](const std::function<void(GpuMap&)>& change) {
    return refused_with(code, [&](GpuKernel& kernel) { change(kernel.phases[0].maps[0]); });
  };
  EXPECT_TRUE(map([](GpuMap&) {}).ok());
  EXPECT_THAT(map([](GpuMap& one) { one.buffer = -1; }),
              refuses(ErrorCode::bad_input, "program, byte...buffer of a map is -1"));
  EXPECT_THAT(map([](GpuMap& one) { one.box[0] = 257; }),
              refuses(ErrorCode::bad_input, "program, byte...257"));
  EXPECT_THAT(map([](GpuMap& one) { one.dims[1] = INT64_MAX; }),
              refuses(ErrorCode::bad_input, "program, byte...dim 1"));
  EXPECT_THAT(map([](GpuMap& one) { one.dims.clear(), one.box.clear(); }),
              refuses(ErrorCode::bad_input, "program, byte...0 dims"));
}

// The table of a file, to be changed and sealed again.
struct Table {
  std::string bytes;
  honec::Header header;
  std::vector<honec::Section> sections;

  explicit Table(std::string text) : bytes(std::move(text)) {
    std::memcpy(&header, bytes.data(), sizeof header);
    sections.resize(header.sections);
    std::memcpy(sections.data(), bytes.data() + sizeof header,
                sections.size() * sizeof(honec::Section));
  }
  std::string sealed() {
    for (honec::Section& one : sections)
      if (one.checksum != 0 && one.offset + one.bytes <= bytes.size())
        one.checksum = hash_string(std::string_view(bytes).substr(one.offset, one.bytes));
    return unsealed();
  }
  std::string unsealed() {
    header.checksum = honec::header_checksum(header, std::as_bytes(std::span(sections)));
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, sections.data(),
                sections.size() * sizeof(honec::Section));
    return bytes;
  }
};

TEST(GpuFile, DamageIsFound) {
  Code code(mlp(), "sm_80");
  const std::vector<HonecProgram> programs = {code.program()};
  const Table good(bytes_of(programs));
  ASSERT_EQ(good.sections[1].kind, static_cast<uint32_t>(honec::Kind::gpu_program));
  {
    Table table = good;  // a letter of the PTX
    table.bytes[table.sections[2].offset + 9] ^= 1;
    EXPECT_THAT(parse(table.unsealed()), refuses(ErrorCode::bad_input, "section 2...checksum"));
  }
  {
    Table table = good;
    table.sections[2].bytes = uint64_t{1} << 40;
    EXPECT_THAT(parse(table.sealed()), refuses(ErrorCode::bad_input, "section 2...code"));
  }
  {
    Table table = good;
    table.sections[2].bytes -= 64;
    EXPECT_THAT(parse(table.sealed()), refuses(ErrorCode::bad_input, "section 3"));
  }
  {
    Table table = good;  // which has no such sections
    table.header.version = honec::kVersion;
    EXPECT_THAT(parse(table.sealed()), refuses(ErrorCode::bad_input, "section 1...program"));
  }
  {
    Table table = good;  // whose code did not say how its buffers lie
    table.header.version = 6;
    EXPECT_THAT(parse(table.sealed()),
                refuses(ErrorCode::unsupported, "version 6...10...compile the model again"));
  }
  {
    Table table = good;  // whose kernels say nothing of maps
    table.sections[1].kind = static_cast<uint32_t>(honec::Kind::exact_gpu_program);
    EXPECT_THAT(parse(table.sealed()), refuses(ErrorCode::bad_input, "section 1...kind is 8"));
    table.header.version = honec::kExactGpuVersion;
    EXPECT_THAT(parse(table.sealed())->gpu_image(0), refuses(ErrorCode::bad_input, "program"));
  }
  for (int64_t capability : {0, 79, 1000}) {
    Table table = good;
    std::memcpy(table.bytes.data() + table.sections[1].offset, &capability, sizeof capability);
    EXPECT_THAT(parse(table.sealed()), refuses(ErrorCode::bad_input, "capability of a GPU"));
  }
}

TEST(GpuFile, CubinsComeBackAndTheirDamageIsFound) {
  Code code(mlp(), "sm_80");
  const std::vector<HonecProgram> programs = {code.program()};
  HonecModel model = honec_model(programs);
  const std::string& ptx = programs[0].gpu[0].ptx;
  const std::string code_of_it =
      "\x7f"
      "ELF" +
      std::string(60, 'c');
  model.cubins = {{ptx, 86, 12040, code_of_it}};
  const Table good(honec_bytes(model, programs, "test").value().joined());
  const Result<HonecFile> file = parse(good.bytes);
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  ASSERT_EQ(file->cubins().size(), 1U);
  const HonecCubin& cubin = file->cubins()[0];
  EXPECT_EQ(cubin.bytes, code_of_it);
  EXPECT_EQ(cubin.capability, 86);
  EXPECT_EQ(cubin.maker, 12040);
  EXPECT_EQ(file->object(cubin.object), ptx);
  EXPECT_EQ(file->version(), honec::kCubinVersion);

  ASSERT_EQ(good.sections[2].kind, static_cast<uint32_t>(honec::Kind::cubins));
  const auto with = [&](size_t number, int64_t value) {
    Table table = good;
    std::memcpy(table.bytes.data() + good.sections[2].offset + 8 * number, &value, sizeof value);
    return parse(table.sealed());
  };
  EXPECT_THAT(with(0, 2), refuses(ErrorCode::bad_input, "cubins"));
  EXPECT_THAT(with(1, 1000), refuses(ErrorCode::bad_input, "cubins...object 1000"));
  EXPECT_THAT(with(2, -1), refuses(ErrorCode::bad_input, "a capability is -1"));
  EXPECT_THAT(with(4, 1 << 30), refuses(ErrorCode::bad_input, "machine code"));
  for (const std::string& wrong : {code_of_it.substr(0, 63), std::string(64, 'c'), std::string()}) {
    model.cubins[0].bytes = wrong;
    EXPECT_THAT(parse(honec_bytes(model, programs, "test").value().joined()),
                refuses(ErrorCode::bad_input, "no ELF"));
  }
  Table table = good;  // which has no such section
  table.header.version = honec::kExactGpuVersion;
  EXPECT_THAT(parse(table.sealed()), refuses(ErrorCode::bad_input, "section 2"));
}

TEST(GpuFile, HostileProgramsAreRefusedOrCheckedWhenLoaded) {
  const FakeCuda cuda;
  const auto device = cuda.device().value();
  Code plain(mlp(), "sm_80"), with_map(mlp(), "sm_90");
  std::vector<Table> good;
  for (Code* code : {&plain, &with_map.with_map()}) {
    const std::vector<HonecProgram> programs = {code->program()};
    good.emplace_back(bytes_of(programs));
  }
  Rng rng(3);
  int read = 0;
  for (size_t time = 0; time < 2000; ++time) {
    Table table = good[time % 2];
    const honec::Section& section = table.sections[rng.below(2)];
    for (uint64_t changes = 1 + rng.below(3); changes > 0; --changes) {
      const size_t at = section.offset + rng.below(section.bytes);
      table.bytes[at] = rng.below(2) == 0 ? static_cast<char>(rng.below(256)) : '\xff';
    }
    const Result<HonecFile> file = parse(table.sealed());
    if (!file.ok()) continue;
    const Result<GpuImage> image = file->gpu_image(0);
    if (!image.ok()) continue;
    ++read;
    // No code is there for the device: what is loaded is refused at the latest then.
    EXPECT_FALSE(CudaExecutable::load(*image, device).ok());
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace hone::HONE_FILE
