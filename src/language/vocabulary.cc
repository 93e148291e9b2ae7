#include "language/vocabulary.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/text.h"
#include "language/characters.h"

namespace hone {
namespace {

// Bytes that are printable in Latin-1 stand for themselves. The 68 others have the characters from
// U+0100 on, in order.
bool is_printable(char32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
         (byte >= 0xAE && byte <= 0xFF);
}

constexpr size_t kOthers = 68;

std::array<char, kOthers> other_bytes() {
  std::array<char, kOthers> bytes = {};
  size_t count = 0;
  for (char32_t byte = 0; byte < 256; ++byte)
    if (!is_printable(byte)) bytes[count++] = static_cast<char>(byte);
  return bytes;
}

// ---- Metadata
// ------------------------------------------------------------------------------------

constexpr std::string_view kEndTexts[] = {"<|eot_id|>",    "<|im_end|>",      "<|end|>",
                                          "<end_of_turn>", "<|endoftext|>",   "<|end_of_text|>",
                                          "</s>",          "<|end_of_turn|>", "<EOT>"};

class GgufVocabulary {
 public:
  explicit GgufVocabulary(const Gguf& file) : file_(file) {}

  Result<Vocabulary> read() {
    const auto* const model = HONE_TRY(file_.get<std::string_view>(key("model")));
    if (model == nullptr)
      return bad_input("key '{}' is missing: the file has no tokenizer", key("model"));
    HONE_TRY(read_tokens());
    if (*model == "gpt2") {
      HONE_TRY(read_byte_level());
    } else if (*model == "llama" || *model == "t5") {
      made_.is_unigram = *model == "t5";
      HONE_TRY(read_sentence_pieces());
    } else if (*model == "bert") {
      HONE_TRY(read_words());
    } else {
      return unsupported("the tokenizer is {}; hone knows gpt2, llama, t5 and bert",
                         hone::quoted(excerpt(*model)));
    }
    HONE_TRY(read_specials());
    return std::move(made_);
  }

 private:
  static std::string key(std::string_view name) { return fmt::format("tokenizer.ggml.{}", name); }

  template <class T>
  Result<const std::vector<T>*> list(std::string_view name, bool is_needed) {
    const auto* const found = HONE_TRY(file_.get<std::vector<T>>(key(name)));
    if (found == nullptr && is_needed) return bad_input("key '{}' is missing", key(name));
    return found;
  }
  // A list of as many items as there are tokens; null if there is none.
  template <class T>
  Result<const std::vector<T>*> by_token(std::string_view name, bool is_needed) {
    const std::vector<T>* const found = HONE_TRY(list<T>(name, is_needed));
    if (found != nullptr && found->size() != made_.tokens.size())
      return bad_input("key '{}' has {} items for {} tokens", key(name), found->size(),
                       made_.tokens.size());
    return found;
  }

  Status read_tokens() {
    const std::vector<std::string_view>* const texts =
        HONE_TRY(list<std::string_view>("tokens", true));
    if (texts->empty()) return bad_input("key '{}' is empty", key("tokens"));
    for (const std::string_view text : *texts) made_.tokens.push_back({.text = std::string(text)});
    const std::vector<int64_t>* const kinds = HONE_TRY(by_token<int64_t>("token_type", false));
    for (size_t i = 0; kinds != nullptr && i < kinds->size(); ++i) {
      const int64_t kind = (*kinds)[i];
      if (kind < 1 || kind > 6) return bad_input("token {} has type {}; types are 1 to 6", i, kind);
      made_.tokens[i].kind = static_cast<TokenClass>(kind - 1);
    }
    return {};
  }

  Result<bool> flag(std::string_view name, bool fallback) {
    const bool* const found = HONE_TRY(file_.get<bool>(key(name)));
    return found == nullptr ? fallback : *found;
  }

  Status read_byte_level() {
    const auto* const named = HONE_TRY(file_.get<std::string_view>(key("pre")));
    const std::string_view pre = named == nullptr ? "gpt-2" : *named;
    made_.rules = piece_rules(pre);
    if (!made_.rules)
      return unsupported("the tokenizer cuts text by the rules {}; hone knows {}",
                         hone::quoted(excerpt(pre)), known_piece_rules());
    made_.takes_whole_pieces = made_.rules->digits == 3;  // the rules of Llama 3
    made_.adds_begin = HONE_TRY(flag("add_bos_token", made_.takes_whole_pieces));
    made_.adds_blank = HONE_TRY(flag("add_space_prefix", false));
    std::unordered_map<std::string_view, TokenId> ids;
    const std::vector<std::string_view>* const texts =
        HONE_TRY(list<std::string_view>("tokens", true));
    for (size_t i = 0; i < texts->size(); ++i) ids.emplace((*texts)[i], static_cast<TokenId>(i));
    HONE_TRY(read_merges(ids));
    for (Vocabulary::Token& token : made_.tokens) {
      if (token.kind != TokenClass::normal) continue;
      // Text that stands for no bytes never occurs as a piece, and is shown as it is.
      if (std::optional<std::string> bytes = bytes_of_printable(token.text))
        token.text = *std::move(bytes);
    }
    return {};
  }

  Status read_merges(const std::unordered_map<std::string_view, TokenId>& ids) {
    const std::vector<std::string_view>* const merges =
        HONE_TRY(list<std::string_view>("merges", true));
    for (size_t i = 0; i < merges->size(); ++i) {
      const std::string_view text = (*merges)[i];
      const size_t blank = text.find(' ', 1);
      const auto token = [&](std::string_view part) { return ids.find(part); };
      const bool is_pair = blank != std::string_view::npos && blank + 1 < text.size();
      const auto left = is_pair ? token(text.substr(0, blank)) : ids.end();
      const auto right = is_pair ? token(text.substr(blank + 1)) : ids.end();
      if (left == ids.end() || right == ids.end())
        return bad_input("merge {} is {}, not two tokens with a blank between them", i,
                         hone::quoted(excerpt(text)));
      made_.merges.emplace_back(left->second, right->second);
    }
    return {};
  }

  Status read_sentence_pieces() {
    const std::vector<double>* const scores = HONE_TRY(by_token<double>("scores", true));
    for (size_t i = 0; i < scores->size(); ++i)
      made_.tokens[i].score = static_cast<float>((*scores)[i]);
    made_.adds_begin = HONE_TRY(flag("add_bos_token", !made_.is_unigram));
    made_.adds_blank = HONE_TRY(flag("add_space_prefix", true));
    made_.joins_blanks = HONE_TRY(flag("remove_extra_whitespaces", false));
    for (size_t i = 0; i < made_.tokens.size(); ++i) {
      Vocabulary::Token& token = made_.tokens[i];
      if (token.kind == TokenClass::byte) HONE_TRY(read_byte(i, token));
    }
    return {};
  }

  // Pieces that begin a word have U+2581 in front, where the vocabulary of BERT has nothing; the
  // others have nothing for "##".
  Status read_words() {
    made_.words = WordRules();
    constexpr std::string_view kMark = "\u2581";
    for (Vocabulary::Token& token : made_.tokens) {
      if (token.kind != TokenClass::normal) continue;
      std::string_view text = token.text;
      token.text = consume_prefix(text, kMark) ? std::string(text) : "##" + token.text;
    }
    return {};
  }

  static Status read_byte(size_t i, Vocabulary::Token& token) {
    const std::optional<char> byte = byte_of_name(token.text);
    if (!byte)
      return bad_input("token {} is a byte, but reads {}", i, hone::quoted(excerpt(token.text)));
    token.text = *byte;
    return {};
  }

  Result<std::optional<TokenId>> special(std::string_view name) {
    const int64_t* const found = HONE_TRY(file_.get<int64_t>(key(name)));
    if (found == nullptr) return std::optional<TokenId>();
    if (*found < 0 || *found >= std::ssize(made_.tokens))
      return bad_input("key '{}' is {}, but there are {} tokens", key(name), *found,
                       made_.tokens.size());
    return std::optional(static_cast<TokenId>(*found));
  }

  Status read_specials() {
    made_.begin = HONE_TRY(special("bos_token_id"));
    made_.end = HONE_TRY(special("eos_token_id"));
    // Where bytes are merged, the key often names a token that ends a text.
    if (!made_.rules) made_.unknown = HONE_TRY(special("unknown_token_id"));
    made_.adds_end = HONE_TRY(flag("add_eos_token", false));
    if (made_.words) HONE_TRY(read_ends_of_words());
    const std::optional<TokenId> turn = HONE_TRY(special("eot_token_id"));
    for (size_t i = 0; i < made_.tokens.size(); ++i) {
      const Vocabulary::Token& token = made_.tokens[i];
      const auto id = static_cast<TokenId>(i);
      const bool is_named = std::ranges::find(kEndTexts, token.text) != std::end(kEndTexts) &&
                            (token.kind == TokenClass::control || token.kind == TokenClass::user);
      if (is_named || made_.end == id || turn == id) made_.ends.push_back(id);
    }
    if (const auto* const text = HONE_TRY(file_.get<std::string_view>("tokenizer.chat_template")))
      made_.chat_template = *text;
    return {};
  }

  // [CLS] and [SEP], which older files name by keys of their own.
  Status read_ends_of_words() {
    if (const std::optional<TokenId> first = HONE_TRY(special("cls_token_id"))) made_.begin = first;
    if (!made_.end) made_.end = HONE_TRY(special("seperator_token_id"));
    made_.adds_begin = HONE_TRY(flag("add_bos_token", true));
    made_.adds_end = HONE_TRY(flag("add_eos_token", true));
    return {};
  }

  const Gguf& file_;
  Vocabulary made_;
};

}  // namespace

std::optional<std::string> bytes_of_printable(std::string_view text) {
  static const std::array<char, kOthers> kBytes = other_bytes();
  std::string bytes;
  while (!text.empty()) {
    const Character next = first_character(text);
    text.remove_prefix(next.bytes);
    if (next.code < 256 && is_printable(next.code)) {
      bytes += static_cast<char>(next.code);
    } else if (next.code >= 256 && next.code < 256 + kOthers) {
      bytes += kBytes[next.code - 256];
    } else {
      return std::nullopt;
    }
  }
  return bytes;
}

std::optional<char> byte_of_name(std::string_view text) {
  const auto digit = [](char c) {
    const size_t found = std::string_view("0123456789ABCDEF").find(c);
    return found == std::string_view::npos ? -1 : static_cast<int>(found);
  };
  if (text.size() != 6 || !text.starts_with("<0x") || !text.ends_with('>')) return std::nullopt;
  const int high = digit(text[3]), low = digit(text[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

Result<Vocabulary> gguf_vocabulary(const Gguf& file) { return GgufVocabulary(file).read(); }

}  // namespace hone
