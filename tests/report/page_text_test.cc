#include "report/page_text.h"

#include <gtest/gtest.h>

namespace hone::HONE_FILE {
namespace {

using namespace std::string_literals;

TEST(PageText, KeepsWhatIsText) {
  EXPECT_EQ(page_text("/layer.0/MatMul \"x\" <b>"), "/layer.0/MatMul \"x\" <b>");
  EXPECT_EQ(page_text("größe 大小 🙂"), "größe 大小 🙂");
  EXPECT_EQ(page_text(""), "");
}

TEST(PageText, SpellsOutBytesThatAreNoUtf8) {
  EXPECT_EQ(page_text("a\xff\x80z"), "a\\xff\\x80z");
  EXPECT_EQ(page_text("\xc3"), "\\xc3");                             // ends in the middle
  EXPECT_EQ(page_text("\xc0\xaf"), "\\xc0\\xaf");                    // not of the shortest form
  EXPECT_EQ(page_text("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");           // the same of three bytes
  EXPECT_EQ(page_text("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(page_text("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond Unicode
}

TEST(PageText, SpellsOutWhatHasNoShape) {
  EXPECT_EQ(page_text("a\0b\n\x7f"s), "a\\u{0000}b\\u{000a}\\u{007f}");
  EXPECT_EQ(page_text("\u202eevil\u2066"), "\\u{202e}evil\\u{2066}");
  EXPECT_EQ(page_text("\u200b\ufeff\u2028"), "\\u{200b}\\u{feff}\\u{2028}");
}

TEST(PageText, CutsLongTextsInTheMiddleAndBetweenCharacters) {
  const std::string longer(1000, 'x');
  EXPECT_EQ(page_text("first" + longer + "last", 21), "firstxxxx…xxxxxlast");
  std::string wide;
  for (int i = 0; i < 100; ++i) wide += "ü";
  for (size_t most = 10; most < 20; ++most) {
    const std::string cut = page_text(wide, most);
    EXPECT_LE(cut.size(), most);
    EXPECT_EQ(page_text(cut), cut);  // still UTF-8
  }
}

TEST(PageText, BecomesHtmlWithoutElements) {
  EXPECT_EQ(html("<a b=\"c\" d='e'>&"), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;");
}

}  // namespace
}  // namespace hone::HONE_FILE
