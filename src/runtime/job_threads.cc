#include "runtime/job_threads.h"

#include <system_error>

namespace hone {

Result<std::unique_ptr<JobThreads>> JobThreads::make(size_t members) {
  std::unique_ptr<JobThreads> threads(new JobThreads());
  for (size_t i = 0; i < members; ++i) {
    try {
      threads->threads_.emplace_back([one = threads.get(), i] { one->live(i); });
    } catch (const std::system_error& error) {
      return over_limit("the system gives no thread: {}", error.what());
    }
  }
  return threads;
}

JobThreads::~JobThreads() {
  {
    const std::scoped_lock lock(mutex_);
    is_over_ = true;
  }
  is_begun_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void JobThreads::live(size_t member) {
  std::unique_lock lock(mutex_);
  for (uint64_t done = 0;; done = job_) {
    is_begun_.wait(lock, [&] { return is_over_ || job_ != done; });
    if (is_over_) return;
    const std::function<void(size_t)>& work = *work_;
    lock.unlock();
    work(member);
    lock.lock();
    if (--busy_ == 0) is_done_.notify_all();
  }
}

void JobThreads::start(const std::function<void(size_t)>& work) {
  {
    const std::scoped_lock lock(mutex_);
    HONE_CHECK(busy_ == 0, "a job begins while {} members work on another", busy_);
    work_ = &work;
    busy_ = threads_.size();
    ++job_;
  }
  is_begun_.notify_all();
}

void JobThreads::wait() {
  std::unique_lock lock(mutex_);
  is_done_.wait(lock, [&] { return busy_ == 0; });
}

bool JobThreads::wait_for(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return is_done_.wait_for(lock, time, [&] { return busy_ == 0; });
}

}  // namespace hone
