#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "cost/cost.h"

namespace hone {

struct PricedSchedule {
  Schedule schedule;
  double seconds = 0;
};
// The schedule of a kernel that the plan leaves open, for this number of threads.
using ChooseSchedule = std::function<Result<PricedSchedule>(
    const std::shared_ptr<const KernelFacts>& facts, int64_t threads)>;

// Keeps facts about kernels by their hashes, for all graphs: facts, and by Cost and
// number of threads schedules and prices. It outlives plans, so that a search over graphs pays only
// for new kernels. It grows with them; clear() gives their memory back. For one thread at a time.
class KernelStore {
 public:
  // It serves one target and one way to choose schedules; another one is a fault of the caller.
  void serve(const Target& target, const std::string& choice) {
    const std::string served = print(target) + choice;
    if (served_.empty()) served_ = served;
    HONE_CHECK(served_ == served, "a store of kernels for another target or choice");
  }
  // For one Cost and one number of threads.
  struct Known {
    std::unordered_map<uint64_t, PricedSchedule> chosen;  // by kernel
    std::unordered_map<uint64_t, double> said;            // by kernel and schedule
  };
  // References stay good until clear().
  Known& known(const std::string& cost_version, int64_t threads) {
    return known_[{cost_version, threads}];
  }
  using Body = std::function<KernelBody()>;
  const std::shared_ptr<const KernelFacts>& facts(uint64_t kernel, const Body& body) {
    std::shared_ptr<const KernelFacts>& facts = facts_[kernel];
    if (facts == nullptr) facts = std::make_shared<const KernelFacts>(body(), kernel);
    return facts;
  }
  void clear() {
    known_.clear();
    facts_.clear();
  }

 private:
  std::string served_;
  std::map<std::pair<std::string, int64_t>, Known> known_;
  std::unordered_map<uint64_t, std::shared_ptr<const KernelFacts>> facts_;
};

}  // namespace hone
