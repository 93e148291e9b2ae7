#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace hone {

namespace {

constexpr std::string_view blanks = " \t\r\n";

char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = to_lower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const size_t at = text.find(separator);
    pieces.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return pieces;
    text.remove_prefix(at + 1);
  }
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t at = text.find_first_not_of(blanks); at != std::string_view::npos;) {
    const size_t end = text.find_first_of(blanks, at);
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(blanks, end);
  }
  return words;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  if (text.empty()) return {};
  if (text.ends_with('\n')) text.remove_suffix(1);
  std::vector<std::string_view> lines = split(text, '\n');
  for (std::string_view& line : lines) {
    if (line.ends_with('\r')) line.remove_suffix(1);
  }
  return lines;
}

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

bool consume_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

Result<int64_t> parse_int(std::string_view text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code == std::errc::invalid_argument || stop != end) {
    return bad_input("'{}' is not an integer", excerpt(text));
  }
  if (code != std::errc()) return bad_input("'{}' does not fit in 64 bits", excerpt(text));
  return value;
}

Result<double> parse_double(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  // from_chars would also take "infinity", "INF" and "nan(...)".
  const bool plain = text.find_first_not_of("+-.0123456789eEinfa") == std::string_view::npos;
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (!plain || code == std::errc::invalid_argument || stop != end) {
    return bad_input("'{}' is not a number", excerpt(text));
  }
  if (code != std::errc()) return bad_input("'{}' is outside of the range of f64", excerpt(text));
  return value;
}

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '\r': out += "\\r"; break;
      default:
        if (c >= ' ' && c <= '~') {
          out += c;
        } else {
          out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        }
    }
  }
  return out;
}

Result<std::string> unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (++i == text.size()) return bad_input("the text ends within an escape");
    switch (text[i]) {
      case '"': out += '"'; break;
      case '\\': out += '\\'; break;
      case 'n': out += '\n'; break;
      case 't': out += '\t'; break;
      case 'r': out += '\r'; break;
      case 'x': {
        const int high = i + 1 < text.size() ? hex_digit(text[i + 1]) : -1;
        const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
        if (high < 0 || low < 0) return bad_input("\\x needs two hexadecimal digits");
        out += static_cast<char>(high * 16 + low);
        i += 2;
        break;
      }
      default: return bad_input("unknown escape '\\{}'", escape(text.substr(i, 1)));
    }
  }
  return out;
}

std::string quoted(std::string_view text) { return "\"" + escape(text) + "\""; }

std::string excerpt(std::string_view text) {
  constexpr size_t kShown = 60;
  // Cut first: an escaped byte must not be cut in two.
  return text.size() <= kShown ? escape(text) : escape(text.substr(0, kShown - 3)) + "...";
}

// The "optimal string alignment" distance, row by row.
int64_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<int64_t> before(b.size() + 1);
  std::vector<int64_t> previous(b.size() + 1);
  std::vector<int64_t> current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) current[j] = static_cast<int64_t>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(previous);
    previous.swap(current);
    current[0] = static_cast<int64_t>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int64_t replace = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({replace, previous[j] + 1, current[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) current[j] = std::min(current[j], before[j - 2] + 1);
    }
  }
  return current[b.size()];
}

std::optional<std::string_view> closest_match(std::string_view name,
                                              std::span<const std::string_view> candidates) {
  constexpr size_t longest = 100;  // The distance takes quadratic time, and names may be hostile.
  if (name.empty() || name.size() > longest) return std::nullopt;
  const auto lower = [](std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), to_lower);
    return out;
  };
  const std::string wanted = lower(name);
  int64_t limit = std::max<int64_t>(1, static_cast<int64_t>(name.size()) / 3);
  std::optional<std::string_view> best;
  for (std::string_view candidate : candidates) {
    if (candidate.size() > 2 * longest) continue;
    const int64_t distance = edit_distance(wanted, lower(candidate));
    // A distance of a whole name means nothing in common: 'a' is not a misspelled 'b'.
    if (distance > limit || distance >= static_cast<int64_t>(candidate.size())) continue;
    best = candidate;
    limit = distance - 1;
  }
  return best;
}

}  // namespace hone
