#pragma once

#include "base/error.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace hone {

// Reports how far long work has come. One activity at a time: start, advance..., finish, and then
// perhaps start again. advance() may be called from any thread and is cheap.
class Progress {
 public:
  virtual ~Progress() = default;

  // The label names what is counted, in the plural: "trials". Total 0: not known.
  virtual void start(int64_t total, std::string_view label) = 0;
  virtual void advance(int64_t count = 1) = 0;
  // Ends the activity: reports its outcome, with the remark. Fewer steps than the total count as
  // stopped. Does nothing without a start.
  virtual void finish(std::string_view remark) = 0;
  void finish() { finish(""); }
  // A line of text that does not disturb the bar.
  virtual void note(std::string_view line) = 0;
  // The activity under way, shown beside the count until something else is.
  virtual void now(std::string_view) {}
};

// Reports nothing: the default of library functions.
Progress& no_progress();

enum class ProgressMode {
  automatic,  // A bar on a terminal, plain lines elsewhere.
  plain,      // "214/400 trials, 12.3/s, eta 15s", every few seconds.
  json,       // One object per line.
  none
};
Result<ProgressMode> parse_progress_mode(std::string_view text);  // "auto", "plain", "json", "none"

struct ProgressOptions {
  ProgressMode mode = ProgressMode::automatic;
  bool is_terminal = false;                     // Decided by the face; only for `automatic`.
  std::function<void(std::string_view)> write;  // Gets whole lines, or a bar to be shown at once.
  std::function<double()> clock;                // Seconds since any moment; steady by default.
};

// Finishes in its destructor.
std::unique_ptr<Progress> make_progress(ProgressOptions options);

// A `write` for the options: writes and flushes; the file outlives it.
std::function<void(std::string_view)> write_to(std::FILE* file);

// The contents of a report and its text, for code that shows progress elsewhere.
struct ProgressState {
  std::string label;
  int64_t done = 0;
  int64_t total = 0;     // 0: not known.
  double elapsed = 0;    // Seconds.
  std::string now = {};  // The activity under way.

  double rate() const { return elapsed > 0 ? static_cast<double>(done) / elapsed : 0; }
  double eta() const;  // Seconds; negative if not known.
};
std::string progress_bar(const ProgressState& state);  // "[#####.....] 214/400 trials  now"
// "214/400 trials, 12.3/s, eta 15s: now"
std::string progress_line(const ProgressState& state);

// Set once, by another thread or a signal handler; polled by long work.
class CancelToken {
 public:
  CancelToken() = default;
  CancelToken(const CancelToken&) = delete;
  CancelToken& operator=(const CancelToken&) = delete;

  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  // ErrorCode::interrupted once cancelled.
  Status check() const;

 private:
  static_assert(std::atomic<bool>::is_always_lock_free, "cancel() is called in signal handlers");
  std::atomic<bool> cancelled_ = false;
};

}  // namespace hone
