#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "language/chat/marked_text.h"
#include "language/unigram.h"
#include "language/vocabulary.h"

namespace hone {

// Text as tokens, and back. Any bytes are text: a byte outside of all characters of UTF-8 counts as
// a sign, and decoding gives it back.
class Tokenizer {
 public:
  // Decides if control tokens that are spelled out in the text become tokens. Text of a user
  // must not.
  enum class Control : uint8_t { is_text, is_token };

  // Refused: sentence pieces that have no token for some byte and none for what is unknown.
  static Result<Tokenizer> make(Vocabulary vocabulary);

  std::vector<TokenId> encode(std::string_view text, Control control = Control::is_text) const;
  // With the tokens that begin and end a text, as the model wants them.
  std::vector<TokenId> prompt(std::string_view text, Control control = Control::is_text) const;
  // A conversation that a chat template wrote: what comes from messages spells no control token.
  std::vector<TokenId> conversation(const MarkedText& text) const;

  // The bytes that the token stands for; none for a control token.
  std::string_view bytes_of(TokenId token) const;
  std::string decode(std::span<const TokenId> tokens) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  int64_t size() const { return std::ssize(vocabulary_.tokens); }
  bool ends_text(TokenId token) const;

 private:
  struct Symbol;
  struct Merge {
    int32_t rank;
    TokenId token;
  };
  using Joins = std::unordered_map<uint64_t, Merge>;

  explicit Tokenizer(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  Status set_up();
  Status set_up_merges();
  void add_text(std::string_view text, bool begins, std::vector<TokenId>& out) const;
  void add_piece(std::string_view piece, std::vector<TokenId>& out) const;
  void add_sentence(std::string text, std::vector<TokenId>& out) const;
  void add_best_pieces(std::string_view text, std::vector<TokenId>& out) const;
  void add_word(const std::string& word, std::vector<TokenId>& out) const;
  void add_bytes(std::string_view text, std::vector<TokenId>& out) const;
  // Decides if a control token may stand at these bytes.
  using Allowed = std::function<bool(size_t at, size_t size)>;
  std::vector<TokenId> encode_where(std::string_view text, const Allowed& allowed) const;
  const TokenId* special_at(std::string_view text, size_t at, const Allowed& allowed) const;
  void add_begin(std::vector<TokenId>& tokens) const;

  Vocabulary vocabulary_;
  std::unordered_map<std::string, TokenId> ids_;  // of normal tokens, by their bytes
  std::vector<TokenId> bytes_;                    // by byte; -1: none
  Unigram unigram_;
  Joins joins_;                                              // by the two tokens
  std::unordered_map<char, std::vector<TokenId>> specials_;  // by first byte, the longest first
  std::vector<std::string> shown_;                           // what tokens stand for
};

// Tokens as text that is shown while they come: keeps back the bytes of a character that is not
// complete, and the beginning of a text that stops the generation.
class TextStream {
 public:
  explicit TextStream(std::vector<std::string> stops = {}) : stops_(std::move(stops)) {}

  // The text that is certain now.
  std::string add(std::string_view bytes);
  // The rest; nothing comes after it.
  std::string finish();
  bool is_stopped() const { return is_stopped_; }  // a stop was met; the text ends before it

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool is_stopped_ = false;
};

}  // namespace hone
