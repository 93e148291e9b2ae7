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
                             .bias3 = static_cast<float>(rng.normal()),
                             .target = {}});
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

// The same of two processors, neither of which is the target. Each has networks of its own.
inline KernelModel random_model_of_several(const Target& target, uint64_t seed) {
  KernelModel model = random_model(target, seed);
  model.target = "any processor";
  model.fingerprint = model.core = 0;
  Rng rng(seed + 1);
  for (ModelMember& member : model.members)
    for (size_t i = 0; i < kTargetFeatures * model.width1; ++i)
      member.target.push_back(static_cast<float>(0.05 * rng.normal()));
  ModelProcessors& processors = model.processors;
  for (uint64_t t = 0; t < 2; ++t) {
    Target other = target;
    other.cpu = t == 0 ? "first" : "second";
    ModelTarget& at = processors.targets.emplace_back();
    at.name = other.cpu + ", 32 KiB";
    at.fingerprint = fingerprint(other);
    at.core = core_fingerprint(other);
    for (float& each : at.features.all()) each = static_cast<float>(t) + 2;
    at.members = random_model(target, seed + 2 + t).members;
  }
  for (float& each : processors.low.all()) each = 2;
  for (float& each : processors.high.all()) each = 3;
  for (float& each : processors.mean.all()) each = 2.5;
  processors.targets[1].kernels = 2;
  processors.targets[1].prices.load = 3;
  processors.targets[1].trust = {.reach = 2,
                                 .bounds = {{"dot", {0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2}}},
                                 .lead = 0.05,
                                 .levels = {{"dot", 0.5}}};
  processors.fitted = {.reach = 3, .bounds = {}, .lead = 0.15, .levels = {{"conv", -0.25}}};
  return model;
}

}  // namespace hone
