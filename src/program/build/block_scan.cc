#include <bit>

#include "kernel/algorithms/block_ordered.h"
#include "program/build/algorithms.h"
#include "target/gpu.h"

namespace hone {

namespace {

// A block goes through its part step by step. In a step its threads copy elements to its memory,
// side by side. Then each has neighbours of its own. It finds their total, and what the totals of
// the threads before it come to. From there on it computes its results, which go back the way the
// elements came. If a row has several parts, a phase before finds the total of each.
class BlockScanBuilder {
 public:
  BlockScanBuilder(const KernelBody& body, const Schedule& schedule, std::string_view name)
      : body_(body),
        graph_(body.graph),
        node_(graph_.producer(graph_.outputs()[0])),
        op_(graph_.op(node_)),
        type_(graph_.type(graph_.outputs()[0])),
        axis_(static_cast<size_t>(op_.integer("axis"))),
        length_(type_.dim(static_cast<int>(axis_)).value()),
        shape_(scan_shape(length_, schedule.get<BlockScanFields>())),
        combine_(combine_of(op_.word("kind"))),
        wide_(wide_type(type_.dtype())),
        tiles_(name),
        place_(kernel_place(body, tiles_)) {
    if (shape_.parts > 1) {
      std::vector<Dim> dims(type_.dims().begin(), type_.dims().end());
      dims[axis_] = shape_.parts;
      parts_ = tiles_.buffer("part", Type::get(wide_, dims), BufferRole::shared);
      own_ = tiles_.buffer("own", Type::get(wide_, {}), BufferRole::own);
      warps_ = block_buffer("warp", {shape_.threads / kWarpLanes});
    }
    elements_ = block_buffer("element", {shape_.threads, shape_.pitch()});
    totals_ = block_buffer("total", {2, shape_.threads});
    before_ = block_buffer("before", {2});
  }

  TileProgram build() && {
    if (shape_.parts > 1) each_part([&](const IndexExpr& part) { sum_part(part); });
    each_part([&](const IndexExpr& part) { scan_part(part); });
    return std::move(tiles_).finish();
  }

 private:
  using Scalar = tile::Scalar;
  using Indices = TileBuilder::Indices;
  using Guards = PointBuilder::Guards;

  tile::BufferId block_buffer(std::string_view name, std::vector<Dim> dims) {
    return tiles_.buffer(name, Type::get(wide_, std::move(dims)), BufferRole::block);
  }
  void threads(int64_t count, const std::function<void(const IndexExpr&)>& body) {
    tiles_.loop(Exec::threads, "t", count, body);
  }
  Scalar nothing() { return PointBuilder(body_, tiles_, place_).identity(combine_, wide_); }
  Scalar combined(Scalar a, Scalar b) { return tiles_.compute(combine_, {a, b}); }

  // Blocks for the parts of all rows. `row_` is a point of the row.
  void each_part(const std::function<void(const IndexExpr&)>& body) {
    row_.assign(static_cast<size_t>(type_.rank()), 0);
    const std::function<void(size_t)> open = [&](size_t dim) {
      if (dim == row_.size()) return tiles_.loop(Exec::blocks, "part", shape_.parts, body);
      if (dim == axis_) return open(dim + 1);
      tiles_.loop(Exec::blocks, iter_name(static_cast<int>(dim)), type_.dim(static_cast<int>(dim)),
                  [&](const IndexExpr& i) {
                    row_[dim] = i;
                    open(dim + 1);
                  });
    };
    open(0);
  }

  // Elements in the order in which they are combined.
  Indices in_row(const IndexExpr& number) const {
    Indices at = row_;
    at[axis_] = op_.flag("reverse") ? IndexExpr(length_ - 1) - number : number;
    return at;
  }
  Indices of_part(const IndexExpr& part) const {
    Indices at = row_;
    at[axis_] = part;
    return at;
  }
  Guards inside(const IndexExpr& number) const {
    if (length_ % shape_.part() == 0) return {};
    return {{in_row(number)[axis_], 0, length_}};
  }
  Scalar element(const IndexExpr& number) {
    PointBuilder points(body_, tiles_, place_);
    return points.at_or(graph_.operands(node_)[0], in_row(number), {}, inside(number), nothing());
  }

  // ---- The total of a part ----------------------------------------------------------------------

  void sum_part(const IndexExpr& part) {
    threads(shape_.threads, [&](const IndexExpr& thread) {
      const Scalar sum = tiles_.carry(
          Exec::loop, "k", shape_.steps * shape_.points, nothing(), combine_,
          [&](const IndexExpr& k, Scalar so_far) {
            return combined(so_far, element(part * shape_.part() + k * shape_.threads + thread));
          });
      tiles_.store(own_, {}, sum);
    });
    tiles_.combine(own_, {}, combine_);
    threads(shape_.threads, [&](const IndexExpr& thread) {
      tiles_.store(warps_, {floordiv(thread, kWarpLanes)}, tiles_.load(own_, {}),
                   {{mod(thread, kWarpLanes), 0, 1}});
    });
    tiles_.barrier();
    threads(1, [&](const IndexExpr&) {
      const Scalar sum = tiles_.carry(Exec::loop, "w", shape_.threads / kWarpLanes, nothing(),
                                      combine_, [&](const IndexExpr& w, Scalar so_far) {
                                        return combined(so_far, tiles_.load(warps_, {w}));
                                      });
      tiles_.store(parts_, of_part(part), sum);
    });
  }

  // ---- Results ----------------------------------------------------------------------------------

  void scan_part(const IndexExpr& part) {
    threads(1, [&](const IndexExpr&) {
      Scalar sum = nothing();
      if (shape_.parts > 1)
        sum = tiles_.carry(
            Exec::loop, "q", shape_.parts, sum, combine_,
            [&](const IndexExpr& q, Scalar so_far) {
              return combined(so_far, tiles_.load(parts_, of_part(q)));
            },
            tile::Span{0, part});
      tiles_.store(before_, {0}, sum);
    });
    tiles_.loop(Exec::loop, "step", shape_.steps,
                [&](const IndexExpr& step) { scan_step(step, part * shape_.steps + step); });
  }

  void scan_step(const IndexExpr& step, const IndexExpr& step_of_row) {
    const IndexExpr first = step_of_row * shape_.step();
    each_element([&](const IndexExpr& place, const Indices& kept) {
      tiles_.store(elements_, kept, element(first + place));
    });
    tiles_.barrier();
    add_totals();
    scan_elements(step);
    tiles_.barrier();
    each_element([&](const IndexExpr& place, const Indices& kept) {
      PointBuilder points(body_, tiles_, place_);
      points.store(0, in_row(first + place), tiles_.load(elements_, kept), inside(first + place));
    });
  }

  // Threads side by side have neighbours, each `points` of them in all.
  void each_element(const std::function<void(const IndexExpr& place, const Indices& kept)>& body) {
    threads(shape_.threads, [&](const IndexExpr& thread) {
      tiles_.loop(Exec::loop, "k", shape_.points, [&](const IndexExpr& k) {
        const IndexExpr place = k * shape_.threads + thread;
        body(place, {floordiv(place, shape_.points), mod(place, shape_.points)});
      });
    });
  }

  // The total of each thread's elements, then of all threads up to it: in each round it takes that
  // of a thread twice as far before it.
  void add_totals() {
    threads(shape_.threads, [&](const IndexExpr& thread) {
      const Scalar sum =
          tiles_.carry(Exec::loop, "k", shape_.points, nothing(), combine_,
                       [&](const IndexExpr& k, Scalar so_far) {
                         return combined(so_far, tiles_.load(elements_, {thread, k}));
                       });
      tiles_.store(totals_, {0, thread}, sum);
    });
    tiles_.barrier();
    for (int round = 0; round < rounds(); ++round) {
      threads(shape_.threads, [&](const IndexExpr& thread) {
        const IndexExpr other = thread - (int64_t{1} << round);
        const Scalar before =
            tiles_.load(totals_, {round % 2, other}, {{other, 0, shape_.threads}}, nothing());
        const Scalar mine = tiles_.load(totals_, {round % 2, thread});
        tiles_.store(totals_, {(round + 1) % 2, thread}, combined(before, mine));
      });
      tiles_.barrier();
    }
  }
  int rounds() const { return std::bit_width(static_cast<uint64_t>(shape_.threads - 1)); }

  // From what came before the step, and before the thread in it.
  void scan_elements(const IndexExpr& step) {
    threads(shape_.threads, [&](const IndexExpr& thread) {
      const Scalar before = tiles_.load(before_, {mod(step, 2)});
      const Scalar of_others = tiles_.load(totals_, {rounds() % 2, thread - 1},
                                           {{thread - 1, 0, shape_.threads}}, nothing());
      const Scalar last = tiles_.carry(
          Exec::loop, "k", shape_.points, combined(before, of_others), std::nullopt,
          [&](const IndexExpr& k, Scalar so_far) {
            const Scalar next = combined(so_far, tiles_.load(elements_, {thread, k}));
            tiles_.store(elements_, {thread, k}, op_.flag("exclusive") ? so_far : next);
            return next;
          });
      tiles_.store(before_, {mod(step + 1, 2)}, last,
                   {{thread, shape_.threads - 1, shape_.threads}});
    });
  }

  const KernelBody& body_;
  const Graph& graph_;
  const NodeId node_;
  const Op op_;
  const Type type_;
  const size_t axis_;
  const int64_t length_;
  const ScanShape shape_;
  const Opcode combine_;
  const DType wide_;
  TileBuilder tiles_;
  const StagePlace place_;
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
