#include "transport/combine_elements.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tensor/real_format.h"

namespace hone {
namespace {

constexpr std::string_view kNames[kCombines] = {"sum", "product", "max", "min", "and", "or"};

template <class T>
T read(const std::byte* from, int64_t i) {
  T value;
  std::memcpy(&value, from + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

template <class T, class Each>
void each_element(std::byte* to, const std::byte* a, const std::byte* b, int64_t count,
                  const Each& each) {
  for (int64_t i = 0; i < count; ++i) {
    const T made = each(read<T>(a, i), read<T>(b, i));
    std::memcpy(to + static_cast<size_t>(i) * sizeof(T), &made, sizeof(T));
  }
}

// ---- Reals --------------------------------------------------------------------------------------

template <Combine combine, class T>
T combined(T a, T b) {
  if constexpr (combine == Combine::sum) return a + b;
  if constexpr (combine == Combine::product) return a * b;
  if (a != a || b != b) return std::numeric_limits<T>::quiet_NaN();
  if (a == b) return std::signbit(a) == (combine == Combine::min) ? a : b;
  return (a > b) == (combine == Combine::max) ? a : b;
}

template <Combine combine, class T>
T of_reals(T a, T b) {
  const T made = combined<combine>(a, b);
  return made == made ? made : std::numeric_limits<T>::quiet_NaN();
}

float wide(uint16_t pattern) { return std::bit_cast<float>(static_cast<uint32_t>(pattern) << 16); }

// The sum of two floats has more than twice the digits of bf16, so rounding it again rounds the
// exact sum. Half of the last kept digit is added, a little less if that digit is even. A product
// may be too small for a float, and is exact as a double.
template <Combine combine>
uint16_t of_bf16(uint16_t a, uint16_t b) {
  if constexpr (combine == Combine::product) {
    const double product = kBf16.decode(a) * kBf16.decode(b);
    return static_cast<uint16_t>(product == product ? kBf16.encode(product) : kBf16.nan);
  }
  const float made = combined<combine>(wide(a), wide(b));
  const auto bits = std::bit_cast<uint32_t>(made);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return static_cast<uint16_t>(made == made ? rounded : kBf16.nan);
}

template <Combine combine>
uint16_t of_f16(uint16_t a, uint16_t b) {
  const double made = combined<combine>(kF16.decode(a), kF16.decode(b));  // exact
  return static_cast<uint16_t>(made == made ? kF16.encode(made) : kF16.nan);
}

// ---- Integers -----------------------------------------------------------------------------------

// T tells how numbers compare; sums and products wrap.
template <Combine combine, class T>
T of_integers(T a, T b) {
  using Bits = std::make_unsigned_t<T>;
  // Products of 16 bits would become ints, which must not overflow.
  using Wide = std::common_type_t<Bits, unsigned>;
  const auto x = static_cast<Bits>(a), y = static_cast<Bits>(b);
  if constexpr (combine == Combine::sum) return static_cast<T>(static_cast<Bits>(Wide{x} + y));
  if constexpr (combine == Combine::product)
    return static_cast<T>(static_cast<Bits>(Wide{x} * Wide{y}));
  if constexpr (combine == Combine::max) return std::max(a, b);
  if constexpr (combine == Combine::min) return std::min(a, b);
  if constexpr (combine == Combine::and_) return static_cast<T>(static_cast<Bits>(x & y));
  if constexpr (combine == Combine::or_) return static_cast<T>(static_cast<Bits>(x | y));
}

template <Combine combine>
void of_type(DType type, std::byte* to, const std::byte* a, const std::byte* b, int64_t count) {
  if constexpr (combine != Combine::and_ && combine != Combine::or_) {
    switch (type) {
      case DType::f64: return each_element<double>(to, a, b, count, of_reals<combine, double>);
      case DType::f32: return each_element<float>(to, a, b, count, of_reals<combine, float>);
      case DType::f16: return each_element<uint16_t>(to, a, b, count, of_f16<combine>);
      case DType::bf16: return each_element<uint16_t>(to, a, b, count, of_bf16<combine>);
      default: break;
    }
  }
  const auto integers = [&]<class T>(std::type_identity<T>) {
    each_element<T>(to, a, b, count, of_integers<combine, T>);
  };
  const bool is_signed = kSigned.contains(type);
  switch (bits(type)) {
    case 64:
      return is_signed ? integers(std::type_identity<int64_t>())
                       : integers(std::type_identity<uint64_t>());
    case 32:
      return is_signed ? integers(std::type_identity<int32_t>())
                       : integers(std::type_identity<uint32_t>());
    case 16:
      return is_signed ? integers(std::type_identity<int16_t>())
                       : integers(std::type_identity<uint16_t>());
    default:
      return is_signed ? integers(std::type_identity<int8_t>())
                       : integers(std::type_identity<uint8_t>());
  }
}

}  // namespace

std::string_view name(Combine combine) { return kNames[static_cast<int>(combine)]; }

std::optional<Combine> combine_from_name(std::string_view text) {
  const auto* found = std::ranges::find(kNames, text);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<Combine>(found - std::begin(kNames));
}

bool can_combine(Combine combine, DType type) {
  if (bits(type) < 8) return false;
  if (combine == Combine::and_ || combine == Combine::or_)
    return (kInteger | kBool).contains(type) && !is_storage_only(type);
  return kNumber.contains(type);
}

void combine_elements(Combine combine, DType type, std::byte* to, const std::byte* a,
                      const std::byte* b, int64_t count) {
  HONE_CHECK(can_combine(combine, type), "a {} of {}", name(combine), name(type));
  switch (combine) {
    case Combine::sum: return of_type<Combine::sum>(type, to, a, b, count);
    case Combine::product: return of_type<Combine::product>(type, to, a, b, count);
    case Combine::max: return of_type<Combine::max>(type, to, a, b, count);
    case Combine::min: return of_type<Combine::min>(type, to, a, b, count);
    case Combine::and_: return of_type<Combine::and_>(type, to, a, b, count);
    case Combine::or_: return of_type<Combine::or_>(type, to, a, b, count);
  }
}

}  // namespace hone
