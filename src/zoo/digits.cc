#include "zoo/digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "base/rng.h"

namespace hone {
namespace {

struct Point {
  double x = 0, y = 0;  // of a square from -1 to 1; y grows downwards
};
using Stroke = std::vector<Point>;  // its points are joined by straight lines
using Strokes = std::vector<Stroke>;

const std::array<Strokes, 10>& digits() {
  static const std::array<Strokes, 10> all = {{
      {{{0, -.9},
        {.4, -.7},
        {.55, 0},
        {.4, .7},
        {0, .9},
        {-.4, .7},
        {-.55, 0},
        {-.4, -.7},
        {0, -.9}}},
      {{{-.35, -.5}, {.05, -.9}, {.05, .9}}},
      {{{-.5, -.5}, {-.3, -.8}, {.1, -.9}, {.45, -.65}, {.4, -.25}, {-.55, .85}, {.55, .85}}},
      {{{-.45, -.75},
        {0, -.9},
        {.4, -.7},
        {.4, -.3},
        {0, -.05},
        {.45, .2},
        {.5, .6},
        {.1, .9},
        {-.5, .75}}},
      {{{.2, -.9}, {-.55, .3}, {.6, .3}}, {{.25, -.3}, {.25, .9}}},
      {{{.5, -.85},
        {-.4, -.85},
        {-.45, -.1},
        {.1, -.2},
        {.5, .15},
        {.45, .65},
        {0, .9},
        {-.5, .7}}},
      {{{.4, -.85},
        {-.1, -.6},
        {-.5, .1},
        {-.45, .65},
        {0, .9},
        {.45, .65},
        {.45, .2},
        {.05, 0},
        {-.4, .25}}},
      {{{-.55, -.85}, {.55, -.85}, {-.1, .9}}},
      {{{0, -.05},
        {-.4, -.35},
        {-.35, -.75},
        {0, -.9},
        {.35, -.75},
        {.4, -.35},
        {0, -.05},
        {-.5, .3},
        {-.4, .75},
        {0, .9},
        {.4, .75},
        {.5, .3},
        {0, -.05}}},
      {{{.4, -.25},
        {0, 0},
        {-.4, -.2},
        {-.45, -.65},
        {0, -.9},
        {.4, -.7},
        {.45, -.2},
        {.3, .5},
        {-.1, .9}}},
  }};
  return all;
}

// How an image differs from the strokes: points move alone, and all of them by a linear map.
Strokes distorted(const Strokes& strokes, Rng& rng) {
  constexpr double kAlone = .1, kSlope = .3, kSmallest = .65, kLargest = .95, kShift = .12;
  const double wide = rng.uniform(kSmallest, kLargest), high = rng.uniform(kSmallest, kLargest);
  const double lean = rng.uniform(-kSlope, kSlope), tilt = rng.uniform(-kSlope, kSlope) / 2;
  const double right = rng.uniform(-kShift, kShift), down = rng.uniform(-kShift, kShift);
  Strokes moved = strokes;
  for (Stroke& stroke : moved)
    for (Point& p : stroke) {
      const double x = p.x + rng.uniform(-kAlone, kAlone), y = p.y + rng.uniform(-kAlone, kAlone);
      p = {wide * x - lean * y + right, high * y + tilt * x + down};
    }
  return moved;
}

double distance(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
  const double at =
      length > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length, 0.0, 1.0) : 0;
  const double x = a.x + at * dx - p.x, y = a.y + at * dy - p.y;
  return std::sqrt(x * x + y * y);
}

// Appends the pixels, row by row.
void draw(const Strokes& strokes, Rng& rng, std::vector<double>& pixels) {
  constexpr double kPixel = 2.0 / kDigitSide, kNoise = .25;
  const double half_width = rng.uniform(.3, 1.1) * kPixel;
  for (int64_t i = 0; i < kDigitSide * kDigitSide; ++i) {
    const Point p = {(static_cast<double>(i % kDigitSide) + .5) * kPixel - 1,
                     (static_cast<double>(i / kDigitSide) + .5) * kPixel - 1};
    double nearest = 4;
    for (const Stroke& stroke : strokes)
      for (size_t k = 1; k < stroke.size(); ++k)
        nearest = std::min(nearest, distance(p, stroke[k - 1], stroke[k]));
    const double ink = std::clamp((half_width - nearest) / kPixel + .5, 0.0, 1.0);
    pixels.push_back(std::clamp(ink + rng.uniform(-kNoise, kNoise), 0.0, 1.0));
  }
}

}  // namespace

DigitSet draw_digits(int64_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<double> pixels;
  std::vector<int64_t> labels;
  pixels.reserve(static_cast<size_t>(count * kDigitSide * kDigitSide));
  for (int64_t i = 0; i < count; ++i) {
    labels.push_back(rng.between(0, 9));
    draw(distorted(digits()[static_cast<size_t>(labels.back())], rng), rng, pixels);
  }
  const Type images = Type::get(DType::f32, {count, kDigitSide * kDigitSide});
  return {Tensor::from_reals(images, pixels),
          Tensor::from_integers(Type::get(DType::i64, {count}), labels)};
}

}  // namespace hone
