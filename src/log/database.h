#pragma once

#include <sqlite3.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/error.h"

// The parts of SQLite that src/log needs: statements that are prepared once, rows, transactions,
// and errors that say what a user can do. For one thread at a time.

namespace hone::sqlite {

class Database;

using Value =
    std::variant<std::nullptr_t, int64_t, double, std::string_view, std::span<const std::byte>>;

// One execution of a statement, which ends when this goes: bound values, then rows.
class Rows {
 public:
  Rows(Rows&& other) noexcept
      : database_(other.database_), statement_(std::exchange(other.statement_, nullptr)) {}
  Rows& operator=(Rows&&) = delete;
  ~Rows();

  Result<bool> next();  // moves on; false: there is no more

  // The columns of the row at hand. Texts and bytes are valid until it moves on.
  int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  uint64_t hash(int column) const { return static_cast<uint64_t>(integer(column)); }
  double real(int column) const { return sqlite3_column_double(statement_, column); }
  bool is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  std::string_view text(int column) const;
  int64_t row_bytes() const;  // of all its columns together
  std::span<const std::byte> bytes(int column) const;

 private:
  friend class Database;
  Rows(Database* database, sqlite3_stmt* statement) : database_(database), statement_(statement) {}

  void bind_one(int index, std::integral auto value) {
    bound(sqlite3_bind_int64(statement_, index, static_cast<int64_t>(value)));
  }
  void bind_one(int index, double value) { bound(sqlite3_bind_double(statement_, index, value)); }
  void bind_one(int index, std::nullptr_t) { bound(sqlite3_bind_null(statement_, index)); }
  void bind_one(int index, std::string_view text);
  void bind_one(int index, std::span<const std::byte> bytes);
  static void bound(int code);

  Database* database_;
  sqlite3_stmt* statement_;
};

enum class Access : uint8_t {
  write,      // makes the file
  exclusive,  // the same, and nobody else has it open or opens it
  read,       // what the file says stays as it is
};

class Database {
 public:
  static Result<std::unique_ptr<Database>> open(const std::string& path, Access access);
  Database(const Database&) = delete;
  ~Database();

  // Values are bound to ?1, ?2, ... in order; integers, reals, texts, bytes, nullptr. A text that
  // is bound lives until the Rows end.
  template <class... Values>
  Result<Rows> query(std::string_view sql, const Values&... values) {
    Rows rows(this, HONE_TRY(prepare(sql)));
    int index = 0;
    (rows.bind_one(++index, values), ...);
    return rows;
  }
  // One row of these values. They live until the Rows end.
  Result<Rows> row_of(std::span<const Value> values);
  // A statement without rows.
  template <class... Values>
  Status run(std::string_view sql, const Values&... values) {
    Rows rows = HONE_TRY(query(sql, values...));
    while (HONE_TRY(rows.next())) {
    }
    return {};
  }
  // Several, which are not kept.
  Status run_script(const char* sql);
  // The first column of the only row.
  template <class... Values>
  Result<int64_t> integer(std::string_view sql, const Values&... values) {
    Rows rows = HONE_TRY(query(sql, values...));
    return HONE_TRY(rows.next()) ? rows.integer(0) : 0;
  }
  int64_t changes() const { return sqlite3_changes64(connection_); }  // rows, of the last statement

  const std::string& path() const { return path_; }
  // True if another file, or a damaged database, was met.
  bool is_damaged() const { return is_damaged_; }
  // True if the path has another file by now.
  bool has_moved() const;
  bool in_transaction() const { return sqlite3_get_autocommit(connection_) == 0; }

 private:
  friend class Rows;
  Database(std::string path, sqlite3* connection)
      : path_(std::move(path)), connection_(connection) {}
  Result<sqlite3_stmt*> prepare(std::string_view sql);
  Error failure(int code);

  std::string path_;
  sqlite3* connection_;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
  bool is_damaged_ = false;
};

// All or nothing: what is not committed is undone. It has the right to write from the start, so
// that it never waits in the middle.
class Transaction {
 public:
  static Result<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  Status commit();

 private:
  explicit Transaction(Database* database) : database_(database) {}
  Database* database_;
};

}  // namespace hone::sqlite
