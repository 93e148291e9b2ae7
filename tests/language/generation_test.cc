#include "language/speculation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "front/gguf/gguf_model.h"
#include "language/weights_in_blocks.h"
#include "target/target.h"
#include "tests/base/says_testing.h"
#include "tests/front/gguf_file.h"
#include "tests/front/plain_decoder.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;
using Ids = std::vector<TokenId>;

struct Loaded {
  std::string bytes;
  Gguf file;
  std::unique_ptr<LanguageModel> model;
};

Result<std::unique_ptr<LanguageModel>> made(const Gguf& file, int64_t context, Face face = {},
                                            LanguageModel::Options options = {}) {
  options.native.target = host_target().value();
  options.native.threads = 1;
  options.context = context;
  return LanguageModel::make(language_of(file).value(), std::move(options), face);
}

std::unique_ptr<Loaded> loaded(const TinyDecoder& tiny, int64_t context = 0) {
  auto all = std::make_unique<Loaded>();
  all->bytes = tiny_gguf(tiny);
  all->file = parse_gguf(std::as_bytes(std::span(all->bytes)), "tiny").value();
  all->model = made(all->file, context).value();
  return all;
}

const TinyDecoder kTiny = {};

// One for several tests, since compiling takes most of their time. It has forgotten all.
Loaded& shared() {
  static const std::unique_ptr<Loaded> kShared = loaded(kTiny);
  kShared->model->keep(0);
  return *kShared;
}

TinyDecoder quantized() {
  TinyDecoder tiny = {.family = "llama", .type = gguf::kQ4_1, .embedding = gguf::kQ8_0};
  tiny.is_tied = true;
  return tiny;
}

// Native code in chunks and steps gives the logits of plain loops over the whole text.
TEST(LanguageModels, GiveTheLogitsOfPlainLoops) {
  TinyDecoder tiny = quantized();
  tiny.context = 256;
  const std::unique_ptr<Loaded> all = loaded(tiny);
  Ids tokens;
  for (TokenId i = 0; i < LanguageModel::kLongChunk + 37; ++i) tokens.push_back(i * 7 % 260);
  const size_t most = tokens.size();
  const std::vector<double> wanted =
      plain::decoder_logits(all->file, {tokens.begin(), tokens.end()});
  const size_t width = kTinyVocabulary;
  const auto expect_last = [&](std::span<const float> logits, size_t token) {
    ASSERT_EQ(logits.size(), width);
    double worst = 0, largest = 0;
    for (size_t i = 0; i < width; ++i) {
      const double one = wanted[token * width + i];
      largest = std::max(largest, std::abs(one));
      worst = std::max(worst, std::abs(logits[i] - one));
    }
    EXPECT_LT(worst, 1e-4 * largest) << token;
  };
  LanguageModel& model = *all->model;
  expect_last(model.read(std::span(tokens).first(most - 2)).value(), most - 3);
  expect_last(model.read(std::span(tokens).subspan(most - 2, 1)).value(), most - 2);
  expect_last(model.read(std::span(tokens).last(1)).value(), most - 1);
  EXPECT_EQ(model.compiled(), 3) << "two chunks and a step, whatever the length";
  model.keep(10);
  const std::vector<float> rows = model.read_all(std::span(tokens).subspan(10)).value();
  ASSERT_EQ(rows.size(), (most - 10) * width);
  for (size_t i = 10; i < most; ++i)
    expect_last(std::span(rows).subspan((i - 10) * width, width), i);
}

// The token that plain loops over all tokens so far give the highest logit.
Ids greedy_from_scratch(const Gguf& file, Ids tokens, size_t count) {
  Ids out;
  while (out.size() < count) {
    const std::vector<double> logits = plain::decoder_logits(file, {tokens.begin(), tokens.end()});
    const auto last = logits.end() - kTinyVocabulary;
    const auto best = std::max_element(last, last + 264) - last;
    out.push_back(static_cast<TokenId>(best));
    tokens.push_back(out.back());
  }
  return out;
}

class Greedy : public testing::TestWithParam<const char*> {};
TEST_P(Greedy, EqualsRecomputingFromScratch) {
  TinyDecoder tiny = {.family = GetParam()};
  if (tiny.family == "gpt2") tiny.kv_heads = tiny.heads;
  const std::unique_ptr<Loaded> all = loaded(tiny);
  const Ids prompt = {10, 20, 30};
  const Ids wanted = greedy_from_scratch(all->file, prompt, 8);
  const Generation got = generate(*all->model, prompt, {.max_tokens = 8}).value();
  // A control token ends the text.
  const auto end = std::ranges::find_if(wanted, [](TokenId t) { return t == 263; });
  EXPECT_EQ(got.tokens, Ids(wanted.begin(), end));
  EXPECT_EQ(got.log_probabilities.size(), got.tokens.size());
}
INSTANTIATE_TEST_SUITE_P(All, Greedy, testing::Values("llama", "gemma2", "gpt2"),
                         [](const auto& one) { return std::string(one.param); });

// Whatever chunks a prompt is read in, the text behind it is the same.
TEST(Generations, DependOnNoChunks) {
  const std::unique_ptr<Loaded> all = loaded({.context = 256});
  LanguageModel& model = *all->model;
  Ids prompt;
  for (TokenId i = 0; i < 140; ++i) prompt.push_back((i * 37 + 5) % 250);
  std::vector<Ids> texts;
  for (const size_t chunk : {size_t{1}, size_t{7}, size_t{32}, size_t{139}}) {
    model.keep(0);
    for (size_t at = 0; at + 1 < prompt.size(); at += chunk) {
      const size_t count = std::min(chunk, prompt.size() - 1 - at);
      ASSERT_TRUE(model.read(std::span(prompt).subspan(at, count)).ok());
    }
    const Generation made = generate(model, prompt, {.max_tokens = 8}).value();
    EXPECT_EQ(made.reused_tokens, static_cast<int64_t>(prompt.size()) - 1) << chunk;
    texts.push_back(made.tokens);
  }
  for (const Ids& text : texts) EXPECT_EQ(text, texts.front());
}

TEST(Generations, ReuseWhatAPromptShares) {
  LanguageModel& model = *shared().model;
  const Ids first = {1, 2, 3, 4, 5, 6}, second = {1, 2, 3, 4, 9};
  const Generation fresh = generate(model, second, {.max_tokens = 6}).value();
  model.keep(0);
  EXPECT_EQ(generate(model, first, {.max_tokens = 6}).value().reused_tokens, 0);
  const Generation again = generate(model, second, {.max_tokens = 6}).value();
  EXPECT_EQ(again.reused_tokens, 4);
  EXPECT_EQ(again.tokens, fresh.tokens);
  EXPECT_EQ(generate(model, second, {.max_tokens = 6}).value().reused_tokens, 4)
      << "one token is read again for its logits";
}

TEST(Generations, DrawTheSameForTheSameSeed) {
  Loaded& all = shared();
  const auto drawn = [&](uint64_t seed) {
    const GenerationOptions options = {.max_tokens = 12,
                                       .sampling = {.temperature = 1.5, .seed = seed}};
    return generate(*all.model, Ids{1, 2}, options).value().tokens;
  };
  EXPECT_EQ(drawn(1), drawn(1));
  EXPECT_NE(drawn(1), drawn(2));
}

TEST(Generations, EndWhereTheyAreTo) {
  const std::unique_ptr<Loaded> all = loaded(kTiny, 8);
  LanguageModel& model = *all->model;
  EXPECT_EQ(model.context(), 8);
  const Ids prompt = {10, 20, 30};
  const Generation some = generate(model, prompt, {.max_tokens = 2}).value();
  EXPECT_EQ(some.end, GenerationEnd::length);
  EXPECT_EQ(some.tokens.size(), 2U);
  const Generation full = generate(model, prompt, {.max_tokens = 100}).value();
  ASSERT_EQ(full.end, GenerationEnd::context);
  EXPECT_EQ(full.tokens.size(), 6U) << "3 of the prompt and 5 more fill it; the sixth is not read";

  std::string seen;
  GenerationOptions options = {.max_tokens = 100};
  options.on_text = [&](std::string_view text) { seen += text; };
  EXPECT_EQ(generate(model, prompt, options).value().text, seen);
  EXPECT_EQ(seen, model.tokenizer().decode(full.tokens));
  options.stops = {std::string(model.tokenizer().bytes_of(full.tokens[2]))};
  const Generation stopped = generate(model, prompt, options).value();
  EXPECT_EQ(stopped.end, GenerationEnd::stop);
  EXPECT_EQ(stopped.text.find(options.stops[0]), std::string::npos);

  CancelToken cancel;
  cancel.cancel();
  EXPECT_EQ(generate(model, prompt, {.cancel = &cancel}).value().end, GenerationEnd::cancelled);
}

TEST(Generations, RefuseWhatHasNoRoom) {
  const std::unique_ptr<Loaded> all = loaded(kTiny, 8);
  EXPECT_THAT(generate(*all->model, Ids(9, 1), {}), refuses(ErrorCode::usage, "9 tokens ... 8"));
  EXPECT_THAT(generate(*all->model, Ids(), {}), refuses(ErrorCode::usage, "no token"));
  EXPECT_THAT(all->model->read(Ids{5000}), refuses(ErrorCode::usage, "5000"));
  EXPECT_THAT(made(all->file, 65), refuses(ErrorCode::usage, "65 ... 64"));
  Face face;
  face.memory_limit = 1 << 20;
  const std::string bytes = tiny_gguf({.layers = 8, .context = 8192});
  const Gguf large = parse_gguf(std::as_bytes(std::span(bytes)), "large").value();
  EXPECT_THAT(made(large, 0, face), refuses(ErrorCode::limit, "context of 8192 ... limit is 1"));
  face.memory_limit = 4 << 20;
  EXPECT_THAT(made(large, 0, face), refuses(ErrorCode::limit, "tokens fits"));
}

TEST(Generations, MayLoseTheStartOfThePrompt) {
  const std::unique_ptr<Loaded> all = loaded(kTiny, 8);
  Ids prompt;
  for (TokenId i = 0; i < 20; ++i) prompt.push_back(i + 1);
  const GenerationOptions options = {.max_tokens = 3, .drops_start = true};
  const Generation made = generate(*all->model, prompt, options).value();
  EXPECT_EQ(made.dropped_tokens, 15);
  EXPECT_EQ(made.prompt_tokens, 5);
  EXPECT_EQ(made.tokens,
            generate(*all->model, Ids{1, 17, 18, 19, 20}, {.max_tokens = 3}).value().tokens);
  EXPECT_EQ(generate(*all->model, Ids{1, 2}, options).value().dropped_tokens, 0);
}

// ---- Caches
// ---------------------------------------------------------------------------------------

double difference_of(std::span<const float> a, std::span<const double> b) {
  double worst = 0, largest = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    worst = std::max(worst, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(b[i]));
  }
  return worst / largest;
}

// Rounding keys and values changes logits by about as much as a step of their type. It does not
// matter if a chunk or single tokens wrote them, but for numbers in the middle of two steps.
TEST(Caches, OfFewerBitsAreWithinTheirSteps) {
  const Ids prompt = {10, 20, 30, 7, 99, 250, 3, 3, 41};
  const std::vector<double> all =
      plain::decoder_logits(shared().file, {prompt.begin(), prompt.end()});
  const std::vector<double> wanted(all.end() - kTinyVocabulary, all.end());
  struct Case {
    CacheType type;
    double least, most;
  };
  for (const Case& one : {Case{CacheType::f16, 1e-6, 2e-3}, Case{CacheType::q8, 1e-5, 3e-2}}) {
    const std::unique_ptr<LanguageModel> model =
        made(shared().file, 0, {}, {.cache = one.type}).value();
    const std::vector<float> at_once = model->read(prompt).value();
    EXPECT_LT(difference_of(at_once, wanted), one.most);
    EXPECT_GT(difference_of(at_once, wanted), one.least) << "it was not rounded";
    model->keep(0);
    std::vector<float> one_by_one;
    for (const TokenId token : prompt) one_by_one = model->read(Ids{token}).value();
    EXPECT_LT(difference_of(one_by_one, std::vector<double>(at_once.begin(), at_once.end())),
              one.most / 10);
    EXPECT_LT(model->memory(), shared().model->memory());
  }
}

TEST(Caches, GrowWithTheSameCode) {
  TinyDecoder tiny = kTiny;
  tiny.context = 4096;
  const std::unique_ptr<Loaded> all = loaded(tiny);
  LanguageModel& model = *all->model;
  Ids tokens;
  for (TokenId i = 0; i < 5 * LanguageModel::kLongChunk + 2; ++i) tokens.push_back(i * 7 % 260);
  (void)model.read(std::span(tokens).first(1)).value();
  const int64_t before = model.places();
  EXPECT_LT(before, std::ssize(tokens));
  (void)model.read(std::span(tokens).subspan(1, tokens.size() - 2)).value();
  const std::vector<float> last = model.read(std::span(tokens).last(1)).value();
  EXPECT_EQ(model.places(), 2 * before);
  EXPECT_EQ(model.compiled(), 2) << "a chunk and a step, whatever the size of the caches";
  const std::vector<double> wanted =
      plain::decoder_logits(all->file, {tokens.begin(), tokens.end()});
  EXPECT_LT(difference_of(last, std::vector<double>(wanted.end() - kTinyVocabulary, wanted.end())),
            1e-4);
}

// ---- Weights in blocks
// ------------------------------------------------------------------------------

// How far the numbers of blocks are from those of the file, in parts of their size.
double rounding_of(const Weight& blocks, const Weight& reals, std::string_view type) {
  const BlockLayout& layout = layout_of(*blocks.format);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(blocks.data.bytes().data());
  double error = 0, size = 0;
  for (int64_t i = 0; i < reals.data.elements(); ++i) {
    const double real = reals.data.real_at(i);
    const double made = plain::block_number(type, bytes + i / layout.elements * layout.bytes,
                                            static_cast<int>(i % layout.elements));
    error += (made - real) * (made - real), size += real * real;
  }
  return std::sqrt(error / size);
}

TEST(WeightsInBlocks, AreNearThoseOfTheFile) {
  const Gguf& file = shared().file;
  const std::unique_ptr<DecoderWeights> reals = gguf_weights(file);
  for (const auto level : {quantize::Precision::w8, quantize::Precision::w4}) {
    const bool is_w4 = level == quantize::Precision::w4;
    const std::unique_ptr<DecoderWeights> rounded = weights_in_blocks(gguf_weights(file), level);
    const Weight matrix = rounded->get("blk.1.ffn_down.weight").value();
    ASSERT_EQ(matrix.format, is_w4 ? BlockFormat::q4_0 : BlockFormat::q8_0);
    const double error =
        rounding_of(matrix, reals->get("blk.1.ffn_down.weight").value(), is_w4 ? "Q4_0" : "Q8_0");
    EXPECT_LT(error, is_w4 ? 0.1 : 0.006);
    EXPECT_GT(error, is_w4 ? 0.02 : 0.001);
    EXPECT_EQ(rounded->get("token_embd.weight").value().format, BlockFormat::q8_0);
    EXPECT_FALSE(rounded->get("blk.0.attn_norm.weight").value().format);
  }
  const std::unique_ptr<DecoderWeights> same =
      weights_in_blocks(gguf_weights(file), quantize::Precision::f32);
  EXPECT_FALSE(same->get("blk.1.ffn_down.weight").value().format);
}

TEST(WeightsInBlocks, GiveLogitsNearTheOthers) {
  const Ids prompt = {10, 20, 30, 7, 99};
  const std::vector<double> all =
      plain::decoder_logits(shared().file, {prompt.begin(), prompt.end()});
  const std::vector<double> wanted(all.end() - kTinyVocabulary, all.end());
  for (const auto level : {quantize::Precision::w8, quantize::Precision::w4}) {
    const std::unique_ptr<LanguageModel> model =
        made(shared().file, 0, {}, {.weights = level}).value();
    EXPECT_LT(difference_of(model->read(prompt).value(), wanted),
              level == quantize::Precision::w4 ? 0.5 : 0.03);
    EXPECT_LT(model->memory(), shared().model->memory());
  }
}

TEST(WeightsInBlocks, RefuseWhatIsNotFinite) {
  std::string bytes = tiny_gguf(kTiny);
  Gguf file = parse_gguf(std::as_bytes(std::span(bytes)), "tiny").value();
  const auto at = file.find("blk.0.ffn_up.weight")->bytes.data() -
                  reinterpret_cast<const std::byte*>(bytes.data());
  const float nan = NAN;
  bytes.replace(static_cast<size_t>(at), sizeof nan, GgufWriter::bytes_of(nan));
  file = parse_gguf(std::as_bytes(std::span(bytes)), "tiny").value();
  EXPECT_THAT(made(file, 0, {}, {.weights = quantize::Precision::w8}),
              refuses(ErrorCode::bad_input, "blk.0.ffn_up.weight ... NaN"));
}

// ---- Batches
// --------------------------------------------------------------------------------------

TEST(Batches, EqualSingleTexts) {
  LanguageModel& model = *shared().model;
  const std::vector<Ids> prompts = {{1, 2, 3}, {200}, {1, 2, 3, 4, 5, 6, 7}, {1, 2, 3}};
  GenerationOptions options = {.max_tokens = 9, .sampling = {.temperature = 1, .seed = 5}};
  options.is_apart = true;
  const std::vector<Generation> all = generate_all(model, prompts, options).value();
  ASSERT_EQ(all.size(), prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i) {
    model.keep(0);
    const Generation single = generate(model, prompts[i], options).value();
    EXPECT_EQ(all[i].tokens, single.tokens) << i;
    EXPECT_EQ(all[i].log_probabilities, single.log_probabilities) << i;
    EXPECT_EQ(all[i].end, single.end) << i;
  }
  LookupDrafter lookup;
  options.drafter = &lookup;
  EXPECT_EQ(generate_all(model, prompts, options).value()[2].tokens, all[2].tokens);
  EXPECT_TRUE(generate_all(model, {}, options).value().empty());
  EXPECT_THAT(generate_all(model, std::vector<Ids>{{1}, {}}, options),
              refuses(ErrorCode::usage, "no token"));
}

// Texts of other code for the same numbers. Logits that differ by rounding may tell two tokens
// apart, and all behind them is another text. Says how many tokens come before that.
size_t expect_near(const Generation& one, const Generation& other, double most) {
  const auto differs = std::ranges::mismatch(one.tokens, other.tokens).in1;
  const auto same = static_cast<size_t>(differs - one.tokens.begin());
  for (size_t t = 0; t < same; ++t)
    EXPECT_NEAR(one.log_probabilities.at(t), other.log_probabilities.at(t), most) << t;
  return same;
}

// Together, for all families, caches that grow and texts that end at other times.
class Together : public testing::TestWithParam<const char*> {};
TEST_P(Together, AreNearSingleTexts) {
  TinyDecoder tiny = {.family = GetParam(), .context = 1024};
  if (tiny.family == "gpt2") tiny.kv_heads = tiny.heads;
  const std::unique_ptr<Loaded> all = loaded(tiny);
  LanguageModel& model = *all->model;
  Ids longer;
  for (TokenId i = 0; i < 510; ++i) longer.push_back(i * 7 % 260);
  // 7 texts: 4 and 2 together, and one alone.
  const std::vector<Ids> prompts = {{1, 2, 3}, {200}, longer, {1, 2, 3}, {4}, {5, 6}, {9}};
  GenerationOptions options = {.max_tokens = 9, .sampling = {.temperature = 1, .seed = 5}};
  const std::vector<Generation> together = generate_all(model, prompts, options).value();
  ASSERT_EQ(together.size(), prompts.size());
  EXPECT_EQ(model.compiled(), 5) << "chunks of two lengths, and steps of 1, 2 and 4 texts";
  size_t same = 0, all_tokens = 0;
  for (size_t i = 0; i < prompts.size(); ++i) {
    SCOPED_TRACE(i);
    model.keep(0);
    const Generation single = generate(model, prompts[i], options).value();
    same += expect_near(together[i], single, 1e-4);
    all_tokens += single.tokens.size();
    if (together[i].tokens == single.tokens) EXPECT_EQ(together[i].end, single.end);
  }
  EXPECT_GT(2 * same, all_tokens) << "rounding seldom tells tokens apart";
}
INSTANTIATE_TEST_SUITE_P(Batches, Together, testing::Values("llama", "gemma2", "gpt2"),
                         [](const auto& one) { return std::string(one.param); });

TEST(Batches, TakeCachesOfFewerBitsAndPackedWeights) {
  const std::vector<Ids> prompts = {{10, 20}, {30, 7, 99}, {250}, {3, 3, 41}};
  for (const CacheType cache : {CacheType::f16, CacheType::q8}) {
    const std::unique_ptr<LanguageModel> model =
        made(shared().file, 0, {}, {.cache = cache, .weights = quantize::Precision::w8}).value();
    const auto texts = [&](bool is_apart) {
      return generate_all(*model, prompts, {.max_tokens = 5, .is_apart = is_apart}).value();
    };
    const std::vector<Generation> together = texts(false), apart = texts(true);
    size_t same = 0, all_tokens = 0;
    for (size_t i = 0; i < prompts.size(); ++i) {
      SCOPED_TRACE(i);
      same += expect_near(together[i], apart[i], 2e-2);
      all_tokens += apart[i].tokens.size();
    }
    EXPECT_GT(2 * same, all_tokens) << "rounding seldom tells tokens apart";
  }
}

TEST(Batches, HaveCachesOfTheirOwnInWhatTheModelTakes) {
  const LanguageModel& model = *shared().model;
  const int64_t each = model.memory(2) - model.memory();
  // The caches of a context that is full and of a chunk behind it.
  EXPECT_GE(each, model.config().cache_bytes(model.context()));
  EXPECT_EQ(model.memory(8), model.memory() + 7 * each);
}

TEST(Roofs, CountProductsOfTheMatrices) {
  const LanguageModel& model = *shared().model;
  int64_t elements = 0;  // of the layers' matrices, each of which a token multiplies by
  for (const GgufTensor& tensor : shared().file.tensors)
    if (tensor.name.starts_with("blk.") && tensor.dims.size() == 2)
      elements += tensor.dims[0] * tensor.dims[1];
  EXPECT_EQ(model.token_products(), static_cast<double>(elements));
  EXPECT_GT(model.products_per_second(), 0);
}

TEST(Batches, AreForgottenAfterRunsThatFailAlone) {
  const std::unique_ptr<Loaded> all = loaded(kTiny);
  LanguageModel& model = *all->model;
  std::vector<LanguageModel::Memory> memories = model.new_memories(2).value();
  for (LanguageModel::Memory& memory : memories) {
    model.swap_memory(memory);
    (void)model.read(Ids{7}).value();
    model.swap_memory(memory);
  }
  const std::vector<LanguageModel::Memory*> texts = {&memories[0], &memories[1]};
  const int64_t places = memories[0].places;
  const auto read = [&](TokenId token) { return model.read_together(texts, Ids{8, token}); };
  const auto have = [&](const Ids& tokens) {
    return std::ranges::all_of(memories, [&](const LanguageModel::Memory& memory) {
      return memory.tokens == tokens && memory.places == places;
    });
  };
  EXPECT_THAT(read(5000), refuses(ErrorCode::usage, "5000"));
  EXPECT_TRUE(have({7}));
  CancelToken cancel;
  cancel.cancel();
  Face stopped;
  stopped.cancel = &cancel;
  model.set_face(stopped);
  EXPECT_FALSE(read(8).ok()) << "there is no code yet, and none can be made";
  EXPECT_TRUE(have({7}));
  model.set_face({});
  (void)read(8).value();
  EXPECT_TRUE(have({7, 8}));
  model.set_face(stopped);
  EXPECT_FALSE(read(8).ok()) << "the run gave up the caches";
  EXPECT_TRUE(have({}));
  model.set_face({});
  (void)read(8).value();
  EXPECT_TRUE(have({8})) << "they begin again";
}

TEST(Batches, EndWhereTheyAreCancelledAndTheModelGoesOn) {
  LanguageModel& model = *shared().model;
  const std::vector<Ids> prompts = {{1, 2, 3}, {200}};
  CancelToken cancel;
  int pieces = 0;
  GenerationOptions options = {.max_tokens = 30};
  options.cancel = &cancel;
  options.on_text = [&](std::string_view) {
    if (++pieces == 6) cancel.cancel();
  };
  for (const Generation& one : generate_all(model, prompts, options).value()) {
    EXPECT_LT(one.tokens.size(), 30U);
    EXPECT_EQ(one.end, GenerationEnd::cancelled);
  }
  EXPECT_EQ(generate(model, prompts[0], {.max_tokens = 3}).value().tokens.size(), 3U);
}

TEST(Batches, NeedTheirMemory) {
  const std::string bytes = tiny_gguf({.context = 8192});
  const Gguf large = parse_gguf(std::as_bytes(std::span(bytes)), "large").value();
  Face face;
  face.memory_limit = 20 << 20;
  const std::unique_ptr<LanguageModel> model = made(large, 8192, face).value();
  EXPECT_THAT(generate_all(*model, std::vector<Ids>(64, Ids{1}), {.max_tokens = 1}),
              refuses(ErrorCode::limit, "63 more texts ... limit"));
}

// ---- Speculation
// ----------------------------------------------------------------------------------

TEST(Speculation, ChangesNoToken) {
  LanguageModel& model = *shared().model;
  const std::unique_ptr<Loaded> other = loaded({.layers = 1, .seed = 7});
  const std::unique_ptr<ModelDrafter> small =
      ModelDrafter::make(std::move(other->model), model.tokenizer()).value();
  const std::unique_ptr<Loaded> same = loaded(kTiny);
  const std::unique_ptr<ModelDrafter> twin =
      ModelDrafter::make(std::move(same->model), model.tokenizer()).value();
  LookupDrafter lookup;
  const Ids prompt = {10, 20, 30, 10, 20, 30, 10, 20};
  for (const double temperature : {0.0, 0.3, 1.5}) {
    GenerationOptions options = {.max_tokens = 20,
                                 .sampling = {.temperature = temperature, .seed = 3}};
    const Generation plain = generate(model, prompt, options).value();
    for (Drafter* const drafter :
         std::initializer_list<Drafter*>{&lookup, small.get(), twin.get()}) {
      options.drafter = drafter;
      const Generation guessed = generate(model, prompt, options).value();
      EXPECT_EQ(guessed.tokens, plain.tokens) << temperature;
      EXPECT_EQ(guessed.text, plain.text);
      EXPECT_EQ(guessed.end, plain.end);
      EXPECT_LE(guessed.right_guesses, guessed.guessed_tokens);
      if (drafter == twin.get() && plain.end == GenerationEnd::length) {
        EXPECT_GT(guessed.guessed_tokens, 10);
        EXPECT_EQ(guessed.right_guesses, guessed.guessed_tokens) << "it draws the same numbers";
      }
    }
  }
}

TEST(Speculation, LooksUpWhatFollowedBefore) {
  LookupDrafter lookup;
  const auto draft = [&](const Ids& past, int64_t most) {
    return lookup.draft(past, most, {}, 0).value();
  };
  EXPECT_EQ(draft({1, 2, 3, 4, 9, 1, 2, 3}, 7), (Ids{4, 9, 1, 2, 3}));
  EXPECT_EQ(draft({1, 2, 3, 4, 9, 1, 2, 3}, 2), (Ids{4, 9}));
  EXPECT_EQ(draft({5, 7, 5, 8, 5}, 1), Ids{8}) << "the nearest place";
  EXPECT_EQ(draft({1, 2, 3}, 4), Ids());
  EXPECT_EQ(draft({1}, 4), Ids());
}

TEST(Speculation, RefusesAnotherVocabulary) {
  std::unique_ptr<Loaded> other = loaded({.layers = 1});
  Vocabulary vocabulary = shared().model->tokenizer().vocabulary();
  vocabulary.tokens[0].text = "other";
  const Tokenizer tokenizer = Tokenizer::make(vocabulary).value();
  EXPECT_THAT(ModelDrafter::make(std::move(other->model), tokenizer),
              refuses(ErrorCode::bad_input, "another vocabulary"));
}

// ---- Sampling
// ------------------------------------------------------------------------------------

TEST(Sampling, TakesTheBestOfTheLowestNumber) {
  const std::vector<float> logits = {1, 5, 5, 2};
  EXPECT_EQ(choose_token(logits, {}, {}, 0).value(), 1);
  EXPECT_EQ(choose_token(logits, Ids{1}, {.repeat_penalty = 2}, 0).value(), 2);
  EXPECT_THAT(choose_token(std::vector<float>{0, NAN}, {}, {}, 0),
              refuses(ErrorCode::mismatch, "token 1"));
}

// How often each of the tokens is drawn, in parts of all.
std::vector<double> shares(const std::vector<float>& logits, SamplingOptions options) {
  std::vector<double> found(logits.size());
  constexpr int kDraws = 4000;
  for (int step = 0; step < kDraws; ++step)
    found[static_cast<size_t>(
        choose_token(logits, {}, options, static_cast<uint64_t>(step)).value())] += 1.0 / kDraws;
  return found;
}

TEST(Sampling, DrawsByProbability) {
  const std::vector<float> logits = {std::log(1.0F), std::log(2.0F), std::log(5.0F),
                                     std::log(2.0F)};
  const std::vector<double> all = shares(logits, {.temperature = 1});
  EXPECT_NEAR(all[0], 0.1, 0.03);
  EXPECT_NEAR(all[1], 0.2, 0.03);
  EXPECT_NEAR(all[2], 0.5, 0.03);
  const std::vector<double> flat = shares(logits, {.temperature = 100});
  EXPECT_NEAR(flat[0], 0.25, 0.03);
  const std::vector<double> two = shares(logits, {.top_k = 2, .temperature = 1});
  EXPECT_NEAR(two[2], 5.0 / 7, 0.03);
  EXPECT_EQ(two[3], 0) << "of equals the lowest number stays";
  const std::vector<double> most = shares(logits, {.top_p = 0.6, .temperature = 1});
  EXPECT_EQ(most[0] + most[3], 0) << "0.5 and 0.2 make more than 0.6";
  const std::vector<double> likely = shares(logits, {.min_p = 0.3, .temperature = 1});
  EXPECT_EQ(likely[0], 0) << "0.1 is less than 0.3 of 0.5";
  EXPECT_GT(likely[3], 0.1);
}

TEST(Sampling, LogProbabilitiesSumToOne) {
  const std::vector<float> logits = {1, 2, 3};
  double sum = 0;
  for (TokenId i = 0; i < 3; ++i) sum += std::exp(log_probability(logits, i));
  EXPECT_NEAR(sum, 1, 1e-12);
}

// ---- Perplexity
// ----------------------------------------------------------------------------------

TEST(Perplexities, AreThoseOfPlainLoops) {
  Loaded& all = shared();
  Ids tokens;
  for (TokenId i = 0; i < 27; ++i) tokens.push_back(i * 11 % 200);
  const Perplexity found = perplexity(*all.model, tokens, 8).value();
  EXPECT_EQ(found.windows, 3);
  EXPECT_EQ(found.scored, 9);
  double sum = 0;
  for (int64_t w = 0; w < 3; ++w) {
    const std::vector<double> logits =
        plain::decoder_logits(all.file, {tokens.begin() + w * 8, tokens.begin() + (w + 1) * 8});
    for (size_t i = 4; i < 7; ++i) {
      const auto row = logits.begin() + static_cast<int64_t>(i * kTinyVocabulary);
      double all_of = 0;
      for (int64_t t = 0; t < 264; ++t) all_of += std::exp(row[t]);
      sum -= row[tokens[static_cast<size_t>(w * 8) + i + 1]] - std::log(all_of);
    }
  }
  EXPECT_NEAR(found.value, std::exp(sum / 9), 1e-3 * found.value);
  EXPECT_THAT(perplexity(*all.model, tokens, 64), refuses(ErrorCode::usage, "27 tokens ... 64"));
  EXPECT_THAT(perplexity(*all.model, tokens, 65), refuses(ErrorCode::usage, "65 ... 64"));
}

}  // namespace
}  // namespace hone::HONE_FILE
