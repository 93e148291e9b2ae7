#include "language/words.h"

#include "language/character_folds.h"
#include "language/characters.h"

namespace hone {
namespace {

// Control characters, some of which are blanks elsewhere.
bool is_left_out(char32_t c) {
  constexpr char32_t kReplacement = 0xFFFD;
  return c == kReplacement || (is_control(c) && c != '\t' && c != '\n' && c != '\r');
}

class WordCutter {
 public:
  WordCutter(const WordRules& rules, const std::function<void(const std::string&)>& take)
      : rules_(rules), take_(take) {}

  void add(const Character& next, std::string_view bytes) {
    const char32_t c = next.code;
    if (c == kNoCharacter) {
      word_ += bytes;
    } else if (rules_.cleans && is_left_out(c)) {
      return;
    } else if (kind_of(c) == CharacterKind::blank) {
      end();
    } else if (rules_.splits_ideographs && is_ideograph(c)) {
      end();
      add_folded(c);
      end();
    } else {
      add_folded(c);
    }
  }
  void end() {
    if (!word_.empty()) take_(word_);
    word_.clear();
  }

 private:
  void add_folded(char32_t c) {
    for (const char32_t part : rules_.folds ? folded(c) : std::u32string{c}) {
      if (is_punctuation(part)) {
        end();
        take_(utf8(part));
      } else {
        word_ += utf8(part);
      }
    }
  }

  const WordRules& rules_;
  const std::function<void(const std::string&)>& take_;
  std::string word_;
};

}  // namespace

void each_word(std::string_view text, const WordRules& rules,
               const std::function<void(const std::string&)>& take) {
  WordCutter cutter(rules, take);
  while (!text.empty()) {
    const Character next = first_character(text);
    cutter.add(next, text.substr(0, next.bytes));
    text.remove_prefix(next.bytes);
  }
  cutter.end();
}

}  // namespace hone
