#include "planner/schedules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <ranges>
#include <unordered_set>

#include "ir/op_facts.h"
#include "kernel/algorithms/block_rows.h"
#include "kernel/algorithms/block_sums.h"
#include "kernel/algorithms/block_tiles.h"
#include "kernel/algorithms/gemm.h"
#include "kernel/algorithms/loops.h"
#include "kernel/algorithms/winograd.h"
#include "kernel/matrix.h"
#include "kernel/schedule_space.h"
#include "planner/chain_schedules.h"
#include "planner/few_plans.h"
#include "planner/steps.h"
#include "target/estimate.h"

namespace hone {
namespace {

constexpr size_t kMaxLaneDims = 3;
constexpr int64_t kLeastRun = 4, kMostRun = 16;  // neighbours in a block that is transposed
// If two cost the same, a gemm is faster than a nest by this much: its loops read neighbours.
constexpr double kGemmAhead = 1.1;
constexpr int64_t kMostFields = 8;  // of a byte that are unpacked at once
constexpr int64_t kMostRows = 8;    // that share what is unpacked in registers
constexpr int64_t kMatrixBlocks[] = {256, 512, 1024}, kMatrixDepths[] = {128, 256, 512};

// Starts from the simplest schedule and changes one field after another to what costs least.
class Chooser {
 public:
  Chooser(std::shared_ptr<const KernelFacts> facts, const Target& target, PricedKernel& price,
          int64_t threads, const Heuristics& heuristics)
      : held_(std::move(facts)),
        target_(target),
        price_(price),
        threads_(threads),
        on_(heuristics) {}

  PricedSchedule run() {
    const Schedule nest = plain_nest(space_.parallel);
    consider(nest);
    if (on_.schedules) improve(nest);
    consider({});
    HONE_CHECK(best_, "no schedule fits a kernel of {} nodes", body_.graph.node_count());
    unroll_fields();
    return {*best_, least_};
  }

  // From a schedule for other threads (ScheduleChooser::divided).
  Schedule divided(Schedule schedule) {
    if (threads_ < 2) schedule.threads = 0;
    consider(schedule);
    if (!best_) {  // its price is not a number
      HONE_CHECK(check_schedule(body_, facts_, schedule, target_).ok(),
                 "a schedule for other threads does not fit its kernel");
      best_ = schedule;
    }
    try_threads(true);
    if (schedule.if_is<GemmFields>() == nullptr) return *best_;
    for (int round = 0; round < rounds(); ++round) {
      for (int dim = 0; dim < space_.parallel; ++dim)
        if (on_.cache_blocks && extent(dim) > 1 && !site_.is_open(dim)) try_block(dim);
      try_threads(true);
      try_divided_blocks();
    }
    return *best_;
  }

 private:
  void improve(const Schedule& nest) {
    if (target_.gpu) return improve_for_gpu(nest);
    if (best_) improve_nest();
    if (best_) try_shared_unpacking();
    if (on_.gemm && facts_.contraction.ok()) {
      try_gemm(nest, *facts_.contraction, Products::plain);
      if (has_open_sizes(space_))
        try_gemm(open_dims_last(nest), *facts_.contraction, Products::plain);
      for (Products products : other_products(site_))
        if (is_on(on_, products)) try_gemm(nest, *facts_.contraction, products);
    }
    if (on_.winograd && body_.window.empty()) try_winograd();
  }

  // A thread of a GPU takes a point, or a row of them: no vectors, no tiles.
  void improve_for_gpu(const Schedule& nest) {
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
  }

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

  void consider(const Schedule& schedule) { keep(schedule, price_.seconds(schedule, least_)); }

  // The same as one after another. Networks take several at once in less time.
  void consider_all(std::span<const Schedule> schedules) {
    std::vector<double> seconds(schedules.size());
    price_.price(schedules, least_, seconds);
    for (size_t i = 0; i < schedules.size(); ++i) keep(schedules[i], seconds[i]);
  }

  // If it costs less than the best and can be carried out.
  void keep(const Schedule& schedule, double seconds) {
    if (!(seconds < least_) || !check_schedule(body_, facts_, schedule, target_).ok()) return;
    best_ = schedule;
    least_ = seconds;
  }

  int64_t extent(int dim) const { return site_.extent(dim); }
  int dims() const { return site_.dims(); }
  int rounds() const { return on_.second_round ? 2 : 1; }

  // ---- Fields -----------------------------------------------------------------------------------

  // Dims of the results whose neighbours lie side by side in memory, the best first.
  std::vector<int> lane_dims() const {
    std::vector<int> all;
    for (int dim = 0; dim < space_.parallel; ++dim)
      if (extent(dim) > 1) all.push_back(dim);
    std::ranges::sort(all, {}, [&](int dim) { return std::pair(-facts_.contiguity(dim), dim); });
    if (all.size() > kMaxLaneDims) all.resize(kMaxLaneDims);
    return all;
  }

  static void set(std::vector<Tile>& tiles, int dim, int64_t count) {
    std::erase_if(tiles, [&](const Tile& tile) { return tile.dim == dim; });
    if (count > 1) tiles.push_back({dim, count});
    std::ranges::sort(tiles, {}, &Tile::dim);
  }

  void try_lanes(const std::vector<int>& candidates) {
    const Schedule start = *best_;
    std::vector<Schedule> tried;
    for (int dim : candidates) {
      for (int64_t count : usual_lanes(site_, dim)) {
        Schedule next = start;
        next.lanes = {{dim, count}};
        set(next.unroll, dim, 1);
        tried.push_back(whole_blocks(next));
        if (!on_.inner_lanes) continue;
        std::erase(next.order, dim);
        if (dim < space_.parallel) next.order.push_back(dim);
        tried.push_back(whole_blocks(next));
      }
    }
    consider_all(tried);
  }

  void try_unroll(const std::vector<int>& candidates) {
    if (!on_.unroll) return;
    for (int dim : candidates) {
      const Schedule start = *best_;
      std::vector<Schedule> tried;
      for (int64_t count : usual_unroll(site_, dim)) {
        Schedule next = start;
        set(next.unroll, dim, count);
        tried.push_back(whole_blocks(next));
        next.unroll.clear();
        set(next.unroll, dim, count);
        tried.push_back(whole_blocks(next));
      }
      consider_all(tried);
    }
  }

  // Neighbours of an array side by side in registers, lanes across them: so blocks are transposed
  // in registers where an array lies across another one.
  void try_transposed() {
    if (!on_.transposed_blocks || !best_) return;
    std::vector<std::vector<Tile>> seen;
    for (const KernelFacts::Array& array : facts_.arrays) {
      const std::vector<Tile> run = run_of(array);
      if (run.empty() || std::ranges::find(seen, run) != seen.end()) continue;
      seen.push_back(run);
      const Schedule start = *best_;
      for (int dim = 0; dim < space_.parallel; ++dim) {
        if (extent(dim) < kLeastRun || std::ranges::count(run, dim, &Tile::dim) > 0) continue;
        for (int64_t count : usual_lanes(site_, dim)) {
          Schedule next = start;
          next.lanes = {{dim, count}};
          next.unroll = run;
          consider(whole_blocks(next));
        }
      }
    }
  }

  // The dims of the results along which the array's neighbours lie, each going on where those
  // before end; empty: there are few.
  std::vector<Tile> run_of(const KernelFacts::Array& array) const {
    std::vector<Tile> run;
    if (array.element != 4 || array.guards != 0) return run;
    int64_t points = 1;
    for (int dim = 0; dim < space_.parallel;) {
      const bool is_next =
          extent(dim) > 1 && std::ranges::count(run, dim, &Tile::dim) == 0 &&
          std::abs(array.stride[static_cast<size_t>(dim)]) == static_cast<double>(points) &&
          points < kMostRun;
      if (!is_next) {
        ++dim;
        continue;
      }
      const int64_t count = std::min(extent(dim), kMostRun / points);
      run.push_back({dim, count});
      points *= count;
      if (count < extent(dim)) break;
      dim = 0;
    }
    if (points < kLeastRun) run.clear();
    std::ranges::sort(run, {}, &Tile::dim);
    return run;
  }

  int most_threads() const { return std::min(space_.parallel, 3); }

  // `keeps_row`: nothing but the number of divided loops may change.
  void try_threads(bool keeps_row = false) {
    if (threads_ < 2) return;
    const Schedule start = *best_;
    for (int count = 0; count <= most_threads(); ++count) {
      Schedule next = start;
      next.threads = count;
      if (auto* own = next.if_is<NestFields>(); own != nullptr && own->row > 0 && !keeps_row)
        own->row = std::max(own->row, count);
      consider(next);
    }
  }

  // ---- Nest -------------------------------------------------------------------------------------

  void improve_nest() {
    const Schedule start = *best_;
    const double least = least_;
    improve_nest(lane_dims());
    if (!on_.reduction_lanes || !computes_weights()) return;
    // Fields of packed weights have neighbours along the sum alone.
    const std::optional<Schedule> other = std::exchange(best_, start);
    const double least_other = std::exchange(least_, least);
    improve_nest({});
    if (!(least_ < least_other)) best_ = other, least_ = least_other;
  }

  // Lanes along one of these dims of the results, or along the sum.
  void improve_nest(const std::vector<int>& lanes) {
    std::vector<int> all(static_cast<size_t>(dims())), reduction;
    std::iota(all.begin(), all.end(), 0);
    for (int dim = space_.parallel; dim < dims(); ++dim) reduction.push_back(dim);
    for (int round = 0; round < rounds(); ++round) {
      try_lanes(lanes);
      if (on_.reduction_lanes) try_lanes(reduction);
      if (on_.rows) try_rows(lanes);
      try_unroll(all);
      try_transposed();
      try_threads();
    }
  }

  // A row is the better, the more is done with its sum. So lanes along the sum, the best of a nest
  // without rows, may hide the best lanes of a row.
  void try_rows(const std::vector<int>& lanes) {
    const Schedule start = *best_;
    const bool is_sum_in_lanes = !start.lanes.empty() && start.lanes.front().dim >= space_.parallel;
    std::vector<Schedule> tried;
    for (int row = 0; row <= space_.parallel; ++row) {
      if (row > 0 && row < start.threads) continue;
      Schedule next = start;
      next.get<NestFields>().row = row;
      tried.push_back(next);
      if (row == 0 || !is_sum_in_lanes) continue;
      next.order.resize(static_cast<size_t>(space_.parallel));
      std::iota(next.order.begin(), next.order.end(), 0);
      next.unroll.clear();
      for (int dim : lanes)
        for (int64_t count : usual_lanes(site_, dim)) {
          next.lanes = {{dim, count}};
          tried.push_back(next);
        }
    }
    consider_all(tried);
  }

  // Decides if lanes along a dim take bytes that all points of this dim of the sum share: they are
  // fields of the same bytes.
  bool has_fields(int dim, int lane_dim) const {
    const auto lane = static_cast<size_t>(lane_dim), at = static_cast<size_t>(dim);
    return std::ranges::any_of(facts_.arrays, [&](const KernelFacts::Array& array) {
      return array.side == 1 && array.element == 1 && array.stride[lane] != 0 &&
             array.stride[at] == 0;
    });
  }

  // The schedule with all fields of the bytes in its lanes side by side; none: they are too many.
  std::optional<Schedule> with_fields(Schedule next) const {
    int64_t fields = 1;
    for (int dim = space_.parallel; dim < dims(); ++dim) {
      const bool is_lane = std::ranges::count(next.lanes, dim, &Tile::dim) > 0;
      if (is_lane || extent(dim) < 2 || !has_fields(dim, next.lanes.front().dim)) continue;
      fields *= extent(dim);
      if (fields > kMostFields) return std::nullopt;
      set(next.unroll, dim, extent(dim));
    }
    return check_schedule(body_, facts_, next, target_).ok() ? std::optional(next) : std::nullopt;
  }

  // A nest that unpacks weights takes all fields of some bytes at once: then shifts are by
  // constants, and nothing goes from a trip to the next through one register. The time is halved,
  // which no price sees: it comes last, whatever the price says.
  void unroll_fields() {
    const bool is_nest = best_->if_is<NestFields>() != nullptr;
    if (!on_.unroll || !is_nest || best_->lanes.empty() || !computes_weights()) return;
    const std::optional<Schedule> next = with_fields(*best_);
    if (!next || *next == *best_) return;
    best_ = next;
    least_ = price_.seconds(*next, std::numeric_limits<double>::infinity());
  }

  // Several rows read the same weights. A nest with lanes along the bytes of a block unpacks them
  // once for all rows that are side by side in registers. These may lie along several dims, and the
  // search changes one after another.
  void try_shared_unpacking() {
    const int last = dims() - 1;
    if (!on_.unroll || !on_.reduction_lanes || !computes_weights() || last < space_.parallel ||
        !has_blocks_along(last))
      return;
    Schedule next = plain_nest(space_.parallel);
    std::vector<int> row_dims;
    int64_t rows = 1;
    for (int dim = 0; dim < space_.parallel; ++dim) {
      if (site_.is_open(dim)) return;
      const auto at = static_cast<size_t>(dim);
      if (!facts_.contraction->sides[0][at] || facts_.contraction->sides[1][at]) continue;
      rows = std::min(rows * extent(dim), kMostRows);
      row_dims.push_back(dim);
      std::erase(next.order, dim);
      next.order.push_back(dim);
    }
    const auto points = static_cast<int64_t>(vector_bytes(target_.isa) / sizeof(float));
    const int64_t lanes = std::min(points, extent(last));
    if (lanes < kLeastRun) return;
    next.lanes = {{last, lanes}};
    next.threads = threads_ < 2 ? 0 : 1;
    // Formats of many fields have room for fewer rows.
    for (; rows > 1; rows /= 2) {
      // All of the last rows, then some of those before: about `rows` together.
      int64_t left = rows;
      for (size_t i = row_dims.size(); i-- > 0;) {
        const int64_t count = std::min(extent(row_dims[i]), left);
        set(next.unroll, row_dims[i], count);
        left /= count;
      }
      if (const std::optional<Schedule> shared = with_fields(next)) consider(*shared);
    }
    try_threads();
  }

  // Decides if neighbours along the dim are neighbours of bytes in blocks of several fields.
  bool has_blocks_along(int dim) const {
    return std::ranges::any_of(facts_.arrays, [&](const KernelFacts::Array& array) {
      return array.side == 1 && array.element == 1 && !array.is_store &&
             array.stride[static_cast<size_t>(dim)] == 1 &&
             std::ranges::count(facts_.arrays, array.value, &KernelFacts::Array::value) > 1;
    });
  }

  // ---- Gemm -------------------------------------------------------------------------------------

  // Blocks hold whole tiles.
  Schedule whole_blocks(Schedule schedule) const {
    auto* own = schedule.if_is<GemmFields>();
    if (own == nullptr) return schedule;
    for (Tile& block : own->block) {
      if (block.dim >= space_.parallel) continue;
      const int64_t points = register_tile(schedule, block.dim);
      block.count = (block.count + points - 1) / points * points;
    }
    return schedule;
  }

  // Threads divide a few large blocks: in each of them an operand is packed again. For one thread
  // such blocks gain nothing, so both come together.
  void try_divided_blocks() {
    if (threads_ < 2 || !on_.cache_blocks) return;
    const Schedule start = *best_;
    std::vector<Schedule> tried;
    for (int count = 1; count <= most_threads(); ++count)
      for (int at = 0; at < count; ++at) {
        const int dim = start.order[static_cast<size_t>(at)];
        if (site_.is_open(dim) || extent(dim) == 1) continue;
        for (int64_t each : {1, 2, 4}) {
          Schedule next = start;
          next.threads = count;
          const int64_t blocks = threads_ * each;
          const int64_t tile = register_tile(start, dim);
          set(next.get<GemmFields>().block, dim, (extent(dim) + blocks - 1) / blocks);
          tried.push_back(whole_blocks(next));
          // The rest that whole tiles leave comes behind the blocks.
          const int64_t whole = extent(dim) / blocks / tile * tile;
          if (whole > 0 && whole * blocks < extent(dim)) {
            set(next.get<GemmFields>().block, dim, whole);
            tried.push_back(std::move(next));
          }
        }
      }
    consider_all(tried);
  }

  void try_block(int dim) {
    std::vector<Schedule> tried;
    for (int64_t points : usual_blocks(site_, *best_, dim)) {
      Schedule next = *best_;
      set(next.get<GemmFields>().block, dim, points);
      tried.push_back(std::move(next));
    }
    consider_all(tried);
  }

  // Dims of open sizes have no blocks: if their loops are the innermost, panels of the other
  // operand are packed once.
  Schedule open_dims_last(Schedule schedule) const {
    std::ranges::sort(schedule.order, {},
                      [&](int dim) { return std::pair(site_.is_open(dim), dim); });
    return schedule;
  }

  // From a start of its own: a bad gemm leads to a good one, through others that cost more than a
  // nest.
  void try_gemm(Schedule start, const Contraction& contraction, Products products) {
    const std::optional<Schedule> before = std::exchange(best_, std::nullopt);
    const double least = std::exchange(least_, std::numeric_limits<double>::infinity());
    GemmFields& own = start.own.emplace<GemmFields>();
    own.pack_lhs = own.pack_rhs = Packing::panels;
    own.products = products;
    const bool on_matrix_unit = products == Products::matrix;
    if (on_matrix_unit)
      try_matrix(start, contraction);
    else
      consider(start);
    if (best_) improve_gemm(contraction);
    // From whole rows of the first operand: of images, or of data by weights that are unpacked.
    const bool has_windows = reads_windows() && !on_matrix_unit;
    if (on_.window_packing &&
        (has_windows || (computes_weights() && products == Products::plain))) {
      (has_windows ? own.pack_lhs : own.pack_rhs) = Packing::window;
      for (int dim = 0; dim < space_.parallel; ++dim)
        if (contraction.sides[0][static_cast<size_t>(dim)] && !site_.is_open(dim))
          own.block.push_back({dim, extent(dim)});
      const std::optional<Schedule> panels = std::exchange(best_, std::nullopt);
      const double least_panels = std::exchange(least_, std::numeric_limits<double>::infinity());
      consider(start);
      if (best_) improve_gemm(contraction);
      if (!(least_ < least_panels)) best_ = panels, least_ = least_panels;
    }
    if (least_ < (on_.gemm_ahead ? kGemmAhead : 1) * least) return;
    best_ = before;
    least_ = least;
  }

  // True if the second operand is made here, as weights are that are unpacked. In a window its
  // neighbours in memory are neighbours in lanes.
  bool computes_weights() const {
    if (!facts_.contraction.ok()) return false;
    const NodeId maker = body_.graph.producer(body_.graph.operands(space_.anchor)[1]);
    return is_dot(body_.graph.opcode(space_.anchor)) && !is_parameter(body_.graph.opcode(maker));
  }

  // Tiles of a matrix unit: they have columns in lanes from the start.
  void try_matrix(const Schedule& start, const Contraction& contraction) {
    std::vector<Schedule> tried;
    for (size_t side = 0; side < 2; ++side) {
      std::vector<int> columns, rows;
      for (int dim = 0; dim < space_.parallel; ++dim) {
        const auto d = static_cast<size_t>(dim);
        if (extent(dim) == 1 || (contraction.sides[0][d] && contraction.sides[1][d])) continue;
        (contraction.sides[side][d] ? columns : rows).push_back(dim);
      }
      for (int dim : columns)
        for (const std::vector<Tile>& tile : usual_matrix_rows(site_, rows))
          for (int64_t vectors : {1, 2}) {
            Schedule next = start;
            next.lanes = {{dim, MatrixShape::kWords}};
            next.unroll = tile;
            set(next.unroll, dim, vectors);
            tried.push_back(std::move(next));
          }
    }
    consider_all(tried);
  }

  // Blocks along a dim of each operand and of the reduction together: one alone costs more, as
  // panels are packed again.
  void try_matrix_blocks(const std::array<std::vector<int>, 2>& sides) {
    const auto longest = [&](const auto& dims) {
      return *std::ranges::max_element(dims, {}, [&](int dim) { return extent(dim); });
    };
    if (sides[0].empty() || sides[1].empty()) return;
    const int left = longest(sides[0]), right = longest(sides[1]);
    const int depth = longest(std::views::iota(space_.parallel, dims()));
    std::vector<Schedule> tried;
    for (int64_t points : kMatrixBlocks)
      for (int64_t others : kMatrixBlocks)
        for (int64_t reduced : kMatrixDepths) {
          if (points >= extent(left) && others >= extent(right)) continue;
          Schedule next = *best_;
          std::vector<Tile>& block = next.get<GemmFields>().block;
          set(block, left, std::min(points, extent(left)));
          set(block, right, std::min(others, extent(right)));
          set(block, depth, reduced < extent(depth) ? reduced : 0);
          tried.push_back(whole_blocks(next));
        }
    consider_all(tried);
  }

  // True if a point of the first operand is read for several points of the results.
  bool reads_windows() const {
    const NodeId anchor = space_.anchor;
    if (!is_convolution(body_.graph.opcode(anchor))) return false;
    for (int dim = space_.parallel + 1; dim < dims(); ++dim)
      if (extent(dim) > 1) return true;
    return false;
  }

  void improve_gemm(const Contraction& contraction) {
    std::array<std::vector<int>, 2> sides;
    std::vector<int> results, shared;
    for (int dim = 0; dim < space_.parallel; ++dim) {
      const auto d = static_cast<size_t>(dim);
      results.push_back(dim);
      if (extent(dim) == 1) continue;
      const std::array<bool, 2> reads = {contraction.sides[0][d], contraction.sides[1][d]};
      if (reads[0] && reads[1])
        shared.push_back(dim);
      else
        sides[reads[0] ? 0 : 1].push_back(dim);
    }
    // The features of a conv in groups, each of which has several channels of its own.
    const bool has_channels = space_.parallel < dims() && extent(space_.parallel) > 1;
    if (on_.shared_columns && has_channels && sides[1].empty()) sides[1] = shared;
    for (int round = 0; round < rounds(); ++round) {
      // Lanes along one operand, registers along the other.
      const bool on_matrix_unit = best_->get<GemmFields>().products == Products::matrix;
      for (size_t side = 0; side < 2 && !on_matrix_unit; ++side)
        for (int lanes : sides[side]) register_tiles(lanes, sides[1 - side]);
      if (on_.cache_blocks && on_matrix_unit) try_matrix_blocks(sides);
      for (int dim = 0; dim < dims(); ++dim)
        if (on_.cache_blocks && extent(dim) > 1) try_block(dim);
      if (on_.packing) try_packing();
      Schedule reversed = *best_;
      std::ranges::reverse(reversed.order);
      if (on_.reversed_order) consider(reversed);
      try_threads();
      try_divided_blocks();
      try_unroll(results);
      try_transposed();
    }
  }

  void try_packing() {
    for (Packing lhs : kUsualLhs) {
      if (lhs == Packing::window && !on_.window_packing) continue;
      for (Packing rhs : kUsualRhs) {
        if (rhs == Packing::window && !(on_.window_packing && computes_weights())) continue;
        Schedule next = *best_;
        next.get<GemmFields>().pack_lhs = lhs;
        next.get<GemmFields>().pack_rhs = rhs;
        consider(next);
      }
    }
  }

  void register_tiles(int lanes, const std::vector<int>& other) {
    const Schedule start = *best_;
    std::vector<Schedule> tried;
    for (int64_t count : usual_lanes(site_, lanes)) {
      // A single row of words: a nest, which is as good for other numbers, has none.
      if (other.empty() && start.get<GemmFields>().products != Products::plain) {
        for (int64_t vectors : usual_vectors(site_, lanes, count)) {
          Schedule next = start;
          next.lanes = {{lanes, count}};
          next.unroll.clear();
          set(next.unroll, lanes, vectors);
          tried.push_back(whole_blocks(next));
        }
      }
      for (int dim : std::views::reverse(other)) {
        for (int64_t unroll : usual_rows(site_, dim)) {
          for (int64_t vectors : usual_vectors(site_, lanes, count)) {
            Schedule next = start;
            next.lanes = {{lanes, count}};
            next.unroll.clear();
            set(next.unroll, dim, unroll);
            set(next.unroll, lanes, vectors);
            tried.push_back(whole_blocks(next));
          }
        }
      }
    }
    consider_all(tried);
  }

  // ---- Winograd ---------------------------------------------------------------------------------

  // For each number of points from a start of its own, like a gemm.
  void try_winograd() {
    const Result<WinogradDims> dims = winograd_dims(body_, facts_);
    if (!dims.ok()) return;
    Schedule start = plain_nest(space_.parallel);
    std::erase(start.order, dims->features);
    start.order.push_back(dims->features);
    int64_t lanes = numbers_in_vector(site_);
    // Half a vector is as fast as one whose other lanes a group has no features for.
    if (const int64_t groups = dims->groups; groups > 1)
      while (lanes > 2 && lanes / 2 * groups >= site_.extent(dims->features)) lanes /= 2;
    start.lanes = {{dims->features, lanes}};
    for (int64_t points : kWinogradPoints) {
      const std::optional<Schedule> before = std::exchange(best_, std::nullopt);
      const double least = std::exchange(least_, std::numeric_limits<double>::infinity());
      start.own = WinogradFields{.points = static_cast<int>(points)};
      consider(start);
      for (int round = 0; best_ && round < rounds(); ++round) improve_winograd(*dims);
      if (least_ < least) continue;
      best_ = before;
      least_ = least;
    }
  }

  void improve_winograd(const WinogradDims& dims) {
    std::vector<Schedule> tried;
    for (int64_t vectors : {1, 2, 4})
      for (int64_t rows : usual_rows(site_, dims.spatial.back())) {
        Schedule next = *best_;
        set(next.unroll, dims.features, vectors);
        set(next.unroll, dims.spatial.back(), rows);
        tried.push_back(std::move(next));
      }
    consider_all(tried);
    tried.clear();
    // A block that is best for one thread, as a whole image, may leave nothing to share.
    for (const std::vector<Tile>& block : usual_winograd_blocks(site_, dims, *best_)) {
      Schedule next = *best_;
      auto& own = next.get<WinogradFields>();
      own.block = block;
      tried.push_back(next);
      if (threads_ < 2) continue;
      own.parts = 0;
      next.threads = most_threads();
      tried.push_back(next);
      // Each thread with weights of its own.
      next.threads = space_.parallel;
      for (int parts : {0, 2, 4}) {
        own.parts = parts;
        if (parts > 0 || dims.groups > 1) tried.push_back(next);
      }
    }
    consider_all(tried);
    try_threads();
  }

  const std::shared_ptr<const KernelFacts> held_;
  const KernelFacts& facts_ = *held_;
  const KernelBody& body_ = facts_.body;
  const KernelSpace& space_ = facts_.space;
  const Target& target_;
  const ScheduleSite site_ = {body_, facts_, target_};
  PricedKernel& price_;
  const int64_t threads_;
  const Heuristics& on_;
  std::optional<Schedule> best_;
  double least_ = std::numeric_limits<double>::infinity();
};

}  // namespace

ScheduleChooser::ScheduleChooser(const Target& target, const Cost& cost, int64_t threads,
                                 const PlannerOptions& options)
    : target_(target),
      cost_(cost),
      threads_(threads),
      options_(options),
      store_(options.known == nullptr ? own_ : *options.known),
      known_((cost.version().empty() ? unversioned_ : store_).known(cost.version(), threads)) {
  Heuristics of_schedules = options.heuristics;
  for (bool Heuristics::* flag : structure_heuristics()) of_schedules.*flag = true;
  store_.serve(target, left_out(of_schedules));
  if (cost.baseline() == nullptr) return;
  PlannerOptions shared = options;
  shared.known = &store_;
  usual_ = std::make_unique<ScheduleChooser>(target, *cost.baseline(), threads, shared);
}

Result<const PricedSchedule*> ScheduleChooser::choose(const KernelBody& body) {
  return choose(store_.facts(kernel_hash(body), [&] { return body; }));
}

Result<const PricedSchedule*> ScheduleChooser::choose(
    const std::shared_ptr<const KernelFacts>& facts) {
  if (options_.cancel != nullptr) HONE_TRY(options_.cancel->check());
  if (const auto known = known_.chosen.find(facts->hash); known != known_.chosen.end())
    return &known->second;
  PricedSchedule chosen = HONE_TRY(this->chosen(facts));
  if (options_.progress != nullptr) options_.progress->advance();
  return &known_.chosen.emplace(facts->hash, std::move(chosen)).first->second;
}

Result<PricedSchedule> ScheduleChooser::chosen(const std::shared_ptr<const KernelFacts>& facts) {
  const bool is_stage = !facts->body.window.empty();
  const int64_t threads = is_stage ? 1 : threads_;
  const std::unique_ptr<PricedKernel> price = cost_.kernel(facts, threads);
  using Knows = PricedKernel::Knows;
  if (const Knows knows = price->knows(); usual_ != nullptr && knows != Knows::choices) {
    PricedSchedule usual = *HONE_TRY(usual_->choose(facts));
    if (knows == Knows::price) usual.seconds = price->seconds(usual.schedule);
    return usual;
  }
  std::optional<PricedSchedule> best;
  if (!is_stage) best = HONE_TRY(cheapest_chain(facts, *price, *this));
  // A group with too much work in one nest is not even priced as one, nor a conv in the windows of
  // a pool, which has no register tiles there.
  if (check_work(facts->work).ok() && !(best && is_conv_with_pool(facts->body.graph))) {
    PricedSchedule alone = Chooser(facts, target_, *price, threads, heuristics()).run();
    if (!best || alone.seconds <= best->seconds) best = std::move(alone);
  }
  HONE_CHECK(best, "no schedule fits a kernel of {} nodes", facts->body.graph.node_count());
  return *std::move(best);
}

Result<Schedule> ScheduleChooser::divided(const KernelBody& body, const Schedule& schedule) {
  if (options_.cancel != nullptr) HONE_TRY(options_.cancel->check());
  const std::shared_ptr<const KernelFacts>& facts =
      store_.facts(kernel_hash(body), [&] { return body; });
  const std::unique_ptr<PricedKernel> price = cost_.kernel(facts, threads_);
  return Chooser(facts, target_, *price, threads_, heuristics()).divided(schedule);
}

ChooseSchedule planner_schedules(const Target& target, const Cost& cost, KernelStore& store) {
  using Choosers = std::map<int64_t, ScheduleChooser>;  // by threads
  const auto choosers = std::make_shared<Choosers>();
  return [&target, &cost, &store, choosers](const std::shared_ptr<const KernelFacts>& facts,
                                            int64_t threads) -> Result<PricedSchedule> {
    const PlannerOptions options{.known = &store};
    const auto at = choosers->try_emplace(threads, target, cost, threads, options).first;
    return *HONE_TRY(at->second.choose(facts));
  };
}

namespace {

// The usual one, unless another Cost knows a schedule that is surely cheaper.
Result<Schedule> schedule_of(const KernelBody& body, const Choosers& choosers) {
  const Schedule usual = HONE_TRY(choosers.usual.choose(body))->schedule;
  if (choosers.learned == nullptr) return usual;
  const auto& facts = choosers.usual.known().facts(kernel_hash(body), [&] { return body; });
  const Schedule& other = HONE_TRY(choosers.learned->choose(facts))->schedule;
  if (other == usual) return usual;
  const auto priced = choosers.learned->cost().kernel(facts, choosers.usual.threads());
  return priced->is_surely_cheaper(other, usual) ? other : usual;
}

}  // namespace

Status choose_schedules(PlanningFrame& frame) {
  const PlannedGraph& planned = frame.planned();
  const FrameEditor* const edited = frame.if_edited();
  std::unordered_set<uint64_t> shapes;
  for (uint32_t s = 0; s < planned.steps.size(); ++s) {
    const Step& step = planned.steps[s];
    if (!step.is_kernel || !shapes.insert(step_shape(planned, step)).second) continue;
    const auto body = [&] { return body_of(planned, frame.users(), step); };
    const uint64_t kernel = edited != nullptr ? edited->kernel(s).hash : kernel_hash(body());
    const auto [at, is_new] = frame.whole().schedule.try_emplace(kernel);
    if (is_new) at->second = HONE_TRY(schedule_of(body(), frame.choosers()));
  }
  return {};
}

}  // namespace hone
