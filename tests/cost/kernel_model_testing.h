#pragma once

#include "base/rng.h"
#include "cost/kernel_model.h"
#include "target/fingerprint.h"

namespace hone {

// A model with random networks that has seen everything of these kinds.
inline KernelModel random_model(const Target& target, uint64_t seed) {
  Rng rng(seed);
  const auto draw = [&](size_t count, double scale) {
    std::vector<float> numbers;
    for (size_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>(scale * rng.normal()));
    return numbers;
  };
  KernelModel model;
  model.target = target.name;
  model.fingerprint = fingerprint(target);
  model.core = core_fingerprint(target);
  model.programs = {"zoo:mlp", "zoo:resnet50"};
  model.width1 = 12;
  model.width2 = 7;
  for (int m = 0; m < 3; ++m)
    model.members.push_back({.input = draw(kFeatures * 12, 0.02),
                             .bias1 = draw(12, 0.1),
                             .middle = draw(12 * 7, 0.3),
                             .bias2 = draw(7, 0.1),
                             .output = draw(7, 0.3),
                             .bias3 = static_cast<float>(rng.normal())});
  model.low.fill(0);
  model.high.fill(1e6);
  model.seen = {
      {"dot chain", 20}, {"dot gemm", 20}, {"dot generic", 20}, {"dot nest", 20}, {"rows nest", 3}};
  model.deviation.fill(1);
  model.kernels.resize(2);
  model.priced = {-9.5, -11};
  model.reach = 1e6;
  model.bounds = {{"", {0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0}},
                  {"dot", {0.4, 0.3, 0.2, 0.1, 0.05, 0.04, 0.02, 0}}};
  model.lead = 0.05;
  model.caution = 0.5;
  model.levels = {{"dot", 0.25}, {"rows", -0.125}};
  return model;
}

}  // namespace hone
