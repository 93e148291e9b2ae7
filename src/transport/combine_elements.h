#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/dtype.h"

namespace hone {

// How a collective makes one element of those of all members.
enum class Combine : uint8_t { sum, product, max, min, and_, or_ };
inline constexpr int kCombines = 6;

std::string_view name(Combine combine);  // "sum", "and"
std::optional<Combine> combine_from_name(std::string_view text);
// Numbers have a sum, product, max and min; integers and bool have and, or.
bool can_combine(Combine combine, DType type);

// to[i] = a[i] combined with b[i] for `count` elements, each rounded once to the type; integers
// wrap. NaN is always the same quiet one, and of zeros -0 is the smaller one, so the bits do not
// depend on which operand was which. `to` may be a or b. The addresses need not be aligned.
void combine_elements(Combine combine, DType type, std::byte* to, const std::byte* a,
                      const std::byte* b, int64_t count);

}  // namespace hone
