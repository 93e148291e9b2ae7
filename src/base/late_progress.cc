#include "base/late_progress.h"

namespace hone {

namespace {

constexpr std::chrono::seconds kDelay(2);

}  // namespace

void LateProgress::start(int64_t total, std::string_view label) {
  finish("");
  std::lock_guard lock(mutex_);
  began_ = std::chrono::steady_clock::now();
  label_ = label;
  total_ = total;
  done_ = 0;
}

void LateProgress::advance(int64_t count) {
  if (to_ == nullptr) return;
  std::lock_guard lock(mutex_);
  done_ += count;
  if (is_shown_) {
    to_->advance(count);
  } else if (std::chrono::steady_clock::now() - began_ >= kDelay) {
    is_shown_ = true;
    to_->start(total_, label_);
    to_->advance(done_);
  }
}

void LateProgress::finish(std::string_view remark) {
  std::lock_guard lock(mutex_);
  if (is_shown_) to_->finish(remark);
  is_shown_ = false;
}

void LateProgress::note(std::string_view line) {
  if (to_ != nullptr) to_->note(line);
}

}  // namespace hone
