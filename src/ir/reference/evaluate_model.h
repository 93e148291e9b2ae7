#pragma once

#include <span>
#include <vector>

#include "ir/model.h"
#include "ir/reference/evaluate.h"

namespace hone {

// Runs the segments one after the other, each graph by evaluate(). What passes between segments has
// its declared element type in every mode; only within a graph does `wide` keep more.
Result<std::vector<Tensor>> evaluate_model(const Model& model, std::span<const Tensor> inputs,
                                           const EvalOptions& options = {});

}  // namespace hone
