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

bool has_conv(const Graph& graph) {
  for (NodeId n : graph.nodes())
    if (graph.opcode(n) == Opcode::conv) return true;
  return false;
}

// Of an image the last dim is taken whole: blocks are rows of it.
void take_rows_of_images(Schedule& chain, const std::vector<bool>& rows) {
  const auto has_rows = [&](int dim) { return bool{rows[static_cast<size_t>(dim)]}; };
  if (std::ranges::count_if(chain.order, has_rows) < 2) return;
  const int last =
      *std::ranges::max_element(chain.order, {}, [&](int dim) { return has_rows(dim) ? dim : -1; });
  std::erase(chain.order, last);
  std::erase_if(chain.get<ChainFields>().block, [&](const Tile& tile) { return tile.dim == last; });
}

// How many points of a dim a block may have, beside a single one.
std::vector<int64_t> usual_points(int64_t extent, bool is_image, int64_t threads) {
  if (is_image) return {4, 16};
  std::vector<int64_t> sizes = {8, 32, 128};
  // As many blocks as threads, or twice as many.
  for (int64_t shares : {threads, 2 * threads})
    if (threads > 1 && extent / shares > 8 && extent / shares <= kMostShared)
      sizes.push_back(extent / shares);
  return sizes;
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
    if (!stages.ok()) return {};  // a block may need more than there is
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
  const bool is_image = has_conv(body.graph);
  if (is_image) take_rows_of_images(start, rows);
  start.threads = chooser.threads() > 1 ? static_cast<int>(start.order.size()) : 0;
  HONE_TRY(consider(start));
  for (Tile& block : start.get<ChainFields>().block) {
    if (!chooser.heuristics().chain_blocks || !rows[static_cast<size_t>(block.dim)]) continue;
    const int64_t extent = body.graph.type(body.graph.outputs()[0]).dim(block.dim).value();
    for (int64_t points : usual_points(extent, is_image, chooser.threads())) {
      block.count = std::min(points, extent);
      HONE_TRY(consider(start));
    }
    block.count = 1;
  }
  if (best && best->schedule.threads > 0) {
    Schedule alone = best->schedule;
    alone.threads = 0;
    HONE_TRY(consider(alone));
  }
  if (!best) best = {*simplest, price->seconds(*simplest)};
  return best;
}

namespace {

class ChainJoiner {
 public:
  ChainJoiner(FrameEditor& frame, const FusionFreedom& freedom, PlanCost& price, bool of_images)
      : of_images_(of_images),
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
                    (of_images_ || opcode != Opcode::conv) && opcode != Opcode::window_reduce;
           });
  }

  // Whether a chain of the first kernel and the one that reads it may pay at all.
  bool may_pay(const Step& first, const Step& second) const {
    if (!of_images_) return has_dot(first) || has_dot(second);
    return sums_over(first, /*windows=*/true) && sums_over(second, /*windows=*/false) &&
           leaves_caches(first);
  }

  bool leaves_caches(const Step& step) const {
    const auto last = static_cast<double>(frame_.whole().target().caches.back().bytes);
    double bytes = 0;
    for (ValueId v : step.writes) {
      if (!graph_.type(v).is_static()) return false;  // a chain needs sizes that are numbers
      bytes += static_cast<double>(graph_.type(v).static_bytes());
    }
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
    const Undo as_before = frame_.whole().now();
    if (!HONE_TRY(join(before, after))) return false;
    if (!is_new) return true;
    const uint32_t joined = planned_.step_of[both[0].index];
    pays->second =
        simplest_chain(frame_.body(joined)).ok() &&
        HONE_TRY(price_.seconds(frame_, joined)) < kLess * apart;
    if (!pays->second) frame_.whole().undo(as_before);
    return pays->second;
  }

  // Whether they could be joined. What one passes to the other has no layout of its own then.
  Result<bool> join(uint32_t before, uint32_t after) {
    const Undo as_before = frame_.whole().now();
    for (ValueId v : planned_.steps[before].writes)
      if (of_images_) HONE_TRY(frame_.set_layout(v, std::nullopt));
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

  const bool of_images_;
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
  return ChainJoiner(frame, freedom, price, /*of_images=*/false).run();
}

Result<bool> join_image_chains(FrameEditor& frame, const FusionFreedom& freedom, PlanCost& price) {
  return ChainJoiner(frame, freedom, price, /*of_images=*/true).run();
}

}  // namespace hone
