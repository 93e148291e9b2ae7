#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/functional.h"

// Optimizers say how a weight follows its gradient. An optimizer is a row of kOptimizers and
// nothing else.

namespace hone {

// The inputs of an update beside the weight: values of the element type that it computes in.
struct UpdateInputs {
  Value gradient;
  std::span<const Value> states;  // of this weight, one for each name of the optimizer
  Value rate;                     // how far a step goes
  Value step;                     // 1, 2, ...
};
struct Updated {
  Value weight;
  std::vector<Value> states;
};

struct Optimizer {
  std::string_view name;
  std::string_view doc;
  double rate;                               // to begin with
  std::span<const std::string_view> states;  // each of the weight's shape, 0 to begin with
  Updated (*update)(Value weight, const UpdateInputs& inputs);
};

std::span<const Optimizer> optimizers();
Result<const Optimizer*> find_optimizer(std::string_view name);  // an error lists them

}  // namespace hone
