#include "formats/npy_header.h"

#include <algorithm>
#include <span>

#include "base/checked_math.h"
#include "base/text.h"

namespace hone {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr int64_t kDataAlignment = 64;

struct Descr {
  DType dtype;
  std::string_view text;  // as we write it
};

constexpr Descr kDescrs[] = {
    {DType::f64, "<f8"}, {DType::f32, "<f4"}, {DType::f16, "<f2"}, {DType::i64, "<i8"},
    {DType::i32, "<i4"}, {DType::i16, "<i2"}, {DType::i8, "|i1"},  {DType::u64, "<u8"},
    {DType::u32, "<u4"}, {DType::u16, "<u2"}, {DType::u8, "|u1"},  {DType::boolean, "|b1"},
};

// For error texts.
std::string shown(std::string_view text) {
  return text.size() <= 40 ? escape(text) : escape(text.substr(0, 40)) + "...";
}

// The dictionary. Python's syntax as far as numpy writes it, with the keys in any order.
class DictParser {
 public:
  explicit DictParser(std::string_view text) : text_(text) {}

  Status parse() {
    HONE_TRY(expect('{'));
    while (!eat('}')) {
      HONE_TRY(entry());
      if (!eat(',')) {
        HONE_TRY(expect('}'));
        break;
      }
    }
    skip_blanks();
    if (at_ != text_.size()) return wrong("the dictionary ends before the header does");
    if (!descr) return missing("descr");
    if (!column_major) return missing("fortran_order");
    if (!shape) return missing("shape");
    return {};
  }

  std::optional<std::string> descr;
  std::optional<bool> column_major;
  std::optional<Ints> shape;

 private:
  Error wrong(std::string_view what) {
    return bad_input("the header is malformed: {} (byte {} of the dictionary)", what, at_);
  }
  Error missing(std::string_view key) { return bad_input("the header has no '{}'", key); }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool eat(char c) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  Status expect(char c) {
    if (!eat(c)) return wrong(fmt::format("expected '{}'", c));
    return {};
  }

  Status entry() {
    std::string key = HONE_TRY(string());
    HONE_TRY(expect(':'));
    bool repeated = (key == "descr" && descr) || (key == "fortran_order" && column_major) ||
                    (key == "shape" && shape);
    if (repeated) return wrong(fmt::format("'{}' appears twice", key));
    if (key == "descr") {
      skip_blanks();
      if (at_ < text_.size() && text_[at_] == '[') {
        return unsupported("records (structured element types) are not tensors");
      }
      descr = HONE_TRY(string());
    } else if (key == "fortran_order") {
      column_major = HONE_TRY(boolean());
    } else if (key == "shape") {
      shape = HONE_TRY(tuple());
    } else {
      return wrong(fmt::format("unknown key '{}'", shown(key)));
    }
    return {};
  }

  Result<std::string> string() {
    skip_blanks();
    char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') return wrong("expected a string");
    size_t end = text_.find(quote, at_ + 1);
    if (end == text_.npos) return wrong("the end of a string is missing");
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }

  Result<bool> boolean() {
    skip_blanks();
    std::string_view rest = text_.substr(at_);
    for (std::string_view word : {"True", "False"}) {
      if (!rest.starts_with(word)) continue;
      at_ += word.size();
      return word == "True";
    }
    return wrong("expected True or False");
  }

  Result<Ints> tuple() {
    Ints sizes;
    HONE_TRY(expect('('));
    while (!eat(')')) {
      if (sizes.size() > kMaxRank) return over_limit("the rank is above the limit of {}", kMaxRank);
      sizes.push_back(HONE_TRY(size()));
      if (!eat(',')) {
        if (sizes.size() == 1) return wrong("expected ',' after the only size");
        HONE_TRY(expect(')'));
        break;
      }
    }
    return sizes;
  }

  Result<int64_t> size() {
    skip_blanks();
    size_t begin = at_;
    if (at_ < text_.size() && text_[at_] == '-') ++at_;
    while (at_ < text_.size() && '0' <= text_[at_] && text_[at_] <= '9') ++at_;
    std::string_view digits = text_.substr(begin, at_ - begin);
    if (digits.empty() || digits == "-") return wrong("expected a size");
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2
    if (digits.size() > 20) return bad_input("the shape has a size of {} digits", digits.size());
    if (digits[0] == '-') return bad_input("the shape has the negative size {}", digits);
    Result<int64_t> value = parse_int(digits);
    if (!value.ok()) return bad_input("the size {} in the shape is too large", digits);
    return *value;
  }

  std::string_view text_;
  size_t at_ = 0;
};

Result<DType> dtype_of(std::string_view descr) {
  for (const Descr& known : kDescrs) {
    bool same = descr.size() == 3 && descr.substr(1) == known.text.substr(1);
    bool ordered = same && (descr[0] == '<' || descr[0] == '>' || descr[0] == '=');
    if (ordered || (same && descr[0] == '|' && bits(known.dtype) == 8)) return known.dtype;
  }
  bool is_void = descr.size() > 1 && descr[1] == 'V';
  return unsupported("the element type '{}' is not supported", shown(descr))
      .with_hint(is_void
                     ? "numpy keeps bf16, f8 and f4 as raw bytes without a name; save the array "
                       "as float32"
                     : "hone reads bool, integers and reals of numpy up to 8 bytes");
}

// The dictionary's length is a little-endian number after magic and version.
struct HeaderPlace {
  size_t begin;
  size_t length;
};

Result<HeaderPlace> header_place(std::string_view file) {
  if (!file.starts_with(kMagic)) return bad_input("not a .npy file: the magic number is missing");
  if (file.size() < 10) return bad_input("the file ends within its header");
  int major = static_cast<unsigned char>(file[6]), minor = static_cast<unsigned char>(file[7]);
  if (major < 1 || major > 3 || minor != 0) {
    return unsupported("version {}.{} of the .npy format is not supported", major, minor)
        .with_hint("hone reads 1.0, 2.0 and 3.0");
  }
  size_t begin = major == 1 ? 10 : 12, length = 0;
  if (file.size() < begin) return bad_input("the file ends within its header");
  for (size_t i = begin; i-- > 8;) length = length << 8 | static_cast<unsigned char>(file[i]);
  if (length > file.size() - begin) {
    return bad_input("the header is {} bytes long, but only {} follow", length,
                     file.size() - begin);
  }
  return HeaderPlace{begin, length};
}

}  // namespace

Result<NpyHeader> parse_npy_header(std::string_view file) {
  HeaderPlace place = HONE_TRY(header_place(file));
  DictParser dict(file.substr(place.begin, place.length));
  HONE_TRY(dict.parse());
  DType dtype = HONE_TRY(dtype_of(*dict.descr));
  return NpyHeader{dtype, dict.descr->front() == '>', *dict.column_major, std::move(*dict.shape),
                   place.begin + place.length};
}

std::optional<std::string_view> npy_descr(DType dtype) {
  for (const Descr& known : kDescrs) {
    if (known.dtype == dtype) return known.text;
  }
  return std::nullopt;
}

std::string print_npy_header(std::string_view descr, std::span<const int64_t> shape,
                             int64_t offset) {
  std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                 descr, join(shape, ", "), shape.size() == 1 ? "," : "");
  int64_t length = 10 + static_cast<int64_t>(dict.size()) + 1;
  dict.append(static_cast<size_t>(round_up(offset + length, kDataAlignment) - offset - length),
              ' ');
  dict += '\n';
  std::string header(kMagic);
  header +=
      {'\1', '\0', static_cast<char>(dict.size() & 0xff), static_cast<char>(dict.size() >> 8)};
  return header + dict;
}

}  // namespace hone
