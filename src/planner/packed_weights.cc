#include <algorithm>

#include "ir/op_facts.h"
#include "planner/chain_joiner.h"
#include "planner/steps.h"

namespace hone {
namespace {

// Weights that are stored in fewer bits join the product that alone reads them: it unpacks them in
// registers, so the wide weights are never in memory.
class PackedWeights : public ChainJoiner {
 public:
  using ChainJoiner::ChainJoiner;

 private:
  bool may_take(NodeId n) const override { return !combines_windows(graph().opcode(n)); }
  bool may_pay(const Step& first, const Step& second) const override {
    return has_sizes(first) && is_unpacking(first) && reads_as_weights(second, first);
  }
  bool may_be_one(const KernelBody& /*body*/) const override { return true; }
  // The price of a kernel does not see that wide weights take the place of what others keep in
  // caches, and memory.
  double paying_part() const override { return 1.3; }

  // Moves and elementwise ops on constants that take less memory than what is made of them, and on
  // places in them.
  bool is_unpacking(const Step& step) const {
    int64_t read = 0, written = 0;
    for (ValueId v : step.reads) {
      if (!is_constant(graph().opcode(graph().producer(v)))) return false;
      read += graph().type(v).static_bytes();
    }
    for (ValueId v : step.writes) written += graph().type(v).static_bytes();
    const auto is_simple = [&](NodeId n) {
      const Opcode opcode = graph().opcode(n);
      return is_elementwise(opcode) || only_moves(opcode) || is_constant(opcode) ||
             opcode == Opcode::iota;
    };
    return !step.reads.empty() && read < written && std::ranges::all_of(step.nodes, is_simple);
  }

  // True if the only contraction of the kernel takes them as its second operand, as they are or
  // moved.
  bool reads_as_weights(const Step& product, const Step& weights) const {
    int contractions = 0;
    bool reads = false;
    for (NodeId n : product.nodes) {
      if (class_of(graph().opcode(n)) != OpClass::contraction) continue;
      ++contractions;
      if (!is_dot(graph().opcode(n))) return false;
      ValueId v = graph().operands(n)[1];
      while (std::ranges::count(product.nodes, graph().producer(v)) > 0 &&
             only_moves(graph().opcode(graph().producer(v))))
        v = graph().operands(graph().producer(v))[0];
      reads = reads || std::ranges::count(weights.writes, v) > 0;
    }
    return contractions == 1 && reads;
  }
};

}  // namespace

Result<bool> join_packed_weights(PlanningFrame& frame, PlanCost& price) {
  return PackedWeights(frame, price).run();
}

}  // namespace hone
