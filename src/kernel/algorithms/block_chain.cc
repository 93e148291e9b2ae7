#include "kernel/algorithms/block_chain.h"

#include <algorithm>

#include "ir/op_def.h"
#include "ir/op_facts.h"
#include "kernel/algorithms/loops.h"
#include "kernel/schedule_space.h"
#include "target/gpu.h"

namespace hone {
namespace {

constexpr int64_t kCombiningSteps = 5;  // of a warp, whose threads combine what they have

bool folds(Opcode opcode) { return is_contraction(opcode) || combines_by_kind(opcode); }

Type result_type(const KernelBody& body) { return body.graph.type(body.graph.outputs()[0]); }

// The schedule of a chain with the same stages: those of CPUs are the same.
Result<Schedule> as_chain(const KernelBody& body, const Schedule& schedule) {
  Schedule chain = HONE_TRY(simplest_chain(body));
  auto& [block, keep, stages] = chain.get<ChainFields>();
  const Graph& graph = body.graph;
  const std::vector<NodeId> nodes = computing_nodes(graph);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const bool is_output =
        std::ranges::find(graph.outputs(), graph.results(nodes[i])[0]) != graph.outputs().end();
    if (combines_by_kind(graph.opcode(nodes[i])) && !is_output)
      keep.push_back(static_cast<int64_t>(i));
  }
  std::ranges::sort(keep);
  keep.erase(std::ranges::unique(keep).begin(), keep.end());
  stages.clear();
  chain.order = schedule.order;
  block.clear();
  for (int dim : schedule.order) block.push_back({dim, block_chain_points(body, schedule, dim)});
  return chain;
}

// The op of the stage that combines numbers; several are too many.
Result<std::optional<NodeId>> fold_of(const Graph& graph) {
  std::optional<NodeId> fold;
  for (NodeId node : graph.nodes()) {
    const Opcode opcode = graph.opcode(node);
    const bool is_known = graph.operands(node).empty() || folds(opcode) ||
                          class_of(opcode) == OpClass::elementwise ||
                          class_of(opcode) == OpClass::movement;
    if (!is_known)
      return unsupported("threads of a block do not share the work of {}", graph.describe(node));
    if (!folds(opcode)) continue;
    if (fold)
      return unsupported("a stage has two ops that combine numbers, {} and {}",
                         graph.describe(*fold), graph.describe(node));
    fold = node;
  }
  return fold;
}

Result<BlockStage> block_stage(Stage stage, int64_t threads, bool is_last) {
  for (const Along& along : stage.along)
    if (!along.is_whole() && (along.stride != 1 || along.first != 0 || along.window != 1))
      return unsupported("a block needs other points of a stage than its own");
  const Graph& graph = stage.body.graph;
  BlockStage made;
  made.fold = HONE_TRY(fold_of(graph));
  for (int64_t points : stage.body.window) made.points *= points;
  const Type type = graph.type(graph.outputs()[0]);
  if (!is_last) made.bytes = made.points * bits(type.dtype()) / 8;
  if (made.fold) {
    const AccessRelation relation = relation_of(graph, *made.fold);
    const auto rank = static_cast<size_t>(graph.type(graph.result(*made.fold)).rank());
    for (size_t d = rank; d < relation.dims.size(); ++d) {
      const int64_t terms = relation.dims[d].extent.value();
      made.terms *= terms;
      if (d > rank && terms <= made.split_terms) continue;
      made.split = static_cast<int>(d);
      made.split_terms = terms;
    }
    const bool is_alone =
        !is_last && graph.outputs()[0] == graph.result(*made.fold) && relation.dims.size() > rank;
    BlockStage by_warp = made;
    by_warp.is_by_warp = true;
    if (is_alone && steps_of_stage(by_warp, threads) < steps_of_stage(made, threads))
      made.is_by_warp = true;
  }
  made.stage = std::move(stage);
  return made;
}

// ---- The algorithm ------------------------------------------------------------------------------

Counts points_of_block(const ScheduleSite& site, const Schedule& so_far, int dim) {
  if (std::ranges::find(so_far.order, dim) == so_far.order.end() || site.extent(dim) < 2) return {};
  Counts counts = {.first = 2, .size = 0, .doubles = true};
  while (counts.size < 16 && counts.at(counts.size) < 2 * site.extent(dim)) ++counts.size;
  return counts;
}

bool any_points_fit(const ScheduleSite&, const std::vector<Tile>&) { return true; }

void draw_points(const ScheduleSite& site, const Schedule& so_far, std::vector<Tile>& blocks,
                 Rng& rng) {
  for (int dim : so_far.order) {
    const Counts counts = points_of_block(site, so_far, dim);
    if (counts.size > 0 && rng.chance(0.4))
      blocks.push_back({dim, counts.at(rng.between(0, std::min<int64_t>(counts.size, 3) - 1))});
  }
}

std::vector<int> chain_warps(const ScheduleSite&) { return {4, 1, 2, 8, 16}; }

const TileDecision kChainBlock("block", own_field<BlockChainFields, &BlockChainFields::block>(),
                               {points_of_block, any_points_fit, draw_points});
const NumberDecision kChainWarps("warps", own_field<BlockChainFields, &BlockChainFields::warps>(),
                                 chain_warps);

class BlockChain : public AlgorithmDef {
 public:
  Status check(const ScheduleSite& site, const Schedule& schedule) const override {
    if (!site.target.gpu) return unsupported("blocks of threads need a GPU");
    if (!schedule.lanes.empty() || !schedule.unroll.empty())
      return bad_input("threads of a block have no lanes, nor points that are unrolled");
    if (site.is_stage() || site.body.in_place)
      return unsupported("a stage or an update is not divided among blocks");
    if (!site.body.graph.donations().empty())
      return unsupported("a chain cannot have its result in memory that it reads");
    if (!all_have_points(site) || has_sub_byte_output(site))
      return unsupported("threads cannot have points of the results of their own");
    const BlockChainFields& own = schedule.get<BlockChainFields>();
    const std::vector<int> counts = chain_warps(site);
    if (std::ranges::find(counts, own.warps) == counts.end())
      return bad_input("a block has {} warps, not 1, 2, 4, 8 or 16", own.warps);
    const Schedule simplest = HONE_TRY(simplest_block_chain(site.body));
    if (schedule.order != simplest.order || schedule.threads != simplest.threads)
      return bad_input("a block takes points of {} dims of the results, in order",
                       simplest.threads);
    HONE_TRY(check_blocks(site, schedule));
    int64_t bytes = 0;
    for (const BlockStage& stage : HONE_TRY(block_stages(site.body, schedule))) {
      bytes += stage.bytes;
      HONE_TRY(check_code({stage.stage.body, KernelFacts(stage.stage.body), site.target},
                          static_cast<double>(KernelFacts(stage.stage.body).work.statements)));
    }
    return check_block_memory(site, bytes);
  }
  bool takes(const ScheduleSite& site) const override {
    return site.target.gpu && !site.is_stage() && !site.body.in_place && all_have_points(site) &&
           site.body.graph.donations().empty() && !has_sub_byte_output(site) &&
           simplest_block_chain(site.body).ok();
  }
  std::vector<const Decision*> decisions() const override { return {&kChainBlock, &kChainWarps}; }
  Schedule simplest(const ScheduleSite& site) const override {
    Result<Schedule> simplest = simplest_block_chain(site.body);
    if (simplest.ok()) return *std::move(simplest);
    return {.own = BlockChainFields()};
  }
  uint64_t weight() const override { return 4; }
  bool is_for_gpu() const override { return true; }

 private:
  static Status check_blocks(const ScheduleSite& site, const Schedule& schedule) {
    int last = -1;
    for (const Tile& tile : schedule.get<BlockChainFields>().block) {
      if (tile.dim <= last) return bad_input("blocks are not in the order of their dims");
      last = tile.dim;
      const Counts counts = points_of_block(site, schedule, tile.dim);
      const int64_t at = counts.size == 0 ? -1 : counts.find(tile.count);
      if (at < 0 || at >= counts.size || counts.at(at) != tile.count)
        return bad_input("a block cannot have {} points of dim {}", tile.count, tile.dim);
    }
    return {};
  }
};

}  // namespace

Result<Schedule> simplest_block_chain(const KernelBody& body) {
  if (body.graph.outputs().size() != 1) return unsupported("a chain by blocks has one result");
  Schedule simplest = HONE_TRY(simplest_chain(body));
  std::ranges::sort(simplest.order);
  simplest.threads = static_cast<int>(simplest.order.size());
  simplest.own = BlockChainFields();
  HONE_TRY(block_stages(body, simplest));
  return simplest;
}

int64_t block_chain_points(const KernelBody& body, const Schedule& schedule, int dim) {
  const std::vector<Tile>& blocks = schedule.get<BlockChainFields>().block;
  const auto block = std::ranges::find(blocks, dim, &Tile::dim);
  return block == blocks.end() ? 1 : std::min(block->count, result_type(body).dim(dim).value());
}

int64_t block_chain_threads(const BlockChainFields& own) { return int64_t{own.warps} * kWarpLanes; }

int64_t steps_of_stage(const BlockStage& stage, int64_t threads) {
  const auto parts = [](int64_t all, int64_t each) { return (all + each - 1) / each; };
  if (!stage.is_by_warp) return parts(stage.points, threads) * stage.terms;
  const int64_t others = stage.terms / std::max<int64_t>(stage.split_terms, 1);
  return parts(stage.points, threads / kWarpLanes) *
         (others * parts(stage.split_terms, kWarpLanes) + kCombiningSteps);
}

Result<std::vector<BlockStage>> block_stages(const KernelBody& body, const Schedule& schedule) {
  std::vector<Stage> stages = HONE_TRY(stages_of(body, HONE_TRY(as_chain(body, schedule))));
  std::vector<BlockStage> all;
  for (size_t i = 0; i < stages.size(); ++i)
    all.push_back(HONE_TRY(block_stage(std::move(stages[i]),
                                       block_chain_threads(schedule.get<BlockChainFields>()),
                                       i + 1 == stages.size())));
  return all;
}

const AlgorithmDef& algorithm_block_chain() {
  static const BlockChain def;
  return def;
}

}  // namespace hone
