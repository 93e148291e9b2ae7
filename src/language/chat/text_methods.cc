#include "language/chat/text_methods.h"

#include <algorithm>
#include <cstring>

#include "language/characters.h"

namespace hone {
namespace {

char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

template <class Change>
MarkedText changed(const MarkedText& text, const Change& change) {
  std::string bytes(text.bytes());
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = change(bytes[i], i);
  return text.with_bytes(std::move(bytes));
}

bool is_one_of(char32_t code, std::optional<std::string_view> chars) {
  if (!chars) return is_python_blank(code);
  for (std::string_view rest = *chars; !rest.empty();) {
    const Character one = first_character(rest);
    if (one.code == code) return true;
    rest.remove_prefix(one.bytes);
  }
  return false;
}

// Runs of blanks between words: where each word begins and ends.
std::vector<std::pair<size_t, size_t>> words_of(std::string_view text) {
  std::vector<std::pair<size_t, size_t>> words;
  bool is_inside = false;
  for (size_t at = 0; at < text.size();) {
    const Character one = first_character(text.substr(at));
    const bool is_blank = is_python_blank(one.code);
    if (!is_blank && !is_inside) words.emplace_back(at, at);
    is_inside = !is_blank;
    at += one.bytes;
    if (is_inside) words.back().second = at;
  }
  return words;
}

// The rest after `most` splits keeps its blanks at the outer end, as in Python.
std::vector<MarkedText> split_words_of(const MarkedText& text, int64_t most, bool from_right) {
  std::vector<std::pair<size_t, size_t>> words = words_of(text.bytes());
  if (most >= 0 && std::ssize(words) > most) {
    if (from_right) {
      const auto rest = words.end() - most - 1;
      rest->first = 0;
      words.erase(words.begin(), rest);
    } else {
      const auto rest = words.begin() + most;
      rest->second = text.size();
      words.erase(rest + 1, words.end());
    }
  }
  std::vector<MarkedText> parts;
  for (const auto& [begin, end] : words) parts.push_back(text.part(begin, end - begin));
  return parts;
}

}  // namespace

bool is_python_blank(char32_t code) {
  return kind_of(code) == CharacterKind::blank || (code >= 0x1C && code <= 0x1F);
}

std::vector<size_t> character_starts(std::string_view text) {
  std::vector<size_t> starts;
  size_t at = 0;
  for (; at < text.size(); at += first_character(text.substr(at)).bytes) starts.push_back(at);
  starts.push_back(at);
  return starts;
}

int64_t character_count(std::string_view text) { return std::ssize(character_starts(text)) - 1; }

MarkedText stripped(const MarkedText& text, StripSide side, std::optional<std::string_view> chars) {
  const std::vector<size_t> starts = character_starts(text.bytes());
  size_t begin = 0, end = starts.size() - 1;
  const auto goes = [&](size_t i) {
    return is_one_of(first_character(text.bytes().substr(starts[i])).code, chars);
  };
  while (side != StripSide::right && begin < end && goes(begin)) ++begin;
  while (side != StripSide::left && end > begin && goes(end - 1)) --end;
  return text.part(starts[begin], starts[end] - starts[begin]);
}

MarkedText upper_case(const MarkedText& text) {
  return changed(text, [](char c, size_t) { return upper(c); });
}
MarkedText lower_case(const MarkedText& text) {
  return changed(text, [](char c, size_t) { return lower(c); });
}
MarkedText capitalized(const MarkedText& text) {
  return changed(text, [](char c, size_t i) { return i == 0 ? upper(c) : lower(c); });
}
MarkedText title_case(const MarkedText& text) {
  bool is_inside = false;
  return changed(text, [&](char c, size_t) {
    const char made = is_inside ? lower(c) : upper(c);
    is_inside = upper(c) != lower(c);
    return made;
  });
}

std::optional<size_t> find_text(std::string_view text, std::string_view part) {
  if (part.empty()) return 0;
  if (text.size() < part.size()) return std::nullopt;
  const void* const found = memmem(text.data(), text.size(), part.data(), part.size());
  if (found == nullptr) return std::nullopt;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

MarkedText replaced(const MarkedText& text, std::string_view from, const MarkedText& to,
                    int64_t most) {
  MarkedText made;
  int64_t count = 0;
  const auto more = [&] { return most < 0 || count < most; };
  if (from.empty()) {
    // Before each character, and at the end.
    const std::vector<size_t> starts = character_starts(text.bytes());
    for (size_t i = 0; i < starts.size(); ++i) {
      if (more()) made.append(to), ++count;
      if (i + 1 < starts.size()) made.append(text, starts[i], starts[i + 1] - starts[i]);
    }
    return made;
  }
  size_t at = 0;
  while (more()) {
    const std::optional<size_t> found = find_text(text.bytes().substr(at), from);
    if (!found) break;
    made.append(text, at, *found);
    made.append(to);
    at += *found + from.size();
    ++count;
  }
  made.append(text, at, text.size() - at);
  return made;
}

std::vector<MarkedText> split_text(const MarkedText& text,
                                   std::optional<std::string_view> separator, int64_t most,
                                   bool from_right) {
  if (!separator) return split_words_of(text, most, from_right);
  std::vector<MarkedText> parts;
  std::string_view rest = text.bytes();
  if (from_right) {
    while (most < 0 || std::ssize(parts) < most) {
      const size_t at = rest.rfind(*separator);
      if (at == std::string_view::npos) break;
      const size_t begin = at + separator->size();
      parts.push_back(text.part(begin, rest.size() - begin));
      rest = rest.substr(0, at);
    }
    parts.push_back(text.part(0, rest.size()));
    std::ranges::reverse(parts);
    return parts;
  }
  size_t begin = 0;
  while (most < 0 || std::ssize(parts) < most) {
    const std::optional<size_t> at = find_text(rest.substr(begin), *separator);
    if (!at) break;
    parts.push_back(text.part(begin, *at));
    begin += *at + separator->size();
  }
  parts.push_back(text.part(begin, text.size() - begin));
  return parts;
}

std::vector<MarkedText> split_text_lines(const MarkedText& text, bool keeps_ends) {
  std::vector<MarkedText> lines;
  const std::string_view bytes = text.bytes();
  size_t begin = 0;
  for (size_t at = 0; at < bytes.size();) {
    const Character one = first_character(bytes.substr(at));
    const bool ends = (one.code >= '\n' && one.code <= '\r') ||
                      (one.code >= 0x1C && one.code <= 0x1E) || one.code == 0x85 ||
                      one.code == 0x2028 || one.code == 0x2029;
    const size_t end = at;
    at += one.bytes;
    if (!ends) continue;
    if (one.code == '\r' && bytes.substr(at).starts_with('\n')) ++at;
    lines.push_back(text.part(begin, (keeps_ends ? at : end) - begin));
    begin = at;
  }
  if (begin < bytes.size()) lines.push_back(text.part(begin, bytes.size() - begin));
  return lines;
}

}  // namespace hone
