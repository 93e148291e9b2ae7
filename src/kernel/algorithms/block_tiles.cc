#include "kernel/algorithms/block_tiles.h"

#include <algorithm>
#include <numeric>

#include "base/checked_math.h"
#include "ir/op_def.h"
#include "ir/ops/contraction.h"
#include "kernel/algorithms/loops.h"
#include "target/gpu.h"

namespace hone {
namespace {

constexpr int64_t kMostThreads = 1024, kMostSums = 128;
constexpr int64_t kMostSumsOfParts = 64;  // beside the factors' parts and the sums of a step
constexpr int64_t kMostBytes = 48 << 10;  // that every block may have without asking for more
constexpr int kLines[] = {16, 32, 64, 128}, kOwn[] = {1, 2, 4, 8}, kOwnOfWarp[] = {8, 16, 32, 64};
// Tiles of warpgroups. A step is a row of 128 bytes. Beside its sums a thread has other registers.
constexpr int kLinesOfGroups[] = {64, 128, 256};
constexpr int64_t kOtherRegisters = 32, kMbarrierBytes = 8;
constexpr int64_t kLeastStep = 8;
constexpr int kSplits[] = {1, 2, 4, 8, 16, 32};
constexpr int64_t kMostShares = 1024, kMostParts = 32;
constexpr int64_t kMostSteps = int64_t{1} << 48;                         // of all tiles
constexpr int64_t kLeastRows = 16, kLeastColumns = 8, kLeastDepth = 16;  // of a warp's product
constexpr int64_t kMostPieces = 8;  // of a line for warps, in other banks

DType wide(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype; }

// ---- Legality -----------------------------------------------------------------------------------

bool is_one_of(std::span<const int> numbers, int64_t number) {
  return std::ranges::find(numbers, number) != numbers.end();
}

Status check_groups(const BlockTile& tile, const BlockTilesFields& own, const Gpu& gpu) {
  if (own.groups != 0 && own.groups != 1) return bad_input("groups are {}, not 0 or 1", own.groups);
  if (!tile.by_groups) return {};
  if (gpu.capability != kGroupCapability)
    return unsupported("warpgroups multiply on GPUs of capability {} alone, not {}",
                       kGroupCapability, gpu.capability);
  if (!tile.by_warps)
    return bad_input("warpgroups multiply on tensor cores alone: products = matrix");
  if (own.own_rows != 1 || own.own_columns != 1)
    return bad_input(
        "a warp of a group has 16 rows and all columns: own_rows and own_columns are "
        "1, not {} and {}",
        own.own_rows, own.own_columns);
  if (tile.depth != tile.points_of_row())
    return bad_input("a step of warpgroups takes {} points, not {}", tile.depth,
                     tile.points_of_row());
  const int64_t registers = (sums_of_thread(tile) + kOtherRegisters) * tile.threads();
  if (registers > gpu.registers)
    return over_limit("a block would need {} registers, more than {}", registers, gpu.registers);
  return {};
}

Status check_tile(const BlockTile& tile, const BlockTilesFields& own_fields, const Gpu& gpu) {
  for (size_t side = 0; side < 2; ++side) {
    const char* what = side == 0 ? "rows" : "columns";
    if (!is_one_of(tile.by_groups ? std::span<const int>(kLinesOfGroups) : kLines,
                   tile.lines[side]))
      return bad_input("a tile has {} {}, not {}", tile.lines[side], what,
                       tile.by_groups ? "64, 128 or 256" : "16, 32, 64 or 128");
    if (tile.by_groups) continue;
    const auto own = tile.by_warps ? std::span(kOwnOfWarp) : std::span(kOwn);
    const int64_t least = !tile.by_warps ? 1 : side == 0 ? kLeastRows : kLeastColumns;
    if (!is_one_of(own, tile.own[side]) || tile.own[side] < least ||
        tile.own[side] > tile.lines[side])
      return bad_input("a {} cannot have {} {} of a tile of {}", tile.by_warps ? "warp" : "thread",
                       tile.own[side], what, tile.lines[side]);
  }
  HONE_TRY(check_groups(tile, own_fields, gpu));
  if (tile.depth != 8 && tile.depth != 16 && tile.depth != 32 && tile.depth != 64)
    return bad_input("a step takes {} points, not 8, 16, 32 or 64", tile.depth);
  if (tile.by_warps && tile.depth < kLeastDepth)
    return bad_input("a step of warps takes {} points, fewer than {}", tile.depth, kLeastDepth);
  if (tile.by_warps && tile.depth > kMostPieces * tile.piece())
    return bad_input("a step of {} takes {} points, more than {}", name(tile.stored), tile.depth,
                     kMostPieces * tile.piece());
  if (!is_one_of(kSplits, tile.splits))
    return bad_input("the reduction has {} parts, not 1, 2, 4, 8, 16 or 32", tile.splits);
  if (tile.shares != 0 && (tile.shares < 2 || tile.shares > kMostShares))
    return bad_input("{} blocks share steps, not 2 to {}", tile.shares, kMostShares);
  if (tile.shares != 0 && tile.splits > 1)
    return unsupported("blocks that share all steps have no parts of their own: splits = 1");
  if (tile.stages < 1 || tile.stages > 4)
    return bad_input("{} steps are copied ahead, not 0 to 3", tile.stages - 1);
  if (tile.threads() < kWarpLanes || tile.threads() > kMostThreads)
    return unsupported("a block would have {} threads, not {} to {}", tile.threads(), kWarpLanes,
                       kMostThreads);
  const int64_t most = tile.numbers.parts > 1 ? kMostSumsOfParts : kMostSums;
  if (sums_of_thread(tile) > most)
    return over_limit("a thread would have {} sums, more than {}", sums_of_thread(tile), most);
  const int64_t most_bytes = tile.by_groups ? gpu.block_shared_bytes : kMostBytes;
  if (tile.bytes() > most_bytes)
    return over_limit("a block would have {} bytes of memory, more than {}", tile.bytes(),
                      most_bytes);
  return {};
}

Status check_shares(const TileShares& shares) {
  if (shares.share < 2)
    return unsupported("all tiles have {} steps, fewer than two for each of the blocks",
                       shares.all())
        .with_hint("choose fewer shares");
  if (shares.most_parts() > kMostParts)
    return over_limit("a tile would have {} parts, more than {}", shares.most_parts(), kMostParts)
        .with_hint("choose fewer shares, or a larger depth");
  return {};
}

Status check_products(const ScheduleSite& site, Products products) {
  if (products == Products::plain) return {};
  if (products != Products::matrix)
    return unsupported("a GPU does not multiply {}", name(products));
  if (tensor_numbers(site.facts)) return {};
  return unsupported("tensor cores multiply bf16, f16 and f32 alone");
}

// ---- Decisions ----------------------------------------------------------------------------------

// How numbers are multiplied, and the tiles that this has: they go together.
class ShapeDecision : public Decision {
 public:
  std::string_view name() const override { return "products"; }
  double bound(const ScheduleSite& site) const override {
    return static_cast<double>(all(site).size());
  }
  bool each(const ScheduleSite& site, const Schedule& so_far,
            const ScheduleVisit& visit) const override {
    return std::ranges::all_of(
        all(site), [&](const BlockTilesFields& own) { return visit(with(so_far, own)); });
  }
  void draw(const ScheduleSite& site, Schedule& so_far, Rng& rng) const override {
    std::vector<BlockTilesFields> shapes = all(site);
    if (tensor_numbers(site.facts) && rng.chance(0.7))
      std::erase_if(shapes, [](const auto& own) { return own.products == Products::plain; });
    // Shapes of warpgroups are few, and mostly the fastest.
    const auto has_groups = [](const auto& own) { return own.groups != 0; };
    if (std::ranges::any_of(shapes, has_groups) && rng.chance(0.5))
      std::erase_if(shapes, [&](const auto& own) { return !has_groups(own); });
    so_far = with(so_far, rng.pick(shapes));
  }
  Schedules near(const ScheduleSite& site, const Schedule& schedule) const override {
    const BlockTilesFields& now = schedule.get<BlockTilesFields>();
    Schedules near;
    for (const BlockTilesFields& own : all(site))
      if (distance(now, own) == 1) near.push_back(with(schedule, own));
    return near;
  }
  Schedules simpler(const ScheduleSite& site, const Schedule& schedule) const override {
    Schedules simpler;
    for (const BlockTilesFields& own : all(site)) {
      if (is_same(own, schedule.get<BlockTilesFields>())) break;
      simpler.push_back(with(schedule, own));
    }
    return simpler;
  }
  void copy(const Schedule& from, Schedule& to, Rng&) const override {
    if (const auto* own = from.if_is<BlockTilesFields>();
        own != nullptr && to.if_is<BlockTilesFields>() != nullptr)
      to = with(to, *own);
  }

 private:
  // All whose blocks have a legal number of threads and sums, the simplest first.
  static std::vector<BlockTilesFields> all(const ScheduleSite& site) {
    std::vector<BlockTilesFields> shapes;
    for (Products products : {Products::plain, Products::matrix}) {
      if (!check_products(site, products).ok()) continue;
      const auto own = products == Products::matrix ? std::span<const int>(kOwnOfWarp)
                                                    : std::span<const int>(kOwn);
      for (int rows : kLines)
        for (int columns : kLines)
          for (int own_rows : own)
            for (int own_columns : own) {
              BlockTilesFields shape = {.rows = rows,
                                        .columns = columns,
                                        .depth = kLeastDepth,
                                        .own_rows = own_rows,
                                        .own_columns = own_columns,
                                        .products = products};
              add_legal(site, shape, shapes);
            }
      if (products == Products::matrix) add_groups(site, shapes);
    }
    return shapes;
  }
  static void add_groups(const ScheduleSite& site, std::vector<BlockTilesFields>& shapes) {
    BlockTilesFields shape = {.products = Products::matrix, .groups = 1};
    shape.depth = static_cast<int>(block_tile(site.facts, shape).points_of_row());
    for (int rows : kLinesOfGroups)
      for (int columns : kLinesOfGroups) {
        shape.rows = rows;
        shape.columns = columns;
        add_legal(site, shape, shapes);
      }
  }
  static void add_legal(const ScheduleSite& site, const BlockTilesFields& shape,
                        std::vector<BlockTilesFields>& shapes) {
    if (check_tile(block_tile(site.facts, shape), shape, site.target.gpu.value_or(Gpu())).ok())
      shapes.push_back(shape);
  }

  static bool is_same(const BlockTilesFields& a, const BlockTilesFields& b) {
    return distance(a, b) == 0;
  }
  // Warpgroups have no parts of their own to choose.
  static int distance(const BlockTilesFields& a, const BlockTilesFields& b) {
    const int of_tile = (a.rows != b.rows) + (a.columns != b.columns) + (a.products != b.products);
    if (a.groups != b.groups) return of_tile + 1;
    return of_tile + (a.own_rows != b.own_rows) + (a.own_columns != b.own_columns);
  }
  static Schedule with(Schedule schedule, const BlockTilesFields& shape) {
    BlockTilesFields& own = schedule.get<BlockTilesFields>();
    BlockTilesFields next = shape;
    if (next.groups == 0) next.depth = own.depth;
    next.ahead = own.ahead;
    next.splits = own.splits;
    next.shares = own.shares;
    own = next;
    return schedule;
  }
};

std::vector<int> depths(const ScheduleSite&) { return {16, 8, 32, 64}; }
std::vector<int> steps_ahead(const ScheduleSite&) { return {0, 1, 2, 3}; }
// A part has a step at least.
std::vector<int> split_counts(const ScheduleSite& site) {
  const Result<TiledProduct> product = tiled_product(site.facts);
  std::vector<int> counts = {1};
  for (int count : kSplits)
    if (count > 1 && product.ok() && count <= product->points / kLeastStep) counts.push_back(count);
  return counts;
}

// Each processor of the chip has a block or two, or some have none. A block has two steps at least,
// by the smallest tiles.
std::vector<int> share_counts(const ScheduleSite& site) {
  std::vector<int> counts;
  const Result<TiledProduct> product = tiled_product(site.facts);
  if (!product.ok()) return counts;
  const auto parts = [](int64_t all, int64_t each) { return (all + each - 1) / each; };
  const int64_t tiles =
      product->times * parts(product->lines[0], kLines[0]) * parts(product->lines[1], kLines[0]);
  const int64_t steps = checked_mul(tiles, parts(product->points, kLeastStep)).value_or(kMostSteps);
  const int sms = static_cast<int>(std::min<int64_t>(site.target.cores, kMostShares / 2));
  for (int count : {sms / 8, sms / 2, sms, 2 * sms})
    if (count > 1 && count < steps) counts.push_back(count);
  return counts;
}

// How blocks have the steps of tiles: each those of a tile, or a part of them, or a share of all
// steps.
class SpreadDecision : public Decision {
 public:
  std::string_view name() const override { return "splits"; }
  double bound(const ScheduleSite& site) const override {
    return static_cast<double>(all(site).size());
  }
  bool each(const ScheduleSite& site, const Schedule& so_far,
            const ScheduleVisit& visit) const override {
    return std::ranges::all_of(all(site),
                               [&](const Spread& one) { return visit(with(so_far, one)); });
  }
  void draw(const ScheduleSite& site, Schedule& so_far, Rng& rng) const override {
    const std::vector<Spread> spreads = all(site);
    so_far = with(so_far, rng.pick(spreads));
  }
  Schedules near(const ScheduleSite& site, const Schedule& schedule) const override {
    Schedules near;
    for (const Spread& one : all(site))
      if (one != of(schedule)) near.push_back(with(schedule, one));
    return near;
  }
  Schedules simpler(const ScheduleSite&, const Schedule& schedule) const override {
    if (of(schedule) == Spread()) return {};
    return {with(schedule, Spread())};
  }
  void copy(const Schedule& from, Schedule& to, Rng&) const override {
    if (from.if_is<BlockTilesFields>() != nullptr && to.if_is<BlockTilesFields>() != nullptr)
      to = with(to, of(from));
  }

 private:
  struct Spread {
    int splits = 1, shares = 0;
    bool operator==(const Spread&) const = default;
  };
  // The simplest first.
  static std::vector<Spread> all(const ScheduleSite& site) {
    std::vector<Spread> spreads;
    for (int splits : split_counts(site)) spreads.push_back({.splits = splits});
    for (int shares : share_counts(site)) spreads.push_back({.shares = shares});
    return spreads;
  }
  static Spread of(const Schedule& schedule) {
    const BlockTilesFields& own = schedule.get<BlockTilesFields>();
    return {own.splits, own.shares};
  }
  static Schedule with(Schedule schedule, const Spread& spread) {
    BlockTilesFields& own = schedule.get<BlockTilesFields>();
    own.splits = spread.splits;
    own.shares = spread.shares;
    return schedule;
  }
};

// Warpgroups have one depth.
class DepthDecision : public NumberDecision {
 public:
  using NumberDecision::NumberDecision;
  bool each(const ScheduleSite& site, const Schedule& so_far,
            const ScheduleVisit& visit) const override {
    return has_groups(so_far) ? visit(so_far) : NumberDecision::each(site, so_far, visit);
  }
  void draw(const ScheduleSite& site, Schedule& so_far, Rng& rng) const override {
    if (!has_groups(so_far)) NumberDecision::draw(site, so_far, rng);
  }

 private:
  static bool has_groups(const Schedule& schedule) {
    return schedule.get<BlockTilesFields>().groups != 0;
  }
};

const ShapeDecision kShape;
const DepthDecision kDepth("depth", own_field<BlockTilesFields, &BlockTilesFields::depth>(),
                           depths);
const NumberDecision kAhead("ahead", own_field<BlockTilesFields, &BlockTilesFields::ahead>(),
                            steps_ahead);
const SpreadDecision kSpread;

class BlockTiles : public AlgorithmDef {
 public:
  Status check(const ScheduleSite& site, const Schedule& schedule) const override {
    HONE_TRY(check_gpu_blocks(site, schedule));
    if (!std::ranges::is_sorted(schedule.order) || schedule.threads != site.parallel())
      return bad_input("blocks divide all {} dims, in ascending order", site.parallel());
    const TiledProduct product = HONE_TRY(tiled_product(site.facts));
    const BlockTilesFields& own = schedule.get<BlockTilesFields>();
    HONE_TRY(check_products(site, own.products));
    const BlockTile tile = block_tile(site.facts, own);
    HONE_TRY(check_tile(tile, own, *site.target.gpu));
    const bool lacks_steps = tile.splits > std::max<int64_t>(product.points / tile.depth, 1);
    const int64_t before_last = (tile.splits - 1) * steps_of_split(product, tile) * tile.depth;
    if (lacks_steps || (tile.splits > 1 && before_last >= product.points))
      return unsupported("{} points do not make {} parts of whole steps", product.points,
                         tile.splits);
    if (tile.shares > 0) HONE_TRY(check_shares(HONE_TRY(tile_shares(product, tile))));
    return check_code(site, static_cast<double>(site.facts.work.statements * sums_of_thread(tile)));
  }
  bool takes(const ScheduleSite& site) const override {
    return site.target.gpu && !site.is_stage() && !site.body.in_place && all_have_points(site) &&
           !has_sub_byte_output(site) && tiled_product(site.facts).ok();
  }
  std::vector<const Decision*> decisions() const override {
    return {&kShape, &kDepth, &kAhead, &kSpread};
  }
  Schedule simplest(const ScheduleSite& site) const override {
    Schedule schedule = plain_nest(site.parallel());
    schedule.threads = site.parallel();
    schedule.own = BlockTilesFields{.depth = kLeastDepth};
    return schedule;
  }
  uint64_t weight() const override { return 4; }
  bool is_for_gpu() const override { return true; }
};

}  // namespace

std::optional<MatrixNumbers> tensor_numbers(const KernelFacts& facts) {
  if (!facts.contraction.ok()) return std::nullopt;
  const Graph& graph = facts.body.graph;
  const NodeId anchor = facts.space.anchor;
  const DType dtype = graph.type(graph.result(anchor)).dtype();
  const bool is_one_type = std::ranges::all_of(
      graph.operands(anchor), [&](ValueId v) { return graph.type(v).dtype() == dtype; });
  if (!is_one_type) return std::nullopt;
  if (dtype == DType::f32) {
    const Op op = graph.op(anchor);
    if (op.integer("parts") == kTf32Parts) return MatrixNumbers{.are_tf32 = true};
    const bool are_rounded = op.flag("flush") && op.integer("parts") == kRoundedParts;
    return MatrixNumbers{.parts = are_rounded ? kRoundedParts : kAllParts,
                         .are_rounded = are_rounded};
  }
  if (dtype == DType::bf16 || dtype == DType::f16) return MatrixNumbers();
  return std::nullopt;
}

Result<TiledProduct> tiled_product(const KernelFacts& facts) {
  if (!facts.contraction.ok()) return facts.contraction.error();
  const KernelSpace& space = facts.space;
  if (has_open_sizes(space)) return unsupported("tiles of a block have no open sizes");
  TiledProduct product;
  const auto extent = [&](int dim) { return space.dims[static_cast<size_t>(dim)].extent.value(); };
  for (int dim = 0; dim < space.parallel; ++dim) {
    const auto at = static_cast<size_t>(dim);
    const bool of_rows = facts.contraction->sides[0][at],
               of_columns = facts.contraction->sides[1][at];
    if (of_rows == of_columns) {
      product.others.push_back(dim);
      product.times *= extent(dim);
      continue;
    }
    product.sides[of_rows ? 0 : 1].push_back(dim);
    product.lines[of_rows ? 0 : 1] *= extent(dim);
  }
  for (int dim = space.parallel; dim < static_cast<int>(space.dims.size()); ++dim) {
    product.depth.push_back(dim);
    product.points *= extent(dim);
  }
  return product;
}

int64_t BlockTile::threads() const { return across(0) * across(1) * (by_warps ? kWarpLanes : 1); }

int64_t BlockTile::bytes() const {
  const int64_t elements = rows_in_memory(0) * pitch[0] + rows_in_memory(1) * pitch[1];
  return stages * (elements * bits(stored) / 8 + (by_groups ? kMbarrierBytes : 0));
}

BlockTile block_tile(const KernelFacts& facts, const BlockTilesFields& own) {
  const Graph& graph = facts.body.graph;
  const DType dtype = graph.type(graph.result(facts.space.anchor)).dtype();
  const bool by_warps = own.products == Products::matrix, by_groups = own.groups != 0;
  constexpr int64_t kApart = 4;  // words
  MatrixNumbers numbers;
  if (by_warps) numbers = tensor_numbers(facts).value_or(numbers);
  BlockTile tile = {.lines = {own.rows, own.columns},
                    .own = {by_groups ? int(kLeastRows) : own.own_rows,
                            by_groups ? own.columns : own.own_columns},
                    .depth = own.depth,
                    .stages = own.ahead + 1,
                    .splits = own.splits,
                    .shares = own.shares,
                    .by_warps = by_warps,
                    .by_groups = by_groups,
                    .numbers = numbers,
                    .stored = numbers.parts > 1 ? DType::bf16
                              : by_warps        ? dtype
                                                : wide(dtype),
                    .summed = wide(dtype),
                    .pitch = {}};
  for (size_t side = 0; side < 2; ++side)
    tile.pitch[side] = by_warps ? tile.depth : tile.lines[side] + kApart;
  return tile;
}

IndexExpr swizzled(const BlockTile& tile, const IndexExpr& line, const IndexExpr& depth,
                   int64_t whole) {
  constexpr int64_t kPiecesOfBanks = 8;  // all banks have one
  const int64_t piece = tile.piece(), pieces = tile.depth / piece;
  const IndexExpr turn = floordiv(mod(line, kPiecesOfBanks), kPiecesOfBanks / pieces);
  const IndexExpr inside = mod(floordiv(depth, whole), piece / whole) * whole;
  return mod(floordiv(depth, piece) + turn, pieces) * piece + inside;
}

int64_t steps_of_split(const TiledProduct& product, const BlockTile& tile) {
  const auto parts = [](int64_t all, int64_t each) { return (all + each - 1) / each; };
  return std::max<int64_t>(parts(parts(product.points, tile.depth), tile.splits), 1);
}

std::array<int64_t, 2> tiles_of_sides(const TiledProduct& product, const BlockTile& tile) {
  const auto tiles = [&](size_t side) {
    return (product.lines[side] + tile.lines[side] - 1) / tile.lines[side];
  };
  return {tiles(0), tiles(1)};
}

int64_t tiles_of(const TiledProduct& product, const BlockTile& tile) {
  const auto [rows, columns] = tiles_of_sides(product, tile);
  return product.times * rows * columns;
}

int64_t blocks_of(const TiledProduct& product, const BlockTile& tile) {
  if (tile.shares == 0) return tiles_of(product, tile) * tile.splits;
  const Result<TileShares> shares = tile_shares(product, tile);
  return shares.ok() ? shares->blocks : tile.shares;
}

Result<TileShares> tile_shares(const TiledProduct& product, const BlockTile& tile) {
  TileShares made = {.tiles = tiles_of(product, tile),
                     .steps = steps_of_split(product, tile),
                     .share = 0,
                     .blocks = 0};
  const std::optional<int64_t> steps = checked_mul(made.tiles, made.steps);
  if (!steps || *steps > kMostSteps)
    return over_limit("{} tiles of {} steps are more steps than {}", made.tiles, made.steps,
                      kMostSteps)
        .with_hint("choose shares = 0, or larger tiles");
  const int64_t all = std::max<int64_t>(*steps, 1);
  made.share = (all + tile.shares - 1) / tile.shares;
  made.blocks = (all + made.share - 1) / made.share;
  return made;
}

int64_t TileShares::ends_within() const {
  const int64_t apart = steps / std::gcd(steps, share);  // blocks from an end of a tile to the next
  return blocks - 1 - (blocks - 1) / apart;
}

// A tile of more steps than a share has an end within it. A shorter one has one at most.
int64_t TileShares::divided() const { return share < steps ? tiles : ends_within(); }

int64_t TileShares::most_parts() const {
  if (share >= steps) return divided() > 0 ? 2 : 1;
  int64_t most = 1;
  for (int64_t tile = 0; tile < tiles; ++tile)  // fewer than blocks
    most = std::max(most, (tile * steps + steps - 1) / share - tile * steps / share + 1);
  return most;
}

int64_t TileShares::most_tiles() const {
  const int64_t latest = steps - std::gcd(steps, share);  // step of a tile at which a block begins
  return std::min((latest + share + steps - 1) / steps, tiles);
}

PartSums part_sums(const TiledProduct& product, const BlockTile& tile) {
  const int64_t results = product.times * product.lines[0] * product.lines[1];
  if (tile.shares == 0)
    return tile.splits == 1 ? PartSums() : PartSums{results, tile.splits, results * tile.splits};
  const TileShares shares = tile_shares(product, tile).value();
  if (shares.divided() == 0) return {};
  const int64_t points = tile.lines[0] * tile.lines[1];
  return {(shares.blocks - 1) * points, shares.most_parts(),
          (shares.divided() + shares.ends_within()) * points};
}

int64_t sums_of_thread(const BlockTile& tile) {
  return tile.own[0] * tile.own[1] / (tile.by_warps ? kWarpLanes : 1);
}

const AlgorithmDef& algorithm_block_tiles() {
  static const BlockTiles def;
  return def;
}

}  // namespace hone
