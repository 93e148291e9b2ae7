#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/progress.h"
#include "log/log.h"
#include "measure/timing.h"
#include "runtime/image.h"
#include "tensor/tensor.h"

// Two ways to run one model, against each other.

namespace hone {

struct DuelOptions {
  double seconds = 2;                       // about so long, and at least kLeastRounds
  int64_t memory_bytes = int64_t{8} << 30;  // for both
  double run_seconds = 60;                  // for one run
  const CancelToken* cancel = nullptr;
  static constexpr int64_t kLeastRounds = 6;  // for an interval
  static constexpr int64_t kMostRounds = 40;
};

struct PlanDuel {
  Outcome outcome = Outcome::refused;  // of the second
  std::string detail = {};
  Duel times = {};  // if it is measured: the ratio is that of the second to the first
  // How much faster the second is, and whether that is sure.
  double gain() const { return outcome == Outcome::measured ? 1 / times.ratio : 0; }
  bool is_faster() const {
    return outcome == Outcome::measured && times.interval && times.interval->high < 1;
  }
};

// Runs both images in turns, in a copy of this process, on these inputs. The outputs of the second
// have to be those of the first. Errors: the first cannot be run; cancelled.
Result<PlanDuel> duel(const Image& first, const Image& second, std::span<const Tensor> inputs,
                      const DuelOptions& options);

}  // namespace hone
