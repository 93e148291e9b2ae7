#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "tests/ir/composite_testing.h"

namespace hone::tested::HONE_FILE {
namespace {

// ---- Formula ------------------------------------------------------------------------------------

// One axis, written after the definition of Resize in the ONNX standard: neighbours are found by
// distance in the padded row, coefficients come from the ratio between them.
struct Row {
  std::string mode = "linear", coordinates = "half_pixel", nearest = "round_prefer_floor";
  double scale = 0;  // 0: out / in
  double a = -0.75;
  bool exclude = false, antialias = false;
  double start = 0, end = 1, extrapolation = 0;

  double source(int64_t x, int64_t in, int64_t out) const {
    const double s = scale != 0 ? scale : static_cast<double>(out) / static_cast<double>(in);
    const double i = static_cast<double>(in), o = static_cast<double>(out);
    const double p = static_cast<double>(x);
    if (coordinates == "align_corners") return out == 1 ? 0 : p * (i - 1) / (o - 1);
    if (coordinates == "asymmetric") return p / s;
    if (coordinates == "tf_crop_and_resize")
      return out == 1 ? 0.5 * (start + end) * (i - 1)
                      : start * (i - 1) + p * (end - start) * (i - 1) / (o - 1);
    if (coordinates == "pytorch_half_pixel" && out == 1) return 0;
    const double half = (p + 0.5) / s - 0.5;
    if (coordinates == "half_pixel_symmetric") return i / 2 - i / 2 * (o / (s * i)) + half;
    return half;
  }

  double cubic(double d) const {
    d = std::abs(d);
    if (d <= 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
    if (d < 2) return a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a;
    return 0;
  }

  std::vector<double> operator()(const std::vector<double>& row, int64_t out) const {
    const int64_t in = static_cast<int64_t>(row.size());
    auto at = [&](int64_t i) {
      return row[static_cast<size_t>(std::clamp<int64_t>(i, 0, in - 1))];
    };
    std::vector<double> result;
    for (int64_t x = 0; x < out; ++x) {
      const double s = source(x, in, out);
      const bool crops = coordinates == "tf_crop_and_resize";
      if (crops && (s < 0 || s > static_cast<double>(in - 1))) {
        result.push_back(extrapolation);
        continue;
      }
      const int64_t below = static_cast<int64_t>(std::floor(s));
      const double ratio = s - std::floor(s);
      if (mode == "nearest") {
        int64_t pick = ratio == 0 ? below : below + (ratio > 0.5);
        if (ratio == 0.5 && nearest == "round_prefer_ceil") pick = below + 1;
        if (ratio != 0 && nearest == "floor") pick = below;
        if (ratio != 0 && nearest == "ceil") pick = below + 1;
        result.push_back(at(pick));
        continue;
      }
      const double shrink = scale != 0 ? scale : static_cast<double>(out) / static_cast<double>(in);
      const double squeeze = antialias ? std::min(1.0, shrink) : 1;
      const int64_t reach =
          2 + static_cast<int64_t>(std::ceil((mode == "cubic" ? 2 : 1) / squeeze));
      double sum = 0, weights = 0;
      for (int64_t i = below - reach; i <= below + reach; ++i) {
        const double d = (static_cast<double>(i) - s) * squeeze;
        double w = mode == "cubic" ? cubic(d) : std::max(0.0, 1 - std::abs(d));
        if (exclude && (i < 0 || i >= in)) w = 0;
        sum += w * at(i);
        weights += w;
      }
      result.push_back(sum / weights);
    }
    return result;
  }
};

// [rows, columns]: the columns of every row, then the rows.
Array resized(const Array& x, const Row& row, int64_t rows, int64_t columns) {
  Array wide({x.dim(0), columns}), y({rows, columns});
  for (int64_t r = 0; r < x.dim(0); ++r) {
    std::vector<double> line;
    for (int64_t c = 0; c < x.dim(1); ++c) line.push_back(x(r, c));
    const std::vector<double> made = row(line, columns);
    for (int64_t c = 0; c < columns; ++c) wide(r, c) = made[static_cast<size_t>(c)];
  }
  for (int64_t c = 0; c < columns; ++c) {
    std::vector<double> line;
    for (int64_t r = 0; r < x.dim(0); ++r) line.push_back(wide(r, c));
    const std::vector<double> made = row(line, rows);
    for (int64_t r = 0; r < rows; ++r) y(r, c) = made[static_cast<size_t>(r)];
  }
  return y;
}

// Axes that keep their size and roi stay as they are; the formula agrees where that is the
// identity.
void expect_resize(const Row& row, std::string_view more = "") {
  const Array x = Array::random({4, 5}, 3, 2);
  for (auto [rows, columns] : {std::pair{8, 10}, {2, 3}, {7, 2}, {1, 1}, {3, 13}}) {
    const std::string op = fmt::format(
        "resize {{sizes = [{}, {}], mode = {}, coordinates = {}, nearest = {}, cubic_a = {}, "
        "exclude_outside = {}, antialias = {}{}}}",
        rows, columns, row.mode, row.coordinates, row.nearest, row.a, row.exclude, row.antialias,
        more);
    expect_near(run_op(op, {x.tensor()})[0], resized(x, row, rows, columns), 1e-12);
  }
}

const std::vector<std::string> kCoordinates = {"half_pixel", "half_pixel_symmetric",
                                               "pytorch_half_pixel", "align_corners", "asymmetric"};

// ---- Values -------------------------------------------------------------------------------------

TEST(Resize, Nearest) {
  for (const std::string& coordinates : kCoordinates)
    for (const char* nearest : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})
      expect_resize({.mode = "nearest", .coordinates = coordinates, .nearest = nearest});
  // Results by hand.
  expect_eval("resize {sizes = [6]}", {"f32[3] 1 2 3"}, {"f32[6] 1 1 2 2 3 3"});
  expect_eval("resize {sizes = [2]}", {"i8[4] 1 2 3 4"}, {"i8[2] 1 3"});
  expect_eval("resize {sizes = [2], nearest = round_prefer_ceil}", {"bool[4] true true false true"},
              {"bool[2] true true"});
  expect_eval("resize {sizes = [5], coordinates = asymmetric, nearest = floor}", {"f32[2] 1 2"},
              {"f32[5] 1 1 1 2 2"});
}

TEST(Resize, Linear) {
  for (const std::string& coordinates : kCoordinates)
    for (bool exclude : {false, true})
      for (bool antialias : {false, true})
        expect_resize({.coordinates = coordinates, .exclude = exclude, .antialias = antialias});
  // From the examples of the ONNX standard.
  expect_eval("resize {sizes = [1, 1, 4, 4], mode = linear}", {"f32[1, 1, 2, 2] 1 2 3 4"},
              {"f32[1, 1, 4, 4] 1 1.25 1.75 2 1.5 1.75 2.25 2.5 2.5 2.75 3.25 3.5 3 3.25 3.75 4"},
              1e-6);
  expect_eval("resize {sizes = [1, 1, 1, 2], mode = linear, coordinates = align_corners}",
              {"f32[1, 1, 2, 4] 1 2 3 4 5 6 7 8"}, {"f32[1, 1, 1, 2] 1 4"}, 1e-6);
  expect_eval("resize {sizes = [1, 1, 1, 2], mode = linear, scales = [1, 1, 0.6, 0.6]}",
              {"f32[1, 1, 2, 4] 1 2 3 4 5 6 7 8"}, {"f32[1, 1, 1, 2] 2.6666665 4.3333331"}, 1e-6);
}

TEST(Resize, Cubic) {
  for (const std::string& coordinates : kCoordinates)
    for (bool exclude : {false, true})
      for (bool antialias : {false, true})
        expect_resize({.mode = "cubic",
                       .coordinates = coordinates,
                       .a = -0.5,
                       .exclude = exclude,
                       .antialias = antialias});
  // resize_upsample_scales_cubic of the ONNX standard: the first row.
  const Tensor y = run_op("resize {sizes = [1, 1, 8, 8], mode = cubic}",
                          {tensor_of("f64[1, 1, 4, 4] 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16")})[0];
  const double first[] = {0.47265625, 0.76953125, 1.24609375, 1.875,
                          2.28125,    2.91015625, 3.38671875, 3.68359375};
  for (int64_t i = 0; i < 8; ++i) EXPECT_NEAR(y.real_at(i), first[i], 1e-12);
}

TEST(Resize, ScalesThatAreNoRatios) {
  for (const std::string& coordinates : kCoordinates) {
    for (const char* mode : {"nearest", "linear", "cubic"}) {
      const Array x = Array::random({4, 5}, 3, 2);
      const Row row{.mode = mode, .coordinates = coordinates, .scale = 0.6};
      const std::string op =
          fmt::format("resize {{sizes = [2, 3], scales = [0.6, 0.6], mode = {}, coordinates = {}}}",
                      mode, coordinates);
      expect_near(run_op(op, {x.tensor()})[0], resized(x, row, 2, 3));
    }
  }
}

TEST(Resize, CropsAndExtrapolates) {
  const Array x = Array::random({4, 5}, 3, 2);
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (auto [start, end] : {std::pair{0.25, 0.75}, {0.5, 1.5}, {-0.5, 0.5}, {1.0, 0.0}}) {
      for (auto [rows, columns] : {std::pair{3, 4}, {4, 5}, {1, 1}}) {
        const Row row{.mode = mode,
                      .coordinates = "tf_crop_and_resize",
                      .start = start,
                      .end = end,
                      .extrapolation = 10};
        const std::string op = fmt::format(
            "resize {{sizes = [{}, {}], mode = {}, coordinates = tf_crop_and_resize, "
            "extrapolation = 10, roi = [{}, {}, {}, {}]}}",
            rows, columns, mode, start, start, end, end);
        const Array wanted = resized(x, row, rows, columns);
        expect_near(run_op(op, {x.tensor()})[0], wanted);
      }
    }
  }
}

TEST(Resize, SomeAxesEmptyAndSymbolic) {
  EXPECT_EQ(run_op("resize {sizes = [3, 0], mode = linear}", {Array({2, 4}).tensor()})[0].type(),
            type_of("f64[3, 0]"));
  EXPECT_EQ(run_op("resize {sizes = [0, 5]}", {Array({0, 4}).tensor()})[0].type(),
            type_of("f64[0, 5]"));
  expect_symbolic("resize {sizes = [N, M, 8, 8], mode = cubic}", {"f32[N, M, 4, 4]"});
  expect_infer("resize {sizes = [N, 3, 8, 8], mode = linear}", {"f16[N, 3, 4, 5]"},
               {"f16[N, 3, 8, 8]"});
}

TEST(Resize, Errors) {
  expect_infer_error("resize {sizes = [2]}", {"f32[2, 3]"}, "1 sizes for rank 2");
  expect_infer_error("resize {sizes = [2, 3], scales = [1]}", {"f32[2, 3]"}, "1 scales for rank 2");
  expect_infer_error("resize {sizes = [2, 6], roi = [0, 0, 1, 1]}", {"f32[2, 3]"},
                     "4 numbers ... roi ... 0");
  expect_infer_error("resize {sizes = [2, 6], coordinates = tf_crop_and_resize}", {"f32[2, 3]"},
                     "0 numbers ... roi ... 4");
  expect_infer_error("resize {sizes = [2, 6], antialias = true}", {"f32[2, 3]"},
                     "antialias ... mode ... linear");
  expect_infer_error("resize {sizes = [2, 6], mode = linear}", {"i32[2, 3]"},
                     "mode linear ... real ... x is i32");
  expect_infer_error("resize {sizes = [2, 6], scales = [1, 0]}", {"f32[2, 3]"},
                     "scale 0 is not positive");
  expect_infer_error("resize {sizes = [N, 6]}", {"f32[M, 3]"}, "axis 0 ... M to N ... static");
  expect_infer_error("resize {sizes = [2, 3]}", {"f32[2, 0]"}, "nothing to sample");
  expect_infer_error("resize {sizes = [-2, 3]}", {"f32[2, 3]"}, "size -2 ... axis 0 ... negative");
  expect_infer_error("resize {sizes = [1], mode = linear, antialias = true}", {"f32[100000]"},
                     "antialias ... 1024-fold", ErrorCode::limit);
}

}  // namespace
}  // namespace hone::tested::HONE_FILE
