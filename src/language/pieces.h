#pragma once

#include <functional>
#include <optional>
#include <string_view>

// How byte-level tokenizers cut a text into pieces, whose bytes are then merged: words with the
// blank before them, numbers, signs, blanks. The published rules are regular expressions.

namespace hone {

struct PieceRules {
  bool any_case = false;        // 'S and 's alike
  bool any_before = false;      // a word may begin with any sign, not only with a blank
  int digits = 0;               // of a number, at most; 0: any number of them, behind a blank
  bool lone_digits = false;     // each digit is cut out first, and the rest is cut by itself
  bool keeps_newlines = false;  // line breaks belong to what is before them
};

// Named as tokenizer.ggml.pre says: "gpt-2", "llama-bpe", "qwen2", "smollm".
std::optional<PieceRules> piece_rules(std::string_view name);
std::string_view known_piece_rules();  // their names, for messages

// Calls `take` for each piece in order; together they are the text.
void each_piece(std::string_view text, const PieceRules& rules,
                const std::function<void(std::string_view)>& take);

}  // namespace hone
