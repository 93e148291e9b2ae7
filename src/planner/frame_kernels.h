#pragma once

#include <map>
#include <memory>

#include "planner/frame.h"

namespace hone {

// The kernels that a frame launches: what two ways to plan it differ in.
class FrameKernels {
 public:
  // The frame has its schedules.
  explicit FrameKernels(PlanningFrame& frame);

  // True if these cost less than the usual ones, by the votes of the Cost and as probably as it
  // asks for. Launches that both have cost the same. A Cost without sureness() is never sure.
  bool are_surely_cheaper(const FrameKernels& usual, const Cost& cost, int64_t threads) const;

 private:
  struct Launches {
    std::shared_ptr<const KernelFacts> facts;
    Schedule schedule;
    double count = 0;
  };
  std::map<uint64_t, Launches> launches_;  // by kernel: it has one schedule in a plan
};

}  // namespace hone
