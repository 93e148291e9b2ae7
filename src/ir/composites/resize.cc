#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "ir/composites/expansion.h"
#include "ir/composites/resize_samples.h"

// Resampling of images and the like. It is separable: each axis that changes becomes a weighted
// sum of a few gathered slices, with indices and weights computed here.

namespace hone {
namespace {

using In = std::span<const Value>;

// ---- Resampling ---------------------------------------------------------------------------------

Value resampled(Builder& b, Value x, const ResizeAxis& a, const Samples& s, double extrapolation) {
  const size_t out = static_cast<size_t>(a.out);
  const Dims dims = with_dim(x.dims(), a.index, a.out);
  auto index_of = [&](size_t tap) {
    const auto begin = s.index.begin() + static_cast<int64_t>(tap * out);
    return integers(b, DType::i64, Ints(begin, begin + a.out));
  };
  Value sum;
  if (s.taps == 1) {
    sum = take(x, index_of(0), a.index);
  } else {
    for (size_t tap = 0; tap < s.taps; ++tap) {
      const std::span<const double> weights = std::span(s.weight).subspan(tap * out, out);
      const bool last = tap + 1 == s.taps && !sum;
      if (!last && std::all_of(weights.begin(), weights.end(), [](double w) { return w == 0; }))
        continue;
      Value term =
          take(x, index_of(tap), a.index) * along(reals(b, x.dtype(), weights), dims, a.index);
      sum = sum ? sum + term : term;
    }
  }
  if (std::find(s.outside.begin(), s.outside.end(), true) == s.outside.end()) return sum;
  Ints outside(s.outside.begin(), s.outside.end());
  Value mask = along(integers(b, DType::boolean, outside), dims, a.index);
  return select(mask, b.scalar(x.dtype(), extrapolation), sum);
}

// True if each element of the source stands several times side by side, and nothing else.
bool repeats_each(const ResizeAxis& a, const Samples& s) {
  if (s.taps != 1 || a.in == 0 || a.out < a.in || a.out % a.in != 0) return false;
  if (std::find(s.outside.begin(), s.outside.end(), true) != s.outside.end()) return false;
  for (int64_t i = 0; i < a.out; ++i)
    if (s.index[static_cast<size_t>(i)] != i / (a.out / a.in)) return false;
  return true;
}

// Repeats each element along each dim, side by side.
Value repeated(Value x, const Ints& times) {
  Dims apart, spread, together;
  Ints map;
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t count = times[static_cast<size_t>(i)];
    map.push_back(static_cast<int64_t>(spread.size()));
    apart.push_back(x.dim(i)), spread.push_back(x.dim(i));
    if (count > 1) spread.push_back(count);
    together.push_back(count * x.dim(i));
  }
  if (spread.size() == apart.size()) return x;
  return reshape(broadcast(x, spread, map), together);
}

// Sums along an axis are computed for all elements of the others: for few of them if axes that
// shrink come first. Neighbours along the last axis cannot be loaded at once, so it grows first.
void in_cheap_order(std::vector<ResizeAxis>& axes) {
  std::ranges::sort(axes, {}, [](const ResizeAxis& a) {
    return a.out > a.in ? std::pair(1, -a.index) : std::pair(0, a.index);
  });
}

// ---- Checks -------------------------------------------------------------------------------------

Status check_attributes(Op op, Value x) {
  const size_t rank = static_cast<size_t>(x.rank());
  const std::string& mode = op.word("mode");
  const bool crops = op.word("coordinates") == "tf_crop_and_resize";
  if (op.dims("sizes").size() != rank)
    return bad_input("{} sizes for rank {}", op.dims("sizes").size(), rank);
  if (!op.reals("scales").empty() && op.reals("scales").size() != rank)
    return bad_input("{} scales for rank {}", op.reals("scales").size(), rank);
  if (op.reals("roi").size() != (crops ? 2 * rank : 0)) {
    return bad_input(
        "there are {} numbers in roi, want {}: all starts, then all ends; only "
        "tf_crop_and_resize takes it",
        op.reals("roi").size(), crops ? 2 * rank : 0);
  }
  if (mode == "nearest" && op.flag("antialias"))
    return bad_input("antialias needs mode linear or cubic");
  if (mode != "nearest" && !is_real(x.dtype()))
    return bad_input("mode {} needs a real element type, x is {}", mode, name(x.dtype()));
  for (double scale : op.reals("scales"))
    if (!(scale > 0) || std::isinf(scale)) return bad_input("scale {} is not positive", scale);
  for (double number : op.reals("roi"))
    if (!std::isfinite(number)) return bad_input("roi has the number {}", number);
  return {};
}

// The axis, or nothing if it stays as it is.
Result<std::optional<ResizeAxis>> axis_of(Op op, Value x, int index) {
  const size_t i = static_cast<size_t>(index), rank = static_cast<size_t>(x.rank());
  const Dim in = x.dim(index), out = op.dims("sizes")[i];
  const std::vector<double>&scales = op.reals("scales"), &roi = op.reals("roi");
  const bool whole = roi.empty() || (roi[i] == 0 && roi[rank + i] == 1);
  if (in == out && whole && (scales.empty() || scales[i] == 1)) return std::optional<ResizeAxis>();
  if (!in.is_static() || !out.is_static()) {
    return bad_input("axis {} goes from {} to {}: an axis that changes needs static sizes", index,
                     in.to_string(), out.to_string());
  }
  if (out.value() < 0) return bad_input("size {} of axis {} is negative", out.value(), index);
  // Its samples become constants; an antialiasing filter has up to in/out of them per element.
  constexpr int64_t kMaxSize = int64_t{1} << 24;
  if (std::max(in.value(), out.value()) > kMaxSize)
    return over_limit("axis {} goes from {} to {}; at most {}", index, in.value(), out.value(),
                      kMaxSize);
  if (in.is(0) && !out.is(0))
    return bad_input("axis {} goes from 0 to {}: there is nothing to sample", index, out.value());
  ResizeAxis a;
  a.index = index, a.in = in.value(), a.out = out.value();
  a.scale = !scales.empty()           ? scales[i]
            : a.in == 0 || a.out == 0 ? 1
                                      : static_cast<double>(a.out) / static_cast<double>(a.in);
  if (!roi.empty()) a.roi_start = roi[i], a.roi_end = roi[rank + i];
  return std::optional<ResizeAxis>(a);
}

constexpr int64_t kMaxTaps = 4096;

std::vector<Value> expand_resize(Builder& b, Op op, In in) {
  Value x = in[0];
  if (Status status = check_attributes(op, x); !status.ok())
    return failed(b, std::move(status).error());
  const Sampling sampling(op);
  std::vector<ResizeAxis> axes;
  for (int i = 0; i < x.rank(); ++i) {
    Result<std::optional<ResizeAxis>> axis = axis_of(op, x, i);
    if (!axis.ok()) return failed(b, std::move(axis).error());
    if (!*axis) continue;
    const ResizeAxis& a = axes.emplace_back(**axis);
    if (op.flag("antialias") && 4 / a.scale > static_cast<double>(kMaxTaps)) {
      return failed(b, over_limit("axis {} shrinks from {} to {}; with antialias at most {}-fold",
                                  i, a.in, a.out, kMaxTaps / 4));
    }
  }
  in_cheap_order(axes);
  Ints times(static_cast<size_t>(x.rank()), 1);
  for (const ResizeAxis& a : axes) {
    const Samples samples = samples_of(a, sampling);
    if (repeats_each(a, samples))
      times[static_cast<size_t>(a.index)] = a.out / a.in;
    else
      x = resampled(b, x, a, samples, op.real("extrapolation"));
    if (!b.ok()) return {};
  }
  return {repeated(x, times)};
}

constexpr AttrSpec kResizeAttrs[] = {
    {"sizes", AttrKind::dims, "", "the size of every dim of the result"},
    {"scales", AttrKind::reals, "[]", "result size / size as the coordinates see it; empty: exact"},
    {"mode", AttrKind::word, "nearest", "the interpolation", "nearest|linear|cubic"},
    {"coordinates", AttrKind::word, "half_pixel", "which source point a result position stands for",
     "half_pixel|half_pixel_symmetric|pytorch_half_pixel|align_corners|asymmetric|"
     "tf_crop_and_resize"},
    {"nearest", AttrKind::word, "round_prefer_floor", "rounding of coordinates in mode nearest",
     "round_prefer_floor|round_prefer_ceil|floor|ceil"},
    {"cubic_a", AttrKind::real, "-0.75", "parameter of the cubic kernel"},
    {"exclude_outside", AttrKind::flag, "false",
     "points outside get weight 0 instead of the nearest value inside"},
    {"extrapolation", AttrKind::real, "0", "value outside the roi's source (tf_crop_and_resize)"},
    {"roi", AttrKind::reals, "[]", "starts, then ends, as parts of 1 (tf_crop_and_resize)"},
    {"antialias", AttrKind::flag, "false", "when shrinking, the kernel covers all that it skips"}};

}  // namespace

extern const OpDef op_def_resize;
const OpDef op_def_resize = {
    .opcode = Opcode::resize,
    .summary = "resamples by nearest neighbour, linear or cubic interpolation",
    .semantics =
        "Separable. With x the position, s the scale, in and out the sizes, the source coordinate "
        "is: half_pixel (x + 0.5)/s - 0.5; half_pixel_symmetric in/2 * (1 - out/(s in)) + "
        "(x + 0.5)/s - 0.5; pytorch_half_pixel as half_pixel, 0 if out is 1; align_corners "
        "x (in - 1)/(out - 1), 0 if out is 1; asymmetric x/s; tf_crop_and_resize start (in - 1) + "
        "x (end - start)(in - 1)/(out - 1), the middle if out is 1. Points outside take the value "
        "at the edge. A weight of 0 times NaN or infinity is NaN. Axes that change need static "
        "sizes.",
    .operands = "x",
    .attrs = kResizeAttrs,
    .dtypes = kComputable,
    .expand = expand_resize};

}  // namespace hone
