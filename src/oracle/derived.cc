#include "oracle/derived.h"

#include <algorithm>
#include <numeric>

#include "base/rng.h"
#include "grad/grad.h"
#include "grad/rematerialize.h"
#include "ir/derivative.h"
#include "ir/functional.h"

namespace hone {
namespace {

// Summed in f32, as a sum in 16 bits may leave their range.
Value weighted_sum(Value y, Rng& rng) {
  std::vector<double> weights(static_cast<size_t>(y.type().static_elements()));
  for (double& weight : weights) weight = rng.uniform(0.5, 1.5);
  Ints axes(static_cast<size_t>(y.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  const Type type = y.type().with_dtype(DType::f32);
  const Value weight = y.builder().constant(Tensor::from_reals(type, weights));
  return reduce_sum(cast(y, DType::f32) * weight, axes);
}

Storage random_storage(Rng& rng) {
  constexpr double kShares[] = {0, 0.5, 0.9};
  if (rng.chance(0.5)) return kStoreAll;
  return {.leaves_out_cheap = rng.chance(0.5),
          .share = rng.pick(kShares),
          .parts = static_cast<size_t>(rng.between(1, 3))};
}

}  // namespace

std::optional<Graph> with_gradients(const Graph& graph, uint64_t seed) {
  if (!graph.is_static()) return {};
  Rng rng(seed);
  Builder b(graph.name());
  std::vector<Value> inputs;
  for (ValueId v : graph.inputs()) inputs.push_back(b.parameter(graph.name(v), graph.type(v)));
  std::vector<Value> outputs = b.inlined(graph, inputs);
  Value loss;
  for (Value y : outputs) {
    if (!is_differentiable(y.type())) continue;
    const Value sum = weighted_sum(y, rng);
    loss = loss ? loss + sum : sum;
  }
  if (!loss) return {};
  outputs.push_back(loss);
  const Result<Graph> summed = b.finish(outputs);
  if (!summed.ok()) return {};
  Mask wanted;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Mask one(inputs.size(), false);
    one[i] = is_differentiable(summed->type(summed->inputs()[i]));
    wanted.push_back(one[i] && changing_outputs(*summed, one).back());
  }
  if (!any(wanted)) return {};
  Result<Graph> derived = grad(*summed, static_cast<uint32_t>(outputs.size() - 1), wanted);
  if (!derived.ok()) return {};
  std::vector<uint32_t> forward(outputs.size());
  std::iota(forward.begin(), forward.end(), 0);
  return rematerialize(*derived, forward, random_storage(rng)).value().graph;
}

}  // namespace hone
