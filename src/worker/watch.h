#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"

namespace hone {

// Looks at something again and again, by a thread of its own, while other threads wait.
class Watch {
 public:
  // `look` returns false when it has seen enough. ErrorCode::limit if the system gives no thread.
  static Result<std::unique_ptr<Watch>> make(std::function<bool()> look) {
    std::unique_ptr<Watch> made(new Watch(std::move(look)));
    try {
      made->thread_ = std::thread([watch = made.get()] { watch->watch(); });
    } catch (const std::system_error& error) {
      return over_limit("the system gives no thread: {}", error.what());
    }
    return made;
  }
  ~Watch() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  Watch(const Watch&) = delete;

 private:
  explicit Watch(std::function<bool()> look) : look_(std::move(look)) {}
  void watch() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::milliseconds(50), [&] { return ends_; }))
      if (!look_()) return;
  }

  const std::function<bool()> look_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace hone
