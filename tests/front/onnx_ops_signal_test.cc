#include <gmock/gmock.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "tests/base/says_testing.h"
#include "tests/front/onnx_testing.h"

namespace hone::onnx_testing::HONE_FILE {
namespace {

using tested::says;
using testing::DoubleNear;
using testing::HasSubstr;
using testing::Pointwise;

using Complex = std::complex<double>;

testing::Matcher<const Numbers&> near(const Numbers& expected) {
  return Pointwise(DoubleNear(1e-5), expected);
}

// The definition, of as many bins as are wanted.
Numbers dft(const std::vector<Complex>& x, size_t length, size_t bins, double sign = -1) {
  Numbers y;
  for (size_t k = 0; k < bins; ++k) {
    Complex sum = 0;
    for (size_t i = 0; i < std::min(length, x.size()); ++i)
      sum += x[i] * std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(i * k) /
                                        static_cast<double>(length));
    y.push_back(sum.real());
    y.push_back(sum.imag());
  }
  return y;
}

Operand scalar(int64_t v) { return constant(integers({}, {v})); }

const Numbers kSignal = {1, 3, -2, 0.5, 4};
const std::vector<Complex> kComplexSignal = {1, 3, -2, 0.5, 4};

TEST(OnnxSignal, DftPadsAndCutsToItsLength) {
  Tensor x = reals({1, 5, 1}, kSignal);
  for (bool symbolic : {false, true}) {
    NodeOptions options = {.symbolic = symbolic};
    EXPECT_THAT(numbers(run_node("DFT", 17, {x}, {}, options)), near(dft(kComplexSignal, 5, 5)));
    EXPECT_THAT(numbers(run_node("DFT", 20, {x, scalar(8)}, {}, options)),
                near(dft(kComplexSignal, 8, 8)));
    EXPECT_THAT(
        numbers(run_node("DFT", 20, {x, scalar(4), scalar(-2)}, {{"onesided", 1}}, options)),
        near(dft(kComplexSignal, 4, 3)));
  }
}

TEST(OnnxSignal, DftAlongAnotherAxis) {
  Tensor x = reals({2, 2, 1}, {1, 2, 3, 5});
  EXPECT_THAT(numbers(run_node("DFT", 20, {x, none(), scalar(0)})),
              near({4, 0, 7, 0, -2, 0, -3, 0}));
  EXPECT_THAT(import_error("DFT", 20, {x, none(), scalar(2)}), says("axis 2 ... imaginary"));
  EXPECT_THAT(import_error("DFT", 17, {reals({2, 3}, Numbers(6))}, {{"axis", 0}}),
              says("1 (real) ... 2 (complex)"));
}

TEST(OnnxSignal, InverseUndoesForward) {
  Tensor spectrum = reals({1, 5, 2}, dft(kComplexSignal, 5, 5));
  Numbers expected;
  for (double v : kSignal) expected.insert(expected.end(), {v, 0});
  EXPECT_THAT(numbers(run_node("DFT", 17, {spectrum}, {{"inverse", 1}})), near(expected));
  // From half of a spectrum, of an odd and of an even length.
  Attributes half = {{"inverse", 1}, {"onesided", 1}};
  Tensor odd = reals({1, 3, 2}, dft(kComplexSignal, 5, 3));
  EXPECT_THAT(numbers(run_node("DFT", 20, {odd, scalar(5)}, half)), near(kSignal));
  Tensor even = reals({1, 3, 2}, dft(kComplexSignal, 4, 3));
  EXPECT_THAT(numbers(run_node("DFT", 20, {even}, half)), near({1, 3, -2, 0.5}));
  EXPECT_THAT(import_error("DFT", 20, {reals({1, 3, 1}, Numbers(3))}, half),
              HasSubstr("must be complex"));
}

TEST(OnnxSignal, StftTransformsWindowedFrames) {
  Tensor x = reals({1, 5, 1}, kSignal), window = reals({4}, {1, 0.5, 2, 1});
  Tensor y = run_node("STFT", 17, {x, scalar(1), window});
  EXPECT_EQ(y.type(), type_of(DType::f32, {1, 2, 3, 2}));
  Numbers expected = dft({1, 1.5, -4, 0.5}, 4, 3);
  Numbers second = dft({3, -1, 1, 4}, 4, 3);
  expected.insert(expected.end(), second.begin(), second.end());
  EXPECT_THAT(numbers(y), near(expected));
  EXPECT_THAT(import_error("STFT", 17, {x, scalar(0), window}), HasSubstr("number above 0"));
  EXPECT_THAT(import_error("STFT", 17, {x, scalar(1), none(), scalar(6)}),
              says("frames of 6 ... 5 samples"));
  EXPECT_THAT(import_error("STFT", 17, {x, scalar(1), window, scalar(3)}),
              says("window ... f32[4] ... frames of 3"));
}

TEST(OnnxSignal, StftOfASignalWithoutALastDimIsThatOfARealOne) {
  Tensor x = reals({1, 5}, kSignal), window = reals({4}, {1, 0.5, 2, 1});
  Numbers expected = dft({1, 1.5, -4, 0.5}, 4, 3);
  Numbers second = dft({3, -1, 1, 4}, 4, 3);
  expected.insert(expected.end(), second.begin(), second.end());
  for (bool symbolic : {false, true}) {
    NodeOptions options = {.symbolic = symbolic, .numbers = {4, 5}};
    Tensor y = run_node("STFT", 17, {x, scalar(1), window}, {}, options);
    EXPECT_EQ(y.type(), type_of(DType::f32, {1, 2, 3, 2}));
    EXPECT_THAT(numbers(y), near(expected));
  }
  EXPECT_EQ(run_node("STFT", 17, {x, scalar(1), window}, {{"onesided", 0}}).type(),
            type_of(DType::f32, {1, 2, 4, 2}));
  EXPECT_THAT(import_error("STFT", 17, {reals({5}, kSignal), scalar(1), window}),
              HasSubstr("must have rank 2 to 3"));
}

TEST(OnnxSignal, Windows) {
  for (bool known : {true, false}) {
    Operand size = integers({}, {4});
    size.is_constant = known;
    EXPECT_THAT(numbers(run_node("HannWindow", 17, {size})), near({0, 0.5, 1, 0.5}));
    EXPECT_THAT(numbers(run_node("HannWindow", 17, {size}, {{"periodic", 0}})),
                near({0, 0.75, 0.75, 0}));
    EXPECT_THAT(numbers(run_node("HammingWindow", 17, {size})),
                near({4 / 46.0, 25 / 46.0, 1, 25 / 46.0}));
    Tensor y = run_node("BlackmanWindow", 17, {size}, {{"output_datatype", 11}});
    EXPECT_EQ(y.dtype(), DType::f64);
    EXPECT_THAT(numbers(y), near({0, 0.34, 1, 0.34}));
  }
  EXPECT_THAT(import_error("HannWindow", 17, {scalar(-3)}), HasSubstr("the size is -3"));
}

TEST(OnnxSignal, MelWeightsAreTriangles) {
  // One triangle from 0 Hz over 8 bins of 1000 Hz. Its corners are evenly spaced in mels; the step
  // is a third of the range.
  auto bin = [](double part) {
    double mel = part * 2595 * std::log10(1 + 4000 / 700.0);
    return std::floor(17 * 700 * (std::pow(10, mel / 2595) - 1) / 16000);
  };
  double peak = bin(1 / 3.0), right = bin(2 / 3.0);
  Numbers expected(9);
  for (double j = 0; j < 9; ++j) {
    double up = peak == 0 ? (j == 0 ? 1 : 0) : j <= peak ? j / peak : 0;
    double down = j >= peak && j < right ? (right - j) / (right - peak) : 0;
    expected[static_cast<size_t>(j)] = std::max(up, down);
  }
  for (bool known : {true, false}) {
    auto size = [&](int64_t v) {
      Operand operand = integers({}, {v});
      operand.is_constant = known;
      return operand;
    };
    Tensor y = run_node("MelWeightMatrix", 17,
                        {size(1), size(16), size(16000), reals({}, {0}), reals({}, {4000})});
    EXPECT_EQ(y.type(), type_of(DType::f32, {9, 1}));
    EXPECT_THAT(numbers(y), near(expected));
  }
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
