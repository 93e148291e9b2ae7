#include <gmock/gmock.h>

#include <fstream>

#include "base/file.h"
#include "cli/devices.h"
#include "cli/inputs.h"
#include "cli/native.h"
#include "cli/placed_model.h"
#include "cli/processes.h"
#include "cli/sharding.h"
#include "ir/text.h"
#include "rewrite/passes.h"
#include "session/gpu.h"
#include "session/mesh_code.h"
#include "shard/batch_part.h"
#include "target/gpu_presets.h"
#include "target/system.h"
#include "tests/base/says_testing.h"
#include "tests/cli/gpu_fixture.h"

// CPUs and fake GPUs that run a model together.

namespace hone::cli::HONE_FILE {
namespace {

using tested::refuses;
using tested::says;

// Sums over the batch in a loop that data ends, and in a branch of it.
constexpr char kRounds[] = R"(
graph @rounds(%x: f32[5, 3]) -> (f32[5, 3], f32[]) {
  %one = constant 1 : f32[]
  %y, %n = while %x, %one
    condition(%a: f32[5, 3], %s: f32[]) { %c = compare %s, 200 {direction = lt} return %c }
    body(%a: f32[5, 3], %s: f32[]) {
      %d = mul %a, %a
      %c = compare %s, 50 {direction = lt}
      %t = if %c, %d
        then(%d: f32[5, 3]) { %t = reduce %d {kind = sum, axes = [0, 1]} return %t }
        else(%d: f32[5, 3]) { %r = reduce %d {kind = sum, axes = [0, 1]} %t = mul %r, 2 return %t }
      %u = add %s, %t
      return %a, %u
    }
  return %y, %n
}
)";
constexpr char kLayers[] = R"(
graph @layers(%x: f32[4, 8], %w: f32[8, 8], %v: f32[8, 6]) -> f32[4, 6] {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %r = tanh %h
  %y = dot %r, %v {lhs_contract = [1], rhs_contract = [0]}
  return %y
}
)";

// Two kernels: nothing is fused with a sort.
constexpr char kSteps[] = R"(
graph @steps(%x: f32[64, 32]) -> f32[64, 32] {
  %e = exp %x
  %y = sort %e {axis = 1}
  return %y
}
)";

class GpuDevices : public GpuFixture {
 protected:
  std::string file(const std::string& name, std::string_view text) {
    std::string path = folder_.path() / name;
    EXPECT_TRUE(write_file_atomic(path, text).ok());
    return path;
  }

  Status add_kernels_of(const Graph& graph, const Target& target, CompileOptions options = {}) {
    Compilation compilation(graph, target, std::move(options));
    return backing_.add(cuda_, *HONE_TRY(compilation.program()), target);
  }

  // Kernels of the parts that the GPUs of the command have.
  Status add_kernels_of_parts(const std::vector<std::string>& words) {
    Console console(Console::Options{});
    const Arguments arguments = HONE_TRY(parse_arguments(words));
    const DeviceOptions devices = *HONE_TRY(device_options(arguments, Processes(), console));
    const Source source =
        HONE_TRY(given_source(arguments.text("MODEL"), arguments, console, {.runs_inputs = true}));
    const Graph& graph = *single_graph(source.model);
    const auto add = [&](Graph part, const GpuPart& gpu) -> Status {
      CompileOptions options;
      part = HONE_TRY(name_values(part));
      keep_order(part, options.plan);
      options.drops_unfit = true;
      return add_kernels_of(part, gpu.target, std::move(options));
    };
    if (devices.shards) {
      const ShardCosts prices = {costs_of(*devices.system, console), {}};
      const ShardedModel model = HONE_TRY(sharded_on(graph, *devices.shards, devices, prices));
      for (const auto& gpu : devices.gpus)
        if (gpu != nullptr) HONE_TRY(add(model.partition.graph, *gpu));
      return {};
    }
    const BatchInputs batch = HONE_TRY(batch_inputs(graph, graph.input_types(), devices.batch));
    const NativeOptions native = HONE_TRY(native_options(arguments, console));
    CompileOptions compile = compile_options(native, nullptr, console.face());
    compile.plan.threads = threads_per_device(native, devices);
    const std::vector<BatchShare> shares = shares_by_speed(graph, batch, std::ssize(devices.names),
                                                           native.target, compile, devices.gpus);
    for (size_t i = 0; i < shares.size(); ++i) {
      if (devices.gpus[i] == nullptr) continue;
      BatchPart part = HONE_TRY(batch_part(graph, batch.dims, shares[i]));
      if (part.has_sums)
        HONE_TRY(add(std::move(part.graph), *devices.gpus[i]));
      else
        HONE_TRY(add_kernels_of(part.graph, devices.gpus[i]->target));
    }
    return {};
  }

  // The command checks the model right.
  void expect_right(const std::string& model, std::vector<std::string> more) {
    SCOPED_TRACE(fmt::format("{} {}", model, fmt::join(more, " ")));
    std::vector<std::string> words = {"check", model, "--cache", "none", "--progress", "none"};
    words.insert(words.end(), more.begin(), more.end());
    cuda_.reset({.devices = 2});
    const Status added = add_kernels_of_parts(words);
    ASSERT_TRUE(added.ok()) << added.error().to_string();
    const Status good = run(words);
    ASSERT_TRUE(good.ok()) << good.error().to_string() << "\n" << said_;
    EXPECT_GT(cuda_.counts().launches, 0);
    EXPECT_EQ(cuda_.faults(), "");
  }

  // Devices of these targets on a bus.
  static System two_devices(std::vector<Target> targets, std::array<size_t, 2> of_device) {
    System system;
    system.name = "mixed";
    system.targets = std::move(targets);
    for (size_t target : of_device)
      system.devices.push_back({1, target, system.targets[target].memory_bytes});
    system.levels = {{"machine", 2}};
    Links& link = system.links.emplace_back();
    link.name = "pcie";
    link.shape = Shape::bus;
    link.over = "machine";
    link.duplex = Duplex::half;
    link.bytes_per_second = 25e9;
    link.latency = 5e-6;
    return system;
  }

  // A plan of hone place whose kernels are on both devices runs right.
  void run_placed(const System& system, const fake::Gpu& gpu) {
    const std::string path = file("mixed.system", print(system)),
                      steps = file("steps.hone", kSteps);
    const std::string plan = folder_.path() / "m.plan", out = folder_.path() / "whole.npz";
    ASSERT_TRUE(run({"run", steps, "-o", out, "--seed", "3", "--progress", "none"}).ok()) << said_;
    ASSERT_TRUE(run({"place", steps, "--system", path, "--seconds", "0", "-o", plan}).ok())
        << said_;
    std::string text = read_file(plan, 1 << 20).value(), moved;
    int64_t device = 0;
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      std::string line = text.substr(at, end - at);
      if (line.starts_with("  device @"))
        line = fmt::format("{}= {}", line.substr(0, line.find('=')), device++ % 2);
      moved += line + "\n";
      at = end + 1;
    }
    ASSERT_GE(device, 2) << text;
    file("m.plan", moved);
    const std::vector<std::string> words = {
        "run",      steps, "--plan",  plan,   "--system", path,   "--seed",     "3",
        "--expect", out,   "--cache", "none", "--rtol",   "1e-5", "--progress", "none"};
    cuda_.reset(gpu);
    {
      Console console(Console::Options{});
      const Arguments arguments = parse_arguments(words).value();
      const Source source = given_source(steps, arguments, console, {.runs_inputs = true}).value();
      const PlacedModel placed = placed_model(*given_device_plan(arguments).value(),
                                              *single_graph(source.model), arguments, console)
                                     .value();
      for (size_t d = 0; d < 2; ++d) {
        const Target& target =
            placed.system.targets[placed.system.device(static_cast<int64_t>(d)).target];
        const auto number = placed.programs.programs.of_device[d];
        if (target.gpu)
          ASSERT_TRUE(backing_.add(cuda_, placed.programs.programs.programs[number], target).ok());
      }
    }
    const Status good = run(words);
    ASSERT_TRUE(good.ok()) << good.error().to_string() << "\n" << said_;
    EXPECT_GT(cuda_.counts().launches, 0);
    EXPECT_THAT(said_, says("2 devices of 'mixed'"));
  }

  const TempDir folder_ = TempDir::create(std::filesystem::temp_directory_path()).value();
};

TEST_F(GpuDevices, DivideABatch) {
  expect_right(file("layers.hone", kLayers), {"--devices", "cuda:0,cpu", "--batch", "x"});
  EXPECT_THAT(said_, says("cuda:0 with ..., cpu 0 with ... rows of the batch"));
  expect_right(file("layers.hone", kLayers), {"--devices", "cpu,cuda:1,cpu", "--batch", "x"});
  EXPECT_THAT(said_, says("cpu 0 with ..., cuda:1 with 1, cpu 1 with 1 rows"))
      << "a launch takes longer than the rows of a CPU";
  expect_right(file("layers.hone", kLayers), {"--devices", "cuda:0,cuda:1", "--batch", "x"});
}

TEST_F(GpuDevices, AddSumsUpInLoopsAndBranches) {
  for (const char* devices : {"cuda:0,cpu", "cpu,cuda:0,cuda:1", "cuda:0,cuda:1"})
    expect_right(file("rounds.hone", kRounds), {"--devices", devices});
}

TEST_F(GpuDevices, DivideValuesOnAMesh) {
  const std::string model = file("layers.hone", kLayers);
  for (const char* devices : {"cuda:0,cpu", "cuda:1,cuda:0"})
    expect_right(model, {"--devices", devices, "--mesh", "x=2", "--shard", "w=[-, x]"});
}

// A System of CPU and GPUs says how they are linked, and which of them there are.
TEST_F(GpuDevices, AreThoseOfASystem) {
  const System system = two_devices({*preset_gpu("sm_90"), host_target().value()}, {0, 1});
  const std::string path = file("mixed.system", print(system));
  const std::string model = file("layers.hone", kLayers);
  expect_right(model, {"--devices", "2", "--system", path, "--batch", "x"});
  EXPECT_THAT(said_, says("cuda:0 with ..., cpu 0 with ..."));
  expect_right(model, {"--devices", "cuda:1,cpu", "--system", path, "--batch", "x"});
  EXPECT_THAT(run({"run", model, "--devices", "cpu,cpu", "--system", path}),
              refuses(ErrorCode::usage, "device 0 is 'cpu 0'...sm_90...GPU...cuda:0,cpu 0"));

  // A plan of hone place with its kernels on both.
  run_placed(system, {});
}

// A message of two GPUs does not come to the CPU, unless the driver refuses to move it so.
TEST_F(GpuDevices, SendFromGpuToGpu) {
  constexpr int64_t kBytes = 64 * 32 * 4;
  std::vector<int64_t> read;
  for (const bool refuses : {false, true}) {
    run_placed(two_devices({*preset_gpu("sm_90")}, {0, 0}),
               {.devices = 2, .refuses_peers = refuses});
    const fake::Counts counts = cuda_.counts();
    EXPECT_EQ(counts.copied_to_peers, refuses ? 0 : kBytes);
    EXPECT_EQ(counts.reached, refuses ? 0 : 2) << "each reaches the other";
    read.push_back(counts.copied_from);
  }
  EXPECT_EQ(read[1] - read[0], kBytes) << "by way of the CPU";
}

TEST_F(GpuDevices, RefuseWhatIsForOneOfThem) {
  const std::string model = file("layers.hone", kLayers);
  const auto refused = [&](std::vector<std::string> words, std::string_view says) {
    EXPECT_THAT(run(words), refuses(ErrorCode::usage, std::string(says)));
  };
  refused({"compile", model, "--devices", "cuda:0,cpu", "-o", folder_.path() / "m.honec"},
          "'hone compile' takes one GPU...cuda:0...2 devices...run");
  refused({"run", model, "--devices", "cuda:0,cpu", "--transport", "shared"},
          "--transport...cuda:0");
  refused({"run", model, "--devices", "cuda:0,cuda:0"}, "named twice");
  cuda_.reset({});
  EXPECT_THAT(run({"run", model, "--devices", "cuda:0,cuda:1", "--batch", "x"}),
              refuses(ErrorCode::unsupported, "no GPU cuda:1...CPU"));
}

// The devices of a run that fails on one of them do not wait.
TEST_F(GpuDevices, EndTogetherIfAGpuIsLost) {
  const std::string model = file("rounds.hone", kRounds);
  const std::vector<std::string> words = {"run",     model,  "--devices",  "cuda:0,cpu",
                                          "--cache", "none", "--progress", "none"};
  cuda_.reset({});
  ASSERT_TRUE(add_kernels_of_parts(words).ok());
  const int64_t before = cuda_.calls();
  ASSERT_TRUE(run(words).ok()) << said_;
  const int64_t calls = cuda_.calls() - before;
  for (const int64_t good : {calls / 3, calls / 2}) {
    cuda_.reset({});
    ASSERT_TRUE(add_kernels_of_parts(words).ok());
    cuda_.fail(good, 700);
    EXPECT_THAT(run(words), refuses(ErrorCode::limit, "CUDA_ERROR_ILLEGAL_ADDRESS...lost...CPU"));
  }
}

}  // namespace
}  // namespace hone::cli::HONE_FILE
