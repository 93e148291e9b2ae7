#pragma once

#include "base/error.h"
#include "base/progress.h"
#include "session/face.h"

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Where a command talks: data goes to stdout, all else to stderr.

namespace hone::cli {

enum class Style : uint8_t { bold, dim, red, green };

class Console {
 public:
  struct Options {
    std::FILE* out = stdout;
    std::FILE* err = stderr;
    bool out_is_terminal = false;
    bool err_is_terminal = false;
    bool no_color = false;  // NO_COLOR
  };
  // The options of this process: asks the terminal and the environment.
  static Options of_process();

  explicit Console(const Options& options) : options_(options) {}
  Console(const Console&) = delete;

  // "auto", "always" or "never"; "auto", "plain", "json" or "none".
  void set_color(std::string_view when) { color_ = when; }
  void set_progress(ProgressMode mode) { progress_mode_ = mode; }

  // Data, as it is.
  void write(std::string_view text);
  template <class... Args>
  void print(fmt::format_string<Args...> text, Args&&... args) {
    write(fmt::format(text, std::forward<Args>(args)...));
  }
  // A line of talk.
  void say(std::string_view line);
  template <class... Args>
  void note(fmt::format_string<Args...> text, Args&&... args) {
    say(fmt::format(text, std::forward<Args>(args)...));
  }
  // "hone: error: ..." and its hint.
  void error(const Error& error);

  // The text in the style, if the stream shows colours.
  std::string styled(Style style, std::string_view text) const;       // for print
  std::string styled_talk(Style style, std::string_view text) const;  // for note

  std::unique_ptr<Progress> progress();
  CancelToken& cancel() { return cancel_; }
  // While one lives the work has something that an interruption is not to lose, and comes to its
  // end in order once the token is set. Other work may be given up anywhere.
  class [[nodiscard]] Keeping {
   public:
    explicit Keeping(Console& console) : console_(console) { ++console_.keeping_; }
    ~Keeping() { --console_.keeping_; }
    Keeping(const Keeping&) = delete;

   private:
    Console& console_;
  };
  bool keeps() const { return keeping_ != 0; }
  // For work of a session: its talk goes here, its words are those of the command line.
  Face face();
  static Labels labels();

  // Sets the content of a crash report: `make` gives the text of the graph at hand. If that is
  // small it may be made before there is a crash.
  void set_exhibit(std::function<std::string()> make, bool is_small = true) {
    exhibit_ = std::move(make);
    exhibit_is_small_ = is_small;
    if (on_report_change_) on_report_change_();
  }
  std::string exhibit() const;  // empty if there is none
  std::string exhibit_if_small() const { return exhibit_is_small_ ? exhibit() : ""; }
  // A file that it is to contain besides.
  struct Kept {
    std::string name;
    std::string text;
  };
  void keep_for_report(std::string name, std::string text) {
    kept_.push_back({std::move(name), std::move(text)});
    if (on_report_change_) on_report_change_();
  }
  std::span<const Kept> kept() const { return kept_; }
  void set_on_report_change(std::function<void()> call) { on_report_change_ = std::move(call); }

  // Everything reached stdout, or an error: a full disk must not look like success.
  Status flush();

 private:
  std::string styled(bool terminal, Style style, std::string_view text) const;
  void flush_out();  // what cannot be written is gone: each failure is kept for flush()

  Options options_;
  std::string color_ = "auto";
  ProgressMode progress_mode_ = ProgressMode::automatic;
  CancelToken cancel_;
  std::atomic<int> keeping_ = 0;
  std::unique_ptr<Progress> face_progress_;
  std::function<std::string()> exhibit_;
  bool exhibit_is_small_ = true;
  std::vector<Kept> kept_;
  std::function<void()> on_report_change_;
  int write_error_ = 0;  // errno of the first failed write
};

}  // namespace hone::cli
