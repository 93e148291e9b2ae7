#include "base/team.h"

#include <algorithm>
#include <span>
#include <system_error>
#include <thread>

#include "base/signal_stack.h"

namespace hone {

namespace {

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Waits until the condition holds; false if it does not in time.
template <class Condition>
bool spin_until(const Condition& condition, std::chrono::nanoseconds limit) {
  if (condition()) return true;
  if (limit.count() == 0) return false;
  const auto end = std::chrono::steady_clock::now() + limit;
  do {
    for (int i = 0; i < 32; ++i) {  // about a microsecond
      pause_core();
      if (condition()) return true;
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace

// One part of a caller's job.
struct Team::Job {
  Callable body;
  int64_t trips;
  int64_t parts;
  int64_t part;

  void run() const noexcept {
    const int64_t size = trips / parts;
    const int64_t longer = trips % parts;  // the first ones have a trip more
    const int64_t begin = part * size + std::min(part, longer);
    body.call(body.object, begin, begin + size + (part < longer ? 1 : 0), part);
  }
};

// A worker: a thread, and the one word through which it and a caller tell each other their state.
// Each lies on cache lines that no other thread writes.
//
//   idle     -> posted    the caller has a job
//   posted   -> running   the worker takes it;      posted -> idle: the caller takes it back
//   running  -> idle      it is done
//   running  -> awaited   the caller sleeps until;  awaited -> idle: it is done, wake the caller
//   idle     -> asleep    the worker sleeps until;  asleep -> posted: wake the worker
//   any      -> stopped   the end
class alignas(128) Team::Worker {
 public:
  explicit Worker(std::chrono::nanoseconds spin) : spin_(spin), thread_([this] { work(); }) {}
  ~Worker() {
    state_.exchange(stopped, std::memory_order_acq_rel);
    state_.notify_one();
    thread_.join();
  }

  // The caller's side. The worker has no job when `post` is called.
  void post(const Job& job) {
    job_ = job;
    if (state_.exchange(posted, std::memory_order_acq_rel) == asleep) state_.notify_one();
  }
  bool take_back() {
    uint32_t expected = posted;
    return state_.load(std::memory_order_relaxed) == posted &&
           state_.compare_exchange_strong(expected, idle, std::memory_order_acquire);
  }
  const Job& job() const { return job_; }  // the one that was posted
  void join() {
    if (spin_until([&] { return state_.load(std::memory_order_acquire) != running; }, spin_))
      return;
    uint32_t expected = running;
    if (state_.compare_exchange_strong(expected, awaited, std::memory_order_acquire))
      state_.wait(awaited, std::memory_order_acquire);
  }

 private:
  enum State : uint32_t { idle, posted, running, awaited, asleep, stopped };

  void work() {
    const SignalStack signal_stack;
    for (;;) {
      const bool has_news =
          spin_until([&] { return state_.load(std::memory_order_relaxed) != idle; }, spin_);
      uint32_t expected = idle;
      if (!has_news && state_.compare_exchange_strong(expected, asleep, std::memory_order_relaxed))
        state_.wait(asleep, std::memory_order_relaxed);
      expected = posted;
      if (state_.compare_exchange_strong(expected, running, std::memory_order_acquire)) {
        job_.run();
        if (state_.exchange(idle, std::memory_order_acq_rel) == awaited) state_.notify_one();
      } else if (expected == stopped) {
        return;
      }
    }
  }

  std::atomic<uint32_t> state_ = idle;
  Job job_ = {};  // belongs to the side that may change `posted`
  const std::chrono::nanoseconds spin_;
  std::thread thread_;  // last: it uses the others
};

Result<std::shared_ptr<Team>> Team::create(const TeamOptions& options) {
  if (options.threads < 1 || options.threads > kMaxThreads) {
    return bad_input("a team of {} threads is not possible: it has 1 to {}", options.threads,
                     kMaxThreads);
  }
  if (options.spin.count() < 0)
    return bad_input("the threads cannot spin for {} us", options.spin.count());
  std::shared_ptr<Team> team(new Team(options));
  try {
    for (int64_t i = 1; i < options.threads; ++i)
      team->workers_.push_back(std::make_unique<Worker>(team->spin_));
  } catch (const std::system_error& error) {
    return over_limit("the system gives only {} of {} threads: {}", team->threads(),
                      options.threads, error.code().message());
  }
  return team;
}

Team::Team(const TeamOptions& options) : spin_(options.spin) {}

Team::~Team() = default;

void Team::run(int64_t trips, int64_t parts, Callable body) {
  if (trips <= 0) return;
  parts = std::min({parts, trips, threads()});
  if (parts <= 1 || is_taken_.exchange(true, std::memory_order_acquire)) {
    body.call(body.object, 0, trips, 0);
    return;
  }
  const std::span team(workers_.data(), static_cast<size_t>(parts - 1));
  Job job = {body, trips, parts, 0};
  for (const std::unique_ptr<Worker>& worker : team) {
    ++job.part;
    worker->post(job);
  }
  job.part = 0;
  job.run();
  for (const std::unique_ptr<Worker>& worker : team)
    if (worker->take_back()) worker->job().run();
  for (const std::unique_ptr<Worker>& worker : team) worker->join();
  is_taken_.store(false, std::memory_order_release);
}

}  // namespace hone
