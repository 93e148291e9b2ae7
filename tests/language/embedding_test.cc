#include "language/embedding_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "base/file.h"
#include "base/rng.h"
#include "formats/safetensors.h"
#include "front/gguf/gguf_model.h"
#include "front/hugging_face/hf_model.h"
#include "language/language_source.h"
#include "target/target.h"
#include "tests/base/says_testing.h"
#include "tests/front/gguf_file.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;
using testing::ElementsAre;
using Reals = std::vector<double>;

// ---- Tiny encoders of random weights
// ----------------------------------------------------------------

constexpr int64_t kWidth = 16, kHeads = 2, kHidden = 32, kLayers = 2, kContext = 24;
const std::vector<std::string> kTokens = {"[PAD]", "[UNK]",  "[CLS]", "[SEP]", "the",  "cat", "##s",
                                          "run",   "##ning", "a",     "!",     "e",    "##e", "中",
                                          "##ar",  "b",      "##ed",  ",",     "cafe", "ss"};

struct Array {
  std::vector<uint64_t> dims;
  std::vector<float> numbers;
};
// Arrays have the names of GGUF files.
struct Tiny {
  std::string family = "bert";
  int64_t first_position = 0;
  std::map<std::string, Array> weights = {};

  void add(const std::string& name, std::vector<uint64_t> dims, double scale, double mean = 0) {
    Array& array = weights[name];
    uint64_t size = 1;
    for (const uint64_t dim : dims) size *= dim;
    Rng rng(7 + 31 * weights.size());
    for (uint64_t i = 0; i < size; ++i)
      array.numbers.push_back(static_cast<float>(mean + scale * rng.normal()));
    array.dims = std::move(dims);
  }
  void norm(const std::string& name) {
    add(name + ".weight", {kWidth}, 0.1, 1);
    add(name + ".bias", {kWidth}, 0.1);
  }
  void linear(const std::string& name, int64_t out, int64_t in) {
    add(name + ".weight", {static_cast<uint64_t>(out), static_cast<uint64_t>(in)}, 0.25);
    if (family != "nomic-bert") add(name + ".bias", {static_cast<uint64_t>(out)}, 0.1);
  }
};

Tiny tiny(std::string family, int64_t first_position = 0) {
  Tiny made = {.family = std::move(family), .first_position = first_position};
  const bool is_nomic = made.family == "nomic-bert";
  made.add("token_embd.weight", {kTokens.size(), kWidth}, 1);
  if (!is_nomic)
    made.add("position_embd.weight", {static_cast<uint64_t>(kContext + first_position), kWidth}, 1);
  if (made.family != "distilbert") made.add("token_types.weight", {2, kWidth}, 1);
  made.norm("token_embd_norm");
  for (int64_t i = 0; i < kLayers; ++i) {
    const std::string at = fmt::format("blk.{}.", i);
    if (is_nomic) {
      made.linear(at + "attn_qkv", 3 * kWidth, kWidth);
      made.linear(at + "ffn_gate", kHidden, kWidth);
    } else {
      for (const char* name : {"attn_q", "attn_k", "attn_v"})
        made.linear(at + name, kWidth, kWidth);
    }
    made.linear(at + "attn_output", kWidth, kWidth);
    made.norm(at + "attn_output_norm");
    made.linear(at + "ffn_up", kHidden, kWidth);
    made.linear(at + "ffn_down", kWidth, kHidden);
    made.norm(at + "layer_output_norm");
  }
  return made;
}

std::string gguf_of(const Tiny& tiny, uint32_t pooling) {
  GgufWriter w;
  const auto key = [&](const char* name) { return tiny.family + "." + name; };
  w.text("general.architecture", tiny.family);
  w.integer(key("block_count"), kLayers);
  w.integer(key("embedding_length"), kWidth);
  w.integer(key("feed_forward_length"), kHidden);
  w.integer(key("context_length"), kContext);
  w.integer(key("attention.head_count"), kHeads);
  w.real(key("attention.layer_norm_epsilon"), 1e-5F);
  if (tiny.family == "nomic-bert") w.real(key("rope.freq_base"), 1000);
  w.integer(key("pooling_type"), pooling);
  std::vector<std::string> texts;
  std::vector<int32_t> kinds;
  for (const std::string& token : kTokens) {
    const bool is_control = token.starts_with('[');
    texts.push_back(is_control                ? token
                    : token.starts_with("##") ? token.substr(2)
                                              : "\u2581" + token);
    kinds.push_back(is_control ? 3 : 1);
  }
  w.text("tokenizer.ggml.model", "bert");
  w.texts("tokenizer.ggml.tokens", texts);
  w.integers("tokenizer.ggml.token_type", kinds);
  w.integer("tokenizer.ggml.unknown_token_id", 1);
  w.integer("tokenizer.ggml.cls_token_id", 2);
  w.integer("tokenizer.ggml.seperator_token_id", 3);
  for (const auto& [name, array] : tiny.weights) {
    std::string bytes;
    for (const float one : array.numbers) bytes += GgufWriter::bytes_of(one);
    w.tensor(name, array.dims, gguf::kF32, bytes);
  }
  return w.bytes();
}

// ---- The published formulas in plain loops
// ---------------------------------------------------------

class Plain {
 public:
  explicit Plain(const Tiny& tiny) : tiny_(tiny) {}

  // One row for each token.
  std::vector<Reals> states(const std::vector<TokenId>& tokens) const {
    std::vector<Reals> rows;
    for (size_t t = 0; t < tokens.size(); ++t) {
      Reals row = row_of("token_embd.weight", tokens[t]);
      if (has("position_embd.weight"))
        add(row, row_of("position_embd.weight", static_cast<int64_t>(t) + tiny_.first_position));
      if (has("token_types.weight")) add(row, row_of("token_types.weight", 0));
      rows.push_back(normed("token_embd_norm", row));
    }
    for (int64_t i = 0; i < kLayers; ++i) rows = layer(fmt::format("blk.{}.", i), rows);
    return rows;
  }

 private:
  bool has(const std::string& name) const { return tiny_.weights.contains(name); }
  const Array& at(const std::string& name) const { return tiny_.weights.at(name); }
  static void add(Reals& to, const Reals& from) {
    for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  }
  Reals row_of(const std::string& name, int64_t row) const {
    const auto first = at(name).numbers.begin() + row * kWidth;
    return {first, first + kWidth};
  }
  Reals normed(const std::string& name, Reals x) const {
    double mean = 0, square = 0;
    for (const double one : x) mean += one / static_cast<double>(x.size());
    for (const double one : x)
      square += (one - mean) * (one - mean) / static_cast<double>(x.size());
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = (x[i] - mean) / std::sqrt(square + 1e-5) * at(name + ".weight").numbers[i] +
             at(name + ".bias").numbers[i];
    return x;
  }
  Reals times(const std::string& name, const Reals& x) const {
    const Array& matrix = at(name + ".weight");
    Reals y(matrix.dims[0]);
    for (size_t o = 0; o < y.size(); ++o) {
      if (has(name + ".bias")) y[o] = at(name + ".bias").numbers[o];
      for (size_t i = 0; i < x.size(); ++i) y[o] += matrix.numbers[o * x.size() + i] * x[i];
    }
    return y;
  }
  // Halves of each head turn together.
  static void turn(Reals& x, size_t position) {
    constexpr size_t kEach = kWidth / kHeads;
    for (size_t h = 0; h < kHeads; ++h)
      for (size_t p = 0; p < kEach / 2; ++p) {
        const double angle =
            static_cast<double>(position) * std::pow(1000.0, -2.0 * static_cast<double>(p) / kEach);
        double& a = x[h * kEach + p];
        double& b = x[h * kEach + p + kEach / 2];
        const double old = a;
        a = old * std::cos(angle) - b * std::sin(angle);
        b = b * std::cos(angle) + old * std::sin(angle);
      }
  }
  std::vector<Reals> layer(const std::string& name, const std::vector<Reals>& rows) const {
    std::vector<Reals> q, k, v, out;
    for (size_t t = 0; t < rows.size(); ++t) {
      if (has(name + "attn_qkv.weight")) {
        const Reals all = times(name + "attn_qkv", rows[t]);
        q.emplace_back(all.begin(), all.begin() + kWidth);
        k.emplace_back(all.begin() + kWidth, all.begin() + 2 * kWidth);
        v.emplace_back(all.begin() + 2 * kWidth, all.end());
        turn(q.back(), t), turn(k.back(), t);
      } else {
        q.push_back(times(name + "attn_q", rows[t]));
        k.push_back(times(name + "attn_k", rows[t]));
        v.push_back(times(name + "attn_v", rows[t]));
      }
    }
    for (size_t t = 0; t < rows.size(); ++t) {
      Reals x = rows[t];
      add(x, times(name + "attn_output", attended(q[t], k, v)));
      x = normed(name + "attn_output_norm", x);
      Reals inner = times(name + "ffn_up", x);
      if (has(name + "ffn_gate.weight")) {
        const Reals gate = times(name + "ffn_gate", x);
        for (size_t i = 0; i < inner.size(); ++i) inner[i] *= gate[i] / (1 + std::exp(-gate[i]));
      } else {
        for (double& one : inner) one *= 0.5 * (1 + std::erf(one / std::sqrt(2.0)));
      }
      add(x, times(name + "ffn_down", inner));
      out.push_back(normed(name + "layer_output_norm", x));
    }
    return out;
  }
  static Reals attended(const Reals& q, const std::vector<Reals>& k, const std::vector<Reals>& v) {
    constexpr size_t kEach = kWidth / kHeads;
    Reals out(kWidth);
    for (size_t h = 0; h < kHeads; ++h) {
      Reals weights;
      double sum = 0;
      for (const Reals& key : k) {
        double score = 0;
        for (size_t i = h * kEach; i < (h + 1) * kEach; ++i) score += q[i] * key[i];
        weights.push_back(std::exp(score / std::sqrt(static_cast<double>(kEach))));
        sum += weights.back();
      }
      for (size_t t = 0; t < v.size(); ++t)
        for (size_t i = h * kEach; i < (h + 1) * kEach; ++i) out[i] += weights[t] / sum * v[t][i];
    }
    return out;
  }

  const Tiny& tiny_;
};

Reals pooled(const std::vector<Reals>& rows, Pooling pooling, bool is_normalized) {
  Reals made = pooling == Pooling::last ? rows.back() : rows[0];
  if (pooling == Pooling::mean)
    for (size_t i = 0; i < made.size(); ++i) {
      made[i] = 0;
      for (const Reals& row : rows) made[i] += row[i] / static_cast<double>(rows.size());
    }
  double square = 0;
  for (const double one : made) square += one * one;
  for (double& one : made) one /= is_normalized ? std::sqrt(square) : 1;
  return made;
}

// ---- Models
// ----------------------------------------------------------------------------------------

std::unique_ptr<EmbeddingModel> loaded(const std::filesystem::path& path,
                                       EmbeddingModel::Options options = {}) {
  options.native.target = host_target().value();
  options.native.threads = 1;
  return EmbeddingModel::make(read_embedding(path).value(), std::move(options)).value();
}

void expect_near(const std::vector<float>& made, const Reals& wanted) {
  ASSERT_EQ(made.size(), wanted.size());
  for (size_t i = 0; i < made.size(); ++i) EXPECT_NEAR(made[i], wanted[i], 2e-5) << i;
}

const std::vector<TokenId> kShort = {2, 4, 5, 6, 3};
std::vector<TokenId> long_text() {
  std::vector<TokenId> tokens;
  for (TokenId i = 0; i < kContext; ++i) tokens.push_back(i * 7 % std::ssize(kTokens));
  return tokens;
}

TEST(Embeddings, OfGgufFilesAreThoseOfPlainLoops) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  for (const char* family : {"bert", "nomic-bert"}) {
    SCOPED_TRACE(family);
    const Tiny weights = tiny(family);
    const std::filesystem::path path = folder.path() / "m.gguf";
    ASSERT_TRUE(write_file_atomic(path, gguf_of(weights, 2)).ok());
    const std::unique_ptr<EmbeddingModel> model = loaded(path);
    ASSERT_EQ(model->config().pooling, Pooling::cls);
    for (const std::vector<TokenId>& tokens : {kShort, long_text(), std::vector<TokenId>{9}})
      expect_near(model->embed_tokens(tokens).value(),
                  pooled(Plain(weights).states(tokens), Pooling::cls, true));
  }
}

TEST(Embeddings, ArePooledAsAskedFor) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const Tiny weights = tiny("bert");
  const std::filesystem::path path = folder.path() / "m.gguf";
  ASSERT_TRUE(write_file_atomic(path, gguf_of(weights, 1)).ok());
  const std::vector<Reals> states = Plain(weights).states(kShort);
  expect_near(loaded(path)->embed_tokens(kShort).value(), pooled(states, Pooling::mean, true));
  for (const Pooling pooling : {Pooling::mean, Pooling::cls, Pooling::last})
    expect_near(
        loaded(path, {.pooling = pooling, .is_normalized = false})->embed_tokens(kShort).value(),
        pooled(states, pooling, false));
}

TEST(Embeddings, SayWhatIsTooLong) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::filesystem::path path = folder.path() / "m.gguf";
  ASSERT_TRUE(write_file_atomic(path, gguf_of(tiny("bert"), 1)).ok());
  std::string text;
  for (int i = 0; i < 40; ++i) text += "cat ";
  EXPECT_THAT(loaded(path)->embed(text), refuses(ErrorCode::usage, "42 tokens ... takes 24"));
  std::vector<TokenId> kept(kContext, 5);
  kept.front() = 2, kept.back() = 3;
  EXPECT_EQ(loaded(path, {.drops_end = true})->embed(text).value(),
            loaded(path)->embed_tokens(kept).value());
  EXPECT_THAT(loaded(path)->embed_tokens(std::vector<TokenId>{99}),
              refuses(ErrorCode::usage, "no token 99"));
  EXPECT_THAT(loaded(path)->embed_tokens({}), refuses(ErrorCode::usage, "no token"));
  EXPECT_THAT(read_language(path), refuses(ErrorCode::unsupported, "\"bert\" ... hone embed"));
  const std::filesystem::path decoder = folder.path() / "d.gguf";
  ASSERT_TRUE(write_file_atomic(decoder, tiny_gguf({})).ok());
  EXPECT_THAT(read_embedding(decoder), refuses(ErrorCode::unsupported, "\"llama\" ... bert"));
}

// ---- Folders of Hugging Face
// -------------------------------------------------------------------------

struct Renamed {
  const char* gguf;
  const char* bert;
  const char* distilled;
};
constexpr Renamed kRenamed[] = {
    {"token_embd.", "embeddings.word_embeddings.", "embeddings.word_embeddings."},
    {"position_embd.", "embeddings.position_embeddings.", "embeddings.position_embeddings."},
    {"token_types.", "embeddings.token_type_embeddings.", ""},
    {"token_embd_norm.", "embeddings.LayerNorm.", "embeddings.LayerNorm."},
    {"attn_q.", "attention.self.query.", "attention.q_lin."},
    {"attn_k.", "attention.self.key.", "attention.k_lin."},
    {"attn_v.", "attention.self.value.", "attention.v_lin."},
    {"attn_output.", "attention.output.dense.", "attention.out_lin."},
    {"attn_output_norm.", "attention.output.LayerNorm.", "sa_layer_norm."},
    {"ffn_up.", "intermediate.dense.", "ffn.lin1."},
    {"ffn_down.", "output.dense.", "ffn.lin2."},
    {"layer_output_norm.", "output.LayerNorm.", "output_layer_norm."}};

std::string hf_name(const Tiny& tiny, std::string name) {
  const bool is_distilled = tiny.family == "distilbert";
  std::string layer;
  if (name.starts_with("blk.")) {
    layer = fmt::format("{}.layer.{}.", is_distilled ? "transformer" : "encoder", name[4]);
    name.erase(0, 6);
  }
  for (const Renamed& one : kRenamed)
    if (name.starts_with(one.gguf))
      return (tiny.family == "roberta" ? "roberta."
              : is_distilled           ? "distilbert."
                                       : "") +
             layer + (is_distilled ? one.distilled : one.bert) + name.substr(std::strlen(one.gguf));
  ADD_FAILURE() << name;
  return name;
}

void write_folder(const Tiny& tiny, const std::filesystem::path& folder, std::string_view config) {
  Safetensors file;
  for (const auto& [name, array] : tiny.weights) {
    Dims dims;
    for (const uint64_t dim : array.dims) dims.push_back(static_cast<int64_t>(dim));
    file.tensors.push_back(
        {hf_name(tiny, name), Tensor::of<float>(Type::get(DType::f32, dims), array.numbers)});
  }
  ASSERT_TRUE(write_safetensors(folder / "model.safetensors", file).ok());
  ASSERT_TRUE(write_file_atomic(folder / "config.json", config).ok());
  std::string vocab, added;
  for (size_t i = 0; i < kTokens.size(); ++i) {
    vocab += fmt::format("{}\"{}\": {}", i == 0 ? "" : ",", kTokens[i], i);
    if (i < 4)
      added += fmt::format(R"({}{{"id": {}, "content": "{}", "special": true}})", i == 0 ? "" : ",",
                           i, kTokens[i]);
  }
  const std::string tokenizer = fmt::format(
      R"({{"added_tokens": [{}], "normalizer": {{"type": "BertNormalizer", "clean_text": true,
          "handle_chinese_chars": true, "strip_accents": null, "lowercase": true}},
          "pre_tokenizer": {{"type": "BertPreTokenizer"}},
          "model": {{"type": "WordPiece", "unk_token": "[UNK]",
            "continuing_subword_prefix": "##", "vocab": {{{}}}}}}})",
      added, vocab);
  ASSERT_TRUE(write_file_atomic(folder / "tokenizer.json", tokenizer).ok());
  ASSERT_TRUE(write_file_atomic(folder / "tokenizer_config.json",
                                R"({"cls_token": "[CLS]", "sep_token": "[SEP]"})")
                  .ok());
}

constexpr std::string_view kBert = R"({"model_type": "bert", "num_hidden_layers": 2,
  "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 20,
  "max_position_embeddings": 24, "layer_norm_eps": 1e-5, "hidden_act": "gelu"})";
constexpr std::string_view kRoberta = R"({"model_type": "roberta", "num_hidden_layers": 2,
  "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 20,
  "max_position_embeddings": 26, "layer_norm_eps": 1e-5, "pad_token_id": 1})";
constexpr std::string_view kDistilled = R"({"model_type": "distilbert", "n_layers": 2, "dim": 16,
  "n_heads": 2, "hidden_dim": 32, "vocab_size": 20, "max_position_embeddings": 24,
  "layer_norm_eps": 1e-5})";

TEST(Embeddings, OfFoldersAreThoseOfPlainLoops) {
  for (const auto& [weights, config] : {std::pair(tiny("bert"), kBert),
                                        {tiny("roberta", 2), kRoberta},
                                        {tiny("distilbert"), kDistilled}}) {
    SCOPED_TRACE(weights.family);
    const TempDir folder = TempDir::create(testing::TempDir()).value();
    write_folder(weights, folder.path(), config);
    const std::unique_ptr<EmbeddingModel> model = loaded(folder.path());
    EXPECT_EQ(model->config().context, kContext);
    expect_near(model->embed_tokens(long_text()).value(),
                pooled(Plain(weights).states(long_text()), Pooling::mean, true));
    const std::vector<TokenId> tokens = {2, 4, 5, 6, 10, 3};
    expect_near(model->embed("The cats!").value(),
                pooled(Plain(weights).states(tokens), Pooling::mean, true));
  }
}

TEST(Embeddings, FollowAFolderOfSentenceTransformers) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  write_folder(tiny("bert"), folder.path(), kBert);
  ASSERT_TRUE(std::filesystem::create_directory(folder.path() / "1_Pooling"));
  const std::filesystem::path pooling = folder.path() / "1_Pooling" / "config.json";
  const auto write = [](const std::filesystem::path& path, std::string_view text) {
    ASSERT_TRUE(write_file_atomic(path, text).ok());
  };
  write(pooling, R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false})");
  write(folder.path() / "modules.json", R"([{"type": "sentence_transformers.models.Pooling"}])");
  EXPECT_EQ(hf_encoder_config(folder.path()).value().pooling, Pooling::cls);
  EXPECT_FALSE(hf_encoder_config(folder.path()).value().is_normalized);
  write(folder.path() / "modules.json", R"([{"type": "sentence_transformers.models.Normalize"}])");
  EXPECT_TRUE(hf_encoder_config(folder.path()).value().is_normalized);
  write(pooling, R"({"pooling_mode_max_tokens": true})");
  EXPECT_THAT(hf_encoder_config(folder.path()),
              refuses(ErrorCode::unsupported, "'pooling_mode_max_tokens' ... mean"));
}

TEST(Embeddings, SayWhatTheyDoNotKnow) {
  EXPECT_THAT(parse_hf_encoder(R"({"model_type": "llama"})", "c"),
              refuses(ErrorCode::unsupported, "\"llama\" ... bert"));
  EXPECT_THAT(parse_hf_encoder(R"({"model_type": "bert"})", "c"),
              refuses(ErrorCode::bad_input, "'num_hidden_layers' ... missing"));
  std::string other(kBert);
  other.replace(other.find("\"gelu\""), 6, "\"relu\"");
  EXPECT_THAT(parse_hf_encoder(other, "c"), refuses(ErrorCode::unsupported, "\"relu\" ... gelu"));
  other = kBert;
  other.replace(other.find("\"num_attention_heads\": 2"), 24, "\"num_attention_heads\": 3");
  EXPECT_THAT(parse_hf_encoder(other, "c"), refuses(ErrorCode::bad_input, "3 heads ... 16"));
  Tiny weights = tiny("bert");
  weights.weights.erase("blk.1.ffn_up.weight");
  const std::string bytes = gguf_of(weights, 1);
  const Gguf file = parse_gguf(std::as_bytes(std::span(bytes)), "m").value();
  EXPECT_THAT(build_encoder(gguf_encoder_config(file).value(), *gguf_weights(file)),
              refuses(ErrorCode::bad_input, "blk.1.ffn_up.weight"));
  const std::string pooled = gguf_of(tiny("bert"), 0);
  EXPECT_THAT(gguf_encoder_config(parse_gguf(std::as_bytes(std::span(pooled)), "m").value()),
              refuses(ErrorCode::unsupported, "'bert.pooling_type' is 0"));
}

// ---- Words
// -----------------------------------------------------------------------------------------

Tokenizer tokenizer_of_words() {
  const std::string bytes = gguf_of(tiny("bert"), 1);
  return Tokenizer::make(
             gguf_vocabulary(parse_gguf(std::as_bytes(std::span(bytes)), "m").value()).value())
      .value();
}

TEST(WordPieces, AreTheLongestFromTheLeft) {
  const Tokenizer tokenizer = tokenizer_of_words();
  EXPECT_THAT(tokenizer.encode("the cats running"), ElementsAre(4, 5, 6, 7, 8));
  EXPECT_THAT(tokenizer.encode("cat,\tcat!"), ElementsAre(5, 17, 5, 10));
  EXPECT_THAT(tokenizer.encode("catx the"), ElementsAre(1, 4)) << "a word is unknown as a whole";
  EXPECT_THAT(tokenizer.encode("a中a"), ElementsAre(9, 13, 9));
  EXPECT_THAT(tokenizer.encode(" \n"), ElementsAre());
  EXPECT_THAT(tokenizer.encode(std::string(101, 'e')), ElementsAre(1));
  EXPECT_EQ(tokenizer.encode(std::string(100, 'e')).size(), 100U);
  EXPECT_THAT(tokenizer.prompt("a"), ElementsAre(2, 9, 3));
  EXPECT_THAT(tokenizer.encode("a\xff"), ElementsAre(1)) << "a byte of no character is a sign";
  EXPECT_THAT(tokenizer.encode("[SEP]"), ElementsAre(1, 1, 1)) << "text spells no control token";
}

TEST(WordPieces, LeaveOutCaseAndAccents) {
  const Tokenizer tokenizer = tokenizer_of_words();
  EXPECT_THAT(tokenizer.encode("THE Café cafe\u0301"), ElementsAre(4, 18, 18));
  EXPECT_THAT(tokenizer.encode(std::string("c\0a\u200Bt\f\uFFFD", 11)), ElementsAre(5));
}

}  // namespace
}  // namespace hone::HONE_FILE
