#pragma once

#include <optional>
#include <string_view>

#include "log/database.h"
#include "log/log.h"

// Records, texts and best plans as rows of tables. Each row has a checksum of all that it says
// except its id, so that damage does not go unseen; equal rows have equal checksums.

namespace hone::rows {

inline constexpr int64_t kFormat = 1;                // a log of a later one is refused
inline constexpr int64_t kApplication = 0x686f6e65;  // "hone": marks the file as a log

struct Table {
  std::string_view name;
  std::string_view columns;  // all, in the order of the file; the first is the id
};
inline constexpr Table kRecords = {
    "records",
    "id, kind, subject, choice, code, target, conditions, outcome, detail, seconds, median, "
    "version, time, noise, digest"};
inline constexpr Table kTexts = {"texts", "id, kind, hash, text, digest"};
inline constexpr Table kPlans = {
    "plans", "id, graph, target, threads, plan, gain, low, high, version, time, digest"};
inline constexpr const Table* kTables[] = {&kRecords, &kTexts, &kPlans};

// Makes all tables in an empty database.
Status make_tables(sqlite::Database& database);
// True if the database has these tables, and nothing besides.
Status check_tables(sqlite::Database& database);

uint64_t digest(const Record& record);
uint64_t digest(const KnownText& text);
uint64_t digest(const BestPlan& best);

// The record of the row at hand, whose columns are those of the table. None: it does not fit its
// checksum, or the median, which the checksum does not cover, is not that of the samples.
std::optional<Record> read_record(const sqlite::Rows& row);
// The same whatever the median says: it can be found again.
std::optional<Record> read_samples(const sqlite::Rows& row);
std::optional<KnownText> read_text(const sqlite::Rows& row);
std::optional<BestPlan> read_plan(const sqlite::Rows& row);

// With its id; 0: the next one.
Status insert(sqlite::Database& database, const Record& record);
Status insert(sqlite::Database& database, const KnownText& text);  // nothing if the hash is known
Status replace(sqlite::Database& database, const BestPlan& best);

}  // namespace hone::rows
