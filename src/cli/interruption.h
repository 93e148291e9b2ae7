#pragma once

#include "base/progress.h"

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
  // A part of the work, such as an answer in a talk, that Ctrl-C ends alone. While one lives the
  // first Ctrl-C sets its token. It is forgotten after it. A second one ends the process.
  // Console::Keeping goes with it.
  class [[nodiscard]] Part {
   public:
    explicit Part(Console& console);
    ~Part();
    Part(const Part&) = delete;
    const CancelToken& cancel() const { return cancel_; }

   private:
    Console& console_;
    CancelToken cancel_;
  };
  // The exit code of the process: 128 + the signal, if one came and the code says that it was why.
  static int exit_code(int code);
};

}  // namespace hone::cli
