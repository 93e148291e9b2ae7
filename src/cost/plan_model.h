#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost/plan_graph.h"

// A learned model of whole plans as plain data: by how much each task of a plan is slower than its
// price says, for what was before it. Training makes it (learn/models/train_plan_model.h).

namespace hone {

// Networks that saw different programs. With x the features of a node less their mean, for one of
// their deviation:
//   h = relu(x input + bias0), then kRounds times
//   h = relu(h self + bias + mean of those before it heard_in + mean of those behind it heard_out)
//   a task takes its price times exp(kMost tanh(h output + output_bias))
struct PlanMember {
  static constexpr size_t kWidth = 16, kRounds = 2;
  static constexpr double kMost = 0.5;
  struct Round {
    std::vector<float> self, heard_in, heard_out;  // [kWidth, kWidth]
    std::vector<float> bias;                       // [kWidth]
    bool operator==(const Round&) const = default;
  };
  std::vector<float> input, bias0;  // [kPlanFeatures, kWidth], [kWidth]
  std::array<Round, kRounds> rounds;
  std::vector<float> output;  // [kWidth]
  float output_bias = 0;
  bool operator==(const PlanMember&) const = default;
};

struct PlanModel {
  std::string target;  // its name
  uint64_t fingerprint = 0;
  int64_t threads = 1;
  // The version of the Cost that priced what it has learned from, as a hash: by other prices other
  // plans are in doubt.
  uint64_t prices = 0;
  std::vector<std::string> programs;  // whose plans it has learned from, sorted
  int64_t pairs = 0;                  // of plans
  PlanRow mean = {}, factor = {};     // of features: 1 / deviation, or 0
  std::vector<PlanMember> members;
  // The lead by which a plan has to be faster than the planner's usual one: a logarithm. With it
  // choices gained most for programs that the networks had not seen. kNoPlanLead: none gained, so
  // no plan takes the place of the usual one.
  double lead = 0;
  // The mean logarithm of how much faster its choices were then, of this many programs.
  double gain = 0;
  int64_t judged = 0;

  bool operator==(const PlanModel&) const = default;
  bool gains() const;
};
inline constexpr double kNoPlanLead = 1;

uint64_t prices_hash(const Cost& cost);    // without its model of plans, if it has one
uint64_t hash_of(const PlanModel& model);  // of all of it

// The logarithm of a plan's seconds, as each member says it.
std::vector<double> log_seconds(const PlanModel& model, const PlanGraph& plan);
// The plan to take: the one with the largest gain over the first, which is the usual one. The gain
// has to be more than the model's lead, and surely above 0 by what members say. Else the first.
size_t best_of(const PlanModel& model, std::span<const PlanGraph> plans);

// A safetensors file, all of which a checksum covers.
Status write_plan_model(const std::filesystem::path& path, const PlanModel& model);
// Refuses what is damaged, and what was made for other features.
Result<PlanModel> read_plan_model(const std::filesystem::path& path);
Result<PlanModel> parse_plan_model(std::span<const std::byte> file, std::string_view where);
// An error says why its answers do not count: it is of another target, or of other prices.
Status check_is_for(const PlanModel& model, const Target& target, const Cost& cost);

}  // namespace hone
