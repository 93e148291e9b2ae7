#pragma once

#include "base/rng.h"
#include "place/policy.h"

namespace hone::tested {

// Weights that are drawn: a policy that knows nothing, but looks at everything.
inline std::vector<NamedTensor> random_policy_weights(uint64_t seed, float scale = 0.3F) {
  std::vector<NamedTensor> weights;
  for (const auto& [name, dims] : PlacePolicy::shapes()) {
    Dims all;
    size_t count = 1;
    for (const int64_t dim : dims) all.push_back(dim), count *= static_cast<size_t>(dim);
    std::vector<float> values(count);
    fill_uniform(values, seed++, -scale, scale);
    weights.push_back(
        {name, Tensor::of(Type::get(DType::f32, all), std::span<const float>(values))});
  }
  return weights;
}

}  // namespace hone::tested
