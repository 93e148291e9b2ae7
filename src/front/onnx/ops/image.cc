#include <algorithm>
#include <cmath>

#include "front/onnx/flow.h"
#include "front/onnx/ops/indices.h"
#include "front/onnx/registry.h"
#include "tensor/counting.h"

// Images resampled, and put together from columns.

namespace hone::onnx_io {
namespace {

// ---- What is asked for --------------------------------------------------------------------------

struct Sampling {
  std::string mode = "nearest";
  std::string coordinates = "half_pixel";
  std::string nearest = "round_prefer_floor";
  double cubic_a = -0.75;
  double extrapolation = 0;
  bool exclude_outside = false;
  bool antialias = false;
  bool is_simple = false;         // nearest: down where the image grows, up where it shrinks
  std::vector<double> roi;        // all starts, then all ends; for tf_crop_and_resize
  std::vector<Value> roi_values;  // the same if the graph computes them, f64[]

  bool crops(size_t axis, size_t rank) const {
    return !roi_values.empty() || (!roi.empty() && (roi[axis] != 0 || roi[rank + axis] != 1));
  }
};

// One axis that changes, or may.
struct ResizedAxis {
  int axis = 0;
  Dim in = 0, out = 0;
  std::optional<double> scale;  // a number that was given
  Value scale_value;            // one that the graph computes, f64[]; absent: out / in

  bool is_static() const { return in.is_static() && out.is_static() && !scale_value; }
  bool changes() const { return !(in == out) || (scale && *scale != 1) || scale_value; }
};

// ---- Axes of unknown size -----------------------------------------------------------------------

// The source coordinate of each result position: f64[out].
Value source_of(Builder& b, const ResizedAxis& a, const Sampling& s, size_t rank) {
  auto number = [&](Dim dim) { return cast(size_value(b, dim), DType::f64); };
  Value x = iota(b, DType::f64, {a.out}, 0), in = number(a.in), out = number(a.out);
  Value scale = a.scale ? b.scalar(DType::f64, *a.scale) : a.scale_value;
  if (!scale) scale = out / in;
  Value half_pixel = (x + 0.5) / scale - 0.5;
  Value is_single = compare("le", out, 1), zero = b.scalar(DType::f64, 0);
  if (s.coordinates == "asymmetric") return x / scale;
  if (s.coordinates == "align_corners") {
    Value width = a.scale || a.scale_value ? scale * in : out;  // not always whole
    return select(is_single, zero, x * ((in - 1) / (width - 1)));
  }
  if (s.coordinates == "pytorch_half_pixel") return select(is_single, zero, half_pixel);
  if (s.coordinates == "half_pixel_symmetric")
    return in / 2 * (1 - out / (scale * in)) + half_pixel;
  if (s.coordinates == "tf_crop_and_resize") {
    const size_t i = static_cast<size_t>(a.axis);
    auto part = [&](size_t k) {
      return s.roi.empty() ? s.roi_values[k] : b.scalar(DType::f64, s.roi[k]);
    };
    Value start = part(i), end = part(rank + i);
    Value step = (in - 1) * (end - start) / maximum(out - 1, 1);
    return select(is_single, (in - 1) * (start + end) * 0.5, x * step + (in - 1) * start);
  }
  return half_pixel;
}

Value rounded(Value x, const std::string& how) {
  if (how == "floor") return unary(Opcode::floor, x);
  if (how == "ceil") return unary(Opcode::ceil, x);
  return how == "round_prefer_floor" ? unary(Opcode::ceil, x - 0.5) : unary(Opcode::floor, x + 0.5);
}

// The weight of a source element at a distance.
Value kernel_of(Value distance, const Sampling& s) {
  Value x = unary(Opcode::abs, distance);
  if (s.mode == "linear") return maximum(1 - x, 0);
  const double a = s.cubic_a;  // Keys' cubic convolution with slope a at 1
  Value near = (x * (a + 2) - (a + 3)) * x * x + 1;
  Value far = ((x * a - 5 * a) * x + 8 * a) * x - 4 * a;
  Value none = x.builder().scalar(x.dtype(), 0);
  return select(compare("le", x, 1), near, select(compare("lt", x, 2), far, none));
}

Value within(Builder& b, Value place, Dim size) {
  Value last = cast(size_value(b, size), DType::f64) - 1;
  return binary(Opcode::and_, compare("ge", place, 0), compare("le", place, last));
}

// As the op resize, with indices and weights that the graph computes.
Value sampled(Node& n, Value x, const ResizedAxis& a, const Sampling& s) {
  if (s.antialias)
    n.unsupported("axis {} goes from {} to {}; with antialias that needs numbers", a.axis,
                  a.in.to_string(), a.out.to_string());
  Builder& b = n.builder();
  Value source = source_of(b, a, s, static_cast<size_t>(x.rank()));
  auto element = [&](Value place) {
    return looked_up(x, cast(place, DType::i64), a.axis);  // clamped to the edge
  };
  Value y;
  if (s.mode == "nearest") {
    Value place = rounded(source, s.nearest);
    if (s.is_simple && a.scale_value)
      place = select(compare("lt", a.scale_value, 1), rounded(source, "ceil"), place);
    y = element(place);
  } else {
    Value base = unary(Opcode::floor, source), total;
    const int first = s.mode == "linear" ? 0 : -1, last = s.mode == "linear" ? 1 : 2;
    for (int tap = first; tap <= last; ++tap) {
      Value place = base + static_cast<double>(tap);
      Value weight = kernel_of(source - place, s);
      if (s.exclude_outside) weight = select(within(b, place, a.in), weight, weight * 0);
      total = total ? total + weight : weight;
      Value taken = element(place);
      Value term = taken * broadcast(cast(weight, x.dtype()), taken.dims(), {a.axis});
      y = y ? y + term : term;
    }
    if (s.exclude_outside) y = y / broadcast(cast(total, x.dtype()), y.dims(), {a.axis});
  }
  if (s.coordinates != "tf_crop_and_resize") return y;
  Value inside = within(b, source, a.in);
  return select(broadcast(inside, y.dims(), {a.axis}), y, b.scalar(y.dtype(), s.extrapolation));
}

// ---- Resampling ---------------------------------------------------------------------------------

// All axes of known size in one op, the others on their own.
Value resized_reals(Node& n, Value x, const std::vector<ResizedAxis>& axes, const Sampling& s) {
  const size_t rank = static_cast<size_t>(x.rank());
  Dims sizes = x.dims();
  std::vector<double> scales(rank, 1), roi = s.roi;
  bool has_scales = false, any = false;
  for (const ResizedAxis& a : axes) {
    const size_t i = static_cast<size_t>(a.axis);
    if (a.is_static() && s.roi_values.empty() && (a.changes() || s.crops(i, rank))) {
      any = true;
      sizes[i] = a.out;
      has_scales |= a.scale.has_value();
      const double in = static_cast<double>(a.in.value()), out = static_cast<double>(a.out.value());
      scales[i] = a.scale ? *a.scale : in > 0 && out > 0 ? out / in : 1;
    } else if (!roi.empty()) {
      roi[i] = 0, roi[rank + i] = 1;
    }
  }
  if (any) {
    x = n.builder().op(Opcode::resize, {x},
                       {{"sizes", sizes},
                        {"scales", has_scales ? scales : std::vector<double>()},
                        {"mode", s.mode},
                        {"coordinates", s.coordinates},
                        {"nearest", s.nearest},
                        {"cubic_a", s.cubic_a},
                        {"exclude_outside", s.exclude_outside},
                        {"extrapolation", s.extrapolation},
                        {"roi", roi},
                        {"antialias", s.antialias}});
  }
  for (const ResizedAxis& a : axes) {
    const bool changes = a.changes() || s.crops(static_cast<size_t>(a.axis), rank);
    if (changes && !(a.is_static() && s.roi_values.empty())) x = sampled(n, x, a, s);
  }
  return x;
}

// The corners that are aligned are those of the scaled image, whose size need not be whole; the op
// has that of the result. Then the positions are divided by another scale.
void align_fractions(std::vector<ResizedAxis>& axes, Sampling& s) {
  if (s.coordinates != "align_corners") return;
  auto width_of = [](const ResizedAxis& a) { return *a.scale * static_cast<double>(a.in.value()); };
  const bool is_whole = std::all_of(axes.begin(), axes.end(), [&](const ResizedAxis& a) {
    return !a.is_static() || !a.scale ||
           std::abs(width_of(a) - static_cast<double>(a.out.value())) < 1e-4 * width_of(a);
  });
  const bool is_static = std::all_of(axes.begin(), axes.end(),
                                     [](const ResizedAxis& a) { return a.is_static() && a.scale; });
  if (is_whole || !is_static) return;
  s.coordinates = "asymmetric";
  for (ResizedAxis& a : axes) {
    const double in = static_cast<double>(a.in.value());
    constexpr double kOnlyFirst = 1e15;  // of one element all positions are the first
    a.scale = in > 1 && width_of(a) > 1 ? (width_of(a) - 1) / (in - 1) : kOnlyFirst;
  }
}

// Integers are interpolated as reals, then rounded.
Value resized(Node& n, Value x, const std::vector<ResizedAxis>& axes, const Sampling& s) {
  const DType dtype = x.dtype();
  if (s.mode == "nearest" || is_real(dtype)) return resized_reals(n, x, axes, s);
  if (!is_integer(dtype)) n.bad("mode {} of {}", s.mode, x.type().to_string());
  const DType real = bits(dtype) > 16 ? DType::f64 : DType::f32;
  Value y = resized_reals(n, cast(x, real), axes, s);
  return cast(unary(Opcode::round, y), dtype);
}

// ---- Sizes --------------------------------------------------------------------------------------

// size * scale, rounded down as float computes it; null if no dim says it.
std::optional<Dim> scaled_size(Dim in, double scale) {
  constexpr double kParts = 1 << 16;
  if (in.is_static()) {
    const float product = static_cast<float>(in.value()) * static_cast<float>(scale);
    return Dim(static_cast<int64_t>(std::clamp(std::floor(product), -1.0f, 1e15f)));
  }
  const double parts = scale * kParts;
  if (parts != std::floor(parts) || parts > 1e9) return std::nullopt;
  return floordiv(in * static_cast<int64_t>(parts), static_cast<int64_t>(kParts));
}

// The axes' sizes for scales that are numbers or that the graph computes.
std::vector<ResizedAxis> scaled_axes(Node& n, Value x, const Ints& axes, size_t operand,
                                     const std::vector<double>& extent) {
  Builder& b = n.builder();
  Value scales =
      with_size(n, n.in(operand), 0, static_cast<int64_t>(axes.size()), "the number of scales");
  if (scales.rank() != 1 || !scales.dim(0).is(static_cast<int64_t>(axes.size())))
    n.bad("scales of type {} for {} axes", scales.type().to_string(), axes.size());
  std::optional<Tensor> numbers = n.maybe_constant(operand);
  if (!numbers) {
    Value wrong = unary(Opcode::not_, compare("gt", scales, 0));
    n.must_be(reduce_sum(cast(wrong, DType::i64), {0}), 0, "the number of scales not above 0");
  }
  std::vector<ResizedAxis> result;
  std::vector<Number> measured;
  size_t unknown = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    ResizedAxis a = {static_cast<int>(axes[i]), x.dim(static_cast<int>(axes[i])), 0, {}, {}};
    std::optional<Dim> size;
    if (numbers) {
      a.scale = numbers->real_at(static_cast<int64_t>(i));
      if (!(*a.scale > 0) || std::isinf(*a.scale)) n.bad("the scale {} is not positive", *a.scale);
      size = scaled_size(a.in, *a.scale * extent[i]);
    } else {
      a.scale_value = cast(element_of(scales, static_cast<int64_t>(i)), DType::f64);
    }
    if (size) {
      measured.emplace_back(*size);
    } else {
      Value scale = a.scale ? b.scalar(DType::f64, *a.scale) : a.scale_value;
      Value product = cast(size_value(b, a.in), DType::f32) * cast(scale * extent[i], DType::f32);
      measured.emplace_back(cast(unary(Opcode::floor, product), DType::i64));
      ++unknown;
    }
    result.push_back(a);
  }
  const Dims sizes = n.sizes(measured, room_for_each(1, unknown));
  for (size_t i = 0; i < result.size(); ++i) result[i].out = sizes[i];
  return result;
}

std::vector<ResizedAxis> sized_axes(Node& n, Value x, const Ints& axes, size_t operand) {
  const Dims sizes = measured_sizes(n, operand);
  if (sizes.size() != axes.size()) n.bad("{} sizes for {} axes", sizes.size(), axes.size());
  std::vector<ResizedAxis> result;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int axis = static_cast<int>(axes[i]);
    result.push_back({axis, x.dim(axis), sizes[i], {}, {}});
  }
  return result;
}

// One scale for all axes, so that none gets larger (or smaller) than asked for.
void keep_aspect_ratio(Node& n, std::vector<ResizedAxis>& axes, const std::string& policy) {
  if (policy == "stretch") return;
  if (policy != "not_larger" && policy != "not_smaller")
    n.bad("keep_aspect_ratio_policy is '{}'", policy);
  std::optional<double> scale;
  for (const ResizedAxis& a : axes) {
    if (!a.is_static())
      n.unsupported("{} for sizes {} and {} that vary", policy, a.in.to_string(),
                    a.out.to_string());
    if (a.in.value() < 1) n.bad("axis {} of size {} has no ratio", a.axis, a.in.value());
    const double ratio = static_cast<double>(a.out.value()) / static_cast<double>(a.in.value());
    const bool is_better = scale && (policy == "not_larger" ? ratio < *scale : ratio > *scale);
    if (!scale || is_better) scale = ratio;
  }
  for (ResizedAxis& a : axes) {
    a.scale = *scale;
    a.out = static_cast<int64_t>(std::floor(*scale * static_cast<double>(a.in.value()) + 0.5));
  }
}

Ints all_axes(Value x) { return counting(0, x.rank()); }

// Upsample and the first Resize: positions are divided by the scale, and rounded down
// where the image grows, up where it shrinks.
Value simply_resized(Node& n, Value x, const std::vector<ResizedAxis>& axes,
                     const std::string& mode) {
  Sampling s;
  s.mode = mode == "bilinear" ? "linear" : mode;
  s.coordinates = "asymmetric";
  s.is_simple = true;
  if (s.mode != "nearest" && s.mode != "linear") n.bad("mode is '{}'", mode);
  std::vector<ResizedAxis> growing, shrinking;
  for (const ResizedAxis& a : axes) {
    (a.scale && *a.scale < 1 ? shrinking : growing).push_back(a);
  }
  s.nearest = "floor";
  x = resized(n, x, growing, s);  // and those whose scale is computed
  s.nearest = "ceil";
  return shrinking.empty() ? x : resized(n, x, shrinking, s);
}

}  // namespace

// ---- Upsample, Resize ---------------------------------------------------------------------------

// Each channel has a bias of its own.
void map_image_scaler(Node& n) {
  Value x = n.in();
  n.require_rank(x, "the image", 4, 4);
  if (!is_real(x.dtype())) n.bad("the image is {}, must have reals", x.type().to_string());
  const std::vector<double> bias = n.reals("bias");
  const auto count = static_cast<int64_t>(bias.size());
  if (count == 0 || (x.dim(1).is_static() && !x.dim(1).is(count)))
    n.bad("bias has {} numbers for {} channels", count, x.dim(1).to_string());
  const Type type = Type::get(x.dtype(), {count, 1, 1});
  n.out(x * n.real("scale", 1) + n.builder().constant(Tensor::from_reals(type, bias)));
}

void map_upsample(Node& n) {
  Value x = n.in();
  const std::string mode = n.word("mode", "nearest");
  const Ints axes = all_axes(x);
  const std::vector<double> extent(axes.size(), 1);
  if (n.version() >= 9) {
    n.out(simply_resized(n, x, scaled_axes(n, x, axes, 1, extent), mode));
    return;
  }
  std::vector<double> scales;
  if (n.version() >= 7) {
    scales = n.reals("scales");
  } else {
    n.require_rank(x, "the input", 4, 4);
    scales = {1, 1, n.real("height_scale"), n.real("width_scale")};
  }
  if (scales.size() != axes.size()) n.bad("{} scales for rank {}", scales.size(), axes.size());
  std::vector<ResizedAxis> resized;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Dim in = x.dim(static_cast<int>(i));
    if (!(scales[i] > 0) || std::isinf(scales[i])) n.bad("the scale {} is not positive", scales[i]);
    std::optional<Dim> out = scaled_size(in, scales[i]);
    if (!out) n.unsupported("axis {} of size {} is scaled by {}", i, in.to_string(), scales[i]);
    resized.push_back({static_cast<int>(i), in, *out, scales[i], {}});
  }
  n.out(simply_resized(n, x, resized, mode));
}

namespace {

Sampling sampling_of(Node& n) {
  Sampling s;
  s.mode = n.word("mode", s.mode);
  s.coordinates = n.word("coordinate_transformation_mode", s.coordinates);
  s.nearest = n.word("nearest_mode", s.nearest);
  s.cubic_a = n.real("cubic_coeff_a", s.cubic_a);
  s.extrapolation = n.real("extrapolation_value", 0);
  s.exclude_outside = n.flag("exclude_outside");
  s.antialias = n.version() >= 18 && n.flag("antialias");
  if (s.mode == "nearest" && s.antialias) n.bad("antialias with mode nearest");
  if (s.mode != "nearest" && s.mode != "linear" && s.mode != "cubic") n.bad("mode is '{}'", s.mode);
  if (s.mode == "nearest") s.exclude_outside = false;
  // (x + 0.5) / scale, which is half_pixel moved by a half.
  if (n.version() < 13 && s.coordinates == "tf_half_pixel_for_nn") {
    s.coordinates = "half_pixel";
    if (s.mode != "nearest" || s.nearest == "ceil" || s.nearest == "round_prefer_ceil")
      n.unsupported("tf_half_pixel_for_nn with mode {} and nearest_mode {}", s.mode, s.nearest);
    s.nearest = s.nearest == "floor" ? "round_prefer_ceil" : "ceil";
  }
  return s;
}

// The region for tf_crop_and_resize, by axis of x.
void read_roi(Node& n, Value x, const Ints& axes, Sampling& s) {
  const size_t rank = static_cast<size_t>(x.rank()), count = axes.size();
  Value given = with_size(n, n.in(1), 0, static_cast<int64_t>(2 * count), "the length of the roi");
  if (given.rank() != 1 || !given.dim(0).is(static_cast<int64_t>(2 * count)))
    n.bad("a roi of type {} for {} axes, want {} numbers", given.type().to_string(), count,
          2 * count);
  auto each = [&](auto&& set) {
    for (size_t i = 0; i < 2 * count; ++i)
      set((i < count ? 0 : rank) + static_cast<size_t>(axes[i % count]), i);
  };
  if (n.maybe_constant(1)) {
    const std::vector<double> numbers = n.reals(1);
    s.roi.resize(2 * rank);
    std::fill(s.roi.begin() + static_cast<int64_t>(rank), s.roi.end(), 1);
    each([&](size_t to, size_t from) { s.roi[to] = numbers[from]; });
    return;
  }
  Builder& b = n.builder();
  s.roi_values.assign(2 * rank, b.scalar(DType::f64, 0));
  std::fill(s.roi_values.begin() + static_cast<int64_t>(rank), s.roi_values.end(),
            b.scalar(DType::f64, 1));
  each([&](size_t to, size_t from) {
    s.roi_values[to] = cast(element_of(given, static_cast<int64_t>(from)), DType::f64);
  });
}

// An operand that is there and not the empty tensor, which stands for none.
bool is_given(Node& n, size_t operand) {
  return n.has(operand) && !n.in(operand).type().elements().is(0);
}

}  // namespace

void map_resize(Node& n) {
  Value x = n.in();
  if (n.version() < 11) {
    const Ints axes = all_axes(x);
    const std::vector<double> extent(axes.size(), 1);
    const std::string mode = n.word("mode", "nearest");
    n.out(simply_resized(n, x, scaled_axes(n, x, axes, 1, extent), mode));
    return;
  }
  Sampling s = sampling_of(n);
  Ints axes = all_axes(x);
  if (n.version() >= 18 && n.has_attribute("axes"))
    axes = distinct_axes(n, n.ints("axes"), x.rank());
  const std::string policy =
      n.version() < 18 ? "stretch" : n.word("keep_aspect_ratio_policy", "stretch");
  if (s.coordinates == "tf_crop_and_resize") read_roi(n, x, axes, s);
  if (is_given(n, 2) == is_given(n, 3))
    n.bad("has {} scales and sizes", is_given(n, 2) ? "both" : "neither");
  std::vector<ResizedAxis> target;
  if (is_given(n, 2)) {
    if (!s.roi_values.empty()) n.unsupported("scales with a region that depends on data");
    std::vector<double> extent(axes.size(), 1);  // of the region, as a part of the axis
    for (size_t i = 0; i < axes.size() && !s.roi.empty(); ++i) {
      const size_t at = static_cast<size_t>(axes[i]);
      extent[i] = s.roi[static_cast<size_t>(x.rank()) + at] - s.roi[at];
    }
    target = scaled_axes(n, x, axes, 2, extent);
  } else {
    target = sized_axes(n, x, axes, 3);
    keep_aspect_ratio(n, target, policy);
  }
  align_fractions(target, s);
  n.out(resized(n, x, target, s));
}

void map_image_decoder(Node& n) { n.unsupported("decodes image files"); }

// ---- Col2Im -------------------------------------------------------------------------------------

namespace {

struct Columns {
  Dims image;
  Ints block, dilations, pads, strides;

  size_t rank() const { return image.size(); }
};

Ints positive_ints(Node& n, std::string_view name, size_t count, int64_t fallback, int64_t least) {
  Ints values = n.has_attribute(name) ? n.ints(name) : Ints(count, fallback);
  if (values.size() != count) n.bad("{} has {} entries, want {}", name, values.size(), count);
  for (int64_t value : values)
    if (value < least || value > (int64_t{1} << 31)) n.bad("{} has the number {}", name, value);
  return values;
}

Columns columns_of(Node& n) {
  Columns c;
  // For numbers, and for expressions of open sizes, it is known that blocks fit into an image.
  std::optional<Dims> image = n.known(1);
  if (!image) {
    const Ints numbers = n.integers(1);
    image = Dims(numbers.begin(), numbers.end());
  }
  c.image = *image;
  c.block = n.integers(2);
  if (c.image.empty() || c.image.size() != c.block.size() || c.rank() > kMaxRank / 2)
    n.bad("an image of rank {} with a block of rank {}", c.image.size(), c.block.size());
  for (int64_t size : c.block)
    if (size < 1 || size > (int64_t{1} << 31)) n.bad("the block has the size {}", size);
  c.dilations = positive_ints(n, "dilations", c.rank(), 1, 1);
  c.strides = positive_ints(n, "strides", c.rank(), 1, 1);
  c.pads = positive_ints(n, "pads", 2 * c.rank(), 0, 0);
  return c;
}

// How many blocks there are along each dim.
Dims grid_of(Node& n, const Columns& c) {
  Dims grid;
  for (size_t i = 0; i < c.rank(); ++i) {
    const Dim room =
        c.image[i] + c.pads[i] + c.pads[c.rank() + i] - 1 - Dim(c.dilations[i]) * (c.block[i] - 1);
    if (!provably_le(0, room))
      n.bad("blocks of {} do not fit into {}", c.block[i], c.image[i].to_string());
    grid.push_back(floordiv(room, c.strides[i]) + 1);
  }
  return grid;
}

// Where element [k, l] of the columns goes in the flat image; past its end if outside.
Value place_of(Builder& b, const Columns& c, const Dims& grid) {
  Dims dims(c.block.begin(), c.block.end());
  dims.insert(dims.end(), grid.begin(), grid.end());
  Value place, inside;
  Dim stride = 1;
  for (size_t i = c.rank(); i-- > 0;) {
    const int k = static_cast<int>(i), l = static_cast<int>(c.rank() + i);
    Value at = iota(b, DType::i64, dims, k) * static_cast<double>(c.dilations[i]) +
               iota(b, DType::i64, dims, l) * static_cast<double>(c.strides[i]) -
               static_cast<double>(c.pads[i]);
    Value fits =
        binary(Opcode::and_, compare("ge", at, 0), compare("lt", at, size_value(b, c.image[i])));
    Value part = at * size_value(b, stride);
    place = place ? place + part : part;
    inside = inside ? binary(Opcode::and_, inside, fits) : fits;
    stride *= c.image[i];
  }
  return select(inside, place, size_value(b, stride));
}

}  // namespace

void map_col2im(Node& n) {
  Value x = n.in();
  n.require_rank(x, "the input", 3, 3);
  const Columns c = columns_of(n);
  const Dims grid = grid_of(n, c);
  Dim block = 1, blocks = 1, pixels = 1;
  for (size_t i = 0; i < c.rank(); ++i) {
    block *= c.block[i], blocks *= grid[i], pixels *= c.image[i];
  }
  std::optional<Dim> channels = n.divided(x.dim(1), block);
  if (!channels || !(x.dim(2) == blocks))
    n.bad("{} has columns of {} elements and {} of them; the blocks have {}, and there are {}",
          x.type().to_string(), x.dim(1).to_string(), x.dim(2).to_string(), block.to_string(),
          blocks.to_string());
  Builder& b = n.builder();
  const Dim planes = x.dim(0) * *channels;
  Value place = reshape(place_of(b, c, grid), {block * blocks});
  Value image =
      b.op(Opcode::scatter,
           {b.full(x.dtype(), {planes, pixels}, 0), place, reshape(x, {planes, block * blocks})},
           {{"window_dims", Ints{0}},
            {"inserted_dims", Ints{1}},
            {"index_map", Ints{1}},
            {"index_vector_dim", int64_t{1}},
            {"combine", "add"}});
  Dims dims = {x.dim(0), *channels};
  dims.insert(dims.end(), c.image.begin(), c.image.end());
  n.out(reshape(image, dims));
}

}  // namespace hone::onnx_io
