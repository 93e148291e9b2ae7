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

}  // namespace

Flag::Flag(std::string_view name, std::string fallback) : name_(name), text_(std::move(fallback)) {
  flags().push_back(this);
}

double Flag::number() const {
  char* end = nullptr;
  const double number = std::strtod(text_.c_str(), &end);
  if (end != text_.c_str() && *end == '\0') return number;
  fmt::print(stderr, "--{}={}: not a number\n", name_, text_);
  std::exit(2);
}

bool Flag::take(std::string_view argument) {
  for (Flag* flag : flags()) {
    const std::string head = fmt::format("--{}=", flag->name_);
    if (!argument.starts_with(head)) continue;
    flag->text_ = argument.substr(head.size());
    return true;
  }
  return false;
}

}  // namespace hone::bench
