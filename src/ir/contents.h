#pragma once

#include <optional>
#include <unordered_map>

#include "ir/graph.h"

namespace hone {

// What is known of values before anything runs: shapes are often computed by the graph itself
// (the size of an axis, times two, joined with a constant), and a front end or a pass wants them as
// dims. Works on a graph that is still growing; answers are remembered.
class Contents {
 public:
  // Tensors with more elements are not followed.
  static constexpr int64_t kMaxElements = 4096;

  explicit Contents(const Graph& graph) : graph_(graph) {}

  // The elements of an integer or bool value in row-major order (bools as 0 and 1): numbers, or
  // expressions of the graph's symbols. Null if they depend on data, or on what no dim can say.
  std::optional<Dims> of(ValueId v);

  // The value of any type if it is computed from constants alone; null if it is not.
  std::optional<Tensor> constant(ValueId v);

  // Lets the elements of a value, say of a parameter, be known from elsewhere.
  void assume(ValueId v, Dims elements);

 private:
  const Graph& graph_;
  std::unordered_map<uint32_t, std::optional<Dims>> elements_;
  std::unordered_map<uint32_t, std::optional<Tensor>> constants_;
};

}  // namespace hone
