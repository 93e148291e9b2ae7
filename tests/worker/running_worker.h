#pragma once

#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/base/says_testing.h"
#include "worker/remote_model.h"
#include "worker/serve.h"

namespace hone::tested {

inline constexpr const char* kWorkerSecret = "a secret that nobody else knows";
inline constexpr const char* kWorkerVersion = "1.2.3";

// A worker in threads of this process.
class RunningWorker {
 public:
  explicit RunningWorker(WorkerOptions options = {}) : options_(std::move(options)) {
    options_.version = kWorkerVersion;
    options_.cancel = &cancel_;
    options_.told = [this](std::string_view line) {
      const std::lock_guard<std::mutex> lock(mutex_);
      told_.emplace_back(line);
    };
    thread_ = std::thread([this] { status_ = run_worker(listener_, kWorkerSecret, options_); });
  }
  ~RunningWorker() {
    cancel_.cancel();
    thread_.join();
    EXPECT_THAT(status_, refuses(ErrorCode::interrupted, "stopped"));
  }

  HostPort address() const { return {"127.0.0.1", listener_.port()}; }
  std::shared_ptr<Worker> call() const {
    return *Worker::call(address(), kWorkerSecret, kWorkerVersion);
  }
  size_t told(std::string_view words) {
    const std::lock_guard<std::mutex> lock(mutex_);
    size_t count = 0;
    for (const std::string& each : told_) count += each.find(words) != std::string::npos ? 1 : 0;
    return count;
  }

 private:
  const TcpListener listener_ = *TcpListener::open();
  WorkerOptions options_;
  CancelToken cancel_;
  std::mutex mutex_;
  std::vector<std::string> told_;
  Status status_;
  std::thread thread_;
};

}  // namespace hone::tested
