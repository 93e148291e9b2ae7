#include "front/hlo/write/literal_text.h"

#include <cmath>

#include "base/text.h"

namespace hone::hlo {
namespace {

// Beyond this many elements StableHLO gets the bytes.
constexpr int64_t kMostListed = 64;

std::string written_real(const Tensor& tensor, int64_t i, bool is_hlo) {
  const double number = tensor.real_at(i);
  if (std::isfinite(number)) {
    std::string text = format_double(number);
    // MLIR wants a point in every real.
    if (!is_hlo && text.find('.') == std::string::npos) {
      const size_t exponent = text.find('e');
      text.insert(exponent == std::string::npos ? text.size() : exponent, ".0");
    }
    return text;
  }
  if (is_hlo)
    return std::isnan(number) ? (std::signbit(number) ? "-nan" : "nan")
                              : (number < 0 ? "-inf" : "inf");
  const DType type = tensor.dtype();
  return fmt::format("0x{:0{}X}", encode_real(type, number), std::max(bits(type) / 4, 1));
}

std::string written_element(const Tensor& tensor, int64_t i, bool is_hlo) {
  const DType type = tensor.dtype();
  if (is_real(type)) return written_real(tensor, i, is_hlo);
  const int64_t number = tensor.integer_at(i);
  if (is_bool(type)) return number != 0 ? "true" : "false";
  if (type == DType::u64) return fmt::format("{}", static_cast<uint64_t>(number));
  return fmt::format("{}", number);
}

std::string written_bytes(const Tensor& tensor) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::vector<std::byte> scratch;
  const std::span<const std::byte> bytes = tensor.bytes_once(scratch);
  std::string text = "\"0x";
  text.reserve(2 * bytes.size() + 4);
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<size_t>(byte) / 16];
    text += kDigits[std::to_integer<size_t>(byte) % 16];
  }
  return text + "\"";
}

void write_list(const Tensor& tensor, bool is_hlo, size_t axis, int64_t& next, std::string& text) {
  const std::span<const Dim> dims = tensor.type().dims();
  if (axis == dims.size()) {
    text += written_element(tensor, next++, is_hlo);
    return;
  }
  text += is_hlo ? '{' : '[';
  for (int64_t i = 0; i < dims[axis].value(); ++i) {
    if (i > 0) text += ", ";
    write_list(tensor, is_hlo, axis + 1, next, text);
  }
  text += is_hlo ? '}' : ']';
}

}  // namespace

std::optional<Tensor> one_number(const Tensor& tensor) {
  const Type type = tensor.type();
  const int64_t count = tensor.elements();
  if (type.rank() == 0 || count == 0) return std::nullopt;
  const Type scalar = Type::scalar(type.dtype());
  if (bits(type.dtype()) < 8 || is_bool(type.dtype())) {
    if (is_real(type.dtype())) return std::nullopt;
    const int64_t first = tensor.integer_at(0);
    for (int64_t i = 1; i < count; ++i)
      if (tensor.integer_at(i) != first) return std::nullopt;
    return Tensor::from_integers(scalar, Ints{first});
  }
  std::vector<std::byte> scratch;
  const std::span<const std::byte> bytes = tensor.bytes_once(scratch);
  const size_t each = bytes.size() / static_cast<size_t>(count);
  for (size_t i = each; i < bytes.size(); ++i)
    if (bytes[i] != bytes[i - each]) return std::nullopt;
  return Tensor::copy_of(scalar, bytes.first(each));
}

std::string literal_text(const Tensor& tensor, bool is_hlo) {
  const DType type = tensor.dtype();
  if (!is_hlo && tensor.elements() == 0) return "";
  if (!is_hlo && tensor.elements() > kMostListed && bits(type) >= 8 && !is_bool(type))
    return written_bytes(tensor);
  std::string text;
  int64_t next = 0;
  write_list(tensor, is_hlo, 0, next, text);
  return text;
}

}  // namespace hone::hlo
