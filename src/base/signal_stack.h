#pragma once

#include <signal.h>

#include <cstddef>
#include <memory>

namespace hone {

// A second stack of the thread that makes it, for handlers of signals that ask for one
// (SA_ONSTACK): they run even if the thread's own has overflowed. One that the thread has already
// stays. Without memory for it there is none.
class SignalStack {
 public:
  SignalStack();
  ~SignalStack();
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  static constexpr size_t kBytes = size_t{1} << 16;  // the registers of AVX-512 alone take 3 KiB
  std::unique_ptr<std::byte[]> memory_;              // null: it is not the thread's stack
};

}  // namespace hone
