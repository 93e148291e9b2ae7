#include "log/log.h"

#include <sys/stat.h>

#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/file.h"
#include "base/text.h"
#include "log/impl.h"

namespace hone {

namespace {

constexpr std::string_view kMagic("SQLite format 3\0", 16);

// The kind of file at the path; none: there is nothing.
Result<bool> is_there(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return false;
    return os_error("read the log", path, errno);
  }
  if (S_ISDIR(info.st_mode))
    return bad_input("the log '{}' is a folder", path)
        .with_hint("name a file, such as log.db in that folder");
  if (!S_ISREG(info.st_mode)) return bad_input("the log '{}' is not a regular file", path);
  return true;
}

// Another process may be doing the same, and SQLite does not wait for its end.
Status use_journal(sqlite::Database& database) {
  for (int attempt = 0;; ++attempt) {
    Status done = database.run("PRAGMA journal_mode = WAL");
    if (done.ok() || done.error().code() != ErrorCode::limit || attempt == 1000) return done;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// Damage is looked for where it costs nothing: at both ends of the tables.
Status look_at_ends(sqlite::Database& database) {
  for (const rows::Table* table : rows::kTables)
    for (std::string_view order : {"ASC", "DESC"})
      HONE_TRY(database.run(fmt::format("SELECT {} FROM {} ORDER BY id {} LIMIT 1", table->columns,
                                        table->name, order)));
  return {};
}

struct Opened {
  std::unique_ptr<sqlite::Database> database;
  bool is_damaged = false;
  Status status;
};

Opened open_once(const std::string& path, Log::Mode mode) {
  const bool may_write = mode == Log::Mode::use;
  Opened opened;
  Result<std::unique_ptr<sqlite::Database>> database =
      sqlite::Database::open(path, may_write ? sqlite::Access::write : sqlite::Access::read);
  if (!database.ok()) {
    opened.status = std::move(database).error();
    return opened;
  }
  opened.database = *std::move(database);
  opened.status = [&]() -> Status {
    HONE_TRY(prepare_tables(*opened.database, may_write));
    return look_at_ends(*opened.database);
  }();
  opened.is_damaged = opened.database->is_damaged();
  return opened;
}

// Who opens a log while it is salvaged waits for that, and then has the old file.
Opened open_database(const std::string& path, Log::Mode mode) {
  Opened opened = open_once(path, mode);
  for (int attempt = 0; attempt < 10 && opened.database && opened.database->has_moved();
       ++attempt) {
    opened.database.reset();
    opened = open_once(path, mode);
  }
  return opened;
}

int64_t now() { return std::max<int64_t>(std::time(nullptr), 0); }

}  // namespace

Status check_header(const std::string& path) {
  std::array<char, 100> header = {};
  std::ifstream file(path, std::ios::binary);
  if (!file) return os_error("read the log", path, errno);
  file.read(header.data(), header.size());
  const size_t size = static_cast<size_t>(file.gcount());
  if (size == 0) return {};
  if (size < header.size() || std::string_view(header.data(), kMagic.size()) != kMagic)
    return bad_input("'{}' is not a log: it does not begin like a database", path);
  const auto number = [&](size_t at) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(header[at + i]);
    return static_cast<int64_t>(value);
  };
  const int64_t format = number(60), application = number(68);
  if (application != 0 && application != rows::kApplication)
    return bad_input("'{}' is another program's database, not a log of hone", path);
  if (application == rows::kApplication && format > rows::kFormat)
    return unsupported("the log '{}' has format {}, and this version of hone knows {}", path,
                       format, rows::kFormat)
        .with_hint("use the version of hone that wrote it, or name another log");
  return {};
}

Status prepare_tables(sqlite::Database& database, bool may_write) {
  // The tables are counted first: a log that another process makes in between has both by then.
  const auto is_log = [&]() -> Result<bool> {
    const int64_t tables = HONE_TRY(database.integer("SELECT count(*) FROM sqlite_schema"));
    const int64_t application = HONE_TRY(database.integer("PRAGMA application_id"));
    const int64_t format = HONE_TRY(database.integer("PRAGMA user_version"));
    if (application == rows::kApplication && format == rows::kFormat) return true;
    if (application == rows::kApplication)
      return unsupported("the log '{}' has format {}, and this version of hone knows {}",
                         database.path(), format, rows::kFormat);
    if (tables != 0)
      return bad_input("'{}' is another program's database, not a log of hone", database.path());
    return false;
  };
  bool is_made = HONE_TRY(is_log());
  if (may_write && !is_made) {
    HONE_TRY(use_journal(database));
    sqlite::Transaction transaction = HONE_TRY(sqlite::Transaction::begin(database));
    if (!HONE_TRY(is_log())) HONE_TRY(rows::make_tables(database));
    HONE_TRY(transaction.commit());
    is_made = true;
  }
  if (!is_made) return bad_input("'{}' is not a log: it is empty", database.path());
  HONE_TRY(rows::check_tables(database));
  if (may_write) return use_journal(database);
  return {};
}

// ---- Opening ------------------------------------------------------------------------------------

Log::Log(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Log::~Log() = default;

Result<std::unique_ptr<Log>> Log::open(const std::string& path, Mode mode) {
  if (path.empty()) return usage_error("the path of the log is empty");
  const bool exists = HONE_TRY(is_there(path));
  if (exists) HONE_TRY(check_header(path));
  if (!exists && mode == Mode::read) return bad_input("there is no log '{}'", path);
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!exists && !folder.empty()) HONE_TRY(make_folders(folder));

  std::unique_ptr<Log> log(new Log(std::unique_ptr<Impl>(new Impl{.path = path})));
  Opened opened = open_database(path, mode);
  if (!opened.status.ok() && opened.is_damaged && mode == Mode::use) {
    opened.database.reset();
    log->impl_->salvaged = HONE_TRY(salvage_log(path));
    opened = open_database(path, mode);
  }
  HONE_TRY(std::move(opened.status));
  log->impl_->database = std::move(opened.database);
  return log;
}

const std::string& Log::path() const { return impl_->path; }
const std::optional<Salvaged>& Log::salvaged() const { return impl_->salvaged; }

// ---- Writing ------------------------------------------------------------------------------------

Status Log::add(std::span<const Record> records, std::span<const KnownText> texts) {
  for (const Record& record : records)
    if (Status good = check(record); !good.ok()) return std::move(good).error().about("a record");
  for (const KnownText& text : texts)
    if (Status good = check(text); !good.ok()) return std::move(good).error().about("a text");
  if (records.empty() && texts.empty()) return {};
  std::lock_guard lock(impl_->mutex);
  sqlite::Transaction transaction = HONE_TRY(sqlite::Transaction::begin(*impl_->database));
  for (const KnownText& text : texts) HONE_TRY(rows::insert(*impl_->database, text));
  for (Record record : records) {
    record.id = 0;
    if (record.time == 0) record.time = now();
    HONE_TRY(rows::insert(*impl_->database, record));
  }
  return transaction.commit();
}

Status Log::know(std::string_view kind, uint64_t hash, std::string_view text) {
  {
    std::lock_guard lock(impl_->mutex);
    const bool is_known =
        HONE_TRY(impl_->database->integer(
            "SELECT count(*) FROM texts WHERE hash = ?1 AND kind = ?2", hash, kind)) != 0;
    if (is_known) return {};
  }
  const KnownText known = {std::string(kind), hash, std::string(text)};
  return add({}, {&known, 1});
}

Status Log::set_best(const BestPlan& best) {
  BestPlan timed = best;
  if (timed.time == 0) timed.time = now();
  if (Status good = check(timed); !good.ok()) return std::move(good).error().about("a best plan");
  std::lock_guard lock(impl_->mutex);
  return rows::replace(*impl_->database, timed);
}

// ---- Reading ------------------------------------------------------------------------------------

namespace {

// Every value has its number; those that are not asked for do not stand in the text.
std::string where_of(const Query& query) {
  std::string sql = " FROM records";
  if (query.code)
    sql += " INDEXED BY records_by_code";
  else if (query.subject)
    sql += " INDEXED BY records_by_subject";
  sql += " WHERE id > ?8";
  if (query.code) sql += " AND code = ?1";
  if (query.subject) sql += " AND subject = ?2";
  if (query.target) sql += " AND target = ?3";
  if (query.kind) sql += " AND kind = ?4";
  if (query.conditions) sql += " AND conditions = ?5";
  if (query.outcome) sql += " AND outcome = ?6";
  if (query.version) sql += " AND version = ?7";
  return sql;
}

// The texts of the query have to live as long as the rows.
Result<sqlite::Rows> run_query(sqlite::Database& database, const std::string& sql,
                               const Query& query) {
  const auto text = [](const std::optional<std::string>& wanted) {
    return wanted ? std::string_view(*wanted) : std::string_view();
  };
  return database.query(sql, query.code.value_or(0), query.subject.value_or(0),
                        query.target.value_or(0), text(query.kind), text(query.conditions),
                        static_cast<int>(query.outcome.value_or(Outcome::measured)),
                        text(query.version), query.after, query.limit);
}

Result<Page<Record>> find_page(sqlite::Database& database, const Query& query) {
  const std::string sql =
      fmt::format("SELECT {}{} ORDER BY id LIMIT ?9", rows::kRecords.columns, where_of(query));
  sqlite::Rows rows = HONE_TRY(run_query(database, sql, query));
  return read_page(rows, rows::read_record);
}

template <class Row>
Status call_with(const std::vector<Row>& rows, const std::function<Status(const Row&)>& call) {
  for (const Row& row : rows) HONE_TRY(call(row));
  return {};
}

}  // namespace

Status Log::visit(Query query, const std::function<Status(const Record&)>& call) const {
  for (;;) {
    Page<Record> page;
    {
      std::lock_guard lock(impl_->mutex);
      page = HONE_TRY(find_page(*impl_->database, query));
    }
    HONE_TRY(call_with(page.rows, call));
    if (page.is_last) return {};
    query.after = page.last;
    query.limit -= static_cast<int64_t>(page.rows.size() + page.damaged.size());
  }
}

Result<std::vector<Record>> Log::find(const Query& query) const {
  std::vector<Record> records;
  HONE_TRY(visit(
      query,
      [&](const Record& record) -> Status {
        records.push_back(record);
        return {};
      }));
  return records;
}

Result<std::optional<std::string>> Log::text(std::string_view kind, uint64_t hash) const {
  static const std::string sql =
      fmt::format("SELECT {} FROM texts WHERE hash = ?1 AND kind = ?2", rows::kTexts.columns);
  std::lock_guard lock(impl_->mutex);
  sqlite::Rows rows = HONE_TRY(impl_->database->query(sql, hash, kind));
  if (!HONE_TRY(rows.next())) return std::optional<std::string>();
  std::optional<KnownText> known = rows::read_text(rows);
  if (!known) return std::optional<std::string>();
  return std::optional(std::move(known->text));
}

Result<std::optional<BestPlan>> Log::best(uint64_t graph, uint64_t target, int64_t threads) const {
  static const std::string sql =
      fmt::format("SELECT {} FROM plans WHERE graph = ?1 AND target = ?2 AND threads = ?3",
                  rows::kPlans.columns);
  std::lock_guard lock(impl_->mutex);
  sqlite::Rows rows = HONE_TRY(impl_->database->query(sql, graph, target, threads));
  if (!HONE_TRY(rows.next())) return std::optional<BestPlan>();
  return rows::read_plan(rows);
}

Status Log::visit_texts(const std::function<Status(const KnownText&)>& call) const {
  return each_page(*impl_, rows::kTexts, rows::read_text,
                   [&](const Page<KnownText>& page) { return call_with(page.rows, call); });
}

Status Log::visit_plans(const std::function<Status(const BestPlan&)>& call) const {
  return each_page(*impl_, rows::kPlans, rows::read_plan,
                   [&](const Page<BestPlan>& page) { return call_with(page.rows, call); });
}

Result<LogCounts> Log::counts() const {
  std::lock_guard lock(impl_->mutex);
  return LogCounts{HONE_TRY(impl_->database->integer("SELECT count(*) FROM records")),
                   HONE_TRY(impl_->database->integer("SELECT count(*) FROM texts")),
                   HONE_TRY(impl_->database->integer("SELECT count(*) FROM plans"))};
}

namespace {

// The lowest median of the group's records. The first one that fits its checksum has it: the column
// alone may be damaged.
Result<std::optional<double>> best_of(sqlite::Database& database, const LogGroup& group,
                                      Query query) {
  query.kind = group.kind;
  query.subject = group.subject;
  query.target = group.target;
  query.conditions = group.conditions;
  query.limit = INT64_MAX;
  const std::string sql = fmt::format("SELECT {}{} AND median IS NOT NULL ORDER BY median LIMIT ?9",
                                      rows::kRecords.columns, where_of(query));
  sqlite::Rows row = HONE_TRY(run_query(database, sql, query));
  while (HONE_TRY(row.next()))
    if (const std::optional<Record> record = rows::read_record(row))
      return std::optional(median(*record));
  return std::optional<double>();
}

}  // namespace

Result<std::vector<LogGroup>> Log::groups(const Query& query) const {
  const std::string sql =
      "SELECT kind, subject, target, conditions, count(*), count(DISTINCT choice), "
      "sum(outcome <> 0), max(time)" +
      where_of(query) +
      " GROUP BY kind, subject, target, conditions ORDER BY max(id) DESC LIMIT ?9";
  std::lock_guard lock(impl_->mutex);
  std::vector<LogGroup> groups;
  {
    sqlite::Rows row = HONE_TRY(run_query(*impl_->database, sql, query));
    while (HONE_TRY(row.next())) {
      LogGroup& group = groups.emplace_back();
      group.kind = row.text(0);
      group.subject = row.hash(1);
      group.target = row.hash(2);
      group.conditions = row.text(3);
      group.records = row.integer(4);
      group.choices = row.integer(5);
      group.failed = row.integer(6);
      group.last_time = row.integer(7);
    }
  }
  for (LogGroup& group : groups) group.best = HONE_TRY(best_of(*impl_->database, group, query));
  return groups;
}

Result<int64_t> Log::bytes() const {
  std::lock_guard lock(impl_->mutex);
  return HONE_TRY(impl_->database->integer("PRAGMA page_count")) *
         HONE_TRY(impl_->database->integer("PRAGMA page_size"));
}

}  // namespace hone
