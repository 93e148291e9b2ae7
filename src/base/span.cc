#include "base/span.h"

#include <unistd.h>
#include <chrono>

namespace hone {

int64_t steady_now() {
  using std::chrono::nanoseconds;
  return std::chrono::duration_cast<nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// No thread_local keeps it: the archive is linked into the modules of Python, too.
int32_t this_thread() { return gettid(); }

}  // namespace hone
