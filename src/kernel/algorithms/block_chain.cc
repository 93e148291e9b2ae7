#include "kernel/algorithms/block_chain.h"

#include <algorithm>

#include "ir/op_def.h"
#include "ir/op_facts.h"
#include "ir/softmax.h"
#include "kernel/algorithms/loops.h"
#include "kernel/schedule_space.h"
#include "target/gpu.h"

namespace hone {
namespace {

constexpr int64_t kCombiningSteps = 5;  // of a warp, whose threads combine what they have
constexpr int64_t kLeastLines = 4;      // of a product on tensor cores, on each side
constexpr int64_t kMostTileSums = 64;   // of a thread
constexpr int64_t kMostRowSums = 16;    // the same, of products without tensor cores
constexpr int64_t kRowsApart = 8;       // numbers behind each row that tensor cores multiply
constexpr int64_t kLeastRowStep = 4;
constexpr int64_t kRowParts = 4;  // of a chain, beside the product

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

int64_t in_parts(int64_t all, int64_t each) { return (all + each - 1) / each; }

DType type_of_sums(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype;
}

// ---- The row of a softmax -----------------------------------------------------------------------

// A softmax whose weights the last stage's product multiplies by other data.
struct WeightsOfProduct {
  SoftmaxParts softmax;
  size_t side = 0;  // the operand of the product that is made of them
};
std::optional<WeightsOfProduct> softmax_before(const Graph& graph, std::span<const ValueId> kept,
                                               const Stage& last, NodeId product) {
  const Graph& here = last.body.graph;
  const size_t parameters = graph.inputs().size();
  const std::span<const ValueId> operands = here.operands(product);
  for (size_t side = 0; side < operands.size(); ++side) {
    const auto input = std::ranges::find(here.inputs(), moved_from(here, operands[side]));
    if (input == here.inputs().end()) continue;
    const size_t source = last.sources[static_cast<size_t>(input - here.inputs().begin())];
    if (source < parameters) continue;
    if (std::optional<SoftmaxParts> parts = softmax_of(graph, kept[source - parameters]))
      return WeightsOfProduct{*parts, side};
  }
  return std::nullopt;
}

RowPart part_of(const Graph& graph, const SoftmaxParts& softmax, ValueId kept) {
  if (kept == softmax.maxima) return RowPart::maxima;
  if (kept == softmax.sums) return RowPart::sums;
  if (kept == softmax.weights) return RowPart::weights;
  return before_casts(graph, kept) == softmax.scores ? RowPart::scores : RowPart::none;
}

// A step has the weights of its own points alone: term k of the product has to be weight k of the
// row.
bool takes_weights_in_order(const Graph& graph, NodeId product, size_t side, int axis, int term) {
  std::vector<IndexExpr> index;
  ValueId value = graph.operands(product)[side];
  for (NodeId node = product;; node = graph.producer(value), value = graph.operands(node)[0]) {
    const std::vector<Access> pieces =
        relation_of(graph, node).operands[node == product ? side : 0];
    if (pieces.size() != 1 || !pieces[0].guards.empty()) return false;
    std::vector<IndexExpr> before = pieces[0].index;
    if (node != product)
      for (IndexExpr& expr : before) expr = expr.substitute(index);
    index = std::move(before);
    if (!only_moves(graph.opcode(graph.producer(value)))) break;
  }
  for (size_t d = 0; d < index.size(); ++d)
    if (static_cast<int>(d) == axis ? !(index[d] == IndexExpr::iter(term))
                                    : index[d].mentions(term))
      return false;
  return true;
}

// Until the row has ended, nothing of it is what the whole row has. So the last stage multiplies
// the weights once, and else it reads the sums, behind its product.
bool reads_row_once(const Graph& graph, std::span<const ValueId> kept, const Stage& last,
                    NodeId product, const WeightsOfProduct& weights) {
  const Graph& here = last.body.graph;
  const Users users(here);
  for (ValueId v = here.operands(product)[weights.side];; v = here.operands(here.producer(v))[0]) {
    if (!users.has_one_use(v)) return false;
    if (!only_moves(here.opcode(here.producer(v)))) break;
  }
  const size_t parameters = graph.inputs().size();
  std::vector<bool> has_sums(here.value_count(), false);
  for (size_t i = 0; i < last.sources.size(); ++i) {
    if (last.sources[i] < parameters) continue;
    const RowPart part = part_of(graph, weights.softmax, kept[last.sources[i] - parameters]);
    if (part == RowPart::scores || part == RowPart::maxima) return false;
    has_sums[here.inputs()[i].index] = part == RowPart::sums;
  }
  for (NodeId node : here.nodes()) {
    const bool reads =
        std::ranges::any_of(here.operands(node), [&](ValueId v) { return has_sums[v.index]; });
    if (reads && node == product) return false;
    for (ValueId result : here.results(node))
      if (reads) has_sums[result.index] = true;
  }
  return true;
}

// Per stage: what it makes of the row. The last stages are those of a softmax and its product. A
// block has all of a row, and in other dims as many points of maxima as of scores.
Result<std::vector<RowSteps>> steps_of_row(const KernelBody& body, std::span<const ValueId> kept,
                                           std::span<const Stage> stages, int64_t step) {
  const Stage& last = stages.back();
  const std::optional<NodeId> product = HONE_TRY(fold_of(last.body.graph));
  const auto no_row = [](std::string_view why) { return unsupported("a row in steps: {}", why); };
  if (!product || !is_contraction(last.body.graph.opcode(*product)))
    return no_row("the results need no product");
  const auto weights = softmax_before(body.graph, kept, last, *product);
  if (!weights) return no_row("the product is not one by a softmax");
  const SoftmaxParts* softmax = &weights->softmax;
  const int64_t length = body.graph.type(softmax->weights).dim(softmax->axis).value();
  const AccessRelation relation = relation_of(last.body.graph, *product);
  const int rank = last.body.graph.type(last.body.graph.result(*product)).rank();
  if (std::ssize(relation.dims) != rank + 1 || !relation.dims.back().extent.is(length))
    return no_row("the product has other terms than the row");
  if (!takes_weights_in_order(last.body.graph, *product, weights->side, softmax->axis, rank))
    return no_row("the product takes its weights in another order");
  if (!reads_row_once(body.graph, kept, last, *product, *weights))
    return no_row("the results need more of it than the product by its weights");
  RowSteps all = {
      .length = length, .step = std::min(step, length), .is_divided = softmax->is_divided};
  std::vector<RowSteps> rows(stages.size());
  std::vector<Along> others;
  int64_t found = 0;
  for (size_t s = stages.size() - 1; s-- > 0 && found < kRowParts; ++found) {
    all.part = part_of(body.graph, *softmax, kept[s]);
    const bool has_row = all.part == RowPart::scores || all.part == RowPart::weights;
    std::vector<Along> along = stages[s].along;
    all.dim = has_row ? softmax->axis : static_cast<int>(along.size());
    if (has_row && softmax->axis < std::ssize(along) &&
        along[static_cast<size_t>(softmax->axis)].is_whole())
      along.erase(along.begin() + softmax->axis);
    if (found == 0) others = along;
    const int rank_of_rows = body.graph.type(softmax->maxima).rank();
    if (all.part == RowPart::none || along != others || std::ssize(along) != rank_of_rows)
      return no_row("stages beside it are not those of a softmax");
    for (size_t d = 0; d < along.size(); ++d)
      if (along[d].is_whole() && !body.graph.type(softmax->maxima).dim(static_cast<int>(d)).is(1))
        return no_row("a block needs several of them");
    rows[s] = all;
  }
  if (found < kRowParts) return no_row("stages of the softmax lack");
  all.part = RowPart::product;
  all.dim = rank;
  rows.back() = all;
  return rows;
}

int64_t step_of_row(const KernelBody& body, const Schedule& schedule) {
  const std::vector<Tile>& blocks = schedule.get<BlockChainFields>().block;
  const auto row = std::ranges::find(blocks, result_type(body).rank(), &Tile::dim);
  return row == blocks.end() ? 0 : row->count;
}

// ---- Stages -------------------------------------------------------------------------------------

// None: threads multiply without tensor cores.
std::optional<WarpTiles> warp_tiles(const KernelBody& body, int64_t warps) {
  const KernelFacts facts(body);
  const std::optional<MatrixNumbers> numbers = tensor_numbers(facts);
  Result<TiledProduct> product = tiled_product(facts);
  if (!numbers || !product.ok() || product->times > 1 || facts.contraction->has_holes[0] ||
      facts.contraction->has_holes[1] || std::ranges::min(product->lines) < kLeastLines)
    return std::nullopt;
  const DType dtype = body.graph.type(body.graph.result(facts.space.anchor)).dtype();
  if (type_of_sums(dtype) == dtype) return std::nullopt;  // a number would have parts
  WarpTiles tiles = {
      .product = *std::move(product), .index = facts.contraction->index, .numbers = dtype};
  const int64_t rows = in_parts(tiles.product.lines[0], WarpTiles::kLines[0]),
                columns = in_parts(tiles.product.lines[1], WarpTiles::kLines[1]);
  for (int64_t across = 1; across <= warps; across *= 2) {
    WarpTiles next = tiles;
    next.across = {across, warps / across};
    next.own = {in_parts(rows, across), in_parts(columns, next.across[1])};
    if (across == 1 || next.words() < tiles.words()) tiles = std::move(next);
  }
  if (tiles.sums() > kMostTileSums) return std::nullopt;
  return tiles;
}

Result<BlockStage> block_stage(Stage stage, const RowSteps& row, int64_t threads, bool is_last) {
  for (const Along& along : stage.along)
    if (!along.is_whole() && (along.stride != 1 || along.first != 0 || along.window != 1))
      return unsupported("a block needs other points of a stage than its own");
  BlockStage made;
  made.row = row;
  if (row.part == RowPart::scores || row.part == RowPart::weights)
    stage.body.window[static_cast<size_t>(row.dim)] = row.step;
  const Graph& graph = stage.body.graph;
  made.fold = HONE_TRY(fold_of(graph));
  for (int64_t points : stage.body.window) made.points *= points;
  if (made.fold) {
    const AccessRelation relation = relation_of(graph, *made.fold);
    const auto rank = static_cast<size_t>(graph.type(graph.result(*made.fold)).rank());
    for (size_t d = rank; d < relation.dims.size(); ++d) {
      const bool is_row = static_cast<int>(d) == row.dim && row.part != RowPart::scores;
      const int64_t terms = is_row ? row.step : relation.dims[d].extent.value();
      made.terms *= terms;
      if (d > rank && terms <= made.split_terms) continue;
      made.split = static_cast<int>(d);
      made.split_terms = terms;
    }
    const bool is_alone =
        !is_last && graph.outputs()[0] == graph.result(*made.fold) && relation.dims.size() > rank;
    if (is_contraction(graph.opcode(*made.fold)))
      made.tiles = warp_tiles(stage.body, threads / kWarpLanes);
    BlockStage by_warp = made;
    by_warp.is_by_warp = true;
    if (is_alone && !made.tiles && steps_of_stage(by_warp, threads) < steps_of_stage(made, threads))
      made.is_by_warp = true;
    if (row.part == RowPart::product && !made.tiles &&
        in_parts(made.points, threads) > kMostRowSums)
      return over_limit("a thread would have {} sums of a row's products, more than {}",
                        in_parts(made.points, threads), kMostRowSums);
  }
  made.stage = std::move(stage);
  return made;
}

// True if tensor cores multiply what this stage keeps.
bool is_multiplied(const BlockStage& by, size_t source) {
  if (!by.tiles) return false;
  const Graph& graph = by.stage.body.graph;
  return std::ranges::any_of(graph.operands(*by.fold), [&](ValueId operand) {
    const auto input = std::ranges::find(graph.inputs(), moved_from(graph, operand));
    return input != graph.inputs().end() &&
           by.stage.sources[static_cast<size_t>(input - graph.inputs().begin())] == source;
  });
}

void set_held(BlockStage& stage, bool is_multiplied) {
  const KernelBody& body = stage.stage.body;
  const DType dtype = body.graph.type(body.graph.outputs()[0]).dtype();
  std::vector<Dim> dims(body.window.begin(), body.window.end());
  if (is_multiplied && !dims.empty()) dims.back() = dims.back() + kRowsApart;
  stage.held = stored_type(body.outputs[0],
                           Type::get(is_multiplied ? dtype : type_of_sums(dtype), std::move(dims)));
  const int64_t each = bits(stage.held->dtype()) / 8;
  // For each row the largest score and the scale of its sums are there, too.
  stage.bytes =
      (stage.held->static_elements() + (stage.row.part == RowPart::maxima ? 2 * stage.points : 0)) *
      each;
}

// Each has code of its own.
int64_t points_side_by_side(const BlockStage& stage, const BlockChainFields& own) {
  if (stage.tiles) return stage.tiles->sums();
  return stage.row.part == RowPart::product ? in_parts(stage.points, block_chain_threads(own)) : 1;
}

// ---- The algorithm ------------------------------------------------------------------------------

// The dim behind those of the results is the row of a softmax.
Counts points_of_block(const ScheduleSite& site, const Schedule& so_far, int dim) {
  if (dim == site.parallel()) {
    const int64_t length = row_of_softmax(site.body).value_or(0);
    Counts counts = {.first = kLeastRowStep, .size = 0, .doubles = true};
    while (counts.size < 16 && counts.at(counts.size) < length) ++counts.size;
    return counts;
  }
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
  const Counts steps = points_of_block(site, so_far, site.parallel());
  if (steps.size > 0 && rng.chance(0.5))
    blocks.push_back({site.parallel(), steps.at(rng.between(0, steps.size - 1))});
}

// The row is behind the dims of the results, which the decision about blocks goes over.
class RowDecision : public Decision {
 public:
  std::string_view name() const override { return "row"; }
  double bound(const ScheduleSite& site) const override {
    return 1 + static_cast<double>(points_of_block(site, {}, site.parallel()).size);
  }
  bool each(const ScheduleSite& site, const Schedule& so_far,
            const ScheduleVisit& visit) const override {
    return visit(so_far) && std::ranges::all_of(with_rows(site, so_far), visit);
  }
  void draw(const ScheduleSite&, Schedule&, Rng&) const override {}  // blocks are drawn with it
  Schedules near(const ScheduleSite& site, const Schedule& schedule) const override {
    return with_rows(site, schedule);
  }
  Schedules simpler(const ScheduleSite&, const Schedule&) const override { return {}; }
  void copy(const Schedule&, Schedule&, Rng&) const override {}

 private:
  static Schedules with_rows(const ScheduleSite& site, const Schedule& schedule) {
    Schedules all;
    const Counts counts = points_of_block(site, schedule, site.parallel());
    for (int64_t i = 0; i < counts.size; ++i) {
      Schedule next = schedule;
      std::vector<Tile>& blocks = next.get<BlockChainFields>().block;
      std::erase_if(blocks, [&](const Tile& tile) { return tile.dim == site.parallel(); });
      blocks.push_back({site.parallel(), counts.at(i)});
      if (next != schedule) all.push_back(std::move(next));
    }
    return all;
  }
};

std::vector<int> chain_warps(const ScheduleSite&) { return {4, 1, 2, 8, 16}; }

const TileDecision kChainBlock("block", own_field<BlockChainFields, &BlockChainFields::block>(),
                               {points_of_block, any_points_fit, draw_points});
const NumberDecision kChainWarps("warps", own_field<BlockChainFields, &BlockChainFields::warps>(),
                                 chain_warps);
const RowDecision kChainRow;

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
                          static_cast<double>(KernelFacts(stage.stage.body).work.statements *
                                              points_side_by_side(stage, own))));
    }
    return check_block_memory(site, bytes);
  }
  bool takes(const ScheduleSite& site) const override {
    return site.target.gpu && !site.is_stage() && !site.body.in_place && all_have_points(site) &&
           site.body.graph.donations().empty() && !has_sub_byte_output(site) &&
           simplest_block_chain(site.body).ok();
  }
  std::vector<const Decision*> decisions() const override {
    return {&kChainBlock, &kChainRow, &kChainWarps};
  }
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
  if (!stage.is_by_warp) return in_parts(stage.points, threads) * stage.terms;
  const int64_t others = stage.terms / std::max<int64_t>(stage.split_terms, 1);
  return in_parts(stage.points, threads / kWarpLanes) *
         (others * in_parts(stage.split_terms, kWarpLanes) + kCombiningSteps);
}

Result<std::vector<BlockStage>> block_stages(const KernelBody& body, const Schedule& schedule) {
  const Schedule chain = HONE_TRY(as_chain(body, schedule));
  std::vector<Stage> stages = HONE_TRY(stages_of(body, chain));
  std::vector<RowSteps> rows(stages.size());
  if (const int64_t step = step_of_row(body, schedule); step > 0) {
    const std::vector<ValueId> kept =
        HONE_TRY(kept_values(body.graph, chain.get<ChainFields>().keep));
    rows = HONE_TRY(steps_of_row(body, kept, stages, step));
  }
  std::vector<BlockStage> all;
  for (size_t i = 0; i < stages.size(); ++i)
    all.push_back(HONE_TRY(block_stage(std::move(stages[i]), rows[i],
                                       block_chain_threads(schedule.get<BlockChainFields>()),
                                       i + 1 == stages.size())));
  const size_t parameters = body.graph.inputs().size();
  for (size_t i = 0; i + 1 < all.size(); ++i)
    set_held(all[i], std::ranges::any_of(all, [&](const BlockStage& by) {
               return is_multiplied(by, parameters + i);
             }));
  return all;
}

std::optional<int64_t> row_of_softmax(const KernelBody& body) {
  const Result<Schedule> simplest = simplest_block_chain(body);
  if (!simplest.ok()) return std::nullopt;
  const Schedule chain = as_chain(body, *simplest).value();
  const std::vector<ValueId> kept = kept_values(body.graph, chain.get<ChainFields>().keep).value();
  const Result<std::vector<RowSteps>> rows =
      steps_of_row(body, kept, stages_of(body, chain).value(), 1);
  return rows.ok() ? std::optional(rows->back().length) : std::nullopt;
}

const AlgorithmDef& algorithm_block_chain() {
  static const BlockChain def;
  return def;
}

}  // namespace hone
