#include <gtest/gtest.h>

#include "front/gguf/gguf_model.h"
#include "language/generation.h"
#include "language/weights_in_blocks.h"
#include "session/gpu.h"
#include "tests/fake_cuda/backing_testing.h"
#include "tests/front/gguf_file.h"

// Language models on the fake GPU, beside the CPU.

namespace hone::HONE_FILE {
namespace {

using tested::FakeCuda;
using tested::GpuBacking;

class OnGpu : public testing::Test {
 protected:
  LanguageSource source() const { return language_of(file_).value(); }
  std::unique_ptr<LanguageModel> model(std::shared_ptr<const CudaDevice> device) const {
    LanguageModel::Options options;
    options.native.target = device == nullptr ? host_target().value() : target_;
    options.native.device = std::move(device);
    options.context = 64;
    return LanguageModel::make(source(), std::move(options)).value();
  }
  // Gives the GPU the kernels of a graph with these sizes.
  void add(const Graph& graph, const Bindings& sizes) {
    const Graph one = specialize(graph, sizes).value();
    NativeOptions native;
    native.target = target_;
    Compilation code(one, target_, compile_options(native, nullptr));
    const Status added = backing_.add(cuda_, **code.program(), target_);
    ASSERT_TRUE(added.ok()) << added.error().to_string();
  }

  const FakeCuda cuda_;
  GpuBacking backing_;
  const std::shared_ptr<const CudaDevice> device_ = cuda_.device().value();
  const Target target_ = gpu_target(*device_).value();
  const std::string bytes_ = tiny_gguf({});
  const Gguf file_ = parse_gguf(std::as_bytes(std::span(bytes_)), "tiny").value();
};

TEST_F(OnGpu, TextsAreThoseOfTheCpu) {
  const std::vector<TokenId> prompt = {10, 20, 30};
  const std::unique_ptr<LanguageModel> here = model(nullptr), there = model(device_);
  const int64_t places = here->places();
  const LanguageSource read = source();
  const auto weights = weights_in_blocks(read.weights().value(), quantize::Precision::f32);
  const Graph graph = build_decoder(read.config, *weights).value();
  for (const int64_t tokens : {LanguageModel::kChunk, int64_t{1}})
    add(graph, {{"tokens", Dim(tokens)}, {"rows", Dim(1)}, {"room", Dim(places - tokens)}});
  if (HasFailure()) return;
  const Generation wanted = generate(*here, prompt, {.max_tokens = 6}).value();
  const Result<Generation> made = generate(*there, prompt, {.max_tokens = 6});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_EQ(made->tokens, wanted.tokens);
  EXPECT_EQ(there->compiled(), 2);
}

}  // namespace
}  // namespace hone::HONE_FILE
