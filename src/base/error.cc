#include "base/error.h"

namespace hone {

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::mismatch: return "mismatch";
    case ErrorCode::usage: return "usage";
    case ErrorCode::bad_input: return "bad input";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::limit: return "limit";
    case ErrorCode::internal: return "internal";
    case ErrorCode::interrupted: return "interrupted";
  }
  return "unknown";
}

Error Error::within(std::string_view outer) && {
  where = where.empty() ? std::string(outer) : fmt::format("{}, {}", outer, where);
  return std::move(*this);
}

Error Error::with_hint(std::string_view text) && {
  hint = text;
  return std::move(*this);
}

std::string Error::to_string() const {
  std::string text = fmt::format("error: {}", what);
  if (!where.empty()) text += fmt::format(" ({})", where);
  if (!hint.empty()) text += fmt::format("\nhint: {}", hint);
  return text;
}

void detail::throw_no_value(const Error& error) {
  HONE_CHECK(false, "the value of an error was asked for: {}", error.to_string());
  __builtin_unreachable();
}

void detail::throw_no_error() {
  HONE_CHECK(false, "the error of a success was asked for");
  __builtin_unreachable();
}

InternalError::InternalError(const char* file, int line, const char* condition, std::string message)
    : text_(fmt::format("{}:{}: broken invariant: {}{}{}", file, line, condition,
                        message.empty() ? "" : ": ", message)) {}

}  // namespace hone
