#include "cost/task_seconds.h"

#include <algorithm>

namespace hone {
namespace {

class TaskPricer {
 public:
  TaskPricer(const std::unordered_map<uint64_t, double>& launches, const Cost& cost,
             const Bindings& sizes)
      : launches_(launches), cost_(cost), sizes_(sizes) {}

  Result<std::vector<TaskSeconds>> last_of(const Tasks& tasks) {
    std::vector<TaskSeconds> last;
    for (const TaskList& list : tasks.lists) {
      last.clear();
      TaskSum sum;
      for (const Task& task : list.tasks) {
        last.push_back(HONE_TRY(task_price(task, *this)));
        sum.add(last.back());
      }
      lists_.push_back(sum.value());
    }
    return last;
  }

  // The prices of a task's parts (task_price.h).
  TaskSeconds command() const { return {.commands = cost_.command()}; }
  TaskSeconds copy(double bytes) const { return {.copies = cost_.copy(bytes)}; }
  Result<TaskSeconds> launch(uint64_t kernel) const {
    return TaskSeconds{.launches = launches_.at(kernel)};
  }
  Result<TaskSeconds> list(size_t position) const { return lists_[position]; }
  double number(Dim dim) const {
    return static_cast<double>(std::max<int64_t>(dim.bind(sizes_).range().high, 0));
  }

 private:
  const std::unordered_map<uint64_t, double>& launches_;
  const Cost& cost_;
  const Bindings& sizes_;
  std::vector<TaskSeconds> lists_;  // those that others run come first
};

}  // namespace

Result<std::vector<TaskSeconds>> task_seconds(const Tasks& tasks,
                                              const std::unordered_map<uint64_t, double>& launches,
                                              const Cost& cost, const Bindings& sizes) {
  return TaskPricer(launches, cost, sizes).last_of(tasks);
}

}  // namespace hone
