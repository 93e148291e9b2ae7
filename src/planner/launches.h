#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cost/cost.h"

namespace hone {

class PlanningFrame;

// A Cost that may be wrong (Cost::sureness()), which looks at each kernel once, and is asked about
// each of its schedules once.
class AskedCost {
 public:
  AskedCost(const Cost& cost, int64_t threads) : cost_(cost), threads_(threads) {}

  const Votes& votes(uint64_t kernel, const std::shared_ptr<const KernelFacts>& facts,
                     const Schedule& schedule);
  // None: it is trusted with schedules alone.
  std::optional<double> sureness() const { return cost_.sureness(); }

 private:
  const Cost& cost_;
  const int64_t threads_;
  struct Asked {
    std::unique_ptr<PricedKernel> kernel;
    std::deque<std::pair<Schedule, Votes>> votes = {};
  };
  std::map<uint64_t, Asked> asked_;  // by kernel
};

// The launches of kernels that a part of a plan has: what two ways to plan it differ in.
class Launches {
 public:
  // A kernel has one schedule in a plan.
  void add(uint64_t kernel, std::shared_ptr<const KernelFacts> facts, const Schedule& schedule);

  // The gain over the usual launches by the votes of the Cost, if it is as sure as that asks for:
  // a logarithm. Launches that both have cost the same. None: it is not sure, or it gains nothing,
  // or no more than the lead, a share.
  std::optional<double> sure_gain(const Launches& usual, AskedCost& cost, double lead = 0) const;

 private:
  struct Launch {
    std::shared_ptr<const KernelFacts> facts;
    Schedule schedule;
    double count = 0;
  };
  // The votes about launches that the others do not have.
  Votes votes_beside(const Launches& others, AskedCost& cost) const;

  std::map<uint64_t, Launch> launches_;  // by kernel
};

// One decision of several ways, each with its usual price and its launches.
class SureChoice {
 public:
  // It takes the place of another one only if it is cheaper by the lead, a share.
  void add(double seconds, Launches launches, double lead = 0);
  // The way that the usual price takes, unless the other Cost is sure of a gain; of several the one
  // with the largest.
  size_t best(AskedCost* other) const;
  double seconds(size_t way) const { return ways_[way].seconds; }

 private:
  struct Way {
    double seconds;
    Launches launches;
    double lead;
  };
  std::vector<Way> ways_;
  size_t usual_ = 0;
};

// All of a frame that has its schedules.
Launches launches_of(PlanningFrame& frame);

}  // namespace hone
