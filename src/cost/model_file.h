#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "formats/safetensors.h"

// Files of learned models: safetensors files of bounded size, whose entry "checksum" covers all the
// rest.

namespace hone {

std::string hex_text(uint64_t number);  // 16 digits

void add_numbers(Safetensors& content, std::string name, std::initializer_list<Dim> dims,
                 std::span<const float> values);
// It covers all but the entry itself.
uint64_t checksum_of(const Safetensors& content);

// The entries and tensors of such a file. Errors name what is missing, misshapen or not a number.
class ModelFields {
 public:
  explicit ModelFields(const Safetensors& content) : content_(content) {}

  const Safetensors& content() const { return content_; }
  Status check_sum() const;
  Result<std::string> text(std::string_view key) const;
  Result<double> number(std::string_view key) const;  // finite, and not below 0
  Result<uint64_t> hex(std::string_view key) const;
  static Result<uint64_t> parse_hex(std::string_view key, std::string_view digits);
  static constexpr size_t kHexDigits = 16;
  // The tensor has this type, and its elements are finite.
  Result<std::span<const float>> numbers(const std::string& name,
                                         std::initializer_list<Dim> dims) const;
  Status fill(const std::string& name, std::span<float> to) const;

 private:
  const Safetensors& content_;
};

inline constexpr int64_t kMaxModelBytes = int64_t{16} << 20;
// An error if the file is larger.
Status check_model_size(const std::filesystem::path& path);

}  // namespace hone
