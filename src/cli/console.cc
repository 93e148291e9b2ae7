#include "cli/console.h"

#include "base/text.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include <unistd.h>

namespace hone::cli {

Console::Options Console::of_process() {
  Options options;
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  options.out_is_terminal = isatty(STDOUT_FILENO) != 0;
  options.err_is_terminal = isatty(STDERR_FILENO) != 0;
  options.no_color = (no_color != nullptr && *no_color != '\0') ||
                     (terminal != nullptr && std::strcmp(terminal, "dumb") == 0);
  return options;
}

void Console::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), options_.out) != text.size() && write_error_ == 0)
    write_error_ = errno;
}

void Console::say(std::string_view line) {
  // In order with the data if both go to one place.
  flush_out();
  const std::string text = fmt::format("{}\n", line);
  std::fwrite(text.data(), 1, text.size(), options_.err);
}

void Console::error(const Error& error) {
  const std::string whole = error.to_string();
  std::string_view text = whole;
  consume_prefix(text, "error:");
  // A file may have put anything into its names; the terminal must not obey it.
  std::string tame;
  for (char c : text) {
    const bool control = (c >= 0 && c < ' ' && c != '\n') || c == 0x7f;
    tame += control ? escape(std::string_view(&c, 1)) : std::string(1, c);
  }
  note("hone: {}{}", styled_talk(Style::red, "error:"), tame);
}

std::string Console::styled(Style style, std::string_view text) const {
  return styled(options_.out_is_terminal, style, text);
}

std::string Console::styled_talk(Style style, std::string_view text) const {
  return styled(options_.err_is_terminal, style, text);
}

std::string Console::styled(bool terminal, Style style, std::string_view text) const {
  const bool colored = color_ == "always" || (color_ == "auto" && terminal && !options_.no_color);
  if (!colored) return std::string(text);
  static constexpr std::string_view kCodes[] = {"1", "2", "1;31", "1;32"};
  return fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<size_t>(style)], text);
}

std::unique_ptr<Progress> Console::progress() {
  return make_progress({.mode = progress_mode_,
                        .is_terminal = options_.err_is_terminal,
                        .write = write_to(options_.err),
                        .clock = {}});
}

Labels Console::labels() {
  return {.size = "--dim",
          .choices = "--sizes",
          .shape = "--shape",
          .threads = "--threads",
          .isa = "--isa",
          .flush = "--flush-denormals",
          .compile = "'hone compile'"};
}

Face Console::face() {
  if (face_progress_ == nullptr) face_progress_ = progress();
  return {.labels = labels(),
          .notice = [this](std::string_view line) { say(line); },
          .progress = face_progress_.get(),
          .cancel = &cancel_};
}

std::string Console::exhibit() const {
  if (!exhibit_) return "";
  try {
    return exhibit_();
  } catch (const std::exception&) {
    return "";  // a broken graph may not even print
  }
}

void Console::flush_out() {
  if (std::fflush(options_.out) != 0 && write_error_ == 0) write_error_ = errno;
}

Status Console::flush() {
  flush_out();
  if (write_error_ == 0) return {};
  return over_limit("cannot write to the standard output: {}",
                    std::generic_category().message(write_error_));
}

}  // namespace hone::cli
