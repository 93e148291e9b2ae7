#include "kernel/algorithms/gemm.h"

#include <algorithm>

#include "kernel/algorithms/loops.h"
#include "kernel/split.h"
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
      return bad_input("a block of {} is a whole tile of {} past the extent of {}", block.count,
                       points, extent);
  }
  if (reduced > 1) return unsupported("blocks along {} dims of the reduction", reduced);
  return {};
}

// A stage may begin within a group of a conv's features, whose channels jump from one group to the
// next.
Status check_windows(const ScheduleSite& site, const Schedule& schedule) {
  const GemmFields& own = schedule.get<GemmFields>();
  for (size_t side = 0; side < 2; ++side) {
    if ((side == 0 ? own.pack_lhs : own.pack_rhs) != Packing::window || !site.is_stage()) continue;
    for (const IndexExpr& expr : site.facts.contraction->reads[side])
      for (int dim = 0; dim < site.dims(); ++dim)
        if (!expr.coefficient(dim)) return unsupported("a window of groups in a stage of a chain");
  }
  return {};
}

// The unit flushes numbers below the normal ones, so factors below 2^-100 lose accuracy: it is used
// where a plan asks for it, and no search proposes it.
Status check_split(const ScheduleSite& site, const Schedule& schedule) {
  if (site.is_stage()) return unsupported("split products in a stage of a chain");
  if (!site.target.extensions.contains(Extension::amx_bf16))
    return unsupported("split products on a target without amx_bf16");
  const Graph& graph = site.body.graph;
  const NodeId anchor = site.facts.space.anchor;
  for (ValueId operand : graph.operands(anchor))
    if (graph.type(operand).dtype() != DType::f32)
      return unsupported("split products of {}", name(graph.type(operand).dtype()));
  if (graph.type(graph.result(anchor)).dtype() != DType::f32)
    return unsupported("split products that give {}",
                       name(graph.type(graph.result(anchor)).dtype()));
  HONE_TRY(split_shape(*site.facts.contraction, site.facts.space, schedule));
  return {};
}

bool has_instruction(const Target& target, Products words) {
  return words != Products::pairs || target.extensions.contains(Extension::avx512_bf16);
}

Status check_products(const ScheduleSite& site, const Schedule& schedule) {
  switch (schedule.get<GemmFields>().products) {
    case Products::plain: return {};
    case Products::split: return check_split(site, schedule);
    case Products::quads:
    case Products::pairs: break;
  }
  const Products products = schedule.get<GemmFields>().products;
  if (site.is_stage()) return unsupported("{} in a stage of a chain", name(products));
  if (!has_instruction(site.target, products))
    return unsupported("pairs on a target without avx512_bf16");
  HONE_TRY(word_shape(site.body, *site.facts.contraction, site.facts.space, schedule));
  return {};
}

}  // namespace

std::optional<Products> products_by_words(const ScheduleSite& site) {
  if (site.is_stage() || !site.facts.contraction.ok()) return std::nullopt;
  const Graph& graph = site.body.graph;
  const NodeId anchor = site.facts.space.anchor;
  const std::optional<WordProducts> words =
      word_products(graph, anchor, relation_of(graph, anchor));
  if (!words || !has_instruction(site.target, words->products)) return std::nullopt;
  return words->products;
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

// By words where a body has them; split products are a plan's own choice.
class ProductsDecision : public FieldDecision<Products> {
 public:
  using FieldDecision::FieldDecision;
  double bound(const ScheduleSite& site) const override { return products_by_words(site) ? 2 : 1; }
  bool each(const ScheduleSite& site, const Schedule& so_far,
            const ScheduleVisit& visit) const override {
    if (!visit(with(so_far, Products::plain))) return false;
    const std::optional<Products> words = products_by_words(site);
    return !words || visit(with(so_far, *words));
  }
  void draw(const ScheduleSite& site, Schedule& so_far, Rng& rng) const override {
    get(so_far) = Products::plain;
    const std::optional<Products> words = products_by_words(site);
    if (!words || !rng.chance(0.7)) return;
    const Schedule by_words = with(so_far, *words);
    if (check_products(site, by_words).ok()) so_far = by_words;
  }
  Schedules near(const ScheduleSite& site, const Schedule& schedule) const override {
    if (*get(schedule) != Products::plain) return simpler(site, schedule);
    const std::optional<Products> words = products_by_words(site);
    if (!words) return {};
    return {with(schedule, *words)};
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
    HONE_TRY(check_code(site, unrolled_statements(site, schedule, blocks)));
    if (!site.facts.contraction.ok()) return site.facts.contraction.error();
    for (const std::vector<Tile>* tiles : {&schedule.lanes, &schedule.unroll})
      for (const Tile& tile : *tiles)
        if (tile.dim >= site.parallel())
          return unsupported("gemm has no register tile along dim {} of the reduction", tile.dim);
    HONE_TRY(check_blocks(site, schedule));
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
  if (own.products == Products::split) {
    const SplitShape split = HONE_TRY(split_shape(contraction, space, schedule));
    const double words = static_cast<double>(split.steps * SplitShape::kWords * SplitShape::kParts);
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
