#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/progress.h"
#include "log/log.h"
#include "measure/duel.h"
#include "runtime/image.h"
#include "tensor/tensor.h"

// Two ways to run one model, against each other.

namespace hone {

struct DuelOptions {
  double seconds = 2;                       // about so long, and at least kLeastRounds
  double most_seconds = INFINITY;           // who cannot do those in this time does none
  int64_t memory_bytes = int64_t{8} << 30;  // for both; on a GPU its free memory is the limit
  double run_seconds = 60;                  // for one run; on a GPU nothing stops one
  bool by_kernel = false;                   // also what each kernel takes among the others
  const CancelToken* cancel = nullptr;
  static constexpr int64_t kLeastRounds = kLeastDuelRounds;
  static constexpr int64_t kMostRounds = 24;
  static constexpr double kSampleSeconds = 1e-3;  // a sample repeats shorter runs
  static constexpr int64_t kMostRepeats = 100'000;
  // The runs of each: the first one, whose outputs are compared; then two in each round and before
  // them, where it is placed anew and for a sample.
  static constexpr int64_t kLeastRuns = 1 + 2 * (kLeastRounds + 1);
};

struct PlanDuel {
  Outcome outcome = Outcome::refused;  // of the second
  std::string detail = {};
  Duel times = {};  // if it is measured: the ratio is that of the second to the first
  // The time was too short: it is timed out, without a fault of its own.
  bool lacks_time = false;
  // About, of a run of each, one after the other, with its share of placing them; 0: it did not
  // come to it.
  double run_seconds = 0;
  // For kernels that both have, by name: all launches of a run. Empty unless it was asked for.
  std::map<std::string, Duel> kernels = {};
  // How much faster the second is, and whether that is sure.
  double gain() const { return outcome == Outcome::measured ? 1 / times.ratio : 0; }
  bool is_faster() const { return outcome == Outcome::measured && times.b_is_faster(); }
  bool is_slower() const { return outcome == Outcome::measured && times.b_is_slower(); }
};

// Runs both images in turns, in a copy of this process, on these inputs; each round begins with
// both at new places in memory. The outputs of the second have to be those of the first. Errors:
// the first cannot be run; cancelled.
Result<PlanDuel> duel(const Image& first, const Image& second, std::span<const Tensor> inputs,
                      const DuelOptions& options);
// Empty, or how outputs of the second plan differ from those of the first.
std::string duel_difference(std::span<const Tensor> actual, std::span<const Tensor> expected);
// A duel as above, or made-up times in a test.
using PlanTimer =
    std::function<Result<PlanDuel>(const Image& first, const Image& second,
                                   std::span<const Tensor> inputs, const DuelOptions& options)>;

}  // namespace hone
