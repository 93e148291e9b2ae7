#include <array>
#include <unordered_map>

#include "ir/graph_copy.h"
#include "rewrite/passes.h"
#include "rewrite/raise/guess.h"

// Restores composites from their spelled-out forms. Guess, then verify: rules look at the normal
// form of a value, propose a composite, and only a proposal whose real expansion has that very form
// is taken. So a bad guess costs time, never correctness. What is spelled out stays where others
// use it; dead code is removed at the end.

namespace hone {
namespace {

// Rules by anchor, in the order of preference.
const std::vector<RaiseRule>& rules_at(Opcode anchor) {
  using Table = std::array<std::vector<RaiseRule>, kOpcodeCount>;
  static const Table& table = *[] {
    auto* made = new Table();
    for (auto rules : {attention_rules(), recurrent_rules(), norm_rules(), resize_rules(),
                       quantize_rules(), activation_rules(), tensor_rules()}) {
      for (const RaiseRule& rule : rules) (*made)[static_cast<size_t>(rule.anchor)].push_back(rule);
    }
    return made;
  }();
  return table[static_cast<size_t>(anchor)];
}

class Raiser {
 public:
  explicit Raiser(const Graph& graph) : graph_(graph), copy_(graph) {
    form_of_ = forms_.of_graph(graph);
    first_value_.resize(forms_.size());
    for (uint32_t v = 0; v < form_of_.size(); ++v) {
      ValueId& first = first_value_[form_of_[v]];
      if (first.is_none()) first = {v};
    }
  }

  Result<Graph> run() {
    for (NodeId n : graph_.nodes()) HONE_TRY(node(n));
    return remove_dead_code(copy_.finish());
  }

 private:
  Status node(NodeId n) {
    const ValueRange results = graph_.results(n);
    if (may_raise(n)) {
      for (ValueId v : results)
        if (first_value_[form_of_[v.index]] == v) HONE_TRY(try_rules(n, form_of_[v.index]));
    }
    bool replaced = results.size() > 0 && graph_.opcode(n) != Opcode::parameter;
    for (ValueId v : results) replaced = replaced && raised_.contains(form_of_[v.index]);
    if (!replaced) {
      HONE_TRY(
          copy_.node(n, graph_.op(n), HONE_TRY(transform_regions(graph_, n, raise_composites))));
    }
    if (graph_.opcode(n) == Opcode::parameter) return {};
    for (ValueId v : results) {
      auto at = raised_.find(form_of_[v.index]);
      if (at != raised_.end()) stand_in(v, at->second, !replaced);
    }
    return {};
  }

  bool may_raise(NodeId n) const {
    const Opcode opcode = graph_.opcode(n);
    return !is_leaf(opcode) && !is_composite(opcode) && !graph_.op(n).def().traits.has_effect;
  }

  Status try_rules(NodeId n, Form root) {
    if (raised_.contains(root)) return {};
    Opcode anchor = Opcode::mul;
    if (forms_.is(root, FormKind::op))
      anchor = forms_.op(root).opcode();
    else if (!forms_.is(root, FormKind::product))
      return {};
    Guess guess(
        forms_, root, [this, n](Form f) { return is_available(f, n); },
        [this, n](Form f) { return exists(f, n); });
    for (const RaiseRule& rule : rules_at(anchor))
      if (rule.guess(guess)) return emit(n, guess.match());
    return {};
  }

  // ---- Operands ---------------------------------------------------------------------------------

  bool exists(Form f, NodeId before) const {
    if (f >= first_value_.size() || first_value_[f].is_none()) return false;
    return graph_.producer(first_value_[f]).index < before.index;
  }

  bool is_available(Form f, NodeId before) const {
    if (exists(f, before) || forms_.is(f, FormKind::splat)) return true;
    if (forms_.is_view(f) || forms_.is(f, Opcode::cast))
      return is_available(forms_.operand(f, 0), before);
    return false;
  }

  // An available form as a value of the target.
  Result<ValueId> value_of(Form f, NodeId before) {
    if (auto raised = raised_.find(f); raised != raised_.end()) return raised->second;
    if (exists(f, before)) return copy_(first_value_[f]);
    auto made = made_.find(f);
    if (made != made_.end()) return made->second;
    ValueId value;
    if (forms_.is(f, FormKind::splat)) {
      const Type type = forms_.type(f), scalar = Type::scalar(type.dtype());
      const int64_t integer = static_cast<int64_t>(forms_[f].payload);
      value = copy_.target().add_constant(
          is_real(type.dtype()) ? Tensor::scalar(type.dtype(), forms_.number(f))
                                : Tensor::from_integers(scalar, std::span(&integer, 1)));
      if (type.rank() > 0) {
        const Op op = Op::get(Opcode::broadcast, {{"dims", forms_.dims(f)}, {"map", Ints{}}});
        value = copy_.target().result(HONE_TRY(copy_.target().append(op, std::span(&value, 1))));
      }
    } else {
      value = HONE_TRY(value_of(forms_.operand(f, 0), before));
      value = copy_.target().result(
          HONE_TRY(copy_.target().append(forms_.op(f), std::span(&value, 1))));
    }
    made_.emplace(f, value);
    return value;
  }

  // ---- Results ----------------------------------------------------------------------------------

  Status emit(NodeId n, const Match& match) {
    std::vector<ValueId> operands;
    for (Form f : match.operands)
      operands.push_back(f == kNoForm ? ValueId::none() : HONE_TRY(value_of(f, n)));
    const NodeId made = HONE_TRY(copy_.target().append(match.op, operands));
    for (size_t i = 0; i < match.results.size(); ++i) {
      const ValueId result = copy_.target().result(made, i);
      const Form form = match.results[i];
      if (!raised_.emplace(form, result).second) continue;
      // A result that was there before the others: later users take the new one.
      if (exists(form, n)) stand_in(first_value_[form], result, true);
      HONE_TRY(replace_inner_shapes(n, form, result));
    }
    return {};
  }

  // Values inside of the spelled-out form that differ from its result by a reshape alone: later
  // users take the result, or they would keep the spelled-out form alive.
  Status replace_inner_shapes(NodeId n, Form form, ValueId result) {
    for (Form f = form; forms_.is(f, Opcode::reshape);) {
      f = forms_.operand(f, 0);
      if (!exists(f, n) || !may_raise(graph_.producer(first_value_[f]))) continue;
      const Op reshape = Op::get(Opcode::reshape, {{"dims", forms_.dims(f)}});
      const NodeId made = HONE_TRY(copy_.target().append(reshape, std::span(&result, 1)));
      if (!raised_.emplace(f, copy_.target().result(made)).second) continue;
      stand_in(first_value_[f], copy_.target().result(made), true);
    }
    return {};
  }

  void stand_in(ValueId v, ValueId replacement, bool was_copied) {
    if (was_copied) copy_.target().set_name(copy_(v), "");
    copy_.replace(v, replacement);
  }

  const Graph& graph_;
  GraphCopy copy_;
  NormalForms forms_;
  std::vector<Form> form_of_;                        // per value
  std::vector<ValueId> first_value_;                 // per form that the graph has
  std::unordered_map<Form, ValueId> raised_, made_;  // values of the target
};

}  // namespace

Result<Graph> raise_composites(const Graph& graph) { return Raiser(graph).run(); }

}  // namespace hone
