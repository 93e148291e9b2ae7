#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "grad/grad.h"
#include "grad/linearize.h"
#include "ir/graph.h"
#include "tensor/tensor.h"

// Derivatives against differences of function values, in f64 and without rounding between nodes.

namespace hone {

// The graph with every real that ops compute with as f64, so that inputs can be moved by little. An
// error if an op wants another width.
Result<Graph> in_f64(const Graph& graph);

// The graph with one more output: the sum of all real outputs, weighted by random numbers. Null if
// no output is real.
std::optional<Graph> with_loss(const Graph& graph, uint64_t seed);

// Inputs that have derivatives.
Mask differentiable_inputs(const Graph& graph);
// A direction: numbers in [-1, 1] for the inputs in the mask, absent tensors for the others.
std::vector<Tensor> random_direction(const Graph& graph, const Mask& inputs, uint64_t seed);
std::vector<Tensor> moved(std::span<const Tensor> inputs, std::span<const Tensor> direction,
                          double by);
// The sum of products of a gradient (its tensors in the order of the mask) with a direction, and
// of their sizes.
struct Product {
  double value = 0;
  double size = 0;
};
Product product(std::span<const Tensor> gradients, std::span<const Tensor> direction);

struct Slope {
  double value = 0;
  bool is_smooth = true;  // differences of two step widths agree
};
// The gradient of one real output, by central differences of the fourth order.
Slope measured_slope(const Graph& graph, size_t output, std::span<const Tensor> inputs,
                     std::span<const Tensor> direction);

std::vector<Tensor> evaluated(const Graph& graph, std::span<const Tensor> inputs);

// The derivative of a graph's only output by all reals, along a random direction, is the slope.
void expect_derivative(const Graph& graph, std::span<const Tensor> inputs);

}  // namespace hone
