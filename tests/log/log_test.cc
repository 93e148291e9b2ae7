#include <gmock/gmock.h>

#include <thread>

#include "tests/base/says_testing.h"
#include "tests/log/log_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;

TEST_F(LogTest, FindsWhatWasAddedAfterItWasOpenedAgain) {
  const std::vector<Record> records = {some_record(1), some_record(2),
                                       failed_record(Outcome::crashed, "SIGSEGV in \"k0\" – ä")};
  ASSERT_TRUE(open()->add(records).ok());
  const std::vector<Record> found = open()->find().value();
  EXPECT_EQ(without_ids(found), records);
  EXPECT_EQ(found[0].id, 1);
  EXPECT_EQ(found[2].id, 3);
}

TEST_F(LogTest, MakesItsFolder) {
  EXPECT_TRUE(open("a/b/log.db")->add({}).ok());
  EXPECT_TRUE(std::filesystem::exists(path("a/b/log.db")));
}

TEST_F(LogTest, FindsByEachPartOfAQuery) {
  const std::unique_ptr<Log> log = open();
  std::vector<Record> records;
  for (uint64_t i = 0; i < 40; ++i) {
    Record record = i % 5 == 4 ? failed_record(Outcome::wrong, "off by 1") : some_record(i % 8);
    record.version = i % 3 == 0 ? "0.1.0" : "0.2.0";
    record.target = i % 4;
    record.conditions = i % 7 == 0 ? "threads=2" : "threads=1";
    record.time = static_cast<int64_t>(1000 - i);  // the clock goes backwards
    records.push_back(record);
  }
  ASSERT_TRUE(log->add(records).ok());
  for (size_t i = 0; i < records.size(); ++i) records[i].id = static_cast<int64_t>(i) + 1;

  const Record& one = records[12];
  for (int mask = 0; mask < 128; ++mask) {
    Query query;
    if (mask & 1) query.kind = one.kind;
    if (mask & 2) query.subject = one.subject;
    if (mask & 4) query.code = one.code;
    if (mask & 8) query.target = one.target;
    if (mask & 16) query.conditions = one.conditions;
    if (mask & 32) query.outcome = one.outcome;
    if (mask & 64) query.version = one.version;
    std::vector<Record> wanted;
    for (const Record& r : records)
      if ((!query.kind || r.kind == one.kind) && (!query.subject || r.subject == one.subject) &&
          (!query.code || r.code == one.code) && (!query.target || r.target == one.target) &&
          (!query.conditions || r.conditions == one.conditions) &&
          (!query.outcome || r.outcome == one.outcome) &&
          (!query.version || r.version == one.version))
        wanted.push_back(r);
    EXPECT_EQ(log->find(query).value(), wanted) << mask;
  }
  EXPECT_EQ(log->find({.after = 37}).value().size(), 3u);
  EXPECT_EQ(log->find({.after = 10, .limit = 2}).value()[1].id, 12);
  EXPECT_TRUE(log->find({.limit = 0}).value().empty());
}

TEST_F(LogTest, VisitsMoreThanAPage) {
  const std::unique_ptr<Log> log = open();
  ASSERT_TRUE(log->add(std::vector<Record>(2500, some_record())).ok());
  int64_t last = 0;
  ASSERT_TRUE(log->visit({.limit = 2100},
                         [&](const Record& record) -> Status {
                           EXPECT_EQ(record.id, last + 1);
                           last = record.id;
                           return log->know("kernel", 1, "text");  // the log is free meanwhile
                         })
                  .ok());
  EXPECT_EQ(last, 2100);
}

TEST_F(LogTest, GivesTheTimeToRecordsWithoutOne) {
  const std::unique_ptr<Log> log = open();
  Record record = some_record();
  record.time = 0;
  ASSERT_TRUE(log->add({&record, 1}).ok());
  EXPECT_GT(log->find().value()[0].time, 1'700'000'000);
}

TEST_F(LogTest, KeepsTheFirstTextOfAHash) {
  const std::unique_ptr<Log> log = open();
  ASSERT_TRUE(log->know("kernel", 7, "first").ok());
  ASSERT_TRUE(log->know("kernel", 7, "second").ok());
  ASSERT_TRUE(log->know("graph", 7, "another").ok());
  EXPECT_EQ(log->text("kernel", 7).value(), "first");
  EXPECT_EQ(log->text("graph", 7).value(), "another");
  EXPECT_EQ(log->text("kernel", 8).value(), std::nullopt);
  EXPECT_EQ(log->counts().value(), (LogCounts{.texts = 2}));
}

TEST_F(LogTest, AddsRecordsWithTheirTextsOrNothing) {
  const std::unique_ptr<Log> log = open();
  std::vector<Record> records = {some_record(1), some_record(2)};
  const KnownText text = {"kernel", records[0].subject, "kernel {}"};
  records[1].seconds[0] = -1;
  EXPECT_THAT(log->add(records, {&text, 1}).error().what(), says("record ... -1 ... seconds"));
  EXPECT_EQ(log->counts().value(), LogCounts{});
  records[1].seconds[0] = 1;
  ASSERT_TRUE(log->add(records, {&text, 1}).ok());
  EXPECT_EQ(log->counts().value(), (LogCounts{.records = 2, .texts = 1}));
}

TEST_F(LogTest, RefusesWhatIsNoRecord) {
  const std::unique_ptr<Log> log = open();
  const auto error_of = [&](const auto& change) {
    Record record = some_record();
    change(record);
    return log->add({&record, 1}).error().what();
  };
  EXPECT_THAT(error_of([](Record& r) { r.kind = "Kernel"; }), says("'Kernel' ... kind"));
  EXPECT_THAT(error_of([](Record& r) { r.kind = ""; }), says("'' ... kind"));
  EXPECT_THAT(error_of([](Record& r) { r.choice = "a\xff"; }), HasSubstr("byte 0xff at 1"));
  EXPECT_THAT(error_of([](Record& r) { r.detail = std::string(1, '\0'); }),
              HasSubstr("byte 0x00 at 0"));
  EXPECT_THAT(error_of([](Record& r) { r.detail = "\xed\xa0\x80"; }), HasSubstr("byte 0xed"));
  for (const char* obeyed : {"\x1b[2J", "\r", "\x7f", "\xc2\x9b"})
    EXPECT_THAT(error_of([&](Record& r) { r.detail = obeyed; }), says("text"));
  EXPECT_THAT(error_of([](Record& r) { r.conditions.assign(1001, 'x'); }),
              HasSubstr("1001 bytes, more than 1000"));
  EXPECT_THAT(error_of([](Record& r) { r.seconds.clear(); }), says("0 samples"));
  EXPECT_THAT(error_of([](Record& r) { r.outcome = Outcome::wrong; }), says("3 samples ... wrong"));
  EXPECT_THAT(error_of([](Record& r) { r.seconds[0] = NAN; }), says("nan ... number"));
  EXPECT_THAT(error_of([](Record& r) { r.seconds.assign(70000, 1); }), HasSubstr("70000 samples"));
  EXPECT_THAT(error_of([](Record& r) { r.noise = INFINITY; }), says("inf ... spread"));
  EXPECT_THAT(error_of([](Record& r) { r.time = -1; }), HasSubstr("time -1 is negative"));
  EXPECT_THAT(error_of([](Record& r) { r.outcome = static_cast<Outcome>(6); }),
              HasSubstr("no outcome 6"));
}

TEST_F(LogTest, TakesADetailMadeOfAnyBytes) {
  EXPECT_EQ(detail_of("SIGSEGV in \"k\"\n\xc3\xa4\x1b[2J\xff\xc3"),
            "SIGSEGV in \"k\"\n\xc3\xa4\\x1b[2J\\xff\\xc3");
  const std::string cut = detail_of("x" + std::string(2 * kMaxDetailBytes, '\xff'));
  EXPECT_LE(cut.size(), kMaxDetailBytes);
  EXPECT_GT(cut.size(), kMaxDetailBytes - 4);
  Record record = failed_record(Outcome::crashed, cut);
  EXPECT_TRUE(check(record).ok());
}

TEST_F(LogTest, KeepsOneBestPlanPerGraphTargetAndThreads) {
  const std::unique_ptr<Log> log = open();
  BestPlan best = some_plan();
  ASSERT_TRUE(log->set_best(best).ok());
  best.gain = 1.15;
  ASSERT_TRUE(log->set_best(best).ok());
  BestPlan other = best;
  other.threads = 1;
  ASSERT_TRUE(log->set_best(other).ok());
  EXPECT_EQ(log->best(best.graph, best.target, 2).value(), best);
  EXPECT_EQ(log->best(best.graph, best.target, 1).value(), other);
  EXPECT_EQ(log->best(best.graph, best.target, 4).value(), std::nullopt);
  EXPECT_EQ(log->counts().value().plans, 2);
  other.low = 1.5;
  EXPECT_THAT(log->set_best(other).error().what(), says("interval"));
  other.low = 0;
  EXPECT_THAT(log->set_best(other).error().what(), says("0 ... gain"));
}

TEST_F(LogTest, GroupsRecordsThatCompare) {
  const std::unique_ptr<Log> log = open();
  Record slow = some_record(0), fast = some_record(0), elsewhere = some_record(0);
  slow.seconds = {3, 9, 4};
  fast.seconds = {2, 1};
  fast.choice = "{}";
  elsewhere.conditions = "threads=2";
  elsewhere.seconds = {1};
  const std::vector<Record> records = {slow, fast, fast, failed_record(Outcome::refused, "why"),
                                       elsewhere};
  ASSERT_TRUE(log->add(records).ok());
  const std::vector<LogGroup> groups = log->groups().value();
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].conditions, "threads=2");
  EXPECT_EQ(groups[1].subject, slow.subject);
  EXPECT_EQ(groups[1].target, slow.target);
  EXPECT_EQ(groups[1].records, 4);
  EXPECT_EQ(groups[1].choices, 2);
  EXPECT_EQ(groups[1].failed, 1);
  EXPECT_EQ(groups[1].best, 1.5);
  EXPECT_EQ(groups[1].last_time, slow.time);
}

// ---- Merging and removing -----------------------------------------------------------------------

TEST_F(LogTest, MergesAnotherLogOnce) {
  const std::unique_ptr<Log> log = open(), other = open("other.db");
  const Record crash = failed_record(Outcome::crashed, "SIGILL");
  const std::vector<Record> ours = {some_record(1), crash};
  const std::vector<Record> theirs = {crash, crash, some_record(2), some_record(1)};
  ASSERT_TRUE(log->add(ours).ok());
  ASSERT_TRUE(other->add(theirs).ok());
  ASSERT_TRUE(log->know("kernel", 1, "ours").ok());
  ASSERT_TRUE(other->know("kernel", 1, "theirs").ok());
  ASSERT_TRUE(other->know("kernel", 2, "theirs").ok());
  BestPlan better = some_plan(1), worse = some_plan(2);
  ASSERT_TRUE(log->set_best(better).ok());
  ASSERT_TRUE(log->set_best(worse).ok());
  better.low = 1.01;
  worse.low = 1.07;
  ASSERT_TRUE(other->set_best(better).ok());
  ASSERT_TRUE(other->set_best(worse).ok());

  for (bool is_first : {true, false}) {
    LogMerge merge(*log);
    ASSERT_TRUE(merge.take_all(*other).ok());
    const LogMerge::Counts counts = merge.finish().value();
    EXPECT_EQ(counts.added, (is_first ? LogCounts{2, 1, 1} : LogCounts{}));
    EXPECT_EQ(counts.known, (is_first ? LogCounts{2, 1, 1} : LogCounts{4, 2, 2}));
  }
  const std::vector<Record> merged = {some_record(1), crash, crash, some_record(2)};
  EXPECT_EQ(without_ids(log->find().value()), merged);
  EXPECT_EQ(log->text("kernel", 1).value(), "ours");
  EXPECT_EQ(log->best(1, better.target, 2).value()->low, 1.05);
  EXPECT_EQ(log->best(2, better.target, 2).value()->low, 1.07);
}

TEST_F(LogTest, RemovesOldRecordsThoseOfAVersionAndWhatNobodyNeeds) {
  const std::unique_ptr<Log> log = open();
  std::vector<Record> records(100, some_record());
  for (size_t i = 0; i < records.size(); ++i) {
    records[i].subject = i;
    records[i].time = 1000 + static_cast<int64_t>(i);
    records[i].version = i < 50 ? "0.1.0" : "0.2.0";
    ASSERT_TRUE(log->know("kernel", i, fmt::format("kernel {}", i)).ok());
  }
  ASSERT_TRUE(log->add(records).ok());
  ASSERT_TRUE(log->set_best(some_plan()).ok());
  ASSERT_TRUE(log->know("target", some_plan().target, "target").ok());

  Collected tried = log->gc({.before = 1010, .dry_run = true}).value();
  EXPECT_EQ(tried.records, 10);
  EXPECT_EQ(tried.texts, 9);  // that of graph 1 has a plan
  EXPECT_EQ(tried.kept, 90);
  EXPECT_EQ(log->counts().value(), (LogCounts{100, 101, 1}));

  Collected old = log->gc({.before = 1010}).value();
  EXPECT_EQ(old.records, 10);
  EXPECT_EQ(log->find().value()[0].subject, 10u);
  Collected version = log->gc({.version = "0.1.0"}).value();
  EXPECT_EQ(version.records, 40);
  EXPECT_EQ(version.kept, 50);
  Collected large = log->gc({.bytes = 1000}).value();
  EXPECT_GT(large.kept, 0);
  EXPECT_LT(large.kept, 6);
  EXPECT_EQ(log->find().value().back().subject, 99u);
  EXPECT_EQ(log->gc({.bytes = 0}).value().kept, 0);
  EXPECT_EQ(log->counts().value(), (LogCounts{0, 2, 1}));
  EXPECT_EQ(log->verify().value().damaged, 0);
  // An id is never given twice.
  ASSERT_TRUE(log->add({records.data(), 1}).ok());
  EXPECT_EQ(log->find().value()[0].id, 101);
}

// ---- Several at once ----------------------------------------------------------------------------

TEST_F(LogTest, IsMadeBySeveralAtTheSameTime) {
  for (int round = 0; round < 40; ++round) {
    const std::string name = "made" + std::to_string(round) + ".db";
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) threads.emplace_back([&] { open(name); });
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_F(LogTest, TakesRecordsOfSeveralThreadsAndSeveralOpenLogs) {
  std::vector<std::thread> threads;
  const std::unique_ptr<Log> shared = open("shared.db");
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const std::unique_ptr<Log> own = open();  // all four make it at the same time
      for (uint64_t i = 0; i < 25; ++i) {
        const Record record = some_record(100 * t + i);
        EXPECT_TRUE(own->add({&record, 1}).ok());
        EXPECT_TRUE(shared->add({&record, 1}).ok());
        EXPECT_EQ(own->find({.code = record.code}).value().size(), 1u);
        EXPECT_TRUE(shared->know("kernel", i, "text").ok());
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::unique_ptr<Log>& log : {open(), open("shared.db")}) {
    EXPECT_EQ(log->counts().value().records, 100);
    EXPECT_EQ(log->verify().value().damaged, 0);
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
