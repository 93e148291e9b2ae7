#pragma once

#include <memory>

#include "base/progress.h"
#include "transport/waits.h"
#include "worker/watch.h"

namespace hone::cli {

// While it lives it tells which device waits for which other one, and in which command, if that
// takes long.
class WaitTeller {
 public:
  static constexpr double kSeconds = 2;  // after which it tells of a wait

  // The progress outlives it. Without a thread to look it tells nothing.
  explicit WaitTeller(Progress& progress, double seconds = kSeconds);

 private:
  LongWaits waits_;
  std::unique_ptr<Watch> watch_;  // the last one: its thread uses the waits
};

}  // namespace hone::cli
