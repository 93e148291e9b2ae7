#include "ir/text_constant.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/text.h"

namespace hone {
namespace {

size_t whole_element_bytes(Type type) { return static_cast<size_t>(bits(type.dtype())) / 8; }

bool is_packed(Type type) { return bits(type.dtype()) < 8; }

// A byte full of the element in the lowest bits of one.
std::byte repeated(DType dtype, std::byte first) {
  const int width = bits(dtype);
  std::byte all = first & static_cast<std::byte>((1 << width) - 1);
  for (int have = width; have < 8; have *= 2) all |= all << have;
  return all;
}

// The number that the text "nan" stands for.
std::vector<std::byte> plain_nan(DType dtype) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  Tensor scalar = Tensor::from_reals(Type::scalar(dtype), std::span(&nan, 1));
  return {scalar.bytes().begin(), scalar.bytes().end()};
}

// The number nearest to the decimal digits, rounded once.
Result<double> read_real(DType dtype, std::string_view text) {
  if (dtype != DType::f32) return parse_double(text);
  float value = 0;
  const char* end = text.data() + text.size();
  auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end) return parse_double(text);
  return static_cast<double>(value);
}

Result<int64_t> read_integer(DType dtype, std::string_view text) {
  IntegerLimits limits = integer_limits(dtype);
  auto misfit = [&](std::string_view what) -> Error {
    if (kind(dtype) == DTypeKind::uint) {
      return bad_input("{} {}: {} holds 0 to {}", text, what, name(dtype),
                       static_cast<uint64_t>(limits.highest));
    }
    return bad_input("{} {}: {} holds {} to {}", text, what, name(dtype), limits.lowest,
                     limits.highest);
  };
  const char* end = text.data() + text.size();
  if (dtype == DType::u64) {
    uint64_t value = 0;
    auto [stop, code] = std::from_chars(text.data(), end, value);
    if (stop != end || code == std::errc::invalid_argument) return misfit("is not an integer");
    if (code != std::errc()) return misfit("is out of range");
    return static_cast<int64_t>(value);
  }
  int64_t value = 0;
  auto [stop, code] = std::from_chars(text.data(), end, value);
  if (stop != end || code == std::errc::invalid_argument) return misfit("is not an integer");
  if (code != std::errc() || value < limits.lowest || value > limits.highest)
    return misfit("is out of range");
  return value;
}

Result<int64_t> read_image(DType dtype, std::string_view text) {
  if (!is_bool(dtype)) return read_integer(dtype, text);
  if (text == "true") return int64_t{1};
  if (text == "false") return int64_t{0};
  return bad_input("'{}' is neither true nor false", text);
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Bits that no number has: a bool other than 0 and 1, a set bit behind the last packed element.
Status check_bits(Type type, std::span<const std::byte> bytes) {
  if (is_bool(type.dtype())) {
    auto odd =
        std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
    if (odd != bytes.end()) {
      return bad_input("byte {} is {:02x}, but a bool is 00 or 01", odd - bytes.begin(),
                       static_cast<int>(*odd));
    }
  }
  if (!bytes.empty() && (bytes.back() & ~type.bits_of_last_byte()) != std::byte{0})
    return bad_input("the unused bits of the last byte are not 0");
  return {};
}

}  // namespace

bool is_splat(const Tensor& tensor) {
  int64_t count = tensor.elements();
  if (count == 0) return false;
  std::span<const std::byte> bytes = tensor.bytes();
  if (is_packed(tensor.type())) {
    const std::byte all = repeated(tensor.dtype(), bytes[0]);
    const auto is_same = [all](std::byte b) { return b == all; };
    return std::all_of(bytes.begin(), bytes.end() - 1, is_same) &&
           bytes.back() == (all & tensor.type().bits_of_last_byte());
  }
  size_t step = whole_element_bytes(tensor.type());
  return std::memcmp(bytes.data(), bytes.data() + step, bytes.size() - step) == 0;
}

bool has_odd_nan(const Tensor& tensor, int64_t count) {
  if (!is_real(tensor.dtype())) return false;
  std::vector<std::byte> plain = plain_nan(tensor.dtype());
  std::span<const std::byte> bytes = tensor.bytes();
  for (int64_t i = 0; i < count; ++i) {
    const std::byte* element = bytes.data() + static_cast<size_t>(i) * plain.size();
    if (std::isnan(tensor.real_at(i)) && std::memcmp(element, plain.data(), plain.size()) != 0)
      return true;
  }
  return false;
}

void append_element(std::string& out, const Tensor& tensor, int64_t index) {
  DType dtype = tensor.dtype();
  if (dtype == DType::f64) {
    out += format_double(tensor.real_at(index));
  } else if (is_real(dtype)) {
    out += format_float(static_cast<float>(tensor.real_at(index)));
  } else if (is_bool(dtype)) {
    out += tensor.integer_at(index) != 0 ? "true" : "false";
  } else if (dtype == DType::u64) {
    fmt::format_to(std::back_inserter(out), "{}", static_cast<uint64_t>(tensor.integer_at(index)));
  } else {
    fmt::format_to(std::back_inserter(out), "{}", tensor.integer_at(index));
  }
}

void append_hex(std::string& out, const Tensor& tensor) {
  static constexpr char digits[] = "0123456789abcdef";
  std::span<const std::byte> bytes = tensor.bytes();
  size_t at = out.size();
  out.resize(at + 2 * bytes.size());
  for (std::byte byte : bytes) {
    out[at++] = digits[static_cast<int>(byte >> 4)];
    out[at++] = digits[static_cast<int>(byte & std::byte{15})];
  }
}

Result<Tensor> parse_elements(Type type, std::span<const std::string_view> numbers) {
  int64_t count = static_cast<int64_t>(numbers.size());
  if (count != type.static_elements()) {
    return bad_input("there are {} numbers for {}, which has {} elements", count, type.to_string(),
                     type.static_elements());
  }
  if (is_real(type.dtype())) {
    std::vector<double> values;
    values.reserve(numbers.size());
    for (std::string_view number : numbers) {
      values.push_back(HONE_TRY(read_real(type.dtype(), number)));
    }
    return Tensor::from_reals(type, values);
  }
  std::vector<int64_t> values;
  values.reserve(numbers.size());
  for (std::string_view number : numbers) {
    values.push_back(HONE_TRY(read_image(type.dtype(), number)));
  }
  return Tensor::from_integers(type, values);
}

Result<Tensor> parse_splat(Type type, std::string_view number) {
  Tensor one = HONE_TRY(parse_elements(Type::scalar(type.dtype()), std::span(&number, 1)));
  if (type.rank() == 0) return one;
  Tensor all = Tensor::zeros(type);
  std::span<const std::byte> element = one.bytes();
  if (std::all_of(element.begin(), element.end(), [](std::byte b) { return b == std::byte{0}; }))
    return all;
  std::span<std::byte> bytes = all.mutable_bytes();
  if (is_packed(type)) {
    std::fill(bytes.begin(), bytes.end(), repeated(type.dtype(), element[0]));
    if (!bytes.empty()) bytes.back() &= type.bits_of_last_byte();
  } else {
    for (size_t at = 0; at < bytes.size(); at += element.size())
      std::memcpy(bytes.data() + at, element.data(), element.size());
  }
  return all;
}

Result<Tensor> parse_hex(Type type, std::string_view digits) {
  if (digits.size() % 2 != 0 || static_cast<int64_t>(digits.size() / 2) != type.static_bytes()) {
    return bad_input("there are {} hex digits for {}, which has {} bytes", digits.size(),
                     type.to_string(), type.static_bytes());
  }
  std::vector<std::byte> bytes(digits.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i) {
    int high = hex_digit(digits[2 * i]), low = hex_digit(digits[2 * i + 1]);
    if (high < 0 || low < 0) return bad_input("'{}' is not hex", escape(digits.substr(2 * i, 2)));
    bytes[i] = static_cast<std::byte>(high << 4 | low);
  }
  HONE_TRY(check_bits(type, bytes));
  return Tensor::copy_of(type, bytes);
}

}  // namespace hone
