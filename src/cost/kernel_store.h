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
// The schedule of a kernel that the plan leaves open.
using ChooseSchedule =
    std::function<Result<PricedSchedule>(const std::shared_ptr<const KernelFacts>& facts)>;

// What is known of kernels, by their hashes, whatever graph they stand in: facts, and by Cost and
// number of threads schedules and prices. It is for one target and one way to choose schedules. It
// outlives plans, so that a search over graphs pays only for new kernels. For one thread at a time.
class KernelStore {
 public:
  // By one Cost for one number of threads.
  struct Prices {
    std::unordered_map<uint64_t, PricedSchedule> chosen;  // by kernel
    std::unordered_map<uint64_t, double> said;            // by kernel and schedule
  };
  // References stay good.
  Prices& prices(const std::string& cost_version, int64_t threads) {
    return prices_[{cost_version, threads}];
  }
  using Body = std::function<KernelBody()>;
  const std::shared_ptr<const KernelFacts>& facts(uint64_t kernel, const Body& body) {
    std::shared_ptr<const KernelFacts>& facts = facts_[kernel];
    if (facts == nullptr) facts = std::make_shared<const KernelFacts>(body(), kernel);
    return facts;
  }

 private:
  std::map<std::pair<std::string, int64_t>, Prices> prices_;
  std::unordered_map<uint64_t, std::shared_ptr<const KernelFacts>> facts_;
};

}  // namespace hone
