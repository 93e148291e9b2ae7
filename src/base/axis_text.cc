#include "base/axis_text.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace hone {

std::string axis_text(std::string_view name) {
  constexpr std::string_view kWords[] = {"open", "priority"};
  const auto is_of_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  const bool is_plain = !name.empty() && (name[0] < '0' || name[0] > '9') &&
                        std::ranges::all_of(name, is_of_word) &&
                        std::ranges::find(kWords, name) == std::ranges::end(kWords);
  return is_plain ? std::string(name) : quoted(name);
}

}  // namespace hone
