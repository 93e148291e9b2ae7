#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// GGUF files made by hand, and tiny language models of random weights in them.

namespace hone {

// Writes in the order of the calls. Texts of metadata come before tensors.
class GgufWriter {
 public:
  explicit GgufWriter(uint32_t version = 3) : version_(version) {}

  void text(std::string_view key, std::string_view value);
  void integer(std::string_view key, uint32_t value);
  void real(std::string_view key, float value);
  void flag(std::string_view key, bool value);
  void texts(std::string_view key, const std::vector<std::string>& values);
  void integers(std::string_view key, const std::vector<int32_t>& values);
  void reals(std::string_view key, const std::vector<float>& values);
  // A key, a type and a value, as bytes.
  void raw(std::string_view key, uint32_t type, std::string_view bytes);
  // Dims outermost first; the bytes are aligned to 32.
  void tensor(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type,
              std::string_view bytes);

  std::string bytes() const;

  template <class T>
  static std::string bytes_of(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
  }
  static std::string counted(std::string_view text);

 private:
  uint32_t version_;
  uint64_t keys_ = 0;
  uint64_t tensors_ = 0;
  std::string metadata_;
  std::string infos_;
  std::string data_;
};

// Types of tensors by the numbers of the format.
namespace gguf {
inline constexpr uint32_t kF32 = 0, kF16 = 1, kQ4_0 = 2, kQ4_1 = 3, kQ5_0 = 6, kQ5_1 = 7, kQ8_0 = 8,
                          kQ4_K = 12, kQ5_K = 13, kQ6_K = 14, kBF16 = 30;
struct TypeBytes {
  uint32_t type;
  std::string_view name;
  uint64_t bytes;
  uint64_t elements;
};
inline constexpr TypeBytes kTypes[] = {
    {kF32, "F32", 4, 1},       {kF16, "F16", 2, 1},      {kBF16, "BF16", 2, 1},
    {kQ4_0, "Q4_0", 18, 32},   {kQ4_1, "Q4_1", 20, 32},  {kQ5_0, "Q5_0", 22, 32},
    {kQ5_1, "Q5_1", 24, 32},   {kQ8_0, "Q8_0", 34, 32},  {kQ4_K, "Q4_K", 144, 256},
    {kQ5_K, "Q5_K", 176, 256}, {kQ6_K, "Q6_K", 210, 256}};
const TypeBytes& type_bytes(uint32_t type);

// Random numbers of a size of about `scale` each.
std::string random_bytes(uint32_t type, uint64_t elements, double scale, uint64_t seed);
}  // namespace gguf

struct TinyDecoder {
  std::string family = "llama";
  uint32_t type = gguf::kF32;  // of matrices
  uint32_t embedding = gguf::kF32;
  uint32_t layers = 2;
  uint32_t width = 64;
  uint32_t heads = 4;
  uint32_t kv_heads = 2;
  uint32_t key_width = 16;
  uint32_t hidden = 96;
  uint32_t context = 64;
  uint32_t window = 5;  // of families that have one
  bool is_tied = false;
  bool has_divisors = false;  // rope_freqs
  uint64_t seed = 1;
};
// With a byte-level tokenizer of 256 bytes, a few merges, <s> and </s>.
std::string tiny_gguf(const TinyDecoder& tiny);
void add_tiny_tokenizer(GgufWriter& writer);
inline constexpr uint32_t kTinyVocabulary = 268;  // rows of the embedding; 264 of them are tokens

}  // namespace hone
