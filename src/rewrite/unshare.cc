#include <algorithm>

#include "ir/barrier.h"
#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "rewrite/passes.h"

namespace hone {
namespace {

constexpr int kMaxRepeated = 4;               // nodes of a chain
constexpr int64_t kMaxRepeatedElements = 64;  // that are computed again

// Gives each reader of broadcasts, iotas, barriers and small tables nodes of its own: kernels then
// compute them where they are read, and nothing is written to memory.
class Unsharing {
 public:
  explicit Unsharing(const Graph& graph)
      : graph_(graph), copy_(graph), is_read_(graph.value_count()) {}

  Result<Graph> run() {
    for (NodeId n : graph_.nodes()) {
      for (ValueId v : graph_.operands(n)) HONE_TRY(repeat(v));
      HONE_TRY(
          copy_.node(n, graph_.op(n), HONE_TRY(transform_regions(graph_, n, unshare_sources))));
      for (ValueId v : graph_.operands(n))
        if (!v.is_none()) is_read_[v.index] = true;
      for (; !replaced_.empty(); replaced_.pop_back())
        copy_.replace(replaced_.back().first, replaced_.back().second);
    }
    return copy_.finish();
  }

 private:
  // Lets another node stand for a value that has been read, for the reader at hand.
  Status repeat(ValueId v, int depth = 0) {
    const auto is_replaced = [&](const auto& entry) { return entry.first == v; };
    if (v.is_none() || !is_read_[v.index] || depth == kMaxRepeated) return {};
    if (std::ranges::any_of(replaced_, is_replaced)) return {};
    const NodeId n = graph_.producer(v);
    if (!is_source(n)) return {};
    for (ValueId operand : graph_.operands(n)) HONE_TRY(repeat(operand, depth + 1));
    const NodeId again = HONE_TRY(copy_.target().append(graph_.op(n), copy_(graph_.operands(n))));
    replaced_.emplace_back(v, copy_(v));
    copy_.replace(v, copy_.target().result(again));
    copy_.target().set_name(copy_.target().result(again), "");
    return {};
  }

  bool is_source(NodeId n) const {
    return repeats_elements(graph_.opcode(n)) || is_barrier(graph_.op(n)) || is_small_table(n, 0);
  }

  // True for a few numbers that their places alone decide, as the shifts of packed weights are.
  bool is_small_table(NodeId n, int depth) const {
    const Opcode opcode = graph_.opcode(n);
    if (opcode == Opcode::iota) return true;
    if (is_constant(opcode)) return depth > 0 && graph_.constant(n).elements() == 1;
    if (depth == kMaxRepeated) return false;
    if (!is_elementwise(opcode) && !repeats_elements(opcode) && !regroups_dims(opcode))
      return false;
    const Type type = graph_.type(graph_.result(n));
    return type.is_static() && type.static_elements() <= kMaxRepeatedElements &&
           std::ranges::all_of(graph_.operands(n), [&](ValueId v) {
             return !v.is_none() && is_small_table(graph_.producer(v), depth + 1);
           });
  }

  const Graph& graph_;
  GraphCopy copy_;
  std::vector<bool> is_read_;                          // by value, by a node before the one at hand
  std::vector<std::pair<ValueId, ValueId>> replaced_;  // and what stood for them
};

}  // namespace

Result<Graph> unshare_sources(const Graph& graph) { return Unsharing(graph).run(); }

}  // namespace hone
