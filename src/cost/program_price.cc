#include "cost/program_price.h"

#include <unordered_map>

#include "cost/task_seconds.h"

namespace hone {
namespace {

Result<double> seconds_of(const program::Kernel& kernel, int64_t threads, const Cost& cost,
                          const Bindings& sizes) {
  if (kernel.body == nullptr || !kernel.schedule)
    return unsupported("nobody knows what kernel '{}' was built from", kernel.tiles.name)
        .with_hint("prices are of programs that were lowered from a plan");
  if (sizes.empty()) return cost.launch(*kernel.body, *kernel.schedule, threads);
  KernelBody body = *kernel.body;
  body.graph = HONE_TRY(specialize(body.graph, sizes));
  return cost.launch(body, *kernel.schedule, threads);
}

}  // namespace

Result<ProgramPrice> price(const Program& program, const Cost& cost, const Bindings& sizes) {
  ProgramPrice price;
  std::unordered_map<uint64_t, double> launches;
  for (const program::Kernel& kernel : program.kernels) {
    price.kernel.push_back(HONE_TRY(seconds_of(kernel, program.threads, cost, sizes)));
    launches.emplace(task_kernel(kernel), price.kernel.back());
  }
  TaskSum sum;
  for (const TaskSeconds& task : HONE_TRY(task_seconds(tasks_of(program), launches, cost, sizes)))
    sum.add(task);
  static_cast<TaskSeconds&>(price) = sum.value();
  return price;
}

}  // namespace hone
