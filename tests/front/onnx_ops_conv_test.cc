#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "tests/base/says_testing.h"
#include "tests/front/onnx_testing.h"

namespace hone::onnx_testing::HONE_FILE {
namespace {

using tested::says;

using ::testing::HasSubstr;

Tensor counting(const Ints& dims, double first = 1, DType dtype = DType::f32) {
  Numbers values(static_cast<size_t>(type_of(dtype, dims).static_elements()));
  std::iota(values.begin(), values.end(), first);
  return reals(dims, values, dtype);
}
Tensor ones(const Ints& dims) {
  return reals(dims, Numbers(static_cast<size_t>(type_of(DType::f32, dims).static_elements()), 1));
}

// The sum of all elements is the result of a kernel of ones, so results are easy to say by hand.

TEST(OnnxConv, OneDimWithAllAttributes) {
  const Tensor x = counting({1, 1, 5});  // 1 2 3 4 5
  const Tensor w = reals({1, 1, 2}, {1, 10});
  EXPECT_EQ(numbers(run_node("Conv", 1, {x, w})), Numbers({21, 32, 43, 54}));
  EXPECT_EQ(numbers(run_node("Conv", 11, {x, w, reals({1}, {100})}, {{"strides", Ints{2}}})),
            Numbers({121, 143}));
  EXPECT_EQ(numbers(run_node("Conv", 22, {x, w}, {{"dilations", Ints{3}}, {"pads", Ints{1, 2}}})),
            Numbers({30, 41, 52, 3, 4}));
}

TEST(OnnxConv, GroupsAndThreeDims) {
  const Tensor x = counting({1, 2, 1, 1, 2});  // 1 2 | 3 4
  const Tensor w = reals({4, 1, 1, 1, 1}, {1, 2, 3, 4});
  EXPECT_EQ(numbers(run_node("Conv", 11, {x, w}, {{"group", 2}})),
            Numbers({1, 2, 2, 4, 9, 12, 12, 16}));
  EXPECT_THAT(import_error("Conv", 11, {x, w}, {{"group", 0}}), says("group ... 0 ... 1"));
  EXPECT_NE(import_error("Conv", 11, {x, w}, {{"group", 3}}), "");
}

// The meaning of auto_pad, by hand: ceil(size / stride) windows, the odd padding at one end.
TEST(OnnxConv, AutoPadOfNumbersAndOfSymbols) {
  for (int64_t size : {2, 3, 4, 5, 6, 7}) {
    const Tensor x = counting({1, 1, size});
    for (int64_t kernel : {1, 2, 3, 4}) {
      for (int64_t stride : {1, 2, 3}) {
        if (kernel < stride && kernel != 1) continue;
        const int64_t count = (size + stride - 1) / stride;
        const int64_t total = std::max<int64_t>(0, (count - 1) * stride + kernel - size);
        for (const char* mode : {"SAME_UPPER", "SAME_LOWER"}) {
          const int64_t low = std::string(mode) == "SAME_LOWER" ? total - total / 2 : total / 2;
          Numbers wanted;
          for (int64_t o = 0; o < count; ++o) {
            double sum = 0;
            for (int64_t k = 0; k < kernel; ++k) {
              const int64_t i = o * stride + k - low;
              if (i >= 0 && i < size) sum += static_cast<double>(i + 1);
            }
            wanted.push_back(sum);
          }
          for (bool symbolic : {false, true}) {
            EXPECT_EQ(numbers(run_node("Conv", 11, {x, constant(ones({1, 1, kernel}))},
                                       {{"auto_pad", mode}, {"strides", Ints{stride}}},
                                       {.symbolic = symbolic})),
                      wanted)
                << size << " " << kernel << " " << stride << " " << mode << " " << symbolic;
          }
        }
      }
    }
  }
}

TEST(OnnxConv, Errors) {
  const Tensor x = counting({1, 1, 5}), w = ones({1, 1, 2});
  EXPECT_THAT(import_error("Conv", 11, {x, ones({1, 1, 2, 2})}),
              says("weights ... rank 4 ... input ... 3"));
  EXPECT_THAT(import_error("Conv", 11, {x, w}, {{"kernel_shape", Ints{3}}}),
              says("kernel_shape[0] ... 3 ... weights ... 2"));
  EXPECT_THAT(import_error("Conv", 11, {x, w}, {{"kernel_shape", Ints{2, 2}}}),
              says("kernel_shape ... 2 ... weights ... 1 spatial dims"));
  EXPECT_THAT(import_error("Conv", 11, {x, w}, {{"strides", Ints{0}}}),
              HasSubstr("strides[0] is 0, not in 1..2147483647"));
  EXPECT_THAT(import_error("Conv", 11, {x, w}, {{"pads", Ints{-1, 0}}}),
              HasSubstr("pads[0] is -1, not in 0..2147483647"));
  EXPECT_THAT(import_error("Conv", 11, {x, w}, {{"pads", Ints{1}}}),
              HasSubstr("pads has 1 entries, want 2"));
  EXPECT_THAT(import_error("Conv", 11, {x, w}, {{"dilations", Ints{int64_t{1} << 40}}}),
              HasSubstr("dilations[0] is 1099511627776"));
  EXPECT_THAT(import_error("Conv", 11, {x, w}, {{"auto_pad", "SAME"}}),
              HasSubstr("auto_pad is 'SAME', not NOTSET"));
  EXPECT_NE(import_error("Conv", 11, {counting({5}), w}), "");
  EXPECT_NE(import_error("Conv", 11, {x, w, ones({2})}), "");
}

TEST(OnnxConvInteger, ZeroPointPerChannel) {
  const Tensor x = integers({1, 1, 3}, {130, 131, 129}, DType::u8);
  const Tensor w = integers({2, 1, 2}, {1, 2, 3, 4}, DType::u8);
  const Tensor x_zero = integers({}, {128}, DType::u8), w_zero = integers({2}, {1, 2}, DType::u8);
  // (2, 3, 1) by (0, 1) and (1, 2); the padding stands for zero.
  EXPECT_EQ(numbers(run_node("ConvInteger", 10, {x, w, x_zero, w_zero}, {{"pads", Ints{1, 0}}})),
            Numbers({2, 3, 1, 4, 8, 5}));
}

// The definition: every input element adds the kernel, times itself, to the result.
Numbers spread(int64_t size, int64_t kernel, int64_t stride, int64_t dilation, int64_t low,
               int64_t result) {
  Numbers y(static_cast<size_t>(result));
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t k = 0; k < kernel; ++k) {
      const int64_t o = i * stride + k * dilation - low;
      if (o >= 0 && o < result) y[static_cast<size_t>(o)] += static_cast<double>((i + 1) * (k + 1));
    }
  }
  return y;
}

TEST(OnnxConvTranspose, PaddingsOfAllKinds) {
  const Tensor x = counting({1, 1, 4});
  const Operand w = constant(counting({1, 1, 3}));
  for (bool symbolic : {false, true}) {
    const NodeOptions options = {.symbolic = symbolic};
    auto run = [&](int version, const Attributes& attributes) {
      return numbers(run_node("ConvTranspose", version, {x, w}, attributes, options));
    };
    EXPECT_EQ(run(1, {}), spread(4, 3, 1, 1, 0, 6));
    EXPECT_EQ(run(11, {{"strides", Ints{2}}, {"dilations", Ints{2}}, {"pads", Ints{1, 2}}}),
              spread(4, 3, 2, 2, 1, 8));
    EXPECT_EQ(run(11, {{"strides", Ints{3}}, {"output_padding", Ints{2}}}),
              spread(4, 3, 3, 1, 0, 14));
    // 9 positions; 8 are wanted.
    EXPECT_EQ(run(11, {{"strides", Ints{2}}, {"auto_pad", "SAME_UPPER"}}),
              spread(4, 3, 2, 1, 0, 8));
    EXPECT_EQ(run(11, {{"strides", Ints{2}}, {"auto_pad", "SAME_LOWER"}}),
              spread(4, 3, 2, 1, 1, 8));
    EXPECT_EQ(run(1, {{"strides", Ints{2}}, {"auto_pad", "SAME_UPPER"}}), spread(4, 3, 2, 1, 1, 8));
  }
  auto shaped = [&](int64_t size) {
    return numbers(run_node("ConvTranspose", 11, {x, w},
                            {{"strides", Ints{2}}, {"output_shape", Ints{size}}}));
  };
  EXPECT_EQ(shaped(8), spread(4, 3, 2, 1, 1, 8));
  EXPECT_EQ(shaped(6), spread(4, 3, 2, 1, 2, 6));
  EXPECT_EQ(shaped(11), spread(4, 3, 2, 1, 0, 11));
}

TEST(OnnxConvTranspose, GroupsAndBias) {
  const Tensor x = reals({1, 2, 1}, {1, 10});
  const Tensor w = reals({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});  // [in, out per group, kernel]
  EXPECT_EQ(numbers(run_node("ConvTranspose", 11, {x, w, reals({4}, {100, 200, 300, 400})},
                             {{"group", 2}})),
            Numbers({101, 102, 203, 204, 350, 360, 470, 480}));
  EXPECT_EQ(numbers(run_node("ConvTranspose", 11, {x, w})), Numbers({51, 62, 73, 84}));
  EXPECT_NE(import_error("ConvTranspose", 11, {x, w}, {{"group", 3}}), "");
  EXPECT_THAT(import_error("ConvTranspose", 11, {x, w}, {{"output_shape", Ints{-1}}}),
              HasSubstr("output_shape[0] is -1"));
}

// Bilinear sample with zeros outside.
double sample(const Tensor& x, int64_t channel, int64_t height, int64_t width, double r, double c) {
  auto at = [&](double row, double column) {
    if (row < 0 || row >= static_cast<double>(height)) return 0.0;
    if (column < 0 || column >= static_cast<double>(width)) return 0.0;
    return x.real_at((channel * height + static_cast<int64_t>(row)) * width +
                     static_cast<int64_t>(column));
  };
  const double r0 = std::floor(r), c0 = std::floor(c), fr = r - r0, fc = c - c0;
  return (1 - fr) * ((1 - fc) * at(r0, c0) + fc * at(r0, c0 + 1)) +
         fr * ((1 - fc) * at(r0 + 1, c0) + fc * at(r0 + 1, c0 + 1));
}

TEST(OnnxDeformConv, AgainstTheFormula) {
  const int64_t in = 2, out = 2, size = 4, k = 2, o = 3;
  const Tensor x = counting({1, in, size, size}), w = counting({out, in, k, k}, -3);
  const int64_t taps = k * k, groups = 2;
  Numbers moves, weights;
  for (int64_t i = 0; i < groups * taps * 2 * o * o; ++i)
    moves.push_back(0.25 * static_cast<double>((i * 7) % 13 - 6));
  for (int64_t i = 0; i < groups * taps * o * o; ++i)
    weights.push_back(0.5 * static_cast<double>(i % 3));
  const Tensor offset = reals({1, groups * taps * 2, o, o}, moves);
  const Tensor mask = reals({1, groups * taps, o, o}, weights), bias = reals({out}, {5, -5});
  Numbers wanted;
  for (int64_t m = 0; m < out; ++m) {
    for (int64_t r = 0; r < o; ++r) {
      for (int64_t c = 0; c < o; ++c) {
        double sum = bias.real_at(m);
        for (int64_t i = 0; i < in; ++i) {
          for (int64_t t = 0; t < taps; ++t) {
            auto moved = [&](int64_t axis) {
              return offset.real_at((((i * taps + t) * 2 + axis) * o + r) * o + c);
            };
            sum += w.real_at((m * in + i) * taps + t) *
                   mask.real_at(((i * taps + t) * o + r) * o + c) *
                   sample(x, i, size, size, static_cast<double>(r + t / k) + moved(0),
                          static_cast<double>(c + t % k) + moved(1));
          }
        }
        wanted.push_back(sum);
      }
    }
  }
  EXPECT_EQ(numbers(run_node("DeformConv", 19, {x, constant(w), offset, bias, mask},
                             {{"offset_group", 2}})),
            wanted);
}

TEST(OnnxDeformConv, WithoutOffsetsItIsConv) {
  const Tensor x = counting({2, 4, 5, 4}), w = counting({6, 2, 2, 3}, -9);
  const Attributes attributes = {
      {"group", 2}, {"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 0, 1}}, {"dilations", Ints{2, 1}}};
  const Tensor y = run_node("Conv", 11, {x, w}, attributes);
  const Ints dims = y.type().static_dims();
  const Tensor offset =
      reals({2, 12, dims[2], dims[3]}, Numbers(static_cast<size_t>(24 * dims[2] * dims[3]), 0));
  EXPECT_EQ(numbers(run_node("DeformConv", 22, {x, w, offset}, attributes)), numbers(y));
  EXPECT_THAT(
      import_error("DeformConv", 19, {x, w, reals({2, 12, 1, 1}, Numbers(24, 0))}, attributes),
      says("offsets ... 1 ... spatial dim 0 ... windows ... 2"));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
