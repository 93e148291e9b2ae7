#pragma once

#include <exception>
#include <utility>

namespace hone::code {

// Holds an object of LLVM or MLIR. These libraries are built without exceptions. An exception that
// passes through them (no memory, LLVM gives up) leaves their objects half-changed. Such an object
// is then not destroyed; its memory is lost until the process ends.
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
