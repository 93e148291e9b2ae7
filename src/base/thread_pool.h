#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace hone {

// Worker threads for the compiler's own loops. Compiled models have their own pool (src/runtime),
// with its own rules about spinning and locks.
class ThreadPool {
 public:
  // The number of threads that work on a loop, the calling one included: 1 makes no worker. Fewer
  // where the system grants no more.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(from, to) on the pieces of [begin, end), in any order and on any thread, and returns
  // when all are done. Piece i begins at begin + i * grain, whatever the number of threads; with
  // grain 0 the pool chooses the pieces. The caller takes part; inside of another loop it does all
  // itself. If a body throws, pieces that have not begun are dropped and the first exception is
  // thrown here. May be called from several threads at once. Allocates nothing.
  template <class Body>
  void parallel_for(int64_t begin, int64_t end, int64_t grain, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    auto call = [](void* erased, int64_t from, int64_t to) {
      (*static_cast<Plain*>(erased))(from, to);
    };
    run(begin, end, grain, {const_cast<void*>(static_cast<const void*>(&body)), call});
  }

 private:
  struct Callable {
    void* object;
    void (*call)(void* object, int64_t from, int64_t to);
  };
  struct Loop;

  void run(int64_t begin, int64_t end, int64_t grain, Callable body);
  void share(Loop& loop);
  void unlist(Loop& loop);
  void work();

  std::mutex mutex_;  // Guards what follows.
  std::condition_variable has_work_;
  std::condition_variable loop_left_;
  Loop* loops_ = nullptr;  // Loops that have pieces left; they live on their callers' stacks.
  bool stopping_ = false;

  std::vector<std::thread> workers_;
};

// One thread per core that this process may use; made on first use. A forked child has none of its
// workers: it must not use the pool, and leaves by exec or _exit.
ThreadPool& default_pool();

}  // namespace hone
