#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/error.h"

namespace hone {

struct TeamOptions {
  int64_t threads = 1;  // that work on a job, the caller included
  // How long a thread spins, for work or for the other threads to finish, before it sleeps. Waking
  // up costs tens of microseconds. 0: it sleeps at once.
  std::chrono::microseconds spin = std::chrono::microseconds(200);
};

// The threads of compiled models. run() cuts a job into one part per thread and returns when all
// parts are done, which takes a few microseconds while the threads spin. It allocates nothing and
// takes no lock.
//
// Several executables and threads may share a team. One job at a time has the workers. A caller
// that comes meanwhile, or from inside of a job, runs all of its trips itself and waits for no
// other job. A caller that has done its own part takes over the parts that no worker has begun. So
// workers that sleep, or whose core is taken, delay nothing.
//
// A forked child has no workers and must not use the team.
class Team {
 public:
  static constexpr int64_t kMaxThreads = 1024;

  // ErrorCode::limit if the system does not give as many threads.
  static Result<std::shared_ptr<Team>> create(const TeamOptions& options);
  ~Team();  // not while a job runs
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int64_t threads() const { return static_cast<int64_t>(workers_.size()) + 1; }

  // Calls body(begin, end, part) for contiguous pieces of [0, trips), in order of `part`, of sizes
  // that differ by one at most. There are at most `parts` pieces and at most threads(), perhaps
  // fewer. Each part runs on one thread at a time. The body must not throw.
  template <class Body>
  void run(int64_t trips, int64_t parts, const Body& body) {
    static_assert(std::is_nothrow_invocable_v<const Body&, int64_t, int64_t, int64_t>);
    const auto call = [](const void* erased, int64_t begin, int64_t end, int64_t part) noexcept {
      (*static_cast<const Body*>(erased))(begin, end, part);
    };
    run(trips, parts, Callable{&body, call});
  }

 private:
  struct Callable {
    const void* object;
    void (*call)(const void* object, int64_t begin, int64_t end, int64_t part) noexcept;
  };
  struct Job;
  class Worker;

  explicit Team(const TeamOptions& options);
  void run(int64_t trips, int64_t parts, Callable body);

  const std::chrono::nanoseconds spin_;
  std::atomic<bool> is_taken_ = false;  // a job has the workers
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace hone
