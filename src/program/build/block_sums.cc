#include "kernel/algorithms/block_sums.h"

#include "ir/op_facts.h"
#include "program/build/algorithms.h"
#include "program/build/block_builder.h"
#include "program/build/tile_parts.h"
#include "target/gpu.h"

namespace hone {

namespace {

// Each thread of a block sums some points of a result. A warp, or one thread for each column, adds
// their sums by way of the memory of the block. If sums are split, a phase of threads adds the
// parts of all blocks. Who has the whole sum computes the result.
class BlockSumsBuilder : BlockBuilder {
 public:
  BlockSumsBuilder(const KernelBody& body, const Schedule& schedule, std::string_view name)
      : BlockBuilder(body, name),
        schedule_(schedule),
        space_(space_of(body)),
        node_(summed_node(body, space_).value()),
        shape_(sums_shape(body, node_, schedule)),
        combine_(is_contraction(graph_.opcode(node_)) ? Opcode::add
                                                      : combine_of(graph_.op(node_).word("kind"))),
        dtype_(wide_type(graph_.type(graph_.result(node_)).dtype())),
        point_(static_cast<size_t>(space_.parallel), 0) {
    if (shape_.splits > 1) {
      std::vector<Dim> dims = {shape_.splits};
      for (int dim = 0; dim < space_.parallel; ++dim) dims.push_back(extent(dim));
      splits_ = tiles_.buffer("split", Type::get(dtype_, dims), BufferRole::shared);
    }
    if (shape_.columns == 1)
      own_ = tiles_.buffer("own", Type::get(dtype_, {shape_.rows}), BufferRole::own);
    parts_ = tiles_.buffer("part", Type::get(dtype_, {warps(), shape_.rows, shape_.columns}),
                           BufferRole::block);
  }

  TileProgram build() && {
    if (shape_.splits > 1)
      tiles_.loop(Exec::blocks, "split", shape_.splits,
                  [&](const IndexExpr& split) { each_point(Exec::blocks, [&] { sum(split); }); });
    else
      each_point(Exec::blocks, [&] { sum(0); });
    if (shape_.splits > 1) each_point(Exec::threads, [&] { add_splits(); });
    return finished();
  }

 private:
  Dim extent(int dim) const { return space_.dims[static_cast<size_t>(dim)].extent; }
  int64_t warps() const { return shape_.threads / kWarpLanes; }
  bool has_columns() const { return shape_.columns > 1; }

  // The results, or columns of them if a block has several.
  void each_point(Exec exec, const std::function<void()>& body) {
    const std::function<void(size_t)> open = [&](size_t at) {
      if (at == schedule_.order.size()) return body();
      const int dim = schedule_.order[at];
      if (exec == Exec::blocks && dim == shape_.rows_dim) return open(at + 1);
      const bool is_tile =
          exec == Exec::blocks && has_columns() && at + 1 == schedule_.order.size();
      const Dim trips = is_tile ? ceildiv(extent(dim), shape_.columns) : extent(dim);
      tiles_.loop(exec, space_.dims[static_cast<size_t>(dim)].name, trips, [&](const IndexExpr& i) {
        point_[static_cast<size_t>(dim)] = is_tile ? i * shape_.columns : i;
        open(at + 1);
      });
    };
    if (!schedule_.order.empty()) return open(0);
    tiles_.loop(exec, "once", 1, [&](const IndexExpr&) { body(); });
  }

  // A result of the block.
  Indices point_of(const IndexExpr& row, const IndexExpr& column) const {
    Indices at = point_;
    if (shape_.rows_dim) at[static_cast<size_t>(*shape_.rows_dim)] = row;
    if (has_columns()) {
      IndexExpr& last = at[static_cast<size_t>(schedule_.order.back())];
      last = last + column;
    }
    return at;
  }
  // Sums of rows are side by side in registers of a thread.
  void each_row(Exec exec, const std::function<void(const IndexExpr&)>& body) {
    open_loop(tiles_, exec, "row", shape_.rows, body);
  }
  Guards inside(const Indices& point) const {
    if (!has_columns() || extent(schedule_.order.back()).divisible_by(shape_.columns)) return {};
    const int dim = schedule_.order.back();
    return {{point[static_cast<size_t>(dim)], 0, extent(dim)}};
  }

  void sum(const IndexExpr& split) {
    tiles_.loop(Exec::threads, "t", shape_.threads, [&](const IndexExpr& thread) {
      const IndexExpr column = has_columns() ? mod(thread, shape_.columns) : IndexExpr(0);
      const IndexExpr slot = floordiv(thread, shape_.threads / shape_.slots);
      PointBuilder points = points_here();
      points.split_by([&](NodeId node) {
        if (node != node_) return PointBuilder::Splits{};
        PointBuilder::Splits splits = {{.dim = shape_.slots_dim,
                                        .lanes = shape_.parts(),
                                        .lane = split * shape_.slots + slot}};
        if (shape_.lanes_dim)
          splits.push_back(
              {.dim = *shape_.lanes_dim, .lanes = kWarpLanes, .lane = mod(thread, kWarpLanes)});
        return splits;
      });
      each_row(Exec::unroll, [&](const IndexExpr& row) {
        const Indices point = point_of(row, column);
        const Scalar part = points.at(graph_.result(node_), point, inside(point));
        if (has_columns())
          tiles_.store(parts_, {slot, row, column}, part);
        else
          tiles_.store(own_, {row}, part);
      });
    });
    if (!has_columns()) {
      for (int64_t row = 0; row < shape_.rows; ++row) tiles_.combine(own_, {row}, combine_);
      tiles_.loop(Exec::threads, "t", shape_.threads, [&](const IndexExpr& thread) {
        each_row(Exec::unroll, [&](const IndexExpr& row) {
          tiles_.store(parts_, {floordiv(thread, kWarpLanes), row, 0}, tiles_.load(own_, {row}),
                       {{mod(thread, kWarpLanes), 0, 1}});
        });
      });
    }
    tiles_.barrier();
    tiles_.loop(Exec::threads, "t", shape_.columns, [&](const IndexExpr& column) {
      each_row(Exec::loop, [&](const IndexExpr& row) { add_parts(split, row, column); });
    });
  }

  void add_parts(const IndexExpr& split, const IndexExpr& row, const IndexExpr& column) {
    PointBuilder points = points_here();
    const Scalar sum = folded(points, warps(), [&](const IndexExpr& warp) {
      return tiles_.load(parts_, {warp, row, column});
    });
    const Indices point = point_of(row, column);
    if (shape_.splits == 1) return finish(points, point, sum, inside(point));
    tiles_.store(splits_, of_split(split, point), sum, inside(point));
  }

  void add_splits() {
    PointBuilder points = points_here();
    const Scalar sum = folded(points, shape_.splits, [&](const IndexExpr& split) {
      return tiles_.load(splits_, of_split(split, point_));
    });
    finish(points, point_, sum, {});
  }

  static Indices of_split(const IndexExpr& split, const Indices& point) {
    Indices at = {split};
    at.insert(at.end(), point.begin(), point.end());
    return at;
  }

  Scalar folded(PointBuilder& points, int64_t count,
                const std::function<Scalar(const IndexExpr&)>& part) {
    return tiles_.carry(Exec::loop, "p", count, points.identity(combine_, dtype_), combine_,
                        [&](const IndexExpr& p, Scalar so_far) {
                          return tiles_.compute(combine_, {so_far, part(p)});
                        });
  }

  void finish(PointBuilder& points, const Indices& point, Scalar sum, const Guards& guards) {
    points.bind(graph_.result(node_), sum);
    points.store_outputs(point, guards);
  }

  const Schedule& schedule_;
  const KernelSpace space_;
  const NodeId node_;
  const SumsShape shape_;
  const Opcode combine_;
  const DType dtype_;
  Indices point_;
  tile::BufferId splits_ = 0, own_ = 0, parts_ = 0;
};

}  // namespace

Result<TileProgram> build_block_sums(const KernelBody& body, const Schedule& schedule,
                                     std::string_view name) {
  return BlockSumsBuilder(body, schedule, name).build();
}

}  // namespace hone
