#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace hone {

// While it lives, if it is on, this thread reads denormal numbers as 0 and writes 0 for them.
class DenormalMode {
 public:
#if defined(__x86_64__)
  explicit DenormalMode(bool flushes) : flushes_(flushes) {
    if (!flushes_) return;
    before_ = _mm_getcsr();
    _mm_setcsr(before_ | kFlushToZero | kDenormalsAreZero);
  }
  ~DenormalMode() {
    if (flushes_) _mm_setcsr(before_);
  }

 private:
  static constexpr unsigned kFlushToZero = 1U << 15, kDenormalsAreZero = 1U << 6;
  const bool flushes_;
  unsigned before_ = 0;

 public:
#else
  explicit DenormalMode(bool) {}
#endif
  DenormalMode(const DenormalMode&) = delete;
};

}  // namespace hone
