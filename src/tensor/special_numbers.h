#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "tensor/tensor.h"

// The numbers at which code goes wrong: all random tests draw them from here.

namespace hone {

enum class SpecialSort : uint8_t {
  nan,
  infinity,
  zero,      // of both signs
  denormal,  // the least number, the largest denormal one, others between them
  limit,     // the highest finite number, the least normal one, 1 and its neighbours
  exponent,  // any mantissa at any exponent
};
inline constexpr int kSpecialSorts = 6;

// Which of a tensor's numbers are special, and of which sorts. None, as it is made.
class Specials {
 public:
  Specials() = default;
  // A few, many, or all; of one sort, of those that keep sums in order (NaN, infinities, zeros), or
  // of all.
  static Specials drawn(Rng& rng);
  static Specials of(SpecialSort sort, double share);
  static Specials of_all_sorts(double share);

  bool any() const { return share_ > 0; }
  // True if this one of the tensor's numbers is to be special.
  bool falls(Rng& rng) const { return any() && rng.chance(share_); }
  // A number of the type; where it lacks NaN, infinities or zeros, what these become.
  double real(DType dtype, Rng& rng) const;

 private:
  double share_ = 0;
  uint32_t sorts_ = 0;  // a bit for each
};

double special_real(DType dtype, SpecialSort sort, Rng& rng);
// A limit of the type, 0, a power of two or a neighbour of it, or any bits.
int64_t special_integer(DType dtype, Rng& rng);

// A tensor of what `real` or `integer` gives, but for the numbers that are special.
template <class Real, class Integer>
Tensor with_specials(Type type, const Specials& specials, Rng& rng, const Real& real,
                     const Integer& integer) {
  const DType dtype = type.dtype();
  const auto count = static_cast<size_t>(type.static_elements());
  if (is_real(dtype)) {
    std::vector<double> numbers(count);
    for (double& number : numbers)
      number = specials.falls(rng) ? specials.real(dtype, rng) : real();
    return Tensor::from_reals(type, numbers);
  }
  std::vector<int64_t> numbers(count);
  for (int64_t& number : numbers)
    number = specials.falls(rng) ? special_integer(dtype, rng) : integer();
  return Tensor::from_integers(type, numbers);
}

}  // namespace hone
