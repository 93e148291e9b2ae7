#pragma once

#include "target/cores.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

namespace hone {

// Threads that spin while they wait for work, as those of a busy compiled model do; each on a core
// of its own if there are enough. Only for measuring: the team keeps its cores busy all its life.
class SpinTeam {
 public:
  // The calling thread is one of them. Throws std::system_error if a thread cannot be started.
  explicit SpinTeam(int64_t threads);
  ~SpinTeam();
  SpinTeam(const SpinTeam&) = delete;

  // Calls body(i) for each i in 0..threads-1, each on its thread, the calling one being 0.
  void run(const std::function<void(int64_t)>& body);

 private:
  void work(int64_t index);
  int cpu(int64_t index) const;
  void stop();

  const std::vector<int> cpus_ = cpu_of_each_core();
  std::optional<PinnedThread> pinned_;                  // the calling thread
  const std::function<void(int64_t)>* body_ = nullptr;  // null with a new round: the end
  alignas(64) std::atomic<uint64_t> round_ = 0;
  alignas(64) std::atomic<int64_t> busy_ = 0;  // workers that have not ended this round
  std::vector<std::thread> workers_;
};

}  // namespace hone
