#include <algorithm>
#include <optional>

#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "ir/reference/evaluate.h"
#include "rewrite/contract.h"
#include "rewrite/fold_limits.h"
#include "rewrite/passes.h"

namespace hone {
namespace {

// A folded result may be this large even if its operands are smaller; beyond, folding would make
// the program larger than the computation it saves.
constexpr int64_t kAlwaysFoldBytes = 64 * 1024;

// Work that takes longer, or does not end, is left to the program.
constexpr int64_t kMaxFoldedIterations = 10'000;
constexpr double kMaxFoldedFlops = 1e9;

bool has_loop(const Graph& graph) {
  for (NodeId n : graph.nodes()) {
    if (is_loop(graph.opcode(n))) return true;
    for (const GraphRef& region : graph.regions(n))
      if (has_loop(*region)) return true;
  }
  return false;
}

// True if evaluation ends soon: no loops inside of loops, few iterations, little arithmetic.
bool is_quick(const Graph& graph, NodeId n) {
  std::vector<const Graph*> regions;
  for (const GraphRef& region : graph.regions(n)) {
    if (is_loop(graph.opcode(n)) && has_loop(*region)) return false;
    regions.push_back(region.get());
  }
  if (is_scan(graph.opcode(n)) && !graph.operands(n).empty()) {
    Type scanned = graph.type(graph.operands(n).back());
    if (scanned.rank() > 0 && scanned.dim(0).range().high > kMaxFoldedIterations) return false;
  }
  double iterations = is_while(graph.opcode(n)) ? kMaxFoldedIterations : 1;
  std::vector<Type> operands = graph.operand_types(n);
  return iterations * flops({graph.op(n), operands, regions}, graph.result_types(n)) <=
         kMaxFoldedFlops;
}

// True for a field of blocks of bytes, as packed weights have several. A kernel reads fields where
// they lie; cut out, they would be a copy of the file.
bool is_field_of_blocks(const Graph& graph, NodeId n) {
  if (!takes_part(graph.opcode(n))) return false;
  const Type bytes = graph.type(graph.operands(n)[0]), field = graph.type(graph.result(n));
  const int last = bytes.rank() - 1;
  return bytes.dtype() == DType::u8 && last >= 2 && bytes.dim(last) != field.dim(last) &&
         bytes.static_bytes() > kAlwaysFoldBytes;
}

bool is_worth_folding(const Graph& graph, NodeId n) {
  if (graph.operands(n).empty() || has_effect(graph, n)) return false;
  int64_t in = 0, out = 0;
  for (ValueId v : graph.operands(n)) {
    if (v.is_none()) continue;
    if (!is_constant(graph.opcode(graph.producer(v)))) return false;
    in += graph.type(v).static_bytes();
  }
  for (ValueId v : graph.results(n)) {
    if (!graph.type(v).is_static()) return false;
    out += graph.type(v).static_bytes();
  }
  return out <= std::max(in, kAlwaysFoldBytes) && is_quick(graph, n) &&
         !is_field_of_blocks(graph, n);
}

// The same bytes with other dims: nothing is computed, and weights stay in their file.
std::optional<Tensor> regrouped_constant(const Graph& graph, NodeId n) {
  if (!regroups_dims(graph.opcode(n))) return std::nullopt;
  const Tensor& tensor = graph.constant(graph.producer(graph.operands(n)[0]));
  return tensor.viewed_as(graph.type(graph.result(n)));
}

int64_t operand_and_result_bytes(const Graph& graph, NodeId n) {
  int64_t bytes = 0;
  for (ValueId v : graph.operands(n))
    if (!v.is_none()) bytes += graph.type(v).static_bytes();
  for (ValueId v : graph.results(n)) bytes += graph.type(v).static_bytes();
  return bytes;
}

}  // namespace

// Rounds as `rounded` evaluation does, and so never changes what that gives.
Result<Graph> fold_constants(const Graph& graph) {
  if (has_transposed_weights(graph)) {
    const Graph as_it_lies = HONE_TRY(contract_weights_as_they_lie(graph));
    return fold_constants(as_it_lies);
  }
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes()) {
    NodeId made =
        HONE_TRY(copy.node(n, graph.op(n), HONE_TRY(transform_regions(graph, n, fold_constants))));
    if (!is_worth_folding(copy.target(), made)) continue;
    ValueRange results = copy.target().results(made);
    if (std::optional<Tensor> view = regrouped_constant(copy.target(), made)) {
      copy.target().set_name(results[0], "");
      copy.replace(graph.result(n), copy.target().add_constant(*std::move(view)));
      continue;
    }
    std::vector<ValueId> outputs;
    for (ValueId v : results) outputs.push_back(v);
    Graph alone = HONE_TRY(extract_subgraph(copy.target(), {&made, 1}, outputs));
    const EvalOptions options = {
        .numerics = Numerics::rounded,
        .max_bytes = most_bytes_to_fold(operand_and_result_bytes(copy.target(), made)),
        .max_iterations = kMaxFoldedIterations};
    Result<std::vector<Tensor>> values = evaluate(alone, {}, options);
    // A node that the reference refuses (a size over its limit) stays in the graph.
    if (!values.ok()) continue;
    for (size_t i = 0; i < values->size(); ++i) {
      copy.target().set_name(results[i], "");
      copy.replace(graph.result(n, i), copy.target().add_constant(std::move((*values)[i])));
    }
  }
  return remove_dead_code(copy.finish());
}

}  // namespace hone
