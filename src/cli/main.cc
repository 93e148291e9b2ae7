#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/guard.h"
#include "cli/interruption.h"
#include "cli/memory_limit.h"
#include "cli/signal_guard.h"
#include "cli/writable.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

int main(int argc, char** argv) {
  using namespace hone::cli;
  const std::vector<std::string> words(argv + 1, argv + argc);
  Console console(Console::of_process());
  Interruption::handle(console);
  // A write beyond the longest file allowed fails then, and what is half written is removed.
  std::signal(SIGXFSZ, SIG_IGN);

  std::error_code ignored;
  const std::filesystem::path here = std::filesystem::current_path(ignored);

  const int code = guarded(words, console, here, [&]() -> hone::Status {
    // The command that is wanted.
    const Arguments arguments = HONE_TRY(parse_arguments(words));
    console.set_color(arguments.text("color"));
    console.set_progress(HONE_TRY(hone::parse_progress_mode(arguments.text("progress"))));
    HONE_TRY(check_outputs(arguments));

    std::optional<SignalGuard> signals;
    if (!is_hidden(arguments.command())) signals.emplace(words, console, here);

    // The command: a row of commands.cc, in the file cmd_NAME.cc.
    return name_memory_limit(arguments.command().run(arguments, console), arguments);
  });
  // Where memory ended within LLVM, its tables may be half-changed: they are not destroyed.
  if (code == static_cast<int>(hone::ErrorCode::limit)) std::_Exit(code);
  return Interruption::exit_code(code);
}
