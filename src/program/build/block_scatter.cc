#include <array>
#include <bit>

#include "program/build/algorithms.h"
#include "program/build/block_builder.h"
#include "program/build/block_sorter.h"
#include "program/build/key_order.h"
#include "program/build/tile_parts.h"

namespace hone {

namespace {

// Phases: the operand is copied, updates are sorted by place, runs of one place are found. Each run
// is combined by threads of its own, one for each point of the window. Updates out of bounds have a
// place behind all others, which nobody owns.
class BlockScatterBuilder : BlockBuilder {
 public:
  BlockScatterBuilder(const KernelBody& body, const Schedule& schedule, std::string_view name)
      : BlockBuilder(body, name), places_(body) {
    const auto& own = schedule.get<BlockScatterFields>();
    shape_ = sort_shape(places_.lookups, places_.lookups, own.warps, own.pairs);
    if (places_.op.word("combine") != "replace")
      combine_ = opcode_from_name(places_.op.word("combine"));
    goal_ = shared("goal");
    update_ = shared("update");
    if (combine_) end_ = shared("end");
  }

  TileProgram build() && {
    if (!body_.in_place) copy();
    sort();
    if (combine_) find_runs();
    change();
    return finished();
  }

 private:
  static constexpr int64_t kNowhere = 0xffffffff;  // no place

  tile::BufferId shared(std::string_view name) {
    return tiles_.buffer(name, Type::get(DType::u32, {places_.lookups}), BufferRole::shared);
  }
  ValueId operand(size_t i) const { return graph_.operands(ordered_)[i]; }
  Scalar number(int64_t value) { return tiles_.integer(DType::u32, value); }
  Scalar both(Scalar a, Scalar b) { return tiles_.compute(Opcode::and_, {a, b}); }

  void copy() {
    each_point(tiles_, places_.x.dims(), [&](const Indices& at) {
      PointBuilder points = points_here();
      points.store(0, at, points.at(operand(0), at));
    });
  }

  // ---- Places of updates ------------------------------------------------------------------------

  // The point of the updates that has this number; 0 along windows.
  Indices numbered(const IndexExpr& number) const {
    const std::vector<int>& dims = places_.numbered;
    Indices point(static_cast<size_t>(places_.updates.rank()), 0);
    IndexExpr left = number;
    for (size_t i = dims.size(); i-- > 0;) {
      const Dim size = places_.updates.dim(dims[i]);
      point[static_cast<size_t>(dims[i])] = dims.size() == 1 ? left : mod(left, size);
      left = floordiv(left, size);
    }
    return point;
  }

  // The number of the place that an update goes to.
  Scalar goal_of(const IndexExpr& at, const Guards& guards) {
    PointBuilder points = points_here();
    const Indices update = numbered(at);
    Indices here;  // of the lookup
    for (int dim : places_.dims.batch_dims) here.push_back(update[static_cast<size_t>(dim)]);
    const auto i64 = [&](int64_t value) { return tiles_.integer(DType::i64, value); };
    Scalar sum = i64(0);
    std::optional<Scalar> is_inside;
    for (const ScatterPlaces::Chosen& chosen : places_.chosen) {
      Scalar index = 0;
      if (chosen.component < 0) {
        index = tiles_.position(DType::i64, here[static_cast<size_t>(chosen.batch)]);
      } else {
        index = index_of(points, chosen, here, update, guards);
        const Scalar is_here = both(compared(tiles_, "ge", index, i64(0)),
                                    compared(tiles_, "lt", index, i64(chosen.size)));
        is_inside = is_inside ? both(*is_inside, is_here) : is_here;
      }
      const Scalar part = tiles_.compute(Opcode::mul, {index, i64(chosen.stride)});
      sum = tiles_.compute(Opcode::add, {sum, part});
    }
    if (is_inside) sum = tiles_.compute(Opcode::select, {*is_inside, sum, i64(places_.places)});
    return tiles_.cast(sum, DType::u32);
  }

  // Where the update is along the dim; anywhere outside, if it is not there.
  Scalar index_of(PointBuilder& points, const ScatterPlaces::Chosen& chosen, const Indices& lookup,
                  const Indices& update, const Guards& guards) {
    const Indices component = places_.dims.index_of_component(lookup, chosen.component);
    const Scalar zero = tiles_.zero(places_.indices.dtype());
    const Scalar first = points.at_or(operand(1), component, {}, guards, zero);
    if (chosen.window < 0) return tiles_.cast(first, DType::i64);
    // A start that is farther out than any element of the window stays out.
    const IndexExpr start = tiles_.choose("s", -chosen.size - 1, chosen.size + 1, first);
    return tiles_.position(DType::i64, start + update[static_cast<size_t>(chosen.window)]);
  }

  void sort() {
    BlockSorter::Rows rows;
    rows.keys = {DType::u32};
    rows.read = [&](const Indices&, const IndexExpr& at, const Guards& guards) {
      return std::vector<Scalar>{goal_of(at, guards)};
    };
    rows.write = [&](const Indices&, const IndexExpr& place, const std::vector<Scalar>& keys,
                     Scalar position, const Guards& guards) {
      tiles_.store(goal_, {place}, keys[0], guards);
      tiles_.store(update_, {place}, position, guards);
    };
    BlockSorter(tiles_, shape_, rows).sort();
  }

  // The goal of the update that is so far away in their order.
  Scalar goal_beside(const IndexExpr& at, int64_t distance) {
    const IndexExpr place = at + distance;
    return tiles_.load(goal_, {place}, {{place, 0, places_.lookups}}, number(kNowhere));
  }

  // For the first update of a run: where the run ends. Runs of the others are empty.
  void find_runs() {
    each_point(tiles_, std::array{Dim(places_.lookups)}, [&](const Indices& point) {
      const Scalar goal = tiles_.load(goal_, {point[0]});
      const Scalar is_first = compared(tiles_, "ne", goal, goal_beside(point[0], -1));
      const Scalar is_place = compared(tiles_, "lt", goal, number(places_.places));
      const Scalar here = tiles_.position(DType::u32, point[0]);
      const auto steps =
          static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(places_.lookups)));
      const Scalar next = tiles_.compute(Opcode::add, {here, number(1)});
      const std::vector<Scalar> found = tiles_.carry(
          "search", steps, {next, number(places_.lookups)},
          [&](const IndexExpr&, const std::vector<Scalar>& so_far) {
            const Scalar low = so_far[0], high = so_far[1];
            const Scalar both_ends = tiles_.compute(Opcode::add, {low, high});
            const Scalar half = tiles_.compute(Opcode::shift_right, {both_ends, number(1)});
            const IndexExpr at = tiles_.choose("probe", 0, places_.lookups, half);
            const Scalar is_open = compared(tiles_, "lt", low, high);
            const Scalar is_same = compared(tiles_, "eq", tiles_.load(goal_, {at}), goal);
            const Scalar goes_up = both(is_open, is_same);
            const Scalar goes_down = both(is_open, tiles_.compute(Opcode::not_, {is_same}));
            const Scalar behind = tiles_.compute(Opcode::add, {half, number(1)});
            return std::vector<Scalar>{tiles_.compute(Opcode::select, {goes_up, behind, low}),
                                       tiles_.compute(Opcode::select, {goes_down, half, high})};
          });
      tiles_.store(end_, {point[0]},
                   tiles_.compute(Opcode::select, {both(is_first, is_place), found[0], here}));
    });
  }

  // ---- Results ----------------------------------------------------------------------------------

  void change() {
    std::vector<Dim> dims = {places_.lookups};
    for (size_t i : places_.windows)
      dims.push_back(places_.updates.dim(places_.dims.window_dims[i]));
    each_point(tiles_, dims, [&](const Indices& point) {
      const IndexExpr& at = point[0];
      const Indices window(point.begin() + 1, point.end());
      const Scalar goal = tiles_.load(goal_, {at});
      if (combine_)
        change_by_all(at, window, goal);
      else
        change_by_last(at, window, goal);
    });
  }

  void change_by_all(const IndexExpr& at, const Indices& window, Scalar goal) {
    PointBuilder points = points_here();
    const DType dtype = places_.x.dtype(), wide = wide_type(dtype);
    const IndexExpr end = tiles_.choose("end", 0, places_.lookups + 1, tiles_.load(end_, {at}));
    const Guards owns = {{end - at, 1, places_.lookups + 1}};
    const Indices target = target_of(goal, window);
    const Scalar before =
        tiles_.load(points.output(0), points.stored(0, target), owns, tiles_.zero(dtype));
    const Scalar after = tiles_.carry(
        Exec::loop, "next", places_.lookups, tiles_.cast(before, wide), std::nullopt,
        [&](const IndexExpr& next, Scalar so_far) {
          return tiles_.compute(*combine_, {so_far, update_at(next, window)});
        },
        tile::Span{at, end});
    points.store(0, target, after, owns);
  }

  void change_by_last(const IndexExpr& at, const Indices& window, Scalar goal) {
    PointBuilder points = points_here();
    const Scalar is_last = compared(tiles_, "ne", goal, goal_beside(at, 1));
    const Scalar is_place = compared(tiles_, "lt", goal, number(places_.places));
    const IndexExpr owner =
        tiles_.choose("owner", 0, 2, tiles_.cast(both(is_last, is_place), DType::u32));
    points.store(0, target_of(goal, window), update_at(at, window), {{owner, 1, 2}});
  }

  // The element of the update that is this one in their order.
  Scalar update_at(const IndexExpr& at, const Indices& window) {
    PointBuilder points = points_here();
    const IndexExpr number = tiles_.choose("from", 0, places_.lookups, tiles_.load(update_, {at}));
    Indices index = numbered(number);
    for (size_t i = 0; i < window.size(); ++i)
      index[static_cast<size_t>(places_.dims.window_dims[places_.windows[i]])] = window[i];
    return points.at(operand(2), index);
  }

  Indices target_of(Scalar goal, const Indices& window) {
    Indices target(static_cast<size_t>(places_.x.rank()), 0);
    for (size_t i = 0; i < window.size(); ++i)
      target[static_cast<size_t>(places_.dims.operand_dims[places_.windows[i]])] = window[i];
    const IndexExpr place = tiles_.choose("to", 0, places_.places, goal);
    for (const ScatterPlaces::Chosen& chosen : places_.chosen)
      target[static_cast<size_t>(chosen.dim)] = mod(floordiv(place, chosen.stride), chosen.size);
    return target;
  }

  const NodeId ordered_ = graph_.producer(graph_.outputs()[0]);
  const ScatterPlaces places_;
  SortShape shape_;
  std::optional<Opcode> combine_;  // none: the last update replaces what was there
  // In the order of goals: the goal, which update it is, and where its run ends.
  tile::BufferId goal_ = 0, update_ = 0, end_ = 0;
};

}  // namespace

Result<TileProgram> build_block_scatter(const KernelBody& body, const Schedule& schedule,
                                        std::string_view name) {
  return BlockScatterBuilder(body, schedule, name).build();
}

}  // namespace hone
