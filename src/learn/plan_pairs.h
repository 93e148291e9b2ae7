#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cost/plan_graph.h"
#include "formats/npz.h"

// Plans of one program that ran in turns: what models of whole plans learn from. A data set has a
// file for each program, "plans/NAME.npz" (docs/datasets.md).

namespace hone {

// The second of two plans against the first.
struct PlanPair {
  uint32_t first = 0, second = 0;  // of PlanPairs::plans
  float ratio = 0;                 // log(seconds of the second / seconds of the first)
  float noise = 0;                 // a deviation of that
  bool operator==(const PlanPair&) const = default;
};

// The request of a build that has tried all of its plans. No plans: none has.
struct TriedPlans {
  int64_t seed = 0, plans = 0;
  bool has_tuned = false;  // the best plan of a log was one of them, if it had any
  bool operator==(const TriedPlans&) const = default;
};

struct PlanPairs {
  std::string program;
  uint64_t target = 0;  // its fingerprint
  int64_t threads = 1;
  uint64_t prices = 0;           // prices_hash() of the Cost that priced them
  std::vector<PlanGraph> plans;  // the first is the planner's usual one
  // For each plan: the planner would ask a model about it (best_of_few()). Others teach alone.
  std::vector<bool> is_offered;
  std::vector<PlanPair> pairs;
  TriedPlans tried;
  bool operator==(const PlanPairs&) const = default;
};

inline constexpr size_t kMostPlans = 4096;  // of a program

std::filesystem::path plan_pairs_path(const std::filesystem::path& set, std::string_view program);

std::vector<NamedTensor> arrays_of(const PlanPairs& pairs);
// Refuses features of another version and what is misshapen, out of range or not a number. Shares
// of a plan's price are 1 together; a pair is of two plans, and there once.
Result<PlanPairs> plan_pairs_of(std::span<const NamedTensor> arrays);
Status write_plan_pairs(const std::filesystem::path& path, const PlanPairs& pairs);
Result<PlanPairs> read_plan_pairs(const std::filesystem::path& path);
// All files of a data set in the order of their names; none is an error.
Result<std::vector<PlanPairs>> read_all_plan_pairs(const std::filesystem::path& set);

}  // namespace hone
