#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/guard.h"
#include "cli/signal_guard.h"

#include <csignal>
#include <filesystem>
#include <optional>

namespace {

hone::CancelToken* interrupted = nullptr;

// The first Ctrl-C asks for an orderly end, the next one insists.
void stop_on_interrupt(hone::CancelToken& token) {
  interrupted = &token;
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted->cancel(); };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
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
    return arguments.command().run(arguments, console);
  });
}
