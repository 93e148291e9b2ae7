#include "base/progress.h"

#include "base/text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace hone {

namespace {

class NoProgress final : public Progress {
 public:
  void start(int64_t, std::string_view) override {}
  void advance(int64_t) override {}
  void finish(std::string_view) override {}
  void note(std::string_view) override {}
};

enum class Style { bar, plain, json };

double seconds_between_reports(Style style) {
  switch (style) {
    case Style::bar: return 0.1;
    case Style::plain: return 5;
    case Style::json: return 1;
  }
  return 1;
}

double steady_seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// "400 trials in 7m02s", "400 trials, 3 of them lost, in 7m02s", "stopped at 214/400 trials after
// 3m50s".
std::string progress_end(const ProgressState& state, std::string_view remark) {
  const std::string time = format_seconds(state.elapsed);
  const std::string aside = remark.empty() ? "" : fmt::format(", {},", remark);
  if (state.total > 0 && state.done < state.total) {
    return fmt::format("stopped at {}/{} {}{} after {}", state.done, state.total, state.label,
                       aside, time);
  }
  return fmt::format("{} {}{} in {}", state.done, state.label, aside, time);
}

std::string json_line(std::string_view event, const ProgressState& state,
                      std::string_view remark = "") {
  nlohmann::ordered_json object = {{"event", event},
                                   {"label", state.label},
                                   {"done", state.done},
                                   {"elapsed_s", state.elapsed},
                                   {"per_second", state.rate()}};
  if (state.total > 0) object["total"] = state.total;
  if (state.eta() >= 0) object["eta_s"] = state.eta();
  if (!state.now.empty()) object["now"] = state.now;
  if (!remark.empty()) object["remark"] = remark;
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

class Reporter final : public Progress {
 public:
  // With a bar that moves by itself, a step that takes long does not look like the end.
  Reporter(Style style, std::function<void(std::string_view)> write, std::function<double()> clock,
           bool moves_by_itself)
      : style_(style),
        write_(std::move(write)),
        clock_(std::move(clock)),
        moves_by_itself_(moves_by_itself) {}
  ~Reporter() override {
    try {
      Reporter::finish("");
    } catch (const std::bad_alloc&) {
      // Whoever ran out of memory says so.
    }
  }

  void start(int64_t total, std::string_view label) override {
    finish("");
    std::lock_guard lock(mutex_);
    active_ = true;
    label_ = label;
    now_.clear();
    total_ = total;
    started_ = clock_();
    done_.store(0, std::memory_order_relaxed);
    due_.store(started_ + seconds_between_reports(style_), std::memory_order_relaxed);
    if (style_ == Style::bar) write_(bar());
    if (style_ == Style::json) write_(json_line("start", state()));
    if (!moves_by_itself_) return;
    try {
      mover_ = std::thread([this] { move(); });
    } catch (const std::system_error&) {
      // The system gives no thread: the bar moves at each step.
    }
  }

  // Whoever moves the due time forward reports; all others only count.
  void advance(int64_t count) override {
    done_.fetch_add(count, std::memory_order_relaxed);
    const double now = clock_();
    double due = due_.load(std::memory_order_relaxed);
    if (now < due) return;
    const double next = now + seconds_between_reports(style_);
    if (!due_.compare_exchange_strong(due, next, std::memory_order_relaxed)) return;
    std::lock_guard lock(mutex_);
    if (!active_) return;
    switch (style_) {
      case Style::bar: write_(bar()); break;
      case Style::plain: write_(progress_line(state()) + "\n"); break;
      case Style::json: write_(json_line("progress", state())); break;
    }
  }

  void finish(std::string_view remark) override {
    stop();
    std::lock_guard lock(mutex_);
    if (!active_) return;
    active_ = false;
    switch (style_) {
      case Style::bar:
        write_(fmt::format("{}{}\n", erase_line, progress_end(state(), remark)));
        break;
      case Style::plain: write_(progress_end(state(), remark) + "\n"); break;
      case Style::json: write_(json_line("finish", state(), remark)); break;
    }
  }

  void note(std::string_view line) override {
    std::lock_guard lock(mutex_);
    if (style_ == Style::json) {
      const nlohmann::ordered_json object = {{"event", "note"}, {"text", line}};
      write_(object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    } else if (style_ == Style::bar && active_) {
      write_(fmt::format("{}{}\n{}", erase_line, line, bar()));
    } else {
      write_(fmt::format("{}\n", line));
    }
  }

  void now(std::string_view what) override {
    std::lock_guard lock(mutex_);
    now_ = what;
    if (style_ == Style::bar && active_) write_(bar());
  }

 private:
  static constexpr std::string_view erase_line = "\r\x1b[K";

  // The bar again and again, until stop().
  void move() {
    constexpr std::chrono::milliseconds kPace(500);
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, kPace, [this] { return stops_; })) write_(bar());
  }

  void stop() {
    if (!mover_.joinable()) return;
    {
      std::lock_guard lock(mutex_);
      stops_ = true;
    }
    wake_.notify_one();
    mover_.join();
    stops_ = false;
  }

  ProgressState state() const {
    return {label_, done_.load(std::memory_order_relaxed), total_, clock_() - started_, now_};
  }
  std::string bar() const { return std::string(erase_line) + progress_bar(state()); }

  const Style style_;
  const std::function<void(std::string_view)> write_;
  const std::function<double()> clock_;
  const bool moves_by_itself_;

  std::atomic<int64_t> done_ = 0;
  std::atomic<double> due_ = 0;  // When the next report is due, on clock_.

  std::mutex mutex_;  // Guards what follows, and the order of writes.
  bool active_ = false;
  std::string label_, now_;
  int64_t total_ = 0;
  double started_ = 0;
  bool stops_ = false;
  std::condition_variable wake_;
  std::thread mover_;
};

}  // namespace

Progress& no_progress() {
  static NoProgress none;
  return none;
}

Result<ProgressMode> parse_progress_mode(std::string_view text) {
  if (text == "auto") return ProgressMode::automatic;
  if (text == "plain") return ProgressMode::plain;
  if (text == "json") return ProgressMode::json;
  if (text == "none") return ProgressMode::none;
  return usage_error("progress mode '{}' is not one of auto, plain, json, none", escape(text));
}

std::unique_ptr<Progress> make_progress(ProgressOptions options) {
  if (options.mode == ProgressMode::none) return std::make_unique<NoProgress>();
  HONE_CHECK(options.write != nullptr, "progress has nowhere to go");
  const bool is_real = !options.clock;
  if (is_real) options.clock = steady_seconds;
  Style style = Style::plain;
  if (options.mode == ProgressMode::json) style = Style::json;
  if (options.mode == ProgressMode::automatic && options.is_terminal) style = Style::bar;
  return std::make_unique<Reporter>(style, std::move(options.write), std::move(options.clock),
                                    is_real && style == Style::bar);
}

std::function<void(std::string_view)> write_to(std::FILE* file) {
  return [file](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), file);
    std::fflush(file);
  };
}

double ProgressState::eta() const {
  // Whoever counts seconds of a budget says so seldom; what is left of them goes down all the time.
  if (label == "seconds" && total > 0) return std::max(static_cast<double>(total) - elapsed, 0.0);
  if (done <= 0 || total <= 0) return -1;
  const int64_t left = std::max<int64_t>(total - done, 0);
  return elapsed / static_cast<double>(done) * static_cast<double>(left);
}

std::string progress_bar(const ProgressState& state) {
  constexpr int64_t width = 20;
  constexpr size_t kColumns = 79;  // of a terminal: a bar that wraps is not replaced
  if (state.total <= 0) {
    return fmt::format("{} {}  {}/s", state.done, state.label, format_count(state.rate()));
  }
  const double part = static_cast<double>(state.done) / static_cast<double>(state.total);
  const int64_t filled = static_cast<int64_t>(std::clamp(part, 0.0, 1.0) * width);
  std::string text = fmt::format("[{:#<{}}{:.<{}}] {}/{} {}", "", filled, "", width - filled,
                                 state.done, state.total, state.label);
  if (state.eta() >= 0)
    text += fmt::format("  eta {}", format_seconds(state.eta()));
  else if (state.elapsed >= 1)
    text += fmt::format("  {:.0f} s", state.elapsed);
  if (state.now.empty()) return text;
  return (text + "  " + state.now).substr(0, kColumns);
}

std::string progress_line(const ProgressState& state) {
  std::string text = fmt::format("{}", state.done);
  if (state.total > 0) text += fmt::format("/{}", state.total);
  text += fmt::format(" {}, {}/s", state.label, format_count(state.rate()));
  if (state.eta() >= 0) text += fmt::format(", eta {}", format_seconds(state.eta()));
  if (!state.now.empty()) text += ": " + state.now;
  return text;
}

Status CancelToken::check() const {
  if (!cancelled()) return {};
  return Error(ErrorCode::interrupted, "stopped by the user");
}

}  // namespace hone
