#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"

namespace hone {

// Threads that all do their part of a job at the same time, so that one may wait for another. They
// live from job to job, and sleep between. A forked child has none of them.
class JobThreads {
 public:
  // ErrorCode::limit if the system does not give as many threads.
  static Result<std::unique_ptr<JobThreads>> make(size_t members);
  ~JobThreads();  // not while a job runs
  JobThreads(const JobThreads&) = delete;
  JobThreads& operator=(const JobThreads&) = delete;

  // Each member calls the work with its number. The work lives until wait() returns.
  void start(const std::function<void(size_t)>& work);
  void wait();
  // False if members still work after that time.
  bool wait_for(std::chrono::milliseconds time);

 private:
  JobThreads() = default;
  void live(size_t member);

  std::mutex mutex_;  // guards what follows
  std::condition_variable is_begun_, is_done_;
  const std::function<void(size_t)>* work_ = nullptr;
  uint64_t job_ = 0;  // the number of the job
  size_t busy_ = 0;   // members that work on it
  bool is_over_ = false;

  std::vector<std::thread> threads_;
};

}  // namespace hone
