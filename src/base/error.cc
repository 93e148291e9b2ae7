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

Error::Error(ErrorCode code, std::string what)
    : fields_(new Fields{code, std::move(what), "", ""}) {}

Error::Error(const Error& other) : fields_(other ? new Fields(*other.fields_) : nullptr) {}

Error& Error::operator=(const Error& other) { return *this = Error(other); }

void Error::Drop::operator()(Fields* fields) const { delete fields; }

Error detail::make_error(ErrorCode code, fmt::string_view text, fmt::format_args args) {
  return {code, fmt::vformat(text, args)};
}

Error Error::as(ErrorCode code) && {
  fields_->code = code;
  return std::move(*this);
}

Error Error::about(std::string_view subject) && {
  fields_->what = fmt::format("{}: {}", subject, fields_->what);
  return std::move(*this);
}

Error Error::at(std::string place) && {
  fields_->where = std::move(place);
  return std::move(*this);
}

Error Error::within(std::string_view outer) && {
  std::string& where = fields_->where;
  where = where.empty() ? std::string(outer) : fmt::format("{}, {}", outer, where);
  return std::move(*this);
}

Error Error::with_hint(std::string_view text) && {
  fields_->hint = text;
  return std::move(*this);
}

std::string Error::to_string() const {
  std::string text = fmt::format("error: {}", what());
  if (!where().empty()) text += fmt::format(" ({})", where());
  if (!hint().empty()) text += fmt::format("\nhint: {}", hint());
  return text;
}

void detail::throw_no_value(const Error& error) {
  HONE_CHECK(false, "the value of an error was asked for: {}", error.to_string());
}

void detail::throw_no_error() { HONE_CHECK(false, "the error of a success was asked for"); }

void detail::broken(const Place& place) {
  throw InternalError(
      fmt::format("{}:{}: broken invariant: {}", place.file, place.line, place.condition));
}

void detail::broken_with(const Place& place, fmt::string_view text, fmt::format_args args) {
  throw InternalError(fmt::format("{}:{}: broken invariant: {}: {}", place.file, place.line,
                                  place.condition, fmt::vformat(text, args)));
}

}  // namespace hone
