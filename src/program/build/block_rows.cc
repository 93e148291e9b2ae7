#include "kernel/algorithms/block_rows.h"

#include <algorithm>

#include "ir/op_facts.h"
#include "program/build/algorithms.h"
#include "program/build/block_builder.h"
#include "program/build/tile_parts.h"
#include "program/tiles/bounds.h"
#include "target/gpu.h"

namespace hone {

namespace {

// A row by a block, from the first reduction that all of it shares to the last one, then its
// results. Each part is a threads loop. Threads take points of a dim side by side, so that a warp
// reads neighbours. Parts of a reduction are combined within warps, then by way of the memory of
// the block.
class BlockRowsBuilder : BlockBuilder {
 public:
  BlockRowsBuilder(const KernelBody& body, const Schedule& schedule, std::string_view name)
      : BlockBuilder(body, name),
        schedule_(schedule),
        own_(schedule.get<BlockRowsFields>()),
        space_(space_of(body)),
        row_(block_row(body, space_, schedule).value()),
        threads_(row_threads(own_)),
        points_(static_cast<size_t>(space_.parallel), 0) {
    for (const BlockRow::Shared& shared : row_.shared) {
      const std::string at = fmt::format("{}", sums_.size());
      const DType dtype = wide_type(graph_.type(graph_.result(shared.node)).dtype());
      sums_.push_back({tiles_.buffer("sum" + at, Type::get(dtype, {}), BufferRole::own),
                       own_.warps == 1 ? 0
                                       : tiles_.buffer("part" + at, Type::get(dtype, {own_.warps}),
                                                       BufferRole::block)});
    }
    if (own_.kept == 0) row_.kept.clear();
    for (const BlockRow::Kept& kept : row_.kept)
      kept_.push_back(tiles_.buffer("row",
                                    Type::get(wide_type(graph_.type(kept.parameter).dtype()),
                                              {points_of_thread(kept.points, threads_)}),
                                    BufferRole::own));
  }

  TileProgram build() && {
    blocks(0);
    return finished();
  }

 private:
  // Parts of a reduction: that of each thread, and that of each warp if there are several.
  struct Sum {
    tile::BufferId own, parts;
  };

  size_t blocked() const { return static_cast<size_t>(schedule_.threads); }
  std::string_view name(int dim) const { return space_.dims[static_cast<size_t>(dim)].name; }
  Dim extent(int dim) const { return space_.dims[static_cast<size_t>(dim)].extent; }

  void blocks(size_t at) {
    if (at == blocked() && at > 0) return in_block();
    if (at == blocked())
      return tiles_.loop(Exec::blocks, "once", 1, [&](const IndexExpr&) { in_block(); });
    const int dim = schedule_.order[at];
    tiles_.loop(Exec::blocks, name(dim), extent(dim), [&](const IndexExpr& i) {
      points_[static_cast<size_t>(dim)] = i;
      blocks(at + 1);
    });
  }

  void in_block() {
    for (size_t i = 0; i < row_.kept.size(); ++i) keep(i);
    for (size_t i = 0; i < row_.shared.size(); ++i) reduce(i);
    results();
  }

  // A part of the row by `count` threads.
  void threads(int64_t count, const std::function<void(const IndexExpr&, PointBuilder&)>& body) {
    tiles_.loop(Exec::threads, "t", count, [&](const IndexExpr& thread) {
      PointBuilder points = points_here();
      points.take_elements_from([&](ValueId parameter, const Indices& index) {
        return element(parameter, index, thread);
      });
      body(thread, points);
    });
  }

  // ---- What is read once -----------------------------------------------------------------------

  Indices kept_index(const BlockRow::Kept& kept, const IndexExpr& point) const {
    Indices iters = points_, index;
    iters.push_back(point);
    for (const IndexExpr& expr : kept.index) index.push_back(expr.substitute(iters));
    return index;
  }

  void keep(size_t i) {
    const BlockRow::Kept& kept = row_.kept[i];
    tiles_.loop(Exec::threads, "t", threads_, [&](const IndexExpr& thread) {
      PointBuilder points = points_here();
      const Dim each = points_of_thread(kept.points, threads_);
      open_loop(tiles_, Exec::unroll, "k", each, [&](const IndexExpr& k) {
        const IndexExpr point = k * threads_ + thread;
        const DType dtype = tiles_.program().buffers[kept_[i]].type.dtype();
        const Scalar number = points.at_or(kept.parameter, kept_index(kept, point), {},
                                           {{point, 0, kept.points}}, points.zero(dtype));
        tiles_.store(kept_[i], {k}, number);
      });
    });
  }

  // The element of a parameter, if the thread has kept it. Registers have no index that a loop
  // counts.
  std::optional<Scalar> element(ValueId parameter, const Indices& index, const IndexExpr& thread) {
    for (size_t i = 0; i < row_.kept.size(); ++i) {
      const BlockRow::Kept& kept = row_.kept[i];
      if (kept.parameter != parameter) continue;
      const Indices first = kept_index(kept, 0), second = kept_index(kept, 1);
      for (size_t axis = 0; axis < index.size(); ++axis) {
        const std::optional<Dim> step = (second[axis] - first[axis]).as_constant();
        if (!step || !step->is(1)) continue;
        const IndexExpr ahead = index[axis] - first[axis] - thread;
        const IndexExpr k = floordiv(ahead, threads_);
        if (k * threads_ != ahead || kept_index(kept, k * threads_ + thread) != index) continue;
        if (!k.as_constant() && !tiles_.is_side_by_side(k)) continue;
        const Type type = tiles_.program().buffers[kept_[i]].type;
        const Indices at = {k};
        if (TileBounds(tiles_.program()).outside(at, {}, type)) continue;
        return tiles_.load(kept_[i], at);
      }
    }
    return std::nullopt;
  }

  // ---- Reductions that the row shares ----------------------------------------------------------

  void reduce(size_t i) {
    const BlockRow::Shared& shared = row_.shared[i];
    const Opcode combine = combining(shared.node);
    threads(threads_, [&](const IndexExpr& thread, PointBuilder& points) {
      points.split_by([&](NodeId node) {
        return node == shared.node ? PointBuilder::Splits{split(node, thread)}
                                   : PointBuilder::Splits{};
      });
      bind_shared(i, points);
      tiles_.store(sums_[i].own, {}, points.at(graph_.result(shared.node), here(shared.index)));
    });
    tiles_.combine(sums_[i].own, {}, combine);
    if (own_.warps == 1) return;
    tiles_.loop(Exec::threads, "t", threads_, [&](const IndexExpr& thread) {
      const Scalar sum = tiles_.load(sums_[i].own, {});
      tiles_.store(sums_[i].parts, {floordiv(thread, kWarpLanes)}, sum,
                   {{mod(thread, kWarpLanes), 0, 1}});
    });
    tiles_.barrier();
  }

  Opcode combining(NodeId node) const {
    const Op op = graph_.op(node);
    return is_contraction(op.opcode()) ? Opcode::add : combine_of(op.word("kind"));
  }

  Indices here(const Indices& index) const {
    Indices at;
    for (const IndexExpr& expr : index) at.push_back(expr.substitute(points_));
    return at;
  }

  // The thread takes one of as many points as there are threads. Side by side in registers they are
  // only where their order does not matter to the machine, and where they are kept.
  PointBuilder::Split split(NodeId node, const IndexExpr& thread) const {
    const AccessRelation relation = relation_of(graph_, node);
    const int dim = divided_dim(relation);
    const Dim extent = relation.dims[static_cast<size_t>(dim)].extent;
    const bool is_alone = relation.dims.size() == relation_rank(node) + 1;
    const bool is_kept =
        is_alone && !is_contraction(graph_.opcode(node)) &&
        std::ranges::any_of(row_.kept, [&](const auto& kept) { return kept.points == extent; });
    return {.dim = dim,
            .unroll = is_kept ? points_of_thread(extent, threads_).value() : 1,
            .lanes = threads_,
            .lane = thread};
  }

  size_t relation_rank(NodeId node) const {
    return static_cast<size_t>(graph_.type(graph_.result(node)).rank());
  }

  // Sums that were done before the one at `end`.
  void bind_shared(size_t end, PointBuilder& points) {
    for (size_t i = 0; i < end; ++i) {
      const ValueId value = graph_.result(row_.shared[i].node);
      if (end < row_.shared.size() && !needs(graph_.result(row_.shared[end].node), value)) continue;
      points.bind(value, sum_of(i));
    }
  }

  Scalar sum_of(size_t i) {
    if (own_.warps == 1) return tiles_.load(sums_[i].own, {});
    const Opcode combine = combining(row_.shared[i].node);
    const DType dtype = tiles_.program().buffers[sums_[i].parts].type.dtype();
    const auto identity = identity_of(combine, dtype);
    const Scalar nothing = std::holds_alternative<double>(identity)
                               ? tiles_.real(dtype, std::get<double>(identity))
                               : tiles_.integer(dtype, std::get<int64_t>(identity));
    return tiles_.carry(
        Exec::unroll, "w", own_.warps, nothing, combine, [&](const IndexExpr& w, Scalar so_far) {
          return tiles_.compute(combine, {so_far, tiles_.load(sums_[i].parts, {w})});
        });
  }

  // True if a value is computed from another one.
  bool needs(ValueId value, ValueId other) const {
    std::vector<bool> is_needed(graph_.value_count());
    is_needed[value.index] = true;
    for (uint32_t v = value.index + 1; v-- > other.index;) {
      if (!is_needed[v]) continue;
      if (v == other.index) return true;
      for (ValueId operand : graph_.operands(graph_.producer(ValueId{v})))
        if (!operand.is_none()) is_needed[operand.index] = true;
    }
    return false;
  }

  // ---- Results ---------------------------------------------------------------------------------

  void results() {
    const bool is_point = blocked() == schedule_.order.size();
    threads(is_point ? 1 : threads_, [&](const IndexExpr& thread, PointBuilder& points) {
      bind_shared(row_.shared.size(), points);
      if (is_point) return points.store_outputs(points_, {});
      outer_dims(blocked(), thread, points);
    });
  }

  // The other dims of the row one point after another, the last one by threads.
  void outer_dims(size_t at, const IndexExpr& thread, PointBuilder& points) {
    const int dim = schedule_.order[at];
    IndexExpr& here = points_[static_cast<size_t>(dim)];
    if (at + 1 < schedule_.order.size())
      return tiles_.loop(Exec::loop, name(dim), extent(dim), [&](const IndexExpr& i) {
        here = i;
        outer_dims(at + 1, thread, points);
      });
    const bool is_kept = std::ranges::any_of(
        row_.kept, [&](const auto& kept) { return kept.points == extent(dim); });
    const int64_t unroll = is_kept ? points_of_thread(extent(dim), threads_).value() : 1;
    for (const TilePart& part : tile_parts(extent(dim), unroll, threads_)) {
      open_loop(tiles_, Exec::loop, name(dim), part.trips, [&](const IndexExpr& trip) {
        open_loop(tiles_, Exec::unroll, name(dim), part.unroll, [&](const IndexExpr& u) {
          const IndexExpr point = part.point(trip, u, thread);
          here = point;
          PointBuilder::Guards guards;
          if (part.has_gaps) guards.push_back({point, 0, extent(dim)});
          points.store_outputs(points_, guards);
        });
      });
    }
  }

  const Schedule& schedule_;
  const BlockRowsFields& own_;
  const KernelSpace space_;
  BlockRow row_;
  const int64_t threads_;
  std::vector<IndexExpr> points_;  // per dim of the results
  std::vector<Sum> sums_;          // per shared reduction
  std::vector<tile::BufferId> kept_;
};

}  // namespace

Result<TileProgram> build_block_rows(const KernelBody& body, const Schedule& schedule,
                                     std::string_view name) {
  return BlockRowsBuilder(body, schedule, name).build();
}

}  // namespace hone
