#include "ir/reference/run.h"

#include <string>
#include <utility>

#include "base/memory_hint.h"
#include "base/text.h"
#include "ir/reference/convert.h"

namespace hone {

// ---- What is shared -----------------------------------------------------------------------------

Result<RunPlan> RunPlan::make(const Graph& graph, const Bindings& bindings) {
  RunPlan plan(graph);
  plan.input_of.assign(graph.value_count(), UINT32_MAX);
  for (uint32_t i = 0; i < graph.inputs().size(); ++i) plan.input_of[graph.inputs()[i].index] = i;

  std::vector<bool> live = live_nodes(graph);
  std::vector<uint32_t> last_step(graph.value_count(), UINT32_MAX);
  for (NodeId node : graph.nodes()) {
    Opcode opcode = graph.opcode(node);
    if (!live[node.index] || opcode == Opcode::parameter || opcode == Opcode::constant) continue;
    uint32_t step = static_cast<uint32_t>(plan.steps.size());
    for (ValueId v : graph.operands(node)) {
      if (!v.is_none()) last_step[v.index] = step;
    }
    for (ValueId v : graph.results(node)) last_step[v.index] = step;
    plan.steps.push_back({node, graph.op(node), &graph.op(node).def(), {}});
  }
  for (ValueId v : graph.outputs()) last_step[v.index] = UINT32_MAX;
  for (uint32_t v = 0; v < last_step.size(); ++v) {
    if (last_step[v] != UINT32_MAX) plan.steps[last_step[v]].dying.push_back({v});
  }
  if (!bindings.empty()) HONE_TRY(plan.bind(bindings));
  return plan;
}

Status RunPlan::bind(const Bindings& bindings) {
  types_.resize(graph_->value_count());
  struct TypeHash {
    size_t operator()(Type type) const { return type.hash(); }
  };
  std::unordered_map<Type, Type, TypeHash> known;  // a model has few types
  auto bind_value = [&](ValueId v) -> Status {
    Type& bound = known[graph_->type(v)];
    if (!bound) bound = HONE_TRY(graph_->type(v).bind(bindings));
    types_[v.index] = bound;
    return {};
  };
  for (ValueId v : graph_->inputs()) {
    if (Status good = bind_value(v); !good.ok()) {
      return std::move(good).error().within(graph_->describe(graph_->producer(v)));
    }
  }
  for (NodeId n : graph_->nodes()) {
    if (graph_->opcode(n) == Opcode::constant) HONE_TRY(bind_value(graph_->result(n)));
  }
  for (Step& step : steps) {
    step.op = step.op.bind(bindings);
    for (ValueId v : graph_->results(step.node)) {
      if (Status good = bind_value(v); !good.ok()) {
        return std::move(good).error().within(graph_->describe(step.node));
      }
    }
  }
  return {};
}

std::vector<Type> RunPlan::types_of(std::span<const ValueId> values) const {
  std::vector<Type> types;
  types.reserve(values.size());
  for (ValueId v : values) types.push_back(v.is_none() ? Type() : type(v));
  return types;
}

Status EvalState::check_memory(int64_t more_bytes) const {
  if (more_bytes <= options.max_bytes - live_bytes) return {};
  return over_limit(
             "tensors of {} are alive and {} more are needed, {} bytes in all, above the limit of "
             "{}",
             format_bytes(live_bytes), format_bytes(more_bytes), live_bytes + more_bytes,
             format_bytes(options.max_bytes))
      .with_hint(std::string(kMemoryHint));
}

Result<const RunPlan*> EvalState::plan_of(const Graph& graph) {
  std::unique_ptr<RunPlan>& plan = plans_[&graph];
  if (!plan) plan = std::make_unique<RunPlan>(HONE_TRY(RunPlan::make(graph, bindings_)));
  return plan.get();
}

Result<const Graph*> EvalState::expansion_of(Op op, std::span<const Type> operands) {
  ApplicationKey key{op, {operands.begin(), operands.end()}};
  auto known = expansions_.find(key);
  if (known != expansions_.end()) return known->second.get();
  auto graph = std::make_unique<Graph>(HONE_TRY(expansion(op, operands)));
  return expansions_.emplace(std::move(key), std::move(graph)).first->second.get();
}

// ---- Running ------------------------------------------------------------------------------------

namespace {

// One run of a graph: its values on each device of context.devices.
template <class D>
class Frame {
 public:
  Frame(const Graph& graph, const RunPlan& plan, EvalContext& context)
      : graph_(graph),
        context_(context),
        state_(static_cast<DomainState<D>&>(context.state)),
        plan_(plan),
        values_(context.devices.size(), Row<D>(graph.value_count())) {}

  // Either the arguments themselves or the tensors that they come from.
  void set_arguments(std::vector<Row<D>> arguments) {
    for (size_t d = 0; d < values_.size(); ++d) {
      HONE_CHECK(arguments[d].size() == graph_.inputs().size(), "'{}' takes {} arguments, not {}",
                 graph_.name(), graph_.inputs().size(), arguments[d].size());
      for (size_t i = 0; i < arguments[d].size(); ++i) {
        values_[d][graph_.inputs()[i].index] = std::move(arguments[d][i]);
      }
    }
  }
  void set_tensors(std::span<const std::vector<Tensor>> tensors) { tensors_ = tensors; }

  Result<std::vector<Row<D>>> run() {
    if (context_.depth > kMaxEvalDepth) {
      return over_limit("regions and composites are nested more than {} deep", kMaxEvalDepth);
    }
    for (const RunPlan::Step& step : plan_.steps) {
      if (state_.options.cancel) HONE_TRY(state_.options.cancel->check());
      Status status = run_step(step);
      if (!status.ok()) return std::move(status).error().within(graph_.describe(step.node));
      for (ValueId v : step.dying) {
        for (Row<D>& row : values_) row[v.index] = {};
      }
      ++state_.stats.nodes;
      if (context_.depth == 0 && state_.options.progress) state_.options.progress->advance();
    }
    std::vector<Row<D>> outputs(values_.size());
    for (size_t d = 0; d < values_.size(); ++d) {
      for (ValueId v : graph_.outputs()) {
        HONE_TRY(materialize(v));
        outputs[d].push_back(values_[d][v.index]);
      }
    }
    return outputs;
  }

 private:
  Status run_step(const RunPlan::Step& step) {
    for (ValueId v : graph_.operands(step.node)) {
      if (!v.is_none()) HONE_TRY(materialize(v));
    }
    int64_t result_bytes = 0;
    for (ValueId v : graph_.results(step.node)) result_bytes += buffer_bytes<D>(plan_.type(v));
    HONE_TRY(state_.check_memory(result_bytes * static_cast<int64_t>(values_.size())));

    if (step.def->expand != nullptr) {
      HONE_TRY(run_composite(step));
    } else if (graph_.opcode(step.node) == Opcode::reshape && can_move_operand(step)) {
      for (Row<D>& row : values_) {
        ValueId from = graph_.operands(step.node)[0];
        ValueId to = graph_.result(step.node);
        Buffer<D> moved = std::move(row[from.index]).take();
        row[to.index] = Ref<D>::own(std::move(moved).retyped(plan_.type(to)), state_);
      }
    } else {
      HONE_TRY(run_primitive(step));
    }
    return {};
  }

  // Constants and inputs are converted when they are first read, so that the weights of a model are
  // not all held at once.
  Status materialize(ValueId v) {
    NodeId node = graph_.producer(v);
    bool is_constant = graph_.opcode(node) == Opcode::constant;
    bool is_input = plan_.input_of[v.index] != UINT32_MAX;
    if (!is_constant && !is_input) return {};
    for (size_t d = 0; d < values_.size(); ++d) {
      Ref<D>& slot = values_[d][v.index];
      if (slot) continue;
      if (!is_constant) {
        slot = HONE_TRY(converted(tensors_[d][plan_.input_of[v.index]]));
      } else if (d > 0) {
        slot = values_[0][v.index];
      } else if (context_.depth == 0) {
        slot = HONE_TRY(converted(graph_.constant(node)));
      } else {
        Ref<D>& kept = state_.constants[{&graph_, node.index}];
        if (!kept) kept = HONE_TRY(converted(graph_.constant(node)));
        slot = kept;
      }
    }
    return {};
  }

  Result<Ref<D>> converted(const Tensor& tensor) {
    HONE_TRY(state_.check_memory(buffer_bytes<D>(tensor.type())));
    return Ref<D>::own(HONE_TRY(to_buffer<D>(tensor, context_.pool)), state_);
  }

  bool can_move_operand(const RunPlan::Step& step) const {
    ValueId operand = graph_.operands(step.node)[0];
    if (std::ranges::find(step.dying, operand) == step.dying.end()) return false;
    return std::ranges::all_of(
        values_, [&](const Row<D>& row) { return row[operand.index].is_sole_owner(); });
  }

  Status run_composite(const RunPlan::Step& step) {
    std::span<const ValueId> operands = graph_.operands(step.node);
    const Graph* expansion = HONE_TRY(state_.expansion_of(step.op, plan_.types_of(operands)));
    std::vector<Row<D>> arguments(values_.size());
    for (size_t d = 0; d < values_.size(); ++d) {
      for (ValueId v : operands) {
        if (!v.is_none()) arguments[d].push_back(values_[d][v.index]);
      }
    }
    EvalContext inner = context_;
    ++inner.depth;
    inner.rounds = context_.rounds && step.def->traits.is_stepwise;
    std::vector<Row<D>> outputs = HONE_TRY(run_graph<D>(*expansion, std::move(arguments), inner));
    for (size_t d = 0; d < values_.size(); ++d) {
      for (size_t i = 0; i < outputs[d].size(); ++i) {
        ValueId to = graph_.result(step.node, i);
        HONE_CHECK(outputs[d][i]->type() == plan_.type(to), "the expansion gives {} instead of {}",
                   outputs[d][i]->type().to_string(), plan_.type(to).to_string());
        if (context_.rounds && is_real(plan_.type(to).dtype())) {
          Buffer<D> buffer = std::move(outputs[d][i]).take();
          round_result(buffer);
          outputs[d][i] = Ref<D>::own(std::move(buffer), state_);
        }
        values_[d][to.index] = std::move(outputs[d][i]);
      }
    }
    return {};
  }

  Status run_primitive(const RunPlan::Step& step) {
    ValueRange results = graph_.results(step.node);
    bool assigns = !graph_.regions(step.node).empty();
    const bool fills = step.def->eval != nullptr && step.def->eval->fills;
    const Initial initial = fills ? Initial::unwritten : Initial::zero;
    std::vector<std::vector<const Buffer<D>*>> operands(values_.size());
    std::vector<std::vector<Buffer<D>>> made(values_.size());
    std::vector<EvalCall<D>> calls;
    for (size_t d = 0; d < values_.size(); ++d) {
      for (ValueId v : graph_.operands(step.node)) {
        operands[d].push_back(v.is_none() ? nullptr : values_[d][v.index].get());
      }
      for (ValueId v : results) {
        made[d].push_back(assigns ? Buffer<D>() : Buffer<D>(plan_.type(v), initial));
      }
      calls.push_back({step.op, operands[d], made[d], graph_.regions(step.node), context_,
                       context_.devices[d]});
    }
    HONE_TRY(dispatch(*step.def, calls));
    for (size_t d = 0; d < values_.size(); ++d) {
      for (size_t i = 0; i < results.size(); ++i) {
        HONE_CHECK(made[d][i].type() == plan_.type(results[i]), "{} made {} instead of {}",
                   step.op.name(), made[d][i].type().to_string(),
                   plan_.type(results[i]).to_string());
        if (context_.rounds && !assigns && !step.def->traits.moves_data) round_result(made[d][i]);
        values_[d][results[i].index] = Ref<D>::own(std::move(made[d][i]), state_);
      }
    }
    return {};
  }

  Status dispatch(const OpDef& def, std::span<EvalCall<D>> calls) {
    if (def.eval == nullptr) return unsupported("the reference evaluator does not have this op");
    const EvalEntry<D>& entry = def.eval->template entry<D>();
    if (entry.joint != nullptr) return entry.joint(calls);
    if (entry.local == nullptr) return no_field_meaning(calls[0].op);
    for (EvalCall<D>& call : calls) HONE_TRY(entry.local(call));
    return {};
  }

  void round_result(Buffer<D>& buffer) {
    if constexpr (std::is_same_v<D, WideDomain>) {
      if (buffer.holds_reals()) round_in_place(buffer.dtype(), buffer.reals(), context_.pool);
    }
  }

  const Graph& graph_;
  EvalContext& context_;
  DomainState<D>& state_;
  const RunPlan& plan_;
  std::vector<Row<D>> values_;  // [position in devices][value]
  std::span<const std::vector<Tensor>> tensors_;
};

}  // namespace

template <class D>
Result<std::vector<Row<D>>> run_graph(const Graph& graph, std::vector<Row<D>> arguments,
                                      EvalContext& context) {
  const RunPlan* plan = HONE_TRY(context.state.plan_of(graph));
  Frame<D> activation(graph, *plan, context);
  activation.set_arguments(std::move(arguments));
  return activation.run();
}

template <class D>
Result<std::vector<Row<D>>> run_graph(const Graph& graph,
                                      std::span<const std::vector<Tensor>> inputs,
                                      EvalContext& context) {
  const RunPlan* plan = HONE_TRY(context.state.plan_of(graph));
  Frame<D> activation(graph, *plan, context);
  activation.set_tensors(inputs);
  return activation.run();
}

Status no_field_meaning(Op op) {
  return unsupported("{} has no meaning for the elements of a field", op.name());
}

#define HONE_INSTANTIATE(D)                                                                        \
  template Result<std::vector<Row<D>>> run_graph(const Graph&, std::vector<Row<D>>, EvalContext&); \
  template Result<std::vector<Row<D>>> run_graph(                                                  \
      const Graph&, std::span<const std::vector<Tensor>>, EvalContext&);
HONE_INSTANTIATE(WideDomain)
HONE_INSTANTIATE(Fp32Domain)
HONE_INSTANTIATE(FieldDomain)
HONE_INSTANTIATE(DependencyDomain)
#undef HONE_INSTANTIATE

}  // namespace hone
