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
  int64_t threads = 1;  // that work on a job, the calling one included
  // How long a thread looks for work, or for the end of others' work, before it sleeps; waking up
  // costs tens of microseconds. 0: it sleeps at once. An idle team uses no time after this.
  std::chrono::microseconds spin = std::chrono::microseconds(200);
};

// The threads of compiled models. A job is cut into parts of fixed size, one per thread, and run is
// over when all are done: a few microseconds while the threads spin. Allocates nothing and takes no
// lock.
//
// May be shared by executables and called from any number of threads. One job at a time has the
// workers; who comes meanwhile, a job inside of a job too, runs all of its trips alone: the cores
// are busy, and nobody waits for somebody else's job. A part that no worker has begun when the
// caller is through with its own goes to the caller: workers that sleep, or whose core is taken,
// delay nothing.
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

  // Calls body(begin, end, part) for pieces that make up [0, trips), at most `parts` and at most
  // threads() of them: contiguous, in order of `part`, of sizes that differ by one at most; perhaps
  // for fewer pieces. Each part runs on one thread at a time. The body must not throw.
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
  std::atomic<bool> is_taken_ = false;  // somebody's job has the workers
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace hone
