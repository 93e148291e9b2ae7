#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "cost/cost.h"
#include "plan/plan.h"
#include "runtime/executable.h"

namespace hone {

// Launches that somebody measured, by kernel and schedule; what the table lacks has the price of
// another Cost. Measurements change, so nothing that was chosen by them is kept.
class TableCost : public Cost {
 public:
  explicit TableCost(std::shared_ptr<const Cost> otherwise)
      : otherwise_(std::move(otherwise)), table_(std::make_shared<Table>()) {}

  void set(uint64_t kernel_hash, const Schedule& schedule, double seconds);
  bool has(uint64_t kernel_hash, const Schedule& schedule) const;
  // Adds the times of launches in runs of the prepared graph under the complete plan: the fastest
  // of each command, and the mean over the commands of a kernel.
  Status add(const Graph& graph, const Plan& plan, std::span<const CommandTime> times);
  size_t size() const { return table_->size(); }

  std::string version() const override { return ""; }
  std::unique_ptr<PricedKernel> kernel(std::shared_ptr<const KernelFacts> facts,
                                       int64_t threads) const override;
  double copy(double bytes) const override { return otherwise_->copy(bytes); }
  double command() const override { return otherwise_->command(); }

 private:
  using Table = std::map<std::pair<uint64_t, std::string>, double>;  // schedules by their text
  class Kernel;

  const std::shared_ptr<const Cost> otherwise_;
  const std::shared_ptr<Table> table_;  // kernels that were made of it read it, too
};

}  // namespace hone
