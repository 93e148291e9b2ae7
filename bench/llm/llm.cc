// Tokens a second of language models, for a prompt of 512 and for 128 tokens behind it, on 1 and 2
// threads; how near a step of one token comes to what the memory delivers, and a prompt to what
// the arithmetic of the cores does; what 4 texts make together; and how long it takes from loading
// to the first token. Models of random weights are as wide and as deep as the flags say; a file
// brings its own shape.
//   --model=FILE    a GGUF file or a folder of Hugging Face in place of random models
//   --layers=N, --width=N   of random models (8, 1024)
//   --cache-type=TYPE       f32, f16, q8 (f32)
//   --text=FILE     with --model=FILE.gguf: the perplexity of its first 256 tokens, of which half
//                   are scored
// With --model=FILE.gguf, llama.cpp reads the same file in rows of its own, where setup.sh has
// installed it, and the perplexities of both are there. hone computes with the numbers of the file
// and with caches in f32 there, so its perplexity is that of f32; llama.cpp rounds data to bytes
// and has caches of f16. Rows of decoding choose the best of the logits, as llama.cpp does.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/rng.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "bench/flags.h"
#include "bench/onnx_runtime.h"
#include "language/generation.h"
#include "language/language_model.h"

namespace hone::bench::HONE_FILE {
namespace {

const Flag file("model", ""), layers("layers", "8"), width("width", "1024");
const Flag cache_type("cache-type", "f32"), text_file("text", "");

constexpr int64_t kPrompt = 512, kDecoded = 128, kVocabulary = 32000;

// Random bytes of blocks, whose scales are small normal numbers, or random reals.
class RandomWeights final : public DecoderWeights {
 public:
  RandomWeights(DecoderConfig config, std::optional<BlockFormat> format)
      : config_(std::move(config)), format_(format) {}

  bool has(const std::string& name) const override {
    return !name.ends_with(".bias") && name.find("qkv") == std::string::npos &&
           name.find("q_norm") == std::string::npos && name.find("k_norm") == std::string::npos &&
           name.find("post_") == std::string::npos;
  }
  Result<Weight> get(const std::string& name) const override {
    if (name.find("norm") != std::string::npos) return norm();
    const auto [rows, columns] = dims_of(name);
    Rng rng(1 + name.size());
    if (!format_) {
      const Type type = Type::get(DType::f16, {rows, columns});
      std::vector<double> numbers(static_cast<size_t>(rows * columns));
      for (double& one : numbers) one = 0.02 * rng.uniform(-1, 1);
      return Weight{Tensor::from_reals(type, numbers), {}, {rows, columns}};
    }
    const BlockLayout& layout = layout_of(*format_);
    const Type type = Type::get(DType::u8, {rows, columns / layout.elements * layout.bytes});
    std::vector<std::byte> bytes(static_cast<size_t>(type.static_bytes()));
    for (std::byte& one : bytes) one = static_cast<std::byte>(rng.below(256));
    // An f16 with this high byte is between 2^-11 and 2^-10.
    constexpr auto kSmall = std::byte{0x10};
    const auto step = static_cast<size_t>(layout.bytes);
    for (size_t block = 0; block < bytes.size(); block += step)
      for (const size_t at : {size_t{1}, size_t{3}, step - 1}) bytes[block + at] = kSmall;
    return Weight{Tensor::copy_of(type, bytes), format_, {rows, columns}};
  }

 private:
  Weight norm() const {
    const std::vector<double> ones(static_cast<size_t>(config_.width), 1);
    const Type type = Type::get(DType::f32, {config_.width});
    return {Tensor::from_reals(type, ones), {}, {config_.width}};
  }
  std::pair<int64_t, int64_t> dims_of(const std::string& name) const {
    const auto is = [&](std::string_view part) { return name.find(part) != std::string::npos; };
    const int64_t keys = config_.kv_heads * config_.key_width;
    if (is("attn_k.") || is("attn_v.")) return {keys, config_.width};
    if (is("attn_")) return {config_.width, config_.width};
    if (is("ffn_down")) return {config_.width, config_.hidden};
    if (is("ffn_")) return {config_.hidden, config_.width};
    return {config_.vocabulary, config_.width};
  }

  const DecoderConfig config_;
  const std::optional<BlockFormat> format_;
};

Result<LanguageSource> random_model(std::optional<BlockFormat> format) {
  DecoderConfig config = {.family = "llama"};
  config.layers = static_cast<int64_t>(layers.number());
  config.width = static_cast<int64_t>(width.number());
  config.heads = config.width / 64;
  config.kv_heads = std::max<int64_t>(config.heads / 4, 1);
  config.key_width = config.value_width = 64;
  config.hidden = config.width * 11 / 4 / 256 * 256;
  config.context = 4096;
  config.vocabulary = kVocabulary;
  config.rotation.width = 64;
  HONE_TRY(check(config));
  Vocabulary vocabulary;
  vocabulary.rules = piece_rules("gpt-2");
  vocabulary.tokens.push_back({"a", 0, TokenClass::normal});
  auto weights = [config, format]() -> Result<std::unique_ptr<DecoderWeights>> {
    return std::unique_ptr<DecoderWeights>(new RandomWeights(config, format));
  };
  return LanguageSource{config,
                        HONE_TRY(Tokenizer::make(std::move(vocabulary))), std::move(weights)};
}

struct Case {
  std::string name;
  std::function<Result<LanguageSource>()> source;
};

Result<CacheType> given_cache() {
  const std::optional<CacheType> type = cache_type_of(cache_type.text());
  if (!type)
    return usage_error("--cache-type is {}, want f32, f16 or q8", excerpt(cache_type.text()));
  return *type;
}

Result<std::unique_ptr<LanguageModel>> loaded(const Case& one, int64_t threads, CacheType cache) {
  LanguageModel::Options options;
  options.native.target = HONE_TRY(host_target());
  options.native.threads = threads;
  options.context = kPrompt + kDecoded;
  options.cache = cache;
  auto model = HONE_TRY(LanguageModel::make(HONE_TRY(one.source()), std::move(options)));
  HONE_TRY(model->prepare(kPrompt));
  return model;
}

// With the caches of --cache-type.
Result<std::unique_ptr<LanguageModel>> loaded(const Case& one, int64_t threads) {
  return loaded(one, threads, HONE_TRY(given_cache()));
}

std::vector<TokenId> some_tokens(const LanguageModel& model, int64_t count) {
  std::vector<TokenId> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<TokenId>(i * 7919 % model.config().vocabulary));
  return tokens;
}

void run(benchmark::State& state, const Case& one, int64_t threads, bool decodes) {
  const auto start = std::chrono::steady_clock::now();
  const Result<std::unique_ptr<LanguageModel>> made = loaded(one, threads);
  if (!made.ok()) return state.SkipWithError(made.error().to_string().c_str());
  LanguageModel& model = **made;
  const bool is_ready = model.read(some_tokens(model, kPrompt)).ok();
  const std::chrono::duration<double> to_first = std::chrono::steady_clock::now() - start;
  if (!is_ready) return state.SkipWithError("the prompt failed");
  const std::vector<TokenId> prompt = some_tokens(model, kPrompt);
  std::vector<TokenId> next = some_tokens(model, 1);
  double tokens = 0;
  for (auto _ : state) {
    if (decodes) state.PauseTiming();
    model.keep(0);
    bool is_read = model.read(prompt).ok();
    if (decodes) state.ResumeTiming();
    for (int64_t i = 0; decodes && is_read && i < kDecoded; ++i) {
      const Result<std::vector<float>> logits = model.read(next);
      is_read = logits.ok();
      if (is_read)
        next[0] = static_cast<TokenId>(std::ranges::max_element(*logits) - logits->begin());
    }
    if (!is_read) state.SkipWithError("a step failed");
    tokens += static_cast<double>(decodes ? kDecoded : kPrompt);
  }
  state.counters["tokens_per_s"] = benchmark::Counter(tokens, benchmark::Counter::kIsRate);
  state.counters["weights_and_caches_MB"] = static_cast<double>(model.memory()) / 1e6;
  state.counters["first_token_s"] = to_first.count();
  if (decodes) {
    state.counters["part_of_memory"] =
        benchmark::Counter(tokens * static_cast<double>(model.step_bytes()) / model.bandwidth(),
                           benchmark::Counter::kIsRate);
    return;
  }
  state.counters["part_of_peak"] = benchmark::Counter(
      tokens * model.token_products() / model.products_per_second(), benchmark::Counter::kIsRate);
}

// A token of each text in one pass over the weights.
void run_together(benchmark::State& state, const Case& one, int64_t threads, size_t texts) {
  const Result<std::unique_ptr<LanguageModel>> made = loaded(one, threads);
  if (!made.ok()) return state.SkipWithError(made.error().to_string().c_str());
  LanguageModel& model = **made;
  Result<std::vector<LanguageModel::Memory>> memories = model.new_memories(texts);
  if (!memories.ok()) return state.SkipWithError(memories.error().to_string().c_str());
  const std::vector<TokenId> prompt = some_tokens(model, 16);
  std::vector<LanguageModel::Memory*> all;
  for (LanguageModel::Memory& memory : *memories) {
    model.swap_memory(memory);
    const bool is_read = model.read(prompt).ok();
    model.swap_memory(memory);
    if (!is_read) return state.SkipWithError("the prompt failed");
    all.push_back(&memory);
  }
  const std::vector<TokenId> next(texts, 1);
  if (!model.read_together(all, next).ok()) return state.SkipWithError("a step failed");
  double tokens = 0;
  for (auto _ : state) {
    for (LanguageModel::Memory* memory : all) memory->tokens.resize(prompt.size());
    for (int64_t i = 0; i < kDecoded; ++i)
      if (!model.read_together(all, next).ok()) state.SkipWithError("a step failed");
    tokens += static_cast<double>(kDecoded * static_cast<int64_t>(texts));
  }
  state.counters["tokens_per_s"] = benchmark::Counter(tokens, benchmark::Counter::kIsRate);
}

// ---- llama.cpp ----------------------------------------------------------------------------------

constexpr int64_t kScoredWindow = 256;  // as in rival.mjs
constexpr int64_t kMostText = int64_t{1} << 26;

std::filesystem::path llama_modules() { return root() / "build/bench/llama/node_modules"; }
bool has_llama() { return std::filesystem::exists(llama_modules() / "node-llama-cpp"); }

// The figures of rival.mjs of these names for the file, from a process of its own.
Result<std::vector<double>> llama_cpp(int64_t threads, const std::string& text,
                                      std::initializer_list<const char*> names) {
  const std::filesystem::path modules = llama_modules();
  const ProcessResult ran = HONE_TRY(
      run_process("/usr/bin/env", {"node", (root() / "bench/llm/rival.mjs").string(),
                                   modules.string(), file.text(), std::to_string(threads), text}));
  const nlohmann::json said = nlohmann::json::parse(ran.out, nullptr, false);
  if (ran.exit_code != 0 || !said.is_object())
    return bad_input("llama.cpp failed: {}", excerpt(ran.err));
  std::vector<double> figures;
  for (const char* name : names) {
    // JSON has no NaN: it is null.
    const auto found = said.find(name);
    if (found == said.end() || !found->is_number())
      return bad_input("llama.cpp gave no number for {}: {}", name, excerpt(ran.out));
    figures.push_back(found->get<double>());
  }
  return figures;
}

// The mean of its rounds, as in the rows of hone; the time of the row says nothing.
void run_rival(benchmark::State& state, int64_t threads) {
  const Result<std::vector<double>> said =
      llama_cpp(threads, "", {"prompt", "decode", "first", "resident"});
  if (!said.ok()) return state.SkipWithError(said.error().to_string().c_str());
  for (auto _ : state) benchmark::DoNotOptimize(threads);
  state.counters["prompt_tokens_per_s"] = (*said)[0];
  state.counters["decode_tokens_per_s"] = (*said)[1];
  state.counters["first_token_s"] = (*said)[2];
  state.counters["resident_with_node_MB"] = (*said)[3] / 1e6;
}

Result<double> own_perplexity(const Case& one) {
  const std::unique_ptr<LanguageModel> model = HONE_TRY(loaded(one, 1, CacheType::f32));
  std::vector<TokenId> tokens = model->tokenizer().prompt(
      HONE_TRY(read_file(text_file.text(), kMostText)));
  if (std::ssize(tokens) < kScoredWindow)
    return bad_input("--text has {} tokens, want {}", tokens.size(), kScoredWindow);
  tokens.resize(kScoredWindow);
  return HONE_TRY(perplexity(*model, tokens, kScoredWindow)).value;
}

void run_perplexity(benchmark::State& state, const Case& one) {
  const Result<double> own = own_perplexity(one);
  if (!own.ok()) return state.SkipWithError(own.error().to_string().c_str());
  for (auto _ : state) benchmark::DoNotOptimize(one);
  state.counters["perplexity"] = *own;
  if (!has_llama()) return;
  const Result<std::vector<double>> said = llama_cpp(1, text_file.text(), {"perplexity"});
  if (!said.ok()) return state.SkipWithError(said.error().to_string().c_str());
  state.counters["llama_cpp"] = (*said)[0];
  state.counters["llama_cpp_over_f32"] = (*said)[0] / *own - 1;
}

std::vector<Case> cases() {
  if (!file.text().empty()) return {{"file", [] { return read_language(file.text()); }}};
  std::vector<Case> all = {{"f16", [] { return random_model({}); }}};
  for (const BlockFormat format : {BlockFormat::q8_0, BlockFormat::q4_0, BlockFormat::q4_k})
    all.push_back({std::string(layout_of(format).name), [=] { return random_model(format); }});
  return all;
}

const Rows rows([] {
  for (const Case& one : cases())
    for (const int64_t threads : {1, 2})
      for (const bool decodes : {false, true})
        benchmark::RegisterBenchmark(
            fmt::format("llm/{}/{}/threads:{}", one.name, decodes ? "decode" : "prompt", threads)
                .c_str(),
            [=](benchmark::State& state) { run(state, one, threads, decodes); })
            ->Unit(benchmark::kMillisecond)
            ->UseRealTime();
  for (const Case& one : cases())
    for (const int64_t threads : {1, 2})
      benchmark::RegisterBenchmark(
          fmt::format("llm/{}/decode_of_4_texts/threads:{}", one.name, threads).c_str(),
          [=](benchmark::State& state) { run_together(state, one, threads, 4); })
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
  if (!file.text().ends_with(".gguf")) {
    if (!text_file.text().empty()) {
      std::fprintf(stderr, "--text needs --model=FILE.gguf\n");
      std::exit(2);
    }
    return;
  }
  if (!has_llama()) std::fprintf(stderr, "llama.cpp is left out: bench/llm/setup.sh installs it\n");
  for (const int64_t threads : {1, 2})
    if (has_llama())
      benchmark::RegisterBenchmark(fmt::format("llm/llama.cpp/threads:{}", threads).c_str(),
                                   [=](benchmark::State& state) { run_rival(state, threads); })
          ->Iterations(1);
  if (text_file.text().empty()) return;
  for (const Case& one : cases())
    benchmark::RegisterBenchmark("llm/perplexity", [=](benchmark::State& state) {
      run_perplexity(state, one);
    })->Iterations(1);
});

}  // namespace
}  // namespace hone::bench::HONE_FILE
