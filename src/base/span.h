#pragma once

#include <cstdint>

namespace hone {

// A stretch of time of a thread.
struct Span {
  int64_t begin = 0;  // nanoseconds of steady_now()
  int64_t end = 0;
  int32_t thread = 0;  // this_thread()
};

int64_t steady_now();   // of the steady clock
int32_t this_thread();  // the number that the system has for it

// From its construction on.
class SpanClock {
 public:
  SpanClock() : begin_(steady_now()) {}
  Span span() const { return {begin_, steady_now(), this_thread()}; }

 private:
  int64_t begin_;
};

}  // namespace hone
