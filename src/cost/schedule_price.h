#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "cost/kernel_price.h"
#include "kernel/stages.h"

namespace hone {

// What a kernel takes under one schedule after another, whatever their algorithm: for searches,
// which make one per kernel. What schedules share is found for the first of them and kept, so it is
// for one thread at a time.
class SchedulePrice {
 public:
  // `threads` is how many there are at most.
  SchedulePrice(KernelBody body, Target target, int64_t threads);

  // Seconds, of any schedule that check_schedule() accepts. A chain costs what its stages do, each
  // as often as there are blocks.
  double seconds(const Schedule& schedule);

 private:
  // Stages are the same, apart from their windows, for chains that keep the same values and take
  // the same dims in blocks; a stage is read anew for each window.
  struct Cut {
    std::vector<Stage> stages;
    std::vector<std::map<std::vector<int64_t>, KernelPrice>> prices;  // by stage, by window
  };
  using CutKey = std::pair<std::vector<int64_t>, std::vector<int>>;  // kept; the dims, ascending
  static constexpr size_t kMaxKept = 1024;  // stages with their windows, 30 KB each at most

  double chain_seconds(const Schedule& chain);
  Cut& cut_of(const Schedule& chain);
  const KernelPrice& stage_price(Cut& cut, size_t stage, const Schedule& chain);

  const KernelBody body_;
  const Target target_;
  const int64_t threads_;
  std::optional<KernelPrice> whole_;  // of nests and gemms
  std::map<CutKey, Cut> cuts_;
  size_t kept_ = 0;  // prices in them
};

}  // namespace hone
