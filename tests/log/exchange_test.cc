#include "log/exchange.h"

#include <gmock/gmock.h>

#include "base/rng.h"
#include "formats/npz.h"
#include "tests/base/says_testing.h"
#include "tests/log/log_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;

std::string lines_of(const Log& log, const Query& query = {}) {
  std::string lines;
  EXPECT_TRUE(export_lines(log, query, [&](std::string_view line) -> Status {
                lines += line;
                return {};
              }).ok());
  return lines;
}

class Exchange : public LogTest {
 protected:
  void fill(Log& log) {
    Record odd = some_record(1);
    odd.seconds = {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, 0};
    odd.choice = "\"quoted\"\n\t\\ \u00e4\U0001f600";
    odd.subject = 0;
    const std::vector<Record> records = {odd, some_record(2),
                                         failed_record(Outcome::timed_out, "after 3 s")};
    const std::vector<KnownText> texts = {{"kernel", records[1].subject, "kernel {}\n"},
                                          {"target", records[1].target, "target {}\n"},
                                          {"graph", 99, "graph @g"}};
    ASSERT_TRUE(log.add(records, texts).ok());
    ASSERT_TRUE(log.set_best(some_plan()).ok());
  }
};

TEST_F(Exchange, LinesAreReadBackAsTheSameLog) {
  const std::unique_ptr<Log> log = open(), copy = open("copy.db");
  fill(*log);
  const std::string lines = lines_of(*log);
  LogMerge merge(*copy);
  for (std::string_view line : split_lines(lines)) {
    const Status status = import_line(line, merge);
    ASSERT_TRUE(status.ok()) << status.error().to_string();
  }
  EXPECT_EQ(merge.finish().value().added, (LogCounts{3, 3, 1}));
  EXPECT_EQ(copy->find().value(), log->find().value());
  EXPECT_EQ(lines_of(*copy), lines);
}

TEST_F(Exchange, ExportsWhatIsAskedForWithItsTexts) {
  const std::unique_ptr<Log> log = open();
  fill(*log);
  const std::string lines = lines_of(*log, {.code = some_record(2).code});
  EXPECT_EQ(split_lines(lines).size(), 3u) << lines;
  EXPECT_THAT(lines, HasSubstr("kernel {}"));
  EXPECT_THAT(lines, HasSubstr("target {}"));
}

TEST_F(Exchange, SaysWhatIsWrongWithALine) {
  const std::unique_ptr<Log> log = open();
  const auto error_of = [&](std::string_view line) {
    LogMerge merge(*log);
    const Status status = import_line(line, merge);
    return status.ok() ? "" : status.error().what();
  };
  const std::string good = json_line(some_record());
  EXPECT_EQ(error_of(good), "");
  const auto replaced = [&](std::string_view from, std::string_view to) {
    std::string line = good;
    const size_t at = line.find(from);
    HONE_CHECK(at != std::string::npos, "no {} in {}", from, line);
    return line.replace(at, from.size(), to);
  };
  EXPECT_THAT(error_of(""), says("JSON"));
  EXPECT_THAT(error_of("{"), says("JSON"));
  EXPECT_THAT(error_of("[1]"), says("object"));
  EXPECT_THAT(error_of("{\"record\": 1}"), says("object"));
  EXPECT_THAT(error_of("{\"thing\": {}}"), says("'thing' ... record, text, plan"));
  EXPECT_THAT(error_of("{\"record\": {}}"), HasSubstr("the field 'kind' is missing"));
  EXPECT_THAT(error_of(std::string(100, '[')), HasSubstr("more than 8 deep"));
  EXPECT_THAT(error_of(replaced("\"kind\"", "\"kind2\"")), HasSubstr("'kind' is missing"));
  EXPECT_THAT(error_of(replaced("{\"kind\"", "{\"more\": 1, \"kind\"")),
              HasSubstr("no field 'more'"));
  EXPECT_THAT(error_of(replaced("0xfedc", "0xFEDC")), HasSubstr("'subject' is not 0x and 16"));
  EXPECT_THAT(error_of(replaced("measured", "guessed")), HasSubstr("no outcome 'guessed'"));
  EXPECT_THAT(error_of(replaced("\"time\":1700000000", "\"time\":1.5")),
              HasSubstr("'time' is not an integer"));
  EXPECT_THAT(error_of(replaced("\"time\":1700000000", "\"time\":18446744073709551615")),
              HasSubstr("'time' is not an integer"));
  EXPECT_THAT(error_of(replaced("\"seconds\":[", "\"seconds\":[null,")),
              HasSubstr("'seconds' is not a list of numbers"));
  EXPECT_THAT(error_of(replaced("\"seconds\":[", "\"seconds\":[-1,")), says("-1 ... seconds"));
}

TEST_F(Exchange, OfLinesThatAreChangedAtRandomIsReadOrRefused) {
  const std::unique_ptr<Log> log = open();
  const std::string lines[] = {json_line(some_record()), json_line(some_plan()),
                               json_line(KnownText{"kernel", 1, "text"})};
  Rng rng(4);
  LogMerge merge(*log);
  for (int attempt = 0; attempt < 3000; ++attempt) {
    std::string line = rng.pick(lines);
    for (uint64_t changes = 1 + rng.below(3); changes > 0; --changes)
      line.replace(rng.below(line.size()), rng.below(3), 1, static_cast<char>(rng.below(256)));
    (void)import_line(line, merge).ok();
  }
  EXPECT_TRUE(merge.finish().ok());
  EXPECT_EQ(log->verify().value().damaged, 0);
}

TEST_F(Exchange, ArraysHaveARowPerRecordAndDistinctTexts) {
  const std::unique_ptr<Log> log = open();
  const std::vector<Record> records = {some_record(1), failed_record(Outcome::wrong, "off"),
                                       some_record(1)};
  ASSERT_TRUE(log->add(records).ok());
  ASSERT_TRUE(write_npz(path("log.npz"), export_arrays(*log, {}).value()).ok());
  std::map<std::string, Tensor> arrays;
  const std::vector<NamedTensor> read = read_npz(path("log.npz")).value();
  for (const NamedTensor& array : read) arrays.emplace(array.name, array.tensor);
  const auto text_at = [&](const std::string& name, int64_t row) {
    const int64_t text = arrays.at(name).integer_at(row);
    const int64_t begin = text == 0 ? 0 : arrays.at(name + "/ends").integer_at(text - 1);
    const int64_t end = arrays.at(name + "/ends").integer_at(text);
    std::string bytes;
    for (int64_t i = begin; i < end; ++i)
      bytes += static_cast<char>(arrays.at(name + "/bytes").integer_at(i));
    return bytes;
  };
  for (int64_t i = 0; i < 3; ++i) {
    const Record& record = records[static_cast<size_t>(i)];
    EXPECT_EQ(arrays.at("id").integer_at(i), i + 1);
    EXPECT_EQ(static_cast<uint64_t>(arrays.at("subject").integer_at(i)), record.subject);
    EXPECT_EQ(arrays.at("outcome").integer_at(i), static_cast<int64_t>(record.outcome));
    EXPECT_EQ(text_at("choice", i), record.choice);
    EXPECT_EQ(text_at("detail", i), record.detail);
    EXPECT_EQ(text_at("kind", i), record.kind);
  }
  EXPECT_EQ(arrays.at("seconds").elements(), 6);
  EXPECT_EQ(arrays.at("seconds/ends").integer_at(1), 3);
  EXPECT_EQ(arrays.at("seconds").real_at(0), records[0].seconds[0]);
  EXPECT_EQ(arrays.at("choice/ends").elements(), 2);
  EXPECT_EQ(arrays.at("text/hash").elements(), 0);
}

}  // namespace
}  // namespace hone::HONE_FILE
