#include "report/log_text.h"

#include <gmock/gmock.h>

#include "base/text.h"
#include "tests/log/log_testing.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

size_t width_of(std::string_view text) {
  size_t width = 0;
  for (std::string_view line : split_lines(text)) width = std::max(width, line.size());
  return width;
}

// One that fills every column.
Record wide_record() {
  Record record = some_record();
  record.kind.assign(32, 'k');
  record.conditions.assign(1000, 'c');
  record.choice = std::string(500, 'x');
  record.seconds = {123.456};
  return record;
}

using LogText = LogTest;

TEST_F(LogText, OfASurveyFitsATerminalWhateverTheLogHas) {
  const std::unique_ptr<Log> log = open();
  const Record wide = wide_record();
  const KnownText texts[] = {{wide.kind, wide.subject, "graph @" + std::string(300, 'g') + " {"},
                             {"target", wide.target, "target \"" + std::string(200, 't') + "\" {"}};
  ASSERT_TRUE(log->add(std::vector<Record>(999, wide), texts).ok());
  const std::string survey = log_survey(*log, log->groups().value()).value();
  EXPECT_THAT(survey, HasSubstr("@ggg"));
  EXPECT_GT(width_of(survey), 90u);
  EXPECT_LE(width_of(survey), 100u);
}

TEST_F(LogText, OfRecordsHasTheFastestFirst) {
  Record slow = some_record(1), fast = some_record(1);
  slow.id = 7;
  fast.id = 8;
  slow.seconds = {3};
  fast.seconds = {2};
  const std::string table =
      records_table({slow, failed_record(Outcome::crashed, "SIGILL"), fast, wide_record()}, 2);
  EXPECT_LT(table.find("\n     8"), table.find("\n     7")) << table;
  EXPECT_THAT(table, HasSubstr("and 1 more"));
  EXPECT_LE(width_of(table), 100u);
  EXPECT_THAT(records_table({failed_record(Outcome::crashed, "SIGILL")}, 2), HasSubstr("crashed"));
}

TEST_F(LogText, OfARecordHasAllOfIt) {
  Record record = some_record(3);
  record.id = 12;
  const std::string text = record_text(record);
  EXPECT_THAT(text, HasSubstr("record 12: graph 0xfedcba9876543213"));
  EXPECT_THAT(text, HasSubstr("conditions threads=1 cache=warm"));
  EXPECT_THAT(text, HasSubstr("of 3 samples"));
  EXPECT_THAT(text, HasSubstr(record.choice));
  record.time = INT64_MAX;
  EXPECT_THAT(record_text(record), HasSubstr("s after 1970"));
}

}  // namespace
}  // namespace hone::HONE_FILE
