#include "planner/chains.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "ir/op_def.h"
#include "kernel/facts.h"
#include "kernel/stages.h"

namespace hone {
namespace {

// One that costs the same, like a single block, saves nothing and ties more down.
constexpr double kLess = 0.999;
// A pool saves little, of which prices may be wrong.
constexpr double kLessOfPool = 0.98;
// An image that takes less of the last cache is still there, and comes from there as fast as it is
// used: measured with images of 1 to 2 MB, a chain was as fast as both kernels, with 6.5 MB faster.
constexpr int64_t kPartOfLastCache = 8;
// Points of a block, where threads have equal shares: more of them leave the caches.
constexpr int64_t kMostShared = 256;

// The dims, taken in blocks, along which blocks of several points share what one of them needs:
// the rows of a product, but not what its both sides have.
std::vector<bool> has_rows(const KernelBody& body, const Schedule& chain) {
  std::vector<bool> has_rows(static_cast<size_t>(body.graph.type(body.graph.outputs()[0]).rank()));
  const std::vector<Stage> stages = stages_of(body, chain).value();
  for (const Stage& stage : stages) {
    const Result<Contraction> contraction = KernelFacts(stage.body).contraction;
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

// Of an image the last dim is taken whole: blocks are rows of it.
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
  // What rows share stays in the nearest cache while they are taken one after another.
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
  ChainChooser(const std::shared_ptr<const KernelFacts>& facts, const Schedule& simplest,
               ScheduleChooser& chooser)
      : body_(facts->body),
        results_(body_.graph.type(body_.graph.outputs()[0])),
        rows_(has_rows(body_, simplest)),
        chooser_(chooser),
        on_(chooser.heuristics()),
        price_(chooser.cost().kernel(facts, chooser.threads())),
        start_(usual_chain(simplest, body_.graph, rows_, chooser)) {}

  Result<std::optional<PricedSchedule>> run() {
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
  double seconds(const Schedule& chain) { return price_->seconds(chain); }

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
    if (!check_schedule(body_, chain, chooser_.target()).ok()) return std::optional<double>();
    const double seconds = price_->seconds(chain);
    if (!best_ || seconds < best_->seconds) best_ = {std::move(chain), seconds};
    return std::optional(seconds);
  }

  const KernelBody& body_;
  const Type results_;
  const std::vector<bool> rows_;
  ScheduleChooser& chooser_;
  const Heuristics& on_;
  const std::unique_ptr<PricedKernel> price_;
  Schedule start_;
  std::optional<PricedSchedule> best_;
};

}  // namespace

bool is_conv_with_pool(const Graph& graph) {
  return has(graph, Opcode::conv) && has(graph, Opcode::window_reduce);
}

Result<std::optional<PricedSchedule>> cheapest_chain(std::shared_ptr<const KernelFacts> facts,
                                                     ScheduleChooser& chooser) {
  const Result<Schedule> simplest = simplest_chain(facts->body);
  if (!simplest.ok()) return std::optional<PricedSchedule>();
  ChainChooser chains(facts, *simplest, chooser);
  std::optional<PricedSchedule> best = HONE_TRY(chains.run());
  if (!best) best = {*simplest, chains.seconds(*simplest)};
  return best;
}

namespace {

// What a chain is made of.
enum class Of : uint8_t { products, images, pools };

class ChainJoiner {
 public:
  ChainJoiner(FrameEditor& frame, const FusionFreedom& freedom, PlanCost& price, Of of)
      : of_(of),
        frame_(frame),
        planned_(frame.planned()),
        graph_(frame.view()),
        users_(frame.users()),
        freedom_(freedom),
        price_(price) {}

  Result<bool> run() {
    // Steps change their numbers; a kernel keeps its last node.
    std::vector<NodeId> last;
    for (const Step& step : planned_.steps)
      if (may_be_in_chain(step)) last.push_back(step.nodes.back());
    std::ranges::sort(last);
    bool is_joined = false;
    for (NodeId n : last)
      while (HONE_TRY(take_one_before(n))) is_joined = true;
    return is_joined;
  }

 private:
  // The kernel with this last node takes one that it reads, if that pays.
  Result<bool> take_one_before(NodeId last) {
    // A join that is undone may leave steps elsewhere.
    const std::vector<NodeId> nodes = planned_.steps[planned_.step_of[last.index]].nodes;
    if (nodes.back() != last) return false;  // another one has taken it
    for (NodeId n : nodes) {
      for (ValueId v : graph_.operands(n)) {
        if (v.is_none()) continue;
        const uint32_t before = planned_.step_of[graph_.producer(v).index];
        if (before != kNoStep && before != planned_.step_of[last.index] &&
            HONE_TRY(joins(before, planned_.step_of[last.index])))
          return true;
      }
    }
    return false;
  }

  bool may_be_in_chain(const Step& step) const {
    return step.is_kernel && std::ranges::all_of(step.nodes, [&](NodeId n) {
             const Opcode opcode = graph_.opcode(n);
             return freedom_.is_free[n.index] && is_fusible(opcode) &&
                    (of_ != Of::products || opcode != Opcode::conv) &&
                    (of_ == Of::pools || opcode != Opcode::window_reduce);
           });
  }

  // Whether a chain of the first kernel and the one that reads it may pay at all.
  bool may_pay(const Step& first, const Step& second) const {
    if (of_ == Of::products) return has_dot(first) || has_dot(second);
    if (of_ == Of::pools)
      return has_sizes(first) && has_one(first, Opcode::conv) &&
             has_one(second, Opcode::window_reduce);
    return sums_over(first, /*windows=*/true) && sums_over(second, /*windows=*/false) &&
           has_sizes(first) && leaves_caches(first);
  }

  // Whether that is the only op which is not elementwise.
  bool has_one(const Step& step, Opcode opcode) const {
    const auto is_other = [&](NodeId n) {
      return graph_.opcode(n) != Opcode::broadcast && !is_elementwise(graph_.opcode(n));
    };
    return std::ranges::count_if(step.nodes, is_other) == 1 &&
           graph_.opcode(*std::ranges::find_if(step.nodes, is_other)) == opcode;
  }

  // A chain needs sizes that are numbers.
  bool has_sizes(const Step& step) const {
    return std::ranges::all_of(step.writes, [&](ValueId v) { return graph_.type(v).is_static(); });
  }

  bool leaves_caches(const Step& step) const {
    const auto last = static_cast<double>(frame_.whole().target().caches.back().bytes);
    double bytes = 0;
    for (ValueId v : step.writes) bytes += static_cast<double>(graph_.type(v).static_bytes());
    return kPartOfLastCache * bytes >= last;
  }

  // Whether the only contraction is a conv that sums over windows alone, or over channels alone.
  bool sums_over(const Step& step, bool windows) const {
    std::vector<NodeId> contractions;
    for (NodeId n : step.nodes)
      if (class_of(graph_.opcode(n)) == OpClass::contraction) contractions.push_back(n);
    if (contractions.size() != 1 || graph_.opcode(contractions[0]) != Opcode::conv) return false;
    const AccessRelation relation = relation_of(graph_, contractions[0]);
    const auto channels = static_cast<size_t>(graph_.type(graph_.result(contractions[0])).rank());
    for (size_t d = channels; d < relation.dims.size(); ++d)
      if (!relation.dims[d].extent.is(1) && (d == channels) == windows) return false;
    return true;
  }

  Result<bool> joins(uint32_t before, uint32_t after) {
    const Step &a = planned_.steps[before], &b = planned_.steps[after];
    if (!may_be_in_chain(a) || !reads_alone(b, a) || !may_pay(a, b)) return false;
    std::vector<NodeId> both;
    std::ranges::merge(a.nodes, b.nodes, std::back_inserter(both));
    const auto [pays, is_new] = pays_.try_emplace(
        group_shape(graph_, both, ports_of(graph_, users_, both), planned_.layout));
    if (!is_new && !pays->second) return false;
    const double apart =
        HONE_TRY(price_.seconds(frame_, before)) + HONE_TRY(price_.seconds(frame_, after));
    // Stages have no transforms, which multiply four times as often.
    if (of_ == Of::pools && is_new &&
        HONE_TRY(price_.schedule(frame_, before)).algorithm() == Algorithm::winograd)
      return false;
    const Undo as_before = frame_.whole().now();
    if (!HONE_TRY(join(before, after))) return false;
    if (!is_new) return true;
    const uint32_t joined = planned_.step_of[both[0].index];
    pays->second =
        simplest_chain(frame_.body(joined)).ok() &&
        HONE_TRY(price_.seconds(frame_, joined)) < (of_ == Of::pools ? kLessOfPool : kLess) * apart;
    if (!pays->second) frame_.whole().undo(as_before);
    return pays->second;
  }

  // Whether they could be joined. What one passes to the other has no layout of its own then.
  Result<bool> join(uint32_t before, uint32_t after) {
    const Undo as_before = frame_.whole().now();
    for (ValueId v : planned_.steps[before].writes)
      if (of_ != Of::products) HONE_TRY(frame_.set_layout(v, std::nullopt));
    const bool is_joined = frame_.join(before, after).ok();
    if (!is_joined) frame_.whole().undo(as_before);
    return is_joined;
  }

  bool has_dot(const Step& step) const {
    return std::ranges::any_of(step.nodes,
                               [&](NodeId n) { return graph_.opcode(n) == Opcode::dot; });
  }

  // Whether nothing else needs what the kernel computes.
  bool reads_alone(const Step& reader, const Step& step) const {
    for (NodeId n : step.nodes) {
      for (ValueId v : graph_.results(n)) {
        if (users_.is_output(v) || freedom_.has_memory[v.index]) return false;
        for (NodeId user : users_.of(v)) {
          const uint32_t of_user = planned_.step_of[user.index];
          if (of_user == kNoStep) return false;  // a view
          const Step& other = planned_.steps[of_user];
          if (&other != &reader && &other != &step) return false;
        }
      }
    }
    return true;
  }

  const Of of_;
  FrameEditor& frame_;
  const PlannedGraph& planned_;
  const GraphView graph_;
  const UsersView users_;
  const FusionFreedom& freedom_;
  PlanCost& price_;
  std::unordered_map<uint64_t, bool> pays_;  // by the shape of both as one kernel
};

}  // namespace

Result<bool> join_chains(FrameEditor& frame, const FusionFreedom& freedom, PlanCost& price) {
  return ChainJoiner(frame, freedom, price, Of::products).run();
}

Result<bool> join_image_chains(FrameEditor& frame, const FusionFreedom& freedom, PlanCost& price) {
  return ChainJoiner(frame, freedom, price, Of::images).run();
}

Result<bool> join_pool_chains(FrameEditor& frame, const FusionFreedom& freedom, PlanCost& price) {
  return ChainJoiner(frame, freedom, price, Of::pools).run();
}

}  // namespace hone
