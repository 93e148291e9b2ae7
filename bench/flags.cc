#include "bench/flags.h"

#include <fmt/format.h>

#include <cstdlib>
#include <vector>

namespace hone::bench {
namespace {

std::vector<Flag*>& flags() {
  static std::vector<Flag*> all;
  return all;
}

std::vector<std::function<void()>>& rows() {
  static std::vector<std::function<void()>> all;
  return all;
}

}  // namespace

Flag::Flag(std::string_view name, std::string fallback)
    : name_(name), has_value_(true), text_(std::move(fallback)) {
  flags().push_back(this);
}
Flag::Flag(std::string_view name) : name_(name), has_value_(false) { flags().push_back(this); }

double Flag::number() const {
  char* end = nullptr;
  const double number = std::strtod(text_.c_str(), &end);
  if (end != text_.c_str() && *end == '\0') return number;
  fmt::print(stderr, "--{}={}: not a number\n", name_, text_);
  std::exit(2);
}

bool Flag::take(std::string_view argument) {
  for (Flag* flag : flags()) {
    const std::string head = fmt::format("--{}{}", flag->name_, flag->has_value_ ? "=" : "");
    const bool fits = flag->has_value_ ? argument.starts_with(head) : argument == head;
    if (!fits) continue;
    flag->text_ = argument.substr(head.size());
    return flag->is_given_ = true;
  }
  return false;
}

Rows::Rows(std::function<void()> add) { rows().push_back(std::move(add)); }

void Rows::add_all() {
  for (const std::function<void()>& add : rows()) add();
}

}  // namespace hone::bench
