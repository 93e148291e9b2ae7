#include "cli/gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "base/rng.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/native.h"
#include "cli/source.h"
#include "compile/compilation.h"
#include "cost/gpu_cost.h"
#include "formats/npy.h"
#include "ir/functional.h"
#include "ir/text.h"
#include "kernel/kernel_text.h"
#include "kernel/schedule_space.h"
#include "kernel/schedule_text.h"
#include "learn/data_set.h"
#include "oracle/conformance.h"
#include "quantize/rewrite.h"
#include "rewrite/prepare.h"
#include "session/gpu.h"
#include "session/native.h"
#include "target/fingerprint.h"
#include "target/gpu_presets.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/cli/gpu_fixture.h"
#include "tests/fake_cuda/backing_testing.h"
#include "tests/program/random_kernels.h"

// Commands on the fake GPU.

namespace hone::cli::HONE_FILE {
namespace {

using tested::FakeCuda;
using tested::GpuBacking;
using tested::refuses;

// No error; what it is else.
MATCHER(says_ok, "is good") {
  if (!arg.ok()) *result_listener << arg.error().to_string();
  return arg.ok();
}

class Gpu : public GpuFixture {};

TEST_F(Gpu, CheckFindsModelsRight) {
  for (const char* model : {"zoo:mlp,size=tiny", "zoo:lstm,size=tiny", "zoo:bert_base,size=tiny",
                            "zoo:squeezenet,size=tiny"})
    expect_right(model);
}

TEST_F(Gpu, RunsAndTimesAModel) {
  const std::vector<std::string> model = {
      "zoo:mlp,size=tiny", "--devices", "cuda:0", "--cache", "none", "--progress", "none"};
  const auto with = [&](std::vector<std::string> words, std::vector<std::string> more = {}) {
    words.insert(words.end(), model.begin(), model.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  ASSERT_TRUE(add_kernels(with({"run"})).ok());
  ASSERT_TRUE(run(with({"run"})).ok()) << said_;
  const Status timed = run(with({"bench"}, {"--runs", "3", "--profile"}));
  EXPECT_TRUE(timed.ok()) << timed.error().to_string() << said_;
}

TEST_F(Gpu, WhatIsMissingIsSaidAndTheCpuIsOffered) {
  const std::vector<std::string> words = {
      "run", "zoo:mlp,size=tiny", "--device", "cuda", "--cache", "none", "--progress", "none"};
  cuda_.reset({.devices = 0});
  EXPECT_THAT(run(words), refuses(ErrorCode::unsupported, "no GPU...CPU"));
  cuda_.reset({.capability = 75});
  EXPECT_THAT(run(words), refuses(ErrorCode::unsupported, "cuda:0...sm_75...sm_80"));
  cuda_.reset({.memory = 1000});
  ASSERT_TRUE(add_kernels(words).ok());
  EXPECT_THAT(run(words), refuses(ErrorCode::limit, "missing...CPU"));
  ::setenv("HONE_CUDA_LIBRARY", "/nowhere/libcuda.so.1", 1);
  EXPECT_THAT(run(words), refuses(ErrorCode::unsupported, "no NVIDIA driver...CPU"));
}

TEST_F(Gpu, WordsThatDoNotFitAreRefused) {
  const auto refused = [&](std::vector<std::string> more, std::string_view words) {
    std::vector<std::string> all = {"run", "zoo:mlp,size=tiny"};
    all.insert(all.end(), more.begin(), more.end());
    EXPECT_THAT(run(all), refuses(ErrorCode::usage, std::string(words)));
  };
  refused({"--device", "cudax"}, "cudax...cuda:0");
  refused({"--device", "cuda:"}, "cuda:...cuda:0");
  refused({"--devices", "cuda:0,cuda:0"}, "named twice");
  refused({"--device", "cuda:0,cpu"}, "no device...cuda:0");
  refused({"--device", "cuda", "--threads", "2"}, "--threads...GPU");
  refused({"--device", "cuda", "--isa", "avx2"}, "--isa...GPU");
  refused({"--device", "cuda", "--cost", "measured"}, "--cost measured...CPUs");
  refused({"--device", "cuda", "--pipeline", "none.pipeline"}, "--pipeline...GPU");
  refused({"--device", "cuda", "--system", "ring:4"}, "--system...GPU");
  for (const char* command : {"explain", "report"})
    EXPECT_THAT(run({command, "zoo:mlp,size=tiny", "--device", "cuda", "--system", "ring:4"}),
                refuses(ErrorCode::usage, "--system...GPU"));
  EXPECT_THAT(
      run({"check", "zoo:mlp,size=tiny", "--device", "cuda", "--pipeline", "none.pipeline"}),
      refuses(ErrorCode::usage, "--pipeline...GPU"));
  EXPECT_THAT(run({"run", "zoo:mlp,size=tiny", "--device", "cuda:3"}),
              refuses(ErrorCode::unsupported, "cuda:3...1"));
  EXPECT_THAT(run({"place", "zoo:mlp,size=tiny", "--device", "cuda"}),
              refuses(ErrorCode::usage, "--device"));
  EXPECT_THAT(run({"generate", "none.gguf", "-p", "a", "--device", "cuda"}),
              refuses(ErrorCode::bad_input, "none.gguf"));
  EXPECT_THAT(run({"chat", "none.gguf", "--device", "cuda"}),
              refuses(ErrorCode::usage, "--device"));
}

TEST_F(Gpu, CodeIsMadeForGpusThatHaveANameOnAnyMachine) {
  const auto compile = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"compile", "zoo:mlp,size=tiny", "--target",
                                      "sm_80",   "--cache",           "none"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  ASSERT_TRUE(compile({"--emit", "asm"}).ok()) << said_;
  EXPECT_THAT(said_, testing::HasSubstr(".target sm_80"));
  ASSERT_TRUE(compile({"--stop-after", "kernels"}).ok()) << said_;
  EXPECT_THAT(said_, testing::HasSubstr("for the GPU, 0 B of code"));
  EXPECT_THAT(compile({"--emit", "mlir"}), refuses(ErrorCode::unsupported, "sm_80...PTX"));
  EXPECT_THAT(compile({"--emit", "library", "-o", "libm.so"}),
              refuses(ErrorCode::unsupported, "library...CPUs...sm_80"));
  EXPECT_THAT(compile({"--emit", "plan", "--threads", "1"}),
              refuses(ErrorCode::usage, "--threads...GPU"));
  EXPECT_THAT(run({"run", "zoo:mlp,size=tiny", "--target", "sm_80", "--cache", "none"}),
              refuses(ErrorCode::unsupported, "sm_80...GPU"));
}

TEST_F(Gpu, AFileHasCodeForEachGpuThatIsAskedFor) {
  const TempDir folder = TempDir::create(std::filesystem::temp_directory_path()).value();
  const std::string model = "zoo:mlp,size=tiny", file = folder.path() / "m.honec";
  ASSERT_TRUE(run({"compile", model, "--target", "sm_90", "--cache", "none", "-o", file}).ok());
  EXPECT_THAT(said_, testing::HasSubstr("for sm_90; sm_80; "));
  ASSERT_TRUE(run({"inspect", file}).ok());
  EXPECT_THAT(said_, testing::HasSubstr("version 8 of the format"));
  EXPECT_THAT(said_, testing::HasSubstr("sm_90, SMs 132"));

  ASSERT_TRUE(add_kernels({"run", model, "--target", "sm_90", "--cache", "none"}).ok());
  const std::vector<std::string> on_gpu = {"--device", "cuda", "--cache", "none"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), on_gpu.begin(), on_gpu.end());
    return run(words);
  };
  EXPECT_THAT(with({"run", file}), says_ok());
  EXPECT_THAT(with({"bench", file, "--runs", "3", "--profile"}), says_ok());
  EXPECT_THAT(with({"check", file, "--model", model}), says_ok());
  for (const char* command : {"run", "bench"})
    EXPECT_THAT(with({command, file, "--flush-denormals"}),
                refuses(ErrorCode::unsupported, "denormal...hone compile --flush-denormals"));
  const std::string flushing = folder.path() / "flushing.honec";
  ASSERT_TRUE(run({"compile", model, "--target", "sm_90", "--flush-denormals", "--cache", "none",
                   "-o", flushing})
                  .ok());
  ASSERT_TRUE(
      add_kernels({"run", model, "--target", "sm_90", "--flush-denormals", "--cache", "none"})
          .ok());
  EXPECT_THAT(with({"run", flushing, "--flush-denormals"}), says_ok());

  // The CPU runs its own code, without a driver too, and refuses what is for a GPU alone.
  EXPECT_THAT(run({"run", file}), says_ok());
  EXPECT_THAT(run({"check", file, "--model", model, "--threads", "1"}), says_ok());
  ASSERT_TRUE(run({"compile", model, "--target", "sm_80", "--emit", "plan", "-o",
                   folder.path() / "gpu.plan"})
                  .ok());
  const std::string alone = folder.path() / "gpu.honec";
  ASSERT_TRUE(run({"compile", model, "--target", "sm_80", "--plan", folder.path() / "gpu.plan",
                   "--cache", "none", "-o", alone})
                  .ok())
      << said_;
  EXPECT_THAT(said_, testing::ContainsRegex("for sm_80\n"));
  EXPECT_THAT(run({"run", alone}), refuses(ErrorCode::unsupported, "GPUs...sm_80...CPU"));
  const std::string plain = folder.path() / "cpu.honec";
  ASSERT_TRUE(run({"compile", model, "--cache", "none", "-o", plain}).ok());
  EXPECT_THAT(with({"run", plain}), refuses(ErrorCode::unsupported, "CPUs...sm_80"));
  cuda_.reset({.capability = 86});
  ASSERT_TRUE(add_kernels({"run", model, "--target", "sm_80", "--cache", "none"}).ok());
  EXPECT_THAT(with({"run", file}), says_ok());
}

TEST_F(Gpu, FilesAreAskedForInSeveralWays) {
  const TempDir folder = TempDir::create(std::filesystem::temp_directory_path()).value();
  const std::string file = folder.path() / "m.honec";
  const auto compile = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"compile", "zoo:mlp,size=tiny", "--cache", "none", "-o",
                                      file};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  ASSERT_TRUE(compile({"--target", "sm_80"}).ok());
  EXPECT_THAT(said_, testing::HasSubstr("for sm_80; "));
  ASSERT_TRUE(compile({"--target", "sm_89, sm_90"}).ok());
  EXPECT_THAT(said_, testing::HasSubstr("for sm_90; sm_89; sm_80; "));
  ASSERT_TRUE(compile({"--device", "cuda", "--threads", "1"}).ok());  // that of this machine
  EXPECT_THAT(said_, testing::HasSubstr("for sm_90; sm_80; "));
  for (const char* list : {"sm_80,avx2", "avx2,sm_80"})
    EXPECT_THAT(compile({"--target", list}), refuses(ErrorCode::usage, "no GPU 'avx2'"));
  EXPECT_THAT(run({"compile", "zoo:mlp,size=tiny", "--target", "sm_80,sm_90", "--emit", "plan"}),
              refuses(ErrorCode::usage, "list of GPUs...-o FILE.honec"));
  EXPECT_THAT(run({"compile", "zoo:mlp,size=tiny,symbolic-batch", "--target", "sm_80", "--cache",
                   "none", "-o", file}),
              refuses(ErrorCode::unsupported, "numbers...--dim"));
}

// f32 as parts of bf16.
TEST_F(Gpu, ProductsOfF32TakeTensorCores) {
  const TempDir folder = TempDir::create(std::filesystem::temp_directory_path()).value();
  const std::string model = folder.path() / "product.hone", plan = folder.path() / "p.plan";
  const auto write = [&](int64_t rows, int64_t columns, int64_t depth) {
    const std::string text = fmt::format(
        "graph @product(%a: f32[{0}, {2}], %b: f32[{2}, {1}]) -> f32[{0}, {1}] {{ "
        "%c = dot %a, %b {{lhs_contract = [1], rhs_contract = [0]}} return %c }}",
        rows, columns, depth);
    ASSERT_TRUE(write_file_atomic(model, text).ok());
  };
  write(4096, 4096, 4096);
  for (const char* target : {"sm_80", "sm_90"}) {
    ASSERT_THAT(run({"compile", model, "--target", target, "--emit", "plan"}), says_ok());
    EXPECT_THAT(said_, testing::HasSubstr("products = matrix"));
  }

  write(40, 48, 70);
  ASSERT_THAT(run({"compile", model, "--target", "sm_90", "--emit", "plan", "-o", plan}),
              says_ok());
  std::string text = read_file(plan, 1 << 16).value();
  const size_t begin = text.find("{algorithm"), end = text.find('}', begin);
  ASSERT_LT(end, text.size());
  text.replace(begin, end - begin,
               "{algorithm = block_tiles, order = [0, 1], threads = 2, rows = 32, columns = 32, "
               "depth = 32, own_rows = 32, own_columns = 16, products = matrix, ahead = 1");
  ASSERT_TRUE(write_file_atomic(plan, text).ok());
  const std::vector<std::string> check = {"check",  model, "--device", "cuda",
                                          "--plan", plan,  "--cache",  "none"};
  ASSERT_THAT(add_kernels(check), says_ok());
  EXPECT_THAT(run(check), says_ok());
}

// Levels of precision are measured on the GPU that a file is for. Its driver knows none of these
// kernels.
TEST_F(Gpu, LevelsAreMeasuredOnTheGpuItself) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::string file = folder.path() / "m.honec";
  const auto compile = [&](const std::string& option, const std::string& value) {
    return run({"compile", "zoo:mlp,size=tiny", option, value, "--error", "1e-2", "--cache", "none",
                "-o", file});
  };
  EXPECT_THAT(compile("--device", "cuda"), refuses(ErrorCode::limit, "the GPU failed"));
  EXPECT_THAT(compile("--target", "sm_90"),
              refuses(ErrorCode::unsupported, "--error measures ...--device cuda"));
}

// tf32, whose error is that of the kernels themselves: the second oracle computes them.
TEST_F(Gpu, Tf32IsMeasuredAndItsErrorPrinted) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::string model = folder.path() / "layer.hone", small = folder.path() / "small.hone";
  Rng rng(1);
  std::vector<double> weights;
  for (int i = 0; i < 512 * 128; ++i) weights.push_back(rng.normal());
  Builder b("layer");
  const Value x = b.parameter("x", DType::f32, {64, 512});
  const Value w = b.constant(Tensor::from_reals(Type::get(DType::f32, {512, 128}), weights), "w");
  const Graph graph = b.finish({matmul(x, w).named("y")}).value();
  Console console(Console::Options{});
  ASSERT_THAT(write_model(model_of(graph), model, console, {}), says_ok());

  const std::vector<std::string> words = {"--device", "cuda",    "--to", "tf32",       "--error",
                                          "1e-2",     "--cache", "none", "--progress", "none"};
  const auto with = [&](std::vector<std::string> command) {
    command.insert(command.end(), words.begin(), words.end());
    return command;
  };
  cuda_.reset({.capability = 80});
  const std::vector<quantize::Layer> layers = quantize::layers_of(graph).value();
  const std::vector<quantize::LayerChoice> choices = {{.level = quantize::Precision::tf32}};
  for (const Graph& each : {graph, quantize::probe(graph, layers).value(),
                            quantize::quantized(graph, layers, choices, 32).value()})
    ASSERT_THAT(add_kernels_of(each), says_ok());
  ASSERT_THAT(run(with({"run", model})), says_ok());
  EXPECT_THAT(said_, testing::ContainsRegex("1 of 1 layers have fewer bits \\(1 tf32\\)"));
  EXPECT_THAT(said_, testing::ContainsRegex("on unseen arrays error 0.000[1-9]"));
  const Status good = run({"quantize", model, "--device", "cuda", "--to", "tf32", "--error", "1e-2",
                           "-o", small, "--progress", "none"});
  ASSERT_THAT(good, says_ok()) << said_;
  EXPECT_THAT(said_, testing::ContainsRegex("y +tf32 +0.000[1-9]"));
  EXPECT_THAT(read_file(small, 1 << 20).value(), testing::HasSubstr("parts = 1"));
  ASSERT_THAT(run({"compile", small, "--target", "sm_80", "--emit", "plan"}), says_ok());
  EXPECT_THAT(said_, testing::HasSubstr("products = matrix"));
}

TEST_F(Gpu, Tf32IsForGpus) {
  for (const char* command : {"run", "quantize"})
    EXPECT_THAT(run({command, "zoo:mlp,size=tiny", "--to", "tf32", "--error", "1e-2"}),
                refuses(ErrorCode::usage, "GPUs alone multiply tf32...--device cuda"));
  EXPECT_THAT(run({"run", "zoo:mlp,size=tiny", "--backend", "reference", "--error", "1e-2"}),
              refuses(ErrorCode::usage, "--error...native"));
}

// A share of the standard's own cases: under the plan of a GPU, by the fake driver, kernels as the
// second oracle computes them. Graphs whose sizes data decide have no kernels before they run.
TEST_F(Gpu, NodeTestsOfOnnxAgree) {
  const std::filesystem::path data = "/usr/share/libonnx-testdata/data/node";
  if (!std::filesystem::is_directory(data))
    GTEST_SKIP() << "there is no " << data << " (package libonnx-testdata)";
  const std::filesystem::path folders[] = {data};
  const std::vector<ConformanceCase> cases = find_conformance_cases(folders).value();
  std::map<CaseClass, int> counts;
  uint64_t number = 0;
  for (const ConformanceCase& one : cases) {
    if (!tested::in_share(number++, 30) || one.name.find("adam_multiple") != std::string::npos)
      continue;
    NativeOptions options;
    CaseOptions judged;
    judged.compile = [&](const Model& model) -> Result<std::shared_ptr<const Runnable>> {
      const Graph* const graph = single_graph(model);
      if (graph == nullptr || !graph->is_static())
        return unsupported("its sizes are known when it runs");
      cuda_.reset({});
      options.device = HONE_TRY(cuda_.device());
      options.target = HONE_TRY(gpu_target(*options.device));
      HONE_TRY(add_kernels_of(*graph));
      return std::shared_ptr<const Runnable>(HONE_TRY(native_model(model, {}, options)));
    };
    const CaseOutcome outcome = run_conformance_case(one.folder, judged);
    ++counts[outcome.result];
    EXPECT_TRUE(outcome.result == CaseClass::pass || outcome.result == CaseClass::unsupported)
        << one.name << ": " << outcome.reason << " " << outcome.where;
    options.device = nullptr;
  }
  EXPECT_GT(counts[CaseClass::pass], counts[CaseClass::unsupported]);
}

TEST_F(Gpu, ExplainNeedsNoGpu) {
  const auto explain = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"explain", "zoo:mlp,size=tiny", "--no-log", "--cache",
                                      "none"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  EXPECT_THAT(explain({"--target", "sm_90"}), says_ok());
  EXPECT_THAT(said_, testing::ContainsRegex("kernels? runs? on the GPU"));
  EXPECT_THAT(said_, testing::ContainsRegex("\n  [a-z_]+ +order = "));
  EXPECT_THAT(explain({"--device", "cuda", "--json", "-"}), says_ok());
  EXPECT_THAT(said_, testing::HasSubstr("\"on_cpu\": []"));
  cuda_.reset({.devices = 0});
  EXPECT_THAT(explain({"--device", "cuda"}), says_ok());
  EXPECT_THAT(said_, testing::HasSubstr("the plan is for sm_80"));
  EXPECT_THAT(said_, testing::ContainsRegex("kernels? runs? on the GPU"));
}

// A set of made-up times: twice what the analytic price says.
void write_set_of_gpu(const std::string& folder, const Target& card) {
  const DataSetInfo info = {.target = card,
                            .conditions = "protocol=1 threads=1 cold=none",
                            .version = "test",
                            .seed = 1,
                            .schedules = 8};
  DataSet set = DataSet::make(folder, info).value();
  const GpuCost analytic(card);
  for (int64_t width : {64, 300, 1000}) {
    const std::string text =
        fmt::format("graph @g(%x: f32[30, {}]) {{ %y = softmax %x return %y }}", width);
    const auto facts = std::make_shared<const KernelFacts>(
        body_of_all(prepare(parse_graph(text).value()).value()));
    const auto price = analytic.kernel(facts, 1);
    std::vector<Record> records;
    std::string planned;
    for (const Schedule& schedule :
         ScheduleSpace(facts->body, *facts, card).enumerate(info.schedules)) {
      const double seconds = 2 * price->seconds(schedule);
      if (planned.empty()) planned = print(schedule);
      records.push_back({.kind = "kernel",
                         .subject = facts->hash,
                         .choice = print(schedule),
                         .code = 1000 * facts->hash + records.size(),
                         .target = fingerprint(card),
                         .conditions = info.conditions,
                         .seconds = {seconds, seconds, seconds},
                         .version = "test"});
    }
    const KnownText known = {"kernel", facts->hash, print(facts->body)};
    ASSERT_TRUE(set.log().add(records, {&known, 1}).ok());
    const ProgramKernel kernel = {facts->hash, fmt::format("random:{}", width), planned, 1e-6};
    ASSERT_TRUE(set.add({&kernel, 1}).ok());
  }
}

TEST_F(Gpu, PricesAreLearnedFromASetOfItsKernels) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::string set = (folder.path() / "set").native(),
                    file = (folder.path() / "sm_90.price").native();
  write_set_of_gpu(set, *preset_gpu("sm_90"));
  if (HasFailure()) return;
  ASSERT_THAT(run({"train", "cost", set, "-o", file}), says_ok());
  EXPECT_THAT(said_, testing::HasSubstr("gpu price on \"sm_90\" of 3 kernels"));
  EXPECT_THAT(said_, testing::HasSubstr("2 before"));
  const auto explain = [&](const std::string& target, const std::string& cost) {
    return run({"explain", "zoo:mlp,size=tiny", "--no-log", "--cache", "none", "--target", target,
                "--cost", cost});
  };
  ASSERT_THAT(explain("sm_90", "analytic"), says_ok());
  const std::string analytic = said_;
  ASSERT_THAT(explain("sm_90", file), says_ok());
  EXPECT_NE(said_, analytic);
  EXPECT_THAT(explain("sm_80", file), refuses(ErrorCode::bad_input, "not for the target...sm_80"));
  EXPECT_THAT(explain("sm_90", "measured"), refuses(ErrorCode::usage, "measured"));
}

class GpuTimes : public Gpu {
 protected:
  // A model of one kernel. The planner's schedule takes longer than most others.
  void add_model(const fake::Fate& fate = {}) {
    const std::string text = "graph @g(%x: f32[200, 64]) { %y = exp %x return %y }";
    ASSERT_TRUE(write_file_atomic(model_, text).ok());
    cuda_.reset({.l2 = 1 << 20});  // which cold kernels fill each time
    const Target gpu = gpu_target(*cuda_.device().value()).value();
    Compilation usual(parse_graph(text).value(), gpu);
    const TileProgram planned = (*usual.program())->kernels[0].tiles;
    ASSERT_THAT(backing_.add(cuda_, planned, planned, gpu, 800, fate), says_ok());
    ASSERT_THAT(backing_.add_any(cuda_, planned, 200, fate), says_ok());
  }

  const TempDir folder_ = TempDir::create(testing::TempDir()).value();
  const std::string model_ = folder_.path() / "exp.hone", log_ = folder_.path() / "log.db",
                    set_ = folder_.path() / "set", price_ = folder_.path() / "gpu.price";
};

TEST_F(GpuTimes, TuningFindsAPlanThatOtherCommandsTake) {
  add_model();
  if (HasFailure()) return;
  ASSERT_THAT(run({"tune", model_, "--device", "cuda", "--only", "schedules", "--budget", "15s",
                   "--cache", "none", "--log", log_, "--progress", "none"}),
              says_ok());
  ASSERT_THAT(run({"explain", model_, "log", "--device", "cuda", "--cache", "none", "--log", log_}),
              says_ok());
  ::setenv("HONE_LOG", log_.c_str(), 1);
  EXPECT_THAT(run({"run", model_, "--device", "cuda", "--cache", "none"}), says_ok());
  EXPECT_THAT(said_, testing::ContainsRegex("the log's plan, [234][.]"));
  const std::string file = folder_.path() / "exp.honec";
  EXPECT_THAT(run({"compile", model_, "--device", "cuda", "--cache", "none", "-o", file}),
              says_ok());
  ::unsetenv("HONE_LOG");
  EXPECT_THAT(said_, testing::ContainsRegex("the log's plan, [234][.]"));
}

// A kernel makes the driver lose the GPU. A later build measures it.
TEST_F(GpuTimes, ADataSetHasNoKernelThatALostGpuHasRefused) {
  const std::vector<std::string> build = {"dataset",  "build",      model_,        "-o", set_,
                                          "--device", "cuda",       "--schedules", "8",  "--budget",
                                          "20s",      "--progress", "none"};
  for (const char* task : {"tile", "fusion"}) {
    add_model({.fails = 700});
    std::vector<std::string> words = build;
    words.insert(words.end(), {"--task", task, "--plans", "1"});
    EXPECT_THAT(run(words),
                refuses(ErrorCode::limit, "CUDA_ERROR_ILLEGAL_ADDRESS...the GPU is lost"))
        << said_;
  }
  add_model();
  ASSERT_THAT(run(build), says_ok()) << said_;
  EXPECT_THAT(said_, testing::HasSubstr("1 of 1 wanted are done"));
}

TEST_F(GpuTimes, ADataSetOfItsKernelsTeachesAPrice) {
  add_model();
  if (HasFailure()) return;
  const std::vector<std::string> build = {"dataset", "build",    model_, "-o",
                                          set_,      "--device", "cuda", "--schedules",
                                          "8",       "--budget", "20s"};
  ASSERT_THAT(run(build), says_ok());
  EXPECT_THAT(said_, testing::HasSubstr("1 of 1 wanted are done"));
  ASSERT_THAT(run({"dataset", "inspect", set_}), says_ok());
  EXPECT_THAT(said_, testing::HasSubstr("cold=all"));
  EXPECT_GT(cuda_.counts().copied, 0);  // other data fills the cache
  ASSERT_THAT(run({"train", "cost", set_, "-o", price_}), says_ok());
  EXPECT_THAT(said_, testing::HasSubstr("of 1 kernels"));
  for (const char* task : {"layout", "plans"})
    EXPECT_THAT(run({"dataset", "build", model_, "-o", set_, "--device", "cuda", "--task", task}),
                refuses(ErrorCode::unsupported, "single kernels...GPU...tile or fusion"));
  EXPECT_THAT(run({"dataset", "build", model_, "-o", set_, "--device", "cuda", "--isa", "avx2"}),
              refuses(ErrorCode::usage, "--isa...GPU"));
}

TEST_F(Gpu, AReportTellsWhereKernelsRun) {
  const TempDir folder = TempDir::create(std::filesystem::temp_directory_path()).value();
  const std::vector<std::string> words = {"report",
                                          "zoo:mlp,size=tiny",
                                          "--device",
                                          "cuda",
                                          "--cache",
                                          "none",
                                          "--no-log",
                                          "--seconds",
                                          "0.05",
                                          "-o",
                                          folder.path() / "page.html",
                                          "--json",
                                          "-"};
  ASSERT_TRUE(add_kernels(words).ok());
  EXPECT_THAT(run(words), says_ok());
  EXPECT_THAT(said_, testing::ContainsRegex("all [0-9]+ kernels run on the GPU"));
}

TEST_F(Gpu, AConformanceCaseRunsThere) {
  const TempDir folder = TempDir::create(std::filesystem::temp_directory_path()).value();
  const std::string model = folder.path() / "model.onnx";
  ASSERT_TRUE(run({"zoo", "export", "mlp", "--size", "tiny", "-o", model}).ok()) << said_;
  Rng rng(1);
  std::vector<double> numbers(2 * 16);
  for (double& number : numbers) number = rng.uniform();
  ASSERT_TRUE(write_npy(folder.path() / "input_0.npy",
                        Tensor::from_reals(Type::get(DType::f32, {2, 16}), numbers))
                  .ok());
  ASSERT_TRUE(
      run({"run", model, "--backend", "reference", "--input",
           "x=@" + (folder.path() / "input_0.npy").string(), "-o", folder.path() / "output_0.npy"})
          .ok())
      << said_;
  ASSERT_TRUE(add_kernels({"run", model, "--device", "cuda", "--cache", "none"}).ok());
  EXPECT_THAT(run({"conformance-case", "--backend", "native", "--device", "cuda", "--cache", "none",
                   "--", folder.path()}),
              says_ok());
  EXPECT_THAT(said_, testing::HasSubstr("pass"));
  cuda_.reset({.devices = 0});
  EXPECT_THAT(run({"conformance", folder.path(), "--device", "cuda"}),
              refuses(ErrorCode::unsupported, "no GPU...CPU"));
}

TEST_F(Gpu, TheGpusOfThisMachineAreDescribed) {
  cuda_.reset({.devices = 2, .capability = 89, .sms = 100, .memory = 64 << 20});
  ASSERT_TRUE(run({"target", "list"}).ok());
  EXPECT_THAT(said_, testing::ContainsRegex("cuda:1 +sm_89 +100 "));
  ASSERT_TRUE(run({"target", "probe", "--device", "cuda:1"}).ok()) << said_;
  EXPECT_THAT(said_, testing::HasSubstr("gpu = sm_89, 64 warps, 65536 registers, 228 KiB shared"));
  EXPECT_THAT(said_, testing::HasSubstr("cores = 100\n"));
  // The driver says the clock. An SM of sm_86 has 128 cores of f32, and 128 KiB of cache.
  cuda_.reset({.capability = 86});
  const Target desk = gpu_target(*cuda_.device().value()).value();
  EXPECT_NEAR(desk.peak(DType::f32), 2 * 128 * 1.98e9, 1e9);
  EXPECT_EQ(desk.caches[0].bytes, 256 << 10);  // of this driver
  EXPECT_NEAR(desk.memory_all_cores, 0.9 * 2 * 2.619e9 * 5120 / 8, 1e6);
  cuda_.reset({.devices = 2, .capability = 89, .sms = 100, .memory = 64 << 20});
  EXPECT_THAT(run({"target", "prices", "sm_90"}), refuses(ErrorCode::unsupported, "sm_90...GPU"));
  EXPECT_THAT(run({"explain", "zoo:mlp,size=tiny", "--target", "sm_86"}),
              refuses(ErrorCode::usage, "sm_86...sm_80, sm_89...sm_90"));
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/nowhere", 1);  // other programs that it asks take seconds
  EXPECT_TRUE(run({"doctor"}).ok());
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_THAT(said_, testing::HasSubstr("CUDA 12.4"));
  EXPECT_THAT(said_, testing::ContainsRegex("cuda:0 +Fake GPU, sm_89, 100 SMs, 64"));
}

}  // namespace
}  // namespace hone::cli::HONE_FILE
