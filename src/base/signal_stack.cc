#include "base/signal_stack.h"

#include <new>

namespace hone {

SignalStack::SignalStack() {
  stack_t stack = {};
  if (::sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & SS_DISABLE) == 0) return;
  memory_.reset(new (std::nothrow) std::byte[kBytes]);
  if (!memory_) return;
  stack = {};
  stack.ss_sp = memory_.get();
  stack.ss_size = kBytes;
  if (::sigaltstack(&stack, nullptr) != 0) memory_.reset();
}

SignalStack::~SignalStack() {
  if (!memory_) return;
  stack_t none = {};
  none.ss_flags = SS_DISABLE;
  ::sigaltstack(&none, nullptr);
}

}  // namespace hone
