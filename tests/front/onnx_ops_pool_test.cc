#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "tests/base/says_testing.h"
#include "tests/front/onnx_testing.h"

namespace hone::onnx_testing::HONE_FILE {
namespace {

using tested::says;

using ::testing::HasSubstr;

Tensor counting(const Ints& dims) {
  Numbers values(static_cast<size_t>(type_of(DType::f32, dims).static_elements()));
  std::iota(values.begin(), values.end(), 1);
  return reals(dims, values);
}

// ---- Sizes --------------------------------------------------------------------------------------

struct Case {
  int64_t size, kernel, stride, dilation, low, high;
};

// As the standard says it: round up, but no window starts behind the input and its first padding.
int64_t windows(const Case& c, bool ceil) {
  const int64_t room = c.size + c.low + c.high - ((c.kernel - 1) * c.dilation + 1);
  int64_t count = (room + (ceil ? c.stride - 1 : 0)) / c.stride + 1;
  if (ceil && (count - 1) * c.stride >= c.size + c.low) --count;
  return count;
}

// The elements 1, 2, ... of each window; which of its positions count is for the average to say.
template <class Visit>  // visit(window, element or 0, whether the position is within the padding)
void for_each_position(const Case& c, bool ceil, Visit&& visit) {
  for (int64_t o = 0; o < windows(c, ceil); ++o) {
    for (int64_t k = 0; k < c.kernel; ++k) {
      const int64_t i = o * c.stride + k * c.dilation - c.low;
      const bool element = i >= 0 && i < c.size;
      visit(static_cast<size_t>(o), element ? i + 1 : 0, i < c.size + c.high);
    }
  }
}

Numbers average(const Case& c, bool ceil, bool with_padding) {
  Numbers sum(static_cast<size_t>(windows(c, ceil))), count = sum;
  for_each_position(c, ceil, [&](size_t o, int64_t element, bool padded) {
    sum[o] += static_cast<double>(element);
    count[o] += element > 0 || (with_padding && padded) ? 1 : 0;
  });
  for (size_t o = 0; o < sum.size(); ++o) sum[o] = static_cast<float>(sum[o] / count[o]);
  return sum;
}

Numbers maxima(const Case& c, bool ceil) {
  Numbers most(static_cast<size_t>(windows(c, ceil)), -INFINITY);
  for_each_position(c, ceil, [&](size_t o, int64_t element, bool) {
    if (element > 0) most[o] = std::max(most[o], static_cast<double>(element));
  });
  return most;
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (int64_t size : {4, 5, 6, 7}) {
    for (int64_t kernel : {1, 2, 3}) {
      for (int64_t stride : {1, 2, 3, 4}) {
        for (int64_t dilation : {1, 2}) {
          const int64_t span = (kernel - 1) * dilation + 1;
          if (span > size) continue;
          for (int64_t low = 0; low < std::min<int64_t>(span, 3); ++low)
            for (int64_t high = 0; high < std::min<int64_t>(span, 3); ++high)
              list.push_back({size, kernel, stride, dilation, low, high});
        }
      }
    }
  }
  return list;
}

Attributes attributes_of(const Case& c, bool ceil) {
  return {{"kernel_shape", Ints{c.kernel}},
          {"strides", Ints{c.stride}},
          {"dilations", Ints{c.dilation}},
          {"pads", Ints{c.low, c.high}},
          {"ceil_mode", static_cast<int>(ceil)}};
}

void expect_equal(const Numbers& got, const Numbers& wanted, const Case& c) {
  auto text = fmt::format("size {} kernel {} stride {} dilation {} pads {} {}", c.size, c.kernel,
                          c.stride, c.dilation, c.low, c.high);
  ASSERT_EQ(got.size(), wanted.size()) << text;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(wanted[i]))
      EXPECT_TRUE(std::isnan(got[i])) << text;
    else
      EXPECT_EQ(got[i], wanted[i]) << text << " at " << i;
  }
}

TEST(OnnxPool, EverySmallCase) {
  for (const Case& c : cases()) {
    const Tensor x = counting({1, 1, c.size});
    for (bool ceil : {false, true}) {
      const Attributes plain = attributes_of(c, ceil);
      Attributes padded = plain;
      padded.emplace_back("count_include_pad", 1);
      expect_equal(numbers(run_node("AveragePool", 19, {x}, plain)), average(c, ceil, false), c);
      expect_equal(numbers(run_node("AveragePool", 22, {x}, padded)), average(c, ceil, true), c);
      expect_equal(numbers(run_node("MaxPool", 12, {x}, plain)), maxima(c, ceil), c);
    }
  }
}

TEST(OnnxPool, SymbolicSizes) {
  for (int64_t size : {5, 6, 7}) {
    const Tensor x = counting({1, 1, size});
    const NodeOptions options = {.symbolic = true};
    // ceil(size / 2) windows of 3; half of what is missing stands before the input.
    const int64_t total = ((size + 1) / 2 - 1) * 2 + 3 - size;
    const Case upper = {size, 3, 2, 1, total / 2, total - total / 2};
    const Case lower = {size, 3, 2, 1, total - total / 2, total / 2};
    const Attributes attributes = {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}};
    auto with = [&](const char* mode) {
      Attributes more = attributes;
      more.emplace_back("auto_pad", mode);
      return more;
    };
    EXPECT_EQ(numbers(run_node("AveragePool", 7, {x}, with("SAME_UPPER"), options)),
              average(upper, false, false));
    EXPECT_EQ(numbers(run_node("AveragePool", 7, {x}, with("SAME_LOWER"), options)),
              average(lower, false, false));
    EXPECT_EQ(numbers(run_node("MaxPool", 1, {x}, with("SAME_UPPER"), options)),
              maxima(upper, false));
    const Case ceiled = {size, 3, 2, 1, 1, 1};
    Attributes more = attributes;
    more.emplace_back("pads", Ints{1, 1});
    more.emplace_back("ceil_mode", 1);
    EXPECT_EQ(numbers(run_node("MaxPool", 12, {x}, more, options)), maxima(ceiled, true));
    more.emplace_back("count_include_pad", 1);
    EXPECT_EQ(numbers(run_node("AveragePool", 11, {x}, more, options)),
              average(ceiled, true, true));
  }
}

// ---- Indices ------------------------------------------------------------------------------------

TEST(OnnxMaxPool, IndicesOfTheFirstMaximum) {
  const Tensor x = reals({1, 2, 2, 3}, {1, 5, 5, 2, 5, 0, -1, -1, -2, -3, -4, -1});
  const Attributes attributes = {{"kernel_shape", Ints{2, 2}}};
  for (bool symbolic : {false, true}) {
    const NodeOptions options = {.outputs = 2, .symbolic = symbolic};
    const std::vector<Tensor> rows = run_outputs("MaxPool", 8, {x}, attributes, options);
    EXPECT_EQ(numbers(rows[0]), Numbers({5, 5, -1, -1}));
    EXPECT_EQ(numbers(rows[1]), Numbers({1, 1, 6, 7}));
    Attributes columns = attributes;
    columns.emplace_back("storage_order", 1);
    // Row r and column c of a channel are at r + 2 c.
    EXPECT_EQ(numbers(run_outputs("MaxPool", 12, {x}, columns, options)[1]), Numbers({2, 2, 6, 8}));
  }
}

TEST(OnnxMaxPool, IndicesSkipThePadding) {
  // Zeros are the least u8 there is; those of the padding are no maxima.
  const Tensor x = integers({1, 1, 2, 2}, {0, 0, 0, 3}, DType::u8);
  const std::vector<Tensor> y = run_outputs(
      "MaxPool", 12, {x},
      {{"kernel_shape", Ints{2, 2}}, {"pads", Ints{1, 1, 0, 0}}, {"dilations", Ints{1, 1}}},
      {.outputs = 2});
  EXPECT_EQ(y[0].type(), type_of(DType::u8, {1, 1, 2, 2}));
  EXPECT_EQ(numbers(y[0]), Numbers({0, 0, 0, 3}));
  EXPECT_EQ(numbers(y[1]), Numbers({0, 0, 0, 3}));
}

TEST(OnnxMaxPool, Errors) {
  const Tensor x = counting({1, 1, 4});
  EXPECT_THAT(import_error("MaxPool", 8, {x}), says("kernel_shape"));
  EXPECT_THAT(import_error("MaxPool", 8, {x}, {{"kernel_shape", Ints{2, 2}}}),
              HasSubstr("kernel_shape has 2 entries, want 1"));
  EXPECT_THAT(import_error("MaxPool", 8, {x}, {{"kernel_shape", Ints{0}}}),
              HasSubstr("kernel_shape[0] is 0"));
  EXPECT_NE(import_error("MaxPool", 8, {x}, {{"kernel_shape", Ints{7}}}), "");
  EXPECT_THAT(import_error("MaxPool", 8, {counting({2, 2})}, {{"kernel_shape", Ints{1}}}),
              HasSubstr("the input"));
  EXPECT_THAT(import_error("MaxPool", 12, {counting({1, 1, 2, 2})},
                           {{"kernel_shape", Ints{1 << 20, 1 << 20}}}),
              HasSubstr("too many positions: 1048576 x 1048576"));
  // Attributes that the version lacks.
  EXPECT_NE(import_error("MaxPool", 8, {x}, {{"kernel_shape", Ints{2}}, {"ceil_mode", 1}}), "");
  EXPECT_NE(
      import_error("AveragePool", 11, {x}, {{"kernel_shape", Ints{2}}, {"dilations", Ints{1}}}),
      "");
  EXPECT_NE(
      import_error("AveragePool", 1, {x}, {{"kernel_shape", Ints{2}}, {"count_include_pad", 1}}),
      "");
}

// ---- Others -------------------------------------------------------------------------------------

TEST(OnnxLpPool, Orders) {
  const Tensor x = reals({1, 1, 4}, {3, -4, 0, 2});
  EXPECT_EQ(numbers(run_node("LpPool", 1, {x}, {{"kernel_shape", Ints{2}}})), Numbers({5, 4, 2}));
  EXPECT_EQ(numbers(run_node("LpPool", 2, {x}, {{"kernel_shape", Ints{2}}, {"p", 1}})),
            Numbers({7, 4, 2}));
  EXPECT_EQ(numbers(run_node("LpPool", 18, {x},
                             {{"kernel_shape", Ints{2}},
                              {"strides", Ints{3}},
                              {"dilations", Ints{2}},
                              {"ceil_mode", 1}})),
            Numbers({3, 2}));
  EXPECT_THAT(import_error("LpPool", 2, {x}, {{"kernel_shape", Ints{2}}, {"p", 0}}),
              HasSubstr("p is 0, not positive"));
}

TEST(OnnxGlobalPools, AllKinds) {
  const Tensor x = reals({1, 2, 1, 2}, {3, -4, 6, 8});
  EXPECT_EQ(numbers(run_node("GlobalAveragePool", 1, {x})), Numbers({-0.5, 7}));
  EXPECT_EQ(numbers(run_node("GlobalMaxPool", 22, {x}, {}, {.symbolic = true})), Numbers({3, 8}));
  EXPECT_EQ(numbers(run_node("GlobalLpPool", 1, {x}, {{"p", 1.0}})), Numbers({7, 14}));
  const Tensor y = run_node("GlobalLpPool", 2, {x}, {}, {.symbolic = true});
  EXPECT_EQ(y.type(), type_of(DType::f32, {1, 2, 1, 1}));
  EXPECT_EQ(numbers(y), Numbers({5, 10}));
}

TEST(OnnxMaxUnpool, ShapesGivenAndComputed) {
  const Tensor x = reals({1, 1, 2}, {7, 8}), indices = integers({1, 1, 2}, {1, 2});
  const Attributes attributes = {{"kernel_shape", Ints{2}}, {"strides", Ints{2}}};
  EXPECT_EQ(numbers(run_node("MaxUnpool", 9, {x, indices}, attributes)), Numbers({0, 7, 8, 0}));
  const Tensor shape = integers({3}, {1, 1, 6});
  for (const Operand& operand : {Operand(shape), constant(shape)}) {
    const Tensor y = run_node("MaxUnpool", 11, {x, indices, operand}, attributes);
    EXPECT_EQ(y.type(), type_of(DType::f32, {1, 1, 6}));
    EXPECT_EQ(numbers(y), Numbers({0, 7, 8, 0, 0, 0}));
  }
  EXPECT_THAT(
      import_error("MaxUnpool", 11, {x, indices, constant(integers({3}, {1, 1, 3}))}, attributes),
      says("output_shape[2] ... 3 ... 4"));
  EXPECT_THAT(import_error("MaxUnpool", 11, {x, integers({2}, {1, 2})}, attributes),
              says("indices ... i64[2] ... values ... f32[1, 1, 2]"));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
