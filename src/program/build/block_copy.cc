#include "kernel/algorithms/block_copy.h"

#include <algorithm>

#include "program/build/algorithms.h"
#include "program/build/block_builder.h"
#include "target/gpu.h"

namespace hone {

namespace {

// A block reads 32 rows of 32 neighbours into a square of its memory, whose rows are a number apart
// from those of the banks, and stores from its columns.
class BlockCopyBuilder : BlockBuilder {
 public:
  BlockCopyBuilder(const KernelBody& body, const Schedule& schedule, std::string_view name)
      : BlockBuilder(body, name),
        schedule_(schedule),
        space_(space_of(body)),
        reads_(copied_reads(body, space_, schedule).value()),
        threads_(schedule.get<BlockCopyFields>().warps * kWarpLanes),
        across_(schedule.order[schedule.order.size() - 2]),
        along_(schedule.order.back()),
        first_(static_cast<size_t>(space_.parallel), 0) {
    for (const BlockRow::Read& read : reads_) {
      const DType dtype = wide_type(body.graph.type(read.parameter).dtype());
      squares_.push_back(
          tiles_.buffer("square", Type::get(dtype, {kCopySide, kCopySide + 1}), BufferRole::block));
    }
  }

  TileProgram build() && {
    blocks(0);
    return finished();
  }

 private:
  Dim extent(int dim) const { return space_.dims[static_cast<size_t>(dim)].extent; }

  void blocks(size_t at) {
    if (at == schedule_.order.size()) return in_block();
    const int dim = schedule_.order[at];
    const bool is_side = dim == across_ || dim == along_;
    tiles_.loop(Exec::blocks, space_.dims[static_cast<size_t>(dim)].name,
                is_side ? ceildiv(extent(dim), kCopySide) : extent(dim), [&](const IndexExpr& i) {
                  first_[static_cast<size_t>(dim)] = is_side ? i * kCopySide : i;
                  blocks(at + 1);
                });
  }

  // Threads side by side have points along `lane_dim`, warps and trips the others.
  void each_point(int lane_dim,
                  const std::function<void(const Indices& point, const Indices& in_square,
                                           const Guards& guards)>& body) {
    const int64_t warps = threads_ / kWarpLanes;
    tiles_.loop(Exec::threads, "t", threads_, [&](const IndexExpr& thread) {
      tiles_.loop(Exec::loop, "k", kCopySide / warps, [&](const IndexExpr& k) {
        const IndexExpr lane = mod(thread, kWarpLanes);
        const IndexExpr row = k * warps + floordiv(thread, kWarpLanes);
        const bool is_along = lane_dim == along_;
        const IndexExpr along = is_along ? lane : row, across = is_along ? row : lane;
        Indices point = first_;
        Guards guards;
        const auto move = [&](int dim, const IndexExpr& by) {
          IndexExpr& at = point[static_cast<size_t>(dim)];
          at = at + by;
          if (!extent(dim).divisible_by(kCopySide)) guards.push_back({at, 0, extent(dim)});
        };
        move(along_, along);
        move(across_, across);
        body(point, {along, across}, guards);
      });
    });
  }

  void in_block() {
    each_point(across_, [&](const Indices& point, const Indices& in_square, const Guards& guards) {
      PointBuilder points = points_here();
      for (size_t i = 0; i < reads_.size(); ++i) {
        Indices index;
        for (const IndexExpr& expr : reads_[i].index) index.push_back(expr.substitute(point));
        tiles_.store(squares_[i], in_square, points.at(reads_[i].parameter, index, guards));
      }
    });
    tiles_.barrier();
    each_point(along_, [&](const Indices& point, const Indices& in_square, const Guards& guards) {
      PointBuilder points = points_here();
      points.take_elements_from(
          [&](ValueId parameter, const Indices&) { return in_memory(parameter, in_square); });
      points.store_outputs(point, guards);
    });
  }

  // A parameter that is copied is read at one place.
  std::optional<Scalar> in_memory(ValueId parameter, const Indices& in_square) {
    const auto read = std::ranges::find(reads_, parameter, &BlockRow::Read::parameter);
    if (read == reads_.end()) return std::nullopt;
    return tiles_.load(squares_[static_cast<size_t>(read - reads_.begin())], in_square);
  }

  const Schedule& schedule_;
  const KernelSpace space_;
  const std::vector<BlockRow::Read> reads_;
  const int64_t threads_;
  const int across_, along_;
  Indices first_;  // point of the block
  std::vector<tile::BufferId> squares_;
};

}  // namespace

Result<TileProgram> build_block_copy(const KernelBody& body, const Schedule& schedule,
                                     std::string_view name) {
  return BlockCopyBuilder(body, schedule, name).build();
}

}  // namespace hone
