#include <algorithm>
#include <limits>

#include "front/onnx/flow.h"
#include "front/onnx/ops/helpers.h"
#include "front/onnx/ops/indices.h"
#include "front/onnx/registry.h"

// Results whose size depends on data: computed with room for the most, then cut.

namespace hone::onnx_io {
namespace {

Value count_of(Value mask) { return reduce_sum(cast(mask, DType::i64), {0}); }

// `rows` with row i of the updates at place[i]; places out of range are dropped.
Value placed_rows(Value rows, Value place, Value updates, std::string combine = "replace") {
  Ints windows;
  for (int64_t i = 1; i < rows.rank(); ++i) windows.push_back(i);
  return rows.builder().op(Opcode::scatter, {rows, place, updates},
                           {{"window_dims", windows},
                            {"inserted_dims", Ints{0}},
                            {"index_map", Ints{0}},
                            {"index_vector_dim", int64_t{1}},
                            {"combine", std::move(combine)}});
}

// The elements of a vector where the mask holds, in order; then zeros.
Value compacted(Value vector, Value mask) {
  Builder& b = vector.builder();
  Value before = cumulative("sum", cast(mask, DType::i64), 0, true);
  Value place = select(mask, before, size_value(b, vector.dim(0)));
  return placed_rows(b.full(vector.dtype(), vector.dims(), 0), place, vector);
}

Value positions(Builder& b, Dim size) { return iota(b, DType::i64, {size}, 0); }

}  // namespace

// ---- NonZero, Compress --------------------------------------------------------------------------

void map_non_zero(Node& n) {
  Value x = n.in();
  if (x.rank() == 0) x = reshape(x, {1});
  Builder& b = n.builder();
  Value mask = flattened(cast(x, DType::boolean));
  Value found = compacted(positions(b, mask.dim(0)), mask);
  std::vector<Value> coordinates(static_cast<size_t>(x.rank()));
  for (int i = x.rank() - 1; i >= 0; --i) {
    // An empty dim has no coordinates; it only must not divide.
    Value size = maximum(size_value(b, x.dim(i)), 1);
    Value coordinate = i == 0 ? found : binary(Opcode::rem, found, size);
    coordinates[static_cast<size_t>(i)] = unsqueeze(coordinate, 0);
    found = found / size;
  }
  n.out_cut(0, concat(coordinates, 0), 1, count_of(mask));
}

void map_compress(Node& n) {
  Value x = n.in(), condition = n.in(1);
  n.require_rank(condition, "the condition", 1, 1);
  int axis = 0;
  if (n.has_attribute("axis")) {
    axis = n.axis("axis", x.rank(), 0);
  } else {
    x = flattened(x);
  }
  Builder& b = n.builder();
  const Dim size = x.dim(axis), given = condition.dim(0);
  Value mask = cast(condition, DType::boolean);
  if (!(given == size)) {
    // Rows that the condition does not reach are left out.
    Value index = positions(b, size);
    mask =
        binary(Opcode::and_, looked_up(mask, index, 0), compare("lt", index, size_value(b, given)));
  }
  Value found = compacted(positions(b, size), mask);
  n.out_cut(0, looked_up(x, found, axis), axis, count_of(mask));
}

// ---- Unique -------------------------------------------------------------------------------------

namespace {

// The order of the rows of [n, m], lexicographic and stable: sorted by one column after the other,
// from the last to the first.
Value row_order(Value rows) {
  Value order = positions(rows.builder(), rows.dim(0));
  auto sort_by = [](Builder&, std::span<const Value> v) -> std::vector<Value> {
    const std::vector<Value> pair = {looked_up(v[1], v[0], 0), v[0]};
    return {sort(pair, 0, false)[1]};
  };
  if (rows.dim(1).is(1)) return sort(std::vector{squeeze(rows, 1), order}, 0, false)[1];
  return scan(std::vector{order}, std::vector{transpose(rows, {1, 0})}, sort_by, true)[0];
}

// True if a row differs from the one before it; all NaN are one value.
Value first_of_equals(Value rows, Value order) {
  Builder& b = rows.builder();
  Value index = positions(b, rows.dim(0));
  Value here = looked_up(rows, order, 0);
  Value before = looked_up(rows, looked_up(order, index - 1, 0), 0);
  Value differs = compare("ne", here, before);
  if (is_real(rows.dtype())) {
    Value numbers = unary(Opcode::not_, binary(Opcode::and_, unary(Opcode::is_nan, here),
                                               unary(Opcode::is_nan, before)));
    differs = binary(Opcode::and_, differs, numbers);
  }
  return binary(Opcode::or_, reduce("or", differs, {1}), compare("eq", index, 0));
}

// Groups of equal rows; vectors with room for as many groups as there are rows.
struct Groups {
  Value count;
  Value first;    // the group's first row
  Value size;     // rows in the group
  Value members;  // by row: its group
};

Groups groups_of(Value rows) {
  Builder& b = rows.builder();
  Value order = row_order(rows), is_first = first_of_equals(rows, order);
  Value group = cumulative("sum", cast(is_first, DType::i64), 0) - 1;
  Value zeros = b.full(DType::i64, {rows.dim(0)}, 0), ones = b.full(DType::i64, {rows.dim(0)}, 1);
  return {count_of(is_first), compacted(order, is_first), placed_rows(zeros, group, ones, "add"),
          placed_rows(zeros, order, group)};
}

// The groups in the order in which the rows have them.
Groups in_order_of_rows(const Groups& g) {
  Builder& b = g.count.builder();
  const Dim room = g.first.dim(0);
  Value index = positions(b, room);
  Value key = select(compare("lt", index, g.count), g.first, size_value(b, room));
  const std::vector<Value> sorted = sort(std::vector{key, index}, 0, false);
  Value place = placed_rows(b.full(DType::i64, {room}, 0), sorted[1], index);
  return {g.count, sorted[0], looked_up(g.size, sorted[1], 0), looked_up(place, g.members, 0)};
}

}  // namespace

void map_unique(Node& n) {
  Value x = n.in();
  int axis = 0;
  if (n.has_attribute("axis")) {
    axis = n.axis("axis", x.rank(), 0);
  } else {
    x = flattened(x);
  }
  Ints permutation = {axis};
  Dim rest = 1;
  for (int i = 0; i < x.rank(); ++i) {
    if (i == axis) continue;
    permutation.push_back(i);
    rest *= x.dim(i);
  }
  Groups groups = groups_of(reshape(transpose(x, permutation), {x.dim(axis), rest}));
  if (!n.flag("sorted", true)) groups = in_order_of_rows(groups);
  n.out_cut(0, looked_up(x, groups.first, axis), axis, groups.count);
  if (n.wants(1)) n.out_cut(1, groups.first, 0, groups.count);
  if (n.wants(2)) n.out(2, groups.members);
  if (n.wants(3)) n.out_cut(3, groups.size, 0, groups.count);
}

// In the order of the input, without the places of the first ones.
void map_contributed_unique(Node& n) {
  Value x = n.in();
  n.require_rank(x, "x", 1, 1);
  const Groups groups = in_order_of_rows(groups_of(unsqueeze(x, 1)));
  n.out_cut(0, looked_up(x, groups.first, 0), 0, groups.count);
  n.out(1, groups.members);
  n.out_cut(2, groups.size, 0, groups.count);
}

// ---- NonMaxSuppression --------------------------------------------------------------------------

namespace {

// Boxes as rows of [batch, 5, boxes]: the lower and upper ends of both dims, and the area.
Value corners_of(Value boxes, bool from_center) {
  const std::vector<Value> p = split(boxes, 2, 4);
  std::vector<Value> corners;
  if (from_center) {  // center x and y, width and height
    Value half_width = p[2] / 2, half_height = p[3] / 2;
    corners = {p[1] - half_height, p[0] - half_width, p[1] + half_height, p[0] + half_width};
  } else {
    corners = {minimum(p[0], p[2]), minimum(p[1], p[3]), maximum(p[0], p[2]), maximum(p[1], p[3])};
  }
  corners.push_back((corners[2] - corners[0]) * (corners[3] - corners[1]));
  return transpose(concat(corners, 2), {0, 2, 1});
}

// The loop over one class carries vectors over its boxes, and what is chosen so far. The last
// ones never change, but a region sees its parameters alone.
struct Suppression {
  enum Index {
    scores,
    alive,  // neither chosen yet, nor dropped, nor too low
    best,   // the first box with the greatest score of those alive
    count,  // of chosen boxes
    chosen,
    limit,
    threshold,
    low_y,
    low_x,
    high_y,
    high_x,
    area,
    size
  };
};

Value at_position(Value vector, Value position) {
  return squeeze(
      vector.builder().op(Opcode::dynamic_slice, {vector, position}, {{"sizes", Dims{1}}}), 0);
}

// The box that a stable sort would have first, of those alive: NaN is the greatest. If there is
// none alive, any box.
Value best_of(Value scores, Value alive) {
  constexpr double kLowest = -std::numeric_limits<double>::infinity();
  Value best = argmax(select(alive, scores, scores.builder().scalar(scores.dtype(), kLowest)), 0);
  // If only boxes of that score are alive, it may be one that is not.
  return select(at_position(alive, best), best, argmax(cast(alive, DType::u8), 0));
}

// Chooses the best box, and drops it and those that overlap it.
std::vector<Value> choose_best(Builder& b, std::span<const Value> state) {
  using S = Suppression;
  Value alive = state[S::alive], best = state[S::best];
  auto shared = [&](S::Index low, S::Index high) {
    Value end = minimum(state[high], at_position(state[high], best));
    return maximum(end - maximum(state[low], at_position(state[low], best)), 0);
  };
  Value both = shared(S::low_y, S::high_y) * shared(S::low_x, S::high_x);
  Value overlap = both / (state[S::area] + at_position(state[S::area], best) - both);
  Value similar =
      binary(Opcode::and_, compare("gt", both, 0), compare("gt", overlap, state[S::threshold]));
  Value itself = compare("eq", positions(b, alive.dim(0)), best);
  std::vector<Value> next(state.begin(), state.end());
  Value gone = binary(Opcode::or_, similar, itself);
  next[S::alive] = binary(Opcode::and_, alive, unary(Opcode::not_, gone));
  next[S::best] = best_of(state[S::scores], next[S::alive]);
  next[S::chosen] =
      b.op(Opcode::dynamic_update, {state[S::chosen], unsqueeze(best, 0), state[S::count]});
  next[S::count] = state[S::count] + 1;
  return next;
}

struct Chosen {
  Value boxes;  // the best first, then zeros
  Value count;
};

// Which boxes of one class are chosen. corners: [5, boxes].
Chosen chosen_of(Builder& b, Value corners, Value scores, Value alive, Dim room, Value limit,
                 Value threshold) {
  using S = Suppression;
  std::vector<Value> state(S::size);
  state[S::scores] = scores;
  state[S::alive] = alive;
  state[S::best] = best_of(scores, alive);
  state[S::count] = b.scalar(DType::i64, 0);
  state[S::chosen] = b.full(DType::i64, {room}, 0);
  state[S::limit] = limit;
  state[S::threshold] = threshold;
  const std::vector<Value> rows = split(corners, 0, 5);
  for (size_t i = 0; i < rows.size(); ++i) state[S::low_y + i] = squeeze(rows[i], 0);
  auto more = [](Builder&, std::span<const Value> s) -> std::vector<Value> {
    return {binary(Opcode::and_, at_position(s[S::alive], s[S::best]),
                   compare("lt", s[S::count], s[S::limit]))};
  };
  const std::vector<Value> last = while_loop(state, more, choose_best);
  return {last[S::chosen], last[S::count]};
}

// Room for the selected boxes of one class.
Dim most_selected(Dim boxes, std::optional<Dim> limit) {
  if (!limit || provably_le(boxes, *limit)) return boxes;
  constexpr int64_t kFew = 4096;  // rather than one for each of an unknown number of boxes
  return provably_le(*limit, boxes) || limit->range().high <= kFew ? *limit : boxes;
}

struct Detections {
  Value boxes;   // [batch, boxes, 4]
  Value scores;  // [batch, classes, boxes]
  Dim real;      // the number of boxes
};

Detections detections_of(Node& n) {
  Detections d = {with_size(n, n.in(0), 2, 4, "dim 2 of the boxes"), n.in(1), 0};
  n.require_rank(d.boxes, "the boxes", 3, 3);
  n.require_rank(d.scores, "the scores", 3, 3);
  if (!d.boxes.dim(2).is(4) || !(d.boxes.dim(0) == d.scores.dim(0)) ||
      !(d.boxes.dim(1) == d.scores.dim(2)) || !is_real(d.boxes.dtype()) ||
      !is_real(d.scores.dtype()))
    n.bad("boxes of type {} with scores of type {}", d.boxes.type().to_string(),
          d.scores.type().to_string());
  d.real = d.boxes.dim(1);
  if (provably_le(1, d.real)) return d;
  // One box more, so that there is one.
  d.boxes = pad(d.boxes, {0, 0, 0}, {0, 1, 0});
  d.scores = pad(d.scores, {0, 0, 0}, {0, 0, 1});
  return d;
}

struct Selection {
  Value rows;   // [room]: batch * classes + class
  Value boxes;  // [room]: each class's best first
  Value count;  // of selected boxes
};

Selection selected(Node& n, const Detections& d, std::optional<Dim> limit, bool from_center) {
  Builder& b = n.builder();
  const Dim classes = d.scores.dim(1), boxes = d.scores.dim(2), rows = d.scores.dim(0) * classes;
  Value alive = compare("lt", iota(b, DType::i64, d.scores.dims(), 2), size_value(b, d.real));
  if (n.has(4)) {
    Value score = cast(scalar_of(n, 4), d.scores.dtype());
    alive = binary(Opcode::and_, alive, compare("gt", d.scores, score));
  }
  Value threshold =
      n.has(3) ? cast(scalar_of(n, 3), d.boxes.dtype()) : b.scalar(d.boxes.dtype(), 0);
  const Dim most = most_selected(boxes, limit);
  const Dim room = provably_le(1, most) ? most : most + 1;  // where a box can be written
  const std::vector<Value> carried = {corners_of(d.boxes, from_center),
                                      cast(scalar_of(n, 2), DType::i64), threshold};
  const std::vector<Value> scanned = {positions(b, rows) / size_value(b, classes),
                                      reshape(d.scores, {rows, boxes}),
                                      reshape(alive, {rows, boxes})};
  auto one_class = [room](Builder& body, std::span<const Value> v) -> std::vector<Value> {
    const Chosen chosen = chosen_of(body, looked_up(v[0], v[3], 0), v[4], v[5], room, v[1], v[2]);
    return {v[0], v[1], v[2], chosen.boxes, chosen.count};
  };
  const std::vector<Value> found = scan(carried, scanned, one_class);
  Value is_chosen =
      compare("lt", iota(b, DType::i64, {rows, room}, 1), broadcast(found[4], {rows, room}, {0}));
  Value place = compacted(positions(b, rows * room), flattened(is_chosen));
  place = window(place, 0, b.scalar(DType::i64, 0), rows * most);
  return {place / size_value(b, room), looked_up(flattened(found[3]), place, 0),
          reduce_sum(found[4], {0})};
}

}  // namespace

void map_non_max_suppression(Node& n) {
  const Detections d = detections_of(n);
  const bool from_center = n.flag("center_point_box");
  std::optional<Dim> limit = n.has(2) ? known_scalar(n, scalar_of(n, 2)) : Dim(0);
  Builder& b = n.builder();
  if ((limit && limit->range().high <= 0) || d.real.is(0)) {
    n.ignore_operand(4);
    n.out(b.constant(Tensor::zeros(Type::get(DType::i64, {0, 3}))));
    return;
  }
  const Selection s = selected(n, d, limit, from_center);
  Value classes = size_value(b, d.scores.dim(1));
  std::vector<Value> parts = {s.rows / classes, binary(Opcode::rem, s.rows, classes), s.boxes};
  for (Value& part : parts) part = unsqueeze(part, 1);
  n.out_cut(0, concat(parts, 1), 0, s.count);
}

void map_strings(Node& n) { n.unsupported("works on strings"); }

}  // namespace hone::onnx_io
