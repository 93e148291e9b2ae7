#include "kernel/algorithms/loops.h"

#include <algorithm>

#include "target/estimate.h"

namespace hone {
namespace {

constexpr double kMinScratch = 1 << 20;  // bytes that every machine has
// GPUs of sm_86, sm_89 and sm_120 give a block no more.
constexpr int64_t kBlockBytesOfAll = 99 << 10;

Status check_order(const ScheduleSite& site, const Schedule& schedule) {
  const int parallel = site.parallel();
  std::vector<int> sorted = schedule.order;
  std::ranges::sort(sorted);
  for (int d = 0; d < static_cast<int>(sorted.size()); ++d)
    if (sorted[static_cast<size_t>(d)] != d)
      return bad_input("the order is not a permutation of the results' {} dims", parallel);
  if (static_cast<int>(sorted.size()) != parallel)
    return bad_input("the order has {} dims, but the results have {}", sorted.size(), parallel);
  if (schedule.threads < 0 || schedule.threads > parallel)
    return bad_input("threads divide {} of {} loops", schedule.threads, parallel);
  return {};
}

Status check_tiles(const ScheduleSite& site, const Schedule& schedule) {
  if (schedule.lanes.size() > 1)
    return unsupported("the lanes are on {} dims, not on one", schedule.lanes.size());
  for (const Tile& lanes : schedule.lanes) {
    HONE_TRY(check_tile(site, lanes, "lanes"));
    if (lanes.count < 2 || lanes.count > kMaxLanes || (lanes.count & (lanes.count - 1)) != 0)
      return bad_input("{} lanes are given, which is not a power of 2 up to {}", lanes.count,
                       kMaxLanes);
    if (shares_bytes_in_lanes(site)) return unsupported("lanes would share bytes");
  }
  int64_t unrolled = 1;
  for (const Tile& unroll : schedule.unroll) {
    HONE_TRY(check_tile(site, unroll, "unroll"));
    if (std::ranges::count(schedule.unroll, unroll.dim, &Tile::dim) > 1)
      return bad_input("dim {} is unrolled twice", unroll.dim);
    if (unroll.count < 1 || unroll.count > kMaxUnroll)
      return bad_input("a dim is unrolled {} times, outside of 1..{}", unroll.count, kMaxUnroll);
    unrolled *= unroll.count;
  }
  if (unrolled > kMaxUnroll)
    return over_limit("{} points are unrolled, more than {}", unrolled, kMaxUnroll);
  return {};
}

bool searches_in_order(const ScheduleSite& site, int dim) {
  return dim >= site.parallel() &&
         site.body.graph.opcode(site.facts.space.anchor) == Opcode::arg_reduce;
}

bool divides_segments(const ScheduleSite& site, int dim) {
  return (site.facts.divided >> dim & 1) != 0;
}

bool has_tiles(const ScheduleSite& site, int dim) {
  return !searches_in_order(site, dim) && !divides_segments(site, dim);
}

}  // namespace

Status check_tile(const ScheduleSite& site, const Tile& tile, std::string_view what) {
  if (tile.dim < 0 || tile.dim >= site.dims())
    return bad_input("{} cannot be on dim {} of {}", what, tile.dim, site.dims());
  if (searches_in_order(site, tile.dim))
    return unsupported("{} cannot be on the dim that arg_reduce searches in order", what);
  if (tile.count > 1 && divides_segments(site, tile.dim))
    return unsupported("{} cannot be on dim {}, whose points have segments of different lengths",
                       what, tile.dim);
  return {};
}

Status check_loops(const ScheduleSite& site, const Schedule& schedule) {
  for (NodeId node : site.facts.nodes)
    if (!has_points(site.body.graph.opcode(node)))
      return unsupported("{} is built by the generic algorithm only",
                         site.body.graph.describe(node));
  if (schedule.threads > 0 && has_sub_byte_output(site))
    return unsupported("threads would share bytes of an output");
  HONE_TRY(check_order(site, schedule));
  return check_tiles(site, schedule);
}

Status check_gpu_blocks(const ScheduleSite& site, const Schedule& schedule) {
  if (!site.target.gpu) return unsupported("blocks of threads need a GPU");
  if (!schedule.lanes.empty() || !schedule.unroll.empty())
    return bad_input("threads of a block have no lanes, nor points that are unrolled");
  if (site.is_stage() || site.body.in_place)
    return unsupported("a stage or an update is not divided among blocks");
  if (has_sub_byte_output(site)) return unsupported("threads would share bytes of an output");
  return check_loops(site, schedule);
}

double unrolled_statements(const ScheduleSite& site, const Schedule& schedule, size_t blocks) {
  double statements = static_cast<double>(site.facts.work.statements);
  for (const Tile& unroll : schedule.unroll) statements *= 2 * static_cast<double>(unroll.count);
  for (const Tile& lanes : schedule.lanes)
    statements *= 2 * std::max(static_cast<double>(lanes.count) / 16, 1.0);
  for (size_t i = 0; i < blocks; ++i) statements *= 2;
  return statements;
}

Status check_code(const ScheduleSite& site, double statements) {
  if (site.facts.work.statements > kMaxStatements)
    return over_limit("one point takes more than {} statements", kMaxStatements);
  if (statements > kMaxCode)
    return over_limit("the unrolled kernel has {} statements, more than {}", statements, kMaxCode);
  return {};
}

Status check_scratch(const ScheduleSite& site, double bytes, std::string_view what) {
  const std::vector<CacheLevel>& caches = site.target.caches;
  const double most = caches.empty()
                          ? kMinScratch
                          : std::max(static_cast<double>(caches.back().bytes), kMinScratch);
  if (bytes <= most) return {};
  return over_limit("the {:.3g} bytes of {} do not fit into the largest cache", bytes, what);
}

Status check_block_memory(const ScheduleSite& site, int64_t bytes) {
  const int64_t most = std::min(site.target.gpu->block_shared_bytes, kBlockBytesOfAll);
  if (bytes <= most) return {};
  return over_limit("a block would have {} bytes of memory, more than {}", bytes, most);
}

bool all_have_points(const ScheduleSite& site) {
  return std::ranges::all_of(site.facts.nodes,
                             [&](NodeId n) { return has_points(site.body.graph.opcode(n)); });
}

bool shares_bytes_in_lanes(const ScheduleSite& site) {
  if (has_sub_byte_output(site)) return true;
  const Graph& graph = site.body.graph;
  const KernelSpace& space = site.facts.space;
  return space.has_anchor() && std::ranges::any_of(graph.operands(space.anchor), [&](ValueId v) {
           return !v.is_none() && bits(graph.type(v).dtype()) < 8;
         });
}

bool has_sub_byte_output(const ScheduleSite& site) {
  const Graph& graph = site.body.graph;
  return std::ranges::any_of(graph.outputs(),
                             [&](ValueId v) { return bits(graph.type(v).dtype()) < 8; });
}

// ---- Domains ------------------------------------------------------------------------------------

int most_threads(const ScheduleSite& site, const Schedule&) {
  return site.is_stage() || has_sub_byte_output(site) ? 0 : site.parallel();
}

Counts lane_counts(const ScheduleSite& site, const Schedule&, int dim) {
  if (!has_tiles(site, dim) || shares_bytes_in_lanes(site)) return {};
  return {.first = 2, .size = 6, .doubles = true};
}
Counts lane_counts_of_results(const ScheduleSite& site, const Schedule& so_far, int dim) {
  return dim < site.parallel() ? lane_counts(site, so_far, dim) : Counts();
}

Counts unroll_counts(const ScheduleSite& site, const Schedule&, int dim) {
  return has_tiles(site, dim) ? Counts{.size = kMaxUnroll} : Counts();
}
Counts unroll_counts_of_results(const ScheduleSite& site, const Schedule& so_far, int dim) {
  return dim < site.parallel() ? unroll_counts(site, so_far, dim) : Counts();
}

namespace {

template <auto counts>
int random_dim(const ScheduleSite& site, const Schedule& so_far, Rng& rng) {
  std::vector<int> dims;
  for (int dim = 0; dim < site.dims(); ++dim)
    if (counts(site, so_far, dim).size > 0) dims.push_back(dim);
  return dims.empty() ? -1 : rng.pick(dims);
}

template <auto counts>
void draw_lanes(const ScheduleSite& site, const Schedule& so_far, std::vector<Tile>& lanes,
                Rng& rng) {
  const int dim = random_dim<counts>(site, so_far, rng);
  if (dim < 0 || rng.chance(0.4)) return;
  const Counts all = counts(site, so_far, dim);
  lanes = {{dim, all.at(rng.between(0, all.size - 1))}};
}

// Small ones, rarely others.
template <auto counts>
void draw_unroll(const ScheduleSite& site, const Schedule& so_far, std::vector<Tile>& unroll,
                 Rng& rng) {
  for (int64_t i = rng.between(-1, 2); i > 0; --i) {
    const int dim = random_dim<counts>(site, so_far, rng);
    if (dim < 0 || std::ranges::find(unroll, dim, &Tile::dim) != unroll.end()) continue;
    const int64_t small = std::clamp<int64_t>(site.extent(dim), 1, 8);
    unroll.push_back({dim, rng.between(1, rng.chance(0.1) ? kMaxUnroll : small)});
  }
}

bool are_few(const ScheduleSite&, const std::vector<Tile>& unroll) {
  int64_t points = 1;
  for (const Tile& tile : unroll) points *= tile.count;
  return points <= kMaxUnroll;
}
bool is_one(const ScheduleSite&, const std::vector<Tile>& lanes) { return lanes.size() <= 1; }

template <auto counts>
constexpr TileDecision lanes_by() {
  return {"lanes", shared_field<&Schedule::lanes>(), {counts, is_one, draw_lanes<counts>}};
}
template <auto counts>
constexpr TileDecision unroll_by() {
  return {"unroll", shared_field<&Schedule::unroll>(), {counts, are_few, draw_unroll<counts>}};
}

}  // namespace

const OrderDecision kAnyOrder;
const CountDecision kThreads("threads", shared_field<&Schedule::threads>(), 0.6, most_threads);
const TileDecision kLanes = lanes_by<lane_counts>();
const TileDecision kLanesOfResults = lanes_by<lane_counts_of_results>();
const TileDecision kUnroll = unroll_by<unroll_counts>();
const TileDecision kUnrollOfResults = unroll_by<unroll_counts_of_results>();

// ---- Usual counts -------------------------------------------------------------------------------

int64_t numbers_in_vector(const ScheduleSite& site) {
  const Graph& graph = site.body.graph;
  double bytes = 4;
  for (ValueId v : graph.outputs()) bytes = std::max(bytes, bits(graph.type(v).dtype()) / 8.0);
  return static_cast<int64_t>(vector_bytes(site.target.isa) / bytes);
}

std::vector<int64_t> usual_lanes(const ScheduleSite& site, int dim) {
  const int64_t vector = numbers_in_vector(site);
  std::vector<int64_t> counts;
  for (int64_t count : {vector, 2 * vector, 4 * vector, vector / 2, vector / 4})
    if (count > 1 && count < 2 * site.extent(dim)) counts.push_back(count);
  return counts;
}

std::vector<int64_t> usual_unroll(const ScheduleSite& site, int dim) {
  std::vector<int64_t> counts = {1, 2, 3, 4, 5, 6, 7, 8, 12, 14, 16, 28};
  std::erase_if(counts, [&](int64_t count) { return count > site.extent(dim); });
  return counts;
}

}  // namespace hone
