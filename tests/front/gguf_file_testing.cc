#include "tests/front/gguf_file.h"

#include <cmath>

#include "base/error.h"
#include "base/rng.h"
#include "tensor/dtype.h"

namespace hone {

std::string GgufWriter::counted(std::string_view text) {
  return bytes_of(uint64_t{text.size()}) + std::string(text);
}

void GgufWriter::raw(std::string_view key, uint32_t type, std::string_view bytes) {
  metadata_ += counted(key) + bytes_of(type) + std::string(bytes);
  ++keys_;
}
void GgufWriter::text(std::string_view key, std::string_view value) { raw(key, 8, counted(value)); }
void GgufWriter::integer(std::string_view key, uint32_t value) { raw(key, 4, bytes_of(value)); }
void GgufWriter::real(std::string_view key, float value) { raw(key, 6, bytes_of(value)); }
void GgufWriter::flag(std::string_view key, bool value) {
  raw(key, 7, std::string(1, value ? '\1' : '\0'));
}
void GgufWriter::texts(std::string_view key, const std::vector<std::string>& values) {
  std::string bytes = bytes_of(uint32_t{8}) + bytes_of(uint64_t{values.size()});
  for (const std::string& value : values) bytes += counted(value);
  raw(key, 9, bytes);
}
void GgufWriter::integers(std::string_view key, const std::vector<int32_t>& values) {
  std::string bytes = bytes_of(uint32_t{5}) + bytes_of(uint64_t{values.size()});
  for (const int32_t value : values) bytes += bytes_of(value);
  raw(key, 9, bytes);
}
void GgufWriter::reals(std::string_view key, const std::vector<float>& values) {
  std::string bytes = bytes_of(uint32_t{6}) + bytes_of(uint64_t{values.size()});
  for (const float value : values) bytes += bytes_of(value);
  raw(key, 9, bytes);
}

void GgufWriter::tensor(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type,
                        std::string_view bytes) {
  infos_ += counted(name) + bytes_of(static_cast<uint32_t>(dims.size()));
  for (size_t i = dims.size(); i-- > 0;) infos_ += bytes_of(dims[i]);
  infos_ += bytes_of(type) + bytes_of(uint64_t{data_.size()});
  data_ += bytes;
  data_.resize((data_.size() + 31) / 32 * 32, '\0');
  ++tensors_;
}

std::string GgufWriter::bytes() const {
  std::string file = "GGUF" + bytes_of(version_) + bytes_of(tensors_) + bytes_of(keys_);
  file += metadata_ + infos_;
  if (tensors_ > 0) file.resize((file.size() + 31) / 32 * 32, '\0');
  return file + data_;
}

namespace gguf {

const TypeBytes& type_bytes(uint32_t type) {
  for (const TypeBytes& one : kTypes)
    if (one.type == type) return one;
  HONE_CHECK(false, "no type {}", type);
  return kTypes[0];
}

namespace {

void put_real(std::string& bytes, size_t at, DType dtype, double value) {
  const uint64_t pattern = encode_real(dtype, value);
  for (size_t i = 0; i < static_cast<size_t>(hone::bits(dtype)) / 8; ++i)
    bytes[at + i] = static_cast<char>(pattern >> (8 * i));
}

// The places of the f16 in a block, with the factor that makes its numbers of about `scale`.
struct Half {
  size_t at;
  double factor;
};
std::vector<Half> halves_of(uint32_t type) {
  switch (type) {
    case kQ4_0: return {{0, 1.0 / 4}};
    case kQ4_1: return {{0, 1.0 / 4}, {2, -2}};
    case kQ5_0: return {{0, 1.0 / 8}};
    case kQ5_1: return {{0, 1.0 / 8}, {2, -2}};
    case kQ8_0: return {{0, 1.0 / 64}};
    case kQ4_K: return {{0, 1.0 / 128}, {2, 1.0 / 16}};
    case kQ5_K: return {{0, 1.0 / 256}, {2, 1.0 / 16}};
    case kQ6_K: return {{208, 1.0 / 1024}};
    default: return {};
  }
}

}  // namespace

std::string random_bytes(uint32_t type, uint64_t elements, double scale, uint64_t seed) {
  const TypeBytes& one = type_bytes(type);
  HONE_CHECK(elements % one.elements == 0, "{} elements of {}", elements, one.name);
  std::string bytes(elements / one.elements * one.bytes, '\0');
  Rng rng(seed);
  if (one.elements == 1) {
    const DType dtype = type == kF32 ? DType::f32 : type == kF16 ? DType::f16 : DType::bf16;
    for (uint64_t i = 0; i < elements; ++i)
      put_real(bytes, i * one.bytes, dtype, scale * rng.normal());
    return bytes;
  }
  for (char& byte : bytes) byte = static_cast<char>(rng.next());
  for (size_t block = 0; block < bytes.size(); block += one.bytes)
    for (const Half& half : halves_of(type))
      put_real(bytes, block + half.at, DType::f16, scale * half.factor * rng.uniform(0.5, 1.5));
  return bytes;
}

}  // namespace gguf

// ---- A tiny model
// --------------------------------------------------------------------------------

namespace {

constexpr size_t kBytes = 256;

// A character below U+0800.
std::string short_utf8(size_t code) {
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
}

std::string printable(size_t byte) {
  const auto is_printable = [](size_t b) {
    return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
  };
  if (is_printable(byte)) return short_utf8(byte);
  size_t before = 0;
  for (size_t b = 0; b < byte; ++b) before += is_printable(b) ? 0 : 1;
  return short_utf8(0x100 + before);
}

class TinyWriter {
 public:
  explicit TinyWriter(const TinyDecoder& tiny) : t_(tiny) {}

  std::string write() {
    numbers();
    add_tiny_tokenizer(w_);
    matrix("token_embd.weight", kTinyVocabulary, t_.width, t_.embedding, 1);
    if (is("gpt2")) matrix("position_embd.weight", t_.context, t_.width, gguf::kF32, 0.5);
    for (uint32_t i = 0; i < t_.layers; ++i) layer("blk." + std::to_string(i) + ".");
    norm("output_norm", t_.width);
    if (!t_.is_tied) matrix("output.weight", kTinyVocabulary, t_.width, t_.type);
    if (t_.has_divisors) {
      std::string divisors;
      for (uint32_t i = 0; i < t_.key_width / 2; ++i)
        divisors += GgufWriter::bytes_of(1.0F + 0.25F * static_cast<float>(i));
      w_.tensor("rope_freqs.weight", {t_.key_width / 2}, gguf::kF32, divisors);
    }
    return w_.bytes();
  }

 private:
  bool is(std::string_view family) const { return t_.family == family; }
  bool is_gemma() const { return t_.family.starts_with("gemma"); }
  std::string key(std::string_view name) const { return t_.family + "." + std::string(name); }

  void numbers() {
    w_.text("general.architecture", t_.family);
    w_.integer(key("block_count"), t_.layers);
    w_.integer(key("embedding_length"), t_.width);
    w_.integer(key("feed_forward_length"), t_.hidden);
    w_.integer(key("context_length"), t_.context);
    w_.integer(key("attention.head_count"), t_.heads);
    w_.integer(key("attention.head_count_kv"), t_.kv_heads);
    w_.integer(key("attention.key_length"), t_.key_width);
    w_.integer(key("attention.value_length"), t_.key_width);
    if (is("gpt2"))
      w_.real(key("attention.layer_norm_epsilon"), 1e-5F);
    else
      w_.real(key("attention.layer_norm_rms_epsilon"), 1e-6F);
    if (is("qwen2") || is("qwen3")) w_.real(key("rope.freq_base"), 1e6F);
    if (is("gemma2") || is("gemma3") || is("phi3"))
      w_.integer(key("attention.sliding_window"), t_.window);
  }

  void matrix(const std::string& name, uint64_t rows, uint64_t columns, uint32_t type,
              double scale = 0) {
    if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(columns));
    w_.tensor(name, {rows, columns}, type,
              gguf::random_bytes(type, rows * columns, scale, ++seed_ + 1000 * t_.seed));
  }
  void vector(const std::string& name, uint64_t size, double mean) {
    Rng rng(++seed_ + 1000 * t_.seed);
    std::string bytes;
    for (uint64_t i = 0; i < size; ++i)
      bytes += GgufWriter::bytes_of(static_cast<float>(mean + 0.1 * rng.normal()));
    w_.tensor(name, {size}, gguf::kF32, bytes);
  }
  void norm(const std::string& name, uint64_t size) {
    vector(name + ".weight", size, 1);
    if (is("gpt2")) vector(name + ".bias", size, 0);
  }
  void linear(const std::string& name, uint64_t rows, uint64_t columns, bool has_bias) {
    matrix(name + ".weight", rows, columns, t_.type);
    if (has_bias) vector(name + ".bias", rows, 0);
  }

  void layer(const std::string& at) {
    const uint64_t q = uint64_t{t_.heads} * t_.key_width, k = uint64_t{t_.kv_heads} * t_.key_width;
    norm(at + "attn_norm", t_.width);
    if (is("phi3") || is("gpt2")) {
      linear(at + "attn_qkv", q + 2 * k, t_.width, is("gpt2"));
    } else {
      linear(at + "attn_q", q, t_.width, is("qwen2"));
      linear(at + "attn_k", k, t_.width, is("qwen2"));
      linear(at + "attn_v", k, t_.width, is("qwen2"));
    }
    if (is("qwen3") || is("gemma3")) {
      norm(at + "attn_q_norm", t_.key_width);
      norm(at + "attn_k_norm", t_.key_width);
    }
    linear(at + "attn_output", t_.width, q, is("gpt2"));
    norm(at + "ffn_norm", t_.width);
    if (is("gemma2") || is("gemma3")) {
      norm(at + "post_attention_norm", t_.width);
      norm(at + "post_ffw_norm", t_.width);
    }
    if (!is("phi3") && !is("gpt2")) linear(at + "ffn_gate", t_.hidden, t_.width, false);
    linear(at + "ffn_up", is("phi3") ? 2 * t_.hidden : t_.hidden, t_.width, is("gpt2"));
    linear(at + "ffn_down", t_.width, t_.hidden, is("gpt2"));
  }

  const TinyDecoder& t_;
  GgufWriter w_;
  uint64_t seed_ = 0;
};

}  // namespace

void add_tiny_tokenizer(GgufWriter& writer) {
  std::vector<std::string> tokens;
  for (size_t byte = 0; byte < kBytes; ++byte) tokens.push_back(printable(byte));
  const std::string blank = printable(' ');
  const std::vector<std::pair<std::string, std::string>> merges = {
      {"t", "h"}, {"th", "e"}, {blank, "a"}, {blank, "the"}, {"e", "r"}, {"o", "n"}};
  std::vector<std::string> lines;
  for (const auto& [left, right] : merges) {
    lines.push_back(left + " " + right);
    tokens.push_back(left + right);
  }
  std::vector<int32_t> kinds(tokens.size(), 1);
  for (const char* special : {"<s>", "</s>"}) {
    tokens.emplace_back(special);
    kinds.push_back(3);
  }
  writer.text("tokenizer.ggml.model", "gpt2");
  writer.text("tokenizer.ggml.pre", "gpt-2");
  writer.texts("tokenizer.ggml.tokens", tokens);
  writer.integers("tokenizer.ggml.token_type", kinds);
  writer.texts("tokenizer.ggml.merges", lines);
  writer.integer("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(kBytes + merges.size()));
  writer.integer("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(kBytes + merges.size() + 1));
  writer.text("tokenizer.chat_template",
              "{% for m in messages %}{{ bos_token + m.role + ': ' + m.content + eos_token }}"
              "{% endfor %}{{ bos_token }}assistant:");
}

std::string tiny_gguf(const TinyDecoder& tiny) { return TinyWriter(tiny).write(); }

}  // namespace hone
