#include "language/unigram.h"

#include <algorithm>
#include <cmath>

#include "language/characters.h"

namespace hone {
namespace {

constexpr double kUnknownPenalty = 10;  // below the lowest score
constexpr std::string_view kMark = "\u2581";

// The best way to the end of a prefix of the text.
struct Reached {
  double score = 0;
  size_t from = SIZE_MAX;  // none yet
  TokenId token = -1;
};

std::string_view text_of_token(const Vocabulary& vocabulary, TokenId token) {
  return vocabulary.tokens[static_cast<size_t>(token)].text;
}

}  // namespace

Result<Unigram> Unigram::make(const Vocabulary& vocabulary) {
  Unigram made;
  double lowest = 0;
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const Vocabulary::Token& token = vocabulary.tokens[i];
    if (token.kind != TokenClass::normal || token.text.empty()) continue;
    if (!std::isfinite(token.score)) return bad_input("the score of token {} is no number", i);
    if (token.text.size() > kLongestPiece)
      return unsupported("token {} has {} bytes; pieces have at most {}", i, token.text.size(),
                         kLongestPiece);
    lowest = std::min(lowest, static_cast<double>(token.score));
    const bool has_blank_inside = token.text.find(kMark, 1) != std::string::npos;
    if (!vocabulary.splits_words || !has_blank_inside)
      made.sorted_.push_back(static_cast<TokenId>(i));
  }
  // Among equal texts the first token counts.
  std::ranges::sort(made.sorted_, [&](TokenId a, TokenId b) {
    const int order = text_of_token(vocabulary, a).compare(text_of_token(vocabulary, b));
    return order != 0 ? order < 0 : a < b;
  });
  made.unknown_score_ = lowest - kUnknownPenalty;
  return made;
}

void Unigram::each(std::string_view text, const Vocabulary& vocabulary,
                   const std::function<void(std::string_view, TokenId)>& take) const {
  std::vector<Reached> ways(text.size() + 1);
  const auto offer = [&](size_t from, size_t to, double score, TokenId token) {
    Reached& known = ways[to];
    const double sum = ways[from].score + score;
    if (known.from == SIZE_MAX || sum > known.score) known = {sum, from, token};
  };
  for (size_t at = 0; at < text.size();) {
    const size_t next = first_character(text.substr(at)).bytes;
    bool is_known = false;
    // The tokens that begin with the first `size` bytes lie together.
    auto low = sorted_.begin(), high = sorted_.end();
    for (size_t size = 1; at + size <= text.size() && low != high; ++size) {
      const auto byte = static_cast<unsigned char>(text[at + size - 1]);
      const auto byte_of = [&](TokenId token) {
        const std::string_view piece = text_of_token(vocabulary, token);
        return piece.size() < size ? -1
                                   : static_cast<int>(static_cast<unsigned char>(piece[size - 1]));
      };
      low = std::ranges::lower_bound(low, high, static_cast<int>(byte), {}, byte_of);
      high = std::ranges::upper_bound(low, high, static_cast<int>(byte), {}, byte_of);
      if (low == high || text_of_token(vocabulary, *low).size() != size) continue;
      offer(at, at + size, vocabulary.tokens[static_cast<size_t>(*low)].score, *low);
      is_known = is_known || size == next;
    }
    if (!is_known) offer(at, at + next, unknown_score_, -1);
    at += next;
  }
  std::vector<std::pair<size_t, size_t>> parts;
  for (size_t end = text.size(); end > 0; end = ways[end].from)
    parts.emplace_back(ways[end].from, end);
  for (auto part = parts.rbegin(); part != parts.rend(); ++part)
    take(text.substr(part->first, part->second - part->first), ways[part->second].token);
}

}  // namespace hone
