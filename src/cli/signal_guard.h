#pragma once

#include <signal.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/signal_stack.h"

namespace hone::cli {

class Console;

// While it lives, a signal of a fault leaves the reproducer that `guarded` leaves, and the process
// exits with the same code. The signals are SIGSEGV, SIGBUS, SIGFPE, SIGILL, and SIGABRT, with
// which LLVM ends. A handler may call next to nothing, so all of it is made beforehand, and again
// whenever the console gets something that belongs to it. One at a time.
//
// Stacks that overflow are handled in the thread that makes it and in those that have a
// SignalStack, as workers of pools and teams do. In others they end the process by the signal.
class SignalGuard {
 public:
  static const bool kWorks;  // sanitizers have handlers of their own, which say more

  SignalGuard(std::span<const std::string> words, Console& console,
              const std::filesystem::path& folder);
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;

 private:
  struct Prepared;
  static void handle(int signal);
  void prepare();

  const std::vector<std::string> words_;
  Console& console_;
  const std::filesystem::path folder_;
  std::vector<std::unique_ptr<const Prepared>> prepared_;  // all: another thread may read the last
  std::optional<SignalStack> stack_;
  std::vector<struct sigaction> before_;
};

}  // namespace hone::cli
