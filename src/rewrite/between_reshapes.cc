#include <algorithm>
#include <vector>

#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "rewrite/numbers.h"
#include "rewrite/passes.h"

// Exporters give a value other dims for one sum, and take them back: scores of windows get a dim of
// images, so that a mask can be added. Between two products such reshapes keep both apart. Ops
// between a reshape and its inverse are computed in the dims around them.

namespace hone {
namespace {

constexpr int kMostBetween = 8;  // between both reshapes

std::vector<Dim> without_ones(std::span<const Dim> dims) {
  std::vector<Dim> others;
  std::ranges::copy_if(dims, std::back_inserter(others), [](Dim d) { return !d.is(1); });
  return others;
}

class BetweenReshapes {
 public:
  explicit BetweenReshapes(const Graph& graph)
      : graph_(graph), copy_(graph), readers_(count_readers(graph)) {}

  Result<Graph> run() {
    for (NodeId n : graph_.nodes()) {
      if (regroups_dims(graph_.opcode(n)) && is_inverse(n)) {
        copy_.replace(graph_.result(n), HONE_TRY(in_dims(graph_.operands(n)[0])));
        continue;
      }
      HONE_TRY(copy_.node(n, graph_.op(n),
                          HONE_TRY(transform_regions(graph_, n, compute_between_reshapes))));
    }
    return remove_dead_code(copy_.finish());
  }

 private:
  // True if all that the reshape reads can be computed in the dims of its result, where some of it
  // comes from.
  bool is_inverse(NodeId n) {
    const Type type = graph_.type(graph_.result(n));
    if (!type.is_static()) return false;
    dims_ = Dims(type.dims().begin(), type.dims().end());
    steps_ = 0;
    has_origin_ = false;
    return can_be_in_dims(graph_.operands(n)[0]) && has_origin_;
  }

  bool is_origin(NodeId n) const {
    return regroups_dims(graph_.opcode(n)) &&
           std::ranges::equal(graph_.type(graph_.operands(n)[0]).dims(), dims_);
  }

  bool can_be_in_dims(ValueId v) {
    const NodeId n = graph_.producer(v);
    if (is_origin(n)) return has_origin_ = true;
    if (repeats_elements(graph_.opcode(n)) || repeated_element(graph_, v)) return true;
    if (!is_elementwise(graph_.opcode(n)) || readers_[v.index] != 1 || ++steps_ > kMostBetween)
      return false;
    return std::ranges::all_of(graph_.operands(n),
                               [&](ValueId operand) { return can_be_in_dims(operand); });
  }

  // The value, which can be, in the dims around.
  Result<ValueId> in_dims(ValueId v) {
    const NodeId n = graph_.producer(v);
    if (is_origin(n)) return copy_(graph_.operands(n)[0]);
    const Type type = Type::get(graph_.type(v).dtype(), dims_);
    if (const std::optional<Tensor> number = repeated_element(graph_, v))
      return append_number(copy_.target(), *number, type);
    if (repeats_elements(graph_.opcode(n))) return repeated_in_dims(n);
    std::vector<ValueId> operands;
    for (ValueId operand : graph_.operands(n)) operands.push_back(HONE_TRY(in_dims(operand)));
    return append_value(copy_.target(), graph_.op(n), operands);
  }

  Result<ValueId> reshaped(ValueId v, const Dims& dims) {
    return append_value(copy_.target(), Op::get(Opcode::reshape, {{"dims", dims}}), {&v, 1});
  }

  // A broadcast: one of other dims where dims of size 1 alone come and go.
  Result<ValueId> repeated_in_dims(NodeId n) {
    const std::span<const Dim> before = graph_.type(graph_.result(n)).dims();
    if (without_ones(before) != without_ones(dims_))
      return reshaped(copy_(graph_.result(n)), dims_);
    Ints places;  // in dims_, of dims that are not 1
    for (size_t i = 0; i < dims_.size(); ++i)
      if (!dims_[i].is(1)) places.push_back(static_cast<int64_t>(i));
    const Ints& map = graph_.op(n).ints("map");
    const std::span<const Dim> source = graph_.type(graph_.operands(n)[0]).dims();
    Ints new_map;
    for (size_t i = 0; i < source.size(); ++i) {
      if (source[i].is(1)) continue;
      const auto end = before.begin() + map[i];
      new_map.push_back(places[static_cast<size_t>(
          std::count_if(before.begin(), end, [](Dim d) { return !d.is(1); }))]);
    }
    const std::vector<Dim> kept = without_ones(source);
    ValueId x = copy_(graph_.operands(n)[0]);
    if (kept.size() != source.size()) x = HONE_TRY(reshaped(x, Dims(kept.begin(), kept.end())));
    const Op broadcast = Op::get(Opcode::broadcast, {{"dims", dims_}, {"map", new_map}});
    return append_value(copy_.target(), broadcast, {&x, 1});
  }

  const Graph& graph_;
  GraphCopy copy_;
  const std::vector<int> readers_;
  Dims dims_;  // of the reshape at hand
  int steps_ = 0;
  bool has_origin_ = false;
};

}  // namespace

Result<Graph> compute_between_reshapes(const Graph& graph) { return BetweenReshapes(graph).run(); }

}  // namespace hone
