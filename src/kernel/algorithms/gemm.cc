#include "kernel/algorithms/gemm.h"

#include <algorithm>

#include "kernel/algorithms/loops.h"
#include "kernel/matrix.h"
#include "kernel/words.h"

namespace hone {
namespace {

Status check_blocks(const ScheduleSite& site, const Schedule& schedule) {
  const std::vector<Tile>& blocks = schedule.get<GemmFields>().block;
  int reduced = 0;
  for (const Tile& block : blocks) {
    HONE_TRY(check_tile(site, block, "a block"));
    if (std::ranges::count(blocks, block.dim, &Tile::dim) > 1)
      return bad_input("dim {} has two blocks", block.dim);
    if (block.count < 1) return bad_input("a block of {} points", block.count);
    if (block.dim >= site.parallel()) {
      ++reduced;
      continue;
    }
    const int64_t points = register_tile(schedule, block.dim);
    if (block.count % points != 0)
      return bad_input("a block of {} does not hold whole tiles of {}", block.count, points);
    const int64_t extent = std::max<int64_t>(site.extent(block.dim), 1);
    if (block.count >= extent + points)
      return bad_input("a block of {} has a whole tile of {} past the extent of {}", block.count,
                       points, extent);
  }
  if (reduced > 1)
    return unsupported("blocks along {} dims of the reduction; one is the most", reduced);
  return {};
}

// Open sizes: whole tiles, and smaller ones for the rest, which are blocks of their own.
Status check_open(const ScheduleSite& site, const Schedule& schedule) {
  const GemmFields& own = schedule.get<GemmFields>();
  for (int dim = 0; dim < site.parallel(); ++dim) {
    if (!site.is_open(dim)) continue;
    const std::string size = site.facts.space.dims[static_cast<size_t>(dim)].extent.to_string();
    if (own.products != Products::plain)
      return unsupported("products cannot be {} with dim {}, of {}", name(own.products), dim, size);
    if (tile_of(schedule.lanes, dim) > 1)
      return unsupported("the lanes of a gemm cannot go along dim {}, of {}", dim, size);
    if (std::ranges::count(own.block, dim, &Tile::dim) > 0)
      return unsupported("a block cannot go along dim {}, of {}", dim, size);
  }
  return {};
}

// The rest that whole tiles leave of an open size has smaller ones.
double smaller_tiles(const ScheduleSite& site) {
  double more = 1;
  for (int dim = 0; dim < site.parallel(); ++dim) more *= site.is_open(dim) ? 3 : 1;
  return more;
}

// A stage may begin within a group of a conv's features, whose channels jump from one group to the
// next.
Status check_windows(const ScheduleSite& site, const Schedule& schedule) {
  const GemmFields& own = schedule.get<GemmFields>();
  for (size_t side = 0; side < 2; ++side) {
    if ((side == 0 ? own.pack_lhs : own.pack_rhs) != Packing::window || !site.is_stage()) continue;
    for (const IndexExpr& expr : site.facts.contraction->reads[side])
      for (int dim = 0; dim < site.dims(); ++dim)
        if (!expr.coefficient(dim))
          return unsupported("a stage of a chain cannot pack a window of groups");
  }
  return {};
}

Status check_matrix(const ScheduleSite& site, const Schedule& schedule) {
  if (site.is_stage()) return unsupported("a stage of a chain cannot use a matrix unit");
  const KernelSpace& space = site.facts.space;
  const MatrixShape shape =
      HONE_TRY(matrix_shape(site.body, *site.facts.contraction, space, schedule));
  if (has_matrix_unit(site.target, shape.numbers)) return {};
  return unsupported("the matrix unit needs {}, which the target lacks",
                     name(shape.numbers.are_quads ? Extension::amx_int8 : Extension::amx_bf16));
}

bool has_instruction(const Target& target, Products words) {
  return words != Products::pairs || target.extensions.contains(Extension::avx512_bf16);
}

Status check_products(const ScheduleSite& site, const Schedule& schedule) {
  switch (schedule.get<GemmFields>().products) {
    case Products::plain: return {};
    case Products::matrix: return check_matrix(site, schedule);
    case Products::quads:
    case Products::pairs: break;
  }
  const Products products = schedule.get<GemmFields>().products;
  // A block of a kept value lies elsewhere than the words of the whole would.
  if (site.is_stage()) return unsupported("a stage of a chain cannot use {}", name(products));
  if (!has_instruction(site.target, products))
    return unsupported("pairs need avx512_bf16, which the target lacks");
  HONE_TRY(word_shape(site.body, *site.facts.contraction, site.facts.space, schedule));
  return {};
}

}  // namespace

std::vector<Products> other_products(const ScheduleSite& site) {
  if (site.is_stage() || !site.facts.contraction.ok() || has_open_sizes(site.facts.space))
    return {};
  const Graph& graph = site.body.graph;
  const NodeId anchor = site.facts.space.anchor;
  std::vector<Products> all;
  const std::optional<WordProducts> words =
      word_products(graph, anchor, relation_of(graph, anchor));
  if (words && has_instruction(site.target, words->products)) all.push_back(words->products);
  const std::optional<MatrixNumbers> numbers = matrix_numbers(graph, anchor);
  if (numbers && has_matrix_unit(site.target, *numbers)) all.push_back(Products::matrix);
  return all;
}

namespace {

// ---- Blocks: whole tiles of results' dims, any points of one dim of the reduction ---------------

Counts block_counts(const ScheduleSite& site, const Schedule& so_far, int dim) {
  const int64_t extent = std::max<int64_t>(site.extent(dim), 1);
  if (dim >= site.parallel()) return {.size = extent};
  const int64_t tile = register_tile(so_far, dim);
  return {.first = tile, .step = tile, .size = (extent + tile - 1) / tile};
}

bool reduces_once(const ScheduleSite& site, const std::vector<Tile>& blocks) {
  return std::ranges::count_if(blocks,
                               [&](const Tile& tile) { return tile.dim >= site.parallel(); }) <= 1;
}

void draw_blocks(const ScheduleSite& site, const Schedule& so_far, std::vector<Tile>& blocks,
                 Rng& rng) {
  const auto draw = [&](int dim, int64_t most) {
    const Counts counts = block_counts(site, so_far, dim);
    blocks.push_back({dim, counts.at(rng.between(0, std::min(counts.size, most) - 1))});
  };
  for (int dim = 0; dim < site.parallel(); ++dim)
    if (rng.chance(0.5)) draw(dim, rng.chance(0.4) ? 48 : 4);
  if (site.dims() > site.parallel() && rng.chance(0.5))
    draw(static_cast<int>(rng.between(site.parallel(), site.dims() - 1)), 64);
}

const TileDecision kBlock("block", own_field<GemmFields, &GemmFields::block>(),
                          {block_counts, reduces_once, draw_blocks});
const PackingDecision kPackLhs("pack_lhs", own_field<GemmFields, &GemmFields::pack_lhs>());
const PackingDecision kPackRhs("pack_rhs", own_field<GemmFields, &GemmFields::pack_rhs>());

// Multiplies by words or on a matrix unit, where numbers and target allow it.
class ProductsDecision : public FieldDecision<Products> {
 public:
  using FieldDecision::FieldDecision;
  double bound(const ScheduleSite& site) const override {
    return 1 + static_cast<double>(other_products(site).size());
  }
  bool each(const ScheduleSite& site, const Schedule& so_far,
            const ScheduleVisit& visit) const override {
    if (!visit(with(so_far, Products::plain))) return false;
    return std::ranges::all_of(other_products(site),
                               [&](Products other) { return visit(with(so_far, other)); });
  }
  void draw(const ScheduleSite& site, Schedule& so_far, Rng& rng) const override {
    get(so_far) = Products::plain;
    const std::vector<Products> others = other_products(site);
    if (others.empty() || !rng.chance(0.7)) return;
    Schedule other = with(so_far, others[rng.below(others.size())]);
    GemmFields& own = other.get<GemmFields>();
    if (own.products == Products::matrix) own.pack_lhs = own.pack_rhs = Packing::panels;
    if (check_products(site, other).ok()) so_far = other;
  }
  Schedules near(const ScheduleSite& site, const Schedule& schedule) const override {
    Schedules all = simpler(site, schedule);
    for (Products other : other_products(site))
      if (other != *get(schedule)) all.push_back(with(schedule, other));
    return all;
  }
  Schedules simpler(const ScheduleSite&, const Schedule& schedule) const override {
    if (*get(schedule) == Products::plain) return {};
    return {with(schedule, Products::plain)};
  }
};
const ProductsDecision kProducts("products", own_field<GemmFields, &GemmFields::products>());

class Gemm : public AlgorithmDef {
 public:
  Status check(const ScheduleSite& site, const Schedule& schedule) const override {
    HONE_TRY(check_loops(site, schedule));
    const size_t blocks = schedule.get<GemmFields>().block.size();
    HONE_TRY(check_code(site, smaller_tiles(site) * unrolled_statements(site, schedule, blocks)));
    if (!site.facts.contraction.ok()) return site.facts.contraction.error();
    for (const std::vector<Tile>* tiles : {&schedule.lanes, &schedule.unroll})
      for (const Tile& tile : *tiles)
        if (tile.dim >= site.parallel())
          return unsupported("gemm has no register tile along dim {} of the reduction", tile.dim);
    HONE_TRY(check_blocks(site, schedule));
    HONE_TRY(check_open(site, schedule));
    HONE_TRY(check_windows(site, schedule));
    HONE_TRY(check_products(site, schedule));
    return check_scratch(site, HONE_TRY(gemm_scratch(site, schedule)), "packed operands");
  }
  bool takes(const ScheduleSite& site) const override {
    return all_have_points(site) && site.facts.contraction.ok();
  }
  std::vector<const Decision*> decisions() const override {
    return {&kAnyOrder, &kThreads, &kLanesOfResults, &kUnrollOfResults,
            &kBlock,    &kPackLhs, &kPackRhs,        &kProducts};
  }
  Schedule simplest(const ScheduleSite& site) const override {
    Schedule schedule = plain_nest(site.parallel());
    schedule.own = GemmFields();
    return schedule;
  }
  uint64_t weight() const override { return 2; }
  bool is_for_stages() const override { return true; }
};

}  // namespace

Result<double> gemm_scratch(const ScheduleSite& site, const Schedule& schedule) {
  const Contraction& contraction = *site.facts.contraction;
  const KernelSpace& space = site.facts.space;
  const GemmFields& own = schedule.get<GemmFields>();
  const auto bytes = [&](const std::vector<bool>& dims, int64_t depth) {
    const BlockShape shape = block_shape(schedule, space, dims);
    return static_cast<double>(shape.tiles) * static_cast<double>(shape.points) *
           static_cast<double>(depth) * kMaxElementBytes;
  };
  double all = 0;
  if (own.products == Products::matrix) {
    const MatrixShape shape = HONE_TRY(matrix_shape(site.body, contraction, space, schedule));
    const auto words = static_cast<double>(shape.steps * MatrixShape::kWords * shape.numbers.parts);
    for (size_t side = 0; side < 2; ++side) {
      const BlockShape block = block_shape(schedule, space, contraction.sides[side]);
      all += 4 * words * static_cast<double>(block.tiles * block.points);
    }
    return all + bytes(std::vector<bool>(static_cast<size_t>(space.parallel), true), 1);
  }
  const int64_t depth = block_depth(schedule, space);
  for (size_t side = 0; side < 2; ++side) {
    const Packing packing = side == 0 ? own.pack_lhs : own.pack_rhs;
    if (packing == Packing::panels) all += bytes(contraction.sides[side], depth);
    if (packing != Packing::window) continue;
    double elements = kMaxElementBytes;
    for (int64_t extent : HONE_TRY(window_of(contraction, space, schedule, side)))
      elements *= static_cast<double>(extent);
    all += elements;
  }
  if (blocks_reduction(schedule, space))
    all += bytes(std::vector<bool>(static_cast<size_t>(space.parallel), true), 1);
  return all;
}

std::vector<int64_t> usual_rows(const ScheduleSite& site, int dim) {
  std::vector<int64_t> counts = {1, 2, 4, 6, 7, 8, 12, 14, 28};
  std::erase_if(counts, [&](int64_t count) { return count > site.extent(dim); });
  return counts;
}

std::vector<std::vector<Tile>> usual_matrix_rows(const ScheduleSite& site,
                                                 std::span<const int> dims) {
  constexpr int64_t kMost = MatrixShape::kMostRows;
  std::vector<std::vector<Tile>> all;
  for (int dim : dims) {
    const int64_t extent = site.extent(dim);
    for (int64_t count : {kMost, kMost / 2})
      if (count < extent) all.push_back({{dim, count}});
    if (extent > kMost) {
      // As many in each tile.
      const int64_t tiles = (extent + kMost - 1) / kMost;
      all.push_back({{dim, (extent + tiles - 1) / tiles}});
      continue;
    }
    all.push_back({{dim, extent}});
    for (int other : dims)
      if (const int64_t count = std::min(kMost / extent, site.extent(other));
          other != dim && count > 1)
        all.push_back({{dim, extent}, {other, count}});
  }
  return all;
}

std::vector<int64_t> usual_vectors(const ScheduleSite& site, int dim, int64_t lanes) {
  std::vector<int64_t> counts = {1};
  for (int64_t count : {2, 4})
    if (lanes == numbers_in_vector(site) && count * lanes < 2 * site.extent(dim))
      counts.push_back(count);
  return counts;
}

std::vector<int64_t> usual_blocks(const ScheduleSite& site, const Schedule& so_far, int dim) {
  const bool is_result = dim < site.parallel();
  const int64_t points = is_result ? register_tile(so_far, dim) : 1;
  std::vector<int64_t> counts = is_result ? std::vector<int64_t>{1, 2, 4, 8, 16, 32}
                                          : std::vector<int64_t>{0, 128, 192, 256, 384, 512};
  for (int64_t& count : counts) count *= points;
  std::erase_if(counts, [&](int64_t count) { return count >= 2 * site.extent(dim); });
  return counts;
}

const AlgorithmDef& algorithm_gemm() {
  static const Gemm def;
  return def;
}

}  // namespace hone
