#include "tests/grad/grad_testing.h"

#include <cmath>

#include "ir/derivative.h"
#include "ir/functional.h"
#include "ir/graph_copy.h"
#include "ir/reference/evaluate.h"

namespace hone {

namespace {

DType wide_type(DType type) { return is_differentiable(type) ? DType::f64 : type; }

Op wide_op(Op op) {
  Attrs attrs;
  std::span<const AttrSpec> specs = op.def().attrs;
  for (size_t i = 0; i < specs.size(); ++i) {
    AttrValue value = op.attrs()[i];
    if (specs[i].kind == AttrKind::dtype) value = wide_type(std::get<DType>(value));
    if (specs[i].name == "accumulate") {
      const std::optional<DType> type = dtype_from_name(std::get<std::string>(value));
      if (type && is_differentiable(*type)) value = std::string("f64");
    }
    attrs.emplace_back(specs[i].name, std::move(value));
  }
  return Op::get(op.opcode(), std::move(attrs));
}

Tensor wide_tensor(const Tensor& tensor) {
  if (!is_differentiable(tensor.dtype())) return tensor;
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.elements(); ++i) values.push_back(tensor.real_at(i));
  return Tensor::from_reals(tensor.type().with_dtype(DType::f64), values);
}

}  // namespace

Result<Graph> in_f64(const Graph& graph) {
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes()) {
    if (graph.opcode(n) == Opcode::constant) {
      copy.replace(graph.result(n), copy.target().add_constant(wide_tensor(graph.constant(n))));
      continue;
    }
    HONE_TRY(copy.node(n, wide_op(graph.op(n)), HONE_TRY(transform_regions(graph, n, in_f64))));
  }
  return copy.finish();
}

std::optional<Graph> with_loss(const Graph& graph, uint64_t seed) {
  Rng rng(seed);
  Builder b(graph.name());
  std::vector<Value> inputs;
  for (ValueId v : graph.inputs()) inputs.push_back(b.parameter(graph.name(v), graph.type(v)));
  std::vector<Value> outputs = b.inlined(graph, inputs);
  Value loss;
  for (size_t i = 0, count = outputs.size(); i < count; ++i) {
    Value y = outputs[i];
    if (!is_differentiable(y.type())) continue;
    std::vector<double> weights(static_cast<size_t>(y.type().static_elements()));
    for (double& w : weights) w = rng.uniform(0.5, 1.5);
    Ints axes;
    for (int axis = 0; axis < y.rank(); ++axis) axes.push_back(axis);
    Value part =
        cast(reduce_sum(y * b.constant(Tensor::from_reals(y.type(), weights)), axes), DType::f64);
    loss = loss ? loss + part : part;
  }
  if (!loss) return {};
  outputs.push_back(loss);
  return b.finish(outputs).value();
}

Mask differentiable_inputs(const Graph& graph) {
  Mask mask;
  for (Type type : graph.input_types()) mask.push_back(is_differentiable(type));
  return mask;
}

std::vector<Tensor> random_direction(const Graph& graph, const Mask& inputs, uint64_t seed) {
  Rng rng(seed);
  std::vector<Tensor> direction(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    const Type type = graph.type(graph.inputs()[i]);
    std::vector<double> values(static_cast<size_t>(type.static_elements()));
    for (double& v : values) v = rng.uniform(-1, 1);
    direction[i] = Tensor::from_reals(type, values);
  }
  return direction;
}

std::vector<Tensor> moved(std::span<const Tensor> inputs, std::span<const Tensor> direction,
                          double by) {
  std::vector<Tensor> result(inputs.begin(), inputs.end());
  for (size_t i = 0; i < result.size(); ++i) {
    if (!direction[i]) continue;
    std::vector<double> values;
    for (int64_t e = 0; e < result[i].elements(); ++e)
      values.push_back(result[i].real_at(e) + by * direction[i].real_at(e));
    result[i] = Tensor::from_reals(result[i].type(), values);
  }
  return result;
}

Product product(std::span<const Tensor> gradients, std::span<const Tensor> direction) {
  Product sum;
  size_t next = 0;
  for (const Tensor& towards : direction) {
    if (!towards) continue;
    const Tensor& gradient = gradients[next++];
    for (int64_t e = 0; e < towards.elements(); ++e) {
      const double term = gradient.real_at(e) * towards.real_at(e);
      sum.value += term;
      sum.size += std::abs(term);
    }
  }
  return sum;
}

std::vector<Tensor> evaluated(const Graph& graph, std::span<const Tensor> inputs) {
  Result<std::vector<Tensor>> outputs =
      evaluate(graph, inputs, {.numerics = Numerics::wide, .real_outputs_as_f64 = true});
  EXPECT_TRUE(outputs.ok()) << outputs.error().to_string();
  return outputs.ok() ? *outputs : std::vector<Tensor>();
}

Slope measured_slope(const Graph& graph, size_t output, std::span<const Tensor> inputs,
                     std::span<const Tensor> direction) {
  auto at = [&](double by) {
    return evaluated(graph, moved(inputs, direction, by))[output].real_at(0);
  };
  auto slope = [&](double step) {
    return (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step);
  };
  const double coarse = slope(1e-3), fine = slope(5e-4);
  const double scale = std::max({1.0, std::abs(coarse), std::abs(fine)});
  return {fine, std::abs(coarse - fine) <= 1e-8 * scale};
}

void expect_derivative(const Graph& graph, std::span<const Tensor> inputs) {
  const Mask mask = differentiable_inputs(graph);
  std::vector<Tensor> direction;
  Slope slope{.is_smooth = false};  // another direction may cross no kink of a relu
  for (uint64_t seed = 7; seed < 12 && !slope.is_smooth; ++seed) {
    direction = random_direction(graph, mask, seed);
    slope = measured_slope(graph, 0, inputs, direction);
  }
  EXPECT_TRUE(slope.is_smooth);
  const Result<Graph> derived = grad(graph, 0, mask);
  ASSERT_TRUE(derived.ok()) << derived.error().to_string();
  const std::vector<Tensor> values = evaluated(*derived, inputs);
  const Product along = product(std::span(values).subspan(1), direction);
  EXPECT_NEAR(along.value, slope.value, 1e-6 * std::max(1.0, along.size));
}

}  // namespace hone
