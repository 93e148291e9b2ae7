#include "kernel/packed.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "ir/access.h"

namespace hone::HONE_FILE {
namespace {

// Each place of the memory has the element that the layout says.
void expect_packed(DType dtype, const Ints& dims, std::string_view text) {
  const Type type = Type::get(dtype, Dims(dims.begin(), dims.end()));
  std::vector<int64_t> numbers(static_cast<size_t>(type.static_elements()));
  std::iota(numbers.begin(), numbers.end(), -8);
  const Tensor tensor = Tensor::from_integers(type, numbers);
  const Layout layout = parse_layout(text).value();
  const Tensor memory = packed(tensor, layout);
  ASSERT_EQ(memory.type(), stored_type(layout, type));
  const Ints strides = row_major_strides(memory.type().static_dims());
  const std::vector<IndexExpr> place = stored_index(layout, identity_index(type.rank()));
  for (int64_t i = 0; i < type.static_elements(); ++i) {
    Ints point(dims.size());
    for (size_t d = dims.size(), rest = static_cast<size_t>(i); d-- > 0;) {
      point[d] = static_cast<int64_t>(rest) % dims[d];
      rest /= static_cast<size_t>(dims[d]);
    }
    int64_t at = 0;
    for (size_t d = 0; d < place.size(); ++d) at += place[d].at(point) * strides[d];
    ASSERT_EQ(memory.real_at(at), tensor.real_at(i)) << text << " " << i;
  }
}

TEST(Packed, ElementsLieWhereTheLayoutSays) {
  for (DType dtype :
       {DType::i8, DType::f16, DType::f32, DType::f64, DType::i4, DType::u2, DType::f4e2m1})
    for (std::string_view layout :
         {"[0, 1, 2]", "[2, 0, 1]", "[0/2, 1, 2, 0%2]", "[2, 0%4, 0/4, 1/3, 1%3]"})
      expect_packed(dtype, {4, 3, 2}, layout);
}

// Dims of 1, dims that are longer than what is copied at a time, and blocks in any order.
TEST(Packed, ElementsOfRandomLayoutsLieWhereTheySay) {
  std::mt19937 random(11);
  for (int i = 0; i < 200; ++i) {
    Ints dims;
    std::vector<std::string> parts;
    for (size_t rank = 1 + random() % 4; dims.size() < rank;) {
      const int64_t block = 1 + static_cast<int64_t>(random() % 5);
      const size_t dim = dims.size();
      dims.push_back(block * (1 + static_cast<int64_t>(random() % (rank > 2 ? 4 : 9))));
      if (block == 1 || dims.back() == block) {
        parts.push_back(fmt::format("{}", dim));
        continue;
      }
      parts.push_back(fmt::format("{}/{}", dim, block));
      parts.push_back(fmt::format("{}%{}", dim, block));
    }
    std::ranges::shuffle(parts, random);
    const DType dtypes[] = {DType::i8, DType::f16, DType::f32, DType::i64, DType::u4};
    expect_packed(dtypes[random() % 5], dims, fmt::format("[{}]", fmt::join(parts, ", ")));
  }
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
