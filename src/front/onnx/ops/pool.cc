#include <algorithm>
#include <limits>

#include "base/checked_math.h"
#include "front/onnx/ops/windows.h"
#include "front/onnx/registry.h"

// Pools.

namespace hone::onnx_io {
namespace {

// Windows whose sizes and paddings are numbers, the rest of the padding being made already.
struct Pool {
  Windows windows;
  Ints window, low, high;  // high: as far as the last window reaches, which ceil_mode changes
  Ints padding;            // high, as the file states it

  Value reduce(std::string_view kind, Value x, const Ints& before, const Ints& after) const {
    auto full = [](const Ints& part, int64_t fill) {
      Ints all(2, fill);
      all.insert(all.end(), part.begin(), part.end());
      return all;
    };
    return x.builder().op(Opcode::window_reduce, {x},
                          {{"kind", std::string(kind)},
                           {"window", full(window, 1)},
                           {"stride", full(windows.stride, 1)},
                           {"pad_low", full(before, 0)},
                           {"pad_high", full(after, 0)},
                           {"window_dilation", full(windows.dilation, 1)}});
  }
  Value reduce(std::string_view kind, Value x) const { return reduce(kind, x, low, high); }
};

Ints pool_kernel(Node& n, Value x) {
  n.require_rank(x, "the input", 3);
  const size_t spatial = static_cast<size_t>(x.rank()) - 2;
  if (n.ints("kernel_shape").empty()) n.bad("there is no kernel_shape");
  const Ints kernel = window_attribute(n, "kernel_shape", spatial, 1, 1);
  const std::optional<int64_t> positions = checked_product(kernel);
  if (!positions || *positions > std::numeric_limits<int32_t>::max())
    n.bad("the windows have too many positions: {}", fmt::join(kernel, " x "));
  return kernel;
}

// With ceil_mode a last window may reach beyond the padding, but not start there. With this many
// further positions after the input, counting windows down gives the same number as counting them
// up.
int64_t ceil_padding(int64_t high, int64_t stride, int64_t span) {
  return high + stride <= span ? high + stride - 1 : std::max(span, high) - 1;
}

Windows pool_windows(Node& n, Value x, bool dilated) {
  const Ints kernel = pool_kernel(n, x);
  return read_windows(n, x, {kernel.begin(), kernel.end()}, dilated);
}

Pool pool_of(Node& n, Windows windows, bool may_ceil) {
  Pool p;
  p.window = numbers(windows.kernel);
  p.low = numbers(windows.low);
  p.high = p.padding = numbers(windows.high);
  const bool ceil = may_ceil && n.flag("ceil_mode");
  if (ceil && read_auto_pad(n) == "NOTSET") {
    for (size_t i = 0; i < p.high.size(); ++i)
      p.high[i] = ceil_padding(p.high[i], windows.stride[i], windows.span(i).value());
  }
  p.windows = std::move(windows);
  return p;
}

// Sums of many 16-bit numbers are made of 32-bit ones.
DType sum_type(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype;
}

// How many positions of each window count: those in the input, or those in the padding too.
Value counts(Value x, const Windows& stated, const Pool& p, bool with_padding) {
  Dims dims = x.dims();
  dims[0] = dims[1] = 1;
  if (!with_padding) {
    Windows w = stated;
    Value ones = x.builder().full(x.dtype(), dims, 1);
    return p.reduce("sum", with_numeric_padding(ones, w, 0));
  }
  Ints beyond;
  for (size_t i = 0; i < stated.rank(); ++i) {
    dims[i + 2] += stated.low[i] + stated.high[i];
    beyond.push_back(p.high[i] - p.padding[i]);
  }
  return p.reduce("sum", x.builder().full(x.dtype(), dims, 1), Ints(stated.rank(), 0), beyond);
}

// All positions of all windows count.
bool counts_all(const Windows& stated, const Pool& p, bool with_padding) {
  for (size_t i = 0; i < stated.rank(); ++i) {
    if (p.high[i] > p.padding[i]) return false;
    if (!with_padding && !(stated.low[i].is(0) && stated.high[i].is(0))) return false;
  }
  return true;
}

// ---- Places of maxima ---------------------------------------------------------------------------

// Where position `tap` of the windows stands in the input along spatial dim i. The windows run
// along a dim of `dims`.
Value place_of_tap(const Pool& p, Value tap, size_t i, const Dims& dims, int along_windows) {
  int64_t inner = 1;
  for (size_t j = i + 1; j < p.window.size(); ++j) inner *= p.window[j];
  Value own = binary(Opcode::rem, binary(Opcode::div, tap, static_cast<double>(inner)),
                     static_cast<double>(p.window[i]));
  Value window = iota(tap.builder(), DType::i64, dims, along_windows);
  return window * static_cast<double>(p.windows.stride[i]) +
         own * static_cast<double>(p.windows.dilation[i]) - static_cast<double>(p.low[i]);
}

// The tap of each window that holds its maximum, the first one of several.
Value tap_of_maximum(const Pool& p, Value x, Value y) {
  Builder& b = x.builder();
  int64_t taps = 1;
  for (int64_t w : p.window) taps *= w;
  const Dims in = x.dims(), out = y.dims();
  Dims dims = {taps};
  dims.insert(dims.end(), out.begin() + 2, out.end());
  Value tap = iota(b, DType::i64, dims, 0);
  Value inside = b.full(DType::boolean, dims, 1), index = b.full(DType::i64, dims, 0);
  Dim positions = 1;
  for (size_t i = 0; i < p.window.size(); ++i) {
    Value place = place_of_tap(p, tap, i, dims, static_cast<int>(i) + 1);
    Value size = size_value(b, in[i + 2]);
    inside = binary(Opcode::and_, inside, compare("ge", place, 0));
    inside = binary(Opcode::and_, inside, compare("lt", place, size));
    index = index * size + place;
    positions *= in[i + 2];
  }
  // [batch, channels, taps, windows...]
  Value seen = take(reshape(x, {in[0], in[1], positions}), index, 2);
  Value maximum = reshape(y, [&] {
    Dims one = out;
    one.insert(one.begin() + 2, 1);
    return one;
  }());
  Value is_maximum = compare("eq", seen, maximum);
  if (is_real(x.dtype())) is_maximum = binary(Opcode::or_, is_maximum, unary(Opcode::is_nan, seen));
  return argmax(cast(binary(Opcode::and_, is_maximum, inside), DType::u8), 2);
}

// Indices of maxima in the whole input, with the spatial dims in row-major or column-major order.
Value indices_of_maxima(const Pool& p, Value x, Value y, bool column_major) {
  Builder& b = x.builder();
  const Dims in = x.dims(), out = y.dims();
  const size_t spatial = p.window.size();
  Value tap = tap_of_maximum(p, x, y);
  Value index;
  Dim positions = 1;
  for (size_t k = 0; k < spatial; ++k) {
    const size_t i = column_major ? spatial - 1 - k : k;
    Value place = place_of_tap(p, tap, i, out, static_cast<int>(i) + 2);
    index = index ? index * size_value(b, in[i + 2]) + place : place;
    positions *= in[i + 2];
  }
  Value image = iota(b, DType::i64, out, 0) * size_value(b, in[1]) + iota(b, DType::i64, out, 1);
  return image * size_value(b, positions) + index;
}

// ---- Norms --------------------------------------------------------------------------------------

double norm_order(Node& n, int integer_since) {
  const double p =
      n.version() < integer_since ? n.real("p", 2) : static_cast<double>(n.integer("p", 2));
  if (!(p > 0)) n.bad("p is {}, not positive", p);
  return p;
}

Value powered(Value x, double p) {
  if (p == 2) return x * x;
  x = unary(Opcode::abs, x);
  return p == 1 ? x : power(x, p);
}

Value rooted(Value sum, double p) {
  if (p == 2) return sqrt(sum);
  return p == 1 ? sum : power(sum, 1 / p);
}

Value global_pool(Node& n, std::string_view kind) {
  n.require_rank(n.in(), "the input", 2);
  return n.builder().op(Opcode::global_pool, {n.in()}, {{"kind", std::string(kind)}});
}

// The operand output_shape. If it depends on data, the spatial dims are found out when it is known,
// within what lets a result of some thousand images be a tensor.
Dims unpooled_dims(Node& n, const Dims& inferred) {
  Value shape = n.in(2);
  n.require_rank(shape, "output_shape", 1, 1);
  if (!shape.dim(0).is(static_cast<int64_t>(inferred.size())))
    n.bad("output_shape has {} entries, the input has rank {}", shape.dim(0).to_string(),
          inferred.size());
  if (std::optional<Dims> known = n.known(2)) return *known;
  std::vector<Number> spatial;
  for (int i = 2; i < static_cast<int>(inferred.size()); ++i)
    spatial.emplace_back(reshape(slice(shape, 0, i, i + 1), {}));
  const Dims sizes = n.sizes(spatial, int64_t{1} << (28 / spatial.size()));
  Dims dims(inferred.begin(), inferred.begin() + 2);
  dims.insert(dims.end(), sizes.begin(), sizes.end());
  return dims;
}

}  // namespace

Value average_pool(Node& n, Value x, int version) {
  const bool with_padding = version >= 7 && n.flag("count_include_pad");
  const Windows stated = pool_windows(n, x, version >= 19);
  Windows left = stated;
  const DType dtype = x.dtype();
  x = cast(x, sum_type(dtype));
  Value padded = with_numeric_padding(x, left, 0);
  const Pool p = pool_of(n, left, version >= 10);
  Value sum = p.reduce("sum", padded);
  if (!counts_all(stated, p, with_padding)) {
    return cast(sum / counts(x, stated, p, with_padding), dtype);
  }
  int64_t count = 1;
  for (int64_t w : p.window) count *= w;
  return cast(sum / static_cast<double>(count), dtype);
}

void map_average_pool(Node& n) { n.out(average_pool(n, n.in(), n.version())); }

namespace {

double least_of(DType dtype) {
  return is_real(dtype) ? -std::numeric_limits<double>::infinity()
                        : integer_to_real(dtype, integer_limits(dtype).lowest);
}

}  // namespace

Value max_pool_dilated(Node& n, Value x) {
  Windows windows = pool_windows(n, x, true);
  Value padded = with_numeric_padding(x, windows, least_of(x.dtype()));
  return pool_of(n, windows, true).reduce("max", padded);
}

void map_max_pool(Node& n) {
  Value x = n.in();
  Windows windows = pool_windows(n, x, n.version() >= 10);
  const bool column_major = n.version() >= 8 && n.flag("storage_order");
  if (n.wants(1)) {
    for (size_t i = 0; i < windows.rank(); ++i) {
      if (!windows.low[i].is_static() || !windows.high[i].is_static())
        n.unsupported("indices of maxima with auto_pad over {} positions",
                      x.dim(static_cast<int>(i) + 2).to_string());
    }
  }
  Value padded = with_numeric_padding(x, windows, least_of(x.dtype()));
  const Pool p = pool_of(n, windows, n.version() >= 10);
  Value y = p.reduce("max", padded);
  n.out(y);
  if (n.wants(1)) n.out(1, indices_of_maxima(p, x, y, column_major));
}

void map_lp_pool(Node& n) {
  Value x = n.in();
  const double order = norm_order(n, 2);
  const DType dtype = x.dtype();
  Windows windows = pool_windows(n, x, n.version() >= 18);
  Value powers = with_numeric_padding(powered(cast(x, sum_type(dtype)), order), windows, 0);
  const Pool p = pool_of(n, windows, n.version() >= 18);
  n.out(cast(rooted(p.reduce("sum", powers), order), dtype));
}

void map_global_average_pool(Node& n) { n.out(global_pool(n, "average")); }

void map_global_max_pool(Node& n) { n.out(global_pool(n, "max")); }

void map_global_lp_pool(Node& n) {
  Value x = n.in();
  n.require_rank(x, "the input", 2);
  const double order = norm_order(n, 2);
  Ints spatial;
  for (int64_t i = 2; i < x.rank(); ++i) spatial.push_back(i);
  const DType dtype = x.dtype();
  Value sum = reduce_sum(powered(cast(x, sum_type(dtype)), order), spatial, true);
  n.out(cast(rooted(sum, order), dtype));
}

void map_max_unpool(Node& n) {
  Value x = n.in(0), indices = n.in(1);
  const Ints kernel = pool_kernel(n, x);
  const size_t spatial = kernel.size();
  const Ints stride = window_attribute(n, "strides", spatial, 1, 1);
  const Ints pads = window_attribute(n, "pads", 2 * spatial, 0, 0);
  if (indices.dims() != x.dims())
    n.bad("the indices are {}, the values {}", indices.type().to_string(), x.type().to_string());
  Dims inferred = x.dims();
  Dim total = inferred[0] * inferred[1];
  for (size_t i = 0; i < spatial; ++i) {
    inferred[i + 2] = (inferred[i + 2] - 1) * stride[i] + kernel[i] - pads[i] - pads[i + spatial];
    if (!provably_le(0, inferred[i + 2]))
      n.bad("spatial dim {} of the result is {}", i, inferred[i + 2].to_string());
    total *= inferred[i + 2];
  }
  const Dims wanted = n.has(2) ? unpooled_dims(n, inferred) : inferred;
  Dims low(wanted.size(), 0), high;
  for (size_t i = 0; i < wanted.size(); ++i) {
    high.push_back(wanted[i] - inferred[i]);
    if (provably_lt(wanted[i], inferred[i]))
      n.bad("output_shape[{}] is {}, less than {}", i, wanted[i].to_string(),
            inferred[i].to_string());
  }
  Builder& b = n.builder();
  Value y =
      b.op(Opcode::scatter, {b.full(x.dtype(), {total}, 0), flatten(indices, 0), flatten(x, 0)},
           {{"window_dims", Ints{}},
            {"inserted_dims", Ints{0}},
            {"index_map", Ints{0}},
            {"index_vector_dim", int64_t{1}}});
  y = reshape(y, inferred);
  if (wanted != inferred)
    y = b.op(Opcode::pad, {y, b.scalar(y.dtype(), 0)}, {{"low", low}, {"high", high}});
  n.out(y);
}

}  // namespace hone::onnx_io
