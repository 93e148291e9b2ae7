#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace hone::HONE_FILE {
namespace {

TEST(Crc32c, IsThatOfTheStandard) {  // RFC 3720, B.4, and the usual check
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(Crc32c, GoesOnFromWhatStandsBefore) {
  const std::string text = "a text that is longer than a word or two, by a few bytes";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    EXPECT_EQ(crc32c(bytes.subspan(cut), crc32c(bytes.first(cut))), crc32c(text)) << cut;
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
