#pragma once

#include "base/rng.h"
#include "cost/plan_model.h"
#include "target/fingerprint.h"

namespace hone {

// A model whose members say that a task takes exp(kMost tanh(times)) times its price for each unit
// of a feature, and nothing else.
inline PlanModel plan_model_by(const Target& target, const Cost& cost, size_t feature,
                               float times) {
  constexpr size_t kWide = PlanMember::kWidth;
  PlanMember member;
  member.input.resize(kPlanFeatures * kWide);
  member.input[feature * kWide] = 1;
  member.bias0.resize(kWide);
  for (PlanMember::Round& round : member.rounds) {
    round.self.resize(kWide * kWide);
    round.self[0] = 1;
    round.heard_in.resize(kWide * kWide);
    round.heard_out.resize(kWide * kWide);
    round.bias.resize(kWide);
  }
  member.output.resize(kWide);
  member.output[0] = times;
  PlanModel model;
  model.target = target.name;
  model.fingerprint = fingerprint(target);
  model.prices = prices_hash(cost);
  model.programs = {"zoo:mlp", "zoo:resnet50"};
  model.pairs = 7;
  model.factor.fill(1);
  model.members = {member, member};
  model.lead = 0.01;
  model.gain = 0.02;
  model.judged = 3;
  return model;
}

// The place of a kind of kernels among the features.
inline size_t kind_feature(std::string_view kind) {
  const auto* const at = std::ranges::find(kKernelKinds, kind);
  return kPlanFeatures - std::size(kKernelKinds) +
         static_cast<size_t>(at - std::begin(kKernelKinds));
}

}  // namespace hone
