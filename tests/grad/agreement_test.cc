#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "ir/derivative.h"
#include "ir/functional.h"
#include "ir/text.h"
#include "rewrite/passes.h"
#include "tests/grad/grad_testing.h"
#include "zoo/random/random_graph.h"

// Gradients of one function, spelled in two ways: composites and their expansions, short types and
// f64, open sizes and numbers.

namespace hone::HONE_FILE {
namespace {

// The difference by element, relative to the largest of the tensor.
void expect_close(std::span<const Tensor> actual, std::span<const Tensor> expected,
                  double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(actual[i].elements(), expected[i].elements());
    double scale = 1;
    for (int64_t e = 0; e < expected[i].elements(); ++e)
      if (std::isfinite(expected[i].real_at(e)))
        scale = std::max(scale, std::abs(expected[i].real_at(e)));
    for (int64_t e = 0; e < expected[i].elements(); ++e) {
      const double is = actual[i].real_at(e), should_be = expected[i].real_at(e);
      if (std::isfinite(should_be))
        EXPECT_NEAR(is, should_be, tolerance * scale) << "tensor " << i << ", element " << e;
    }
  }
}

// Inputs that change the last output by small steps.
Mask changing_inputs(const Graph& graph) {
  Mask inputs;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    Mask one(graph.inputs().size(), false);
    one[i] = is_differentiable(graph.type(graph.inputs()[i]));
    inputs.push_back(one[i] && changing_outputs(graph, one).back());
  }
  return inputs;
}

uint32_t last_output(const Graph& graph) {
  return static_cast<uint32_t>(graph.outputs().size() - 1);
}

// The gradients alone.
std::vector<Tensor> gradients(const Graph& derived, size_t outputs,
                              std::span<const Tensor> inputs) {
  std::vector<Tensor> all = evaluated(derived, inputs);
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(outputs, all.size())));
  return all;
}

// ---- Composites ---------------------------------------------------------------------------------

// How many of the trials had something to compare.
int compare_with_expansion(Opcode opcode, int trials) {
  int compared = 0;
  for (int seed = 0; seed < trials; ++seed) {
    const Result<Graph> plain = in_f64(random_graph({.seed = static_cast<uint64_t>(seed),
                                                     .min_steps = 1,
                                                     .max_steps = 1,
                                                     .max_elements = 200,
                                                     .first = opcode}));
    if (!plain.ok()) continue;
    const std::optional<Graph> graph = with_loss(*plain, 3);
    if (!graph) continue;
    const Mask inputs = changing_inputs(*graph);
    if (!any(inputs)) continue;
    SCOPED_TRACE(print(*graph));
    const Result<Graph> own = grad(*graph, last_output(*graph), inputs);
    const Result<Graph> spelled =
        grad(expand_composites(*graph).value(), last_output(*graph), inputs);
    EXPECT_EQ(own.ok(), spelled.ok());
    if (!own.ok() || !spelled.ok()) continue;
    const std::vector<Tensor> values = random_graph_inputs(*graph, static_cast<uint64_t>(seed) + 1);
    const size_t outputs = graph->outputs().size();
    // Where a relu bends, each spelling may choose a slope.
    const std::vector<Tensor> direction = random_direction(*graph, inputs, 5);
    if (!measured_slope(*graph, outputs - 1, values, direction).is_smooth) continue;
    expect_close(gradients(*own, outputs, values), gradients(*spelled, outputs, values), 1e-9);
    ++compared;
  }
  return compared;
}

TEST(Agreement, CompositesHaveTheGradientsOfTheirExpansions) {
  for (int i = 0; i < kOpcodeCount; ++i) {
    const Opcode opcode = static_cast<Opcode>(i);
    const Derivative* derivative = op_def(opcode).derivative;
    if (!is_composite(opcode) || (derivative != nullptr && derivative->is_constant)) continue;
    SCOPED_TRACE(name(opcode));
    const int compared = compare_with_expansion(opcode, 64);
    // Ops without reals in or out have nothing to compare.
    if (opcode != Opcode::one_hot && opcode != Opcode::quantize) EXPECT_GE(compared, 3);
  }
}

// ---- Types --------------------------------------------------------------------------------------

bool has_input_of(const Graph& graph, DType dtype) {
  return std::ranges::any_of(graph.input_types(), [&](Type t) { return t.dtype() == dtype; });
}

Tensor as_f64(const Tensor& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.elements(); ++i) values.push_back(tensor.real_at(i));
  return Tensor::from_reals(tensor.type().with_dtype(DType::f64), values);
}

// In wide mode a graph of another type computes the same, but for constants of that type.
TEST(Agreement, ShortTypesHaveTheGradientsOfF64) {
  std::map<DType, int> compared;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    const Graph plain =
        random_graph({.seed = seed, .min_steps = 1, .max_steps = 3, .max_elements = 60});
    DType dtype = DType::f64;
    for (DType each : {DType::f32, DType::f16, DType::bf16})
      if (has_input_of(plain, each)) dtype = each;
    if (dtype == DType::f64) continue;
    const std::optional<Graph> graph = with_loss(plain, seed);
    if (!graph) continue;
    const Result<Graph> wide = in_f64(*graph);
    const Mask inputs = changing_inputs(*graph);
    if (!wide.ok() || !any(inputs)) continue;
    const Result<Graph> own = grad(*graph, last_output(*graph), inputs);
    const Result<Graph> derived = grad(*wide, last_output(*wide), inputs);
    if (!own.ok() || !derived.ok()) continue;
    SCOPED_TRACE(print(*graph));
    const std::vector<Tensor> values = random_graph_inputs(*graph, seed);
    std::vector<Tensor> wide_values;
    for (const Tensor& value : values)
      wide_values.push_back(is_differentiable(value.dtype()) ? as_f64(value) : value);
    const std::vector<Tensor> direction = random_direction(*wide, inputs, seed);
    const size_t outputs = graph->outputs().size();
    if (!measured_slope(*wide, outputs - 1, wide_values, direction).is_smooth) continue;
    for (size_t i = 0, next = outputs; i < inputs.size(); ++i)
      if (inputs[i]) EXPECT_EQ(own->type(own->outputs()[next++]), graph->type(graph->inputs()[i]));
    const double tolerance = dtype == DType::f32 ? 1e-6 : dtype == DType::f16 ? 2e-3 : 2e-2;
    expect_close(gradients(*own, outputs, values), gradients(*derived, outputs, wide_values),
                 tolerance);
    ++compared[dtype];
  }
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) EXPECT_GT(compared[dtype], 20);
}

// ---- Open sizes ---------------------------------------------------------------------------------

// With one more output: the sum of squares of all real ones.
std::optional<Graph> with_squares(const Graph& graph) {
  Builder b(graph.name());
  std::vector<Value> inputs;
  for (ValueId v : graph.inputs()) inputs.push_back(b.parameter(graph.name(v), graph.type(v)));
  std::vector<Value> outputs = b.inlined(graph, inputs);
  Value loss;
  for (size_t i = 0, count = outputs.size(); i < count; ++i) {
    const Value y = outputs[i];
    if (!is_differentiable(y.type())) continue;
    Ints axes;
    for (int axis = 0; axis < y.rank(); ++axis) axes.push_back(axis);
    const Value part = cast(reduce_sum(y * y, axes), DType::f64);
    loss = loss ? loss + part : part;
  }
  if (!loss) return {};
  outputs.push_back(loss);
  return b.finish(outputs).value();
}

TEST(Agreement, OpenSizesHaveTheGradientsOfNumbers) {
  int compared = 0, refused = 0;
  for (uint64_t seed = 0; seed < 1200; ++seed) {
    const Result<Graph> plain = in_f64(random_graph(
        {.seed = seed, .min_steps = 1, .max_steps = 3, .max_elements = 60, .symbolic = true}));
    if (!plain.ok() || plain->is_static()) continue;
    const std::optional<Graph> graph = with_squares(*plain);
    if (!graph) continue;
    Rng rng(seed);
    Bindings sizes;
    for (Symbol symbol : graph->symbols()) {
      const int64_t step = symbol.multiple_of();
      sizes.emplace(symbol.name(),
                    step * rng.between((symbol.min() + step - 1) / step, symbol.max() / step));
    }
    const Graph sized = specialize(*graph, sizes).value();
    const Mask inputs = changing_inputs(*graph);
    if (!any(inputs)) continue;
    const Result<Graph> open = grad(*graph, last_output(*graph), inputs);
    const Result<Graph> derived = grad(sized, last_output(sized), inputs);
    if (!open.ok()) {
      // The way back through windows and strides needs sizes that are known well enough.
      EXPECT_EQ(open.error().code(), ErrorCode::unsupported) << open.error().to_string();
      ++refused;
      continue;
    }
    SCOPED_TRACE(print(*graph));
    ASSERT_TRUE(derived.ok()) << derived.error().to_string();
    const Result<Graph> bound = specialize(*open, sizes);
    ASSERT_TRUE(bound.ok()) << bound.error().to_string();
    const std::vector<Tensor> values = random_graph_inputs(sized, seed);
    const size_t outputs = graph->outputs().size();
    expect_close(gradients(*bound, outputs, values), gradients(*derived, outputs, values), 1e-9);
    ++compared;
  }
  EXPECT_GT(compared, 100);
  EXPECT_LT(refused, compared);
}

}  // namespace
}  // namespace hone::HONE_FILE
