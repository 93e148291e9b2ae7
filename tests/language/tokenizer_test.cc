#include "language/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "language/characters.h"
#include "tests/base/says_testing.h"
#include "tests/front/gguf_file.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;
using testing::ElementsAre;
using Ids = std::vector<TokenId>;

// ---- Characters
// ----------------------------------------------------------------------------------

TEST(Characters, HaveTheKindsOfUnicode) {
  EXPECT_EQ(kind_of('a'), CharacterKind::letter);
  EXPECT_EQ(kind_of(U'é'), CharacterKind::letter);
  EXPECT_EQ(kind_of(U'語'), CharacterKind::letter);
  EXPECT_EQ(kind_of('7'), CharacterKind::number);
  EXPECT_EQ(kind_of(U'Ⅷ'), CharacterKind::number);
  EXPECT_EQ(kind_of(0x301), CharacterKind::mark);
  EXPECT_EQ(kind_of('\n'), CharacterKind::blank);
  EXPECT_EQ(kind_of(0x3000), CharacterKind::blank);
  EXPECT_EQ(kind_of('_'), CharacterKind::other);
  EXPECT_EQ(kind_of(U'€'), CharacterKind::other);
  EXPECT_EQ(kind_of(kNoCharacter), CharacterKind::other);
}

TEST(Characters, AreReadAsUtf8Says) {
  for (const char32_t c : {U'a', U'é', U'語', U'😀', char32_t{0x7FF}, char32_t{0x10FFFF}}) {
    const std::string text = utf8(c) + "x";
    EXPECT_EQ(first_character(text).code, c);
    EXPECT_EQ(first_character(text).bytes + 1U, text.size());
  }
  // Overlong, a surrogate, above the last code, a lone continuation, cut short.
  for (const char* bad : {"\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80",
                          "\xFF", "\xE8\xAA", "\xC3 "}) {
    EXPECT_EQ(first_character(bad).code, kNoCharacter);
    EXPECT_EQ(first_character(bad).bytes, 1);
  }
}

TEST(Characters, TheEndMayBeUnfinished) {
  EXPECT_EQ(unfinished_bytes("abc"), 0U);
  EXPECT_EQ(unfinished_bytes(""), 0U);
  EXPECT_EQ(unfinished_bytes("a\xC3"), 1U);
  EXPECT_EQ(unfinished_bytes("\xE8\xAA"), 2U);
  EXPECT_EQ(unfinished_bytes("\xF0\x9F\x98"), 3U);
  EXPECT_EQ(unfinished_bytes("\xE8\xAA\x9E"), 0U);
  EXPECT_EQ(unfinished_bytes("\x80\x80\x80\x80"), 0U) << "nothing begins there";
}

// ---- Pieces
// --------------------------------------------------------------------------------------

std::vector<std::string> pieces(std::string_view text, std::string_view rules) {
  std::vector<std::string> found;
  each_piece(text, piece_rules(rules).value(),
             [&](std::string_view piece) { found.emplace_back(piece); });
  return found;
}

TEST(Pieces, OfGpt2) {
  EXPECT_THAT(pieces("Hello world", "gpt-2"), ElementsAre("Hello", " world"));
  EXPECT_THAT(pieces("it's WE'LL", "gpt-2"), ElementsAre("it", "'s", " WE", "'", "LL"));
  EXPECT_THAT(pieces("a 123b", "gpt-2"), ElementsAre("a", " 123", "b"));
  EXPECT_THAT(pieces("x  y", "gpt-2"), ElementsAre("x", " ", " y"));
  EXPECT_THAT(pieces("x \n y  ", "gpt-2"), ElementsAre("x", " \n", " y", "  "));
  EXPECT_THAT(pieces("a, (b)!", "gpt-2"), ElementsAre("a", ",", " (", "b", ")!"));
  EXPECT_THAT(pieces("\t\tx", "gpt-2"), ElementsAre("\t", "\t", "x"));
  EXPECT_THAT(pieces("", "gpt-2"), ElementsAre());
}

TEST(Pieces, OfLlama3) {
  EXPECT_THAT(pieces("it'S (b)", "llama-bpe"), ElementsAre("it", "'S", " (", "b", ")"));
  EXPECT_THAT(pieces("12345", "llama-bpe"), ElementsAre("123", "45"));
  EXPECT_THAT(pieces(" 12", "llama-bpe"), ElementsAre(" ", "12"));
  EXPECT_THAT(pieces("-word_x", "llama-bpe"), ElementsAre("-word", "_x"));
  EXPECT_THAT(pieces("end.\n\nNext", "llama-bpe"), ElementsAre("end", ".\n\n", "Next"));
  EXPECT_THAT(pieces("a  \n  b", "llama-bpe"), ElementsAre("a", "  \n", " ", " b"));
}

TEST(Pieces, OfQwen2AndSmollm) {
  EXPECT_THAT(pieces("a 12", "qwen2"), ElementsAre("a", " ", "1", "2"));
  EXPECT_THAT(pieces("a 12b", "smollm"), ElementsAre("a", " ", "1", "2", "b"));
  EXPECT_THAT(pieces("x  y's", "smollm"), ElementsAre("x", " ", " y", "'s"));
  EXPECT_EQ(piece_rules("klingon"), std::nullopt);
}

TEST(Pieces, AreTheTextForAnyBytes) {
  Rng rng(3);
  const std::string_view some[] = {"a", "Z",  "'",    "s",    " ", "  ",       "\n", "\r", "7",
                                   "é", "語", "\xFF", "\xE8", "!", "\xCC\x81", "ll", "😀"};
  for (const char* rules : {"gpt-2", "llama-bpe", "qwen2", "smollm"})
    for (int i = 0; i < 500; ++i) {
      std::string text, joined;
      for (uint64_t n = rng.below(12); n > 0; --n) text += some[rng.below(std::size(some))];
      for (const std::string& piece : pieces(text, rules)) {
        EXPECT_FALSE(piece.empty());
        joined += piece;
      }
      ASSERT_EQ(joined, text) << rules;
    }
}

// ---- Byte-level
// ----------------------------------------------------------------------------------

Tokenizer tiny() {
  GgufWriter writer;
  add_tiny_tokenizer(writer);
  const std::string bytes = writer.bytes();
  const Gguf file = parse_gguf(std::as_bytes(std::span(bytes)), "tiny").value();
  return Tokenizer::make(gguf_vocabulary(file).value()).value();
}

// 256: th, 257: the, 258: " a", 259: " the", 260: er, 261: on, 262: <s>, 263: </s>
TEST(ByteLevel, MergesTheFirstPairFirst) {
  const Tokenizer tokenizer = tiny();
  EXPECT_EQ(tokenizer.size(), 264);
  EXPECT_THAT(tokenizer.encode("the"), ElementsAre(257));
  EXPECT_THAT(tokenizer.encode("a the thon"), ElementsAre('a', 259, ' ', 256, 261));
  EXPECT_THAT(tokenizer.encode(" a"), ElementsAre(258));
  EXPECT_THAT(tokenizer.encode("other"), ElementsAre('o', 257, 'r')) << "the comes before er";
  EXPECT_THAT(tokenizer.encode("é"), ElementsAre(0xC3, 0xA9));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a the thon é")), "a the thon é");
}

TEST(ByteLevel, GivesBackAnyBytes) {
  const Tokenizer tokenizer = tiny();
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(all)), all);
}

TEST(ByteLevel, LeavesOutBytesWithoutAToken) {
  Vocabulary made = {.tokens = {{"a"}, {"b"}}, .rules = PieceRules()};
  EXPECT_THAT(Tokenizer::make(made).value().encode("axb"), ElementsAre(0, 1));
  made.unknown = 1;
  EXPECT_THAT(Tokenizer::make(made).value().encode("axb"), ElementsAre(0, 1, 1));
}

TEST(ByteLevel, TextIsNoControlToken) {
  const Tokenizer tokenizer = tiny();
  EXPECT_THAT(tokenizer.encode("a</s>"), ElementsAre('a', '<', '/', 's', '>'));
  EXPECT_THAT(tokenizer.encode("a</s>the", Tokenizer::Control::is_token),
              ElementsAre('a', 263, 257));
  EXPECT_EQ(tokenizer.bytes_of(263), "");
  EXPECT_TRUE(tokenizer.ends_text(263));
  EXPECT_FALSE(tokenizer.ends_text(257));
  EXPECT_EQ(tokenizer.bytes_of(-1), "");
  EXPECT_EQ(tokenizer.bytes_of(1000), "");
}

// ---- Sentence pieces
// -----------------------------------------------------------------------------

Vocabulary sentence_pieces() {
  Vocabulary made;
  const auto add = [&](std::string text, float score, TokenClass kind) {
    made.tokens.push_back({std::move(text), score, kind});
  };
  add("<unk>", 0, TokenClass::unknown);   // 0
  for (int byte = 0; byte < 256; ++byte)  // 1 to 256
    add(std::string(1, static_cast<char>(byte)), 0, TokenClass::byte);
  for (const char* piece : {"\u2581", "a", "b", "c"}) add(piece, -10, TokenClass::normal);  // 257
  add("ab", -2, TokenClass::normal);                                                        // 261
  add("bc", -1, TokenClass::normal);                                                        // 262
  add("\u2581a", -3, TokenClass::normal);                                                   // 263
  add("<start>", 0, TokenClass::user);                                                      // 264
  made.unknown = 0;
  made.adds_blank = true;
  return made;
}

TEST(SentencePieces, MergeTheHighestScoreFirst) {
  const Tokenizer tokenizer = Tokenizer::make(sentence_pieces()).value();
  EXPECT_THAT(tokenizer.encode("abc"), ElementsAre(263, 262)) << "bc, then _a";
  EXPECT_THAT(tokenizer.encode("c ab"), ElementsAre(257, 260, 257, 261)) << "ab before _a";
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("c ab")), " c ab");
}

TEST(SentencePieces, FallBackToBytes) {
  const Tokenizer tokenizer = Tokenizer::make(sentence_pieces()).value();
  EXPECT_THAT(tokenizer.encode("é"), ElementsAre(257, 1 + 0xC3, 1 + 0xA9));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("é\xFF")), " é\xFF");
}

TEST(SentencePieces, CutOutTheTokensOfTheUser) {
  const Tokenizer tokenizer = Tokenizer::make(sentence_pieces()).value();
  EXPECT_THAT(tokenizer.encode("a<start>a"), ElementsAre(263, 264, 263));
}

// ---- Unigram
// --------------------------------------------------------------------------------------

Vocabulary unigram_pieces() {
  Vocabulary made = {.tokens = {}, .is_unigram = true};
  const auto add = [&](std::string text, float score, TokenClass kind = TokenClass::normal) {
    made.tokens.push_back({std::move(text), score, kind});
  };
  add("<unk>", 0, TokenClass::unknown);  // 0
  add("\u2581", -3);                     // 1
  add("a", -4);                          // 2
  add("b", -4);                          // 3
  add("ab", -6);                         // 4
  add("\u2581ab", -9);                   // 5: as likely as 1 and 4
  add("ba", -7.5);                       // 6
  add("\u2581\u2581", -1);               // 7
  made.unknown = 0;
  made.adds_blank = true;
  return made;
}

TEST(Unigrams, SumToTheMost) {
  Vocabulary made = unigram_pieces();
  const auto encode = [&](std::string_view text) {
    return Tokenizer::make(made).value().encode(text);
  };
  EXPECT_THAT(encode("aba"), ElementsAre(5, 2)) << "_ab a: 13; _ a ba: 14.5";
  EXPECT_THAT(encode("ba"), ElementsAre(1, 6));
  EXPECT_THAT(encode(" ab"), ElementsAre(7, 4)) << "7; 12 with 1 and 5";
  EXPECT_THAT(encode("éöa"), ElementsAre(1, 0, 2)) << "one unknown token for both";
  EXPECT_THAT(encode(""), ElementsAre());
  made.splits_words = true;
  EXPECT_THAT(encode(" ab"), ElementsAre(1, 5)) << "no piece goes over a blank";
  made.joins_blanks = true;
  EXPECT_THAT(encode("  a  b "), ElementsAre(1, 2, 1, 3));
  EXPECT_THAT(encode("  "), ElementsAre());
}

TEST(Unigrams, FallBackToBytes) {
  Vocabulary made = unigram_pieces();
  for (int byte = 0; byte < 256; ++byte)
    made.tokens.push_back({std::string(1, static_cast<char>(byte)), 0, TokenClass::byte});
  const Tokenizer tokenizer = Tokenizer::make(made).value();
  EXPECT_THAT(tokenizer.encode("aé"), ElementsAre(1, 2, 8 + 0xC3, 8 + 0xA9));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("aé\xFF")), " aé\xFF");
}

// The best sum of all ways to cut a text, by trying each.
double best_sum(std::string_view text, const Vocabulary& vocabulary) {
  if (text.empty()) return 0;
  double best = -INFINITY;
  for (size_t size = 1; size <= text.size(); ++size)
    for (const Vocabulary::Token& token : vocabulary.tokens)
      if (token.kind == TokenClass::normal && token.text == text.substr(0, size))
        best = std::max(best, token.score + best_sum(text.substr(size), vocabulary));
  return best;
}

TEST(Unigrams, AreTheBestOfAllWays) {
  Rng rng(5);
  for (int i = 0; i < 200; ++i) {
    Vocabulary made = {.tokens = {{"a", -3}, {"b", -3}}, .is_unigram = true, .unknown = 0};
    for (int n = 0; n < 8; ++n) {
      std::string piece;
      for (uint64_t k = 2 + rng.below(3); k > 0; --k) piece += rng.chance(0.5) ? 'a' : 'b';
      made.tokens.push_back({piece, static_cast<float>(-1 - static_cast<int>(rng.below(12)))});
    }
    std::string text;
    for (int k = 0; k < 9; ++k) text += rng.chance(0.5) ? 'a' : 'b';
    double sum = 0;
    const Tokenizer tokenizer = Tokenizer::make(made).value();
    const Ids tokens = tokenizer.encode(text);
    for (const TokenId token : tokens) sum += made.tokens[static_cast<size_t>(token)].score;
    // Among equal texts the first token counts, whose score may be lower than that of another.
    std::erase_if(made.tokens, [&](const Vocabulary::Token& token) {
      const auto first =
          std::ranges::find(tokenizer.vocabulary().tokens, token.text, &Vocabulary::Token::text);
      return first->score != token.score;
    });
    EXPECT_EQ(tokenizer.decode(tokens), text);
    EXPECT_EQ(sum, best_sum(text, made)) << text;
  }
}

// ---- What is refused
// -----------------------------------------------------------------------------

Result<Vocabulary> vocabulary_with(const std::function<void(GgufWriter&)>& write) {
  GgufWriter writer;
  write(writer);
  const std::string bytes = writer.bytes();
  return gguf_vocabulary(parse_gguf(std::as_bytes(std::span(bytes)), "bad").value());
}

TEST(Vocabularies, SayWhatContradictsWhat) {
  EXPECT_THAT(vocabulary_with([](GgufWriter&) {}),
              refuses(ErrorCode::bad_input, "tokenizer.ggml.model ... missing"));
  EXPECT_THAT(vocabulary_with([](GgufWriter& w) {
                w.text("tokenizer.ggml.model", "wpm");
                w.texts("tokenizer.ggml.tokens", {"a"});
              }),
              refuses(ErrorCode::unsupported, "\"wpm\" ... llama, t5 and bert"));
  EXPECT_THAT(vocabulary_with([](GgufWriter& w) {
                w.text("tokenizer.ggml.model", "gpt2");
                w.texts("tokenizer.ggml.tokens", {"a", "b"});
                w.texts("tokenizer.ggml.merges", {"a c"});
              }),
              refuses(ErrorCode::bad_input, "merge 0 ... \"a c\""));
  EXPECT_THAT(vocabulary_with([](GgufWriter& w) {
                w.text("tokenizer.ggml.model", "gpt2");
                w.text("tokenizer.ggml.pre", "klingon");
                w.texts("tokenizer.ggml.tokens", {"a"});
              }),
              refuses(ErrorCode::unsupported, "\"klingon\" ... smollm"));
  EXPECT_THAT(vocabulary_with([](GgufWriter& w) {
                w.text("tokenizer.ggml.model", "llama");
                w.texts("tokenizer.ggml.tokens", {"a", "b"});
                w.reals("tokenizer.ggml.scores", {1});
              }),
              refuses(ErrorCode::bad_input, "scores ... 1 items for 2 tokens"));
  EXPECT_THAT(vocabulary_with([](GgufWriter& w) {
                w.text("tokenizer.ggml.model", "llama");
                w.texts("tokenizer.ggml.tokens", {"<0xG1>"});
                w.integers("tokenizer.ggml.token_type", {6});
                w.reals("tokenizer.ggml.scores", {1});
              }),
              refuses(ErrorCode::bad_input, "token 0 ... \"<0xG1>\""));
  EXPECT_THAT(vocabulary_with([](GgufWriter& w) {
                w.text("tokenizer.ggml.model", "llama");
                w.texts("tokenizer.ggml.tokens", {"a"});
                w.reals("tokenizer.ggml.scores", {1});
                w.integer("tokenizer.ggml.bos_token_id", 5);
              }),
              refuses(ErrorCode::bad_input, "bos_token_id ... 5 ... 1 tokens"));
  EXPECT_THAT(Tokenizer::make(Vocabulary{.tokens = {{"a"}}}),
              refuses(ErrorCode::bad_input, "byte 0"));
}

// ---- While tokens come
// ---------------------------------------------------------------------------

TEST(TextStreams, KeepBackWhatIsNotComplete) {
  TextStream stream;
  EXPECT_EQ(stream.add("a\xE8"), "a");
  EXPECT_EQ(stream.add("\xAA"), "");
  EXPECT_EQ(stream.add("\x9E!"), "語!");
  EXPECT_EQ(stream.add("\xC3"), "");
  EXPECT_EQ(stream.finish(), "\xC3");
}

TEST(TextStreams, EndBeforeAStop) {
  TextStream stream({"END", "\n\n"});
  EXPECT_EQ(stream.add("one E"), "one ");
  EXPECT_EQ(stream.add("N"), "");
  EXPECT_EQ(stream.add("T\n"), "ENT") << "it was none";
  EXPECT_EQ(stream.add("x EN"), "\nx ");
  EXPECT_FALSE(stream.is_stopped());
  EXPECT_EQ(stream.add("D more"), "");
  EXPECT_TRUE(stream.is_stopped());
  EXPECT_EQ(stream.add("more"), "");
  EXPECT_EQ(stream.finish(), "");
}

}  // namespace
}  // namespace hone::HONE_FILE
