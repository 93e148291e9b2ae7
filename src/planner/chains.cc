#include <algorithm>

#include "ir/op_facts.h"
#include "planner/chain_joiner.h"
#include "planner/steps.h"

namespace hone {
namespace {

// Attention, cells of recurrent nets: a dot and what is around it. Convs stay, as their layouts,
// which come later, matter more.
class ProductChains : public ChainJoiner {
 public:
  using ChainJoiner::ChainJoiner;

 private:
  bool may_take(NodeId n) const override {
    return !is_convolution(graph().opcode(n)) && !combines_windows(graph().opcode(n));
  }
  bool may_pay(const Step& first, const Step& second) const override {
    return has_dot(first) || has_dot(second);
  }
  bool has_dot(const Step& step) const {
    return std::ranges::any_of(step.nodes, [&](NodeId n) { return is_dot(graph().opcode(n)); });
  }
};

}  // namespace

Status join_chains(PlanningFrame& frame) {
  if (!frame.on().chains) return {};
  bool is_joined = false;
  {
    PlanCost price = frame.price(frame.choosers().structure);
    if (frame.on().fuse_operands) is_joined = HONE_TRY(join_packed_weights(frame, price));
    if (HONE_TRY(ProductChains(frame, price).run())) is_joined = true;
  }
  // Joins may not fit what is said to be in place: then all groups stay as they were.
  if (is_joined) frame.take(frame.edited_groups());
  return {};
}

}  // namespace hone
