#include "tests/front/plain_decoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensor/dtype.h"

namespace hone::plain {
namespace {

int lo(int byte) { return byte & 15; }
int hi(int byte) { return byte >> 4; }

double half(const unsigned char* at) {
  return decode_real(DType::f16, static_cast<uint64_t>(at[0]) | static_cast<uint64_t>(at[1]) << 8);
}
int sign8(unsigned char byte) { return byte < 128 ? byte : byte - 256; }
// The nibbles of Q4_0: the low ones are the first half.
int q4(const unsigned char* qs, int j) { return j < 16 ? lo(qs[j]) : hi(qs[j - 16]); }
int bit(const unsigned char* bits, int j) { return bits[j / 8] >> (j % 8) & 1; }

double k_number(const unsigned char* b, int j, bool has_fifth) {
  const unsigned char *s = b + 4, *qh = b + 16, *qs = b + (has_fifth ? 48 : 16);
  const int c = j / 64, l = j % 32, sub = j / 32;
  int sc, mn;
  if (sub < 4) {
    sc = s[sub] & 63, mn = s[sub + 4] & 63;
  } else {
    sc = (s[sub + 4] & 15) | (s[sub - 4] >> 6) << 4;
    mn = (s[sub + 4] >> 4) | (s[sub] >> 6) << 4;
  }
  const unsigned char byte = qs[32 * c + l];
  int q = sub % 2 == 0 ? lo(byte) : hi(byte);
  if (has_fifth) q += 16 * (qh[l] >> sub & 1);
  return half(b) * sc * q - half(b + 2) * mn;
}

double q6_number(const unsigned char* b, int j) {
  const int h = j / 128, l = j % 32;
  const unsigned char *ql = b + 64 * h, *qh = b + 128 + 32 * h, *sc = b + 192 + 8 * h;
  int q = 0, scale = 0;
  switch (j % 128 / 32) {
    case 0: q = lo(ql[l]) | (qh[l] & 3) << 4, scale = sc[l / 16]; break;
    case 1: q = lo(ql[l + 32]) | (qh[l] >> 2 & 3) << 4, scale = sc[l / 16 + 2]; break;
    case 2: q = hi(ql[l]) | (qh[l] >> 4 & 3) << 4, scale = sc[l / 16 + 4]; break;
    default: q = hi(ql[l + 32]) | (qh[l] >> 6) << 4, scale = sc[l / 16 + 6]; break;
  }
  return half(b + 208) * sign8(static_cast<unsigned char>(scale)) * (q - 32);
}

double real_number(std::string_view type, const unsigned char* at) {
  float number = 0;
  if (type == "F32") return std::memcpy(&number, at, 4), number;
  if (type == "F16") return half(at);
  return decode_real(DType::bf16, static_cast<uint64_t>(at[0]) | static_cast<uint64_t>(at[1]) << 8);
}

}  // namespace

double block_number(std::string_view type, const unsigned char* b, int j) {
  if (type == "Q8_0") return half(b) * sign8(b[2 + j]);
  if (type == "Q4_0") return half(b) * (q4(b + 2, j) - 8);
  if (type == "Q4_1") return half(b) * q4(b + 4, j) + half(b + 2);
  if (type == "Q5_0") return half(b) * (q4(b + 6, j) + 16 * bit(b + 2, j) - 16);
  if (type == "Q5_1") return half(b) * (q4(b + 8, j) + 16 * bit(b + 4, j)) + half(b + 2);
  if (type == "Q4_K") return k_number(b, j, false);
  if (type == "Q5_K") return k_number(b, j, true);
  if (type == "Q6_K") return q6_number(b, j);
  return real_number(type, b);
}

std::vector<double> numbers_of(const GgufTensor& tensor) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(tensor.bytes.data());
  std::vector<double> numbers;
  const int64_t blocks = std::ssize(tensor.bytes) / tensor.type->bytes;
  for (int64_t block = 0; block < blocks; ++block)
    for (int j = 0; j < tensor.type->elements; ++j)
      numbers.push_back(block_number(tensor.type->name, bytes + block * tensor.type->bytes, j));
  return numbers;
}

namespace {

using Vector = std::vector<double>;

double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double capped(double x, double cap) { return cap * std::tanh(x / cap); }

class PlainDecoder {
 public:
  explicit PlainDecoder(const Gguf& file) : file_(file) {
    family_ = std::get<std::string_view>(file.metadata.at("general.architecture"));
    layers_ = integer("block_count"), width_ = integer("embedding_length");
    heads_ = integer("attention.head_count"), kv_heads_ = integer("attention.head_count_kv");
    key_width_ = integer("attention.key_length");
    if (is("gemma2") || is("gemma3") || is("phi3")) window_ = integer("attention.sliding_window");
    epsilon_ =
        real(is("gpt2") ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", 0);
    base_ = real("rope.freq_base", is("gemma3") ? 1e6 : 1e4);
  }

  Vector logits(const std::vector<int64_t>& tokens) {
    const std::vector<double> table = weight("token_embd.weight");
    std::vector<Vector> x;
    for (size_t t = 0; t < tokens.size(); ++t) {
      Vector row(table.begin() + tokens[t] * width_, table.begin() + (tokens[t] + 1) * width_);
      for (double& one : row)
        if (family_.starts_with("gemma")) one *= std::sqrt(static_cast<double>(width_));
      if (is("gpt2")) {
        const Vector places = weight("position_embd.weight");
        for (int64_t i = 0; i < width_; ++i) row[i] += places[t * width_ + i];
      }
      x.push_back(row);
    }
    for (int64_t i = 0; i < layers_; ++i) layer(i, x);
    Vector all;
    for (const Vector& row : x) {
      const Vector normed = norm("output_norm", row);
      Vector out = has("output.weight") ? linear("output", normed) : linear("token_embd", normed);
      for (double& one : out)
        if (is("gemma2")) one = capped(one, 30);
      all.insert(all.end(), out.begin(), out.end());
    }
    return all;
  }

 private:
  bool is(std::string_view family) const { return family_ == family; }
  std::string key(std::string_view name) const { return family_ + "." + std::string(name); }
  int64_t integer(std::string_view name) const {
    return std::get<int64_t>(file_.metadata.at(key(name)));
  }
  double real(std::string_view name, double fallback) const {
    const auto found = file_.metadata.find(key(name));
    return found == file_.metadata.end() ? fallback : std::get<double>(found->second);
  }
  bool has(const std::string& name) const { return file_.find(name) != nullptr; }
  const Vector& weight(const std::string& name) {
    const auto [at, is_new] = weights_.try_emplace(name);
    if (is_new) at->second = numbers_of(*file_.find(name));
    return at->second;
  }

  Vector linear(const std::string& name, const Vector& x) {
    const Vector& w = weight(name + ".weight");
    Vector y(w.size() / x.size());
    for (size_t n = 0; n < y.size(); ++n) {
      for (size_t k = 0; k < x.size(); ++k) y[n] += w[n * x.size() + k] * x[k];
      if (has(name + ".bias")) y[n] += weight(name + ".bias")[n];
    }
    return y;
  }

  Vector norm(const std::string& name, Vector x) {
    double mean = 0, square = 0;
    const auto size = static_cast<double>(x.size());
    if (is("gpt2")) {
      for (const double one : x) mean += one / size;
      for (double& one : x) one -= mean;
    }
    for (const double one : x) square += one * one / size;
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = x[i] / std::sqrt(square + epsilon_) * weight(name + ".weight")[i];
      if (is("gpt2")) x[i] += weight(name + ".bias")[i];
    }
    return x;
  }

  bool is_local(int64_t layer) const {
    if (is("gemma2")) return layer % 2 == 0;
    if (is("gemma3")) return layer % 6 != 5;
    return is("phi3");
  }

  void turn(Vector& head, size_t position, int64_t layer) const {
    if (is("gpt2")) return;
    const double base = is("gemma3") && is_local(layer) ? 1e4 : base_;
    const auto* const divisors = file_.find("rope_freqs.weight");
    const int64_t pairs = key_width_ / 2;
    for (int64_t i = 0; i < pairs; ++i) {
      double theta =
          std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(key_width_));
      if (divisors != nullptr) theta /= numbers_of(*divisors)[i];
      const double angle = static_cast<double>(position) * theta;
      double& a = is("llama") ? head[2 * i] : head[i];
      double& b = is("llama") ? head[2 * i + 1] : head[i + pairs];
      const double turned = a * std::cos(angle) - b * std::sin(angle);
      b = b * std::cos(angle) + a * std::sin(angle);
      a = turned;
    }
  }

  struct Heads {
    std::vector<Vector> q, k, v;
  };
  std::vector<Vector> cut(const Vector& x, size_t begin, int64_t heads) const {
    std::vector<Vector> found;
    for (int64_t h = 0; h < heads; ++h) {
      const auto at = x.begin() + static_cast<int64_t>(begin) + h * key_width_;
      found.emplace_back(at, at + key_width_);
    }
    return found;
  }
  Heads heads_of(const std::string& at, const Vector& x) {
    if (has(at + "attn_qkv.weight")) {
      const Vector all = linear(at + "attn_qkv", x);
      const auto q = static_cast<size_t>(heads_ * key_width_);
      const auto k = static_cast<size_t>(kv_heads_ * key_width_);
      return {cut(all, 0, heads_), cut(all, q, kv_heads_), cut(all, q + k, kv_heads_)};
    }
    return {cut(linear(at + "attn_q", x), 0, heads_), cut(linear(at + "attn_k", x), 0, kv_heads_),
            cut(linear(at + "attn_v", x), 0, kv_heads_)};
  }

  void layer(int64_t i, std::vector<Vector>& x) {
    const std::string at = "blk." + std::to_string(i) + ".";
    std::vector<Heads> all;
    for (size_t t = 0; t < x.size(); ++t) {
      Heads heads = heads_of(at, norm(at + "attn_norm", x[t]));
      for (Vector& one : heads.q) placed(at + "attn_q_norm", one, t, i);
      for (Vector& one : heads.k) placed(at + "attn_k_norm", one, t, i);
      all.push_back(heads);
    }
    for (size_t t = 0; t < x.size(); ++t) {
      Vector y = linear(at + "attn_output", attend(all, t, i));
      if (has(at + "post_attention_norm.weight")) y = norm(at + "post_attention_norm", y);
      for (size_t j = 0; j < y.size(); ++j) x[t][j] += y[j];
      y = feed_forward(at, norm(at + "ffn_norm", x[t]));
      if (has(at + "post_ffw_norm.weight")) y = norm(at + "post_ffw_norm", y);
      for (size_t j = 0; j < y.size(); ++j) x[t][j] += y[j];
    }
  }

  void placed(const std::string& name, Vector& head, size_t position, int64_t layer) {
    if (has(name + ".weight")) head = norm(name, head);
    turn(head, position, layer);
  }

  Vector attend(const std::vector<Heads>& all, size_t t, int64_t layer) const {
    Vector out;
    for (int64_t h = 0; h < heads_; ++h) {
      const int64_t shared = h / (heads_ / kv_heads_);
      Vector scores(t + 1);
      double sum = 0, best = -1e300;
      for (size_t s = 0; s <= t; ++s) {
        for (int64_t j = 0; j < key_width_; ++j) scores[s] += all[t].q[h][j] * all[s].k[shared][j];
        scores[s] /= std::sqrt(static_cast<double>(key_width_));
        if (is("gemma2")) scores[s] = capped(scores[s], 50);
        if (is_local(layer) && s + static_cast<size_t>(window_) <= t) scores[s] = -INFINITY;
        best = std::max(best, scores[s]);
      }
      for (double& one : scores) sum += one = std::exp(one - best);
      for (int64_t j = 0; j < key_width_; ++j) {
        double y = 0;
        for (size_t s = 0; s <= t; ++s) y += scores[s] / sum * all[s].v[shared][j];
        out.push_back(y);
      }
    }
    return out;
  }

  Vector feed_forward(const std::string& at, const Vector& x) {
    Vector up = linear(at + "ffn_up", x);
    if (is("gpt2")) {
      for (double& one : up) one = gelu_tanh(one);
      return linear(at + "ffn_down", up);
    }
    Vector gate;
    if (is("phi3")) {
      gate.assign(up.begin(), up.begin() + std::ssize(up) / 2);
      up.erase(up.begin(), up.begin() + std::ssize(up) / 2);
    } else {
      gate = linear(at + "ffn_gate", x);
    }
    for (size_t i = 0; i < up.size(); ++i)
      up[i] *=
          family_.starts_with("gemma") ? gelu_tanh(gate[i]) : gate[i] / (1 + std::exp(-gate[i]));
    return linear(at + "ffn_down", up);
  }

  const Gguf& file_;
  std::string family_;
  int64_t layers_ = 0, width_ = 0, heads_ = 0, kv_heads_ = 0, key_width_ = 0, window_ = 0;
  double epsilon_ = 0, base_ = 0;
  std::map<std::string, Vector> weights_;
};

}  // namespace

std::vector<double> decoder_logits(const Gguf& file, const std::vector<int64_t>& tokens) {
  return PlainDecoder(file).logits(tokens);
}

}  // namespace hone::plain
