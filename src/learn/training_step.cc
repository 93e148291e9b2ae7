#include "learn/training_step.h"

#include <algorithm>

#include "base/text.h"
#include "grad/grad.h"
#include "ir/derivative.h"
#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "learn/free_names.h"
#include "learn/lift_weights.h"
#include "learn/losses.h"

namespace hone {
namespace {

// ---- The loss -----------------------------------------------------------------------------------

struct Loss {
  uint32_t output = 0;                           // of the model
  Value (*of)(Value y, Value target) = nullptr;  // null: the output is the loss
  bool has_labels = false;
};

Result<Loss> find_loss(const Graph& model, std::string_view name) {
  const bool is_named = name != "mse" && name != "cross-entropy";
  std::vector<std::string> outputs;
  for (uint32_t i = 0; i < model.outputs().size(); ++i) {
    const ValueId v = model.outputs()[i];
    outputs.emplace_back(model.name(v));
    if (is_named && name == model.name(v)) return Loss{.output = i};
    if (is_named || !is_differentiable(model.type(v))) continue;
    if (name == "mse") return Loss{.output = i, .of = mean_squared_error};
    if (model.type(v).rank() == 0)
      return bad_input("cross-entropy needs the numbers of each class, and output {} is {}",
                       model.label(v), model.type(v).to_string());
    return Loss{.output = i, .of = cross_entropy, .has_labels = true};
  }
  if (!is_named) return bad_input("the model has no real output to take a loss of");
  return usage_error("there is no loss '{}'", name)
      .with_hint(
          fmt::format("a loss is mse, cross-entropy, or an output: {}", join(outputs, ", ")));
}

std::vector<Value> parameters_like(Builder& b, const Graph& graph, FreeNames& names) {
  std::vector<Value> all;
  for (ValueId v : graph.inputs())
    all.push_back(b.parameter(names.unique(graph.name(v)), graph.type(v)));
  return all;
}

// From the inputs of the lifted model and the target, which stands before the weights, to the loss.
Result<Graph> loss_graph(Graph lifted, size_t own_inputs, const Loss& loss) {
  ValueId output = lifted.outputs()[loss.output];
  if (loss.has_labels) output = logits_of(lifted, output);
  lifted.set_outputs({output});
  const Type type = lifted.type(output);
  FreeNames names;
  Builder b(lifted.name());
  std::vector<Value> arguments;
  Value target;
  for (size_t i = 0; i <= lifted.inputs().size(); ++i) {
    if (i == own_inputs && loss.of != nullptr) {
      const Dims dims = loss.has_labels ? Dims(type.dims().begin(), type.dims().end() - 1)
                                        : Dims(type.dims().begin(), type.dims().end());
      target = b.parameter(names.unique(loss.has_labels ? "labels" : "target"),
                           loss.has_labels ? DType::i64 : type.dtype(), dims);
    }
    if (i == lifted.inputs().size()) break;
    const ValueId v = lifted.inputs()[i];
    arguments.push_back(b.parameter(names.unique(lifted.name(v)), lifted.type(v)));
  }
  const Value y = b.inlined(lifted, arguments)[0];
  const Value result = loss.of == nullptr ? y : loss.of(y, target);
  return b.finish({result});
}

// ---- The step -----------------------------------------------------------------------------------

// 16-bit weights are updated in f32.
DType update_dtype(DType weight) { return weight == DType::f64 ? DType::f64 : DType::f32; }

// The nodes from `first` on, which are updates, each right behind what it reads: so that no
// gradient waits in memory for the others.
Result<Graph> updates_behind_gradients(const Graph& step, size_t first) {
  // For each node: the last before `first` that it needs.
  std::vector<uint32_t> behind(step.node_count());
  std::vector<NodeId> order;
  for (NodeId n : step.nodes()) {
    if (n.index < first) behind[n.index] = n.index;
    if (n.index >= first)
      for (ValueId v : step.operands(n))
        if (!v.is_none())
          behind[n.index] = std::max(behind[n.index], behind[step.producer(v).index]);
    if (!is_parameter(step.opcode(n))) order.push_back(n);
  }
  std::ranges::sort(order, {}, [&](NodeId n) { return std::pair(behind[n.index], n.index); });
  GraphCopy copy(step);
  for (NodeId n : step.nodes())
    if (is_parameter(step.opcode(n))) HONE_TRY(copy.node(n));
  for (NodeId n : order) HONE_TRY(copy.node(n));
  return copy.finish();
}

// The values that a step hands to the next.
struct Carried {
  Value now;
  Value next;
  NamedTensor first;
};

class StepBuilder {
 public:
  StepBuilder(const Graph& gradients, std::span<const NamedTensor> weights,
              const Optimizer& optimizer)
      : gradients_(gradients), weights_(weights), optimizer_(optimizer), b_(gradients.name()) {}

  Result<TrainingStep> build() {
    std::vector<Value> inputs = parameters_like(b_, gradients_, names_);
    const std::vector<Value> results = b_.inlined(gradients_, inputs);
    const size_t first_update = b_.graph().node_count();
    const std::string rate_name = names_.unique("rate"), step_name = names_.unique("step");
    const Value rate = b_.parameter(rate_name, DType::f32, {});
    const Value step = b_.parameter(step_name, DType::i64, {});
    carried_.push_back({step, step + 1, {step_name, Tensor::scalar(DType::i64, 0)}});
    for (size_t i = 0; i < weights_.size(); ++i)
      update(inputs[inputs.size() - weights_.size() + i], results[1 + i], weights_[i], rate,
             maximum(step, 0) + 1);
    std::vector<Value> outputs = {results[0].named(names_.unique("loss"))};
    TrainingStep made;
    made.state.push_back({rate_name, Tensor::scalar(DType::f32, optimizer_.rate)});
    for (Carried& each : carried_) {
      b_.donate(each.now, static_cast<int>(outputs.size()));
      outputs.push_back(each.next.named(names_.unique(each.first.name + ".next")));
      made.state.push_back(std::move(each.first));
    }
    made.graph = HONE_TRY(updates_behind_gradients(HONE_TRY(b_.finish(outputs)), first_update));
    return made;
  }

 private:
  void update(Value weight, Value gradient, const NamedTensor& first, Value rate, Value step) {
    const DType dtype = update_dtype(weight.dtype());
    std::vector<Value> states;
    for (std::string_view state : optimizer_.states)
      states.push_back(b_.parameter(names_.unique(fmt::format("{}.{}", first.name, state)), dtype,
                                    weight.dims()));
    const Updated updated =
        optimizer_.update(cast(weight, dtype), {.gradient = cast(gradient, dtype),
                                                .states = states,
                                                .rate = cast(rate, dtype),
                                                .step = cast(step, dtype)});
    carried_.push_back({weight, cast(updated.weight, weight.dtype()), first});
    for (size_t i = 0; i < states.size(); ++i)
      carried_.push_back(
          {states[i],
           updated.states[i],
           {std::string(b_.graph().name(states[i].id())), Tensor::zeros(states[i].type())}});
  }

  const Graph& gradients_;
  const std::span<const NamedTensor> weights_;
  const Optimizer& optimizer_;
  Builder b_;
  FreeNames names_;
  std::vector<Carried> carried_;
};

}  // namespace

Result<TrainingStep> training_step(const Graph& model, const StepOptions& options) {
  const Loss loss = HONE_TRY(find_loss(model, options.loss));
  Lifted lifted = HONE_TRY(lift_weights(model, loss.output, options.frozen));
  if (lifted.weights.empty())
    return bad_input(
               "the model has no weights to train: no real constant of rank 1 or more "
               "decides the loss")
        .with_hint(
            "weights that are inputs, as in programs of JAX, are not trained: take the gradient "
            "before the program is written");
  const Graph forward = HONE_TRY(loss_graph(std::move(lifted.graph), model.inputs().size(), loss));
  Mask wanted(forward.inputs().size() - lifted.weights.size(), false);
  wanted.resize(forward.inputs().size(), true);
  Graph gradients = HONE_TRY(grad(forward, 0, wanted));
  if (options.optimizer == nullptr)
    return TrainingStep{std::move(gradients), std::move(lifted.weights)};
  return StepBuilder(gradients, lifted.weights, *options.optimizer).build();
}

}  // namespace hone
