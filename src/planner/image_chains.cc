#include <algorithm>

#include "ir/op_facts.h"
#include "kernel/algorithms/algorithm.h"
#include "planner/chain_joiner.h"
#include "planner/steps.h"

namespace hone {
namespace {

// An image that takes less of the last cache is still there, and comes from there as fast as it is
// used. With images of 1 to 2 MB, a chain was measured to be as fast as both kernels; with 6.5 MB
// it was faster.
constexpr int64_t kPartOfLastCache = 8;

// A depthwise conv with the 1x1 conv behind it: the image stays in a cache, a few rows at a time.
class DepthwiseChains : public ChainJoiner {
 public:
  using ChainJoiner::ChainJoiner;

 private:
  bool may_take(NodeId n) const override { return !combines_windows(graph().opcode(n)); }
  bool may_pay(const Step& first, const Step& second) const override {
    return sums_over(first, /*windows=*/true) && sums_over(second, /*windows=*/false) &&
           has_sizes(first) && leaves_caches(first);
  }

  // Tells whether the only contraction is a conv that sums over windows alone, or over channels
  // alone.
  bool sums_over(const Step& step, bool windows) const {
    std::vector<NodeId> contractions;
    for (NodeId n : step.nodes)
      if (class_of(graph().opcode(n)) == OpClass::contraction) contractions.push_back(n);
    if (contractions.size() != 1 || !is_convolution(graph().opcode(contractions[0]))) return false;
    const AccessRelation relation = relation_of(graph(), contractions[0]);
    const auto channels = static_cast<size_t>(graph().type(graph().result(contractions[0])).rank());
    for (size_t d = channels; d < relation.dims.size(); ++d)
      if (!relation.dims[d].extent.is(1) && (d == channels) == windows) return false;
    return true;
  }

  bool leaves_caches(const Step& step) const {
    const auto last = static_cast<double>(target().caches.back().bytes);
    double bytes = 0;
    for (ValueId v : step.writes) bytes += static_cast<double>(graph().type(v).static_bytes());
    return kPartOfLastCache * bytes >= last;
  }
};

// A conv with the pool behind it.
class PoolChains : public ChainJoiner {
 public:
  using ChainJoiner::ChainJoiner;

 private:
  bool may_take(NodeId /*node*/) const override { return true; }
  bool may_pay(const Step& first, const Step& second) const override {
    return has_sizes(first) && has_one(first, Opcode::conv) &&
           has_one(second, Opcode::window_reduce);
  }
  bool stays_alone(const Schedule& first) const override {
    return def_of(first.algorithm()).saves_products();
  }
  // A pool saves little, of which prices may be wrong.
  double paying_part() const override { return 0.98; }

  // Tells whether that is the only op which is not elementwise.
  bool has_one(const Step& step, Opcode opcode) const {
    const auto is_other = [&](NodeId n) {
      return !repeats_elements(graph().opcode(n)) && !is_elementwise(graph().opcode(n));
    };
    return std::ranges::count_if(step.nodes, is_other) == 1 &&
           graph().opcode(*std::ranges::find_if(step.nodes, is_other)) == opcode;
  }
};

}  // namespace

Status join_image_chains(PlanningFrame& frame) {
  const Heuristics& on = frame.on();
  if (!on.image_chains) return {};
  bool is_joined = false;
  {
    PlanCost price = frame.price(frame.choosers().structure);
    if (on.depthwise_chains) is_joined = HONE_TRY(DepthwiseChains(frame, price).run());
    if (on.pool_chains && HONE_TRY(PoolChains(frame, price).run())) is_joined = true;
  }
  if (!is_joined) return {};
  // Images within a chain have no layout.
  const PlannedGraph& edited = frame.edited().planned();
  std::map<std::string, Layout> layouts = frame.plan().layout;
  for (uint32_t i = 0; i < frame.graph().value_count(); ++i)
    if (frame.planned().has_layout(ValueId{i}) && !edited.has_layout(ValueId{i}))
      frame.plan().layout.erase(frame.name(ValueId{i}));
  if (!frame.take(frame.edited_groups())) frame.plan().layout = std::move(layouts);
  return {};
}

}  // namespace hone
