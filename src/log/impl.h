#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "log/database.h"
#include "log/log.h"
#include "log/row.h"

namespace hone {

struct Log::Impl {
  std::string path;
  std::optional<Salvaged> salvaged = {};
  std::mutex mutex = {};  // of the database
  std::unique_ptr<sqlite::Database> database = {};
};

// True if a file that is there can be a log that this version of hone knows, as far as its first
// bytes tell. Nothing is said of an empty file.
Status check_header(const std::string& path);
// True if the open database is such a log. One that is empty becomes a log, if it may.
Status prepare_tables(sqlite::Database& database, bool may_write);

// Some rows of a table in the order of their ids, as many as memory bears.
template <class Row>
struct Page {
  std::vector<Row> rows;              // that fit their checksums
  std::vector<int64_t> damaged = {};  // ids of the others
  int64_t last = 0;                   // id of the last row
  bool is_last = true;                // no row follows
};

inline constexpr size_t kPageRows = 1000;
inline constexpr int64_t kPageBytes = 16 << 20;

template <class Row>
Result<Page<Row>> read_page(sqlite::Rows& row, std::optional<Row> (*read)(const sqlite::Rows&)) {
  Page<Row> page;
  int64_t bytes = 0;
  while (page.is_last && HONE_TRY(row.next())) {
    page.last = row.integer(0);
    if (std::optional<Row> good = read(row))
      page.rows.push_back(*std::move(good));
    else
      page.damaged.push_back(page.last);
    bytes += row.row_bytes();
    if (page.rows.size() + page.damaged.size() == kPageRows || bytes > kPageBytes)
      page.is_last = false;
  }
  return page;
}

// The rows of a table behind an id.
template <class Row>
Result<Page<Row>> read_page(sqlite::Database& database, const rows::Table& table,
                            std::optional<Row> (*read)(const sqlite::Rows&), int64_t after) {
  const std::string sql =
      fmt::format("SELECT {} FROM {} WHERE id > ?1 ORDER BY id", table.columns, table.name);
  sqlite::Rows rows = HONE_TRY(database.query(sql, after));
  return read_page(rows, read);
}

// Calls with each page of a table, from its begin; the log is free meanwhile.
template <class Row, class Call>
Status each_page(Log::Impl& log, const rows::Table& table,
                 std::optional<Row> (*read)(const sqlite::Rows&), const Call& call) {
  Page<Row> page;
  page.last = INT64_MIN;
  page.is_last = false;
  while (!page.is_last) {
    {
      std::lock_guard lock(log.mutex);
      page = HONE_TRY(read_page(*log.database, table, read, page.last));
    }
    HONE_TRY(call(page));
  }
  return {};
}

}  // namespace hone
