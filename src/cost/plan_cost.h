#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "cost/kernel_store.h"
#include "program/tasks.h"

namespace hone {

// Numbers and their sum, which depends on the numbers alone and not on the way to them. A number
// changes in logarithmic time.
class SumTree {
 public:
  // Numbers that are left out were 0.
  void resize(size_t count);
  size_t size() const { return leaves_; }
  void set(size_t at, double value);
  double sum() const { return nodes_.empty() ? 0 : nodes_[1]; }

 private:
  size_t leaves_ = 0;          // a power of 2
  std::vector<double> nodes_;  // the children of i are 2 i and 2 i + 1
};

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

 private:
  struct Frame;
  class Parts;

  std::unique_ptr<Frame> frame_of(const FrameEditor& editor, Frame* outer, NodeId node,
                                  std::vector<bool> left_out);
  void changed(const FrameEditor& frame, uint32_t step);
  Result<double> total(Frame& frame);
  Result<double> step_seconds(Frame& frame, uint32_t step);
  Result<double> port_seconds(Frame& frame);
  Result<double> kernel_seconds(uint64_t hash, const KernelStore::Body& body);
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
