#pragma once

#include <signal.h>

#include <cstddef>
#include <memory>

namespace hone {

// Gives the calling thread a second stack for signal handlers that ask for one (SA_ONSTACK). They
// run even if the thread's own stack has overflowed. A thread that already has a second stack keeps
// it; without memory for one it goes without.
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
