#include <gtest/gtest.h>

#include "front/gguf/gguf_model.h"
#include "language/generation.h"
#include "language/speculation.h"
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
  LanguageSource source() const {
    LanguageSource read = language_of(file_).value();
    read.config.cache = cache_;
    return read;
  }
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
    options.cache = cache_;
    return LanguageModel::make(source(), std::move(options), face);
  }
  // Gives it those of steps that read these tokens, with caches of one size.
  void add_steps(int64_t places, const std::vector<int64_t>& tokens, int64_t rows = 1) {
    const LanguageSource read = source();
    const auto weights = weights_in_blocks(read.weights().value(), quantize::Precision::f32);
    const Graph graph = build_decoder(read.config, *weights).value();
    for (const int64_t n : tokens)
      add(graph, {{"tokens", Dim(n)}, {"rows", Dim(rows)}, {"room", Dim(places - n)}});
  }
  void add_steps_of_texts(int64_t places, int64_t texts) {
    const LanguageSource read = source();
    const auto weights = weights_in_blocks(read.weights().value(), quantize::Precision::f32);
    add(build_decoder_of_texts(read.config, *weights, texts).value(), {{"room", Dim(places - 1)}});
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

  CacheType cache_ = CacheType::f32;
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

// Bytes and their scales are arrays of their own.
TEST_F(OnGpu, CachesOfBytesMakeTheTextsOfTheCpu) {
  cache_ = CacheType::q8;
  const std::vector<TokenId> prompt = {10, 20, 30};
  const std::unique_ptr<LanguageModel> here = model(nullptr), there = model(device_);
  add_steps(there->places(), {LanguageModel::kChunk, 1});
  if (HasFailure()) return;
  const Generation wanted = generate(*here, prompt, {.max_tokens = 6}).value();
  const Result<Generation> made = generate(*there, prompt, {.max_tokens = 6});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_EQ(made->tokens, wanted.tokens);
  EXPECT_EQ(cuda_.counts().copied, 0);
}

void expect_near(std::span<const float> actual, std::span<const float> expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 1e-4) << i;
}

// A token takes as many bytes over the bus behind 580 others as behind 3, and nothing is allocated
// or copied on the GPU for it. No code is made again.
TEST_F(OnGpu, TokensGoInAndLogitsComeOut) {
  constexpr int64_t kContext = 600;
  const std::unique_ptr<LanguageModel> here = model(nullptr, kContext),
                                       there = model(device_, kContext);
  EXPECT_EQ(here->places(), 512);
  EXPECT_EQ(there->places(), 640);
  add_steps(there->places(), {LanguageModel::kChunk, 1});
  if (HasFailure()) return;
  const std::vector<TokenId> first = {10, 20, 30}, one = {40};
  std::vector<TokenId> more;
  for (TokenId i = 0; i < 3 * LanguageModel::kChunk; ++i) more.push_back(i * 7 % 260);
  const auto expect_token = [&] {
    const fake::Counts before = cuda_.counts();
    const std::vector<float> logits = there->read(one).value();
    const fake::Counts after = cuda_.counts();
    expect_near(logits, here->read(one).value());
    EXPECT_EQ(after.copied_to - before.copied_to, 3 * 8) << "the token, its position and its row";
    EXPECT_EQ(after.copied_from - before.copied_from, 4 * int64_t{kTinyVocabulary});
    EXPECT_EQ(after.copied, before.copied);
    EXPECT_EQ(after.allocations, before.allocations);
    EXPECT_EQ(after.graphs, before.graphs);
  };
  expect_near(there->read(first).value(), here->read(first).value());
  expect_near(there->read(one).value(), here->read(one).value());
  expect_token();
  for (int i = 0; i < 6; ++i) expect_near(there->read(more).value(), here->read(more).value());
  EXPECT_EQ(here->places(), 640);
  expect_token();
  EXPECT_EQ(there->places(), 640);
  EXPECT_EQ(there->compiled(), 2);
  there->keep(2), here->keep(2);
  expect_token();
}

// Each text has caches of its own on the GPU. A step for all of them is one pass over the weights.
TEST_F(OnGpu, TextsTogetherAreThoseOfTheCpu) {
  const std::vector<std::vector<TokenId>> prompts = {{10, 20, 30}, {40}, {50, 60}};
  const std::unique_ptr<LanguageModel> here = model(nullptr), there = model(device_);
  add_steps(there->places(), {LanguageModel::kChunk, 1});
  add_steps_of_texts(there->places(), 2);
  if (HasFailure()) return;
  for (const bool is_apart : {false, true}) {
    const GenerationOptions options = {.max_tokens = 6, .is_apart = is_apart};
    const std::vector<Generation> wanted = generate_all(*here, prompts, options).value();
    const auto made = generate_all(*there, prompts, options);
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    for (size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ((*made)[i].tokens, wanted[i].tokens);
    EXPECT_EQ(there->compiled(), 3);
  }
  std::vector<LanguageModel::Memory> memories = there->new_memories(2).value();
  const std::vector<LanguageModel::Memory*> texts = {&memories[0], &memories[1]};
  const std::vector<TokenId> tokens = {7, 8};
  ASSERT_TRUE(there->read_together(texts, tokens).ok());
  const fake::Counts before = cuda_.counts();
  ASSERT_TRUE(there->read_together(texts, tokens).ok());
  const fake::Counts after = cuda_.counts();
  EXPECT_EQ(after.copied_to - before.copied_to, 2 * 2 * 8) << "tokens and positions";
  EXPECT_EQ(after.copied_from - before.copied_from, 2 * 4 * int64_t{kTinyVocabulary});
  EXPECT_EQ(after.copied, before.copied);
}

// Wrong guesses leave rows behind the text, which later tokens overwrite.
TEST_F(OnGpu, GuessesChangeNoText) {
  const std::vector<TokenId> prompt = {10, 20, 30, 10, 20, 30, 10, 20};
  const std::unique_ptr<LanguageModel> here = model(nullptr), there = model(device_);
  add_steps(there->places(), {LanguageModel::kChunk, 1});
  add_steps(there->places(), {LanguageModel::kFew}, LanguageModel::kFew);
  if (HasFailure()) return;
  LookupDrafter drafter;
  const Generation wanted = generate(*here, prompt, {.max_tokens = 12}).value();
  const auto made = generate(*there, prompt, {.max_tokens = 12, .drafter = &drafter});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_GT(made->guessed_tokens, 0);
  EXPECT_EQ(made->tokens, wanted.tokens);
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

TEST_F(OnGpu, ALostDeviceIsNamed) {
  const std::unique_ptr<LanguageModel> there = model(device_);
  add_steps(there->places(), {LanguageModel::kChunk, 1});
  if (HasFailure()) return;
  const std::vector<TokenId> first = {10, 20, 30}, next = {40};
  ASSERT_TRUE(there->read(first).ok());
  ASSERT_TRUE(there->prepare(1).ok());
  cuda_.fail(5, 700);
  const auto lost = there->read(next);
  ASSERT_FALSE(lost.ok());
  EXPECT_THAT(lost.error().to_string(),
              tested::says("while hone...CUDA_ERROR_ILLEGAL_ADDRESS...cuda:0"));
  EXPECT_THAT(there->read(next).error().to_string(), tested::says("CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_EQ(there->tokens().size(), 3U);
}

// A part of what the memory delivers tells how good a step is. The chip's products in bytes would
// say nothing of kernels in f32.
TEST_F(OnGpu, NamesTheSpeedOfItsMemory) {
  const std::unique_ptr<LanguageModel> here = model(nullptr), there = model(device_);
  EXPECT_GT(here->products_per_second(), 0);
  EXPECT_EQ(there->products_per_second(), 0);
  EXPECT_EQ(there->bandwidth(), target_.memory_all_cores);
}

// The caches of a text are on the GPU once, before any code is made.
TEST_F(OnGpu, CachesCountOnce) {
  const int64_t before = device_->free_bytes().value();
  const std::unique_ptr<LanguageModel> here = model(nullptr), there = model(device_);
  const int64_t caches = source().config.cache_bytes(64 + LanguageModel::kChunk);
  EXPECT_EQ(there->memory(), here->memory());
  EXPECT_EQ(before - device_->free_bytes().value(), caches);
  EXPECT_TRUE(made(device_, 64, {.memory_limit = there->memory()}).ok());
  EXPECT_THAT(made(device_, 64, {.memory_limit = there->memory() - 1}),
              tested::refuses(ErrorCode::limit, "the model needs...context of 64 tokens"));
}

TEST_F(OnGpu, SaysHowMuchMemoryIsMissing) {
  const int64_t caches = source().config.cache_bytes(608 + LanguageModel::kChunk);
  cuda_.reset({.memory = 3 * caches});
  const auto there = made(device_, 600);
  ASSERT_TRUE(there.ok()) << there.error().to_string();
  EXPECT_THAT((*there)->new_memories(3),
              tested::refuses(ErrorCode::limit,
                              "Fake GPU...for the keys and values of a text..."
                              "missing"));
  EXPECT_THAT(made(device_, 600), tested::refuses(ErrorCode::limit,
                                                  "Fake GPU...for weights and...context of 600 "
                                                  "tokens...missing...a context of"));
}

}  // namespace
}  // namespace hone::HONE_FILE
