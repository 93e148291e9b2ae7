#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/progress.h"

// Work in copies of this process, which may crash, hang or use up all memory (POSIX). A copy has
// all that the process has, and none of its threads: it must not use pools and teams that were made
// before.

namespace hone {

// Passes a message on to the process that made the copy, once it is whole. Any bytes.
using Tell = std::function<void(std::string_view message)>;
using ForkedWork = std::function<void(const Tell& tell)>;

// 0: no limit.
struct ForkLimits {
  double silence_seconds = 0;  // the longest that a copy may take from one message to the next
  int64_t memory_bytes = 0;    // more than the process has; nothing under AddressSanitizer
};

// How a copy ended.
struct ForkEnd {
  int signal = 0;          // that ended it; 0: the work returned
  bool timed_out = false;  // it was silent for too long
  bool no_memory = false;  // it asked for more than the limit, and gave up
  bool threw = false;      // an exception other than that
  bool is_done() const { return signal == 0 && !no_memory && !threw; }
};

// Runs a copy for each of the works, all side by side, and waits for all. `told(i, message)` hears
// the messages of each in order, in this process and thread. The output of copies is discarded, and
// they die with the calling thread. Errors: the system gives no more processes, cancelled.
Result<std::vector<ForkEnd>> run_forked(
    std::span<const ForkedWork> works, const ForkLimits& limits,
    const std::function<void(size_t i, std::string_view message)>& told,
    const CancelToken* cancel = nullptr);

}  // namespace hone
