#include "cli/gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/native.h"
#include "cli/source.h"
#include "compile/compilation.h"
#include "tests/base/says_testing.h"
#include "tests/fake_cuda/backing_testing.h"

// Commands on the fake GPU.

namespace hone::cli::HONE_FILE {
namespace {

using tested::FakeCuda;
using tested::GpuBacking;
using tested::refuses;

class Gpu : public testing::Test {
 protected:
  void SetUp() override { ::setenv("HONE_CUDA_LIBRARY", FakeCuda::library().c_str(), 1); }
  void TearDown() override { ::unsetenv("HONE_CUDA_LIBRARY"); }

  // The command, with all that it says in `said_`.
  Status run(std::vector<std::string> words) {
    std::FILE* const file = std::tmpfile();
    Status status;
    {
      Console console(Console::Options{.out = file, .err = file});
      const Result<Arguments> arguments = parse_arguments(words);
      status = arguments.ok() ? arguments->command().run(*arguments, console)
                              : Status(arguments.error());
    }
    said_.resize(static_cast<size_t>(std::ftell(file)));
    std::rewind(file);
    said_.resize(std::fread(said_.data(), 1, said_.size(), file));
    std::fclose(file);
    return status;
  }

  // Gives the fake GPU the kernels that this command will launch.
  Status add_kernels(std::vector<std::string> words) {
    Console console(Console::Options{});
    const Arguments arguments = HONE_TRY(parse_arguments(words));
    const NativeOptions options = HONE_TRY(native_options(arguments, console));
    const Source source =
        HONE_TRY(given_source(arguments.text("MODEL"), arguments, console, {.runs_inputs = true}));
    const Graph* const graph = single_graph(source.model);
    Compilation compilation(*graph, options.target,
                            HONE_TRY(compile_options(*graph, source.model, {}, options)));
    return backing_.add(cuda_, *HONE_TRY(compilation.program()), options.target);
  }

  void expect_right(const std::string& model) {
    SCOPED_TRACE(model);
    const std::vector<std::string> words = {"check",   model,  "--device",   "cuda",
                                            "--cache", "none", "--progress", "none"};
    cuda_.reset({});
    const Status added = add_kernels(words);
    ASSERT_TRUE(added.ok()) << added.error().to_string();
    const Status good = run(words);
    EXPECT_TRUE(good.ok()) << good.error().to_string() << "\n" << said_;
  }

  FakeCuda cuda_;
  GpuBacking backing_;
  std::string said_;
};

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
  refused({"--devices", "cuda:0,cpu"}, "a GPU runs a model alone");
  refused({"--device", "cuda", "--threads", "2"}, "--threads...GPU");
  refused({"--device", "cuda", "--isa", "avx2"}, "--isa...GPU");
  refused({"--device", "cuda", "--cost", "analytic"}, "--cost...CPUs");
  EXPECT_THAT(run({"run", "zoo:mlp,size=tiny", "--device", "cuda:3"}),
              refuses(ErrorCode::unsupported, "cuda:3...1"));
  EXPECT_THAT(run({"compile", "zoo:mlp,size=tiny", "--device", "cuda", "-o", "m.honec"}),
              refuses(ErrorCode::usage, "hone compile...GPU"));
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
  EXPECT_THAT(compile({"-o", "m.honec"}), refuses(ErrorCode::unsupported, "CPUs...sm_80"));
  EXPECT_THAT(run({"run", "zoo:mlp,size=tiny", "--target", "sm_80", "--cache", "none"}),
              refuses(ErrorCode::unsupported, "sm_80...GPU"));
}

TEST_F(Gpu, TheGpusOfThisMachineAreDescribed) {
  cuda_.reset({.devices = 2, .capability = 89, .sms = 100, .memory = 64 << 20});
  ASSERT_TRUE(run({"target", "list"}).ok());
  EXPECT_THAT(said_, testing::ContainsRegex("cuda:1 +sm_89 +100 "));
  ASSERT_TRUE(run({"target", "probe", "--device", "cuda:1"}).ok()) << said_;
  EXPECT_THAT(said_, testing::HasSubstr("gpu = sm_89, 64 warps, 65536 registers, 228 KiB shared"));
  EXPECT_THAT(said_, testing::HasSubstr("cores = 100\n"));
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/nowhere", 1);  // other programs that it asks take seconds
  EXPECT_TRUE(run({"doctor"}).ok());
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_THAT(said_, testing::HasSubstr("CUDA 12.4"));
  EXPECT_THAT(said_, testing::ContainsRegex("cuda:0 +Fake GPU, sm_89, 100 SMs, 64"));
}

}  // namespace
}  // namespace hone::cli::HONE_FILE
