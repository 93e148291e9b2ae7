#pragma once

#include <sched.h>

#include <optional>
#include <vector>

namespace hone {

// The number of one CPU for each core that this process may use; never empty. Hyperthreads of a
// core share its units, so a core counts once.
std::vector<int> cpu_of_each_core();

// Binds the calling thread to one CPU until the end. Best effort.
class PinnedThread {
 public:
  explicit PinnedThread(int cpu);
  ~PinnedThread();
  PinnedThread(const PinnedThread&) = delete;

 private:
  std::optional<cpu_set_t> before_;  // the thread's affinity; none: not known, not changed
};

}  // namespace hone
