#include "formats/wire_write.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::ElementsAre;
using testing::HasSubstr;

WireBytes message(std::string_view text) {
  return WireBytes::all(std::as_bytes(std::span(text.data(), text.size())));
}
std::string failure(std::string_view text) {
  const Status status = each_field(message(text), [](const WireField&) { return Status(); });
  return status.ok() ? "" : status.error().to_string();
}

TEST(Wire, WrittenFieldsAreThoseThatAreRead) {
  const std::string text = wire::integer(1, 300) + wire::integer(2, -1) + wire::text(3, "ab") +
                           wire::number(4, 0.5) + wire::number(5, 0.25f);
  WireReader reader(message(text));
  EXPECT_EQ(reader.next()->integer().value(), 300);
  EXPECT_EQ(reader.next()->integer().value(), -1);
  EXPECT_EQ(reader.next()->message()->text(), "ab");
  const WireField real = reader.next().value();
  EXPECT_EQ(real.type, WireType::fixed64);
  EXPECT_EQ(text.substr(real.value, real.end - real.value), std::string("\0\0\0\0\0\0\xe0\x3f", 8));
  const WireField small = reader.next().value();
  EXPECT_EQ(small.type, WireType::fixed32);
  EXPECT_EQ(text.substr(small.value, small.end - small.value), std::string("\0\0\x80\x3e", 4));
  EXPECT_TRUE(reader.done());
}

TEST(Wire, FieldsHaveTheirPlaces) {
  // 1: 300, 2: "ab", 3: 4 bytes, 4: [1, 300]
  const std::string text(
      "\x08\xac\x02\x12\x02"
      "ab\x1d\0\0\0\0\x22\x03\x01\xac\x02",
      17);
  WireReader reader(message(text));
  const WireField number = reader.next().value();
  EXPECT_EQ(number.integer().value(), 300);
  EXPECT_THAT(number.message().error().to_string(), says("field 1 at byte 0 ... message"));
  const WireField bytes = reader.next().value();
  EXPECT_EQ(bytes.begin, 3u);
  EXPECT_EQ(bytes.value, 5u);
  EXPECT_EQ(bytes.message()->text(), "ab");
  EXPECT_THAT(bytes.integer().error().to_string(), says("field 2 at byte 3 ... number"));
  EXPECT_EQ(reader.next()->type, WireType::fixed32);
  std::vector<int64_t> integers = {7};
  ASSERT_TRUE(reader.next()->append_to(integers).ok());
  ASSERT_TRUE(number.append_to(integers).ok());
  EXPECT_THAT(integers, ElementsAre(7, 1, 300, 300));
  EXPECT_TRUE(reader.done());
}

TEST(Wire, WhatIsBrokenIsNamedWithItsByte) {
  EXPECT_EQ(failure(""), "");
  EXPECT_THAT(failure("\x08"), says("at byte 1"));
  EXPECT_THAT(failure("\x08\x01\x12\x05"), says("field 2 at byte 2 ... 5 bytes"));
  EXPECT_THAT(failure(std::string(11, '\x80')), HasSubstr("more than 10 bytes"));
  EXPECT_THAT(failure(std::string("\0", 1)), HasSubstr("names field 0"));
  EXPECT_THAT(failure("\x0b"), HasSubstr("is a group"));
  EXPECT_THAT(failure("\x0e"), HasSubstr("wire type 6"));
  std::vector<int64_t> integers;
  const std::string cut("\x0a\x01\x80", 3);
  EXPECT_THAT(WireReader(message(cut)).next()->append_to(integers).error().to_string(),
              HasSubstr("field 1 at byte 0"));
}

}  // namespace
}  // namespace hone::HONE_FILE
