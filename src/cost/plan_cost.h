#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "cost/kernel_store.h"
#include "cost/task_price.h"

namespace hone {

// The price of a plan while it is edited, whole or not: the sum over its tasks (program/tasks.h),
// which are those of the program that lower() would make. Threads are the target's cores and
// schedules those that `choose` gives, as far as the plan leaves them open. After an edit it makes
// and prices the tasks of steps that changed anew, and asks only for kernels that are new.
class PlanCost {
 public:
  // All live as long. One PlanCost watches a plan at a time. For a Cost without a version the store
  // keeps only facts.
  PlanCost(PlanEditor& plan, const Cost& cost, KernelStore& store, ChooseSchedule choose);
  ~PlanCost();
  PlanCost(const PlanCost&) = delete;

  // Errors are those of `choose`.
  Result<double> seconds();
  // One launch of the step's kernel; 0 of a command.
  Result<double> seconds(const FrameEditor& frame, uint32_t step);
  // The same if values had these layouts.
  using Layouts = std::vector<std::pair<ValueId, Layout>>;
  Result<double> seconds_if(const FrameEditor& frame, uint32_t step, const Layouts& layouts);
  // How the step's kernel is carried out: as the plan says, or as was chosen.
  Result<Schedule> schedule(const FrameEditor& frame, uint32_t step);
  // The step's kernel, if values had these layouts, and how it would be carried out.
  struct Launch {
    uint64_t kernel = 0;
    std::shared_ptr<const KernelFacts> facts;
    Schedule schedule;
  };
  Result<Launch> launch_if(const FrameEditor& frame, uint32_t step, const Layouts& layouts);

 private:
  struct Frame;
  class Parts;
  struct Kernel {
    uint64_t hash;
    KernelStore::Body body;
  };

  std::unique_ptr<Frame> frame_of(const FrameEditor& editor, Frame* outer, NodeId node,
                                  std::vector<bool> left_out);
  void changed(const FrameEditor& frame, uint32_t step);
  Result<TaskSeconds> total(Frame& frame);
  Result<TaskSeconds> step_seconds(Frame& frame, uint32_t step);
  Status add_ports(Frame& frame, TaskSum& sum);
  static Kernel kernel_if(const FrameEditor& frame, uint32_t step, const Layouts& layouts);
  Result<double> kernel_seconds(uint64_t hash, const KernelStore::Body& body);
  Result<Schedule> kernel_schedule(uint64_t hash, const KernelStore::Body& body);
  PricedKernel& priced_kernel(uint64_t hash, const KernelStore::Body& body);
  KernelStore::Known& known();
  int64_t threads() const;

  PlanEditor& plan_;
  const Cost& cost_;
  const std::string version_;
  KernelStore& store_;
  KernelStore own_;  // prices of a Cost without a version
  std::unique_ptr<PricedKernel> priced_;
  std::pair<uint64_t, int64_t> priced_key_;  // its hash, for this number of threads
  const ChooseSchedule choose_;
  std::unordered_map<const FrameEditor*, Frame*> frames_;
  std::vector<Frame*> lists_;  // by the numbers that tasks have for them
  std::unique_ptr<Frame> main_;
  int64_t priced_threads_ = 0;
};

}  // namespace hone
