#include "tensor/type.h"

#include <gtest/gtest.h>

#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

const Dim n = Symbol::get("N", 1, 64);

std::string make_error(DType dtype, const Dims& dims) {
  Result<Type> type = Type::make(dtype, dims);
  return type.ok() ? "made " + type->to_string() : type.error().what();
}

TEST(Type, EqualTypesAreTheSame) {
  Type a = Type::get(DType::f32, {n, 784});
  EXPECT_EQ(a, Type::get(DType::f32, {n, 784}));
  EXPECT_NE(a, Type::get(DType::f16, {n, 784}));
  EXPECT_NE(a, Type());
  EXPECT_EQ(a.with_dtype(DType::f16).with_dims(Dims{n}), Type::get(DType::f16, {n}));
  EXPECT_EQ(a.to_string(), "f32[N, 784]");
  EXPECT_EQ(Type::scalar(DType::i64).to_string(), "i64[]");
  EXPECT_EQ(Type().to_string(), "absent");
}

TEST(Type, SizesOfStaticTypes) {
  Type type = Type::get(DType::i4, {3, 5});
  EXPECT_EQ(type.static_elements(), 15);
  EXPECT_EQ(type.static_bytes(), 8);
  EXPECT_EQ(type.static_dims(), (Ints{3, 5}));
  EXPECT_EQ(Type::scalar(DType::f64).static_bytes(), 8);
  EXPECT_EQ(Type::get(DType::f64, {4, 0}).static_bytes(), 0);
  EXPECT_EQ(row_major_strides(Ints{2, 3, 4}), (Ints{12, 4, 1}));
  EXPECT_EQ(row_major_strides(Ints{}), Ints{});
}

TEST(Type, SymbolicTypesBecomeStaticByBinding) {
  Type type = Type::get(DType::f32, {n, 2 * n, 3});
  EXPECT_FALSE(type.is_static());
  EXPECT_EQ(type.elements(), 6 * n * n);
  EXPECT_EQ(*type.bind({{"N", 5}}), Type::get(DType::f32, {5, 10, 3}));
  EXPECT_THROW(type.static_elements(), InternalError);
}

TEST(Type, MakeSaysWhatIsWrong) {
  EXPECT_THAT(make_error(DType::f32, {4, -1}), says("f32[4, -1] ... axis 1 ... -1"));
  EXPECT_THAT(make_error(DType::f32, {n - 3}), says("f32[N - 3] ... axis 0 ... -2"));
  EXPECT_THAT(make_error(DType::u8, Dims(17, 1)), says("u8 ... rank 17 ... 16"));
  EXPECT_THAT(make_error(DType::u8, {0, INT64_MAX}),
              says("u8[0, 4611686018427387904] ... 4611686018427387904 ... 2^40"));
  EXPECT_EQ(make_error(DType::u8, {1 << 20, 1 << 20}), "made u8[1048576, 1048576]");
  EXPECT_THROW(Type::get(DType::u8, {-1}), InternalError);
}

TEST(Type, SymbolicTypesMayBeLargerUntilTheyAreBound) {
  const Dim h = Symbol::get("H", 1, 65536), w = Symbol::get("W", 1, 65536);
  Type image = Type::get(DType::f32, {h, 3, h, w});
  EXPECT_EQ(*image.bind({{"H", 224}, {"W", 224}}), Type::get(DType::f32, {224, 3, 224, 224}));
  EXPECT_THAT(image.bind({{"H", 65536}, {"W", 65536}}).error().what(),
              says("f32[65536, 3, 65536, 65536] ... 844424930131968 ... 2^40"));
  EXPECT_THAT(make_error(DType::f32, {h, h, h, w}),
              says("f32[H, H, H, W] ... 4611686018427387904 ... 2^60"));
  // Any part of a type is a type: the static one, too.
  EXPECT_THAT(make_error(DType::u8, {n, 1 << 21, 1 << 20}),
              says("u8[N, 2097152, 1048576] ... static dims ... 2199023255552 ... 2^40"));
}

TEST(Type, MakeBoundsTheWorkOfMultiplying) {
  Dim sum = 1;
  for (char c = 'a'; c <= 'z'; ++c) sum += Symbol::get(std::string(1, c), 0, 1);
  EXPECT_EQ(Type::make(DType::u8, Dims(4, sum)).error().code(), ErrorCode::limit);
}

}  // namespace
}  // namespace hone::HONE_FILE
