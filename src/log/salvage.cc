#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "base/file.h"
#include "log/impl.h"

// A damaged log is read row by row from a copy, and what is good goes into a new log. Nobody else
// may have the old one open: who writes to it meanwhile would lose what was acknowledged.

namespace hone {

namespace {

namespace fs = std::filesystem;

// Rows are looked for by id; a range that cannot be read is halved. So many attempts may fail.
constexpr int64_t kMostFailures = 20'000;
// Ids beyond are not looked for if the largest one cannot be read.
constexpr int64_t kMostIds = int64_t{1} << 40;

Status copy_one(const fs::path& from, const fs::path& to) {
  std::error_code failed;
  fs::copy_file(from, to, failed);
  if (failed) return os_error("copy the log", to.native(), failed.value());
  return {};
}

Result<fs::path> free_name(const std::string& path) {
  for (int i = 1; i < 1000; ++i) {
    const fs::path name = i == 1 ? path + ".damaged" : fmt::format("{}.damaged-{}", path, i);
    std::error_code failed;
    if (!fs::exists(name, failed)) return name;
  }
  return over_limit("there are 999 damaged copies of the log '{}'", path)
      .with_hint("remove those that nobody needs");
}

// Gives the file the first page of an empty log, where all tables begin at the same pages: for a
// log whose own first page is damaged.
Status replace_first_page(const fs::path& path, const fs::path& empty) {
  std::string page = HONE_TRY(read_file(empty, int64_t{1} << 30));
  constexpr size_t kPageBytes = 4096;
  HONE_CHECK(page.size() >= kPageBytes, "an empty log of {} bytes", page.size());
  const uint64_t empty_size = page.size();
  page.resize(kPageBytes);
  const auto put = [&](size_t at, uint64_t value) {
    for (size_t i = 0; i < 4; ++i) page[at + i] = static_cast<char>(value >> (24 - 8 * i));
  };
  std::error_code failed;
  // Tables that begin behind the end of the file are empty pages, which cannot be read.
  const uint64_t size = std::max(fs::file_size(path, failed), empty_size);
  if (!failed) fs::resize_file(path, size, failed);
  if (failed) return os_error("write", path.native(), failed.value());
  put(28, size / kPageBytes);  // the pages of the file
  put(32, 0);                  // no list of free pages
  put(36, 0);
  page[18] = page[19] = 2;  // there may be a journal
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.is_open()) return os_error("open", path.native(), errno);
  if (::pwrite(file.get(), page.data(), page.size(), 0) != static_cast<ssize_t>(page.size()))
    return os_error("write", path.native(), errno);
  return {};
}

// Moves the rows of one table.
template <class Row>
class TableSalvage {
 public:
  using Read = std::optional<Row> (*)(const sqlite::Rows&);
  using Keep = Status (*)(sqlite::Database&, const Row&);

  TableSalvage(sqlite::Database& from, sqlite::Database& to, const rows::Table& table, Read read,
               Keep keep)
      : from_(from), to_(to), read_(read), keep_(keep) {
    const auto select = [&](std::string_view what) {
      return fmt::format("SELECT {} FROM {} NOT INDEXED", what, table.name);
    };
    least_ = select("coalesce(min(id), 0)");
    most_ = select("coalesce(max(id), 0)");
    given_ = fmt::format("SELECT max(seq) FROM sqlite_sequence WHERE name = '{}'", table.name);
    range_ = select(table.columns) + " WHERE id BETWEEN ?1 AND ?2 ORDER BY id";
  }

  Status run() {
    std::optional<int64_t> most = end(most_);
    if (!most) most = end(given_);
    HONE_TRY(take(end(least_).value_or(1), most.value_or(kMostIds)));
    const bool has_end = most || unread_ == 0;
    lost += has_end ? unread_ : 1;
    is_open = !has_end || failures_ > kMostFailures;
    return {};
  }
  int64_t kept = 0;
  int64_t lost = 0;
  bool is_open =
      false;  // more may be lost: the table's end is unknown, or the search for it stopped

 private:
  std::optional<int64_t> end(const std::string& sql) {
    Result<sqlite::Rows> row = from_.query(sql);
    if (!row.ok()) return std::nullopt;
    const Result<bool> there = row->next();
    if (!there.ok() || !*there || row->is_null(0)) return std::nullopt;
    return row->integer(0);
  }

  // In the order of ids. What stands before the place of damage is kept at once.
  Status take(int64_t low, int64_t high) {
    while (low <= high) {
      const std::optional<int64_t> stop = HONE_TRY(take_until_damage(low, high));
      if (!stop) return {};
      low = *stop;
      // From here on something cannot be read: the upper half is looked at by itself.
      if (++failures_ > kMostFailures || low == high) {
        ++unread_;
        return {};
      }
      const int64_t middle = std::midpoint(low, high);
      HONE_TRY(take(low, middle));
      low = middle + 1;
    }
    return {};
  }

  // The id behind the last one that was read, if the next one cannot be.
  Result<std::optional<int64_t>> take_until_damage(int64_t low, int64_t high) {
    int64_t next = low;
    Result<sqlite::Rows> row = from_.query(range_, low, high);
    if (!row.ok()) return std::optional(next);
    for (;;) {
      const Result<bool> there = row->next();
      if (!there.ok()) return std::optional(next);
      if (!*there) return std::optional<int64_t>();
      lost += std::exchange(unread_, 0);
      const int64_t id = row->integer(0);
      if (id < next) return std::optional(next);  // ids go back: the tree is damaged
      if (std::optional<Row> good = read_(*row)) {
        HONE_TRY(keep_(to_, *good));
        ++kept;
      } else {
        ++lost;
      }
      if (id == high) return std::optional<int64_t>();
      next = id + 1;
    }
  }

  sqlite::Database& from_;
  sqlite::Database& to_;
  Read read_;
  Keep keep_;
  std::string least_, most_, given_, range_;
  int64_t failures_ = 0;
  int64_t unread_ = 0;  // ids since the last row that could be read
};

Result<Salvaged> move_rows(sqlite::Database& from, sqlite::Database& to) {
  TableSalvage<Record> records(from, to, rows::kRecords, rows::read_record, rows::insert);
  TableSalvage<KnownText> texts(from, to, rows::kTexts, rows::read_text, rows::insert);
  TableSalvage<BestPlan> plans(from, to, rows::kPlans, rows::read_plan, rows::replace);
  sqlite::Transaction transaction = HONE_TRY(sqlite::Transaction::begin(to));
  HONE_TRY(records.run());
  HONE_TRY(texts.run());
  HONE_TRY(plans.run());
  HONE_TRY(transaction.commit());
  Salvaged salvaged;
  salvaged.kept = {records.kept, texts.kept, plans.kept};
  salvaged.lost = records.lost + texts.lost + plans.lost;
  salvaged.may_be_more = records.is_open || texts.is_open || plans.is_open;
  return salvaged;
}

// The rows of the copy, in a new log that is one file.
Result<Salvaged> rescue(const fs::path& copy, const fs::path& made) {
  std::unique_ptr<sqlite::Database> to =
      HONE_TRY(sqlite::Database::open(made.native(), sqlite::Access::exclusive));
  HONE_TRY(rows::make_tables(*to));
  std::unique_ptr<sqlite::Database> from =
      HONE_TRY(sqlite::Database::open(copy.native(), sqlite::Access::exclusive));
  if (!rows::check_tables(*from).ok()) {
    from.reset();
    HONE_TRY(replace_first_page(copy, made));
    from = HONE_TRY(sqlite::Database::open(copy.native(), sqlite::Access::exclusive));
    HONE_TRY(rows::check_tables(*from));
  }
  return move_rows(*from, *to);
}

void remove_database(const fs::path& path) {
  std::error_code failed;
  for (const char* suffix : {"", "-wal", "-shm", "-journal"})
    fs::remove(path.native() + suffix, failed);
}

// Removes the files of an attempt, however it ends.
struct Scrap {
  fs::path path;
  ~Scrap() { remove_database(path); }
};

// The log as it is, with what stands in its journal.
Status copy_log(const std::string& from, const fs::path& to) {
  const std::string journal = from + "-wal";
  if (fs::exists(journal)) HONE_TRY(copy_one(journal, to.native() + "-wal"));
  return copy_one(from, to);
}

}  // namespace

Result<Salvaged> salvage_log(const std::string& path) {
  HONE_TRY(check_header(path));
  // The log is ours until the new one is in place, unless its damage leaves nothing to lock; then
  // nobody else can use it, either.
  std::unique_ptr<sqlite::Database> owner =
      HONE_TRY(sqlite::Database::open(path, sqlite::Access::exclusive));
  if (Status locked = owner->run("BEGIN EXCLUSIVE"); !locked.ok() && !owner->is_damaged())
    return std::move(locked).error();
  if (owner->in_transaction()) HONE_TRY(owner->run("ROLLBACK"));
  (void)owner->run("PRAGMA wal_checkpoint(TRUNCATE)").ok();  // else the copy has the journal, too
  const fs::path kept = HONE_TRY(free_name(path));
  const Scrap copy{temporary_name(path)}, made{temporary_name(path)};
  HONE_TRY(copy_log(path, kept));
  HONE_TRY(copy_log(kept, copy.path));
  Salvaged salvaged = HONE_TRY(rescue(copy.path, made.path));
  salvaged.old_file = kept.native();
  // The new log stands in one file. The journal of the old one must not be taken for its own.
  std::error_code failed;
  fs::remove(path + "-wal", failed);
  HONE_TRY(publish_file(made.path, path));
  fs::remove(path + "-shm", failed);
  return salvaged;
}

}  // namespace hone
