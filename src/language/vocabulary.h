#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "formats/gguf.h"
#include "language/pieces.h"
#include "language/words.h"

// The parts of a tokenizer, from any file.

namespace hone {

using TokenId = int32_t;

enum class TokenClass : uint8_t { normal, unknown, control, user, unused, byte };

struct Vocabulary {
  struct Token {
    std::string text;  // bytes of UTF-8; a byte token stands for one byte
    float score = 0;   // of sentence pieces: the highest is merged first
    TokenClass kind = TokenClass::normal;
  };
  std::vector<Token> tokens;
  // Byte-level: pieces of text are cut by these rules and merged by `merges`, first ones first.
  // Nothing: sentence pieces, with U+2581 for a blank. They are merged by their scores, or, in a
  // unigram vocabulary, are those whose scores sum to the most.
  std::optional<PieceRules> rules = {};
  std::vector<std::pair<TokenId, TokenId>> merges = {};
  // Words, each as its longest pieces from the left; those behind the first one begin with "##".
  std::optional<WordRules> words = {};
  bool takes_whole_pieces = false;  // a piece that is a token is not merged from its bytes
  bool is_unigram = false;
  bool splits_words = false;    // no piece of a unigram vocabulary goes beyond a blank
  bool joins_blanks = false;    // several blanks are one, and none is left at both ends
  bool adds_blank = false;      // before text that begins, or that follows a special token
  bool adds_no_second = false;  // and not before a text that begins with a blank
  bool adds_begin = false;
  bool adds_end = false;
  std::optional<TokenId> begin = {};
  std::optional<TokenId> end = {};
  std::optional<TokenId> unknown = {};  // nothing: bytes that have no token are left out
  std::vector<TokenId> ends = {};       // that end a generated text
  std::string chat_template = {};
};

// From tokenizer.ggml.*; the error says what contradicts what.
Result<Vocabulary> gguf_vocabulary(const Gguf& file);

// The bytes for which printable characters stand in a byte-level vocabulary; nothing: it has a
// character that stands for no byte.
std::optional<std::string> bytes_of_printable(std::string_view text);
// The byte that a piece such as "<0xE4>" stands for; nothing: it stands for none.
std::optional<char> byte_of_name(std::string_view text);

}  // namespace hone
