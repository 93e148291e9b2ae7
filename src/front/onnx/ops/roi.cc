#include <limits>

#include "front/onnx/flow.h"
#include "front/onnx/ops/indices.h"
#include "front/onnx/registry.h"

// Regions of images that are values, pooled to one size.

namespace hone::onnx_io {
namespace {

// ---- RoiAlign -----------------------------------------------------------------------------------

struct Align {
  int64_t height = 1, width = 1;
  int64_t ratio = 0;  // samples per cell and dim; 0: by the region's size
  double scale = 1;
  bool half_pixel = true;
  bool takes_max = false;
};

Align align_of(Node& n) {
  constexpr int64_t kMost = int64_t{1} << 20;
  Align a;
  a.height = n.integer("output_height", 1);
  a.width = n.integer("output_width", 1);
  a.ratio = n.integer("sampling_ratio", 0);
  a.scale = n.real("spatial_scale", 1);
  if (a.height < 1 || a.width < 1 || a.height > kMost || a.width > kMost)
    n.bad("the result is {} x {}", a.height, a.width);
  if (a.ratio < 0 || a.ratio > kMost) n.bad("sampling_ratio is {}", a.ratio);
  const std::string mode = n.word("mode", "avg");
  if (mode != "avg" && mode != "max") n.bad("mode is '{}'", mode);
  a.takes_max = mode == "max";
  a.half_pixel = false;
  if (n.version() >= 16) {
    const std::string how = n.word("coordinate_transformation_mode", "half_pixel");
    if (how != "half_pixel" && how != "output_half_pixel")
      n.bad("coordinate_transformation_mode is '{}'", how);
    a.half_pixel = how == "half_pixel";
  }
  return a;
}

// One dim of all regions.
struct Side {
  Value start;    // [regions]
  Value cell;     // [regions]: the extent of a cell
  Value samples;  // [regions], real: samples per cell
  int64_t cells = 1;
  Dim most = 1;  // samples per cell of any region
};

Side side_of(Value regions, const Align& a, int64_t first, int64_t cells) {
  Value low = squeeze(slice(regions, 1, first, first + 1), 1) * a.scale;
  Value high = squeeze(slice(regions, 1, first + 2, first + 3), 1) * a.scale;
  Side side = {.start = a.half_pixel ? low - 0.5 : low, .cell = {}, .samples = {}, .cells = cells};
  Value extent = high - low;
  if (!a.half_pixel) extent = maximum(extent, 1);  // a malformed region is 1 x 1
  side.cell = extent / static_cast<double>(cells);
  side.samples =
      a.ratio > 0 ? side.cell * 0 + static_cast<double>(a.ratio) : unary(Opcode::ceil, side.cell);
  return side;
}

// Two source positions with weights for each sample: [regions, cells * most].
struct Samples {
  Value low, high;                // i64
  Value low_weight, high_weight;  // 0 if the sample is outside of the image
  Value counts;                   // bool: the region has the sample
};

Samples samples_of(const Side& s, Dim size) {
  Builder& b = s.start.builder();
  const DType real = s.start.dtype();
  const Dim regions = s.start.dim(0);
  const Dims dims = {regions, s.cells, s.most};
  auto over = [&](Value v) { return broadcast(v, dims, {0}); };
  Value cell = iota(b, real, dims, 1), i = iota(b, real, dims, 2);
  Value x = over(s.start) + cell * over(s.cell) + (i + 0.5) * over(s.cell) / over(s.samples);
  Value length = broadcast_to(cast(size_value(b, size), real), dims);
  Value outside = binary(Opcode::or_, compare("lt", x, -1), compare("gt", x, length));
  x = maximum(x, 0);
  // From the last position on there is nothing to go up to.
  Value last = length - 1, low = minimum(unary(Opcode::floor, x), last);
  Value part = select(compare("ge", low, last), b.scalar(real, 0), x - low);
  Value none = b.scalar(real, 0);
  auto flat = [&](Value v) { return reshape(v, {regions, s.most * s.cells}); };
  Samples result;
  result.low = flat(cast(low, DType::i64));
  result.high = flat(cast(minimum(low + 1, last), DType::i64));
  result.low_weight = flat(select(outside, none, 1 - part));
  result.high_weight = flat(select(outside, none, part));
  result.counts = flat(compare("lt", i, over(s.samples)));
  return result;
}

// Sums (or the greatest) of the weighted corners of each sample: [regions, y, x, channels].
Value weighted_corners(Value rows, Value batch, const Samples& y, const Samples& x, Dim height,
                       Dim width, bool takes_max) {
  Builder& b = rows.builder();
  auto down = [](Value v) { return unsqueeze(v, 2); };
  auto across = [](Value v) { return unsqueeze(v, 1); };
  Value base = unsqueeze(unsqueeze(batch * size_value(b, height), 1), 1), result;
  for (bool is_high : {false, true}) {
    for (bool is_right : {false, true}) {
      Value row = base + down(is_high ? y.high : y.low);
      Value place = row * size_value(b, width) + across(is_right ? x.high : x.low);
      Value weight = down(is_high ? y.high_weight : y.low_weight) *
                     across(is_right ? x.high_weight : x.low_weight);
      Value term = looked_up(rows, place, 0) * unsqueeze(cast(weight, rows.dtype()), 3);
      if (!result)
        result = term;
      else
        result = takes_max ? maximum(result, term) : result + term;
    }
  }
  return result;
}

// [batch, channels, height, width] -> [batch * height * width, channels].
Value rows_of_pixels(Value x) {
  return reshape(transpose(x, {0, 2, 3, 1}), {x.dim(0) * x.dim(2) * x.dim(3), x.dim(1)});
}

void check_regions(Node& n, Value x, Value regions, int64_t columns) {
  n.require_rank(x, "the image", 4, 4);
  n.require_rank(regions, "the regions", 2, 2);
  if (!regions.dim(1).is(columns) || !is_real(regions.dtype()) || !is_real(x.dtype()))
    n.bad("regions of type {} for an image of type {}, want {} columns", regions.type().to_string(),
          x.type().to_string(), columns);
}

}  // namespace

void map_roi_align(Node& n) {
  Value x = n.in(), regions = with_size(n, n.in(1), 1, 4, "dim 1 of the regions"),
        batch = cast(n.in(2), DType::i64);
  check_regions(n, x, regions, 4);
  if (batch.rank() != 1 || !(batch.dim(0) == regions.dim(0)))
    n.bad("batch indices of type {} for regions of type {}", batch.type().to_string(),
          regions.type().to_string());
  const Align a = align_of(n);
  if (regions.dtype() != DType::f64) regions = cast(regions, DType::f32);
  Side down = side_of(regions, a, 1, a.height), across = side_of(regions, a, 0, a.width);
  down.most = across.most = a.ratio;
  if (a.ratio == 0) {
    constexpr int64_t kMostSamples = int64_t{1} << 16;
    auto most = [](const Side& s) {
      Value greatest = reduce_max(s.samples, {0});
      return cast(maximum(greatest, 1), DType::i64);
    };
    const Dims sizes = n.sizes({most(down), most(across)}, kMostSamples);
    down.most = sizes[0], across.most = sizes[1];
  }
  Builder& b = n.builder();
  const Samples y = samples_of(down, x.dim(2)), z = samples_of(across, x.dim(3));
  Value v = weighted_corners(rows_of_pixels(x), batch, y, z, x.dim(2), x.dim(3), a.takes_max);
  Value counts = binary(Opcode::and_, unsqueeze(y.counts, 2), unsqueeze(z.counts, 1));
  Value none = b.scalar(v.dtype(), a.takes_max ? -std::numeric_limits<double>::infinity() : 0);
  v = select(unsqueeze(counts, 3), v, none);
  const Dim regions_count = regions.dim(0);
  v = reshape(v, {regions_count, a.height, down.most, a.width, across.most, x.dim(1)});
  Value zero = b.scalar(v.dtype(), 0);
  Value samples = maximum(down.samples * across.samples, 1);  // [regions]
  if (a.takes_max) {
    v = reduce_max(v, {2, 4});
    Value has_any =
        binary(Opcode::and_, compare("gt", down.samples, 0), compare("gt", across.samples, 0));
    v = select(broadcast(has_any, v.dims(), {0}), v, zero);
  } else {
    v = reduce_sum(v, {2, 4});
    v = v / broadcast(cast(samples, v.dtype()), v.dims(), {0});
  }
  n.out(transpose(v, {0, 3, 1, 2}));
}

// ---- MaxRoiPool ---------------------------------------------------------------------------------

namespace {

// Half away from zero, as C rounds.
Value rounded(Value x) {
  return select(compare("lt", x, 0), unary(Opcode::ceil, x - 0.5), unary(Opcode::floor, x + 0.5));
}

// Which positions each cell covers: bool[regions, cells, size].
Value coverage(Value low, Value high, int64_t cells, Dim size) {
  Builder& b = low.builder();
  low = rounded(low), high = rounded(high);
  Value extent = maximum(high - low + 1, 1) / static_cast<double>(cells);
  const Dims dims = {low.dim(0), cells, size};
  auto over = [&](Value v) { return broadcast(v, dims, {0}); };
  Value cell = iota(b, low.dtype(), dims, 1), at = iota(b, low.dtype(), dims, 2);
  Value start = over(low) + unary(Opcode::floor, cell * over(extent));
  Value end = over(low) + unary(Opcode::ceil, (cell + 1) * over(extent));
  return binary(Opcode::and_, compare("ge", at, start), compare("lt", at, end));
}

// The greatest element of x where the mask holds, along one axis that becomes the mask's cells:
// x [a, n, b], mask [cells, n] -> [a, cells, b].
Value masked_max(Value x, Value mask) {
  const Dims dims = {x.dim(0), mask.dim(0), x.dim(1), x.dim(2)};
  Value lowest = x.builder().scalar(x.dtype(), -std::numeric_limits<double>::infinity());
  Value chosen = select(broadcast(mask, dims, {1, 2}), broadcast(x, dims, {0, 2, 3}), lowest);
  return reduce_max(chosen, {2});
}

// One region: x [batch, channels, height, width] -> [channels, rows, columns].
Value pooled(Value x, Value batch, Value rows, Value columns) {
  const Dim channels = x.dim(1), width = x.dim(3);
  Value image = looked_up(x, batch, 0);
  Value y = masked_max(image, rows);
  y = masked_max(reshape(y, {channels * rows.dim(0), width, 1}), columns);
  return reshape(y, {channels, rows.dim(0), columns.dim(0)});
}

}  // namespace

void map_max_roi_pool(Node& n) {
  Value x = n.in(), regions = with_size(n, n.in(1), 1, 5, "dim 1 of the regions");
  check_regions(n, x, regions, 5);
  const Ints shape = n.ints("pooled_shape");
  const double scale = n.real("spatial_scale", 1);
  if (shape.size() != 2 || shape[0] < 1 || shape[1] < 1 || shape[0] > (int64_t{1} << 20) ||
      shape[1] > (int64_t{1} << 20))
    n.bad("pooled_shape has {} entries, want two positive ones", shape.size());
  Builder& b = n.builder();
  auto column = [&](int64_t i) { return squeeze(slice(regions, 1, i, i + 1), 1); };
  Value rows = coverage(column(2) * scale, column(4) * scale, shape[0], x.dim(2));
  Value columns = coverage(column(1) * scale, column(3) * scale, shape[1], x.dim(3));
  auto one = [](Builder&, std::span<const Value> v) -> std::vector<Value> {
    return {v[0], pooled(v[0], v[1], v[2], v[3])};
  };
  const std::vector<Value> scanned = {cast(column(0), DType::i64), rows, columns};
  Value y = scan(std::vector{x}, scanned, one)[1];
  // A cell without elements is 0.
  Value has_rows = reduce("or", rows, {2}), has_columns = reduce("or", columns, {2});
  Value filled = binary(Opcode::and_, broadcast(has_rows, y.dims(), {0, 2}),
                        broadcast(has_columns, y.dims(), {0, 3}));
  n.out(select(filled, y, b.scalar(y.dtype(), 0)));
}

}  // namespace hone::onnx_io
