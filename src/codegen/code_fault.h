#pragma once

#include "base/error.h"

namespace hone::code {

// A kernel that verifies makes no code: a fault of hone, not of its user.
template <class... Args>
Error code_fault(fmt::format_string<Args...> text, Args&&... args) {
  return {ErrorCode::internal, fmt::format(text, std::forward<Args>(args)...), "", ""};
}

}  // namespace hone::code
