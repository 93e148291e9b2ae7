#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace hone {

// Looks at something again and again, by a thread of its own, while other threads wait.
class Watch {
 public:
  // `look` returns false when it has seen enough.
  explicit Watch(std::function<bool()> look)
      : look_(std::move(look)), thread_([this] { watch(); }) {}
  ~Watch() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  Watch(const Watch&) = delete;

 private:
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
