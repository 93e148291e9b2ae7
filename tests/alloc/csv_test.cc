#include "alloc/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::ElementsAre;

MemoryCsv parsed(std::string_view text) {
  Result<MemoryCsv> csv = parse_memory_csv(text, "m.csv");
  EXPECT_TRUE(csv.ok()) << text << csv.error().to_string();
  return std::move(csv).value();
}

void expect_error(std::string_view text, std::string_view words,
                  ErrorCode code = ErrorCode::bad_input) {
  const Result<MemoryCsv> csv = parse_memory_csv(text, "m.csv");
  ASSERT_FALSE(csv.ok()) << text;
  EXPECT_EQ(csv.error().code(), code);
  EXPECT_THAT(csv.error().to_string(), says(std::string(words)));
}

TEST(MemoryCsv, IsReadColumnByColumn) {
  const MemoryCsv csv = parsed(
      "alias,space,offset,gaps,hint,alignment,size,upper,lower,id\n"
      ",,,,,,16,4,0,b0\n"
      "b0+8,0,24,2-3@4:6 1-2,-1,8,8,4,1,7\n"
      ",63,-1,,5,,1,9,9,last one\n");
  ASSERT_EQ(csv.problem.buffers.size(), 3U);
  EXPECT_THAT(csv.ids, ElementsAre("b0", "7", "last one"));
  const MemoryBuffer& plain = csv.problem.buffers[0];
  EXPECT_EQ(plain.begin, 0);
  EXPECT_EQ(plain.end, 4);
  EXPECT_EQ(plain.size, 16);
  EXPECT_EQ(plain.alignment, 1);
  EXPECT_FALSE(plain.offset.has_value());
  EXPECT_FALSE(plain.alias.has_value());
  EXPECT_TRUE(plain.gaps.empty());
  const MemoryBuffer& full = csv.problem.buffers[1];
  EXPECT_EQ(full.alignment, 8);
  EXPECT_EQ(full.offset, 24);
  ASSERT_TRUE(full.alias.has_value());
  EXPECT_EQ(full.alias->of, 0U);
  EXPECT_EQ(full.alias->shift, 8);
  ASSERT_EQ(full.gaps.size(), 2U);  // by time
  EXPECT_EQ(full.gaps[0].begin, 1);
  EXPECT_EQ(full.gaps[0].end, 2);
  EXPECT_EQ(full.gaps[0].high, 0);
  EXPECT_EQ(full.gaps[1].begin, 2);
  EXPECT_EQ(full.gaps[1].low, 4);
  EXPECT_EQ(full.gaps[1].high, 6);
  EXPECT_EQ(csv.problem.buffers[2].space, 63U);
  EXPECT_FALSE(csv.problem.buffers[2].offset.has_value());
}

TEST(MemoryCsv, ColumnsHaveSynonymsAndEndIsInclusive) {
  for (std::string_view header :
       {"buffer,begin,upper,size,gaps", "buffer_id,start,upper,size,gaps"}) {
    const MemoryCsv csv = parsed(fmt::format("{}\nx,2,6,1,3-4\n", header));
    EXPECT_EQ(csv.problem.buffers[0].begin, 2);
    EXPECT_EQ(csv.problem.buffers[0].end, 6);
    EXPECT_EQ(csv.problem.buffers[0].gaps[0].end, 4);
  }
  const MemoryCsv csv = parsed("id,lower,end,size,gaps\nx,2,6,1,3-4\ny,2,1,1,\n");
  EXPECT_EQ(csv.problem.buffers[0].end, 7);
  EXPECT_EQ(csv.problem.buffers[0].gaps[0].end, 5);
  EXPECT_EQ(csv.problem.buffers[1].end, 2);
}

TEST(MemoryCsv, ForgivesBlanksEmptyLinesAndOtherLineBreaks) {
  const MemoryCsv csv = parsed("\r\n id , lower,upper,size\r\n\r\n a , 1 ,2,\t3\r\n\nb,1,2,3");
  EXPECT_THAT(csv.ids, ElementsAre("a", "b"));
  EXPECT_EQ(csv.problem.buffers[0].size, 3);
  EXPECT_TRUE(parsed("id,lower,upper,size\n").problem.buffers.empty());
}

TEST(MemoryCsv, AByteOrderMarkIsNoPartOfTheTable) {
  const MemoryCsv csv = parsed("\xEF\xBB\xBFid,lower,upper,size\na,1,2,3\n");
  EXPECT_THAT(csv.ids, ElementsAre("a"));
  EXPECT_EQ(print_memory_csv(csv, std::vector<int64_t>{0}),
            "id,lower,upper,size,offset\na,1,2,3,0\n");
  expect_error("\xEF\xBB\xBFid,lower,upper,sise\n", "(m.csv:1:16)");
  expect_error("\xEF\xBB\xBF", "there is no header");
  expect_error("id,lower,upper,size\n\xEF\xBB\xBF", "1 fields ... header ... 4");
}

TEST(MemoryCsv, AliasesMayBeOfLaterRowsAndHaveSignsInTheirNames) {
  const MemoryCsv csv = parsed(
      "id,lower,upper,size,alias\n"
      "a,0,1,1,b + 3\n"
      "b,0,1,1,\n"
      "b+3,0,1,1,\n"
      "c,0,1,1,b+3\n"
      "d,0,1,1,b+3+4\n");
  EXPECT_EQ(csv.problem.buffers[0].alias->of, 1U);
  EXPECT_EQ(csv.problem.buffers[0].alias->shift, 3);
  EXPECT_EQ(csv.problem.buffers[3].alias->of, 2U);
  EXPECT_EQ(csv.problem.buffers[3].alias->shift, 0);
  EXPECT_EQ(csv.problem.buffers[4].alias->of, 2U);
  EXPECT_EQ(csv.problem.buffers[4].alias->shift, 4);
}

TEST(MemoryCsv, IsWrittenWithOffsets) {
  const std::string_view text = "id,lower,upper,size\nb, 0,4,16\n\r\na,2,6,8 \r\r\n";
  EXPECT_EQ(print_memory_csv(parsed(text), std::vector<int64_t>{8, 0}),
            "id,lower,upper,size,offset\nb, 0,4,16,8\na,2,6,8,0\n");
  const std::string_view with = "id,offset,lower,upper,size\nb,,0,4,16\na,-1,2,6,8\nc,3,1,2,1\n";
  const MemoryCsv csv = parsed(with);
  const std::string printed = print_memory_csv(csv, std::vector<int64_t>{8, 0, 3});
  EXPECT_EQ(printed, "id,offset,lower,upper,size\nb,8,0,4,16\na,0,2,6,8\nc,3,1,2,1\n");
  EXPECT_EQ(print_memory_csv(parsed(printed), std::vector<int64_t>{8, 0, 3}), printed);
}

TEST(MemoryCsv, ACopyKeepsItsText) {
  std::string text = "id,lower,upper,size\nb0,0,4,16\n";
  auto first = std::make_unique<MemoryCsv>(parsed(text));
  text.assign(text.size(), 'x');
  const MemoryCsv copy = *first;
  first.reset();
  EXPECT_THAT(copy.ids, ElementsAre("b0"));
}

TEST(MemoryCsv, HeadersAreComplete) {
  expect_error("", "header ... id,lower,upper,size ... m.csv:1:1");
  expect_error("id,lower,size\n", "there is no column 'upper' (m.csv:1:1)");
  expect_error("id,lower,upper,size,id\n", "the columns 'id' and 'id' say the same (m.csv:1:21)");
  expect_error("id,lower,upper,size,end\n", "the columns 'upper' and 'end' say the same");
  expect_error("\nid,lowr,upper,size\n", "there is no column 'lowr' (m.csv:2:4)");
  expect_error("id,lowr,upper,size\n", "did you mean 'lower'?");
  expect_error("id,lower,upper,size,\n", "there is no column '' (m.csv:1:21)");
  expect_error("\x1b[31m\n", R"(there is no column '\x1b[31m')");
}

TEST(MemoryCsv, RowsAreComplete) {
  const std::string header = "id,lower,upper,size\n";
  expect_error(header + "a,1,2\n", "3 fields ... header ... 4 ... m.csv:2:5");
  expect_error(header + "a,1,2,3,4\n", "5 fields ... header ... 4 ... m.csv:2:9");
  expect_error(header + ",1,2,3\n", "id: it is empty (m.csv:2:1)");
  expect_error(header + "a,,2,3\n", "lower: '' is not an integer (m.csv:2:3)");
  expect_error(header + "a,1,2,3\n\n a,1,2,3\n", "id ... 'a' ... line 2 ... m.csv:4:2");
}

TEST(MemoryCsv, NumbersAreInRange) {
  const std::string header = "id,lower,upper,size\n";
  expect_error(header + "a,1,2, x3\n", "size: 'x3' is not an integer (m.csv:2:8)");
  expect_error(header + "a,1,2,3.5\n", "size: '3.5' is not an integer");
  expect_error(header + "a,1,2,+3\n", "size: '+3' is not an integer");
  expect_error(header + "a,1,2,-3\n", "size: -3 is negative (m.csv:2:7)");
  expect_error(header + "a,-1,2,3\n", "lower: -1 is negative (m.csv:2:3)");
  expect_error(header + "a,1,2,9223372036854775808\n", "(m.csv:2:7)");
  expect_error(header + "a,1,2,9223372036854775807\n",
               "buffer 'a' ... sizes, shifts and alignments");
  expect_error(header + "a,5,2,3\n", "upper: 2 is before the begin, 5 (m.csv:2:5)");
  expect_error("id,lower,end,size\na,5,3,3\n", "end: 3 is before the begin, 5 (m.csv:2:5)");
  expect_error("id,lower,end,size\na,5,9223372036854775807,3\n",
               "end: 9223372036854775807 is too large");
  expect_error("id,lower,upper,size,alignment\na,1,2,3,0\n", "alignment: 0 is below 1 (m.csv:2:9)");
  expect_error("id,lower,upper,size,hint\na,1,2,3,-2\n", "hint: -2 is negative");
  expect_error("id,lower,upper,size,offset\na,1,2,3,-2\n", "offset: -2 is negative");
  expect_error("id,lower,upper,size,space\na,1,2,3,64\n", "space: 64 is above 63");
}

TEST(MemoryCsv, GapsHaveAForm) {
  const std::string header = "id,lower,upper,size,gaps\na,0,9,4,";
  for (std::string_view gap : {"3", "3-", "-3-5", "3-x", "3-5@", "3-5@1", "3-5@1-2", "3-5@0:1:2"})
    expect_error(header + std::string(gap),
                 fmt::format("gaps ... '{}' ... LOWER-UPPER@FROM:TO", gap));
  expect_error(header + "3-5 4-6", "buffer 'a' ... gap [4, 6)");
  expect_error(header + "3-10", "buffer 'a' ... gap [3, 10) ... life [0, 9) ... m.csv:2:9");
  expect_error(header + "3-5@2:5", "window [2, 5) ... 4 bytes ... m.csv:2:9");
  expect_error("id,lower,end,size,gaps\na,0,9,4,3", "LOWER-END");
}

TEST(MemoryCsv, AliasesAreKnown) {
  const std::string header = "id,lower,upper,size,alias\na,0,1,1,\n";
  expect_error(header + "b,0,1,1,c\n", "alias ... 'c' ... m.csv:3:9");
  expect_error(header + "b,0,1,1,c+4\n", "alias ... 'c' ... m.csv:3:9");
  expect_error(header + "b,0,1,1,a+x\n", "alias: 'x' is not an integer (m.csv:3:9)");
  expect_error(header + "b,0,1,1,a+-4\n", "buffer 'b' ... shift -4 ... alias ... m.csv:3:9");
  expect_error(header + "b,0,1,1,b\n", "buffer 'b' ... aliases ... m.csv:3:9");
  expect_error(header + "b,0,1,1,c\nc,0,1,1,b\n", "buffer 'b' ... aliases");
  expect_error("id,lower,upper,size,alias,space\na,0,1,1,,1\nb,0,1,1,a,2\n",
               "buffer 'b' ... space 2 ... alias ... space 1 ... m.csv:3:9");
}

TEST(MemoryCsv, LongTextsAreCut) {
  const std::string id(5000, 'y');
  const Result<MemoryCsv> csv =
      parse_memory_csv(fmt::format("id,lower,upper,size\n{},0,1,z\n", id), "m.csv");
  EXPECT_LT(csv.error().to_string().size(), 300U);
}

TEST(MemoryCsv, BuffersFitAlone) {
  const auto check_in = [](std::string_view row, std::vector<int64_t> capacity) {
    MemoryCsv csv =
        parsed(fmt::format("id,lower,upper,size,alignment,offset,space\nz,0,1,1,,,\n{}\n", row));
    csv.problem.capacity = std::move(capacity);
    const Status status = check_each_alone(csv);
    return status.ok() ? "" : status.error().to_string();
  };
  EXPECT_EQ(check_in("a,0,1,16,,,1", {10}), "");
  EXPECT_EQ(check_in("a,0,1,16,8,8,", {24}), "");
  EXPECT_THAT(check_in("a,0,1,16,,,", {15}),
              says("buffer 'a' ... size 16 ... capacity 15 ... m.csv:3:7"));
  EXPECT_THAT(check_in("a,0,1,16,,,1", {99, 15}),
              says("buffer 'a' ... size 16 ... capacity 15 ... m.csv:3:7"));
  EXPECT_THAT(check_in("a,0,1,16,,8,", {20}),
              says("buffer 'a' ... 16 bytes ... offset 8 ... capacity 20 ... m.csv:3:11"));
  EXPECT_THAT(check_in("a,0,1,16,8,4,", {}),
              says("buffer 'a' ... offset 4 ... alignment 8 ... m.csv:3:12"));
}

}  // namespace
}  // namespace hone::HONE_FILE
