#include "learn/network_step.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "grad/grad.h"

namespace hone {
namespace {

using Role = Network::Role;

Status check_scalar(Value value, std::string_view what) {
  if (value.rank() == 0) return {};
  return bad_input("{} is {}, not a single number", what, value.type().to_string())
      .with_hint("take the mean over its elements");
}

Value sum_of_squares(Value x) {
  Ints axes(static_cast<size_t>(x.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  return axes.empty() ? x * x : reduce_sum(x * x, axes);
}

// Builds the graph of a step around the gradients.
class NetworkStepBuilder {
 public:
  NetworkStepBuilder(const Forward& forward, const UpdateOptions& options)
      : forward_(forward), options_(options), b_(forward.graph.name()) {}

  Result<Graph> build(const Graph& gradients) {
    add_parameters();
    std::vector<Value> results = b_.inlined(gradients, arguments_);
    const size_t values = 1 + forward_.metrics.size();
    std::vector<Value> slopes(results.begin() + static_cast<std::ptrdiff_t>(values), results.end());
    const Value loss = results[0];
    const Value norm = length(slopes);
    const Value is_finite =
        binary(Opcode::and_, unary(Opcode::is_finite, loss), unary(Opcode::is_finite, norm));
    std::vector<Value> outputs;
    for (size_t i = 0; i < slopes.size(); ++i) update(i, clipped(slopes[i], norm), outputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      outputs[i] = select(is_finite, outputs[i], state_[i]);
      b_.donate(state_[i], static_cast<int>(i));
    }
    outputs.insert(outputs.end(), {is_finite, loss, norm});
    outputs.insert(outputs.end(), results.begin() + 1,
                   results.begin() + static_cast<std::ptrdiff_t>(values));
    return b_.finish(outputs);
  }

 private:
  void add_parameters() {
    stride_ = 1 + options_.optimizer->states.size() + (options_.average > 0 ? 1 : 0);
    std::vector<size_t> weights;
    for (const Network::Port& port : forward_.of(Role::weight)) {
      weights.push_back(state_.size());
      for (size_t i = 0; i < stride_; ++i) state_.push_back(b_.parameter("", port.type));
    }
    rate_ = b_.parameter("", Type::scalar(DType::f32));
    step_ = b_.parameter("", Type::scalar(DType::i64));
    const Value seed = b_.parameter("", Type::scalar(DType::u64));
    size_t weight = 0;
    for (const Network::Port& port : forward_.ports) {
      if (port.role == Role::input) arguments_.push_back(b_.parameter("", port.type));
      if (port.role == Role::weight) arguments_.push_back(state_[weights[weight++]]);
      if (port.role == Role::seed) arguments_.push_back(seed);
      if (port.role == Role::step) arguments_.push_back(step_);
    }
  }

  Value length(std::span<const Value> slopes) {
    Value sum = b_.scalar(DType::f32, 0);
    for (Value slope : slopes) sum = sum + cast(sum_of_squares(slope), DType::f32);
    return sqrt(sum);
  }

  Value clipped(Value slope, Value norm) {
    if (options_.clip_norm <= 0) return slope;
    const Value limit = b_.scalar(DType::f32, options_.clip_norm);
    return slope * cast(limit / maximum(norm, limit), slope.dtype());
  }

  // Appends what of the state belongs to a weight, after the step.
  void update(size_t index, Value slope, std::vector<Value>& outputs) {
    const std::span<const Value> state = std::span(state_).subspan(index * stride_, stride_);
    const DType dtype = slope.dtype();
    const Updated updated = options_.optimizer->update(
        state[0], {.gradient = slope,
                   .states = state.subspan(1, options_.optimizer->states.size()),
                   .rate = cast(rate_, dtype),
                   .step = cast(step_ + 1, dtype)});
    outputs.push_back(updated.weight);
    outputs.insert(outputs.end(), updated.states.begin(), updated.states.end());
    if (options_.average > 0)
      outputs.push_back(options_.average * state.back() + (1 - options_.average) * updated.weight);
  }

  const Forward& forward_;
  const UpdateOptions& options_;
  Builder b_;
  size_t stride_ = 0;
  std::vector<Value> state_;
  std::vector<Value> arguments_;  // of the gradients
  Value rate_, step_;
};

}  // namespace

void name_ports(Graph& graph, std::span<const Network::Port> ports) {
  std::set<std::string, std::less<>> taken;
  for (uint32_t i = 0; i < graph.value_count(); ++i) taken.emplace(graph.name(ValueId{i}));
  for (size_t i = 0; i < ports.size(); ++i)
    if (taken.insert(ports[i].name).second) graph.set_name(graph.inputs()[i], ports[i].name);
}

std::vector<Network::Port> Forward::of(Network::Role role) const {
  std::vector<Network::Port> found;
  std::ranges::copy_if(ports, std::back_inserter(found),
                       [&](const Network::Port& port) { return port.role == role; });
  return found;
}

Result<Forward> trace(const Definition& definition, Network::Mode mode, const BatchTypes& batch) {
  Builder b("network");
  Network net(b, mode, batch);
  const Objective objective = definition(net);
  Forward forward = {.graph = Graph(), .ports = net.ports()};
  std::vector<Value> outputs = {objective.loss};
  if (b.ok()) {
    HONE_TRY(check_scalar(objective.loss, "the loss"));
    for (const auto& [name, value] : objective.metrics) {
      HONE_TRY(check_scalar(value, fmt::format("metric '{}'", name)));
      forward.metrics.push_back(name);
      outputs.push_back(value);
    }
  }
  forward.graph = HONE_TRY(b.finish(outputs));
  name_ports(forward.graph, forward.ports);
  return forward;
}

std::vector<NamedTensor> first_state(const Forward& forward, const UpdateOptions& options,
                                     uint64_t seed) {
  std::vector<NamedTensor> state;
  for (const Network::Port& port : forward.of(Network::Role::weight)) {
    const Tensor weight = initial_tensor(port.initializer, port.type, port.name, seed);
    state.push_back({port.name, weight});
    for (std::string_view each : options.optimizer->states)
      state.push_back({fmt::format("{}.{}", port.name, each), Tensor::zeros(port.type)});
    if (options.average > 0) state.push_back({port.name + ".average", weight});
  }
  return state;
}

std::vector<uint32_t> NetworkStep::forward() const {
  const size_t after_state = graph.outputs().size() - metrics - StepOutputs::metrics;
  std::vector<uint32_t> outputs = {static_cast<uint32_t>(after_state + StepOutputs::loss)};
  for (size_t i = 0; i < metrics; ++i)
    outputs.push_back(static_cast<uint32_t>(after_state + StepOutputs::metrics + i));
  return outputs;
}

Result<NetworkStep> network_step(const Forward& forward, const UpdateOptions& options) {
  Mask weights;
  for (const Network::Port& port : forward.ports) weights.push_back(port.role == Role::weight);
  if (count(weights) == 0) return bad_input("the network has no weights to train");
  NetworkStep step;
  step.metrics = forward.metrics.size();
  step.gradients = HONE_TRY(grad(forward.graph, 0, weights));
  step.graph = HONE_TRY(NetworkStepBuilder(forward, options).build(step.gradients));
  return step;
}

}  // namespace hone
