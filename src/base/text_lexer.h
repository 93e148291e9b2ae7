#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// Tokens of the text format. Blanks, line breaks and comments (# to the end of the line) separate
// tokens and mean nothing else.

namespace hone {

enum class TokenKind {
  end,
  word,    // graph, add, f32, _
  value,   // %x, %12, %"odd name"
  global,  // @mlp, @"odd name"
  number,  // 12, -3, 0.5, 1e-05, -inf (inf and nan are words)
  string,  // "..." with its quotes
  punct,   // one character, or -> or ..
  bad,     // an unknown character or an open string
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;
  size_t offset = 0;  // in the source

  bool is(std::string_view spelling) const {
    return text == spelling && (kind == TokenKind::punct || kind == TokenKind::word);
  }
};

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) { next(); }

  const Token& peek() const { return token_; }
  Token take() {
    Token token = token_;
    next();
    return token;
  }
  // Moves behind the bracket that closes the one at hand and returns all from one to the other. An
  // empty text: it is never closed.
  std::string_view take_brackets();

  std::string_view source() const { return source_; }

 private:
  void next();
  size_t skip_blanks(size_t at) const;
  size_t skip_string(size_t at) const;  // behind the closing quote; npos if there is none
  void accept(TokenKind kind, size_t end);
  void accept_sigil(TokenKind kind);

  std::string_view source_;
  size_t at_ = 0;
  Token token_;
};

// True if a name can follow % or @ without quotes.
bool is_plain_name(std::string_view name);

// The pieces between commas that stand outside of brackets and quotes.
std::vector<std::string_view> split_outside_brackets(std::string_view text);

// "line:column", both from 1; columns count code points.
std::string line_and_column(std::string_view source, size_t offset);

}  // namespace hone
