#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/progress.h"

// Runs work that may crash, hang or use up all memory in a child process (POSIX).

namespace hone {

// 0: no limit.
struct ProcessLimits {
  double wall_seconds = 0;
  double cpu_seconds = 0;  // rounded up to whole seconds
  // Counts private writable memory: heap and stacks, not mapped files. Nothing under
  // AddressSanitizer, which reserves more than any machine has.
  int64_t memory_bytes = 0;
  int64_t output_bytes = int64_t{1} << 20;  // kept of each stream; what is beyond is dropped
};

struct ProcessResult {
  int exit_code = 0;       // if there is no signal
  int signal = 0;          // that ended the process; 0: it exited
  bool timed_out = false;  // by the wall or the CPU limit; there is a signal then
  std::string out;
  std::string err;
  bool output_cut = false;  // a stream was longer than the limit
  double seconds = 0;       // wall time
  int64_t max_rss = 0;  // bytes; at least what the caller had when it started the process (Linux)
};

// Runs a program and waits for it. It reads nothing (/dev/null), has the caller's environment and
// folder, and dies with the calling thread. Whatever it started dies with it. May be called from
// several threads at once. Errors: the program cannot be started, or the token was cancelled.
Result<ProcessResult> run_process(const std::string& program,
                                  const std::vector<std::string>& arguments,
                                  const ProcessLimits& limits = {},
                                  const CancelToken* cancel = nullptr);

// "SIGSEGV"; "signal 77" for one without a name.
std::string signal_name(int signal);

}  // namespace hone
