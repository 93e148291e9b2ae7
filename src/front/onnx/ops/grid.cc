#include <algorithm>

#include "front/onnx/flow.h"
#include "front/onnx/ops/indices.h"
#include "front/onnx/registry.h"

// Images sampled at points that are values: GridSample and AffineGrid.

namespace hone::onnx_io {
namespace {

enum class Mode { nearest, linear, cubic };
enum class Padding { zeros, border, reflection };

struct GridSampler {
  Mode mode = Mode::linear;
  Padding padding = Padding::zeros;
  bool align_corners = false;
};

// One source element per point along one axis.
struct Tap {
  Value index;   // i64, in 0..size-1
  Value weight;  // absent: 1
  Value inside;  // bool; absent: always
};

GridSampler sampler_of(Node& n) {
  GridSampler s;
  const bool is_old = n.version() < 20;
  const std::string mode = n.word("mode", is_old ? "bilinear" : "linear");
  if (mode == "nearest")
    s.mode = Mode::nearest;
  else if (mode == (is_old ? "bicubic" : "cubic"))
    s.mode = Mode::cubic;
  else if (mode != (is_old ? "bilinear" : "linear"))
    n.bad("mode is '{}'", mode);
  const std::string padding = n.word("padding_mode", "zeros");
  if (padding == "border")
    s.padding = Padding::border;
  else if (padding == "reflection")
    s.padding = Padding::reflection;
  else if (padding != "zeros")
    n.bad("padding_mode is '{}'", padding);
  s.align_corners = n.flag("align_corners");
  return s;
}

// The ends at which an axis reflects.
struct Ends {
  Value low, high;
};

Ends ends_of(Value size, bool align_corners) {
  if (align_corners) return {size * 0, size - 1};
  return {size * 0 - 0.5, size - 0.5};
}

Value reflected(Value x, const Ends& ends) {
  Value range = maximum(ends.high - ends.low, 1);
  Value place = x - ends.low;
  // Back and forth: the part of a period of twice the range.
  place = place - unary(Opcode::floor, place / (range * 2)) * range * 2;
  return ends.low + minimum(place, range * 2 - place);
}

// The source coordinate for one from -1 to 1.
Value source_of(Value x, Value size, const GridSampler& s) {
  x = s.align_corners ? (x + 1) / 2 * (size - 1) : ((x + 1) * size - 1) / 2;
  if (s.mode == Mode::nearest) x = unary(Opcode::round, x);
  if (s.padding == Padding::zeros) return x;
  const Ends ends = ends_of(size, s.align_corners);
  Value outside = binary(Opcode::or_, compare("lt", x, ends.low), compare("gt", x, ends.high));
  Value moved =
      s.padding == Padding::border ? maximum(minimum(x, size - 1), 0) : reflected(x, ends);
  return select(outside, moved, x);
}

Tap tap_at(Value place, Value weight, Value size, const GridSampler& s) {
  Tap tap = {{}, weight, {}};
  Value last = size - 1;
  if (s.padding == Padding::reflection) place = reflected(place, ends_of(size, s.align_corners));
  if (s.padding == Padding::zeros)
    tap.inside = binary(Opcode::and_, compare("ge", place, 0), compare("le", place, last));
  tap.index = cast(maximum(minimum(place, last), 0), DType::i64);
  return tap;
}

// Keys' cubic convolution at a distance of 0 to 2.
Value cubic_weight(Value x, bool is_far) {
  constexpr double kA = -0.75;
  if (is_far) return ((x * kA - 5 * kA) * x + 8 * kA) * x - 4 * kA;
  return (x * (kA + 2) - (kA + 3)) * x * x + 1;
}

std::vector<Tap> taps_of(Value x, Value size, const GridSampler& s) {
  x = source_of(x, size, s);
  if (s.mode == Mode::nearest) return {tap_at(x, {}, size, s)};
  Value base = unary(Opcode::floor, x), part = x - base;
  if (s.mode == Mode::linear)
    return {tap_at(base, 1 - part, size, s), tap_at(base + 1, part, size, s)};
  return {tap_at(base - 1, cubic_weight(part + 1, true), size, s),
          tap_at(base, cubic_weight(part, false), size, s),
          tap_at(base + 1, cubic_weight(1 - part, false), size, s),
          tap_at(base + 2, cubic_weight(2 - part, true), size, s)};
}

// Sums over all combinations of taps. rows: [batch * pixels, channels], the image's pixels;
// taps: by axis, [batch, points] each.
class Combination {
 public:
  Combination(Value rows, Value base, std::vector<std::vector<Tap>> taps, Dims image)
      : rows_(rows), base_(base), taps_(std::move(taps)), image_(std::move(image)) {}

  Value sum() {
    add(0, base_, {}, {});
    return sum_;
  }

 private:
  // From here on: the flat position so far, the product of weights, and whether all are inside.
  void add(size_t axis, Value position, Value weight, Value inside) {
    if (axis == taps_.size()) return add_term(position, weight, inside);
    Builder& b = rows_.builder();
    for (const Tap& tap : taps_[axis]) {
      Value next = position * size_value(b, image_[axis]) + tap.index;
      Value product = weight && tap.weight ? weight * tap.weight : weight ? weight : tap.weight;
      Value both = inside && tap.inside ? binary(Opcode::and_, inside, tap.inside)
                   : inside             ? inside
                                        : tap.inside;
      add(axis + 1, next, product, both);
    }
  }

  void add_term(Value position, Value weight, Value inside) {
    Builder& b = rows_.builder();
    Value term = looked_up(rows_, position, 0);  // [batch, points, channels]
    if (inside) term = select(unsqueeze(inside, 2), term, b.scalar(term.dtype(), 0));
    if (weight) term = term * unsqueeze(cast(weight, term.dtype()), 2);
    sum_ = sum_ ? sum_ + term : term;
  }

  Value rows_, base_, sum_;
  std::vector<std::vector<Tap>> taps_;
  Dims image_;
};

// [batch, channels, spatial...] -> [batch * pixels, channels].
Value pixel_rows(Value x) {
  Ints permutation = {0};
  for (int64_t i = 2; i < x.rank(); ++i) permutation.push_back(i);
  permutation.push_back(1);
  Value last = transpose(x, permutation);
  Dim rows = 1;
  for (int i = 0; i + 1 < last.rank(); ++i) rows *= last.dim(i);
  return reshape(last, {rows, x.dim(1)});
}

void check_grid(Node& n, Value x, Value grid, const GridSampler& s) {
  n.require_rank(x, "the image", 3);
  if (n.version() < 20) n.require_rank(x, "the image", 4, 4);
  const int spatial = x.rank() - 2;
  if (grid.rank() != x.rank() || !(grid.dim(0) == x.dim(0)) || !grid.dim(-1).is(spatial) ||
      !is_real(grid.dtype()))
    n.bad("a grid of type {} for an image of type {}", grid.type().to_string(),
          x.type().to_string());
  if (spatial > (s.mode == Mode::cubic ? 3 : 6)) n.unsupported("samples in {} dims", spatial);
  if (s.mode != Mode::nearest && !is_real(x.dtype()))
    n.unsupported("interpolates {}", x.type().to_string());
}

}  // namespace

void map_grid_sample(Node& n) {
  Value x = n.in();
  Value grid = with_size(n, n.in(1), n.in(1).rank() - 1, x.rank() - 2, "the last dim of the grid");
  const GridSampler s = sampler_of(n);
  check_grid(n, x, grid, s);
  Builder& b = n.builder();
  const int spatial = x.rank() - 2;
  Dims outer = grid.dims(), image = x.dims();
  outer.pop_back();
  image.erase(image.begin(), image.begin() + 2);
  Dim points = 1;
  for (size_t i = 1; i < outer.size(); ++i) points *= outer[i];
  const DType real = grid.dtype() == DType::f64 ? DType::f64 : DType::f32;
  grid = reshape(cast(grid, real), {x.dim(0), points, spatial});
  std::vector<std::vector<Tap>> taps;
  for (int i = 0; i < spatial; ++i) {
    // The grid names the last dim first.
    Value coordinate = squeeze(slice(grid, 2, spatial - 1 - i, spatial - i), 2);
    Value size = cast(size_value(b, image[static_cast<size_t>(i)]), real);
    taps.push_back(taps_of(coordinate, size, s));
  }
  Value batch = iota(b, DType::i64, {x.dim(0), points}, 0);
  Value y = Combination(pixel_rows(x), batch, std::move(taps), image).sum();
  Dims dims = {x.dim(0), x.dim(1)};
  dims.insert(dims.end(), outer.begin() + 1, outer.end());
  n.out(reshape(transpose(y, {0, 2, 1}), dims));
}

// ---- AffineGrid ---------------------------------------------------------------------------------

namespace {

// The coordinates of an axis, from -1 to 1.
Value axis_points(Builder& b, DType dtype, Dim size, bool align_corners) {
  Value i = iota(b, dtype, {size}, 0), count = cast(size_value(b, size), dtype);
  if (align_corners) return i * (2 / maximum(count - 1, 1)) - 1;
  return (i * 2 + 1) / count - 1;
}

}  // namespace

void map_affine_grid(Node& n) {
  Value theta = n.in();
  const Dims sizes = measured_sizes(n, 1, 4);
  const bool align_corners = n.flag("align_corners");
  n.require_rank(theta, "theta", 3, 3);
  const int64_t spatial = static_cast<int64_t>(sizes.size()) - 2;
  if (spatial < 2 || spatial > 3 || !theta.dim(1).is(spatial) || !theta.dim(2).is(spatial + 1) ||
      !is_real(theta.dtype()))
    n.bad("theta of type {} for a size of {} dims", theta.type().to_string(), sizes.size());
  Builder& b = n.builder();
  const Dims image(sizes.begin() + 2, sizes.end());
  Dims column = image;
  column.push_back(1);
  std::vector<Value> parts;  // x, y, ..., 1: the last dim first
  for (int64_t i = spatial - 1; i >= 0; --i) {
    Value points = axis_points(b, theta.dtype(), image[static_cast<size_t>(i)], align_corners);
    parts.push_back(broadcast(points, column, {i}));
  }
  parts.push_back(b.full(theta.dtype(), column, 1));
  Value grid = concat(parts, -1);
  // [batch, spatial, homogeneous] with [image..., homogeneous].
  Value y = dot_general(theta, grid, {}, {}, {2}, {spatial});
  Ints permutation = {0};
  for (int64_t i = 0; i < spatial; ++i) permutation.push_back(i + 2);
  permutation.push_back(1);
  n.out(transpose(y, permutation));
}

}  // namespace hone::onnx_io
