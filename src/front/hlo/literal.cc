#include "front/hlo/literal.h"

#include <charconv>
#include <optional>

#include "base/text.h"
#include "front/hlo/reader.h"

namespace hone::hlo {
namespace {

std::optional<uint64_t> hex_number(std::string_view digits) {
  uint64_t bits = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return bits;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

class LiteralReader {
 public:
  LiteralReader(const Program& program, const Attribute& literal, Type type)
      : cursor_(program),
        begin_(literal.offset),
        end_(literal.offset + literal.text.size()),
        type_(type),
        dims_(type.static_dims()) {
    cursor_.go_to(begin_);
  }

  Literal read() {
    if (begin_ == end_) {
      if (type_.static_elements() != 0)
        refuse(bad_input("the literal is empty, but its type is {}", type_.to_string()));
      return {Tensor::zeros(type_)};
    }
    if (cursor_.peek() == '"') return bytes();
    if (cursor_.peek() != '[' && cursor_.peek() != '{' && type_.rank() > 0) {
      element();
      return {finished(Type::scalar(type_.dtype())), true};
    }
    list(0);
    (void)cursor_.peek();
    if (cursor_.at() != end_) refuse(bad_input("the literal goes on behind its end"));
    return {finished(type_)};
  }

 private:
  [[noreturn]] void refuse(Error error) { cursor_.refuse(std::move(error)); }

  void list(size_t axis) {
    if (axis == dims_.size()) return element();
    const bool braces = cursor_.accept("{");  // as in HLO
    if (!braces) cursor_.expect("[", "this, since the literal has one list per dim");
    const std::string_view end = braces ? "}" : "]";
    int64_t count = 0;
    while (!cursor_.accept(end)) {
      list(axis + 1);
      if (++count > dims_[axis]) break;
      if (!cursor_.accept(",") && !cursor_.sees(end)) cursor_.expect(end, "a list");
    }
    if (count != dims_[axis])
      refuse(bad_input("a list of the literal has {} elements, but dim {} of {} has {}",
                       count > dims_[axis] ? "more" : fmt::format("{}", count), axis,
                       type_.to_string(), dims_[axis]));
  }

  void element() {
    (void)cursor_.peek();
    const size_t at = cursor_.at();
    std::string_view text = cursor_.number();
    if (text.empty()) text = cursor_.word();
    if (text.empty()) refuse(bad_input("a number is missing: there is {}", cursor_.seen()));
    if (is_real(type_.dtype())) {
      const std::optional<double> number = real_number(text, type_.dtype());
      if (!number) cursor_.refuse(at, wrong(text));
      reals_.push_back(*number);
    } else {
      const std::optional<int64_t> number = integer_number(text, type_.dtype());
      if (!number) cursor_.refuse(at, wrong(text));
      integers_.push_back(*number);
    }
  }

  Error wrong(std::string_view text) const {
    return bad_input("'{}' is no number of type {}", excerpt(text), name(type_.dtype()));
  }

  Tensor finished(Type type) const {
    return is_real(type_.dtype()) ? Tensor::from_reals(type, reals_)
                                  : Tensor::from_integers(type, integers_);
  }

  // "0x..." in quotes: the bytes of all elements, or of one that stands for all.
  Literal bytes() {
    std::string_view digits = cursor_.quoted();
    if (!consume_prefix(digits, "0x") || digits.size() % 2 != 0)
      refuse(bad_input("the bytes of a literal must be \"0x\" and two digits for each"));
    std::vector<std::byte> bytes(digits.size() / 2);
    for (size_t i = 0; i < bytes.size(); ++i) {
      const int high = hex_digit(digits[2 * i]);
      const int low = hex_digit(digits[2 * i + 1]);
      if (high < 0 || low < 0)
        refuse(bad_input("'{}' is no byte in hexadecimal", excerpt(digits.substr(2 * i, 2))));
      bytes[i] = static_cast<std::byte>(high * 16 + low);
    }
    const int64_t elements = type_.static_elements();
    const int width = bits(type_.dtype());
    // Bools and types of less than a byte have a byte for each element; older writers packed bools.
    const int64_t each = std::max(width / 8, 1);
    const auto count = static_cast<int64_t>(bytes.size());
    const Type scalar = Type::scalar(type_.dtype());
    if (count == each && elements != 1) return {of_bytes(scalar, bytes), true};
    if (count % each == 0 && count / each == elements) return {of_bytes(type_, bytes)};
    if (is_bool(type_.dtype()) && count == (elements + 7) / 8) {
      std::vector<int64_t> numbers;
      for (int64_t i = 0; i < elements; ++i)
        numbers.push_back((std::to_integer<int>(bytes[static_cast<size_t>(i / 8)]) >> (i % 8)) & 1);
      return {Tensor::from_integers(type_, numbers)};
    }
    refuse(bad_input("the literal has {} bytes, but {} takes {}", count, type_.to_string(),
                     elements * each));
  }

  static Tensor of_bytes(Type type, const std::vector<std::byte>& bytes) {
    if (bits(type.dtype()) >= 8 && !is_bool(type.dtype())) return Tensor::copy_of(type, bytes);
    std::vector<int64_t> numbers;
    for (const std::byte byte : bytes) numbers.push_back(std::to_integer<int64_t>(byte));
    if (!is_real(type.dtype())) return Tensor::from_integers(type, numbers);
    std::vector<double> reals;
    for (const int64_t number : numbers)
      reals.push_back(decode_real(type.dtype(), static_cast<uint64_t>(number & 0xF)));
    return Tensor::from_reals(type, reals);
  }

  Cursor cursor_;
  size_t begin_;
  size_t end_;
  Type type_;
  Ints dims_;
  std::vector<double> reals_;
  std::vector<int64_t> integers_;
};

}  // namespace

Literal read_literal(const Program& program, const Attribute& literal, Type type) {
  return LiteralReader(program, literal, type).read();
}

std::optional<double> real_number(std::string_view text, DType type) {
  std::string_view digits = text;
  if (consume_prefix(digits, "0x")) {
    const std::optional<uint64_t> pattern = hex_number(digits);
    if (!pattern || (bits(type) < 64 && (*pattern >> bits(type)) != 0)) return std::nullopt;
    return decode_real(type, *pattern);
  }
  if (consume_prefix(digits, "+") || digits == "-nan") text = digits == "-nan" ? "nan" : digits;
  const Result<double> number = parse_double(text);
  return number.ok() ? std::optional(*number) : std::nullopt;
}

std::optional<int64_t> integer_number(std::string_view text, DType type) {
  if (text == "true" || text == "false") return text == "true" ? 1 : 0;
  std::string_view digits = text;
  const bool is_negative = consume_prefix(digits, "-");
  std::optional<uint64_t> size;
  if (consume_prefix(digits, "0x")) {
    size = hex_number(digits);
  } else {
    uint64_t number = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), number, 10);
    if (error == std::errc() && end == digits.data() + digits.size()) size = number;
  }
  if (!size) return std::nullopt;
  const int width = is_bool(type) ? 1 : bits(type);
  const uint64_t most = width == 64 ? UINT64_MAX : (uint64_t{1} << width) - 1;
  // -2^(n-1) to 2^n - 1: both readings of the bits.
  if (is_negative ? *size > most / 2 + 1 : *size > most) return std::nullopt;
  return wrap_to(type, static_cast<int64_t>(is_negative ? 0 - *size : *size));
}

}  // namespace hone::hlo
