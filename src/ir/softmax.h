#pragma once

#include <optional>

#include "ir/graph.h"

namespace hone {

// A softmax whose composite is expanded. Along a row of scores, the weights are exponentials of
// their distances from the row's maximum. They may be divided by the sum of these.
struct SoftmaxParts {
  ValueId scores = {}, maxima = {}, sums = {}, weights = {};
  int axis = 0;  // of scores and weights: the row
  bool is_divided = false;
};

// The softmax that makes these weights. Casts of reals to reals may stand between its ops, so
// `scores` are what is cast. None: something else makes them. Movements of maxima and sums are not
// looked at.
std::optional<SoftmaxParts> softmax_of(const Graph& graph, ValueId weights);

// The value that casts of reals to reals, or none, make this one of.
ValueId before_casts(const Graph& graph, ValueId value);

}  // namespace hone
