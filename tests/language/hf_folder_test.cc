#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "formats/safetensors.h"
#include "front/gguf/gguf_model.h"
#include "front/hugging_face/hf_model.h"
#include "ir/reference/evaluate.h"
#include "language/language_source.h"
#include "tests/base/says_testing.h"
#include "tests/front/gguf_file.h"
#include "tests/front/plain_decoder.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;
using testing::ElementsAre;

// ---- Folders made of tiny GGUF files
// -------------------------------------------------------------

constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"token_embd.", "model.embed_tokens."},
    {"output_norm.", "model.norm."},
    {"output.", "lm_head."},
    {"attn_norm.", "input_layernorm."},
    {"attn_q.", "self_attn.q_proj."},
    {"attn_k.", "self_attn.k_proj."},
    {"attn_v.", "self_attn.v_proj."},
    {"attn_output.", "self_attn.o_proj."},
    {"ffn_norm.", "post_attention_layernorm."},
    {"ffn_gate.", "mlp.gate_proj."},
    {"ffn_up.", "mlp.up_proj."},
    {"ffn_down.", "mlp.down_proj."}};
constexpr std::pair<std::string_view, std::string_view> kGpt2Names[] = {
    {"token_embd.", "wte."}, {"position_embd.", "wpe."},    {"output_norm.", "ln_f."},
    {"attn_norm.", "ln_1."}, {"attn_qkv.", "attn.c_attn."}, {"attn_output.", "attn.c_proj."},
    {"ffn_norm.", "ln_2."},  {"ffn_up.", "mlp.c_fc."},      {"ffn_down.", "mlp.c_proj."}};

bool is_gpt2(const Gguf& file) { return file.find("position_embd.weight") != nullptr; }

std::string hf_name(const Gguf& file, std::string_view name) {
  std::string made;
  if (consume_prefix(name, "blk.")) {
    const size_t dot = name.find('.');
    made = fmt::format("{}.{}.", is_gpt2(file) ? "h" : "model.layers", name.substr(0, dot));
    name.remove_prefix(dot + 1);
  }
  const auto add = [&](const auto& names) {
    for (const auto& [gguf, hf] : names)
      if (name.starts_with(gguf)) return made += fmt::format("{}{}", hf, name.substr(gguf.size()));
    ADD_FAILURE() << name;
    return made;
  };
  return is_gpt2(file) ? add(kGpt2Names) : add(kNames);
}

// GPT-2 stores its matrices as [inputs, outputs].
Tensor stored(const Gguf& file, const GgufTensor& tensor) {
  const std::vector<double> numbers = plain::numbers_of(tensor);
  Ints dims = tensor.dims;
  if (!is_gpt2(file) || dims.size() != 2 || !tensor.name.starts_with("blk."))
    return Tensor::from_reals(Type::get(DType::f32, Dims(dims.begin(), dims.end())), numbers);
  std::vector<double> turned(numbers.size());
  for (int64_t r = 0; r < dims[0]; ++r)
    for (int64_t c = 0; c < dims[1]; ++c)
      turned[static_cast<size_t>(c * dims[0] + r)] = numbers[static_cast<size_t>(r * dims[1] + c)];
  return Tensor::from_reals(Type::get(DType::f32, {dims[1], dims[0]}), turned);
}

// In one file, or in two with an index.
void write_weights(const Gguf& file, const std::filesystem::path& folder, bool in_two) {
  Safetensors first, second;
  std::string index;
  for (const GgufTensor& tensor : file.tensors) {
    const bool is_second = in_two && second.tensors.size() < first.tensors.size();
    const std::string name = hf_name(file, tensor.name);
    (is_second ? second : first).tensors.push_back({name, stored(file, tensor)});
    index += fmt::format("{}\"{}\": \"{}.safetensors\"", index.empty() ? "" : ",", name,
                         is_second ? "b" : "a");
  }
  if (!in_two) {
    ASSERT_TRUE(write_safetensors(folder / "model.safetensors", first).ok());
    return;
  }
  ASSERT_TRUE(write_safetensors(folder / "a.safetensors", first).ok());
  ASSERT_TRUE(write_safetensors(folder / "b.safetensors", second).ok());
  ASSERT_TRUE(write_file_atomic(folder / "model.safetensors.index.json",
                                fmt::format("{{\"weight_map\": {{{}}}}}", index))
                  .ok());
}

constexpr std::string_view kQwen2 = R"({"model_type": "qwen2", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0,
  "max_position_embeddings": 64, "vocab_size": 268, "eos_token_id": [263, 5]})";
constexpr std::string_view kGpt2 = R"({"model_type": "gpt2", "n_embd": 64, "n_layer": 2,
  "n_head": 4, "n_positions": 64, "n_inner": 96, "vocab_size": 268})";

std::vector<Tensor> inputs_of(const Graph& graph, const std::vector<int64_t>& tokens) {
  const Type list = Type::get(DType::i64, {std::ssize(tokens)});
  std::vector<int64_t> rows(tokens.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i);
  std::vector<Tensor> inputs = {Tensor::from_integers(list, tokens), Tensor::scalar(DType::i64, 0),
                                Tensor::from_integers(list, rows)};
  for (size_t i = inputs.size(); i < graph.inputs().size(); ++i)
    inputs.push_back(
        Tensor::zeros(graph.type(graph.inputs()[i])
                          .bind({{"tokens", Dim(std::ssize(tokens))}, {"room", Dim(1)}})
                          .value()));
  return inputs;
}

void expect_as_gguf(const TinyDecoder& tiny, std::string_view config_json, bool in_two) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::string bytes = tiny_gguf(tiny);
  const Gguf file = parse_gguf(std::as_bytes(std::span(bytes)), "tiny").value();
  write_weights(file, folder.path(), in_two);
  ASSERT_TRUE(write_file_atomic(folder.path() / "config.json", config_json).ok());
  ASSERT_TRUE(is_hf_folder(folder.path()));
  const DecoderConfig config = hf_config(folder.path()).value();
  const Graph graph = build_decoder(config, *hf_weights(folder.path(), config).value()).value();
  const std::vector<int64_t> tokens = {3, 200, 1, 40, 40};
  const Tensor logits = evaluate(graph, inputs_of(graph, tokens), {}).value()[0];
  const std::vector<double> wanted = plain::decoder_logits(file, tokens);
  double largest = 0;
  for (const double one : wanted) largest = std::max(largest, std::abs(one));
  for (size_t i = 0; i < wanted.size(); ++i)
    ASSERT_NEAR(logits.real_at(static_cast<int64_t>(i)), wanted[i], 2e-5 * largest) << i;
}

TEST(HfFolders, GiveTheLogitsOfPlainLoops) {
  expect_as_gguf({.family = "qwen2"}, kQwen2, false);
  TinyDecoder gpt2 = {.family = "gpt2", .is_tied = true};
  gpt2.kv_heads = gpt2.heads;
  expect_as_gguf(gpt2, kGpt2, false);
}

TEST(HfFolders, MayHaveSeveralFiles) { expect_as_gguf({.family = "qwen2"}, kQwen2, true); }

TEST(HfFolders, FrequenciesOfLlama3AreDivided) {
  const DecoderConfig config =
      parse_hf_config(R"({"model_type": "llama", "hidden_size": 8, "intermediate_size": 8,
        "num_hidden_layers": 1, "num_attention_heads": 1, "max_position_embeddings": 64,
        "vocab_size": 4, "rope_theta": 10000, "rope_scaling": {"rope_type": "llama3",
        "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
        "original_max_position_embeddings": 256}})",
                      "c")
          .value();
  // Wavelengths are 6.3, 63, 628 and 6283. 256 / 4 = 64 is kept, 256 and more is divided.
  ASSERT_EQ(config.rotation.divisors.size(), 4U);
  EXPECT_NEAR(config.rotation.divisors[0], 1, 1e-12);
  EXPECT_NEAR(config.rotation.divisors[1], 1, 1e-12);
  EXPECT_NEAR(config.rotation.divisors[2], 8, 1e-12);
  EXPECT_NEAR(config.rotation.divisors[3], 8, 1e-12);
  EXPECT_FALSE(config.rotation.is_interleaved);
}

TEST(HfFolders, SayWhatTheyDoNotKnow) {
  EXPECT_THAT(parse_hf_config("[]", "c"), refuses(ErrorCode::bad_input, "c: ... object"));
  EXPECT_THAT(parse_hf_config("{", "c"), refuses(ErrorCode::bad_input, "c: ... object"));
  EXPECT_THAT(parse_hf_config(R"({"model_type": "mamba"})", "c"),
              refuses(ErrorCode::unsupported, "\"mamba\" ... llama"));
  EXPECT_THAT(parse_hf_config(R"({"model_type": "llama"})", "c"),
              refuses(ErrorCode::bad_input, "'num_hidden_layers' ... missing"));
  EXPECT_THAT(parse_hf_config(R"({"model_type": "gpt2", "n_layer": -1})", "c"),
              refuses(ErrorCode::bad_input, "'n_layer' is -1"));
  EXPECT_THAT(parse_hf_config(R"({"model_type": 3})", "c"),
              refuses(ErrorCode::bad_input, "'model_type' is 3"));
}

// ---- tokenizer.json
// ------------------------------------------------------------------------------

constexpr std::string_view kPieces = R"({"added_tokens": [{"id": 9, "content": "</s>",
    "special": true}],
  "normalizer": {"type": "Sequence", "normalizers": [{"type":"Prepend", "prepend": "x"}]},
  "model": {"type": "BPE", "byte_fallback": true, "unk_token": "<unk>",
    "vocab": {"<unk>": 0, "<0x0A>": 1, "a": 2, "b": 3, "c": 4, "ab": 5, "bc": 6,
      "▁": 7, "▁a": 8},
    "merges": ["b c", ["a", "b"], "▁ a"]}})";

TEST(HfTokenizers, OfPiecesMergeInTheOrderOfTheFile) {
  const Tokenizer tokenizer = Tokenizer::make(parse_hf_vocabulary(kPieces, "t").value()).value();
  EXPECT_THAT(tokenizer.encode("abc"), ElementsAre(8, 6)) << "bc, then _a";
  EXPECT_THAT(tokenizer.encode("cab"), ElementsAre(7, 4, 5));
  EXPECT_THAT(tokenizer.encode("\n</s>", Tokenizer::Control::is_token), ElementsAre(7, 1, 9));
}

std::string byte_level(std::string_view steps) {
  std::string vocab;
  GgufWriter writer;
  add_tiny_tokenizer(writer);
  const std::string bytes = writer.bytes();
  const Gguf file = parse_gguf(std::as_bytes(std::span(bytes)), "tiny").value();
  const auto& tokens = **file.get<std::vector<std::string_view>>("tokenizer.ggml.tokens");
  for (size_t i = 0; i < 262; ++i) {
    std::string text(tokens[i]);
    if (text == "\"" || text == "\\") text = "\\" + text;
    vocab += fmt::format("{}\"{}\": {}", i == 0 ? "" : ",", text, i);
  }
  return fmt::format(
      R"({{"pre_tokenizer": {}, "model": {{"type": "BPE", "vocab": {{{}}},
          "merges": ["t h", "th e", "Ġ a", "Ġ the", "e r", "o n"]}}}})",
      steps, vocab);
}

TEST(HfTokenizers, OfBytesAreThoseOfGguf) {
  const auto tokens = [](std::string_view steps, std::string_view text) {
    return Tokenizer::make(parse_hf_vocabulary(byte_level(steps), "t").value())
        .value()
        .encode(text);
  };
  constexpr std::string_view kBytes = R"({"type": "ByteLevel"})";
  EXPECT_THAT(tokens(kBytes, "a the thon 12"), ElementsAre('a', 259, ' ', 256, 261, ' ', '1', '2'));
  constexpr std::string_view kDigits = R"({"type": "Sequence", "pretokenizers": [
    {"type": "Digits", "individual_digits": true}, {"type": "ByteLevel"}]})";
  EXPECT_THAT(tokens(kDigits, "the 12"), ElementsAre(257, ' ', '1', '2'));
  EXPECT_THAT(parse_hf_vocabulary(byte_level(R"({"type": "Metaspace"})"), "t"),
              refuses(ErrorCode::unsupported, "t: ... \"Metaspace\""));
  EXPECT_THAT(
      parse_hf_vocabulary(byte_level(R"({"type": "Split", "pattern": {"Regex": "x+"}})"), "t"),
      refuses(ErrorCode::unsupported, "\"x+\" ... llama-bpe"));
}

TEST(HfTokenizers, OfUnigramPiecesTakeTheBestSum) {
  constexpr std::string_view kUnigram = R"({"added_tokens": [{"id": 4, "content": "</s>",
      "special": true}], "pre_tokenizer": {"type": "Metaspace", "replacement": "▁",
      "prepend_scheme": "always", "split": true},
    "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": false,
      "vocab": [["<unk>", 0.0], ["▁", -2.0], ["a", -3.0], ["▁a", -4.5], ["</s>", 0.0]]}})";
  const Tokenizer tokenizer = Tokenizer::make(parse_hf_vocabulary(kUnigram, "t").value()).value();
  EXPECT_THAT(tokenizer.encode("a aa</s>x", Tokenizer::Control::is_token),
              ElementsAre(3, 3, 2, 4, 1, 0));
}

TEST(HfTokenizers, SayWhatIsWrong) {
  EXPECT_THAT(parse_hf_vocabulary("{", "t"), refuses(ErrorCode::bad_input, "t: ... object"));
  EXPECT_THAT(parse_hf_vocabulary("{}", "t"), refuses(ErrorCode::bad_input, "'model' ... missing"));
  EXPECT_THAT(parse_hf_vocabulary(R"({"model": {"type": "WordLevel"}})", "t"),
              refuses(ErrorCode::unsupported, "\"WordLevel\" ... BPE"));
  EXPECT_THAT(parse_hf_vocabulary(R"({"model": {"type": "Unigram", "vocab": [["a"]]}})", "t"),
              refuses(ErrorCode::bad_input, "score"));
  EXPECT_THAT(
      parse_hf_vocabulary(
          R"({"model": {"byte_fallback": true, "vocab": {"a": 0}, "merges": ["a b"]}})", "t"),
      refuses(ErrorCode::bad_input, "merge 0"));
  EXPECT_THAT(
      parse_hf_vocabulary(R"({"model": {"byte_fallback": true, "vocab": {"a": 99999999}}})", "t"),
      refuses(ErrorCode::bad_input, "\"a\" ... 99999999"));
}

}  // namespace
}  // namespace hone::HONE_FILE
