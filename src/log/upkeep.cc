#include "base/text.h"
#include "log/impl.h"

// Checks a whole log, and removes records that nobody needs.

namespace hone {

namespace {

constexpr size_t kMostDamage = 100;  // that is told one by one

void add_damage(LogCheck& check, std::string what) {
  if (check.damage.size() < kMostDamage) check.damage.push_back(std::move(what));
  ++check.damaged;
}

// The faults that SQLite finds in pages and indexes.
Status check_structure(sqlite::Database& database, LogCheck& check) {
  sqlite::Rows row =
      HONE_TRY(database.query(fmt::format("PRAGMA integrity_check({})", kMostDamage)));
  while (HONE_TRY(row.next()))
    for (std::string_view line : split_lines(row.text(0)))
      if (line != "ok" && !line.starts_with("***")) add_damage(check, excerpt(line));
  return {};
}

template <class Row>
Status check_rows(Log::Impl& log, const rows::Table& table,
                  std::optional<Row> (*read)(const sqlite::Rows&), int64_t& good, LogCheck& check) {
  return each_page(log, table, read, [&](const Page<Row>& page) -> Status {
    good += static_cast<int64_t>(page.rows.size());
    for (int64_t id : page.damaged)
      add_damage(check, fmt::format("row {} of {} does not fit its checksum", id, table.name));
    return {};
  });
}

// A part that cannot be read is what is looked for, not a failure.
Status count_damage(Status part, const sqlite::Database& database, LogCheck& check) {
  if (part.ok() || !database.is_damaged()) return part;
  add_damage(check, part.error().what());
  return {};
}

}  // namespace

Result<LogCheck> Log::verify() const {
  LogCheck check;
  sqlite::Database& database = *impl_->database;
  {
    std::lock_guard lock(impl_->mutex);
    HONE_TRY(count_damage(check_structure(database, check), database, check));
  }
  const auto check_table = [&](const rows::Table& table, auto read, int64_t& good) {
    return count_damage(check_rows(*impl_, table, read, good, check), database, check);
  };
  HONE_TRY(check_table(rows::kRecords, rows::read_record, check.good.records));
  HONE_TRY(check_table(rows::kTexts, rows::read_text, check.good.texts));
  HONE_TRY(check_table(rows::kPlans, rows::read_plan, check.good.plans));
  return check;
}

// ---- Removing -----------------------------------------------------------------------------------

namespace {

// Bytes of a row in the file, about: its texts and samples, its numbers, its places in indexes.
constexpr std::string_view kRowBytes =
    "(length(CAST(choice AS BLOB)) + length(CAST(conditions AS BLOB)) + "
    "length(CAST(detail AS BLOB)) + length(seconds) + 200)";

Result<int64_t> remove_records(sqlite::Database& database, const GcRules& rules) {
  int64_t removed = 0;
  const auto remove = [&](const std::string& condition, const auto& value) -> Status {
    HONE_TRY(database.run("DELETE FROM records WHERE " + condition, value));
    removed += database.changes();
    return {};
  };
  if (rules.before) HONE_TRY(remove("time < ?1", *rules.before));
  if (rules.version) HONE_TRY(remove("version = ?1", std::string_view(*rules.version)));
  if (rules.bytes)
    HONE_TRY(remove(fmt::format("id <= (SELECT max(id) FROM (SELECT id, sum({}) OVER (ORDER BY id "
                                "DESC) AS total FROM records) WHERE total > ?1)",
                                kRowBytes),
                    *rules.bytes));
  return removed;
}

// Removes kernels and graphs without records or plans, and of targets.
Result<int64_t> remove_texts(sqlite::Database& database) {
  HONE_TRY(database.run(
      "DELETE FROM texts WHERE NOT EXISTS (SELECT 1 FROM records WHERE subject = texts.hash) "
      "AND hash NOT IN (SELECT target FROM records UNION SELECT target FROM plans "
      "UNION SELECT graph FROM plans)"));
  return database.changes();
}

}  // namespace

Status Log::empty_journal() {
  std::lock_guard lock(impl_->mutex);
  return impl_->database->run("PRAGMA wal_checkpoint(TRUNCATE)");
}

Result<Collected> Log::gc(const GcRules& rules) {
  std::lock_guard lock(impl_->mutex);
  sqlite::Database& database = *impl_->database;
  Collected collected;
  {
    sqlite::Transaction transaction = HONE_TRY(sqlite::Transaction::begin(database));
    collected.records = HONE_TRY(remove_records(database, rules));
    collected.texts = HONE_TRY(remove_texts(database));
    collected.kept = HONE_TRY(database.integer("SELECT count(*) FROM records"));
    if (!rules.dry_run) HONE_TRY(transaction.commit());
  }
  if (!rules.dry_run) {
    // Gives the space back, and makes the log one file again as far as others let it.
    HONE_TRY(database.run("VACUUM"));
    HONE_TRY(database.run("PRAGMA wal_checkpoint(TRUNCATE)"));
  }
  collected.bytes = HONE_TRY(database.integer("PRAGMA page_count")) *
                    HONE_TRY(database.integer("PRAGMA page_size"));
  return collected;
}

}  // namespace hone
