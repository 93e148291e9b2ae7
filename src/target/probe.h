#pragma once

#include "base/progress.h"
#include "target/target.h"

namespace hone {

struct ProbeOptions {
  double seconds = 10;    // of measuring, shared by all rates; at least five samples of each
  Isa isa = Isa::avx512;  // no instructions above this level
  Progress* progress = &no_progress();
  const CancelToken* cancel = nullptr;
};

inline constexpr double kMaxProbeSeconds = 60;

// Measures the rates of this machine. Each rate is the one that one of ten samples of a millisecond
// or less reaches. Samples are taken in rounds over all rates, so a spell of other work on the
// machine spoils no single rate. Extensions that the operating system refuses to this process are
// left out.
Result<Target> probe_target(const ProbeOptions& options);

// The target with the peaks of this machine as they are now, the best of the samples of each type:
// for who says which share of them something reaches. Takes this many seconds in all; the machine
// has all instructions of the target.
Result<Target> with_peaks_of_now(Target target, double seconds, const CancelToken* cancel);

}  // namespace hone
