#include "planner/chain_schedules.h"

#include <algorithm>

#include "kernel/algorithms/block_chain.h"
#include "kernel/facts.h"
#include "kernel/stages.h"

namespace hone {
namespace {

// Points of a block, where threads have equal shares: more of them leave the caches.
constexpr int64_t kMostShared = 256;
// Points of one dim, by a block of a GPU's threads.
constexpr int64_t kMostBlockPoints = 64;
// Points of the row of a softmax that such a block takes at a time, at first.
constexpr int64_t kRowStep = 64;

// The dims, taken in blocks, along which blocks of several points share what one of them needs:
// the rows of a product, but not what its both sides have.
std::vector<bool> has_rows(const KernelBody& body, const Schedule& chain, KernelStore& store) {
  std::vector<bool> has_rows(static_cast<size_t>(body.graph.type(body.graph.outputs()[0]).rank()));
  const std::vector<Stage> stages = stages_of(body, chain).value();
  for (const Stage& stage : stages) {
    const auto& facts = store.facts(kernel_hash(stage.body), [&] { return stage.body; });
    const Result<Contraction>& contraction = facts->contraction;
    if (!contraction.ok()) continue;
    for (size_t d = 0; d < stage.along.size(); ++d)
      if (!stage.along[d].is_whole() && contraction->sides[0][d] != contraction->sides[1][d])
        has_rows[static_cast<size_t>(stage.along[d].dim)] = true;
  }
  return has_rows;
}

bool has(const Graph& graph, Opcode opcode) {
  for (NodeId n : graph.nodes())
    if (graph.opcode(n) == opcode) return true;
  return false;
}

void take_whole(Schedule& chain, int dim) {
  std::erase(chain.order, dim);
  std::erase_if(chain.get<ChainFields>().block, [&](const Tile& tile) { return tile.dim == dim; });
}

// The last dim of an image is taken whole: blocks are rows of it.
void take_rows_of_images(Schedule& chain, const std::vector<bool>& rows) {
  const auto has_rows = [&](int dim) { return bool{rows[static_cast<size_t>(dim)]}; };
  if (std::ranges::count_if(chain.order, has_rows) < 2) return;
  take_whole(chain, *std::ranges::max_element(chain.order, {},
                                              [&](int dim) { return has_rows(dim) ? dim : -1; }));
}

// The same for a pool, with all channels.
void take_rows_of_pools(Schedule& chain, int rank) {
  take_whole(chain, 1);
  if (rank > 3) take_whole(chain, rank - 1);
}

// The simplest chain in the order, and with the dims, that its rows ask for.
Schedule usual_chain(Schedule chain, const Graph& graph, const std::vector<bool>& rows,
                     const ScheduleChooser& chooser) {
  // Values that rows share stay in the nearest cache while the rows are taken one after another.
  if (chooser.heuristics().chain_order)
    std::ranges::sort(chain.order, {}, [&](int dim) {
      return std::pair(bool{rows[static_cast<size_t>(dim)]}, dim);
    });
  if (is_conv_with_pool(graph))
    take_rows_of_pools(chain, static_cast<int>(rows.size()));
  else if (has(graph, Opcode::conv))
    take_rows_of_images(chain, rows);
  chain.threads = chooser.threads() > 1 ? static_cast<int>(chain.order.size()) : 0;
  return chain;
}

// How many points of a dim a block may have, beside the least.
std::vector<int64_t> usual_points(int64_t extent, bool is_image, int64_t threads) {
  if (is_image) return {4, 16};
  std::vector<int64_t> sizes = {8, 32, 128};
  // As many blocks as threads, or twice as many.
  for (int64_t shares : {threads, 2 * threads})
    if (threads > 1 && extent / shares > 8 && extent / shares <= kMostShared)
      sizes.push_back(extent / shares);
  return sizes;
}

// The same of the rows of a pool, from the most on, in blocks of about one size: each has a halo.
std::vector<int64_t> usual_pooled_rows(int64_t extent) {
  std::vector<int64_t> sizes;
  for (int64_t most : {32, 16, 8, 4}) {
    const int64_t blocks = (extent + most - 1) / most;
    sizes.push_back((extent + blocks - 1) / blocks);
  }
  sizes.erase(std::ranges::unique(sizes).begin(), sizes.end());
  return sizes;
}

class ChainChooser {
 public:
  ChainChooser(const KernelFacts& facts, const Schedule& simplest, PricedKernel& price,
               ScheduleChooser& chooser)
      : facts_(facts),
        results_(body_.graph.type(body_.graph.outputs()[0])),
        rows_(has_rows(body_, simplest, chooser.known())),
        chooser_(chooser),
        on_(chooser.heuristics()),
        price_(price),
        start_(usual_chain(simplest, body_.graph, rows_, chooser)) {}

  Result<std::optional<PricedSchedule>> run() {
    if (!on_.schedules) return std::optional<PricedSchedule>();
    if (is_conv_with_pool(body_.graph))
      HONE_TRY(try_rows_of_pool());
    else
      HONE_TRY(try_blocks());
    if (best_ && best_->schedule.threads > 0) {
      Schedule alone = best_->schedule;
      alone.threads = 0;
      HONE_TRY(consider(alone));
    }
    return std::move(best_);
  }

 private:
  Status try_blocks() {
    HONE_TRY(consider(start_));
    const bool is_image = has(body_.graph, Opcode::conv);
    for (Tile& block : start_.get<ChainFields>().block) {
      if (!on_.chain_blocks || !rows_[static_cast<size_t>(block.dim)]) continue;
      const int64_t extent = results_.dim(block.dim).value(), least = block.count;
      for (int64_t points : usual_points(extent, is_image, chooser_.threads())) {
        block.count = std::min(points, extent);
        if (block.count > least) HONE_TRY(consider(start_));
      }
      block.count = least;
    }
    return {};
  }

  // Smaller and smaller blocks, as long as they cost less: they fit a nearer cache, but more of
  // what they need overlaps. Whole images, at first, do not.
  Status try_rows_of_pool() {
    const auto is_dearer = [&](const Schedule& chain) -> Result<bool> {
      const std::optional<PricedSchedule> before = best_;
      const std::optional<double> seconds = HONE_TRY(consider(chain));
      return before && seconds && *seconds > before->seconds;
    };
    if (start_.order.size() > 1) {
      Schedule images = start_;
      while (images.order.size() > 1) take_whole(images, images.order.back());
      images.threads = std::min(images.threads, 1);
      HONE_TRY(is_dearer(images));
    }
    for (Tile& block : start_.get<ChainFields>().block) {
      if (!on_.chain_blocks || block.dim == 0) continue;  // images have nothing in common
      const int64_t least = block.count;
      for (int64_t rows : usual_pooled_rows(results_.dim(block.dim).value())) {
        block.count = rows;
        if (rows > least && HONE_TRY(is_dearer(start_))) return {};
      }
      block.count = least;
    }
    HONE_TRY(is_dearer(start_));
    return {};
  }

  // With the best schedule of each stage. None: the chain is not legal.
  Result<std::optional<double>> consider(Schedule chain) {
    const Result<std::vector<Stage>> stages = stages_of(body_, chain);
    if (!stages.ok()) return std::optional<double>();  // a block may need more than there is
    ChainFields& own = chain.get<ChainFields>();
    own.stages.clear();
    for (const Stage& stage : *stages) {
      const PricedSchedule* best_of_stage = HONE_TRY(chooser_.choose(stage.body));
      own.stages.push_back(best_of_stage->schedule);
    }
    if (!check_schedule(body_, facts_, chain, chooser_.target()).ok())
      return std::optional<double>();
    const double seconds = price_.seconds(chain);
    if (!best_ || seconds < best_->seconds) best_ = {std::move(chain), seconds};
    return std::optional(seconds);
  }

  const KernelFacts& facts_;
  const KernelBody& body_ = facts_.body;
  const Type results_;
  const std::vector<bool> rows_;
  ScheduleChooser& chooser_;
  const Heuristics& on_;
  PricedKernel& price_;
  Schedule start_;
  std::optional<PricedSchedule> best_;
};

bool has_row(const Schedule& schedule, int row) {
  const std::vector<Tile>& block = schedule.get<BlockChainFields>().block;
  return !block.empty() && block.back().dim == row;
}

// The cheapest chain by blocks of a GPU's threads, with more and more points of one dim. None: no
// block has memory for it.
std::optional<PricedSchedule> cheapest_block_chain(const KernelFacts& facts, PricedKernel& price,
                                                   const ScheduleChooser& chooser) {
  const Result<Schedule> simplest = simplest_block_chain(facts.body);
  if (!simplest.ok()) return std::nullopt;
  std::optional<PricedSchedule> best;
  const auto consider = [&](const Schedule& schedule) {
    const double seconds = price.seconds(schedule);
    if (best && seconds >= best->seconds) return;
    if (check_schedule(facts.body, facts, schedule, chooser.target()).ok())
      best = {schedule, seconds};
  };
  const Type results = facts.body.graph.type(facts.body.graph.outputs()[0]);
  // The row of a softmax is whole, or taken in steps.
  const int row = results.rank();
  const auto consider_blocks = [&](int64_t step) {
    for (int warps : {1, 2, 4, 8, 16}) {
      if (step > 0 && (warps == 1 || warps == 16)) continue;
      Schedule next = *simplest;
      BlockChainFields& own = next.get<BlockChainFields>();
      own.warps = warps;
      const auto consider_block = [&](std::vector<Tile> block) {
        if (step > 0) block.push_back({row, step});
        own.block = std::move(block);
        consider(next);
      };
      consider_block({});
      for (int dim : next.order)
        for (int64_t points = 2;
             points <= kMostBlockPoints && points < 2 * results.dim(dim).value(); points *= 2)
          consider_block({{dim, points}});
    }
  };
  consider_blocks(0);
  const int64_t length = row_of_softmax(facts.body).value_or(0);
  if (length > kRowStep) consider_blocks(kRowStep);
  if (!best || !has_row(best->schedule, row)) return best;
  for (int64_t step : {kRowStep / 2, 2 * kRowStep, 4 * kRowStep}) {
    Schedule next = best->schedule;
    next.get<BlockChainFields>().block.back().count = step;
    if (step < length) consider(next);
  }
  return best;
}

}  // namespace

bool is_conv_with_pool(const Graph& graph) {
  return has(graph, Opcode::conv) && has(graph, Opcode::window_reduce);
}

Result<std::optional<PricedSchedule>> cheapest_chain(
    const std::shared_ptr<const KernelFacts>& facts, PricedKernel& price,
    ScheduleChooser& chooser) {
  const Result<Schedule> simplest = simplest_chain(*facts);
  if (!simplest.ok()) return std::optional<PricedSchedule>();
  std::optional<PricedSchedule> best =
      HONE_TRY(ChainChooser(*facts, *simplest, price, chooser).run());
  if (chooser.target().gpu && chooser.heuristics().schedules) {
    std::optional<PricedSchedule> by_blocks = cheapest_block_chain(*facts, price, chooser);
    if (by_blocks && (!best || by_blocks->seconds < best->seconds)) best = std::move(by_blocks);
  }
  if (!best) best = {*simplest, price.seconds(*simplest)};
  return best;
}

}  // namespace hone
