#include "kernel/packed.h"

#include <gtest/gtest.h>

#include <numeric>

namespace hone::HONE_FILE {
namespace {

// Each place of the memory has the element that the layout says.
void expect_packed(DType dtype, std::string_view text) {
  const Type type = Type::get(dtype, {4, 3, 2});
  std::vector<int64_t> numbers(24);
  std::iota(numbers.begin(), numbers.end(), -8);
  const Tensor tensor = Tensor::from_integers(type, numbers);
  const Layout layout = parse_layout(text).value();
  const Tensor memory = packed(tensor, layout);
  ASSERT_EQ(memory.type(), stored_type(layout, type));
  const Ints strides = row_major_strides(memory.type().static_dims());
  const std::vector<IndexExpr> place = stored_index(layout, identity_index(3));
  for (int64_t i = 0; i < 24; ++i) {
    const int64_t point[] = {i / 6, i / 2 % 3, i % 2};
    int64_t at = 0;
    for (size_t d = 0; d < place.size(); ++d) at += place[d].at(point) * strides[d];
    EXPECT_EQ(memory.real_at(at), tensor.real_at(i)) << text << " " << i;
  }
}

TEST(Packed, ElementsLieWhereTheLayoutSays) {
  for (DType dtype :
       {DType::i8, DType::f16, DType::f32, DType::f64, DType::i4, DType::u2, DType::f4e2m1})
    for (std::string_view layout :
         {"[0, 1, 2]", "[2, 0, 1]", "[0/2, 1, 2, 0%2]", "[2, 0%4, 0/4, 1/3, 1%3]"})
      expect_packed(dtype, layout);
}

TEST(Packed, TheSameContentIsTheSameTensor) {
  const Tensor tensor =
      Tensor::from_reals(Type::get(DType::f32, {2, 2}), std::vector{1., 2., 3., 4.});
  const Layout layout = parse_layout("[1, 0]").value();
  EXPECT_EQ(packed(tensor, layout).content_hash(), packed(tensor, layout).content_hash());
  EXPECT_NE(packed(tensor, layout).content_hash(), tensor.content_hash());
}

}  // namespace
}  // namespace hone::HONE_FILE
