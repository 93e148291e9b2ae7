#include "session/literal.h"
#include "base/text.h"
#include "target/cgroup.h"
#include "tensor/filled.h"

#include <algorithm>

namespace hone {
namespace {

constexpr std::string_view kForm = "a literal is TYPE=NUMBERS, such as 2x3xf32=1 2 3 4 5 6";

std::vector<std::string_view> number_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::string_view part : split(text, ','))
    for (std::string_view word : split_words(part)) words.push_back(word);
  return words;
}

Result<int64_t> parse_integer(DType dtype, std::string_view word) {
  if (is_bool(dtype)) {
    if (word == "true" || word == "1") return 1;
    if (word == "false" || word == "0") return 0;
    return usage_error("'{}' is not true or false", excerpt(word));
  }
  const Result<int64_t> number = parse_int(word);
  if (!number.ok()) return usage_error("'{}' is not an integer", excerpt(word));
  const IntegerLimits limits = integer_limits(dtype);
  const bool fits =
      dtype == DType::u64 ? *number >= 0 : *number >= limits.lowest && *number <= limits.highest;
  if (!fits) return usage_error("{} does not fit {}", excerpt(word), name(dtype));
  return *number;
}

Result<Tensor> parse_numbers(Type type, std::span<const std::string_view> words) {
  if (is_real(type.dtype())) {
    std::vector<double> values;
    for (std::string_view word : words) {
      const Result<double> number = parse_double(word);
      if (!number.ok()) return usage_error("'{}' is not a number", excerpt(word));
      values.push_back(*number);
    }
    return Tensor::from_reals(type, values);
  }
  std::vector<int64_t> values;
  for (std::string_view word : words) values.push_back(HONE_TRY(parse_integer(type.dtype(), word)));
  return Tensor::from_integers(type, values);
}

}  // namespace

Result<Type> parse_literal_type(std::string_view text) {
  std::vector<std::string_view> parts = split(text, 'x');
  const std::optional<DType> dtype = dtype_from_name(parts.back());
  if (!dtype) {
    std::vector<std::string_view> names;
    for (int i = 0; i < kDTypeCount; ++i) names.push_back(name(static_cast<DType>(i)));
    const std::string hint = did_you_mean(parts.back(), names);
    return usage_error("'{}' in '{}' is not an element type", excerpt(parts.back()), excerpt(text))
        .with_hint(hint.empty() ? kForm : std::string_view(hint));
  }
  parts.pop_back();
  Dims dims;
  for (std::string_view part : parts) {
    const Result<int64_t> dim = parse_int(part);
    if (!dim.ok() || *dim < 0)
      return usage_error("'{}' in '{}' is not a dim", excerpt(part), excerpt(text))
          .with_hint(kForm);
    dims.emplace_back(*dim);
  }
  Result<Type> type = Type::make(*dtype, dims);
  if (!type.ok()) return usage_error("{}", type.error().what());
  return type;
}

Result<Tensor> parse_literal(std::string_view text) {
  const size_t sign = text.find('=');
  if (sign == std::string_view::npos)
    return usage_error("'{}' has no numbers", excerpt(text)).with_hint(kForm);
  const Type type = HONE_TRY(parse_literal_type(trim(text.substr(0, sign))));
  const std::vector<std::string_view> words = number_words(text.substr(sign + 1));
  const int64_t elements = type.static_elements();
  if (words.size() != 1 && static_cast<int64_t>(words.size()) != elements) {
    return usage_error("{} has {} elements, but {} are given", type.to_string(), elements,
                       words.size())
        .with_hint("a single number stands for all elements");
  }
  if (type.static_bytes() > usable_memory())
    return over_limit("{} needs {}", type.to_string(), format_bytes(type.static_bytes()));
  if (static_cast<int64_t>(words.size()) == elements) return parse_numbers(type, words);
  return repeated(HONE_TRY(parse_numbers(Type::scalar(type.dtype()), words)), type);
}

}  // namespace hone
