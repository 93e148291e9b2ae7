#include "timeline/task_jobs.h"

namespace hone {

TaskJobs add_tasks(SystemJobs& jobs, int64_t device, const TaskList& list,
                   std::span<const std::optional<double>> seconds,
                   std::span<const uint32_t> begin) {
  HONE_CHECK(seconds.size() == list.tasks.size(), "{} tasks, seconds of {}", list.tasks.size(),
             seconds.size());
  TaskJobs made;
  for (size_t i = 0; i < list.tasks.size(); ++i) {
    const Task& task = list.tasks[i];
    std::vector<uint32_t> after;
    for (const uint32_t before : task.after) after.push_back(made.tasks[before]);
    if (after.empty()) after.assign(begin.begin(), begin.end());
    jobs.name(task.name);
    made.tasks.push_back(seconds[i] ? jobs.compute(device, *seconds[i], std::move(after))
                                    : jobs.join(std::move(after)));
  }
  std::vector<uint32_t> all = made.tasks;
  if (all.empty()) all.assign(begin.begin(), begin.end());
  made.end = jobs.join(std::move(all));
  return made;
}

}  // namespace hone
