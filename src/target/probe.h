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

// The machine at hand with measured rates. Each is what one of ten samples of a millisecond or less
// reaches, taken in rounds over all rates, so that what else the machine does for a while spoils no
// rate alone. Extensions that the operating system refuses to this process are left out.
Result<Target> probe_target(const ProbeOptions& options);

}  // namespace hone
