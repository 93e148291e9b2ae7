#include "rewrite/contract.h"

#include <algorithm>
#include <optional>

#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "rewrite/constants.h"
#include "rewrite/passes.h"

// Exporters write a layer's weights as they lie and transpose them in front of the product: the
// last product of a language model reads the transposed table of its words. Folding the transpose
// would make the weights a second time. A dot says which dims of its operands it contracts, so it
// reads the weights as they are.

namespace hone {
namespace {

// The names of a dot's lists of dims, by operand.
constexpr std::string_view kBatchDims[] = {"lhs_batch", "rhs_batch"};
constexpr std::string_view kContractedDims[] = {"lhs_contract", "rhs_contract"};

class Untransposed {
 public:
  explicit Untransposed(const Graph& graph) : graph_(graph), stays_(graph.value_count()) {
    for (ValueId v : graph.outputs()) stays_[v.index] = true;
    for (NodeId n : graph.nodes())
      for (size_t i = 0; i < graph.operands(n).size(); ++i) {
        const ValueId v = graph.operands(n)[i];
        if (!v.is_none() && !(is_weight(v) && takes(n, i))) stays_[v.index] = true;
      }
  }

  bool any() const {
    for (NodeId n : graph_.nodes())
      for (size_t i = 0; i < graph_.operands(n).size(); ++i)
        if (source(n, i)) return true;
    return false;
  }

  // The constant that the node, a dot, may read in place of its operand.
  std::optional<ValueId> source(NodeId n, size_t i) const {
    const ValueId v = graph_.operands(n)[i];
    if (v.is_none() || !is_weight(v) || stays_[v.index]) return std::nullopt;
    return graph_.operands(graph_.producer(v))[0];
  }

  // The dot's dims of operand i as dims of what is transposed.
  Ints dims_of_source(NodeId n, size_t i, std::string_view list) const {
    Ints dims;
    for (int64_t dim : graph_.op(n).ints(list)) dims.push_back(permutation(n, i)[at(dim)]);
    return dims;
  }

 private:
  static size_t at(int64_t dim) { return static_cast<size_t>(dim); }

  // A transposed constant.
  bool is_weight(ValueId v) const {
    const NodeId n = graph_.producer(v);
    return permutes_dims(graph_.opcode(n)) &&
           is_constant(graph_.opcode(graph_.producer(graph_.operands(n)[0])));
  }

  const Ints& permutation(NodeId n, size_t i) const {
    return graph_.op(graph_.producer(graph_.operands(n)[i])).ints("permutation");
  }

  // The dims of operand i that are neither batch dims nor contracted.
  Ints free_dims(NodeId n, size_t i) const {
    const Ints& batch = graph_.op(n).ints(kBatchDims[i]);
    const Ints& contracted = graph_.op(n).ints(kContractedDims[i]);
    Ints free;
    for (int64_t dim = 0; dim < graph_.type(graph_.operands(n)[i]).rank(); ++dim)
      if (std::ranges::count(batch, dim) + std::ranges::count(contracted, dim) == 0)
        free.push_back(dim);
    return free;
  }

  // The product with a single row is bound by reading the weights. Reading is fastest if they lie
  // as a kernel takes them, so there the copy is worth its memory.
  bool has_one_row(NodeId n, size_t other) const {
    const Type type = graph_.type(graph_.operands(n)[other]);
    return std::ranges::all_of(free_dims(n, other),
                               [&](int64_t dim) { return type.dim(static_cast<int>(dim)).is(1); });
  }

  // The result has the free dims in the order of the operand, so that order has to stay.
  bool takes(NodeId n, size_t i) const {
    if (!is_dot(graph_.opcode(n)) || has_one_row(n, 1 - i)) return false;
    Ints free = free_dims(n, i);
    for (int64_t& dim : free) dim = permutation(n, i)[at(dim)];
    return std::ranges::is_sorted(free);
  }

  const Graph& graph_;
  std::vector<bool> stays_;  // by value: somebody needs it
};

}  // namespace

bool has_transposed_weights(const Graph& graph) { return Untransposed(graph).any(); }

Result<Graph> contract_weights_as_they_lie(const Graph& graph) {
  const Untransposed weights(graph);
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes()) {
    std::vector<ValueId> operands = copy(graph.operands(n));
    Attrs changes;
    for (size_t i = 0; i < operands.size(); ++i) {
      const std::optional<ValueId> source = weights.source(n, i);
      if (!source) continue;
      operands[i] = copy(*source);
      for (std::string_view list : {kBatchDims[i], kContractedDims[i]})
        changes.emplace_back(list, weights.dims_of_source(n, i, list));
    }
    if (changes.empty()) {
      HONE_TRY(copy.node(n));
      continue;
    }
    const Op op = Op::get(graph.opcode(n), changed_attrs(graph.op(n), changes));
    const NodeId made = HONE_TRY(copy.target().append(op, operands));
    copy.replace(graph.result(n), copy.target().result(made));
  }
  return remove_dead_code(copy.finish());
}

}  // namespace hone
