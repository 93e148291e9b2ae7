#include <algorithm>
#include <optional>
#include <vector>

#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "rewrite/numbers.h"
#include "rewrite/passes.h"

// A mask of one row is expanded to all rows by exporters before it is made of numbers, and so each
// step is taken for each row. Steps that see the same elements again are taken in front. A number
// that steps and moves repeat is one broadcast of it: the zero point of all weights of a product.

namespace hone {
namespace {

class LateBroadcast {
 public:
  // None: the node's operands are no broadcasts of equal dims, or little is repeated.
  static std::optional<LateBroadcast> of(const GraphCopy& copy, const Graph& target, NodeId n) {
    const Graph& graph = copy.source();
    if (!is_elementwise(graph.opcode(n)) || graph.results(n).size() != 1) return std::nullopt;
    LateBroadcast late;
    if (std::ranges::all_of(graph.operands(n), [&](ValueId v) {
          return repeated_element(target, copy(v)).has_value();
        }))  // one number: the type of its dims is all that counts
      late.before_ = Type::scalar(DType::f32);
    for (ValueId v : graph.operands(n)) {
      const NodeId producer = target.producer(copy(v));
      if (repeated_element(target, copy(v))) continue;
      if (!repeats_elements(target.opcode(producer))) return std::nullopt;
      const Type before = target.type(target.operands(producer)[0]);
      const Ints& map = target.op(producer).ints("map");
      if (late.before_ &&
          !(std::ranges::equal(late.before_->dims(), before.dims()) && late.map_ == map))
        return std::nullopt;
      late.before_ = before;
      late.map_ = map;
    }
    const Type result = graph.type(graph.result(n));
    if (!late.before_ || !late.before_->is_static() || !result.is_static()) return std::nullopt;
    if (2 * late.before_->static_elements() > result.static_elements()) return std::nullopt;
    return late;
  }

  Result<ValueId> append(const GraphCopy& copy, Graph& target, NodeId n) const {
    const Graph& graph = copy.source();
    const Dims dims(before_->dims().begin(), before_->dims().end());
    std::vector<ValueId> operands;
    for (ValueId v : graph.operands(n)) {
      if (const std::optional<Tensor> number = repeated_element(target, copy(v)))
        operands.push_back(
            HONE_TRY(append_number(target, *number, Type::get(number->dtype(), dims))));
      else
        operands.push_back(target.operands(target.producer(copy(v)))[0]);
    }
    const ValueId made = HONE_TRY(append_value(target, graph.op(n), operands));
    const std::span<const Dim> result = graph.type(graph.result(n)).dims();
    const Op broadcast =
        Op::get(Opcode::broadcast, {{"dims", Dims(result.begin(), result.end())}, {"map", map_}});
    return append_value(target, broadcast, {&made, 1});
  }

 private:
  std::optional<Type> before_;  // dims before the broadcast
  Ints map_;
};

// The number that a move of a repeated one repeats; none: it is another node.
std::optional<Tensor> moved_number(const GraphCopy& copy, const Graph& target, NodeId n) {
  const Graph& graph = copy.source();
  const auto is_move = [](Opcode opcode) {
    return repeats_elements(opcode) || regroups_dims(opcode);
  };
  if (!is_move(graph.opcode(n)) || !graph.type(graph.result(n)).is_static()) return std::nullopt;
  const ValueId moved = copy(graph.operands(n)[0]);
  if (!is_move(target.opcode(target.producer(moved)))) return std::nullopt;
  return repeated_element(target, moved);
}

}  // namespace

Result<Graph> late_broadcasts(const Graph& graph) {
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes()) {
    if (const std::optional<Tensor> number = moved_number(copy, copy.target(), n)) {
      copy.replace(graph.result(n),
                   HONE_TRY(append_number(copy.target(), *number, graph.type(graph.result(n)))));
      continue;
    }
    if (const std::optional<LateBroadcast> late = LateBroadcast::of(copy, copy.target(), n)) {
      copy.replace(graph.result(n), HONE_TRY(late->append(copy, copy.target(), n)));
      continue;
    }
    HONE_TRY(copy.node(n, graph.op(n), HONE_TRY(transform_regions(graph, n, late_broadcasts))));
  }
  return remove_dead_code(copy.finish());
}

}  // namespace hone
