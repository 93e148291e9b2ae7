#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/native.h"
#include "cli/source.h"
#include "compile/compilation.h"
#include "session/gpu.h"
#include "session/native.h"
#include "tests/fake_cuda/backing_testing.h"

// Commands on the fake GPU.

namespace hone::cli {

class GpuFixture : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("HONE_CUDA_LIBRARY", tested::FakeCuda::library().c_str(), 1);
    ::setenv("HONE_PTXAS", "none", 1);
  }
  void TearDown() override {
    ::unsetenv("HONE_CUDA_LIBRARY");
    ::unsetenv("HONE_PTXAS");
  }

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

  // The same for a graph under the default plan for the fake GPU.
  Status add_kernels_of(const Graph& graph) {
    NativeOptions options;
    options.target = HONE_TRY(gpu_target(*HONE_TRY(cuda_.device())));
    const Model model = model_of(graph);
    Compilation compilation(*single_graph(model), options.target,
                            HONE_TRY(compile_options(*single_graph(model), model, {}, options)));
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

  tested::FakeCuda cuda_;
  tested::GpuBacking backing_;
  std::string said_;
};

}  // namespace hone::cli
