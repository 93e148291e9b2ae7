#include "base/thread_pool.h"

#include "base/checked_math.h"
#include "base/error.h"
#include "base/signal_stack.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>

namespace hone {

namespace {

// Set while a thread works on a loop, so that loops inside of it run inline.
thread_local bool inside_loop = false;

class InsideLoop {
 public:
  InsideLoop() { inside_loop = true; }
  ~InsideLoop() { inside_loop = false; }
};

}  // namespace

struct ThreadPool::Loop {
  int64_t begin;
  int64_t end;
  int64_t grain;
  int64_t pieces;
  Callable body;

  std::atomic<int64_t> next = 0;  // The first piece that nobody has taken.

  // Guarded by the pool's mutex.
  int workers_inside = 0;
  std::exception_ptr error = nullptr;
  Loop* later = nullptr;

  void run_piece(int64_t piece) {
    const int64_t from = begin + piece * grain;
    body.call(body.object, from, end - from > grain ? from + grain : end);
  }
};

ThreadPool::ThreadPool(int threads) {
  HONE_CHECK(threads >= 1, "a pool of {} threads", threads);
  workers_.reserve(static_cast<size_t>(threads - 1));
  try {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // Loops do with those that there are.
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  has_work_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(int64_t begin, int64_t end, int64_t grain, Callable body) {
  HONE_CHECK(grain >= 0, "grain {}", grain);
  if (begin >= end) return;
  const std::optional<int64_t> size = checked_sub(end, begin);
  HONE_CHECK(size.has_value(), "a loop from {} to {}", begin, end);
  const bool alone = inside_loop || workers_.empty();
  // Four pieces per thread even out differences in their cost.
  if (grain == 0) grain = alone ? *size : ceil_div(*size, std::min<int64_t>(*size, 4 * threads()));
  Loop loop = {begin, end, grain, ceil_div(*size, grain), body};
  if (alone || loop.pieces == 1) {
    for (int64_t piece = 0; piece < loop.pieces; ++piece) loop.run_piece(piece);
    return;
  }
  {
    std::lock_guard lock(mutex_);
    loop.later = loops_;
    loops_ = &loop;
  }
  if (loop.pieces > static_cast<int64_t>(workers_.size())) {
    has_work_.notify_all();
  } else {
    for (int64_t piece = 1; piece < loop.pieces; ++piece) has_work_.notify_one();
  }
  share(loop);
  std::unique_lock lock(mutex_);
  unlist(loop);
  loop_left_.wait(lock, [&] { return loop.workers_inside == 0; });
  if (loop.error) std::rethrow_exception(loop.error);
}

// Takes pieces until none is left.
void ThreadPool::share(Loop& loop) {
  InsideLoop inside;
  try {
    for (;;) {
      const int64_t piece = loop.next.fetch_add(1, std::memory_order_relaxed);
      if (piece >= loop.pieces) return;
      loop.run_piece(piece);
    }
  } catch (...) {
    loop.next.store(loop.pieces, std::memory_order_relaxed);
    std::lock_guard lock(mutex_);
    if (!loop.error) loop.error = std::current_exception();
  }
}

void ThreadPool::unlist(Loop& loop) {
  for (Loop** at = &loops_; *at != nullptr; at = &(*at)->later) {
    if (*at != &loop) continue;
    *at = loop.later;
    return;
  }
}

void ThreadPool::work() {
  const SignalStack signal_stack;
  std::unique_lock lock(mutex_);
  for (;;) {
    has_work_.wait(lock, [&] { return stopping_ || loops_ != nullptr; });
    if (stopping_) return;
    Loop& loop = *loops_;
    ++loop.workers_inside;
    lock.unlock();
    share(loop);
    lock.lock();
    unlist(loop);
    // From zero on, the loop may be gone: its caller needs only the mutex.
    if (--loop.workers_inside == 0) loop_left_.notify_all();
  }
}

ThreadPool& default_pool() {
  static ThreadPool pool(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  return pool;
}

}  // namespace hone
