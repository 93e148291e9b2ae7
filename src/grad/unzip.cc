#include "grad/unzip.h"

#include <algorithm>
#include <optional>

#include "grad/unzip_node.h"
#include "ir/builder.h"
#include "ir/op_facts.h"

namespace hone {

namespace {

class Unzipper {
 public:
  Unzipper(const Graph& graph, const Mask& inputs, const Mask& outputs, const Mask& can_pass)
      : graph_(graph),
        inputs_(inputs),
        outputs_(outputs),
        can_pass_(can_pass),
        is_linear_(changing_values(graph, inputs)),
        splits_(graph.node_count()),
        slots_(static_cast<Slot>(graph.value_count())) {}

  Result<Unzipped> run() {
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (!outputs_[i] && is_linear_[graph_.outputs()[i].index])
        return bad_input("output {} depends on a tangent, but is not one", i);
    HONE_TRY(split_nodes());
    find_cheap_values();
    collect_needs();
    Graph primal = HONE_TRY(build_primal());
    Graph linear = HONE_TRY(build_linear());
    return Unzipped{std::move(primal), std::move(linear), passed_, stored_.size()};
  }

 private:
  // ---- What belongs where ----------------------------------------------------------------------

  bool is_linear(NodeId n) const {
    for (ValueId v : graph_.results(n))
      if (is_linear_[v.index]) return true;
    return false;
  }
  bool is_linear(Slot slot) const { return slot < is_linear_.size() && is_linear_[slot]; }

  Status split_nodes() {
    for (NodeId n : graph_.nodes()) {
      if (class_of(graph_.opcode(n)) != OpClass::control || !is_linear(n)) continue;
      Result<SplitNode> made =
          split_control(graph_, n, changing_operands(graph_, n, is_linear_), slots_);
      if (!made.ok()) return std::move(made).error().within(graph_.describe(n));
      slots_ += static_cast<Slot>(made->stored.size());
      split_types_.insert(split_types_.end(), made->stored.begin(), made->stored.end());
      splits_[n.index] = std::move(*made);
    }
    return {};
  }

  void find_cheap_values() {
    is_pure_.assign(slots_, false);
    is_repeated_.assign(slots_, false);
    for (NodeId n : graph_.nodes()) {
      const OpClass op_class = class_of(graph_.opcode(n));
      const bool is_cheap = op_class == OpClass::generator || op_class == OpClass::elementwise ||
                            op_class == OpClass::movement || is_constant(graph_.opcode(n));
      if (!is_cheap || is_linear(n)) continue;
      const ValueId made = graph_.result(n);
      is_pure_[made.index] =
          std::ranges::all_of(graph_.operands(n), [&](ValueId v) { return is_pure_[v.index]; });
      is_repeated_[made.index] =
          repeats_elements(graph_.opcode(n)) || regroups_dims(graph_.opcode(n));
    }
  }
  bool is_cheap(Slot slot) const { return is_pure_[slot] || is_repeated_[slot]; }

  std::vector<Slot> slots_of(std::span<const ValueId> values) const {
    std::vector<Slot> slots;
    for (ValueId v : values) slots.push_back(v.is_none() ? kDropped : v.index);
    return slots;
  }

  std::optional<uint32_t> input_of(Slot slot) const {
    for (uint32_t i = 0; i < graph_.inputs().size(); ++i)
      if (graph_.inputs()[i].index == slot) return i;
    return {};
  }

  // The values that the linear part reads: passed inputs and stored values, each once, in the order
  // of ids.
  void collect_needs() {
    Mask is_needed(slots_);
    for (NodeId n : graph_.nodes()) {
      if (!is_linear(n)) continue;
      const std::optional<SplitNode>& split = splits_[n.index];
      for (Slot slot : split ? split->linear.operands : slots_of(graph_.operands(n)))
        need(slot, is_needed);
    }
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (outputs_[i]) need(graph_.outputs()[i].index, is_needed);
    for (Slot slot = 0; slot < slots_; ++slot) {
      if (!is_needed[slot] || is_cheap(slot)) continue;
      const std::optional<uint32_t> input = input_of(slot);
      if (input && can_pass_[*input]) {
        passed_.push_back(*input);
      } else {
        stored_.push_back(slot);
      }
    }
    std::ranges::sort(passed_);
  }

  void need(Slot first, Mask& is_needed) const {
    std::vector<Slot> open = {first};
    while (!open.empty()) {
      const Slot slot = open.back();
      open.pop_back();
      if (slot == kDropped || is_linear(slot) || is_needed[slot]) continue;
      is_needed[slot] = true;
      if (!is_cheap(slot)) continue;
      for (ValueId v : graph_.operands(graph_.producer(ValueId{slot}))) open.push_back(v.index);
    }
  }

  // ---- The parts --------------------------------------------------------------------------------

  static std::vector<Value> at(const std::vector<Value>& values, std::span<const Slot> slots) {
    std::vector<Value> found;
    for (Slot slot : slots) found.push_back(slot == kDropped ? Value() : values[slot]);
    return found;
  }

  static void build(Builder& b, const NodePart& part, std::vector<Value>& values) {
    if (part.results.empty()) return;
    const std::vector<Value> made = b.ops(part.op, at(values, part.operands), part.regions);
    for (size_t i = 0; i < part.results.size(); ++i)
      if (part.results[i] != kDropped) values[part.results[i]] = b.ok() ? made[i] : made.front();
  }

  void copy(Builder& b, NodeId n, std::vector<Value>& values) const {
    if (is_constant(graph_.opcode(n))) {
      values[graph_.result(n).index] = b.constant(graph_.constant(n));
      return;
    }
    std::span<const GraphRef> regions = graph_.regions(n);
    NodePart whole = {.op = graph_.op(n),
                      .operands = slots_of(graph_.operands(n)),
                      .regions = {regions.begin(), regions.end()},
                      .results = {}};
    for (ValueId v : graph_.results(n)) whole.results.push_back(v.index);
    build(b, whole, values);
  }

  Result<Graph> build_primal() {
    Builder b(graph_.name());
    std::vector<Value> values(slots_);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const ValueId v = graph_.inputs()[i];
      if (!inputs_[i]) values[v.index] = b.parameter(graph_.name(v), graph_.type(v));
    }
    for (NodeId n : graph_.nodes()) {
      if (is_parameter(graph_.opcode(n))) continue;
      if (splits_[n.index]) {
        build(b, splits_[n.index]->primal, values);
      } else if (!is_linear(n)) {
        copy(b, n, values);
      }
      for (ValueId v : graph_.results(n))
        if (values[v.index] && !graph_.name(v).empty()) values[v.index].named(graph_.name(v));
    }
    std::vector<Value> outputs;
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (!outputs_[i]) outputs.push_back(values[graph_.outputs()[i].index]);
    for (Slot slot : stored_) outputs.push_back(values[slot]);
    return remove_dead_code(HONE_TRY(b.finish(outputs)));
  }

  Result<Graph> build_linear() {
    Builder b(graph_.name() + "_linear");
    std::vector<Value> values(slots_);
    for (uint32_t i : passed_) {
      const ValueId v = graph_.inputs()[i];
      values[v.index] = b.parameter(graph_.name(v), graph_.type(v));
    }
    for (Slot slot : stored_) values[slot] = b.parameter("", type_of(slot));
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const ValueId v = graph_.inputs()[i];
      if (inputs_[i]) values[v.index] = b.parameter(graph_.name(v), graph_.type(v));
    }
    for (NodeId n : graph_.nodes()) {
      if (is_parameter(graph_.opcode(n))) continue;
      const ValueId first = graph_.results(n).size() > 0 ? graph_.result(n) : ValueId::none();
      if (splits_[n.index]) {
        build(b, splits_[n.index]->linear, values);
      } else if (is_linear(n) || (!first.is_none() && remakes(first.index, values))) {
        copy(b, n, values);
      }
    }
    std::vector<Value> outputs;
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (outputs_[i]) outputs.push_back(values[graph_.outputs()[i].index]);
    return remove_dead_code(HONE_TRY(b.finish(outputs)));
  }

  // Cheap, and made of what the linear part has. Values without a reader are removed at the end.
  bool remakes(Slot slot, const std::vector<Value>& values) const {
    return is_cheap(slot) &&
           std::ranges::all_of(graph_.operands(graph_.producer(ValueId{slot})),
                               [&](ValueId v) { return static_cast<bool>(values[v.index]); });
  }

  // The place of a value, or of one that a split node stores.
  Type type_of(Slot slot) const {
    if (slot < graph_.value_count()) return graph_.type(ValueId{slot});
    return split_types_[slot - graph_.value_count()];
  }

  const Graph& graph_;
  const Mask& inputs_;
  const Mask& outputs_;
  const Mask& can_pass_;
  Mask is_linear_;
  std::vector<std::optional<SplitNode>> splits_;  // by node
  Slot slots_;
  Mask is_pure_;      // no input decides it
  Mask is_repeated_;  // it holds the elements of its operand
  std::vector<uint32_t> passed_;
  std::vector<Slot> stored_;
  std::vector<Type> split_types_;  // of the slots behind all values
};

}  // namespace

Result<Unzipped> unzip(const Graph& graph, const Mask& inputs, const Mask& outputs,
                       const Mask& can_pass) {
  return Unzipper(graph, inputs, outputs, can_pass).run();
}

}  // namespace hone
