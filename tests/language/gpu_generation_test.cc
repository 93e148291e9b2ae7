#include <gtest/gtest.h>

#include "front/gguf/gguf_model.h"
#include "language/generation.h"
#include "language/weights_in_blocks.h"
#include "session/gpu.h"
#include "tests/base/says_testing.h"
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
  std::unique_ptr<LanguageModel> model(std::shared_ptr<const CudaDevice> device,
                                       int64_t context = 64) const {
    return made(std::move(device), context).value();
  }
  Result<std::unique_ptr<LanguageModel>> made(std::shared_ptr<const CudaDevice> device,
                                              int64_t context, const Face& face = {}) const {
    LanguageModel::Options options;
    options.native.target = device == nullptr ? host_target().value() : target_;
    options.native.device = std::move(device);
    options.context = context;
    return LanguageModel::make(source(), std::move(options), face);
  }
  // Gives it those of steps that read these tokens, with caches of one size.
  void add_steps(int64_t places, const std::vector<int64_t>& tokens) {
    const LanguageSource read = source();
    const auto weights = weights_in_blocks(read.weights().value(), quantize::Precision::f32);
    const Graph graph = build_decoder(read.config, *weights).value();
    for (const int64_t n : tokens)
      add(graph, {{"tokens", Dim(n)}, {"rows", Dim(1)}, {"room", Dim(places - n)}});
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
  const std::string bytes_ = tiny_gguf({.context = 700});
  const Gguf file_ = parse_gguf(std::as_bytes(std::span(bytes_)), "tiny").value();
};

TEST_F(OnGpu, TextsAreThoseOfTheCpu) {
  const std::vector<TokenId> prompt = {10, 20, 30};
  const std::unique_ptr<LanguageModel> here = model(nullptr), there = model(device_);
  const int64_t places = here->places();
  add_steps(places, {LanguageModel::kChunk, 1});
  if (HasFailure()) return;
  const Generation wanted = generate(*here, prompt, {.max_tokens = 6}).value();
  const Result<Generation> made = generate(*there, prompt, {.max_tokens = 6});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_EQ(made->tokens, wanted.tokens);
  EXPECT_EQ(there->compiled(), 2);
}

void expect_near(std::span<const float> actual, std::span<const float> expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 1e-4) << i;
}

// The GPU has code for one size of caches at a time, and each text gets caches of that size.
TEST_F(OnGpu, CodeIsMadeAgainWhenCachesGrow) {
  constexpr int64_t kContext = 600;
  const std::unique_ptr<LanguageModel> here = model(nullptr, kContext),
                                       there = model(device_, kContext);
  const std::vector<TokenId> first = {10, 20, 30};
  std::vector<TokenId> more;
  for (TokenId i = 0; i < 3 * LanguageModel::kChunk; ++i) more.push_back(i * 7 % 260);
  for (const int64_t places : {int64_t{512}, int64_t{640}})
    add_steps(places, {LanguageModel::kChunk});
  if (HasFailure()) return;
  expect_near(there->read(first).value(), here->read(first).value());
  EXPECT_EQ(there->places(), 512);
  const int64_t code_of_first = cuda_.live();
  LanguageModel::Memory other = std::move(there->new_memories(1).value()[0]);
  for (int i = 0; i < 6; ++i) expect_near(there->read(more).value(), here->read(more).value());
  EXPECT_EQ(there->places(), 640);
  EXPECT_EQ(there->compiled(), 2);
  EXPECT_LT(cuda_.live(), code_of_first * 5 / 4) << "what was there before is given back";
  there->swap_memory(other);
  EXPECT_EQ(there->places(), 512);
  here->keep(0);
  expect_near(there->read(first).value(), here->read(first).value());
  EXPECT_EQ(there->places(), 640);
  EXPECT_EQ(there->compiled(), 2);
}

TEST_F(OnGpu, TextsOutliveACancelledStep) {
  const std::unique_ptr<LanguageModel> here = model(nullptr), there = model(device_);
  add_steps(there->places(), {LanguageModel::kChunk, 1});
  if (HasFailure()) return;
  const std::vector<TokenId> first = {10, 20, 30}, next = {40};
  ASSERT_TRUE(here->read(first).ok());
  ASSERT_TRUE(there->read(first).ok());
  ASSERT_TRUE(there->prepare(1).ok());  // its code is there: the step itself is cancelled
  CancelToken cancel;
  cancel.cancel();
  there->set_face({.cancel = &cancel});
  const auto cancelled = there->read(next);
  ASSERT_FALSE(cancelled.ok());
  EXPECT_EQ(cancelled.error().code(), ErrorCode::interrupted);
  there->set_face({});
  EXPECT_EQ(there->tokens().size(), 3U);
  expect_near(there->read(next).value(), here->read(next).value());
}

// Rates of the chip alone would say nothing of steps that wait for caches to cross the bus.
TEST_F(OnGpu, NoRateIsSaid) {
  const std::unique_ptr<LanguageModel> here = model(nullptr), there = model(device_);
  EXPECT_GT(here->products_per_second(), 0);
  EXPECT_EQ(there->products_per_second(), 0);
  EXPECT_EQ(there->bandwidth(), 0);
}

// A step has the caches before it and those behind it.
TEST_F(OnGpu, CachesCountTwice) {
  const int64_t here = model(nullptr)->memory(), there = model(device_)->memory();
  const int64_t caches = source().config.cache_bytes(64 + LanguageModel::kChunk);
  EXPECT_EQ(there, here + caches);
  EXPECT_TRUE(made(device_, 64, {.memory_limit = there}).ok());
  EXPECT_THAT(made(device_, 64, {.memory_limit = here}),
              tested::refuses(ErrorCode::limit, "the model needs...context of 64 tokens"));
}

}  // namespace
}  // namespace hone::HONE_FILE
