#include "cost/model_file.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/text.h"

namespace hone {

std::string hex_text(uint64_t number) { return fmt::format("{:016x}", number); }

void add_numbers(Safetensors& content, std::string name, std::initializer_list<Dim> dims,
                 std::span<const float> values) {
  content.tensors.push_back({std::move(name), Tensor::of(Type::get(DType::f32, dims), values)});
}

uint64_t checksum_of(const Safetensors& content) {
  Hasher hasher;
  for (const auto& [key, text] : content.metadata)
    if (key != "checksum") hasher.add(std::string_view(key)).add(std::string_view(text));
  for (const NamedTensor& each : content.tensors)
    hasher.add(std::string_view(each.name)).add(each.tensor.bytes());
  return hasher.value();
}

Status ModelFields::check_sum() const {
  if (HONE_TRY(text("checksum")) == hex_text(checksum_of(content_))) return {};
  return bad_input("the checksum does not fit: the file is damaged");
}

Result<std::string> ModelFields::text(std::string_view key) const {
  const auto at = content_.metadata.find(std::string(key));
  if (at == content_.metadata.end()) return bad_input("the entry '{}' is missing", key);
  return at->second;
}

Result<double> ModelFields::number(std::string_view key) const {
  const double number = HONE_TRY(parse_double(HONE_TRY(text(key))));
  if (!std::isfinite(number) || number < 0) return bad_input("the entry '{}' is not a number", key);
  return number;
}

Result<uint64_t> ModelFields::hex(std::string_view key) const {
  const std::string digits = HONE_TRY(text(key));
  return parse_hex(key, digits);
}

Result<uint64_t> ModelFields::parse_hex(std::string_view key, std::string_view digits) {
  uint64_t number = 0;
  for (char c : digits) {
    const size_t digit = std::string_view("0123456789abcdef").find(c);
    if (digit == std::string_view::npos || digits.size() != kHexDigits)
      return bad_input("the {} '{}' is not 16 hex digits", key, excerpt(digits));
    number = number << 4 | digit;
  }
  if (digits.empty()) return bad_input("the {} has no digits", key);
  return number;
}

Result<std::span<const float>> ModelFields::numbers(const std::string& name,
                                                    std::initializer_list<Dim> dims) const {
  const Tensor* tensor = content_.find(name);
  if (tensor == nullptr) return bad_input("the tensor '{}' is missing", name);
  const Type type = Type::get(DType::f32, dims);
  if (tensor->type() != type)
    return bad_input("the tensor '{}' is {}, not {}", name, tensor->type().to_string(),
                     type.to_string());
  for (float each : tensor->as<float>())
    if (!std::isfinite(each))
      return bad_input("the tensor '{}' has an element that is not a number", name);
  return tensor->as<float>();
}

Status ModelFields::fill(const std::string& name, std::span<float> to) const {
  std::ranges::copy(HONE_TRY(numbers(name, {std::ssize(to)})), to.begin());
  return {};
}

Status check_model_size(const std::filesystem::path& path) {
  std::error_code failed;
  const auto bytes = std::filesystem::file_size(path, failed);
  if (failed || bytes <= static_cast<uintmax_t>(kMaxModelBytes)) return {};
  return over_limit("a model of {} bytes, more than {}", bytes, kMaxModelBytes)
      .within(path.native());
}

}  // namespace hone
