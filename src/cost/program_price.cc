#include "cost/program_price.h"

#include <algorithm>
#include <unordered_map>

namespace hone {
namespace {

class ProgramPricer {
 public:
  ProgramPricer(const Program& program, const Cost& cost, const Bindings& sizes)
      : program_(program), cost_(cost), sizes_(sizes) {}

  Result<ProgramPrice> run() {
    ProgramPrice price;
    for (const program::Kernel& kernel : program_.kernels) {
      price.kernel.push_back(HONE_TRY(seconds_of(kernel)));
      launches_.emplace(task_kernel(kernel), price.kernel.back());
    }
    for (const TaskList& list : tasks_of(program_).lists) {
      TaskSum sum;
      for (const Task& task : list.tasks) sum.add(HONE_TRY(task_price(task, *this)));
      lists_.push_back(sum.value());
    }
    static_cast<TaskSeconds&>(price) = lists_.back();
    return price;
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
  Result<double> seconds_of(const program::Kernel& kernel) const {
    if (kernel.body == nullptr || !kernel.schedule)
      return unsupported("nobody knows what kernel '{}' was built from", kernel.tiles.name)
          .with_hint("prices are of programs that were lowered from a plan");
    if (sizes_.empty()) return cost_.launch(*kernel.body, *kernel.schedule, program_.threads);
    KernelBody body = *kernel.body;
    body.graph = HONE_TRY(specialize(body.graph, sizes_));
    return cost_.launch(body, *kernel.schedule, program_.threads);
  }

  const Program& program_;
  const Cost& cost_;
  const Bindings& sizes_;
  std::unordered_map<uint64_t, double> launches_;
  std::vector<TaskSeconds> lists_;  // those that others run come first
};

}  // namespace

Result<ProgramPrice> price(const Program& program, const Cost& cost, const Bindings& sizes) {
  return ProgramPricer(program, cost, sizes).run();
}

}  // namespace hone
