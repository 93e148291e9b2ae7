#include "program/build/ordered.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/planted.h"
#include "ir/ops/indexed_dims.h"
#include "program/build/key_order.h"
#include "program/build/point_builder.h"

namespace hone {

namespace {

constexpr int64_t kMaxSorted = int64_t{1} << 40;  // elements that no memory holds

class OrderedBuilder {
 public:
  OrderedBuilder(const KernelBody& body, std::string_view name)
      : graph_(body.graph),
        node_(node_of(body.graph)),
        is_in_place_(body.in_place),
        tiles_(name),
        points_(body, tiles_, kernel_place(body, tiles_)) {}

  TileProgram build() && {
    const Opcode opcode = op().opcode();
    if (opcode == Opcode::cumulative)
      accumulate();
    else if (opcode == Opcode::scatter)
      scatter();
    else
      sort();
    return std::move(tiles_).finish();
  }

 private:
  using Scalar = tile::Scalar;
  using Indices = TileBuilder::Indices;

  static NodeId node_of(const Graph& graph) { return graph.producer(graph.outputs()[0]); }
  Op op() const { return graph_.op(node_); }
  Type operand(size_t i) const { return graph_.type(graph_.operands(node_)[i]); }
  Type result() const { return graph_.type(graph_.result(node_)); }
  Scalar load(size_t i, const Indices& index, const PointBuilder::Guards& guards, Scalar other) {
    return points_.at_or(graph_.operands(node_)[i], index, {}, guards, other);
  }
  Scalar load(size_t i, const Indices& index) {
    return points_.at(graph_.operands(node_)[i], index);
  }

  void accumulate();
  void scatter();
  void sort();
  // Two rows of what is sorted: one that is read and one that is written, in turn.
  struct Rows {
    std::vector<tile::BufferId> keys;
    std::optional<tile::BufferId> order;  // positions, if more than keys is asked for
  };
  void merge_runs(const Rows& rows, const IndexExpr& pass, Scalar width, Dim length);
  Scalar inverse(Scalar x) { return tiles_.compute(Opcode::not_, {x}); }
  Scalar both(Scalar a, Scalar b) { return compute(Opcode::and_, a, b); }
  Scalar either(Scalar a, Scalar b) { return compute(Opcode::or_, a, b); }

  // Over all elements of a type but those along `but`; the loops of a phase of their own. The
  // innermost is within a thread.
  void each_element(Type type, bool by_threads, const std::function<void(Indices&)>& body,
                    int but = -1);
  bool is_divisible() const {  // among threads, that do not share bytes
    for (ValueId output : graph_.outputs())
      if (bits(graph_.type(output).dtype()) < 8) return false;
    return true;
  }
  Scalar compute(Opcode opcode, Scalar a, Scalar b) { return tiles_.compute(opcode, {a, b}); }

  const Graph& graph_;
  const NodeId node_;
  const bool is_in_place_;
  TileBuilder tiles_;
  PointBuilder points_;
};

void OrderedBuilder::each_element(Type type, bool by_threads,
                                  const std::function<void(Indices&)>& body, int but) {
  std::vector<int> axes;
  for (int axis = 0; axis < type.rank(); ++axis)
    if (axis != but) axes.push_back(axis);
  Indices index(static_cast<size_t>(type.rank()), 0);
  const std::function<void(size_t)> open = [&](size_t i) {
    if (i == axes.size()) return body(index);
    const bool is_inner = i > 0 && i + 1 == axes.size();
    tiles_.loop(by_threads && !is_inner ? Exec::threads : Exec::loop, iter_name(axes[i]),
                type.dim(axes[i]), [&](IndexExpr at) {
                  index[static_cast<size_t>(axes[i])] = std::move(at);
                  open(i + 1);
                });
  };
  if (!axes.empty()) return open(0);
  tiles_.loop(Exec::loop, "once", 1, [&](const IndexExpr&) { open(0); });
}

void OrderedBuilder::accumulate() {
  const Opcode combine = combine_of(op().word("kind"));
  const DType wide = wide_type(result().dtype());
  const bool is_exclusive = HONE_PLANT(cumulative_exclusive, op().flag("exclusive"), false);
  const auto axis = static_cast<size_t>(op().integer("axis"));
  const Dim length = result().dim(static_cast<int>(axis));
  auto add = [&](Indices& at, Scalar so_far) { return compute(combine, so_far, load(0, at)); };
  each_element(
      result(), is_divisible(),
      [&](Indices& at) {
        const Scalar initial = points_.identity(combine, wide);
        tiles_.carry(Exec::loop, "step", length, initial, std::nullopt,
                     [&](const IndexExpr& step, Scalar so_far) {
                       at[axis] = HONE_PLANT(cumulative_reverse, op().flag("reverse"), false)
                                      ? IndexExpr(length - 1) - step
                                      : step;
                       const Scalar next = add(at, so_far);
                       points_.store(0, at, is_exclusive ? so_far : next);
                       return next;
                     });
      },
      static_cast<int>(axis));
}

// First a copy, but in place, then update after update by one thread: their order counts.
void OrderedBuilder::scatter() {
  const Type x = operand(0), updates = operand(2);
  const IndexedDims dims(op(), op().ints("window_dims"), op().ints("inserted_dims"), x, operand(1));
  if (!is_in_place_)
    each_element(x, is_divisible(), [&](const Indices& at) { points_.store(0, at, load(0, at)); });
  each_element(updates, false, [&](const Indices& at) {
    Indices target(static_cast<size_t>(x.rank()), 0);
    for (size_t i = 0; i < dims.window_dims.size(); ++i)
      target[static_cast<size_t>(dims.operand_dims[i])] =
          at[static_cast<size_t>(dims.window_dims[i])];
    Indices lookup;
    for (int dim : dims.batch_dims) lookup.push_back(at[static_cast<size_t>(dim)]);
    for (size_t i = 0; i < dims.operand_batch_dims.size(); ++i)
      target[static_cast<size_t>(dims.operand_batch_dims[i])] =
          lookup[static_cast<size_t>(dims.batch_ordinals[i])];
    PointBuilder::Guards guards;
    for (size_t k = 0; k < dims.index_map.size(); ++k) {
      const auto axis = static_cast<size_t>(dims.index_map[k]);
      const Dim size = x.dim(static_cast<int>(axis));
      const Scalar value = load(1, dims.index_of_component(lookup, static_cast<int>(k)));
      // A start that is farther out than any element of the window stays out.
      target[axis] = target[axis] + tiles_.choose("s", Dim(0) - size - 1, size + 1, value);
      guards.push_back({target[axis], 0, size});
    }
    const Scalar update = load(2, at);
    if (HONE_PLANT(scatter_combine, op().word("combine") == "replace", true))
      return points_.store(0, target, update, guards);
    const Scalar before =
        tiles_.load(points_.output(0), points_.stored(0, target), guards, points_.zero(x.dtype()));
    const Opcode combine = *opcode_from_name(op().word("combine"));
    points_.store(0, target, compute(combine, tiles_.cast(before, wide_type(x.dtype())), update),
                  guards);
  });
}

// Sorted runs are merged, two by two, into runs of twice the width: from one row to the other, and
// back. Keys move along, so that they are read in order; the rest is read once, by its position.
void OrderedBuilder::sort() {
  const auto axis = static_cast<size_t>(op().integer("axis"));
  const auto keys = static_cast<size_t>(op().integer("keys"));
  const Dim length = operand(0).dim(static_cast<int>(axis));
  const int64_t most = std::clamp<int64_t>(length.range().high, 1, kMaxSorted);
  const auto passes = static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(most - 1)));
  std::vector<size_t> results;  // by output
  for (ValueId output : graph_.outputs()) results.push_back(graph_.result_index(output));
  // Holds three times the length. Without a sign it is checked against the upper bound alone.
  const DType index = most <= int64_t{1} << 30 ? DType::u32 : DType::i64;
  const auto make_rows = [&](std::string_view name, DType dtype) {
    return tiles_.buffer(name, Type::get(dtype, {2, length}), BufferRole::scratch);
  };
  Rows rows;
  for (size_t k = 0; k < keys; ++k) rows.keys.push_back(make_rows("key", operand(k).dtype()));
  if (std::ranges::any_of(results, [&](size_t result) { return result >= keys; }))
    rows.order = make_rows("order", index);
  each_element(
      result(), is_divisible(),
      [&](const Indices& at) {
        Indices here = at;
        tiles_.loop(Exec::loop, "i", length, [&](const IndexExpr& i) {
          here[axis] = i;
          for (size_t k = 0; k < keys; ++k)
            tiles_.store(rows.keys[k], {0, i}, tiles_.cast(load(k, here), operand(k).dtype()));
          if (rows.order) tiles_.store(*rows.order, {0, i}, tiles_.position(index, i));
        });
        tiles_.carry(Exec::loop, "pass", passes, tiles_.integer(index, 1), std::nullopt,
                     [&](const IndexExpr& pass, Scalar width) {
                       merge_runs(rows, pass, width, length);
                       return compute(Opcode::add, width, width);
                     });
        tiles_.loop(Exec::loop, "i", result().dim(static_cast<int>(axis)), [&](const IndexExpr& i) {
          here[axis] = i;
          Indices from = at;
          if (rows.order)
            from[axis] = tiles_.choose("at", 0, length, tiles_.load(*rows.order, {passes % 2, i}));
          for (size_t k = 0; k < results.size(); ++k)
            points_.store(k, here,
                          results[k] < keys ? tiles_.load(rows.keys[results[k]], {passes % 2, i})
                                            : load(results[k], from));
        });
      },
      static_cast<int>(axis));
}

// From each two runs of `width` positions the first that is left of either goes next: `a` and `b`
// count through them, which end where the next two begin. Among equals, that of the first run.
void OrderedBuilder::merge_runs(const Rows& rows, const IndexExpr& pass, Scalar width, Dim length) {
  const DType index = tiles_.dtype(width);
  const Scalar zero = points_.zero(index), one = points_.number(index, int64_t{1});
  const Scalar end = points_.position(index, length);
  auto add = [&](Scalar a, Scalar b) { return compute(Opcode::add, a, b); };
  auto least = [&](Scalar a, Scalar b) { return compute(Opcode::min, a, b); };
  auto select = [&](Scalar condition, Scalar a, Scalar b) {
    return tiles_.compute(Opcode::select, {condition, a, b});
  };
  std::vector<tile::BufferId> moved = rows.keys;
  if (rows.order) moved.push_back(*rows.order);
  auto element = [&](Scalar at) {
    const IndexExpr place = tiles_.choose("run", 0, length, at);
    std::vector<Scalar> parts;
    for (tile::BufferId buffer : moved) parts.push_back(tiles_.load(buffer, {mod(pass, 2), place}));
    return parts;
  };
  auto keys_of = [&](const std::vector<Scalar>& parts) {
    return std::vector<Scalar>(parts.begin(), parts.begin() + std::ssize(rows.keys));
  };
  tiles_.carry(
      "i", length, {zero, zero, zero}, [&](const IndexExpr& i, const std::vector<Scalar>& so_far) {
        const Scalar here = points_.position(index, i);
        const Scalar begins = points_.compare("ge", here, so_far[2]);
        const Scalar a = select(begins, here, so_far[0]);
        const Scalar middle = add(a, width);
        const Scalar b = select(begins, middle, so_far[1]);
        const Scalar next = select(begins, add(middle, width), so_far[2]);
        const Scalar a_end = least(compute(Opcode::sub, next, width), end);
        const Scalar has_a = points_.compare("lt", a, a_end);
        const Scalar has_b = points_.compare("lt", b, least(next, end));
        const std::vector<Scalar> first = element(a), second = element(b);
        const auto mine = keys_of(first), theirs = keys_of(second);
        KeyOrder order(tiles_, op().flag("descending"));
        const Scalar comes_first = HONE_PLANT(sort_stability, order.comes_before(theirs, mine),
                                              inverse(order.comes_before(mine, theirs)));
        const Scalar takes_b = both(has_b, either(inverse(has_a), comes_first));
        for (size_t k = 0; k < moved.size(); ++k)
          tiles_.store(moved[k], {mod(pass + 1, 2), i}, select(takes_b, second[k], first[k]));
        return std::vector<Scalar>{select(takes_b, a, add(a, one)), select(takes_b, add(b, one), b),
                                   next};
      });
}

}  // namespace

TileProgram build_ordered(const KernelBody& body, std::string_view name) {
  return OrderedBuilder(body, name).build();
}

}  // namespace hone
