// Any number of threads gives the same bits: logits, and the texts that are drawn by them.

#include <gtest/gtest.h>

#include "front/gguf/gguf_model.h"
#include "language/speculation.h"
#include "target/target.h"
#include "tests/front/gguf_file.h"

namespace hone::HONE_FILE {
namespace {

using Ids = std::vector<TokenId>;

Ids ids(TokenId count, TokenId step) {
  Ids all;
  for (TokenId i = 0; i < count; ++i) all.push_back((i * step + 5) % 250);
  return all;
}

// All that a model says, by each of its programs.
struct Said {
  std::vector<float> prompt, step, rows;
  std::vector<Generation> texts;
};

LanguageModel::Options options_of(int64_t threads, CacheType cache) {
  LanguageModel::Options options = {.cache = cache};
  options.native.target = host_target().value();
  options.native.target.cores = 8;
  options.native.threads = threads;
  return options;
}

Said said_by(LanguageModel& model) {
  Said said;
  said.prompt = model.read(ids(LanguageModel::kLongChunk + 30, 37)).value();
  said.step = model.read(Ids{7}).value();
  said.rows = model.read_all(Ids{1, 2, 3, 4, 5}).value();
  GenerationOptions options = {.max_tokens = 6, .sampling = {.temperature = 1.3, .seed = 11}};
  // 4 texts together, and one alone.
  const std::vector<Ids> prompts = {{1, 2, 3}, {200}, ids(40, 7), {4, 9}, {5, 6}};
  said.texts = generate_all(model, prompts, options).value();
  LookupDrafter lookup;
  options.drafter = &lookup;
  said.texts.push_back(generate(model, Ids{10, 20, 30, 10, 20, 30, 10, 20}, options).value());
  return said;
}

void expect_same(const Said& one, const Said& other) {
  EXPECT_EQ(one.prompt, other.prompt);
  EXPECT_EQ(one.step, other.step);
  EXPECT_EQ(one.rows, other.rows);
  ASSERT_EQ(one.texts.size(), other.texts.size());
  for (size_t i = 0; i < one.texts.size(); ++i) {
    EXPECT_EQ(one.texts[i].tokens, other.texts[i].tokens) << i;
    EXPECT_EQ(one.texts[i].log_probabilities, other.texts[i].log_probabilities) << i;
  }
}

// Wide enough to be divided.
TinyDecoder wide(std::string_view family, uint32_t type) {
  TinyDecoder tiny = {.family = std::string(family), .type = type, .layers = 1};
  tiny.width = 256, tiny.key_width = 64, tiny.hidden = 2048, tiny.context = 512;
  if (family == "gpt2") tiny.kv_heads = tiny.heads;
  return tiny;
}

// Decides if threads divide a loop of a step.
bool divides(const LanguageModel& model) {
  const auto profile = model.profile();
  return std::ranges::any_of(profile.value().code->plan().value()->schedule,
                             [](const auto& one) { return one.second.threads > 0; });
}

void check(const TinyDecoder& tiny, CacheType cache, std::initializer_list<int64_t> numbers) {
  const std::string bytes = tiny_gguf(tiny);
  const Gguf file = parse_gguf(std::as_bytes(std::span(bytes)), "tiny").value();
  std::optional<Said> first;
  for (const int64_t threads : numbers) {
    SCOPED_TRACE(threads);
    // Without a cache no plan is that of the model before.
    const auto model =
        LanguageModel::make(language_of(file).value(), options_of(threads, cache)).value();
    model->start_profile();
    const Said said = said_by(*model);
    EXPECT_EQ(divides(*model), threads > 1) << "the loops of a step";
    if (first)
      expect_same(*first, said);
    else
      first = said;
  }
}

TEST(Threads, ChangeNoBitOfF32) { check(wide("llama", gguf::kF32), CacheType::f32, {1, 2, 7, 8}); }
TEST(Threads, ChangeNoBitOfF16) { check(wide("gpt2", gguf::kF16), CacheType::f16, {1, 8}); }
TEST(Threads, ChangeNoBitOfQ8_0) { check(wide("gemma2", gguf::kQ8_0), CacheType::q8, {3, 8}); }
TEST(Threads, ChangeNoBitOfQ4_1) { check(wide("qwen2", gguf::kQ4_1), CacheType::f32, {1, 4, 8}); }
TEST(Threads, ChangeNoBitOfQ4_K) { check(wide("phi3", gguf::kQ4_K), CacheType::f32, {2, 8}); }

// Such a plan is for one number of threads.
TEST(Threads, TakeNoPlanThatSomebodyKnows) {
  const std::string bytes = tiny_gguf({});
  const Gguf file = parse_gguf(std::as_bytes(std::span(bytes)), "tiny").value();
  LanguageModel::Options options = options_of(2, CacheType::f32);
  bool is_asked = false;
  options.native.best_plan = [&](const Graph&, const Target&, int64_t) -> std::optional<Plan> {
    is_asked = true;
    return std::nullopt;
  };
  const auto model = LanguageModel::make(language_of(file).value(), std::move(options)).value();
  EXPECT_TRUE(model->read(Ids{7}).ok());
  EXPECT_FALSE(is_asked);
}

}  // namespace
}  // namespace hone::HONE_FILE
