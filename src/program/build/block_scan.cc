#include <bit>

#include "kernel/algorithms/block_ordered.h"
#include "program/build/algorithms.h"
#include "program/build/block_builder.h"
#include "target/gpu.h"

namespace hone {

namespace {

// A block goes through its part step by step. In a step its threads copy elements to its memory,
// side by side. Then each has neighbours of its own. It finds their total, and what the totals of
// the threads before it come to. From there on it computes its results, which go back the way the
// elements came. If a row has several parts, a phase before finds the total of each. If rows go
// across memory, the threads of a warp have rows side by side, and warps the place of threads.
class BlockScanBuilder : BlockBuilder {
 public:
  BlockScanBuilder(const KernelBody& body, const Schedule& schedule, std::string_view name)
      : BlockBuilder(body, name),
        node_(graph_.producer(graph_.outputs()[0])),
        op_(graph_.op(node_)),
        type_(graph_.type(graph_.outputs()[0])),
        axis_(static_cast<size_t>(op_.integer("axis"))),
        length_(type_.dim(static_cast<int>(axis_)).value()),
        shape_(scan_shape(body, schedule.get<BlockScanFields>())),
        combine_(combine_of(op_.word("kind"))),
        wide_(wide_type(type_.dtype())) {
    if (shape_.parts > 1) {
      std::vector<Dim> dims(type_.dims().begin(), type_.dims().end());
      dims[axis_] = shape_.parts;
      parts_ = tiles_.buffer("part", Type::get(wide_, dims), BufferRole::shared);
      if (!has_columns()) {
        own_ = tiles_.buffer("own", Type::get(wide_, {}), BufferRole::own);
        warps_ = block_buffer("warp", {shape_.threads / kWarpLanes});
      }
    }
    elements_ = block_buffer("element", {shape_.slots(), shape_.pitch(), shape_.columns});
    totals_ = block_buffer("total", {2, shape_.slots(), shape_.columns});
    before_ = block_buffer("before", {2, shape_.columns});
  }

  TileProgram build() && {
    if (shape_.parts > 1) each_part([&](const IndexExpr& part) { sum_part(part); });
    each_part([&](const IndexExpr& part) { scan_part(part); });
    return finished();
  }

 private:
  tile::BufferId block_buffer(std::string_view name, std::vector<Dim> dims) {
    return tiles_.buffer(name, Type::get(wide_, std::move(dims)), BufferRole::block);
  }
  bool has_columns() const { return shape_.columns > 1; }
  // Where a thread works: it is one of a slot, and has the row of a column.
  struct Place {
    IndexExpr slot, column;
  };
  void threads(int64_t count, const std::function<void(const IndexExpr&)>& body) {
    tiles_.loop(Exec::threads, "t", count, body);
  }
  void each_slot(const std::function<void(const Place&)>& body) {
    threads(shape_.threads, [&](const IndexExpr& thread) {
      if (!has_columns()) return body({thread, 0});
      body({floordiv(thread, shape_.columns), mod(thread, shape_.columns)});
    });
  }
  // One thread for each row of the block.
  void each_column(const std::function<void(const IndexExpr& column)>& body) {
    threads(shape_.columns,
            [&](const IndexExpr& thread) { body(has_columns() ? thread : IndexExpr(0)); });
  }
  Scalar nothing() { return PointBuilder(body_, tiles_, place_).identity(combine_, wide_); }
  Scalar combined(Scalar a, Scalar b) { return tiles_.compute(combine_, {a, b}); }

  // Blocks for the parts of all rows. `row_` is a point of the row.
  void each_part(const std::function<void(const IndexExpr&)>& body) {
    row_.assign(static_cast<size_t>(type_.rank()), 0);
    const std::function<void(size_t)> open = [&](size_t dim) {
      if (dim == row_.size()) return tiles_.loop(Exec::blocks, "part", shape_.parts, body);
      if (dim == axis_) return open(dim + 1);
      const bool is_tile = static_cast<int>(dim) == shape_.column_dim;
      const Dim extent = type_.dim(static_cast<int>(dim));
      tiles_.loop(Exec::blocks, iter_name(static_cast<int>(dim)),
                  is_tile ? ceildiv(extent, shape_.columns) : extent, [&](const IndexExpr& i) {
                    row_[dim] = is_tile ? i * shape_.columns : i;
                    open(dim + 1);
                  });
    };
    open(0);
  }

  // Elements in the order in which they are combined.
  Indices in_row(const IndexExpr& number, const IndexExpr& column) const {
    return in_column(column, op_.flag("reverse") ? IndexExpr(length_ - 1) - number : number);
  }
  Indices in_column(const IndexExpr& column, const IndexExpr& along) const {
    Indices at = row_;
    at[axis_] = along;
    if (has_columns()) {
      IndexExpr& last = at[static_cast<size_t>(shape_.column_dim)];
      last = last + column;
    }
    return at;
  }
  Guards inside_columns(const Indices& at) const {
    if (!has_columns() || type_.dim(shape_.column_dim).divisible_by(shape_.columns)) return {};
    return {{at[static_cast<size_t>(shape_.column_dim)], 0, type_.dim(shape_.column_dim)}};
  }
  Guards inside(const Indices& at) const {
    Guards guards = inside_columns(at);
    if (length_ % shape_.part() != 0) guards.push_back({at[axis_], 0, length_});
    return guards;
  }
  Scalar element(const Indices& at) {
    PointBuilder points = points_here();
    return points.at_or(graph_.operands(node_)[0], at, {}, inside(at), nothing());
  }

  // ---- The total of a part ----------------------------------------------------------------------

  void sum_part(const IndexExpr& part) {
    each_slot([&](const Place& place) {
      const Scalar sum = tiles_.carry(
          Exec::loop, "k", shape_.steps * shape_.points, nothing(), combine_,
          [&](const IndexExpr& k, Scalar so_far) {
            const IndexExpr number = part * shape_.part() + k * shape_.slots() + place.slot;
            return combined(so_far, element(in_row(number, place.column)));
          });
      if (has_columns())
        tiles_.store(totals_, {0, place.slot, place.column}, sum);
      else
        tiles_.store(own_, {}, sum);
    });
    if (!has_columns()) combine_warps();
    tiles_.barrier();
    each_column([&](const IndexExpr& column) {
      const int64_t count = has_columns() ? shape_.slots() : shape_.threads / kWarpLanes;
      const Scalar sum = fold(count, [&](const IndexExpr& i) {
        return has_columns() ? tiles_.load(totals_, {0, i, column}) : tiles_.load(warps_, {i});
      });
      const Indices at = in_column(column, part);
      tiles_.store(parts_, at, sum, inside_columns(at));
    });
  }

  void combine_warps() {
    tiles_.combine(own_, {}, combine_);
    threads(shape_.threads, [&](const IndexExpr& thread) {
      tiles_.store(warps_, {floordiv(thread, kWarpLanes)}, tiles_.load(own_, {}),
                   {{mod(thread, kWarpLanes), 0, 1}});
    });
  }

  Scalar fold(int64_t count, const std::function<Scalar(const IndexExpr&)>& part,
              std::optional<tile::Span> span = {}) {
    return tiles_.carry(
        Exec::loop, "p", count, nothing(), combine_,
        [&](const IndexExpr& p, Scalar so_far) { return combined(so_far, part(p)); },
        std::move(span));
  }

  // ---- Results ----------------------------------------------------------------------------------

  void scan_part(const IndexExpr& part) {
    each_column([&](const IndexExpr& column) {
      Scalar sum = nothing();
      if (shape_.parts > 1)
        sum = fold(
            shape_.parts,
            [&](const IndexExpr& other) {
              const Indices at = in_column(column, other);
              const Guards guards = inside_columns(at);
              if (guards.empty()) return tiles_.load(parts_, at);
              return tiles_.load(parts_, at, guards, nothing());
            },
            tile::Span{0, part});
      tiles_.store(before_, {0, column}, sum);
    });
    tiles_.loop(Exec::loop, "step", shape_.steps,
                [&](const IndexExpr& step) { scan_step(step, part * shape_.steps + step); });
  }

  void scan_step(const IndexExpr& step, const IndexExpr& step_of_row) {
    const IndexExpr first = step_of_row * shape_.step();
    each_element(first, [&](const Indices& at, const Indices& kept) {
      tiles_.store(elements_, kept, element(at));
    });
    if (!has_columns()) tiles_.barrier();  // else a thread has copied what it takes
    add_totals();
    scan_elements(step);
    tiles_.barrier();
    each_element(first, [&](const Indices& at, const Indices& kept) {
      PointBuilder points = points_here();
      points.store(0, at, tiles_.load(elements_, kept), inside(at));
    });
  }

  // Threads side by side have neighbours in memory, each `points` elements in all.
  void each_element(const IndexExpr& first,
                    const std::function<void(const Indices& at, const Indices& kept)>& body) {
    each_slot([&](const Place& place) {
      tiles_.loop(Exec::loop, "k", shape_.points, [&](const IndexExpr& k) {
        if (has_columns())
          return body(in_row(first + place.slot * shape_.points + k, place.column),
                      {place.slot, k, place.column});
        const IndexExpr number = k * shape_.threads + place.slot;
        body(in_row(first + number, 0),
             {floordiv(number, shape_.points), mod(number, shape_.points), 0});
      });
    });
  }

  // The total of each slot's elements, then of all slots up to it: in each round it takes that of a
  // slot twice as far before it.
  void add_totals() {
    each_slot([&](const Place& place) {
      const Scalar sum = fold(shape_.points, [&](const IndexExpr& k) {
        return tiles_.load(elements_, {place.slot, k, place.column});
      });
      tiles_.store(totals_, {0, place.slot, place.column}, sum);
    });
    tiles_.barrier();
    for (int round = 0; round < rounds(); ++round) {
      each_slot([&](const Place& place) {
        const Scalar before = total_before(place, int64_t{1} << round, round % 2);
        const Scalar mine = tiles_.load(totals_, {round % 2, place.slot, place.column});
        tiles_.store(totals_, {(round + 1) % 2, place.slot, place.column}, combined(before, mine));
      });
      tiles_.barrier();
    }
  }
  Scalar total_before(const Place& place, int64_t distance, int64_t half) {
    const IndexExpr other = place.slot - distance;
    return tiles_.load(totals_, {half, other, place.column}, {{other, 0, shape_.slots()}},
                       nothing());
  }
  int rounds() const { return std::bit_width(static_cast<uint64_t>(shape_.slots() - 1)); }

  // From what came before the step, and before the slot in it.
  void scan_elements(const IndexExpr& step) {
    each_slot([&](const Place& place) {
      const Scalar before = tiles_.load(before_, {mod(step, 2), place.column});
      const Scalar of_others = total_before(place, 1, rounds() % 2);
      const Scalar last =
          tiles_.carry(Exec::loop, "k", shape_.points, combined(before, of_others), std::nullopt,
                       [&](const IndexExpr& k, Scalar so_far) {
                         const Indices at = {place.slot, k, place.column};
                         const Scalar next = combined(so_far, tiles_.load(elements_, at));
                         tiles_.store(elements_, at, op_.flag("exclusive") ? so_far : next);
                         return next;
                       });
      tiles_.store(before_, {mod(step + 1, 2), place.column}, last,
                   {{place.slot, shape_.slots() - 1, shape_.slots()}});
    });
  }

  const NodeId node_;
  const Op op_;
  const Type type_;
  const size_t axis_;
  const int64_t length_;
  const ScanShape shape_;
  const Opcode combine_;
  const DType wide_;
  Indices row_;
  tile::BufferId parts_ = 0, own_ = 0, warps_ = 0;  // of several parts
  tile::BufferId elements_ = 0, totals_ = 0, before_ = 0;
};

}  // namespace

Result<TileProgram> build_block_scan(const KernelBody& body, const Schedule& schedule,
                                     std::string_view name) {
  return BlockScanBuilder(body, schedule, name).build();
}

}  // namespace hone
