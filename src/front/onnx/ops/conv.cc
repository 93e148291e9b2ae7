#include <algorithm>
#include <string>

#include "front/onnx/ops/quantize.h"
#include "front/onnx/ops/windows.h"
#include "front/onnx/registry.h"

// Convolutions.

namespace hone::onnx_io {
namespace {

Value with_bias(Node& n, Value y, Value bias) {
  if (!bias) return y;
  n.require_rank(bias, "the bias", 1, 1);
  return y + per_channel(bias, y);
}

// ---- ConvTranspose ------------------------------------------------------------------------------

// Weights [C, M / groups, kernel...] as those of the convolution that the op is, with the input
// spread out: [M, C / groups, reversed kernel...].
Value spread_kernel(Node& n, Value w, int64_t groups) {
  const Dims dims = w.dims();
  const std::optional<Dim> in = dims[0].divided_by(groups);
  if (!in)
    n.bad("the {} channels of the weights are not a multiple of {} groups", dims[0].to_string(),
          groups);
  Dims grouped = {groups, *in}, joined = {dims[1] * groups, *in};
  grouped.insert(grouped.end(), dims.begin() + 1, dims.end());
  joined.insert(joined.end(), dims.begin() + 2, dims.end());
  Ints permutation = {0, 2, 1}, spatial;
  for (int64_t i = 3; i < w.rank() + 1; ++i) permutation.push_back(i);
  for (int64_t i = 2; i < w.rank(); ++i) spatial.push_back(i);
  return reverse(reshape(transpose(reshape(w, grouped), permutation), joined), spatial);
}

// The elements to cut off one dim, in all, so that it gets the wanted size; negative if it has to
// grow.
void cut_to(Node& n, Dim total, bool smaller_first, Dim& low, Dim& high) {
  const bool cuts = provably_le(0, total);
  if (!cuts && !provably_le(total, 0))
    n.unsupported(
        "output_shape is not provably smaller, nor greater, than what the convolution "
        "gives: they differ by {}",
        total.to_string());
  const Dim half = cuts ? floordiv(total, 2) : Dim(0);
  low = cuts && !smaller_first ? total - half : half;
  high = total - low;
}

// The paddings: given, or such that the result has the shape that is asked for.
void transpose_paddings(Node& n, Value x, const Ints& extra, Windows& w) {
  const size_t spatial = w.rank();
  const std::string mode = read_auto_pad(n);
  const Ints pads = window_attribute(n, "pads", 2 * spatial, 0, 0);
  const bool shaped = !n.ints("output_shape").empty();
  const Ints shape = window_attribute(n, "output_shape", spatial, 0, 1);
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  // Version 1 states the rule the other way round.
  const bool smaller_first = (mode == "SAME_UPPER") == (n.version() >= 11);
  w.low.assign(spatial, 0);
  w.high.assign(spatial, 0);
  for (size_t i = 0; i < spatial; ++i) {
    const Dim in = x.dim(static_cast<int>(i) + 2);
    if (shaped || same) {
      const Dim wanted = shaped ? Dim(shape[i]) : in * w.stride[i];
      const Dim total = (in - 1) * w.stride[i] + extra[i] + w.span(i) - wanted;
      cut_to(n, total, smaller_first, w.low[i], w.high[i]);
    } else if (mode == "NOTSET") {
      w.low[i] = pads[i];
      w.high[i] = pads[i + spatial];
    }
  }
}

Windows transpose_windows(Node& n, Value x, Value weights) {
  const size_t spatial = static_cast<size_t>(x.rank()) - 2;
  Windows w;
  w.kernel = kernel_of_weights(n, x, weights);
  w.stride = window_attribute(n, "strides", spatial, 1, 1);
  w.dilation = window_attribute(n, "dilations", spatial, 1, 1);
  const Ints extra = window_attribute(n, "output_padding", spatial, 0, 0);
  transpose_paddings(n, x, extra, w);
  // The paddings of the convolution of the spread input: a kernel less one, cut by the paddings.
  for (size_t i = 0; i < spatial; ++i) {
    w.low[i] = w.span(i) - 1 - w.low[i];
    w.high[i] = w.span(i) - 1 - w.high[i] + extra[i];
  }
  return w;
}

// A dim whose elements stand `stride` apart, with as many zeros after the last one.
Value spread(Value x, int axis, int64_t stride) {
  Dims dims = x.dims(), apart = dims;
  apart.insert(apart.begin() + axis + 1, 1);
  Ints low(apart.size(), 0), high = low;
  high[static_cast<size_t>(axis) + 1] = stride - 1;
  dims[static_cast<size_t>(axis)] *= stride;
  return reshape(pad(reshape(x, apart), low, high), dims);
}

// A convolution cannot spread a dim that may be empty.
Value spread_what_may_be_empty(Value x, Windows& w) {
  for (size_t i = 0; i < w.rank(); ++i) {
    const int axis = static_cast<int>(i) + 2;
    if (w.stride[i] == 1 || provably_le(1, x.dim(axis))) continue;
    x = spread(x, axis, w.stride[i]);
    w.high[i] = w.high[i] - (w.stride[i] - 1);
    w.stride[i] = 1;
  }
  return x;
}

// ---- DeformConv ---------------------------------------------------------------------------------

// Samples at [batch, offset groups, positions], weighted: what the kernel sees.
struct Sampler {
  Value x;                      // [batch, offset groups, channels, spatial positions]
  Dims sizes;                   // spatial
  std::vector<Value> position;  // per spatial dim: [batch, offset groups, samples]

  // The corner of the cell around each sample that `corner` names, one bit per dim.
  Value at_corner(size_t corner) const {
    Builder& b = x.builder();
    const Dims dims = position[0].dims();
    const DType dtype = x.dtype();
    Value weight = b.full(dtype, dims, 1), inside = b.full(DType::boolean, dims, 1);
    Value index = b.full(DType::i64, dims, 0);
    for (size_t i = 0; i < sizes.size(); ++i) {
      Value floor = unary(Opcode::floor, position[i]);
      Value fraction = position[i] - floor;
      const bool upper = ((corner >> i) & 1) != 0;
      weight = weight * (upper ? fraction : 1 - fraction);
      Value place = cast(upper ? floor + 1 : floor, DType::i64);
      Value size = size_value(b, sizes[i]);
      inside = binary(Opcode::and_, inside, compare("ge", place, 0));
      inside = binary(Opcode::and_, inside, compare("lt", place, size));
      index = index * size + place;
    }
    index = select(inside, index, b.scalar(DType::i64, 0));
    weight = select(inside, weight, b.scalar(dtype, 0));
    Value sampled = gathered(index);
    return sampled * broadcast(weight, sampled.dims(), {0, 1, 3});
  }

 private:
  Value gathered(Value index) const {
    return x.builder().op(Opcode::gather, {x, index},
                          {{"offset_dims", Ints{2}},
                           {"collapsed_dims", Ints{3}},
                           {"operand_batch_dims", Ints{0, 1}},
                           {"index_batch_dims", Ints{0, 1}},
                           {"index_map", Ints{3}},
                           {"index_vector_dim", int64_t{3}},
                           {"sizes", Dims{1, 1, x.dim(2), 1}}});
  }
};

struct Deformed {
  Windows windows;
  Dims out;      // spatial
  Dim taps = 1;  // of the kernel
  int64_t groups = 1, offset_groups = 1;
};

// Where each tap of each window stands in the input along spatial dim i, without offsets:
// [taps..., out...], the kernel's dims first.
Value grid(Builder& b, const Deformed& d, DType dtype, size_t i) {
  Dims dims = d.windows.kernel;
  dims.insert(dims.end(), d.out.begin(), d.out.end());
  Value tap = iota(b, dtype, dims, static_cast<int>(i));
  Value window = iota(b, dtype, dims, static_cast<int>(i + d.out.size()));
  return window * static_cast<double>(d.windows.stride[i]) +
         tap * static_cast<double>(d.windows.dilation[i]) -
         static_cast<double>(d.windows.low[i].value());
}

Dim product(const Dims& dims) {
  Dim result = 1;
  for (Dim d : dims) result *= d;
  return result;
}

Dim exact_part(Node& n, Dim channels, int64_t parts, std::string_view what) {
  if (parts < 1) n.bad("{} is {}, not at least 1", what, parts);
  const std::optional<Dim> part = n.divided(channels, parts);
  if (!part) n.bad("{} channels are not a multiple of {} {}", channels.to_string(), what, parts);
  return *part;
}

Deformed read_deformed(Node& n, Value x, Value w, Value offset) {
  Deformed d;
  if (n.has_attribute("auto_pad")) n.bad("DeformConv has no attribute auto_pad");
  d.windows = read_windows(n, x, kernel_of_weights(n, x, w));
  d.groups = n.integer("group", 1);
  d.offset_groups = n.integer("offset_group", 1);
  if (d.windows.rank() > 3)
    n.unsupported("{} spatial dims; DeformConv is defined up to 3", d.windows.rank());
  n.require_rank(offset, "the offsets", x.rank(), x.rank());
  for (size_t i = 0; i < d.windows.rank(); ++i) {
    const Dim room = x.dim(static_cast<int>(i) + 2) + d.windows.low[i] + d.windows.high[i];
    d.out.push_back(floordiv(room - d.windows.span(i), d.windows.stride[i]) + 1);
    if (!(offset.dim(static_cast<int>(i) + 2) == d.out.back()))
      n.bad("the offsets have {} positions along spatial dim {}, the windows have {}",
            offset.dim(static_cast<int>(i) + 2).to_string(), i, d.out.back().to_string());
  }
  d.taps = product(d.windows.kernel);
  const Dim wanted = d.taps * d.offset_groups * static_cast<int64_t>(d.windows.rank());
  if (!(offset.dim(1) == wanted))
    n.bad("the offsets have {} channels, want {}", offset.dim(1).to_string(), wanted.to_string());
  return d;
}

// The input under each tap of each window: [batch, channels, taps * windows].
Value deformed_columns(const Deformed& d, Value x, Value offset, Value mask, Dim channels) {
  Builder& b = x.builder();
  const int64_t spatial = static_cast<int64_t>(d.windows.rank());
  const Dim batch = x.dim(0), samples = d.taps * product(d.out);
  const Dims dims = x.dims(), flat = {batch, d.offset_groups, samples};
  Sampler s;
  s.sizes.assign(dims.begin() + 2, dims.end());
  s.x = reshape(x, {batch, d.offset_groups, channels, product(s.sizes)});
  // [batch, offset groups, taps, dim, windows]
  Value moves = reshape(offset, {batch, d.offset_groups, d.taps, spatial, product(d.out)});
  for (int i = 0; i < spatial; ++i) {
    Value own = reshape(slice(moves, 3, i, i + 1), flat);
    Value base = reshape(grid(b, d, x.dtype(), static_cast<size_t>(i)), {samples});
    s.position.push_back(own + broadcast_to(base, flat));
  }
  Value columns;
  for (size_t corner = 0; corner < size_t{1} << spatial; ++corner) {
    Value part = s.at_corner(corner);
    columns = columns ? columns + part : part;
  }
  if (mask) columns = columns * broadcast(reshape(mask, flat), columns.dims(), {0, 1, 3});
  return reshape(columns, {batch, x.dim(1), samples});
}

}  // namespace

void map_conv(Node& n) { n.out(with_bias(n, convolution(n, n.in(0), n.in(1)), n.optional(2))); }

void map_conv_integer(Node& n) {
  Value w = n.in(1), x_zero = n.optional(2), w_zero = n.optional(3);
  for (Value* zero : {&x_zero, &w_zero})
    if (*zero) *zero = as_scalar(*zero);
  if (x_zero) n.require_rank(x_zero, "the zero point of x", 0, 0);
  if (w_zero) n.require_rank(w_zero, "the zero point of w", 0, 1);
  if (w_zero && w_zero.rank() == 1) w_zero = broadcast(w_zero, w.dims(), {0});
  n.out(convolution(n, centered(n, n.in(0), x_zero), centered(n, w, w_zero)));
}

void map_conv_transpose(Node& n) {
  Value x = n.in(0), w = n.in(1);
  const int64_t groups = n.integer("group", 1);
  if (groups < 1) n.bad("group is {}, not at least 1", groups);
  Windows windows = transpose_windows(n, x, w);
  w = spread_kernel(n, w, groups);
  x = spread_what_may_be_empty(x, windows);
  // Paddings that are no numbers are cut off, or put on, after a convolution without them.
  Dims low(static_cast<size_t>(x.rank()), 0), high = low;
  bool symbolic = false;
  for (size_t i = 0; i < windows.rank(); ++i) {
    if (windows.low[i].is_static() && windows.high[i].is_static()) continue;
    const Dim whole = windows.span(i) - 1;
    if (!whole.is_static())
      n.unsupported("a kernel of {} positions", windows.kernel[i].to_string());
    symbolic = true;
    low[i + 2] = windows.low[i] - whole;
    high[i + 2] = windows.high[i] - whole;
    windows.low[i] = windows.high[i] = whole;
  }
  Ints padding = numbers(windows.low);
  const Ints after = numbers(windows.high);
  padding.insert(padding.end(), after.begin(), after.end());
  Value y = conv(x, w,
                 {.padding = padding,
                  .dilation = windows.dilation,
                  .input_dilation = windows.stride,
                  .groups = groups});
  Builder& b = y.builder();
  if (symbolic) y = b.op(Opcode::pad, {y, b.scalar(y.dtype(), 0)}, {{"low", low}, {"high", high}});
  n.out(with_bias(n, y, n.optional(2)));
}

void map_deform_conv(Node& n) {
  Value x = n.in(0), w = n.in(1), offset = n.in(2), mask = n.optional(4);
  const Deformed d = read_deformed(n, x, w, offset);
  const Dim channels = exact_part(n, x.dim(1), d.offset_groups, "offset_group");
  const Dim in = exact_part(n, x.dim(1), d.groups, "group");
  const Dim out = exact_part(n, w.dim(0), d.groups, "group");
  if (!(w.dim(1) == in))
    n.bad("the weights take {} channels per group, the input has {}", w.dim(1).to_string(),
          in.to_string());
  Value columns = deformed_columns(d, x, offset, mask, channels);
  // [group, out, in * taps] by [group, batch, in * taps, windows]
  const Dim windows = product(d.out);
  columns = reshape(columns, {x.dim(0), d.groups, in * d.taps, windows});
  Value kernel = reshape(w, {d.groups, out, in * d.taps});
  Value y = dot_general(columns, kernel, {1}, {0}, {2}, {2});  // [group, batch, windows, out]
  Dims dims = {x.dim(0), w.dim(0)};
  dims.insert(dims.end(), d.out.begin(), d.out.end());
  n.out(with_bias(n, reshape(transpose(y, {1, 0, 3, 2}), dims), n.optional(3)));
}

}  // namespace hone::onnx_io
