#include "cost/table_cost.h"

#include "kernel/schedule_text.h"
#include "plan/planned_kernels.h"

namespace hone {

class TableCost::Kernel : public PricedKernel {
 public:
  Kernel(std::shared_ptr<const Table> table, uint64_t hash, std::unique_ptr<PricedKernel> otherwise)
      : table_(std::move(table)), hash_(hash), otherwise_(std::move(otherwise)) {}

  void price(std::span<const Schedule> schedules, double limit,
             std::span<double> seconds) override {
    otherwise_->price(schedules, limit, seconds);
    for (size_t i = 0; i < schedules.size(); ++i)
      if (const auto known = find(schedules[i]); known != table_->end()) seconds[i] = known->second;
  }
  std::vector<PriceTerm> terms(const Schedule& schedule) override {
    if (find(schedule) != table_->end()) return {};
    return otherwise_->terms(schedule);
  }
  std::string_view source(const Schedule& schedule) override {
    return find(schedule) != table_->end() ? "measured" : otherwise_->source(schedule);
  }

 private:
  Table::const_iterator find(const Schedule& schedule) const {
    return table_->find({hash_, print(schedule)});
  }

  const std::shared_ptr<const Table> table_;
  const uint64_t hash_;
  const std::unique_ptr<PricedKernel> otherwise_;
};

bool TableCost::has(uint64_t kernel_hash, const Schedule& schedule) const {
  return table_->contains({kernel_hash, print(schedule)});
}

void TableCost::set(uint64_t kernel_hash, const Schedule& schedule, double seconds) {
  (*table_)[{kernel_hash, print(schedule)}] = seconds;
}

Status TableCost::add(const Graph& graph, const Plan& plan, std::span<const CommandTime> times) {
  struct Sum {
    const Schedule* schedule = nullptr;
    double seconds = 0;
    int64_t runs = 0;
  };
  const std::map<std::string, PlannedKernel> kernels = HONE_TRY(planned_kernels(graph, plan));
  std::map<uint64_t, Sum> sums;
  for (const CommandTime& time : times) {
    const auto kernel = kernels.find(time.command);
    if (kernel == kernels.end() || time.kernel.empty() || time.runs == 0) continue;
    Sum& sum = sums[kernel->second.hash];
    sum.schedule = kernel->second.schedule;
    sum.seconds += time.least * static_cast<double>(time.runs);
    sum.runs += time.runs;
  }
  for (const auto& [hash, sum] : sums)
    set(hash, *sum.schedule, sum.seconds / static_cast<double>(sum.runs));
  return {};
}

std::unique_ptr<PricedKernel> TableCost::kernel(std::shared_ptr<const KernelFacts> facts,
                                                int64_t threads) const {
  const uint64_t hash = facts->hash;
  return std::make_unique<Kernel>(table_, hash, otherwise_->kernel(std::move(facts), threads));
}

}  // namespace hone
