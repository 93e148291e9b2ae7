#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel/algorithms/gemm.h"
#include "kernel/algorithms/loops.h"
#include "kernel/schedule_space.h"
#include "kernel/stages.h"

namespace hone {
namespace {

constexpr int64_t kMaxKept = 3;  // values, that are drawn without need

ChainFields& own(Schedule& chain) { return chain.get<ChainFields>(); }
const ChainFields& own(const Schedule& chain) { return chain.get<ChainFields>(); }

Type results_of(const ScheduleSite& site) {
  return site.body.graph.type(site.body.graph.outputs()[0]);
}

// ---- Legality -----------------------------------------------------------------------------------

// Along dims that a stage does not go along, it is done again for each block; along others blocks
// may overlap.
Status check_repetition(const ScheduleSite& site, const Schedule& chain, const Stage& stage) {
  const Type type = stage.body.graph.type(stage.body.graph.outputs()[0]);
  double times = 1;
  for (int dim : chain.order) {
    const int64_t block = block_points(site.body, chain, dim);
    const double blocks = std::ceil(static_cast<double>(results_of(site).dim(dim).value()) /
                                    static_cast<double>(block));
    const auto along = std::ranges::find(stage.along, dim, &Along::dim);
    if (along == stage.along.end()) {
      times *= blocks;
      continue;
    }
    const int64_t extent = type.dim(static_cast<int>(along - stage.along.begin())).value();
    times *= std::max(
        1.0, blocks * static_cast<double>(along->points(block)) / static_cast<double>(extent));
  }
  if (times <= kMaxRepetition) return {};
  return over_limit("it is computed {} times, more than {}", times, kMaxRepetition);
}

struct StageCosts {
  double statements = 0;
  double bytes = 0;  // of scratch
};

Status check_stage(const ScheduleSite& site, const Stage& stage, const Schedule& schedule,
                   StageCosts& costs) {
  const AlgorithmDef& def = def_of(schedule.algorithm());
  if (!def.is_for_stages()) return unsupported("a stage is a nest or a gemm");
  if (schedule.threads != 0) return unsupported("a stage runs on one thread");
  const KernelFacts facts(stage.body);
  const ScheduleSite alone = {stage.body, facts, site.target};
  HONE_TRY(def.check(alone, schedule));
  const auto* gemm = schedule.if_is<GemmFields>();
  costs.statements +=
      unrolled_statements(alone, schedule, gemm == nullptr ? 0 : gemm->block.size());
  if (gemm != nullptr) costs.bytes += HONE_TRY(gemm_scratch(alone, schedule));
  return {};
}

Status check_chain(const ScheduleSite& site, const Schedule& chain) {
  for (NodeId node : site.facts.nodes)
    if (!has_points(site.body.graph.opcode(node)))
      return unsupported("{} is built by the generic algorithm only",
                         site.body.graph.describe(node));
  if (chain.threads > 0 && has_sub_byte_output(site))
    return unsupported("threads would share bytes of an output");
  if (!chain.lanes.empty() || !chain.unroll.empty())
    return bad_input("a chain has tiles in its stages only");
  if (site.body.in_place) return unsupported("a chain cannot update a value in place");
  if (!site.body.graph.donations().empty())
    return unsupported("a chain cannot have its result in memory that it reads");
  const auto& [block, keep, schedules] = own(chain);
  if (keep.empty()) return bad_input("a chain must keep at least one value");
  if (schedules.size() != keep.size() + 1)
    return bad_input("the chain has {} stages, but {} values are kept", schedules.size(),
                     keep.size());
  if (chain.threads < 0 || chain.threads > std::ssize(chain.order))
    return bad_input("threads divide {} of {} loops", chain.threads, chain.order.size());
  const std::vector<Stage> stages = HONE_TRY(stages_of(site.body, chain));
  StageCosts costs;
  for (size_t i = 0; i < stages.size(); ++i) {
    Status good = check_repetition(site, chain, stages[i]);
    if (good.ok()) good = check_stage(site, stages[i], schedules[i], costs);
    if (!good.ok()) return std::move(good).error().within(fmt::format("stage {}", i));
    double kept = i + 1 < stages.size() ? kMaxElementBytes : 0;
    for (int64_t points : stages[i].body.window) kept *= static_cast<double>(points);
    costs.bytes += kept;
  }
  for (int dim : chain.order)
    if (!results_of(site).dim(dim).divisible_by(block_points(site.body, chain, dim)))
      costs.statements *= 2;
  if (costs.statements > kMaxCode)
    return over_limit("{} statements in all stages, more than {}", costs.statements, kMaxCode);
  return check_scratch(site, costs.bytes, "kept values and packed operands");
}

// ---- What is kept: nodes, ascending; each has a stage -------------------------------------------

class KeepDecision : public Decision {
 public:
  std::string_view name() const override { return "keep"; }
  double bound(const ScheduleSite& site) const override {
    return std::exp2(static_cast<double>(site.facts.nodes.size())) - 1;
  }
  bool each(const ScheduleSite& site, const Schedule& so_far,
            const ScheduleVisit& visit) const override {
    std::vector<int64_t> keep;
    return each_from(site, so_far, 0, keep, visit);
  }
  void draw(const ScheduleSite& site, Schedule& chain, Rng& rng) const override {
    std::vector<int64_t> keep = own(chain).keep;
    if (keep.empty() || rng.chance(0.3))
      for (int64_t i = rng.between(1, kMaxKept); i > 0; --i)
        keep.push_back(rng.between(0, std::ssize(site.facts.nodes) - 1));
    std::ranges::sort(keep);
    keep.erase(std::unique(keep.begin(), keep.end()), keep.end());
    chain = keeping(site, chain, std::move(keep));
  }
  Schedules near(const ScheduleSite& site, const Schedule& chain) const override {
    Schedules all;
    for (int64_t node = 0; node < std::ssize(site.facts.nodes); ++node) {
      Schedule next = chain;
      auto& [block, keep, stages] = own(next);
      const auto at = std::ranges::lower_bound(keep, node);
      const auto stage = stages.begin() + (at - keep.begin());
      if (at != keep.end() && *at == node) {
        keep.erase(at);
        stages.erase(stage);
      } else {
        stages.insert(stage, plain_stage(site, node));
        keep.insert(at, node);
      }
      all.push_back(std::move(next));
    }
    return all;
  }
  Schedules simpler(const ScheduleSite& site, const Schedule& chain) const override {
    Schedules all;
    for (Schedule& next : near(site, chain))
      if (own(next).keep.size() < own(chain).keep.size()) all.push_back(std::move(next));
    return all;
  }
  void copy(const Schedule& from, Schedule& to, Rng&) const override {
    if (from.if_is<ChainFields>() == nullptr) return;
    own(to).keep = own(from).keep;
    own(to).stages = own(from).stages;
  }

 private:
  static Schedule plain_stage(const ScheduleSite& site, int64_t node) {
    const Graph& graph = site.body.graph;
    const NodeId kept = site.facts.nodes[static_cast<size_t>(node)];
    return plain_nest(graph.type(graph.results(kept)[0]).rank());
  }
  static Schedule keeping(const ScheduleSite& site, Schedule chain, std::vector<int64_t> keep) {
    own(chain).stages.clear();
    for (int64_t node : keep) own(chain).stages.push_back(plain_stage(site, node));
    own(chain).stages.push_back(plain_nest(results_of(site).rank()));
    own(chain).keep = std::move(keep);
    return chain;
  }
  bool each_from(const ScheduleSite& site, const Schedule& so_far, int64_t node,
                 std::vector<int64_t>& keep, const ScheduleVisit& visit) const {
    if (node == std::ssize(site.facts.nodes))
      return keep.empty() || visit(keeping(site, so_far, keep));
    if (!each_from(site, so_far, node + 1, keep, visit)) return false;
    keep.push_back(node);
    const bool wants_more = each_from(site, so_far, node + 1, keep, visit);
    keep.pop_back();
    return wants_more;
  }
};

// ---- Which dims are taken in blocks, and in which order: single points, at first ----------------

class BlockedDimsDecision : public Decision {
 public:
  std::string_view name() const override { return "order"; }
  double bound(const ScheduleSite& site) const override {
    double orders = 1;  // of none; n + 1 dims: one first, or none
    for (int n = 1; n <= results_of(site).rank(); ++n) orders = 1 + n * orders;
    return orders;
  }
  bool each(const ScheduleSite& site, const Schedule& so_far,
            const ScheduleVisit& visit) const override {
    const Schedule none = blocked(so_far, {});
    return visit(none) && each_longer(site, none, visit);
  }
  void draw(const ScheduleSite& site, Schedule& chain, Rng& rng) const override {
    std::vector<int> order = chain.order;
    if (order.empty())
      for (int dim = 0; dim < results_of(site).rank(); ++dim) order.push_back(dim);
    rng.shuffle(order);
    std::erase_if(order, [&](int) { return rng.chance(0.3); });
    chain = blocked(chain, std::move(order));
  }
  Schedules near(const ScheduleSite& site, const Schedule& chain) const override {
    Schedules all = fewer(chain);
    for (size_t i = 0; i + 1 < chain.order.size(); ++i) {
      all.push_back(chain);
      std::swap(all.back().order[i], all.back().order[i + 1]);
    }
    for (int dim = 0; dim < results_of(site).rank(); ++dim)
      if (std::ranges::find(chain.order, dim) == chain.order.end())
        all.push_back(longer(chain, dim));
    return all;
  }
  Schedules simpler(const ScheduleSite&, const Schedule& chain) const override {
    Schedules all = fewer(chain);
    if (!std::ranges::is_sorted(chain.order)) {
      all.push_back(chain);
      std::ranges::sort(all.back().order);
    }
    return all;
  }
  void copy(const Schedule& from, Schedule& to, Rng&) const override {
    if (from.if_is<ChainFields>() == nullptr) return;
    to.order = from.order;
    own(to).block = own(from).block;
  }

 private:
  static Schedule blocked(Schedule chain, std::vector<int> order) {
    own(chain).block.clear();
    for (int dim : order) own(chain).block.push_back({dim, 1});
    std::ranges::sort(own(chain).block, {}, &Tile::dim);
    chain.order = std::move(order);
    chain.threads = std::min(chain.threads, static_cast<int>(chain.order.size()));
    return chain;
  }
  static Schedule longer(Schedule chain, int dim) {
    chain.order.push_back(dim);
    own(chain).block.push_back({dim, 1});
    std::ranges::sort(own(chain).block, {}, &Tile::dim);
    return chain;
  }
  static Schedules fewer(const Schedule& chain) {
    Schedules all;
    for (int dim : chain.order) {
      Schedule next = chain;
      std::erase(next.order, dim);
      std::erase_if(own(next).block, [&](const Tile& tile) { return tile.dim == dim; });
      next.threads = std::min(next.threads, static_cast<int>(next.order.size()));
      all.push_back(std::move(next));
    }
    return all;
  }
  bool each_longer(const ScheduleSite& site, const Schedule& chain,
                   const ScheduleVisit& visit) const {
    for (int dim = 0; dim < results_of(site).rank(); ++dim) {
      if (std::ranges::find(chain.order, dim) != chain.order.end()) continue;
      const Schedule next = longer(chain, dim);
      if (!visit(next) || !each_longer(site, next, visit)) return false;
    }
    return true;
  }
};

// ---- Blocks of these dims -----------------------------------------------------------------------

Counts chain_block_counts(const ScheduleSite& site, const Schedule& so_far, int dim) {
  if (std::ranges::find(so_far.order, dim) == so_far.order.end()) return {};
  return {.size = std::max<int64_t>(site.extent(dim), 1)};
}

void draw_chain_blocks(const ScheduleSite& site, const Schedule& so_far, std::vector<Tile>& blocks,
                       Rng& rng) {
  for (int dim : so_far.order)
    blocks.push_back(
        {dim, rng.between(1, std::min<int64_t>(chain_block_counts(site, so_far, dim).size, 8))});
}

int most_divided(const ScheduleSite& site, const Schedule& so_far) {
  return has_sub_byte_output(site) ? 0 : static_cast<int>(so_far.order.size());
}

// ---- Stages: each has a space of its own --------------------------------------------------------

class StagesDecision : public Decision {
 public:
  std::string_view name() const override { return "stages"; }
  // There are too many to count.
  double bound(const ScheduleSite&) const override {
    return std::numeric_limits<double>::infinity();
  }
  bool each(const ScheduleSite& site, const Schedule& so_far,
            const ScheduleVisit& visit) const override {
    const std::vector<Stage> all = stages(site, so_far);
    Schedule chain = so_far;
    own(chain).stages.resize(all.size());
    return each_from(all, site, chain, 0, visit);
  }
  void draw(const ScheduleSite& site, Schedule& chain, Rng& rng) const override {
    const std::vector<Stage> all = stages(site, chain);
    own(chain).stages.resize(all.size());
    for (size_t s = 0; s < all.size(); ++s)
      in_space(site, all[s],
               [&](const ScheduleSpace& space) { own(chain).stages[s] = space.sample(rng); });
  }
  Schedules near(const ScheduleSite& site, const Schedule& chain) const override {
    return changed(site, chain, &ScheduleSpace::neighbours);
  }
  Schedules simpler(const ScheduleSite& site, const Schedule& chain) const override {
    return changed(site, chain, &ScheduleSpace::simplify);
  }
  void copy(const Schedule& from, Schedule& to, Rng& rng) const override {
    if (from.if_is<ChainFields>() == nullptr || own(from).keep != own(to).keep) return;
    for (size_t s = 0; s < own(to).stages.size(); ++s)
      if (rng.chance(0.5)) own(to).stages[s] = own(from).stages[s];
  }

 private:
  // None: the chain cannot be cut so.
  static std::vector<Stage> stages(const ScheduleSite& site, const Schedule& chain) {
    Result<std::vector<Stage>> all = stages_of(site.body, chain);
    return all.ok() ? *std::move(all) : std::vector<Stage>();
  }
  static void in_space(const ScheduleSite& site, const Stage& stage, const auto& f) {
    const KernelFacts facts(stage.body);
    f(ScheduleSpace(stage.body, facts, site.target));
  }
  static Schedules changed(const ScheduleSite& site, const Schedule& chain,
                           Schedules (ScheduleSpace::*change)(const Schedule&) const) {
    const std::vector<Stage> all = stages(site, chain);
    Schedules next;
    // A chain without a value to keep, or one that a person wrote.
    if (own(chain).stages.size() != all.size()) return next;
    for (size_t s = 0; s < all.size(); ++s) {
      in_space(site, all[s], [&](const ScheduleSpace& space) {
        for (Schedule& stage : (space.*change)(own(chain).stages[s])) {
          next.push_back(chain);
          own(next.back()).stages[s] = std::move(stage);
        }
      });
    }
    return next;
  }
  static bool each_from(std::span<const Stage> all, const ScheduleSite& site,
                        const Schedule& so_far, size_t s, const ScheduleVisit& visit) {
    if (s == all.size()) return visit(so_far);
    bool wants_more = true;
    in_space(site, all[s], [&](const ScheduleSpace& space) {
      wants_more = space.each([&](const Schedule& stage) {
        Schedule next = so_far;
        own(next).stages[s] = stage;
        return each_from(all, site, next, s + 1, visit);
      });
    });
    return wants_more;
  }
};

const KeepDecision kKeep;
const BlockedDimsDecision kBlockedDims;
const TileDecision kBlocks("block", own_field<ChainFields, &ChainFields::block>(),
                           {chain_block_counts,
                            [](const ScheduleSite&, const std::vector<Tile>&) { return true; },
                            draw_chain_blocks});
const CountDecision kDivided("threads", shared_field<&Schedule::threads>(), 1, most_divided);
const StagesDecision kStages;

class Chain : public AlgorithmDef {
 public:
  Status check(const ScheduleSite& site, const Schedule& schedule) const override {
    return check_chain(site, schedule);
  }
  bool takes(const ScheduleSite& site) const override {
    return site.facts.nodes.size() > 1 && all_have_points(site) && !site.body.in_place &&
           site.body.graph.donations().empty();
  }
  std::vector<const Decision*> decisions() const override {
    return {&kKeep, &kBlockedDims, &kBlocks, &kDivided, &kStages};
  }
  Schedule simplest(const ScheduleSite& site) const override {
    const Result<Schedule> chain = simplest_chain(site.facts);
    return chain.ok() ? *chain : Schedule{.own = ChainFields()};
  }
};

}  // namespace

const AlgorithmDef& algorithm_chain() {
  static const Chain def;
  return def;
}

}  // namespace hone
