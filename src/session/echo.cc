#include "session/echo.h"

#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace hone {
namespace {

constexpr size_t kNamesShown = 5;
constexpr size_t kStemBytes = 200;  // file systems allow 255 with the extension and a number

char plain(char c) {
  if (c == '/') return '.';
  const bool stays = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-';
  return stays ? c : '_';
}

std::string file_stem(std::string_view name) {
  std::string stem(name.substr(0, kStemBytes));
  std::transform(stem.begin(), stem.end(), stem.begin(), plain);
  // Neither hidden, nor "." or "..", nor an option of whatever command gets the file.
  if (stem.empty() || stem[0] == '.' || stem[0] == '-') stem.insert(0, "_");
  return stem;
}

}  // namespace

std::string name_list(std::span<const std::string> names) {
  std::vector<std::string> shown;
  for (const std::string& name : names.first(std::min(names.size(), kNamesShown)))
    shown.push_back(excerpt(name));
  std::string text = join(shown, ", ");
  if (names.size() > kNamesShown) text += fmt::format(" and {} more", names.size() - kNamesShown);
  return text;
}

std::vector<std::string> file_stems(std::span<const std::string> names) {
  std::vector<std::string> stems;
  // Compared without case: some file systems know none.
  std::set<std::string, std::less<>> taken;
  const auto take = [&](std::string stem) {
    for (char& c : stem) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return taken.insert(stem).second;
  };
  for (const std::string& name : names) {
    const std::string wanted = file_stem(name);
    std::string stem = wanted;
    for (int i = 1; !take(stem); ++i) stem = fmt::format("{}_{}", wanted, i);
    stems.push_back(std::move(stem));
  }
  return stems;
}

}  // namespace hone
