#include <algorithm>
#include <numeric>

#include "zoo/random/generator.h"

// Recipes of ops that move data.

namespace hone {
namespace {

Ints permutation(Generator& g, int rank) {
  Ints order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  g.rng().shuffle(order);
  return order;
}

void broadcast_up(Generator& g, Opcode, DType dtype) {
  Value x = g.pick_ranked(dtype, 0, 3);
  Dims dims = x.dims();
  Ints map(dims.size());
  std::iota(map.begin(), map.end(), 0);
  for (Dim& d : dims)
    if (d.is(1)) d = g.dim();
  for (int64_t extra = g.number(0, 2); extra > 0; --extra) {
    int64_t at = g.number(0, static_cast<int64_t>(dims.size()));
    dims.insert(dims.begin() + at, g.dim());
    for (int64_t& m : map) m += m >= at;
  }
  g.keep_like(broadcast(x, dims, map), x);
}

// Merges two neighbours, or splits a known dim, or adds a 1.
void reshaped(Generator& g, Opcode, DType dtype) {
  Value x = g.pick_ranked(dtype, 0, 4);
  Dims dims = x.dims();
  if (dims.size() >= 2 && g.rng().chance(0.5)) {
    size_t at = g.rng().below(dims.size() - 1);
    dims[at] *= dims[at + 1];
    dims.erase(dims.begin() + static_cast<int64_t>(at) + 1);
  } else {
    int64_t at = g.number(0, static_cast<int64_t>(dims.size()));
    dims.insert(dims.begin() + at, 1);
  }
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i].is_static() && dims[i].value() > 2 && dims[i].value() % 2 == 0 &&
        g.rng().chance(0.5)) {
      dims[i] = dims[i].value() / 2;
      dims.insert(dims.begin() + static_cast<int64_t>(i), 2);
      break;
    }
  g.keep_like(x.builder().op(Opcode::reshape, {x}, {{"dims", dims}}), x);
}

void transposed(Generator& g, Opcode opcode, DType dtype) {
  Value x = g.pick_ranked(dtype, 0, 4);
  g.keep_like(g.builder().op(opcode, {x}, {{"permutation", permutation(g, x.rank())}}), x);
}

void sliced(Generator& g, Opcode opcode, DType dtype) {
  Value x = g.pick_ranked(dtype, 0, 4);
  Dims start, limit;
  Ints stride;
  for (Dim d : x.dims()) {
    int64_t least = d.range().low;  // what every binding has
    int64_t from = g.number(0, least);
    start.push_back(from);
    limit.push_back(g.rng().chance(0.5) ? d : Dim(g.number(from, least)));
    stride.push_back(g.number(1, 3));
  }
  g.keep_like(g.builder().op(opcode, {x}, {{"start", start}, {"limit", limit}, {"stride", stride}}),
              x);
}

void padded(Generator& g, Opcode opcode, DType dtype) {
  Value x = g.pick_ranked(dtype, 0, 3);
  Value fill = g.pick(dtype, {});
  Dims low, high;
  Ints interior;
  for (Dim d : x.dims()) {
    int64_t crop = g.rng().chance(0.2) ? d.range().low : 0;
    low.push_back(g.number(-(crop / 2), 2));
    high.push_back(g.number(-(crop / 2), 2));
    interior.push_back(g.rng().chance(0.2) ? 1 : 0);
  }
  g.keep(g.builder().op(opcode, {x, fill}, {{"low", low}, {"high", high}, {"interior", interior}}),
         std::max(g.bound(x), g.bound(fill)));
}

void joined(Generator& g, Opcode opcode, DType dtype) {
  std::vector<Value> parts = {g.pick_ranked(dtype, 1, 4)};
  double bound = g.bound(parts[0]);
  int64_t axis = g.axis(parts[0]);
  for (int64_t more = g.number(0, 3); more > 0; --more) {
    Dims dims = parts[0].dims();
    dims[static_cast<size_t>(axis)] = g.dim();
    parts.push_back(g.pick(dtype, dims));
    bound = std::max(bound, g.bound(parts.back()));
  }
  g.keep(g.builder().op(opcode, parts, {{"axis", axis}}), bound);
}

void reversed(Generator& g, Opcode opcode, DType dtype) {
  Value x = g.pick_ranked(dtype, 0, 4);
  Ints axes;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (g.rng().chance(0.5)) axes.push_back(axis);
  g.keep_like(g.builder().op(opcode, {x}, {{"axes", axes}}), x);
}

std::vector<Value> start_operands(Generator& g, int rank) {
  static constexpr DType types[] = {DType::i32, DType::i64, DType::u8};
  DType type = g.rng().pick(types);
  std::vector<Value> starts;
  for (int i = 0; i < rank; ++i) starts.push_back(g.pick(type, {}));
  return starts;
}

Dims part_sizes(Generator& g, Value x) {
  Dims sizes;
  for (Dim d : x.dims())
    sizes.push_back(g.number(std::min<int64_t>(1, d.range().low), d.range().low));
  return sizes;
}

void dynamic_sliced(Generator& g, Opcode opcode, DType dtype) {
  Value x = g.pick_ranked(dtype, 0, 3);
  std::vector<Value> operands = {x};
  for (Value start : start_operands(g, x.rank())) operands.push_back(start);
  g.keep_like(g.builder().op(opcode, operands, {{"sizes", part_sizes(g, x)}}), x);
}

// The value that an update changes. Half of the time it was just computed for the update, and for
// whoever comes later. Sometimes another node has read it before.
Value changed(Generator& g, Value x) {
  if (x.rank() == 0 || g.rng().chance(0.5)) return x;
  Value y = g.builder().op(Opcode::reverse, {x}, {{"axes", Ints{g.axis(x)}}});
  g.keep_like(y, x);
  if (g.rng().chance(0.3))
    g.keep_like(g.builder().op(Opcode::reverse, {y}, {{"axes", Ints{g.axis(y)}}}), x);
  return y;
}

void dynamic_updated(Generator& g, Opcode opcode, DType dtype) {
  Value x = changed(g, g.pick_ranked(dtype, 0, 3));
  Value update = g.pick(dtype, part_sizes(g, x));
  std::vector<Value> operands = {x, update};
  for (Value start : start_operands(g, x.rank())) operands.push_back(start);
  g.keep(g.builder().op(opcode, operands), std::max(g.bound(x), g.bound(update)));
}

// Rows (whole slices along some axis) chosen by index vectors of length 1 or 2.
struct Rows {
  Value x;
  Value indices;
  int64_t indexed;  // the leading dims of x that the index vector selects
  Dims window;      // the rest of x's dims
  Dims batch;       // dims of the indices without the vector
};

Rows rows(Generator& g, DType dtype) {
  Rows r;
  r.x = g.pick_ranked(dtype, 1, 3, false);
  r.indexed = g.number(1, std::min(2, r.x.rank()));
  r.batch = g.shape(0, 2);
  Dims index_dims = r.batch;
  index_dims.push_back(r.indexed);
  static constexpr DType types[] = {DType::i32, DType::i64, DType::u8};
  r.indices = g.pick(g.rng().pick(types), index_dims);
  r.window = r.x.dims();
  r.window.erase(r.window.begin(), r.window.begin() + r.indexed);
  return r;
}

Ints range(int64_t begin, int64_t end) {
  Ints values;
  for (int64_t i = begin; i < end; ++i) values.push_back(i);
  return values;
}

void gathered(Generator& g, Opcode opcode, DType dtype) {
  Rows r = rows(g, dtype);
  Dims sizes = r.x.dims();
  for (int64_t i = 0; i < r.indexed; ++i) sizes[static_cast<size_t>(i)] = 1;
  int64_t batch = static_cast<int64_t>(r.batch.size());
  int64_t window = static_cast<int64_t>(r.window.size());
  g.keep_like(g.builder().op(opcode, {r.x, r.indices},
                             {{"offset_dims", range(batch, batch + window)},
                              {"collapsed_dims", range(0, r.indexed)},
                              {"index_map", range(0, r.indexed)},
                              {"index_vector_dim", batch},
                              {"sizes", sizes}}),
              r.x);
}

void scattered(Generator& g, Opcode opcode, DType dtype) {
  Rows r = rows(g, dtype);
  int64_t batch = static_cast<int64_t>(r.batch.size());
  Dims update_dims = r.batch;
  update_dims.insert(update_dims.end(), r.window.begin(), r.window.end());
  Value updates = g.pick(dtype, update_dims);
  std::vector<std::string> combines = {"replace"};
  if (kNumber.contains(dtype)) combines = {"replace", "add", "min", "max"};
  double bound = 40 * std::max(g.bound(r.x), g.bound(updates));  // at most 36 updates of one place
  g.keep(g.builder().op(opcode, {changed(g, g.within(r.x, 8)), r.indices, g.within(updates, 8)},
                        {{"window_dims", range(batch, static_cast<int64_t>(update_dims.size()))},
                         {"inserted_dims", range(0, r.indexed)},
                         {"index_map", range(0, r.indexed)},
                         {"index_vector_dim", batch},
                         {"combine", g.rng().pick(combines)}}),
         bound);
}

constexpr Recipe kShapeRecipes[] = {
    {Opcode::broadcast, broadcast_up},
    {Opcode::reshape, reshaped},
    {Opcode::transpose, transposed},
    {Opcode::slice, sliced},
    {Opcode::pad, padded},
    {Opcode::concat, joined},
    {Opcode::reverse, reversed},
    {Opcode::dynamic_slice, dynamic_sliced},
    {Opcode::dynamic_update, dynamic_updated},
    {Opcode::gather, gathered},
    {Opcode::scatter, scattered},
};

}  // namespace

std::span<const Recipe> shape_recipes() { return kShapeRecipes; }

}  // namespace hone
