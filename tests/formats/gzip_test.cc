#include "formats/gzip.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

std::string some_text(size_t size) {
  Rng rng(size);
  std::string text;
  for (size_t i = 0; i < size; ++i) text += static_cast<char>('a' + rng.below(9));
  return text;
}

TEST(Gzip, UnpacksWhatItPacked) {
  for (size_t size : {0, 1, 1000, 262144, 1000000}) {
    const std::string text = some_text(size), bytes = gzip(text);
    EXPECT_TRUE(is_gzip(bytes));
    EXPECT_EQ(gunzip(bytes, "t.gz", 1 << 20).value(), text);
    // Several members are one text.
    EXPECT_EQ(gunzip(bytes + bytes, "t.gz", 1 << 21).value(), text + text);
  }
  EXPECT_FALSE(is_gzip(""));
  EXPECT_FALSE(is_gzip("{}"));
}

TEST(Gzip, RefusesDamage) {
  const std::string bytes = gzip(some_text(1000));
  for (size_t size = 0; size < bytes.size(); size += 7)
    EXPECT_THAT(gunzip(bytes.substr(0, size), "t.gz", 1 << 20),
                refuses(ErrorCode::bad_input, "t.gz ... byte ... too early"))
        << size;
  std::string wrong = bytes;
  wrong[bytes.size() - 6] = static_cast<char>(~wrong[bytes.size() - 6]);  // of the checksum
  EXPECT_THAT(gunzip(wrong, "t.gz", 1 << 20), refuses(ErrorCode::bad_input, "t.gz ... damaged"));
  EXPECT_THAT(gunzip(bytes + "more", "t.gz", 1 << 20), refuses(ErrorCode::bad_input, "damaged"));
}

TEST(Gzip, StopsAtTheLimit) {
  const std::string bytes = gzip(std::string(1 << 20, 'x'));
  EXPECT_TRUE(gunzip(bytes, "t.gz", 1 << 20).ok());
  EXPECT_THAT(gunzip(bytes, "t.gz", (1 << 20) - 1), refuses(ErrorCode::limit, "t.gz ... 1048575"));
}

}  // namespace
}  // namespace hone::HONE_FILE
