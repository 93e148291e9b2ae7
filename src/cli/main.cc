#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/guard.h"
#include "cli/memory_limit.h"
#include "cli/signal_guard.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string_view>

namespace {

hone::CancelToken* interrupted = nullptr;
bool is_terminal = false;  // the standard error

// What a handler may do is said in signal-safety(7).
void on_interrupt(int) {
  interrupted->cancel();
  ::alarm(1);
}

void on_alarm(int) {
  constexpr std::string_view kText =
      "hone: stops as soon as the kernel or step at hand is done; Ctrl-C again ends it at once\n";
  const int error = errno;
  // Behind the ^C of a terminal.
  if (is_terminal) (void)!::write(STDERR_FILENO, "\n", 1);
  (void)!::write(STDERR_FILENO, kText.data(), kText.size());
  errno = error;
}

// The first Ctrl-C asks for an orderly end, and a second later for patience if that has not come.
// The next one insists.
void stop_on_interrupt(hone::CancelToken& token) {
  interrupted = &token;
  is_terminal = isatty(STDERR_FILENO) == 1;
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  action.sa_handler = on_alarm;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace hone::cli;
  const std::vector<std::string> words(argv + 1, argv + argc);
  Console console(Console::of_process());
  stop_on_interrupt(console.cancel());
  // A write beyond the longest file allowed fails then, and what is half written is removed.
  std::signal(SIGXFSZ, SIG_IGN);

  std::error_code ignored;
  const std::filesystem::path here = std::filesystem::current_path(ignored);

  return guarded(words, console, here, [&]() -> hone::Status {
    // What is wanted.
    const Arguments arguments = HONE_TRY(parse_arguments(words));
    console.set_color(arguments.text("color"));
    console.set_progress(HONE_TRY(hone::parse_progress_mode(arguments.text("progress"))));

    std::optional<SignalGuard> signals;
    if (!is_hidden(arguments.command())) signals.emplace(words, console, here);

    // The command: a row of commands.cc, in the file cmd_NAME.cc.
    return name_memory_limit(arguments.command().run(arguments, console), arguments);
  });
}
