#pragma once

#include <fmt/format.h>

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

// Two sorts of failure, never mixed:
//   * The user's (a bad file, an ill-typed node, a limit): an Error, returned in a Result<T>.
//   * Ours (a broken invariant): HONE_CHECK throws InternalError; only main() catches it.

namespace hone {

// The number is the process exit code that a face uses for the error.
enum class ErrorCode : int {
  mismatch = 1,      // A comparison or validation failed.
  usage = 2,         // The command line is wrong.
  bad_input = 3,     // A file or a graph is malformed or ill-typed.
  unsupported = 4,   // Valid, but outside of what hone handles.
  limit = 5,         // A stated bound (size, time, memory) was hit.
  internal = 6,      // A fault of hone.
  interrupted = 130  // Stopped by the user; state is saved.
};

std::string_view error_code_name(ErrorCode code);

struct [[nodiscard]] Error {
  ErrorCode code = ErrorCode::bad_input;
  std::string what;   // What went wrong and why, with both numbers: "axis 4 is outside rank 3".
  std::string where;  // "mlp.hone:3:12", "node 'h' (dot)"; empty if there is no place.
  std::string hint;   // What the user can do; empty if there is nothing to say.

  // Prefixes a wider place: e.within("graph 'mlp'") gives where = "graph 'mlp', node 'h'".
  Error within(std::string_view outer) &&;
  Error with_hint(std::string_view text) &&;

  // "hone: error: dot: ... (mlp.hone:3:12)\nhint: ..." without the leading program name.
  std::string to_string() const;
};

template <class... Args>
Error bad_input(fmt::format_string<Args...> text, Args&&... args) {
  return {ErrorCode::bad_input, fmt::format(text, std::forward<Args>(args)...), "", ""};
}
template <class... Args>
Error usage_error(fmt::format_string<Args...> text, Args&&... args) {
  return {ErrorCode::usage, fmt::format(text, std::forward<Args>(args)...), "", ""};
}
template <class... Args>
Error unsupported(fmt::format_string<Args...> text, Args&&... args) {
  return {ErrorCode::unsupported, fmt::format(text, std::forward<Args>(args)...), "", ""};
}
template <class... Args>
Error over_limit(fmt::format_string<Args...> text, Args&&... args) {
  return {ErrorCode::limit, fmt::format(text, std::forward<Args>(args)...), "", ""};
}

namespace detail {
// Somebody asked for the value of an error: a fault of ours.
[[noreturn]] void throw_no_value(const Error& error);
[[noreturn]] void throw_no_error();
}  // namespace detail

// A value or the Error that prevented it.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    need_value();
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    need_value();
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    need_value();
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& {
    if (ok()) detail::throw_no_error();
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    if (ok()) detail::throw_no_error();
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  void need_value() const {
    if (!ok()) detail::throw_no_value(*std::get_if<1>(&state_));
  }
  std::variant<T, Error> state_;
};

// Success without a value, or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const& { return *error_; }
  Error&& error() && { return std::move(*error_); }

 private:
  std::optional<Error> error_;
};

// A broken promise of hone itself. Thrown by HONE_CHECK, caught by main() alone.
class InternalError : public std::exception {
 public:
  InternalError(const char* file, int line, const char* condition, std::string message);
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

}  // namespace hone

// HONE_TRY(expr): the value of a Result (or nothing for a Status); returns its Error otherwise.
//   Graph g = HONE_TRY(parse_graph(text));
#define HONE_TRY(...)                                                     \
  ({                                                                      \
    auto hone_try_result = (__VA_ARGS__);                                 \
    if (!hone_try_result.ok()) return std::move(hone_try_result).error(); \
    ::hone::detail::take(std::move(hone_try_result));                     \
  })

// HONE_CHECK(condition, "format {}", args...): an invariant of hone; failing it is a bug of ours.
#define HONE_CHECK(condition, ...)                                   \
  (static_cast<bool>(condition)                                      \
       ? void(0)                                                     \
       : throw ::hone::InternalError(__FILE__, __LINE__, #condition, \
                                     ::hone::detail::check_message(__VA_ARGS__)))

namespace hone::detail {
template <class T>
T take(Result<T>&& result) {
  return std::move(result).value();
}
inline void take(Status&&) {}

inline std::string check_message() { return {}; }
template <class... Args>
std::string check_message(fmt::format_string<Args...> text, Args&&... args) {
  return fmt::format(text, std::forward<Args>(args)...);
}
}  // namespace hone::detail
