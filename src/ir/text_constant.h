#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tensor/tensor.h"

// The contents of tensors as text: numbers that read back as the same bits, or hex digits.

namespace hone {

// All elements have the same bits, at least one is there. Reads the tensor.
bool is_splat(const Tensor& tensor);

// One of the first `count` elements is a NaN whose bits the text "nan" does not give back.
bool has_odd_nan(const Tensor& tensor, int64_t count);

// The number at an index: "0.1", "-0", "nan", "18446744073709551615", "true".
void append_element(std::string& out, const Tensor& tensor, int64_t index);
void append_hex(std::string& out, const Tensor& tensor);

// A tensor of as many elements as there are numbers; the type says how to read them.
Result<Tensor> parse_elements(Type type, std::span<const std::string_view> numbers);
// A tensor with one number everywhere.
Result<Tensor> parse_splat(Type type, std::string_view number);
Result<Tensor> parse_hex(Type type, std::string_view digits);

}  // namespace hone
