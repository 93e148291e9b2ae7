#include "language/chat/template_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "language/characters.h"

namespace hone {
namespace {

using Kind = TemplateToken::Kind;

bool is_template_blank(char c) {
  return std::string_view(" \t\n\r\f\v").find(c) != std::string_view::npos;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// Line breaks as "\n", and without the one at the end, as Jinja reads templates.
std::string with_plain_lines(std::string_view text) {
  std::string made;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r')
      made += text[i];
    else if (i + 1 == text.size() || text[i + 1] != '\n')
      made += '\n';
  }
  if (made.ends_with('\n')) made.pop_back();
  return made;
}

constexpr std::string_view kSigns[] = {"//", "**", "==", "!=", "<=", ">=", "+", "-", "*",
                                       "/",  "%",  "~",  "<",  ">",  "(",  ")", "[", "]",
                                       "{",  "}",  ",",  ":",  ".",  "=",  "|"};

class TemplateLexer {
 public:
  explicit TemplateLexer(std::string_view text) : source_(with_plain_lines(text)), rest_(source_) {}

  Result<std::vector<TemplateToken>> read() {
    while (!rest_.empty()) {
      const size_t tag = next_tag();
      add_text(rest_.substr(0, tag), tag == rest_.size() ? 0 : rest_[tag + 1]);
      skip(tag);
      if (rest_.empty()) break;
      const char kind = rest_[1];
      skip(2);
      if (rest_.starts_with('-') || rest_.starts_with('+')) skip(1);
      HONE_TRY(kind == '#' ? skip_comment() : read_tag(kind == '%'));
    }
    add(Kind::end, "");
    return std::move(tokens_);
  }

 private:
  void add(Kind kind, std::string_view text) {
    tokens_.push_back({kind, std::string(text), line_});
  }
  void skip(size_t count) {
    line_ += static_cast<int>(std::ranges::count(rest_.substr(0, count), '\n'));
    rest_.remove_prefix(count);
  }
  void skip_blanks() {
    while (!rest_.empty() && is_template_blank(rest_[0])) skip(1);
  }
  size_t next_tag() const {
    for (size_t at = 0; (at = rest_.find('{', at)) != std::string_view::npos; ++at)
      if (at + 1 < rest_.size() &&
          std::string_view("{%#").find(rest_[at + 1]) != std::string_view::npos)
        return at;
    return rest_.size();
  }

  // Text before a tag of the kind, whose sign may take blanks from it. 0: the end.
  void add_text(std::string_view text, char kind) {
    const size_t after = text.size() + 2;
    const char sign = kind != 0 && after < rest_.size() ? rest_[after] : ' ';
    std::string_view kept = text;
    if (sign == '-') {
      while (!kept.empty() && is_template_blank(kept.back())) kept.remove_suffix(1);
    } else if ((kind == '%' || kind == '#') && sign != '+') {
      const size_t line = kept.rfind('\n') + 1;  // 0 if there is none
      if ((line > 0 || begins_line_) && std::ranges::all_of(kept.substr(line), is_template_blank))
        kept = kept.substr(0, line);
    }
    if (!kept.empty()) add(Kind::text, kept);
  }

  // Behind a tag: all blanks after '-', and a line break after a block.
  void after_tag(char sign, bool takes_line) {
    skip(2);
    if (sign == '-') {
      const std::string_view was = rest_;
      skip_blanks();
      begins_line_ = was.size() > rest_.size() && was[was.size() - rest_.size() - 1] == '\n';
      return;
    }
    begins_line_ = false;
    if (takes_line && sign != '+' && rest_.starts_with('\n')) {
      skip(1);
      begins_line_ = true;
    }
  }

  Status skip_comment() {
    const size_t end = rest_.find("#}");
    if (end == std::string_view::npos)
      return at_line(bad_input("a comment does not end").with_hint("#} ends it"), line_);
    const char sign = end > 0 ? rest_[end - 1] : ' ';
    skip(end);
    after_tag(sign, true);
    return {};
  }

  Status read_tag(bool is_block) {
    add(is_block ? Kind::block_begin : Kind::print_begin, "");
    const size_t first = tokens_.size();
    const int begin = line_;
    const std::string_view end = is_block ? "%}" : "}}";
    open_.clear();
    for (;;) {
      skip_blanks();
      if (rest_.empty())
        return at_line(bad_input("a tag does not end").with_hint(fmt::format("{} ends it", end)),
                       begin);
      if (open_.empty()) {
        const bool is_signed =
            rest_[0] == '-' || (is_block && rest_[0] == '+' && rest_.substr(1).starts_with(end));
        const char sign = is_signed ? rest_[0] : ' ';
        if (rest_.substr(is_signed ? 1 : 0).starts_with(end)) {
          add(is_block ? Kind::block_end : Kind::print_end, "");
          skip(is_signed ? 1 : 0);
          after_tag(sign, is_block);
          const bool is_raw = is_block && tokens_.size() == first + 2 &&
                              tokens_[first].kind == Kind::name && tokens_[first].text == "raw";
          return is_raw ? read_raw(begin) : Status();
        }
      }
      HONE_TRY(read_token());
    }
  }

  // "{% raw %}" was read: all is text up to "{% endraw %}".
  Status read_raw(int begin) {
    tokens_.resize(tokens_.size() - 3);
    for (size_t at = 0; (at = rest_.find("{%", at)) != std::string_view::npos; ++at) {
      std::string_view tag = rest_.substr(at + 2);
      if (tag.starts_with('-') || tag.starts_with('+')) tag.remove_prefix(1);
      while (!tag.empty() && is_template_blank(tag[0])) tag.remove_prefix(1);
      if (!consume_prefix(tag, "endraw")) continue;
      while (!tag.empty() && is_template_blank(tag[0])) tag.remove_prefix(1);
      const char sign = tag.starts_with('-') || tag.starts_with('+') ? tag[0] : ' ';
      if (sign != ' ') tag.remove_prefix(1);
      if (!tag.starts_with("%}")) continue;
      add_text(rest_.substr(0, at), '%');
      skip(static_cast<size_t>(tag.data() - rest_.data()));
      after_tag(sign, true);
      return {};
    }
    return at_line(bad_input("'raw' does not end").with_hint("endraw ends it"), begin);
  }

  Status read_token() {
    const char first = rest_[0];
    if (first == '\'' || first == '"') return read_string(first);
    if (is_digit(first)) return read_number();
    if (is_name(first)) {
      size_t size = 1;
      while (size < rest_.size() && is_name(rest_[size])) ++size;
      add(Kind::name, rest_.substr(0, size));
      skip(size);
      return {};
    }
    for (const std::string_view sign : kSigns)
      if (rest_.starts_with(sign)) return read_sign(sign);
    return at_line(bad_input("{} has no meaning in a tag",
                             hone::quoted(excerpt(rest_.substr(0, first_character(rest_).bytes)))),
                   line_);
  }

  Status read_sign(std::string_view sign) {
    constexpr std::string_view kOpen = "([{", kClose = ")]}";
    if (kOpen.find(sign) != std::string_view::npos) open_ += sign;
    if (const size_t at = kClose.find(sign); at != std::string_view::npos) {
      if (open_.empty() || open_.back() != kOpen[at])
        return at_line(bad_input("'{}' closes nothing", sign), line_);
      open_.pop_back();
    }
    add(Kind::sign, sign);
    skip(sign.size());
    return {};
  }

  Status read_number() {
    size_t size = 0;
    const auto digits = [&] {
      while (size < rest_.size() && is_digit(rest_[size])) ++size;
    };
    digits();
    bool is_real = false;
    const auto digit_at = [&](size_t at) { return at < rest_.size() && is_digit(rest_[at]); };
    if (size < rest_.size() && rest_[size] == '.' && digit_at(size + 1)) {
      is_real = true;
      ++size;
      digits();
    }
    if (size < rest_.size() && (rest_[size] == 'e' || rest_[size] == 'E')) {
      const size_t sign =
          size + 1 < rest_.size() && (rest_[size + 1] == '+' || rest_[size + 1] == '-');
      if (digit_at(size + 1 + sign)) {
        is_real = true;
        size += 1 + sign;
        digits();
      }
    }
    if ((size < rest_.size() && is_name(rest_[size])) || (!is_real && size > 1 && rest_[0] == '0'))
      return at_line(unsupported("the number {} is not decimal",
                                 hone::quoted(excerpt(rest_.substr(0, size + 1)))),
                     line_);
    add(is_real ? Kind::real : Kind::integer, rest_.substr(0, size));
    skip(size);
    return {};
  }

  Status read_string(char quote) {
    const int begin = line_;
    std::string made;
    skip(1);
    while (!rest_.empty() && rest_[0] != quote) {
      if (rest_[0] != '\\' || rest_.size() == 1) {
        made += rest_[0];
        skip(1);
        continue;
      }
      HONE_TRY(read_escape(made));
    }
    if (rest_.empty()) return at_line(bad_input("a text in quotes does not end"), begin);
    skip(1);
    tokens_.push_back({Kind::string, std::move(made), begin});
    return {};
  }

  // Escapes of Python. Unknown escapes stay as they are.
  Status read_escape(std::string& made) {
    constexpr std::string_view kNames = "abfnrtv\\'\"\n", kBytes = "\a\b\f\n\r\t\v\\'\"";
    const char name = rest_[1];
    const size_t digits = name == 'x' ? 2 : name == 'u' ? 4 : name == 'U' ? 8 : 0;
    if (digits > 0) return read_code(digits, made);
    if (name >= '0' && name <= '7')
      return at_line(unsupported("an octal escape in quotes").with_hint("write \\xHH"), line_);
    if (const size_t at = kNames.find(name); at == std::string_view::npos)
      made += rest_.substr(0, 2);
    else if (name != '\n')
      made += kBytes[at];
    skip(2);
    return {};
  }

  Status read_code(size_t digits, std::string& made) {
    const std::string_view text = rest_.substr(2, digits);
    uint32_t code = 0;
    for (const char c : text) {
      const size_t digit = std::string_view("0123456789abcdefABCDEF").find(c);
      if (digit == std::string_view::npos) break;
      code = code * 16 + static_cast<uint32_t>(digit < 16 ? digit : digit - 6);
    }
    const bool is_whole =
        text.size() == digits &&
        text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
    if (!is_whole || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      return at_line(
          bad_input("{} is no character", hone::quoted(excerpt(rest_.substr(0, 2 + digits)))),
          line_);
    made += utf8(code);
    skip(2 + digits);
    return {};
  }

  const std::string source_;
  std::string_view rest_;
  int line_ = 1;
  bool begins_line_ = true;
  std::string open_;  // brackets of the tag
  std::vector<TemplateToken> tokens_;
};

}  // namespace

Error at_line(Error error, int line) {
  return std::move(error).within(fmt::format("line {}", line));
}

Result<std::vector<TemplateToken>> template_tokens(std::string_view text) {
  return TemplateLexer(text).read();
}

}  // namespace hone
