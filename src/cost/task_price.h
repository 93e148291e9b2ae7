#pragma once

#include "program/tasks.h"

namespace hone {

// Seconds of tasks, by what takes them.
struct TaskSeconds {
  double launches = 0;
  double copies = 0;
  double commands = 0;  // beginning them

  double total() const { return launches + copies + commands; }
  TaskSeconds& operator+=(const TaskSeconds& other) {
    launches += other.launches;
    copies += other.copies;
    commands += other.commands;
    return *this;
  }
  friend TaskSeconds operator*(double times, const TaskSeconds& one) {
    return {times * one.launches, times * one.copies, times * one.commands};
  }
};
inline double total_of(const TaskSeconds& seconds) { return seconds.total(); }
inline double total_of(double seconds) { return seconds; }

// The seconds of a task, as one number or as TaskSeconds. `parts` prices its parts by
//   Amount command(), copy(double bytes)
//   Result<Amount> launch(uint64_t kernel), list(size_t position)
//   double number(Dim): the largest that the dim can be
// Commands run one after another. Of the lists of a branch the dearer one counts.
template <class Amount, class Parts>
Result<Amount> task_price(const Task& task, Parts& parts) {
  Amount sum = {};
  for (int64_t i = 0; i < task.commands; ++i) sum += parts.command();
  for (uint64_t kernel : task.kernels) sum += HONE_TRY(parts.launch(kernel));
  for (Dim bytes : task.copies) sum += parts.copy(parts.number(bytes));
  Amount most = {};
  for (size_t list : task.lists) {
    const Amount one = HONE_TRY(parts.list(list));
    if (!task.is_branch)
      sum += one;
    else if (total_of(one) > total_of(most))
      most = one;
  }
  sum += most;
  if (!task.rounds) return sum;
  Amount round = {};
  for (size_t list : task.rounds->lists) round += HONE_TRY(parts.list(list));
  for (Dim bytes : task.rounds->copies) round += parts.copy(parts.number(bytes));
  sum += parts.number(task.rounds->trips) * round;
  return sum;
}

}  // namespace hone
