#include "kernel/algorithms/winograd.h"

#include <algorithm>

#include "kernel/algorithms/loops.h"

namespace hone {
namespace {

constexpr double kTileStatements = 400;  // of the transforms of a tile, apart from the epilogue

// The iter that the expression is, from `low` to `high`; -1: it is none.
int plain_iter(const IndexExpr& expr, int low, int high) {
  for (int iter = low; iter < high; ++iter)
    if (expr == IndexExpr::iter(iter)) return iter;
  return -1;
}

// The iter that the expression goes along point by point; -1: none, or several.
int step_iter(const IndexExpr& expr, int low, int high) {
  int found = -1;
  for (int iter = low; iter < high; ++iter) {
    if (!expr.mentions(iter)) continue;
    if (found >= 0 || expr.coefficient(iter) != 1) return -1;
    found = iter;
  }
  return found;
}

int features_of(const ScheduleSite& site) { return winograd_dims(site.body, site.facts)->features; }

// ---- Domains: the features are the innermost loop, and alone in lanes and registers -------------

int most_threads_around(const ScheduleSite& site, const Schedule& so_far) {
  return std::min(most_threads(site, so_far), site.parallel() - 1);
}
Counts lanes_of_features(const ScheduleSite& site, const Schedule& so_far, int dim) {
  return dim == features_of(site) ? lane_counts(site, so_far, dim) : Counts();
}
Counts unroll_of_features(const ScheduleSite& site, const Schedule&, int dim) {
  return dim == features_of(site) ? Counts{.size = 8} : Counts();
}
bool any(const ScheduleSite&, const std::vector<Tile>&) { return true; }

template <auto counts>
void draw_tile(const ScheduleSite& site, const Schedule& so_far, std::vector<Tile>& tiles,
               Rng& rng) {
  const int dim = features_of(site);
  const Counts all = counts(site, so_far, dim);
  if (all.size > 0 && rng.chance(0.6)) tiles = {{dim, all.at(rng.between(0, all.size - 1))}};
}

const OrderDecision kFeaturesLast(features_of);
const CountDecision kThreadsAround("threads", shared_field<&Schedule::threads>(), 0.6,
                                   most_threads_around);
const TileDecision kFeatureLanes("lanes", shared_field<&Schedule::lanes>(),
                                 {lanes_of_features, any, draw_tile<lanes_of_features>});
const TileDecision kFeatureUnroll("unroll", shared_field<&Schedule::unroll>(),
                                  {unroll_of_features, any, draw_tile<unroll_of_features>});

class Winograd : public AlgorithmDef {
 public:
  Status check(const ScheduleSite& site, const Schedule& schedule) const override {
    HONE_TRY(check_loops(site, schedule));
    const WinogradDims dims = HONE_TRY(winograd_dims(site.body, site.facts));
    if (site.is_stage()) return unsupported("winograd is for whole kernels");
    if (schedule.order.back() != dims.features || schedule.threads >= site.parallel())
      return bad_input("dim {} of the features is not the innermost loop", dims.features);
    for (const std::vector<Tile>* tiles : {&schedule.lanes, &schedule.unroll})
      for (const Tile& tile : *tiles)
        if (tile.dim != dims.features)
          return unsupported("winograd has tiles of the features, not of dim {}", tile.dim);
    // Each tile of features has one at the end, each point has four results.
    const double one = 4 * static_cast<double>(site.facts.work.statements) + kTileStatements;
    double statements = one * (schedule.lanes.empty() ? 1 : 2);
    for (const Tile& unroll : schedule.unroll) statements *= static_cast<double>(2 * unroll.count);
    HONE_TRY(check_code(site, statements));
    const double bytes = 16 * kMaxElementBytes * static_cast<double>(site.extent(dims.channels)) *
                         static_cast<double>(site.extent(dims.features) + 1);
    return check_scratch(site, bytes, "transformed operands");
  }
  bool takes(const ScheduleSite& site) const override {
    return all_have_points(site) && !site.is_stage() && winograd_dims(site.body, site.facts).ok();
  }
  std::vector<const Decision*> decisions() const override {
    return {&kFeaturesLast, &kThreadsAround, &kFeatureLanes, &kFeatureUnroll};
  }
  Schedule simplest(const ScheduleSite& site) const override {
    return {.order = kFeaturesLast.simplest(site), .own = WinogradFields()};
  }
};

}  // namespace

Result<WinogradDims> winograd_dims(const KernelBody& body, const KernelFacts& facts) {
  if (!facts.contraction.ok()) return facts.contraction.error();
  const Contraction& contraction = *facts.contraction;
  const KernelSpace& space = facts.space;
  const Graph& graph = body.graph;
  const int dims = static_cast<int>(space.dims.size());
  if (graph.opcode(space.anchor) != Opcode::conv || space.parallel != 4 || dims != 7)
    return unsupported("winograd is for 2-D convs, not for {}", graph.describe(space.anchor));
  if (!is_real(graph.type(graph.result(space.anchor)).dtype()))
    return unsupported("winograd halves weights, which are no integers then");
  for (const IndexExpr& expr : contraction.index)
    if (plain_iter(expr, 0, space.parallel) < 0)
      return unsupported("winograd needs the points of the conv where they are");
  WinogradDims roles;
  size_t spatial = 0;
  int plain = 0;
  for (const IndexExpr& expr : contraction.reads[0]) {
    if (const int batch = plain_iter(expr, 0, space.parallel); batch >= 0) {
      roles.batch = batch;
      ++plain;
    } else if (const int channels = plain_iter(expr, space.parallel, dims); channels >= 0) {
      roles.channels = channels;
      ++plain;
    } else if (spatial < 2) {
      roles.spatial[spatial] = step_iter(expr, 0, space.parallel);
      roles.window[spatial] = step_iter(expr, space.parallel, dims);
      ++spatial;
    }
  }
  const auto has_three = [&](int dim) {
    return dim >= 0 && space.dims[static_cast<size_t>(dim)].extent.is(3);
  };
  if (plain != 2 || spatial != 2 || !std::ranges::all_of(roles.window, has_three) ||
      std::ranges::min(roles.spatial) < 0 || contraction.has_holes[0])
    return unsupported(
        "winograd is for windows of 3 x 3 with stride 1, without dilation or groups");
  roles.features = 6 - roles.batch - roles.spatial[0] - roles.spatial[1];
  return roles;
}

const AlgorithmDef& algorithm_winograd() {
  static const Winograd def;
  return def;
}

}  // namespace hone
