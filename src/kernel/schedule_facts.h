#pragma once

#include "kernel/contraction.h"
#include "kernel/group_work.h"

namespace hone {

// What the check of a schedule asks of the body: the same for all schedules of it.
struct ScheduleFacts {
  explicit ScheduleFacts(const KernelBody& body);

  std::vector<NodeId> nodes;  // that compute
  KernelSpace space;
  GroupWork work;  // of a nest; none, if not all nodes have points
  Result<Contraction> contraction;
};

// check_schedule() for whoever asks about many schedules of a body.
Status check_schedule(const KernelBody& body, const ScheduleFacts& facts, const Schedule& schedule,
                      const Target& target);

}  // namespace hone
