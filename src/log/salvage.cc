#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>

#include "base/file.h"
#include "base/temporary_files.h"
#include "log/impl.h"
#include "log/pages.h"

// The rows that pages of a damaged log hold go into a new log, from a copy. Nobody else may have
// the old one open: who writes to it meanwhile would lose what was acknowledged.

namespace hone {

namespace {

namespace fs = std::filesystem;

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

// Gives the file the first page of an empty log, where all tables begin at the same pages. It is
// for a log whose own first page is damaged, or says that the file is longer.
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
  // The lost part of a cut page reads as zeros; so do tables that begin behind the end of the file.
  const uint64_t least = std::max(fs::file_size(path, failed), empty_size);
  const uint64_t size = (least + kPageBytes - 1) / kPageBytes * kPageBytes;
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

// The b-trees of a table and of its indexes: by the schema, with the pages of their roots.
struct TableRoots {
  uint32_t table = 0;
  std::vector<uint32_t> indexes = {};
};
using Roots = std::map<std::string, TableRoots, std::less<>>;

Result<Roots> roots_of(sqlite::Database& database) {
  sqlite::Rows row =
      HONE_TRY(database.query("SELECT tbl_name, type = 'table', rootpage FROM sqlite_schema"));
  Roots roots;
  while (HONE_TRY(row.next())) {
    TableRoots& table = roots[std::string(row.text(0))];
    const uint32_t root = static_cast<uint32_t>(row.integer(2));
    if (row.integer(1) != 0)
      table.table = root;
    else
      table.indexes.push_back(root);
  }
  return roots;
}

// The rows of the tables in a file of pages.
class PageSalvage {
 public:
  PageSalvage(sqlite::PageFile& pages, const Roots& roots) : pages_(pages) {
    std::vector<bool> is_marked(pages.pages() + size_t{1});
    for (const rows::Table* table : rows::kTables) {
      const auto root = roots.find(table->name);
      if (root == roots.end()) continue;
      Part& part = parts_[table->name];
      part.rows = pages.tree(root->second.table, is_marked);
      for (uint32_t index : root->second.indexes)
        part.indexes.push_back(pages.tree(index, is_marked));
    }
    pages.mark_free(is_marked);
    // Leaves whose way from the root is lost. Each may be of any table.
    for (uint32_t page = 1; page <= pages.pages(); ++page) {
      if (is_marked[page]) continue;
      const std::vector<sqlite::Cell> cells = pages.table_leaf(page);
      strays_.insert(strays_.end(), cells.begin(), cells.end());
    }
  }

  // Moves the rows of one table, in the order of their ids. If two rows have one key, such as a
  // plan that was replaced and still stands in a page, the newer one stays.
  template <class Row>
  Status move(sqlite::Database& to, const rows::Table& table,
              std::optional<Row> (*read)(const sqlite::Rows&),
              Status (*keep)(sqlite::Database&, const Row&)) {
    const Part& part = parts_[table.name];
    const size_t columns = 1 + static_cast<size_t>(std::ranges::count(table.columns, ','));
    std::vector<sqlite::Cell> cells = part.rows.cells;
    cells.insert(cells.end(), strays_.begin(), strays_.end());
    std::ranges::sort(cells, {}, &sqlite::Cell::id);
    std::vector<int64_t> kept;
    for (const sqlite::Cell& cell : cells) {
      if (!kept.empty() && kept.back() == cell.id) continue;  // another copy of it
      std::string payload;
      std::vector<sqlite::Value> values = pages_.values(cell, payload);
      if (values.size() != columns) continue;
      values[0] = cell.id;
      sqlite::Rows row = HONE_TRY(to.row_of(values));
      if (!HONE_TRY(row.next())) continue;
      const std::optional<Row> good = read(row);
      if (!good) continue;
      HONE_TRY(keep(to, *good));
      kept.push_back(cell.id);
    }
    count_lost(part, kept);
    return {};
  }

  int64_t lost() const { return lost_; }
  bool may_be_more() const { return may_be_more_; }

 private:
  struct Part {
    sqlite::Tree rows = {};
    std::vector<sqlite::Tree> indexes = {};
  };

  // An index has an entry for each row, whose last value is the row's id. If one is whole it says
  // which rows there were. Otherwise these are at least all that something is left of.
  void count_lost(const Part& part, std::span<const int64_t> kept) {
    std::vector<int64_t> known = sorted_ids(part.rows);
    bool is_certain = part.rows.is_whole;
    for (const sqlite::Tree& index : part.indexes) {
      const std::vector<int64_t> ids = sorted_ids(index);
      if (index.is_whole) {
        known = ids;
        is_certain = true;
        break;
      }
      std::vector<int64_t> both;
      std::ranges::set_union(known, ids, std::back_inserter(both));
      known = std::move(both);
    }
    std::vector<int64_t> lost;
    std::ranges::set_difference(known, kept, std::back_inserter(lost));
    lost_ += static_cast<int64_t>(lost.size());
    may_be_more_ = may_be_more_ || !is_certain;
  }

  std::vector<int64_t> sorted_ids(const sqlite::Tree& tree) {
    std::vector<int64_t> ids;
    for (const sqlite::Cell& cell : tree.cells) {
      std::string payload;
      if (tree.is_table) {
        ids.push_back(cell.id);
      } else if (const std::vector<sqlite::Value> values = pages_.values(cell, payload);
                 !values.empty() && std::holds_alternative<int64_t>(values.back())) {
        ids.push_back(std::get<int64_t>(values.back()));
      }
    }
    std::ranges::sort(ids);
    const auto rest = std::ranges::unique(ids);
    ids.erase(rest.begin(), rest.end());
    return ids;
  }

  sqlite::PageFile& pages_;
  std::map<std::string_view, Part> parts_;
  std::vector<sqlite::Cell> strays_;
  int64_t lost_ = 0;
  bool may_be_more_ = false;
};

// Opens the copy; afterwards all that it has stands in one file, which SQLite can open.
Result<std::unique_ptr<sqlite::Database>> open_copy(const fs::path& copy, const fs::path& empty) {
  const auto open = [&] {
    return sqlite::Database::open(copy.native(), sqlite::Access::exclusive);
  };
  std::unique_ptr<sqlite::Database> database = HONE_TRY(open());
  if (!rows::check_tables(*database).ok()) {
    database.reset();
    HONE_TRY(replace_first_page(copy, empty));
    database = HONE_TRY(open());
    HONE_TRY(rows::check_tables(*database));
  }
  HONE_TRY(database->run("PRAGMA wal_checkpoint(TRUNCATE)"));
  return database;
}

// The rows of the copy, in a new log that is one file.
Result<Salvaged> rescue(const fs::path& copy, const fs::path& made) {
  std::unique_ptr<sqlite::Database> to =
      HONE_TRY(sqlite::Database::open(made.native(), sqlite::Access::exclusive));
  HONE_TRY(rows::make_tables(*to));
  std::unique_ptr<sqlite::Database> from = HONE_TRY(open_copy(copy, made));
  const Roots roots = HONE_TRY(roots_of(*from));
  from.reset();
  const MappedFile file = HONE_TRY(MappedFile::open(copy));
  sqlite::PageFile pages = HONE_TRY(sqlite::PageFile::of(file.text()));
  PageSalvage tables(pages, roots);
  sqlite::Transaction transaction = HONE_TRY(sqlite::Transaction::begin(*to));
  Salvaged salvaged;
  HONE_TRY(tables.move<Record>(*to, rows::kRecords, rows::read_samples, rows::insert));
  HONE_TRY(tables.move<KnownText>(*to, rows::kTexts, rows::read_text, rows::insert));
  HONE_TRY(tables.move<BestPlan>(*to, rows::kPlans, rows::read_plan, rows::replace));
  HONE_TRY(transaction.commit());
  salvaged.kept = {HONE_TRY(to->integer("SELECT count(*) FROM records")),
                   HONE_TRY(to->integer("SELECT count(*) FROM texts")),
                   HONE_TRY(to->integer("SELECT count(*) FROM plans"))};
  salvaged.lost = tables.lost();
  salvaged.may_be_more = tables.may_be_more();
  return salvaged;
}

void remove_database(const fs::path& path) {
  std::error_code failed;
  for (const char* suffix : {"", "-wal", "-shm", "-journal"})
    fs::remove(path.native() + suffix, failed);
}

// Removes the files of an attempt, however it ends.
struct Scrap {
  fs::path path;
  ~Scrap() {
    remove_database(path);
    discard_file(path);
  }
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
