#include "planner/chains.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "kernel/facts.h"
#include "kernel/stages.h"

namespace hone {
namespace {

constexpr uint32_t kNoGroup = UINT32_MAX;
// One that costs the same, like a single block, saves nothing and ties more down.
constexpr double kLess = 0.999;

// The dims, taken in blocks, along which blocks of several points share what one of them needs:
// the rows of a product, but not what its both sides have.
std::vector<bool> has_rows(const KernelBody& body, const Schedule& chain) {
  std::vector<bool> has_rows(static_cast<size_t>(body.graph.type(body.graph.outputs()[0]).rank()));
  const std::vector<Stage> stages = stages_of(body, chain).value();
  for (const Stage& stage : stages) {
    const Result<Contraction> contraction = KernelFacts(stage.body).contraction;
    if (!contraction.ok()) continue;
    for (size_t d = 0; d < stage.along.size(); ++d)
      if (stage.along[d] >= 0 && contraction->sides[0][d] != contraction->sides[1][d])
        has_rows[static_cast<size_t>(stage.along[d])] = true;
  }
  return has_rows;
}

}  // namespace

Result<std::optional<PricedSchedule>> cheapest_chain(std::shared_ptr<const KernelFacts> facts,
                                                     ScheduleChooser& chooser) {
  const KernelBody& body = facts->body;
  const Result<Schedule> simplest = simplest_chain(body);
  if (!simplest.ok()) return std::optional<PricedSchedule>();
  const std::vector<bool> rows = has_rows(body, *simplest);
  const std::unique_ptr<PricedKernel> price = chooser.cost().kernel(facts, chooser.threads());
  std::optional<PricedSchedule> best;
  const auto consider = [&](Schedule chain) -> Status {
    const Result<std::vector<Stage>> stages = stages_of(body, chain);
    ChainFields& own = chain.get<ChainFields>();
    own.stages.clear();
    for (const Stage& stage : *stages) {
      const PricedSchedule* best_of_stage = HONE_TRY(chooser.choose(stage.body));
      own.stages.push_back(best_of_stage->schedule);
    }
    if (!check_schedule(body, chain, chooser.target()).ok()) return {};
    const double seconds = price->seconds(chain);
    if (!best || seconds < best->seconds) best = {std::move(chain), seconds};
    return {};
  };
  Schedule start = *simplest;
  // What rows share stays in the nearest cache while they are taken one after another.
  if (chooser.heuristics().chain_order)
    std::ranges::sort(start.order, {}, [&](int dim) {
      return std::pair(bool{rows[static_cast<size_t>(dim)]}, dim);
    });
  start.threads = chooser.threads() > 1 ? static_cast<int>(start.order.size()) : 0;
  HONE_TRY(consider(start));
  for (Tile& block : start.get<ChainFields>().block) {
    if (!chooser.heuristics().chain_blocks || !rows[static_cast<size_t>(block.dim)]) continue;
    const int64_t extent = body.graph.type(body.graph.outputs()[0]).dim(block.dim).value();
    for (int64_t points : {8, 32, 128}) {
      block.count = std::min(points, extent);
      HONE_TRY(consider(start));
    }
    block.count = 1;
  }
  if (!best) best = {*simplest, price->seconds(*simplest)};
  return best;
}

namespace {

class ChainJoiner {
 public:
  ChainJoiner(const Graph& graph, const Users& users, const FusionFreedom& freedom,
              ScheduleChooser& chooser, Fusion& fusion)
      : graph_(graph),
        users_(users),
        freedom_(freedom),
        chooser_(chooser),
        groups_(fusion.groups),
        group_of_(graph.node_count(), kNoGroup) {
    for (uint32_t g = 0; g < groups_.size(); ++g)
      for (NodeId n : groups_[g]) group_of_[n.index] = g;
  }

  Status run() {
    for (uint32_t g = 0; g < groups_.size(); ++g)
      while (HONE_TRY(take_one_before(g))) {
      }
    std::erase_if(groups_, [](const std::vector<NodeId>& nodes) { return nodes.empty(); });
    return {};
  }

 private:
  Result<bool> take_one_before(uint32_t g) {
    if (!can_be_in_chain(groups_[g])) return false;
    for (NodeId n : groups_[g]) {
      for (ValueId v : graph_.operands(n)) {
        if (v.is_none()) continue;
        const uint32_t before = group_of_[graph_.producer(v).index];
        if (before != kNoGroup && before != g && HONE_TRY(pays(before, g))) {
          join(before, g);
          return true;
        }
      }
    }
    return false;
  }

  bool can_be_in_chain(const std::vector<NodeId>& nodes) const {
    return std::ranges::all_of(nodes, [&](NodeId n) {
      const Opcode opcode = graph_.opcode(n);
      return is_fusible(opcode) && opcode != Opcode::conv && opcode != Opcode::window_reduce;
    });
  }

  Result<bool> pays(uint32_t before, uint32_t after) {
    if (!can_be_in_chain(groups_[before]) || !reads_alone(after, before)) return false;
    std::vector<NodeId> both;
    std::ranges::merge(groups_[before], groups_[after], std::back_inserter(both));
    if (!has_dot(both)) return false;
    const auto [at, is_new] =
        pays_.try_emplace(group_shape(graph_, both, ports_of(graph_, users_, both), {}));
    if (!is_new) return at->second;
    if (!check_group(graph_, users_, both).ok()) return false;
    const KernelBody body = body_of(graph_, users_, both, {});
    if (!simplest_chain(body).ok()) return false;
    const double apart = HONE_TRY(seconds(groups_[before])) + HONE_TRY(seconds(groups_[after]));
    return at->second = HONE_TRY(chooser_.choose(body))->seconds < kLess * apart;
  }

  Result<double> seconds(const std::vector<NodeId>& nodes) {
    return HONE_TRY(chooser_.choose(body_of(graph_, users_, nodes, {})))->seconds;
  }

  bool has_dot(const std::vector<NodeId>& nodes) const {
    return std::ranges::any_of(nodes, [&](NodeId n) { return graph_.opcode(n) == Opcode::dot; });
  }

  // Whether nothing else needs what the group computes.
  bool reads_alone(uint32_t reader, uint32_t group) const {
    for (NodeId n : groups_[group]) {
      for (ValueId v : graph_.results(n)) {
        if (users_.is_output(v) || freedom_.has_memory[v.index]) return false;
        for (NodeId user : users_.of(v))
          if (group_of_[user.index] != group && group_of_[user.index] != reader) return false;
      }
    }
    return true;
  }

  void join(uint32_t before, uint32_t after) {
    std::vector<NodeId> both;
    std::ranges::merge(groups_[before], groups_[after], std::back_inserter(both));
    for (NodeId n : groups_[before]) group_of_[n.index] = after;
    groups_[before].clear();
    groups_[after] = std::move(both);
  }

  const Graph& graph_;
  const Users& users_;
  const FusionFreedom& freedom_;
  ScheduleChooser& chooser_;
  std::vector<std::vector<NodeId>>& groups_;
  std::vector<uint32_t> group_of_;           // by node
  std::unordered_map<uint64_t, bool> pays_;  // by the shape of both as one kernel
};

}  // namespace

Status join_chains(const Graph& graph, const Users& users, const FusionFreedom& freedom,
                   ScheduleChooser& chooser, Fusion& fusion) {
  return ChainJoiner(graph, users, freedom, chooser, fusion).run();
}

}  // namespace hone
