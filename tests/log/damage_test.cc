#include <gmock/gmock.h>
#include <sqlite3.h>

#include <set>

#include "base/rng.h"
#include "tests/base/says_testing.h"
#include "tests/log/log_testing.h"

// Files that are no logs, logs of other versions, and damaged ones.

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;
namespace fs = std::filesystem;

void write(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<long>(bytes.size()));
}
std::string bytes_of(const std::string& path) { return read_file(path, 1 << 30).value(); }

void run_sql(const std::string& path, const char* sql) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(database);
  sqlite3_close(database);
}

class DamagedLog : public LogTest {
 protected:
  // A log of a given number of records, texts and plans, closed.
  std::string filled(uint64_t records, const std::string& name = "log.db") const {
    const std::unique_ptr<Log> log = open(name);
    LogMerge rows(*log);
    for (uint64_t i = 0; i < records; ++i) {
      EXPECT_TRUE(rows.take(some_record(i)).ok());
      if (i % 10 != 0) continue;
      EXPECT_TRUE(rows.take(KnownText{"kernel", i, fmt::format("kernel {}", i)}).ok());
      EXPECT_TRUE(rows.take(some_plan(i)).ok());
    }
    EXPECT_TRUE(rows.finish().ok());
    return path(name);
  }
};

TEST_F(DamagedLog, IsNoLogAndStaysAsItIs) {
  write(path("text"), std::string(200, 'x'));
  write(path("short"), "SQLite");
  for (const char* name : {"text", "short"}) {
    const std::string before = bytes_of(path(name));
    const Error error = Log::open(path(name)).error();
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_THAT(error.what(), says("log ... database"));
    EXPECT_EQ(bytes_of(path(name)), before);
  }
  EXPECT_THAT(Log::open(folder().native()).error().what(), HasSubstr("is a folder"));
  EXPECT_THAT(Log::open("/dev/null").error().what(), says("regular file"));
  EXPECT_EQ(Log::open("").error().code(), ErrorCode::usage);
  EXPECT_FALSE(Log::open("/proc/none/log.db").ok());
  EXPECT_THAT(Log::open(path("none"), Log::Mode::read).error().what(), says("log"));
  EXPECT_FALSE(fs::exists(path("none")));
  write(path("empty"), "");
  EXPECT_THAT(Log::open(path("empty"), Log::Mode::read).error().what(), HasSubstr("it is empty"));
  EXPECT_TRUE(Log::open(path("empty")).ok());  // nothing is lost if it becomes one
}

TEST_F(DamagedLog, IsAnotherProgramsDatabase) {
  run_sql(path("other"), "CREATE TABLE records(x); PRAGMA application_id = 7");
  run_sql(path("plain"), "CREATE TABLE records(x)");
  for (const char* name : {"other", "plain"}) {
    const std::string before = bytes_of(path(name));
    EXPECT_THAT(Log::open(path(name)).error().what(), HasSubstr("another program's database"));
    EXPECT_EQ(bytes_of(path(name)), before);
  }
  // Tables that someone made or changed are not used, and what they would run is not run.
  filled(1, "more.db");
  run_sql(path("more.db"), "CREATE TRIGGER t AFTER INSERT ON records BEGIN SELECT 1; END");
  EXPECT_THAT(Log::open(path("more.db")).error().what(), HasSubstr("'t'"));
  filled(1, "less.db");
  run_sql(path("less.db"), "DROP TABLE plans");
  EXPECT_THAT(Log::open(path("less.db")).error().what(), HasSubstr("it lacks 'plans'"));
}

TEST_F(DamagedLog, OfANewerFormatStaysAsItIs) {
  filled(3);
  run_sql(path(), "PRAGMA user_version = 2");
  const std::string before = bytes_of(path());
  for (Log::Mode mode : {Log::Mode::use, Log::Mode::read}) {
    const Error error = Log::open(path(), mode).error();
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.what(), says("format 2 ... 1"));
  }
  EXPECT_THAT(salvage_log(path()).error().what(), HasSubstr("has format 2"));
  EXPECT_EQ(bytes_of(path()), before);
}

TEST_F(DamagedLog, DoesNotGiveRowsThatDoNotFitTheirChecksum) {
  filled(20);
  run_sql(path(),
          "UPDATE records SET time = time + 1 WHERE id = 3;"
          "UPDATE records SET outcome = 99 WHERE id = 4;"
          "UPDATE records SET seconds = 'abc' WHERE id = 5;"
          "UPDATE texts SET text = 'other' WHERE hash = 10;"
          "UPDATE plans SET gain = 7 WHERE graph = 10");
  const std::unique_ptr<Log> log = open();
  EXPECT_EQ(log->find().value().size(), 17u);
  EXPECT_EQ(log->text("kernel", 10).value(), std::nullopt);
  EXPECT_EQ(log->best(10, some_plan().target, 2).value(), std::nullopt);
  const LogCheck check = log->verify().value();
  EXPECT_EQ(check.damaged, 5);
  EXPECT_EQ(check.good, (LogCounts{17, 1, 1}));
  EXPECT_THAT(check.damage[0], says("row 3 of records ... checksum"));
}

// Overwrites pages, all but the first, and looks whether everything else is kept.
TEST_F(DamagedLog, KeepsWhatIsGoodAndTellsWhatIsLost) {
  const std::string whole = bytes_of(filled(2000));
  const size_t pages = whole.size() / 4096;
  ASSERT_GT(pages, 100u);
  Rng rng(1);
  for (int attempt = 0; attempt < 8; ++attempt) {
    const std::string name = fmt::format("{}.db", attempt);
    std::string bytes = whole;
    const size_t bad = 1 + rng.below(3);
    for (size_t i = 0; i < bad; ++i) {
      const size_t page = 1 + rng.below(pages - 1);
      for (size_t at = 0; at < 4096; ++at)
        bytes[page * 4096 + at] = static_cast<char>(rng.below(256));
    }
    write(path(name), bytes);
    const Salvaged salvaged = salvage_log(path(name)).value();
    const std::unique_ptr<Log> log = open(name);
    EXPECT_EQ(log->verify().value().damaged, 0);
    EXPECT_EQ(log->counts().value(), salvaged.kept);
    EXPECT_EQ(bytes_of(salvaged.old_file), bytes);
    const int64_t missing =
        2000 + 200 + 200 - salvaged.kept.records - salvaged.kept.texts - salvaged.kept.plans;
    EXPECT_EQ(salvaged.lost > 0, missing > 0) << attempt;
    if (!salvaged.may_be_more) EXPECT_EQ(salvaged.lost, missing) << attempt;
    const std::vector<Record> found = log->find().value();
    for (const Record& record : found) {
      Record wanted = some_record(static_cast<uint64_t>(record.id) - 1);
      wanted.id = record.id;
      EXPECT_EQ(record, wanted);
    }
  }
}

// Where records of filled() stand in the bytes of a log, by what each alone says.
std::vector<size_t> places_of_records(std::string_view bytes, uint64_t records) {
  std::vector<size_t> places;
  for (uint64_t i = 0; i < records; ++i)
    places.push_back(bytes.find(fmt::format("order = [0, {}]}}", i)));
  return places;
}

std::set<int64_t> ids_of(const Log& log) {
  std::set<int64_t> ids;
  const std::vector<Record> found = log.find().value();
  for (const Record& record : found) ids.insert(record.id);
  return ids;
}

// Any pages are lost, those that lead to others too, and the end of the file: each record is kept
// that stands in a page that is left.
TEST_F(DamagedLog, KeepsEveryRecordThatAPageHolds) {
  constexpr uint64_t kRecords = 3000;
  const std::string whole = bytes_of(filled(kRecords));
  const std::vector<size_t> places = places_of_records(whole, kRecords);
  const size_t pages = whole.size() / 4096;
  Rng rng(3);
  for (int attempt = 0; attempt < 12; ++attempt) {
    std::string bytes = whole;
    std::vector<bool> is_lost(pages);
    // The first pages are the roots of all trees.
    for (size_t page = 0; page < pages; ++page)
      is_lost[page] = rng.chance(page < 9 ? 0.5 : 0.1 * (attempt % 4));
    for (size_t page = 0; page < pages; ++page)
      for (size_t at = page == 0 ? 100 : 0; is_lost[page] && at < 4096; ++at)
        bytes[page * 4096 + at] = static_cast<char>(rng.below(256));
    bytes.resize(attempt % 3 == 0 ? bytes.size() : 4096 * 9 + rng.below(bytes.size() - 4096 * 9));
    const std::string name = fmt::format("{}.db", attempt);
    write(path(name), bytes);
    const Salvaged salvaged = salvage_log(path(name)).value();
    const std::unique_ptr<Log> log = open(name);
    EXPECT_EQ(log->verify().value().damaged, 0);
    const std::set<int64_t> kept = ids_of(*log);
    EXPECT_EQ(static_cast<int64_t>(kept.size()), salvaged.kept.records);
    for (size_t i = 0; i < kRecords; ++i) {
      constexpr size_t kRow = 400;  // more than a row of them has behind that place
      if (is_lost[places[i] / 4096] || places[i] + kRow > bytes.size()) continue;
      EXPECT_TRUE(kept.contains(static_cast<int64_t>(i) + 1)) << i << " in attempt " << attempt;
    }
    const int64_t lost =
        3000 - salvaged.kept.records + 300 - salvaged.kept.texts + 300 - salvaged.kept.plans;
    EXPECT_LE(salvaged.lost, lost) << attempt;
    EXPECT_TRUE(salvaged.lost > 0 || salvaged.may_be_more || lost == 0) << attempt;
    if (!salvaged.may_be_more) EXPECT_EQ(salvaged.lost, lost) << attempt;
  }
}

TEST_F(DamagedLog, KeepsRowsThatTakeSeveralPages) {
  {
    const std::unique_ptr<Log> log = open();
    std::vector<Record> records;
    for (uint64_t i = 0; i < 20; ++i) {
      records.push_back(some_record(i));
      records.back().choice = fmt::format("begin {} {} end {}", i, std::string(20'000, 'x'), i);
    }
    ASSERT_TRUE(log->add(records).ok());
  }
  std::string bytes = bytes_of(path());
  // The end of one of them, and the page that leads to all.
  bytes[bytes.find("x end 7")] = 'y';
  std::fill_n(bytes.begin() + 4096, 4096, '\xff');
  write(path(), bytes);
  const Salvaged salvaged = salvage_log(path()).value();
  EXPECT_EQ(salvaged.kept.records, 19);
  EXPECT_EQ(salvaged.lost, 1);
  EXPECT_FALSE(salvaged.may_be_more);
  EXPECT_FALSE(ids_of(*open()).contains(8));
}

// As a process leaves it that was killed: rows stand in the journal alone.
TEST_F(DamagedLog, KeepsWhatItsJournalHolds) {
  filled(300);
  const std::unique_ptr<Log> log = open();
  std::vector<Record> more;
  for (uint64_t i = 300; i < 500; ++i) more.push_back(some_record(i));
  ASSERT_TRUE(log->add(more).ok());
  std::string bytes = bytes_of(path());
  std::fill_n(bytes.begin() + 100, 3000, '\x11');
  write(path("copy.db"), bytes);
  write(path("copy.db-wal"), bytes_of(path() + "-wal"));
  const Salvaged salvaged = salvage_log(path("copy.db")).value();
  EXPECT_EQ(salvaged.kept, (LogCounts{500, 30, 30}));
  EXPECT_EQ(salvaged.lost, 0);
}

// The newest plan of a graph stays, though an older one may still stand in a page.
TEST_F(DamagedLog, KeepsTheNewestPlan) {
  {
    const std::unique_ptr<Log> log = open();
    for (uint64_t i = 0; i < 400; ++i) {
      BestPlan best = some_plan(i % 40);
      best.plan = fmt::format("plan {} {}", i, std::string(500, 'p'));
      ASSERT_TRUE(log->set_best(best).ok());
    }
  }
  std::string bytes = bytes_of(path());
  std::fill_n(bytes.begin() + 100, 3000, '\x11');  // with the list of free pages
  write(path(), bytes);
  EXPECT_EQ(salvage_log(path()).value().kept.plans, 40);
  const std::unique_ptr<Log> log = open();
  for (uint64_t i = 0; i < 40; ++i) {
    const std::optional<BestPlan> best = log->best(i, some_plan().target, 2).value();
    ASSERT_TRUE(best.has_value());
    EXPECT_TRUE(best->plan.starts_with(fmt::format("plan {} ", 360 + i))) << best->plan;
  }
}

// The median stands beside the samples and outside of the checksum.
TEST_F(DamagedLog, FindsAWrongMedianAndCorrectsIt) {
  filled(20);
  run_sql(path(),
          "UPDATE records SET median = median * 2 WHERE id = 3;"
          "UPDATE records SET median = NULL WHERE id = 4");
  {
    const std::unique_ptr<Log> log = open();
    EXPECT_EQ(log->find().value().size(), 18u);
    EXPECT_EQ(log->verify().value().damaged, 2);
  }
  const Salvaged salvaged = salvage_log(path()).value();
  EXPECT_EQ(salvaged.kept.records, 20);
  EXPECT_EQ(salvaged.lost, 0);
  EXPECT_EQ(open()->verify().value().damaged, 0);
}

// A survey of the log takes its best times from records that fit their checksums.
TEST_F(DamagedLog, HasNoBestTimeFromAWrongMedian) {
  filled(20);
  std::map<std::string, std::optional<double>> before;
  const auto name_of = [](const LogGroup& group) {
    return fmt::format("{} {} {} {}", group.kind, group.subject, group.target, group.conditions);
  };
  const std::vector<LogGroup> groups = open()->groups().value();
  for (const LogGroup& group : groups) before[name_of(group)] = group.best;
  run_sql(path(), "UPDATE records SET median = 1e-300 WHERE id = (SELECT max(id) FROM records)");
  size_t times = 0;
  const std::vector<LogGroup> again = open()->groups().value();
  for (const LogGroup& group : again) {
    if (!group.best) continue;
    ++times;
    EXPECT_GE(*group.best, before[name_of(group)].value()) << name_of(group);
    EXPECT_GT(*group.best, 1e-300);
  }
  EXPECT_GT(times, 0u);
}

TEST_F(DamagedLog, InALeafLosesThatLeafAlone) {
  std::string bytes = bytes_of(filled(2000));
  const size_t at = bytes.find("order = [0, 1000]");
  ASSERT_NE(at, std::string::npos);
  const size_t page = at / 4096 * 4096;
  std::fill_n(bytes.begin() + static_cast<long>(page), 4096, '\xff');
  write(path(), bytes);
  const LogCheck check = open()->verify().value();
  EXPECT_GT(check.damaged, 0);
  const Salvaged salvaged = salvage_log(path()).value();
  EXPECT_GT(salvaged.lost, 5);
  EXPECT_LT(salvaged.lost, 40);
  EXPECT_EQ(salvaged.kept.records + salvaged.lost, 2000);
  EXPECT_EQ(salvaged.kept.plans, 200);
}

TEST_F(DamagedLog, WithoutItsFirstPageIsSalvagedWhenItIsOpened) {
  std::string bytes = bytes_of(filled(500));
  std::fill_n(bytes.begin() + 100, 3000, '\x11');
  write(path(), bytes);
  EXPECT_FALSE(Log::open(path(), Log::Mode::read).ok());
  EXPECT_EQ(bytes_of(path()), bytes);
  const std::unique_ptr<Log> log = open();
  ASSERT_TRUE(log->salvaged().has_value());
  EXPECT_EQ(log->salvaged()->kept, (LogCounts{500, 50, 50}));
  EXPECT_EQ(log->salvaged()->lost, 0);
  EXPECT_EQ(log->salvaged()->old_file, path() + ".damaged");
  EXPECT_EQ(bytes_of(path() + ".damaged"), bytes);
  EXPECT_EQ(log->find().value().size(), 500u);
  EXPECT_FALSE(open()->salvaged().has_value());
}

TEST_F(DamagedLog, CutOffKeepsWhatIsLeft) {
  const std::string whole = bytes_of(filled(1000));
  for (size_t parts : {2, 3, 10}) {
    const std::string name = fmt::format("{}.db", parts);
    write(path(name), std::string_view(whole).substr(0, whole.size() / parts));
    Result<std::unique_ptr<Log>> log = Log::open(path(name));
    ASSERT_TRUE(log.ok()) << log.error().to_string();
    ASSERT_TRUE((*log)->salvaged().has_value());
    EXPECT_EQ((*log)->counts().value(), (*log)->salvaged()->kept);
    EXPECT_GT((*log)->salvaged()->lost, 0);
    EXPECT_EQ((*log)->verify().value().damaged, 0);
  }
}

TEST_F(DamagedLog, IsNotSalvagedWhileAnotherHasItOpen) {
  filled(10);
  const std::unique_ptr<Log> log = open();
  const Error error = salvage_log(path()).error();
  EXPECT_EQ(error.code(), ErrorCode::limit);
  EXPECT_THAT(error.what(), says("another process"));
  EXPECT_TRUE(log->add({}).ok());
  EXPECT_FALSE(fs::exists(path() + ".damaged"));
}

// Whatever a file says: an error or a log, never a crash. Each row that is found fits its checksum.
TEST_F(DamagedLog, OfRandomBytesIsReadOrRefused) {
  const std::string whole = bytes_of(filled(60));
  Rng rng(2);
  for (int attempt = 0; attempt < 40; ++attempt) {
    std::string bytes = whole;
    for (uint64_t changes = 1 + rng.below(20); changes > 0; --changes)
      bytes[rng.below(rng.chance(0.3) ? 200 : bytes.size())] = static_cast<char>(rng.below(256));
    write(path("random.db"), bytes);
    for (Log::Mode mode : {Log::Mode::read, Log::Mode::use}) {
      const Result<std::unique_ptr<Log>> log = Log::open(path("random.db"), mode);
      if (!log.ok()) {
        EXPECT_NE(log.error().code(), ErrorCode::internal) << log.error().to_string();
        continue;
      }
      const Result<LogCheck> check = (*log)->verify();
      if (!check.ok()) EXPECT_NE(check.error().code(), ErrorCode::internal);
      const Result<std::vector<Record>> found = (*log)->find();
      if (!found.ok()) EXPECT_NE(found.error().code(), ErrorCode::internal);
    }
    for (const fs::directory_entry& file : fs::directory_iterator(folder()))
      if (file.path().filename().native().starts_with("random.db")) fs::remove(file.path());
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
