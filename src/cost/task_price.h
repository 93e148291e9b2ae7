#pragma once

#include "base/exact_sum.h"
#include "program/tasks.h"

namespace hone {

// The seconds of tasks, split by what takes them.
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

// The sum over the tasks of a list. Their order does not matter: a plan that is edited adds them up
// in another one than its program, and the sums are equal to the last bit.
class TaskSum {
 public:
  void add(const TaskSeconds& task) {
    launches_.add(task.launches);
    copies_.add(task.copies);
    commands_.add(task.commands);
  }
  void remove(const TaskSeconds& task) {
    launches_.remove(task.launches);
    copies_.remove(task.copies);
    commands_.remove(task.commands);
  }
  TaskSeconds value() const { return {launches_.value(), copies_.value(), commands_.value()}; }

 private:
  ExactSum launches_, copies_, commands_;
};

// The price of a task. `parts` prices its parts by
//   TaskSeconds command(), copy(double bytes)
//   Result<TaskSeconds> launch(uint64_t kernel), list(size_t position): TaskSum::value()
//   double number(Dim): the largest that the dim can be
// Commands run one after another. A branch costs as much as the dearer of its lists.
template <class Parts>
Result<TaskSeconds> task_price(const Task& task, Parts& parts) {
  TaskSeconds sum;
  for (int64_t i = 0; i < task.commands; ++i) sum += parts.command();
  for (uint64_t kernel : task.kernels) sum += HONE_TRY(parts.launch(kernel));
  for (Dim bytes : task.copies) sum += parts.copy(parts.number(bytes));
  TaskSeconds most;
  for (size_t list : task.lists) {
    const TaskSeconds one = HONE_TRY(parts.list(list));
    if (!task.is_branch)
      sum += one;
    else if (one.total() > most.total())
      most = one;
  }
  sum += most;
  if (!task.rounds) return sum;
  TaskSeconds round;
  for (size_t list : task.rounds->lists) round += HONE_TRY(parts.list(list));
  for (Dim bytes : task.rounds->copies) round += parts.copy(parts.number(bytes));
  sum += parts.number(task.rounds->trips) * round;
  return sum;
}

}  // namespace hone
