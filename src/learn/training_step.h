#pragma once

#include <string>
#include <vector>

#include "formats/npz.h"
#include "ir/graph.h"
#include "learn/optimizers.h"

namespace hone {

struct StepOptions {
  // "mse" or "cross-entropy", of the model's first real output, or the name of an output that is
  // the loss.
  std::string loss = "mse";
  const Optimizer* optimizer = nullptr;  // null: gradients are outputs, and nothing is updated
  // Weights that stay as they are, by name; a * at the end stands for any rest.
  std::vector<std::string> frozen = {};
};

struct TrainingStep {
  // From the model's inputs, the target ("target" or "labels"), "rate", "step", the weights and
  // the optimizer's states to the loss, then what the next step's "step", weights and states are.
  // These are donated. Without an optimizer: to the loss and the gradients.
  Graph graph;
  std::vector<NamedTensor> state;  // those of the inputs that a first step begins with
};

// A training step of a model whose weights are constants. Weights are its real constants of rank 1
// and more on which the loss depends; the means and variances of norms are not weights. An error
// says which node is in the way if the loss has no derivative.
Result<TrainingStep> training_step(const Graph& model, const StepOptions& options);

}  // namespace hone
