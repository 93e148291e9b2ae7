#include "report/wrapped.h"

namespace hone {

std::string wrapped(std::string first, std::span<const std::string> parts, size_t indent) {
  constexpr size_t kWidth = 100;
  std::string text, line = std::move(first);
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool is_last = i + 1 == parts.size();
    if (i > 0 && line.size() + parts[i].size() + (is_last ? 1 : 2) > kWidth) {
      text += line + "\n";
      line = std::string(indent, ' ');
    } else if (i > 0) {
      line += ' ';
    }
    line += parts[i] + (is_last ? "" : ",");
  }
  while (line.ends_with(' ')) line.pop_back();
  return text + line + "\n";
}

}  // namespace hone
