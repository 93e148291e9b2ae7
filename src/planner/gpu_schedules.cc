#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <vector>

#include "ir/op_facts.h"
#include "kernel/algorithms/block_rows.h"
#include "kernel/algorithms/block_sums.h"
#include "kernel/algorithms/block_tiles.h"
#include "kernel/algorithms/block_winograd.h"
#include "kernel/algorithms/loops.h"
#include "kernel/schedule_space.h"
#include "planner/field_chooser.h"

namespace hone {
namespace {

// The price of a kernel by winograd, as one of the schedule of its product.
class WholePrice : public PricedKernel {
 public:
  WholePrice(PricedKernel& price, Schedule whole) : price_(price), whole_(std::move(whole)) {}
  void price(std::span<const Schedule> schedules, double limit,
             std::span<double> seconds) override {
    std::vector<Schedule> wholes;
    for (const Schedule& schedule : schedules) wholes.push_back(with(schedule));
    price_.price(wholes, limit, seconds);
  }
  Schedule with(const Schedule& product) const {
    Schedule whole = whole_;
    whole.get<BlockWinogradFields>().stages = {product};
    return whole;
  }

 private:
  PricedKernel& price_;
  const Schedule whole_;
};

// Divides a kernel among the threads of a GPU. Each has a point or a row of points, or the threads
// of a block share rows, sums, copies or tiles of a product.
class GpuChooser : public FieldChooser {
 public:
  using FieldChooser::FieldChooser;

  // A thread of a GPU takes a point, or a row of them: no vectors, no tiles.
  void run(const Schedule& nest) {
    if (threads_ < 2) return;
    if (!all_have_points(site_)) return try_all();
    for (int threads = 1; threads <= space_.parallel; ++threads)
      for (int row = 0; row <= space_.parallel; ++row) {
        if (row != 0 && (row < threads || !on_.rows)) continue;
        Schedule next = nest;
        next.threads = threads;
        next.get<NestFields>().row = row;
        consider(next);
      }
    if (on_.rows && reduces()) try_block_rows(nest);
    if (on_.rows && def_of(Algorithm::block_sums).takes(site_)) try_block_sums(nest);
    if (on_.transposed_blocks && def_of(Algorithm::block_copy).takes(site_)) try_block_copy(nest);
    if (on_.gemm && tiled_product(facts_).ok()) try_block_tiles(nest);
    if (on_.winograd) try_block_winograd(nest);
  }

 private:
  // Ops whose points have an order have few schedules.
  void try_all() {
    ScheduleSpace(body_, facts_, target_).each([&](const Schedule& schedule) {
      consider(schedule);
      return true;
    });
  }

  bool reduces() const {
    return std::ranges::any_of(facts_.nodes, [&](NodeId node) {
      const Opcode opcode = body_.graph.opcode(node);
      return is_contraction(opcode) || combines_by_kind(opcode);
    });
  }

  // Blocks divide all but the last dims, in order.
  void try_block_rows(const Schedule& nest) {
    for (int threads = 0; threads <= space_.parallel; ++threads) {
      Schedule next = nest;
      next.threads = threads;
      const Result<BlockRow> row = block_row(body_, space_, next);
      if (!row.ok() || row->shared.empty()) continue;
      for (int warps : {1, 2, 4, 8, 16, 32})
        for (int kept : {0, 1}) {
          if (kept == 1 && row->kept.empty()) continue;
          next.own = BlockRowsFields{.warps = warps, .kept = kept};
          consider(next);
        }
    }
  }

  // Results side by side along any dim, or points of one sum.
  void try_block_sums(const Schedule& nest) {
    Schedule next = nest;
    next.threads = space_.parallel;
    consider_sums(next, 1);
    for (int dim = 0; dim < space_.parallel; ++dim) {
      if (extent(dim) < kWarpLanes / 2) continue;
      next.order = with_last(nest.order, {dim});
      consider_sums(next, static_cast<int>(kWarpLanes));
    }
  }

  // With as many blocks for a sum as keep all processors of the chip busy.
  void consider_sums(Schedule next, int columns) {
    next.own = BlockSumsFields{.columns = columns};
    const int64_t rows = sums_shape(body_, *summed_node(body_, space_), next).rows;
    double blocks = 1.0 / static_cast<double>(columns * rows);
    for (int dim = 0; dim < space_.parallel; ++dim) blocks *= static_cast<double>(extent(dim));
    const auto enough = 2 * static_cast<double>(target_.cores);
    for (int warps : {2, 8, 32})
      for (int splits = 1; splits <= 128 && (splits == 1 || blocks * splits / 2 < enough);
           splits *= 2) {
        next.own = BlockSumsFields{.warps = warps, .columns = columns, .splits = splits};
        consider(next);
      }
  }

  // For operands whose neighbours lie along another dim than those of the results.
  void try_block_copy(const Schedule& nest) {
    Schedule next = nest;
    next.threads = space_.parallel;
    for (int along = 0; along < space_.parallel; ++along)
      for (int across = 0; across < space_.parallel; ++across) {
        if (!crosses(along, across)) continue;
        next.order = with_last(nest.order, {across, along});
        for (int warps : {4, 8, 16}) {
          next.own = BlockCopyFields{.warps = warps};
          consider(next);
        }
      }
  }

  bool crosses(int along, int across) const {
    const auto stride = [](const KernelFacts::Array& array, int dim) {
      return std::abs(array.stride[static_cast<size_t>(dim)]);
    };
    const auto lies = [&](const KernelFacts::Array& array) {
      return array.is_store ? stride(array, along) == 1
                            : stride(array, across) == 1 && stride(array, along) > 1;
    };
    return along != across && extent(along) > 1 && extent(across) > 1 &&
           std::ranges::any_of(facts_.arrays,
                               [&](const auto& array) { return array.is_store && lies(array); }) &&
           std::ranges::any_of(facts_.arrays,
                               [&](const auto& array) { return !array.is_store && lies(array); });
  }

  static std::vector<int> with_last(std::vector<int> order, std::initializer_list<int> last) {
    for (int dim : last) std::erase(order, dim);
    order.insert(order.end(), last);
    return order;
  }

  void try_block_tiles(const Schedule& nest) {
    Schedule next = nest;
    next.threads = space_.parallel;
    const TiledProduct product = *tiled_product(facts_);
    const auto consider_steps = [&](const BlockTilesFields& shape) {
      consider_tile(next, product, shape);
    };
    const bool has_matrix = on_.matrix && tensor_numbers(facts_).has_value();
    for (int rows : {16, 32, 64, 128})
      for (int columns : {16, 32, 64, 128}) {
        if (is_half_empty(product, rows, columns)) continue;
        for (int own_rows : {1, 2, 4, 8})
          for (int own_columns : {1, 2, 4, 8})
            if (std::max(own_rows, own_columns) <= 2 * std::min(own_rows, own_columns))
              consider_steps({.rows = rows,
                              .columns = columns,
                              .own_rows = own_rows,
                              .own_columns = own_columns});
        for (int own_rows : {16, 32, 64})
          for (int own_columns : {16, 32, 64})
            if (has_matrix && own_rows <= rows && own_columns <= columns)
              consider_steps({.rows = rows,
                              .columns = columns,
                              .own_rows = own_rows,
                              .own_columns = own_columns,
                              .products = Products::matrix});
      }
    if (has_matrix && target_.gpu->capability == kGroupCapability) try_group_tiles(next, product);
  }

  // Tiles of warpgroups, which have one depth.
  void try_group_tiles(const Schedule& nest, const TiledProduct& product) {
    for (int rows : {64, 128, 256})
      for (int columns : {64, 128, 256})
        if (!is_half_empty(product, rows, columns))
          consider_tile(nest, product,
                        {.rows = rows,
                         .columns = columns,
                         .depth = 64,
                         .products = Products::matrix,
                         .groups = 1});
  }

  // The smallest tile may be.
  static bool is_half_empty(const TiledProduct& product, int rows, int columns) {
    return (rows > 16 && rows >= 2 * product.lines[0]) ||
           (columns > 16 && columns >= 2 * product.lines[1]);
  }

  // The tiles of its product that make the whole kernel cheapest.
  void try_block_winograd(const Schedule& nest) {
    const auto roles = std::static_pointer_cast<const BlockWinogradRoles>(
        def_of(Algorithm::block_winograd).roles(facts_));
    for (const BlockWinogradRoles::One& one : roles->all) {
      Schedule next = nest;
      next.threads = space_.parallel;
      next.own =
          BlockWinogradFields{.points = static_cast<int>(one.winograd.shape.points), .stages = {}};
      WholePrice price(price_, next);
      const std::shared_ptr<const KernelFacts> product(roles, &one.product);
      CheapestSchedule cheapest = {product, target_, price, threads_, on_};
      GpuChooser(cheapest).try_block_tiles(plain_nest(one.product.space.parallel));
      if (cheapest.best) consider(price.with(*cheapest.best));
    }
  }

  // A block has one each, or a part of one, or blocks share all steps.
  void consider_tile(Schedule next, const TiledProduct& product, const BlockTilesFields& shape) {
    const bool has_groups = shape.groups != 0;
    const std::vector<int> depths = has_groups ? std::vector{64} : std::vector{8, 16, 32, 64};
    const std::vector<int> steps_ahead = has_groups ? std::vector{1, 2, 3} : std::vector{0, 1, 2};
    for (BlockTilesFields own : usual_spreads(product, shape))
      for (int depth : depths)
        for (int ahead : steps_ahead) {
          own.depth = depth;
          own.ahead = ahead;
          next.own = own;
          consider(next);
        }
  }

  // True if processors of the chip wait for others, as tiles are no multiple of them: blocks may
  // share all steps.
  bool are_uneven(int64_t tiles) const {
    constexpr double kEven = 0.9;
    const int64_t turns = (tiles + target_.cores - 1) / target_.cores;
    return static_cast<double>(tiles) < kEven * static_cast<double>(turns * target_.cores);
  }

  // The ways of blocks to have the steps of such tiles. Each has those of a tile. If tiles are too
  // few for all processors of the chip, it has a part of them: as many parts as give each processor
  // a block, or two. If tiles are uneven, blocks share all steps.
  std::vector<BlockTilesFields> usual_spreads(const TiledProduct& product,
                                              const BlockTilesFields& shape) const {
    constexpr int kMostSplits = 32;
    const int64_t tiles = tiles_of(product, block_tile(facts_, shape));
    std::vector<BlockTilesFields> spreads = {shape};
    for (int64_t all : {target_.cores, 2 * target_.cores}) {
      BlockTilesFields own = shape;
      while (own.splits < kMostSplits && 2 * own.splits * tiles <= all) own.splits *= 2;
      if (own.splits > spreads.back().splits) spreads.push_back(own);
    }
    if (!are_uneven(tiles)) return spreads;
    for (int64_t all : {target_.cores, 2 * target_.cores}) {
      BlockTilesFields own = shape;
      own.shares = static_cast<int>(all);
      spreads.push_back(own);
    }
    return spreads;
  }
};

}  // namespace

void try_gpu_schedules(CheapestSchedule& cheapest, const Schedule& nest) {
  GpuChooser(cheapest).run(nest);
}

}  // namespace hone
