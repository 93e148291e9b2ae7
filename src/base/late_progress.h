#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>

#include "base/progress.h"

namespace hone {

// A Progress for work that is mostly done in no time. For two seconds it reports nothing; after
// that it reports to another Progress.
class LateProgress final : public Progress {
 public:
  // Null: never. The other one outlives it.
  explicit LateProgress(Progress* to) : to_(to) {}
  ~LateProgress() override { LateProgress::finish(""); }

  void start(int64_t total, std::string_view label) override;
  void advance(int64_t count) override;
  void finish(std::string_view remark) override;
  void note(std::string_view line) override;

 private:
  Progress* const to_;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point began_;
  std::string label_;
  int64_t total_ = 0;
  int64_t done_ = 0;
  bool is_shown_ = false;
};

}  // namespace hone
