#pragma once

#include <exception>
#include <utility>

namespace hone::code {

// An object of LLVM or MLIR. They are built without exceptions: one that passes through them, where
// there is no memory or LLVM gives up, leaves their objects half-changed. Then they are left alone,
// not destroyed; what they hold is lost until the process ends.
template <class T>
class LlvmObject {
 public:
  template <class... Args>
  explicit LlvmObject(Args&&... args) : value_(std::forward<Args>(args)...) {}
  LlvmObject(const LlvmObject&) = delete;
  LlvmObject& operator=(const LlvmObject&) = delete;
  ~LlvmObject() {
    if (std::uncaught_exceptions() == exceptions_) value_.~T();
  }

  T& operator*() { return value_; }
  T* operator->() { return &value_; }

 private:
  const int exceptions_ = std::uncaught_exceptions();
  union {
    T value_;
  };
};

}  // namespace hone::code
