#include "language/tokenizer.h"

#include <algorithm>
#include <queue>

#include "base/text.h"
#include "language/characters.h"

namespace hone {

// A part of a text that is a token, or a character that is not one yet.
struct Tokenizer::Symbol {
  std::string_view text;  // empty: it was joined to the one before it
  TokenId token = -1;
  size_t before = 0;
  size_t after = 0;
};

namespace {

constexpr std::string_view kBlank = "\u2581";
constexpr size_t kNone = SIZE_MAX;

// Two neighbours that may be joined: the best one first, of equals the leftmost.
struct Candidate {
  double order;  // the lowest goes first
  size_t left;
  size_t size;  // of the joined text: the symbols are still those
  TokenId token;
  bool operator<(const Candidate& other) const {
    return order != other.order ? order > other.order : left > other.left;
  }
};

// Joins neighbours as long as there is a best pair. `join(left, right)` gives a candidate's order
// and token, if there is one.
template <class Symbol, class Join>
void join_all(std::vector<Symbol>& symbols, const Join& join) {
  std::priority_queue<Candidate> open;
  const auto offer = [&](size_t left, size_t right) {
    if (left == kNone || right == kNone) return;
    if (std::optional<Candidate> found = join(symbols[left], symbols[right])) {
      found->left = left;
      found->size = symbols[left].text.size() + symbols[right].text.size();
      open.push(*found);
    }
  };
  for (size_t i = 0; i < symbols.size(); ++i) {
    symbols[i].before = i == 0 ? kNone : i - 1;
    symbols[i].after = i + 1 == symbols.size() ? kNone : i + 1;
    offer(symbols[i].before, i);
  }
  while (!open.empty()) {
    const Candidate best = open.top();
    open.pop();
    Symbol& left = symbols[best.left];
    if (left.text.empty() || left.after == kNone) continue;
    Symbol& right = symbols[left.after];
    if (left.text.size() + right.text.size() != best.size) continue;
    const std::optional<Candidate> still = join(left, right);
    if (!still || still->token != best.token) continue;
    left.text = {left.text.data(), best.size};
    left.token = best.token;
    left.after = right.after;
    right.text = {};
    if (left.after != kNone) symbols[left.after].before = best.left;
    offer(left.before, best.left);
    offer(best.left, left.after);
  }
}

uint64_t pair_of(TokenId left, TokenId right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

bool is_special(TokenClass kind) { return kind == TokenClass::control || kind == TokenClass::user; }

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

std::vector<std::string_view> split_words_at_spaces(std::string_view text) {
  std::vector<std::string_view> words = split(text, ' ');
  std::erase(words, std::string_view());
  return words;
}

std::string with_single_blanks(std::string_view text) {
  return join(split_words_at_spaces(text), " ");
}

std::string with_blanks_as_marks(std::string_view text) {
  std::string marked;
  for (const char c : text)
    if (c == ' ')
      marked += kBlank;
    else
      marked += c;
  return marked;
}

}  // namespace

Result<Tokenizer> Tokenizer::make(Vocabulary vocabulary) {
  Tokenizer made(std::move(vocabulary));
  HONE_TRY(made.set_up());
  return made;
}

Status Tokenizer::set_up() {
  bytes_.assign(256, -1);
  const bool is_byte_level = vocabulary_.rules.has_value();
  for (size_t i = 0; i < vocabulary_.tokens.size(); ++i) {
    const Vocabulary::Token& token = vocabulary_.tokens[i];
    const auto id = static_cast<TokenId>(i);
    const bool is_byte = is_byte_level ? token.kind == TokenClass::normal && token.text.size() == 1
                                       : token.kind == TokenClass::byte;
    if (is_byte) {
      TokenId& known = bytes_[static_cast<unsigned char>(token.text[0])];
      if (known < 0) known = id;
    }
    if (token.kind == TokenClass::normal || token.kind == TokenClass::user)
      ids_.emplace(token.text, id);
    if (is_special(token.kind) && !token.text.empty()) specials_[token.text[0]].push_back(id);
    std::string shown = token.kind == TokenClass::control || token.kind == TokenClass::unused
                            ? std::string()
                            : token.text;
    if (!is_byte_level && token.kind != TokenClass::byte) replace_all(shown, kBlank, " ");
    shown_.push_back(std::move(shown));
  }
  for (auto& [first, ids] : specials_)
    std::ranges::sort(ids, [&](TokenId a, TokenId b) {
      const auto size = [&](TokenId id) {
        return vocabulary_.tokens[static_cast<size_t>(id)].text.size();
      };
      return size(a) != size(b) ? size(a) > size(b) : a < b;
    });
  for (size_t byte = 0; byte < bytes_.size() && !is_byte_level; ++byte)
    if (bytes_[byte] < 0 && !vocabulary_.unknown)
      return bad_input("the vocabulary has no token for byte {}, and none for what is unknown",
                       byte);
  if (vocabulary_.is_unigram) unigram_ = HONE_TRY(Unigram::make(vocabulary_));
  return set_up_merges();
}

Status Tokenizer::set_up_merges() {
  for (size_t i = 0; i < vocabulary_.merges.size(); ++i) {
    const auto [left, right] = vocabulary_.merges[i];
    const std::string joined = vocabulary_.tokens[static_cast<size_t>(left)].text +
                               vocabulary_.tokens[static_cast<size_t>(right)].text;
    const auto found = ids_.find(joined);
    if (found == ids_.end())
      return bad_input("merge {} makes {}, which is no token", i, hone::quoted(excerpt(joined)));
    joins_.emplace(pair_of(left, right), Merge{static_cast<int32_t>(i), found->second});
  }
  return {};
}

// ---- Text to tokens
// ------------------------------------------------------------------------------

const TokenId* Tokenizer::special_at(std::string_view text, size_t at,
                                     const Allowed& allowed) const {
  const auto found = specials_.find(text[at]);
  if (found == specials_.end()) return nullptr;
  for (const TokenId& id : found->second) {
    const Vocabulary::Token& token = vocabulary_.tokens[static_cast<size_t>(id)];
    if (!text.substr(at).starts_with(token.text)) continue;
    if (token.kind == TokenClass::user || allowed(at, token.text.size())) return &id;
  }
  return nullptr;
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, Control control) const {
  return encode_where(text, [&](size_t, size_t) { return control == Control::is_token; });
}

std::vector<TokenId> Tokenizer::encode_where(std::string_view text, const Allowed& allowed) const {
  std::vector<TokenId> out;
  size_t begin = 0;
  bool begins = true;  // or follows a special token
  const auto flush = [&](size_t end) {
    if (end > begin) add_text(text.substr(begin, end - begin), begins, out);
  };
  for (size_t at = 0; at < text.size();) {
    const TokenId* const special = special_at(text, at, allowed);
    if (special == nullptr) {
      ++at;
      continue;
    }
    flush(at);
    out.push_back(*special);
    at += vocabulary_.tokens[static_cast<size_t>(*special)].text.size();
    begin = at;
    begins = true;
  }
  flush(text.size());
  return out;
}

std::vector<TokenId> Tokenizer::prompt(std::string_view text, Control control) const {
  std::vector<TokenId> out = encode(text, control);
  add_begin(out);
  if (vocabulary_.adds_end && vocabulary_.end) out.push_back(*vocabulary_.end);
  return out;
}

std::vector<TokenId> Tokenizer::conversation(const MarkedText& text) const {
  std::vector<TokenId> out =
      encode_where(text.bytes(), [&](size_t at, size_t size) { return !text.is_given(at, size); });
  add_begin(out);
  return out;
}

// As the model wants it, and not twice.
void Tokenizer::add_begin(std::vector<TokenId>& tokens) const {
  if (!vocabulary_.adds_begin || !vocabulary_.begin) return;
  if (tokens.empty() || tokens[0] != *vocabulary_.begin)
    tokens.insert(tokens.begin(), *vocabulary_.begin);
}

void Tokenizer::add_text(std::string_view text, bool begins, std::vector<TokenId>& out) const {
  if (vocabulary_.words)
    return each_word(text, *vocabulary_.words,
                     [&](const std::string& word) { add_word(word, out); });
  const std::string joined =
      vocabulary_.joins_blanks ? with_single_blanks(text) : std::string(text);
  if (joined.empty()) return;
  const bool has_blank = vocabulary_.adds_no_second && joined.starts_with(' ');
  const std::string spaced = vocabulary_.adds_blank && begins && !has_blank ? " " + joined : joined;
  if (!vocabulary_.rules) return add_sentence(with_blanks_as_marks(spaced), out);
  each_piece(spaced, *vocabulary_.rules, [&](std::string_view piece) { add_piece(piece, out); });
}

// A word is unknown as a whole.
void Tokenizer::add_word(const std::string& word, std::vector<TokenId>& out) const {
  constexpr size_t kMostCharacters = 100;
  std::vector<size_t> ends;  // of characters, in bytes
  for (size_t at = 0; at < word.size(); ends.push_back(at))
    at += first_character(std::string_view(word).substr(at)).bytes;
  std::vector<TokenId> pieces;
  size_t first = 0, begin = 0;
  while (begin < word.size() && ends.size() <= kMostCharacters) {
    size_t last = ends.size();
    auto found = ids_.end();
    for (; last > first && found == ids_.end(); --last) {
      const std::string part = word.substr(begin, ends[last - 1] - begin);
      found = ids_.find(begin == 0 ? part : "##" + part);
    }
    if (found == ids_.end()) break;
    pieces.push_back(found->second);
    begin = ends[last], first = last + 1;
  }
  if (begin < word.size()) pieces = {*vocabulary_.unknown};
  out.insert(out.end(), pieces.begin(), pieces.end());
}

void Tokenizer::add_bytes(std::string_view text, std::vector<TokenId>& out) const {
  for (const char c : text) {
    const TokenId byte = bytes_[static_cast<unsigned char>(c)];
    out.push_back(byte >= 0 ? byte : *vocabulary_.unknown);
  }
}

void Tokenizer::add_piece(std::string_view piece, std::vector<TokenId>& out) const {
  if (vocabulary_.takes_whole_pieces)
    if (const auto whole = ids_.find(std::string(piece)); whole != ids_.end())
      return out.push_back(whole->second);
  std::vector<Symbol> symbols;
  for (size_t i = 0; i < piece.size(); ++i)
    symbols.push_back({piece.substr(i, 1), bytes_[static_cast<unsigned char>(piece[i])]});
  join_all(symbols, [&](const Symbol& left, const Symbol& right) -> std::optional<Candidate> {
    const auto found = joins_.find(pair_of(left.token, right.token));
    if (found == joins_.end()) return std::nullopt;
    return Candidate{static_cast<double>(found->second.rank), 0, 0, found->second.token};
  });
  for (const Symbol& symbol : symbols) {
    if (symbol.text.empty()) continue;
    if (symbol.token >= 0)
      out.push_back(symbol.token);
    else if (vocabulary_.unknown)
      out.push_back(*vocabulary_.unknown);
  }
}

void Tokenizer::add_sentence(std::string text, std::vector<TokenId>& out) const {
  const auto token_of = [&](std::string_view part) -> TokenId {
    const auto found = ids_.find(std::string(part));
    return found == ids_.end() ? -1 : found->second;
  };
  if (vocabulary_.is_unigram) return add_best_pieces(text, out);
  std::vector<Symbol> symbols;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view one = rest.substr(0, first_character(rest).bytes);
    symbols.push_back({one, token_of(one)});
    rest.remove_prefix(one.size());
  }
  join_all(symbols, [&](const Symbol& left, const Symbol& right) -> std::optional<Candidate> {
    const TokenId token = token_of({left.text.data(), left.text.size() + right.text.size()});
    if (token < 0) return std::nullopt;
    return Candidate{-static_cast<double>(vocabulary_.tokens[static_cast<size_t>(token)].score), 0,
                     0, token};
  });
  for (const Symbol& symbol : symbols) {
    if (symbol.text.empty()) continue;
    if (symbol.token >= 0)
      out.push_back(symbol.token);
    else
      add_bytes(symbol.text, out);
  }
}

void Tokenizer::add_best_pieces(std::string_view text, std::vector<TokenId>& out) const {
  bool was_unknown = false;  // neighbours without a token are one unknown token
  unigram_.each(text, vocabulary_, [&](std::string_view part, TokenId token) {
    if (token >= 0) {
      out.push_back(token);
    } else if (std::ranges::all_of(
                   part, [&](char c) { return bytes_[static_cast<unsigned char>(c)] >= 0; })) {
      return add_bytes(part, out);
    } else if (!was_unknown) {
      out.push_back(*vocabulary_.unknown);
    }
    was_unknown = token < 0;
  });
}

// ---- Tokens to text
// ------------------------------------------------------------------------------

std::string_view Tokenizer::bytes_of(TokenId token) const {
  const bool is_token = token >= 0 && token < std::ssize(shown_);
  return is_token ? std::string_view(shown_[static_cast<size_t>(token)]) : std::string_view();
}

std::string Tokenizer::decode(std::span<const TokenId> tokens) const {
  std::string text;
  for (const TokenId token : tokens) text += bytes_of(token);
  return text;
}

bool Tokenizer::ends_text(TokenId token) const {
  return std::ranges::find(vocabulary_.ends, token) != vocabulary_.ends.end();
}

// ---- While tokens come
// ---------------------------------------------------------------------------

std::string TextStream::add(std::string_view bytes) {
  if (is_stopped_) return "";
  held_ += bytes;
  size_t certain = held_.size() - unfinished_bytes(held_);
  for (const std::string& stop : stops_) {
    if (const size_t at = held_.find(stop); at != std::string::npos) {
      is_stopped_ = true;
      certain = std::min(certain, at);
    }
    // A part of the stop at the end may become the whole.
    for (size_t part = std::min(stop.size(), held_.size()); part > 0 && !is_stopped_; --part)
      if (held_.ends_with(std::string_view(stop).substr(0, part))) {
        certain = std::min(certain, held_.size() - part);
        break;
      }
  }
  std::string text = held_.substr(0, certain);
  held_.erase(0, is_stopped_ ? held_.size() : certain);
  return text;
}

std::string TextStream::finish() { return std::exchange(held_, ""); }

}  // namespace hone
