#pragma once

#include <memory>

#include "ir/text.h"
#include "kernel/schedule_space.h"
#include "rewrite/prepare.h"
#include "tests/program/random_kernels.h"

namespace hone::tested {

// A kernel that takes microseconds, with schedules to choose from.
inline std::shared_ptr<const KernelFacts> softmax_facts() {
  return std::make_shared<const KernelFacts>(body_of_all(
      prepare(parse_graph("graph @g(%x: f32[30, 64]) { %y = softmax %x return %y }").value())
          .value()));
}

inline Schedule simplest_schedule(const KernelFacts& facts, const Target& target) {
  return ScheduleSpace(facts.body, facts, target).simplest();
}

}  // namespace hone::tested
