#include <algorithm>

#include "ir/op_facts.h"
#include "kernel/words.h"
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
    if (multiplies_words_by_weights(first) && reduces(second)) return false;
    return has_dot(first) || has_dot(second);
  }
  // A gemm takes words of bytes and leaves sums of groups. The nest that would sum up these, too,
  // multiplies byte by byte, and its price takes that for less work than it is.
  bool multiplies_words_by_weights(const Step& step) const {
    return std::ranges::any_of(step.nodes, [&](NodeId n) {
      if (!is_dot(graph().opcode(n))) return false;
      const auto words = word_products(graph(), n, relation_of(graph(), n));
      if (!words || words->products != Products::quads) return false;
      NodeId maker = graph().producer(graph().operands(n)[1]);
      while (std::ranges::count(step.nodes, maker) > 0 && !graph().operands(maker).empty())
        maker = graph().producer(graph().operands(maker)[0]);
      return is_constant(graph().opcode(maker));
    });
  }
  bool reduces(const Step& step) const {
    return std::ranges::any_of(step.nodes,
                               [&](NodeId n) { return combines_by_kind(graph().opcode(n)); });
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
