#include "tensor/filled.h"

#include <gtest/gtest.h>

#include "tensor/held_bytes.h"

namespace hone::HONE_FILE {
namespace {

// Longer than a piece, and not a multiple of it.
constexpr int64_t kMany = (1 << 16) * 2 + 3;

TEST(Filled, TensorsAreThoseOfAllNumbersAtOnce) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const Type type = Type::get(dtype, {kMany});
    if (is_real(dtype)) {
      std::vector<double> numbers;
      for (int64_t n = 0; n < kMany; ++n) numbers.push_back(static_cast<double>(n % 7) - 2.5);
      const Tensor filled = filled_with_reals(type, [&](int64_t first, std::span<double> to) {
        std::copy_n(numbers.begin() + first, to.size(), to.begin());
      });
      EXPECT_TRUE(filled.same_bytes(Tensor::from_reals(type, numbers))) << name(dtype);
      continue;
    }
    std::vector<int64_t> numbers;
    for (int64_t n = 0; n < kMany; ++n) numbers.push_back(n % 2);
    const Tensor filled = filled_with_integers(type, [&](int64_t first, std::span<int64_t> to) {
      std::copy_n(numbers.begin() + first, to.size(), to.begin());
    });
    EXPECT_TRUE(filled.same_bytes(Tensor::from_integers(type, numbers))) << name(dtype);
  }
}

TEST(Filled, RoundsToAnotherTypeAsAllAtOnce) {
  std::vector<double> numbers;
  for (int64_t n = 0; n < kMany; ++n) numbers.push_back(static_cast<double>(n) / 3);
  const Tensor wide = Tensor::from_reals(Type::get(DType::f64, {kMany}), numbers);
  EXPECT_TRUE(rounded_to(wide, DType::f32)
                  .same_bytes(Tensor::from_reals(Type::get(DType::f32, {kMany}), numbers)));
}

TEST(Filled, RepeatsANumberWhenItIsRead) {
  for (const int64_t count : {int64_t{0}, int64_t{5}, kMany}) {
    for (const DType dtype : {DType::f16, DType::i4, DType::u64, DType::boolean, DType::f4e2m1}) {
      const Tensor scalar =
          is_real(dtype) ? Tensor::scalar(dtype, 1)
                         : Tensor::from_integers(Type::scalar(dtype), std::vector<int64_t>{1});
      const Type type = Type::get(dtype, {count});
      const Tensor made = repeated(scalar, type);
      const auto size = static_cast<size_t>(count);
      const Tensor wanted = is_real(dtype)
                                ? Tensor::from_reals(type, std::vector<double>(size, 1))
                                : Tensor::from_integers(type, std::vector<int64_t>(size, 1));
      EXPECT_EQ(made.is_materialized(), false) << name(dtype);
      EXPECT_TRUE(made.same_bytes(wanted)) << name(dtype) << " " << count;
    }
  }
}

TEST(HeldBytes, CountsWhatSeveralShareOnce) {
  const Tensor x = Tensor::zeros(Type::get(DType::f32, {10}));
  const Tensor same = x.viewed_as(Type::get(DType::f32, {2, 5}));
  const Tensor other = Tensor::zeros(Type::get(DType::f32, {3}));
  HeldBytes held;
  held.add(x);
  held.add(same);
  held.add(other);
  held.add(Tensor::zeros(Type::get(DType::f32, {0})));
  EXPECT_EQ(held.bytes(), 52);
  held.drop(x);
  EXPECT_EQ(held.bytes(), 52);
  held.drop(same);
  EXPECT_EQ(held.bytes(), 12);
}

}  // namespace
}  // namespace hone::HONE_FILE
