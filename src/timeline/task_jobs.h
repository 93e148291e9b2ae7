#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "program/tasks.h"
#include "timeline/system_jobs.h"

// The jobs of a program on one device.

namespace hone {

struct TaskJobs {
  std::vector<uint32_t> tasks;  // the job with which each one ends
  uint32_t end = 0;             // of all
};

// Adds the tasks of a list on the queue of a device, which takes the ready one that stands first.
// `seconds` has what each task takes, with the lists that it runs. One without is not computing: it
// ends with the tasks that it comes after, and with what the caller lets it wait for. All begin
// after `begin`.
TaskJobs add_tasks(SystemJobs& jobs, int64_t device, const TaskList& list,
                   std::span<const std::optional<double>> seconds,
                   std::span<const uint32_t> begin = {});

}  // namespace hone
