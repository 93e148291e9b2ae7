#include "learn/optimizers.h"

#include <cmath>

#include "base/text.h"

namespace hone {
namespace {

constexpr double kMomentum = 0.9;
constexpr double kMeanDecay = 0.9, kSquareDecay = 0.999, kEpsilon = 1e-8;
constexpr double kWeightDecay = 0.01;

Updated sgd(Value weight, const UpdateInputs& in) { return {weight - in.rate * in.gradient, {}}; }

Updated momentum(Value weight, const UpdateInputs& in) {
  const Value velocity = kMomentum * in.states[0] + in.gradient;
  return {weight - in.rate * velocity, {velocity}};
}

// The running mean starts at 0; this is the sum of the shares that it has seen by now.
Value seen(Value step, double decay) { return 1 - exp(step * std::log(decay)); }

Updated adam(Value weight, const UpdateInputs& in) {
  const Value mean = kMeanDecay * in.states[0] + (1 - kMeanDecay) * in.gradient;
  // States are inputs: numbers below 0 have no root.
  const Value square =
      kSquareDecay * maximum(in.states[1], 0) + (1 - kSquareDecay) * (in.gradient * in.gradient);
  const Value root = sqrt(square / seen(in.step, kSquareDecay));
  const Value move = mean / seen(in.step, kMeanDecay) / (root + kEpsilon);
  return {weight - in.rate * move, {mean, square}};
}

Updated adamw(Value weight, const UpdateInputs& in) {
  return adam(weight - (in.rate * kWeightDecay) * weight, in);
}

constexpr std::string_view kVelocity[] = {"velocity"};
constexpr std::string_view kMoments[] = {"mean", "square"};

constexpr Optimizer kOptimizers[] = {
    {"sgd", "a step down the gradient", 0.01, {}, sgd},
    {"momentum", "sgd along a sum of gradients that fades by 0.9", 0.01, kVelocity, momentum},
    {"adam", "each number by the mean and the root mean square of its gradients", 1e-3, kMoments,
     adam},
    {"adamw", "adam, and weights decay by 0.01 of the rate", 1e-3, kMoments, adamw}};

}  // namespace

std::span<const Optimizer> optimizers() { return kOptimizers; }

Result<const Optimizer*> find_optimizer(std::string_view name) {
  std::vector<std::string> names;
  for (const Optimizer& each : kOptimizers) {
    if (each.name == name) return &each;
    names.emplace_back(each.name);
  }
  return usage_error("there is no optimizer '{}'", name)
      .with_hint(fmt::format("there are {}", join(names, ", ")));
}

}  // namespace hone
