#pragma once

namespace hone::cli {

class Console;

// SIGINT (Ctrl-C), SIGTERM and SIGHUP end a command in order. The first one sets the console's
// token, which long work looks at. Work that does not come to its end soon is given up, unless it
// has something to keep (Console::Keeping). Then the user is told that it goes on, and how to end
// it at once, which a second signal does.
class Interruption {
 public:
  // Once in a process; the console outlives it.
  static void handle(Console& console);
  // The exit code of the process: 128 + the signal, if one came and the code says that it was why.
  static int exit_code(int code);
};

}  // namespace hone::cli
