#pragma once

#include <fmt/format.h>

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

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

// An error. It is one pointer in size, so a function that returns a Result costs little when it
// succeeds.
class [[nodiscard]] Error {
 public:
  Error(ErrorCode code, std::string what);
  Error(const Error& other);
  Error(Error&& other) noexcept = default;
  Error& operator=(const Error& other);
  Error& operator=(Error&& other) noexcept = default;

  ErrorCode code() const { return fields_->code; }
  // The fault and its cause, with both numbers: "axis 4 is outside rank 3".
  const std::string& what() const { return fields_->what; }
  // "mlp.hone:3:12", "node 'h' (dot)"; empty if there is no place.
  const std::string& where() const { return fields_->where; }
  // The way out; empty if there is none.
  const std::string& hint() const { return fields_->hint; }

  Error as(ErrorCode code) &&;
  // Puts a subject in front: e.about("dot") gives what = "dot: axis 4 is outside rank 3".
  Error about(std::string_view subject) &&;
  Error at(std::string place) &&;
  // Prefixes a wider place: e.within("graph 'mlp'") gives where = "graph 'mlp', node 'h'".
  Error within(std::string_view outer) &&;
  Error with_hint(std::string_view text) &&;

  // "hone: error: dot: ... (mlp.hone:3:12)\nhint: ..." without the leading program name.
  std::string to_string() const;

 private:
  template <class T>
  friend class Result;
  friend class Status;

  struct Fields {
    ErrorCode code;
    std::string what;
    std::string where;
    std::string hint;
  };

  Error() = default;  // none: of a success
  explicit operator bool() const { return fields_ != nullptr; }

  // Out of line, so that functions which return a Result stay small.
  struct Drop {
    void operator()(Fields* fields) const;
  };

  std::unique_ptr<Fields, Drop> fields_;
};

namespace detail {
// Out of line, so that callers do not contain the code that makes the text.
Error make_error(ErrorCode code, fmt::string_view text, fmt::format_args args);
}  // namespace detail

template <class... Args>
Error bad_input(fmt::format_string<Args...> text, const Args&... args) {
  return detail::make_error(ErrorCode::bad_input, text, fmt::make_format_args(args...));
}
template <class... Args>
Error check_failed(fmt::format_string<Args...> text, const Args&... args) {
  return detail::make_error(ErrorCode::mismatch, text, fmt::make_format_args(args...));
}
template <class... Args>
Error usage_error(fmt::format_string<Args...> text, const Args&... args) {
  return detail::make_error(ErrorCode::usage, text, fmt::make_format_args(args...));
}
template <class... Args>
Error unsupported(fmt::format_string<Args...> text, const Args&... args) {
  return detail::make_error(ErrorCode::unsupported, text, fmt::make_format_args(args...));
}
template <class... Args>
Error over_limit(fmt::format_string<Args...> text, const Args&... args) {
  return detail::make_error(ErrorCode::limit, text, fmt::make_format_args(args...));
}
template <class... Args>
Error fault(fmt::format_string<Args...> text, const Args&... args) {
  return detail::make_error(ErrorCode::internal, text, fmt::make_format_args(args...));
}

namespace detail {
// The caller asked a failed Result for its value, or a success for its error: a fault of hone.
[[noreturn]] void throw_no_value(const Error& error);
[[noreturn]] void throw_no_error();
}  // namespace detail

// A value or the Error that prevented it.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }

  T& value() & {
    need_value();
    return *value_;
  }
  const T& value() const& {
    need_value();
    return *value_;
  }
  T&& value() && {
    need_value();
    return *std::move(value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& {
    if (ok()) detail::throw_no_error();
    return error_;
  }
  Error&& error() && {
    if (ok()) detail::throw_no_error();
    return std::move(error_);
  }

 private:
  void need_value() const {
    if (!ok()) detail::throw_no_value(error_);
  }
  std::optional<T> value_;
  Error error_;
};

// Success without a value, or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const& {
    if (ok()) detail::throw_no_error();
    return error_;
  }
  Error&& error() && {
    if (ok()) detail::throw_no_error();
    return std::move(error_);
  }

 private:
  Error error_;
};

// A broken promise of hone itself. Thrown by HONE_CHECK, caught by main() alone.
class InternalError : public std::exception {
 public:
  explicit InternalError(std::string text) : text_(std::move(text)) {}
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
#define HONE_CHECK(condition, ...) \
  (static_cast<bool>(condition)    \
       ? void(0)                   \
       : ::hone::detail::broken({__FILE__, __LINE__, #condition} __VA_OPT__(, ) __VA_ARGS__))

namespace hone::detail {
template <class T>
T take(Result<T>&& result) {
  return std::move(result).value();
}
inline void take(Status&&) {}

// Where a condition stands that does not hold.
struct Place {
  const char* file;
  int line;
  const char* condition;
};
[[noreturn]] void broken(const Place& place);
[[noreturn]] void broken_with(const Place& place, fmt::string_view text, fmt::format_args args);
template <class... Args>
[[noreturn]] void broken(const Place& place, fmt::format_string<Args...> text,
                         const Args&... args) {
  broken_with(place, text, fmt::make_format_args(args...));
}
}  // namespace hone::detail
