#include "log/database.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

namespace hone::sqlite {

namespace {

// Who writes holds the others up for as long as the disk takes; who repairs does not wait for them.
constexpr int kBusyMilliseconds = 30'000;
constexpr int kExclusiveMilliseconds = 500;

// A path that SQLite reads as it is, with nothing special in it.
std::string plain_path(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().native();
}

// The same as a URI for a file that nobody changes: it is read without a lock, so that a folder
// in which nothing can be written does.
std::string unchanging_uri(const std::string& path) {
  std::string uri = "file:";
  for (char c : plain_path(path)) {
    if (c == '%' || c == '?' || c == '#')
      uri += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    else
      uri += c;
  }
  return uri + "?immutable=1";
}

// True if a file could not become longer. SQLite says of a limit on the size of files (EFBIG) only
// that writing failed.
bool is_out_of_space(int code, int os_error) {
  return code == SQLITE_IOERR_WRITE || code == SQLITE_IOERR_SHMSIZE || os_error == ENOSPC ||
         os_error == EDQUOT || os_error == EFBIG;
}

bool has_content(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && info.st_size > 0;
}

// SQLite wants to write beside a file even to read it, because others may write at the time. Where
// that cannot be, nobody writes, and a file without a journal is whole.
bool is_unchanging(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(plain_path(path)).parent_path();
  const bool is_writable = ::access(path.c_str(), W_OK) == 0 && ::access(folder.c_str(), W_OK) == 0;
  return !is_writable && !has_content(path + "-wal");
}

std::vector<const char*> settings(Access access) {
  if (access == Access::read) return {"PRAGMA query_only = ON"};
  if (access == Access::write) return {"PRAGMA synchronous = FULL"};
  return {"PRAGMA locking_mode = EXCLUSIVE", "PRAGMA synchronous = FULL"};
}

constexpr std::string_view kSalvageHint = "'hone log verify --repair' keeps the good rows";

}  // namespace

// ---- Rows ---------------------------------------------------------------------------------------

Rows::~Rows() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

Result<bool> Rows::next() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return database_->failure(code);
}

std::string_view Rows::text(int column) const {
  const void* text = sqlite3_column_text(statement_, column);
  return {static_cast<const char*>(text == nullptr ? "" : text),
          static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

std::span<const std::byte> Rows::bytes(int column) const {
  const void* bytes = sqlite3_column_blob(statement_, column);
  return {static_cast<const std::byte*>(bytes),
          static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

int64_t Rows::row_bytes() const {
  int64_t bytes = 0;
  for (int column = 0; column < sqlite3_data_count(statement_); ++column) {
    const int type = sqlite3_column_type(statement_, column);
    if (type == SQLITE_TEXT || type == SQLITE_BLOB)
      bytes += sqlite3_column_bytes(statement_, column);
  }
  return bytes;
}

void Rows::bind_one(int index, std::string_view text) {
  // A null pointer would be NULL, not an empty text.
  const char* data = text.data() == nullptr ? "" : text.data();
  bound(sqlite3_bind_text64(statement_, index, data, text.size(), SQLITE_STATIC, SQLITE_UTF8));
}

void Rows::bind_one(int index, std::span<const std::byte> bytes) {
  const void* data = bytes.data() == nullptr ? static_cast<const void*>("") : bytes.data();
  bound(sqlite3_bind_blob64(statement_, index, data, bytes.size(), SQLITE_STATIC));
}

void Rows::bound(int code) {
  HONE_CHECK(code == SQLITE_OK, "a value cannot be bound: {}", sqlite3_errstr(code));
}

// ---- Database -----------------------------------------------------------------------------------

Result<std::unique_ptr<Database>> Database::open(const std::string& path, Access access) {
  const bool is_fixed = access == Access::read && is_unchanging(path);
  const std::string name = is_fixed ? unchanging_uri(path) : plain_path(path);
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  flags |= is_fixed ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI : SQLITE_OPEN_READWRITE;
  if (access != Access::read) flags |= SQLITE_OPEN_CREATE;
  sqlite3* connection = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &connection, flags, nullptr);
  if (connection == nullptr) return over_limit("no memory to open the log '{}'", path);
  std::unique_ptr<Database> database(new Database(path, connection));
  if (code != SQLITE_OK) return database->failure(code);
  sqlite3_busy_timeout(connection,
                       access == Access::exclusive ? kExclusiveMilliseconds : kBusyMilliseconds);
  // Triggers, views and functions of a file are not run.
  for (int setting : {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
                      SQLITE_DBCONFIG_TRUSTED_SCHEMA})
    sqlite3_db_config(connection, setting, 0, nullptr);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  // Whoever uses a damaged file meets the damage again, and can tell.
  for (const char* setting : settings(access))
    if (Status set = database->run(setting); !set.ok() && !database->is_damaged())
      return std::move(set).error();
  return database;
}

Database::~Database() {
  for (auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(connection_);
}

Result<sqlite3_stmt*> Database::prepare(std::string_view sql) {
  const auto known = statements_.find(sql);
  if (known != statements_.end()) {
    HONE_CHECK(sqlite3_stmt_busy(known->second) == 0, "'{}' runs already", sql);
    return known->second;
  }
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(connection_, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return failure(code);
  statements_.emplace(sql, statement);
  return statement;
}

Result<Rows> Database::row_of(std::span<const Value> values) {
  std::string sql = "SELECT ";
  for (size_t i = 1; i <= values.size(); ++i) sql += fmt::format("{}?{}", i == 1 ? "" : ", ", i);
  Rows row(this, HONE_TRY(prepare(sql)));
  int index = 0;
  for (const Value& value : values) {
    ++index;
    std::visit([&](const auto& one) { row.bind_one(index, one); }, value);
  }
  return row;
}

Status Database::run_script(const char* sql) {
  const int code = sqlite3_exec(connection_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return failure(code);
  return {};
}

bool Database::has_moved() const {
  int moved = 0;
  sqlite3_file_control(connection_, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return moved != 0;
}

Error Database::failure(int code) {
  const int os_code = sqlite3_system_errno(connection_);
  const std::string why = sqlite3_errmsg(connection_);
  const std::string os_why = os_code == 0 ? "" : fmt::format(": {}", std::strerror(os_code));
  switch (code & 0xff) {
    case SQLITE_ERROR:  // "unsupported file format": all else that it stands for, tests would show
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      is_damaged_ = true;
      return bad_input("the log '{}' is damaged: {}", path_, why).with_hint(kSalvageHint);
    case SQLITE_FULL:
      return over_limit("cannot write the log '{}': {}", path_,
                        os_code == 0 ? why : std::strerror(os_code))
          .with_hint("what was acknowledged before is kept");
    case SQLITE_IOERR:
      if (is_out_of_space(code, os_code))
        return over_limit("cannot write the log '{}': {}{}", path_, why, os_why)
            .with_hint("what was acknowledged before is kept");
      return bad_input("cannot use the log '{}': {}{}", path_, why, os_why);
    case SQLITE_BUSY:
    case SQLITE_PROTOCOL:
    case SQLITE_LOCKED:
      return over_limit("the log '{}' is in use by another process", path_)
          .with_hint("try again when it has ended");
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH: return bad_input("cannot use the log '{}': {}{}", path_, why, os_why);
    case SQLITE_NOMEM: return over_limit("no memory left for the log '{}'", path_);
    case SQLITE_TOOBIG: return over_limit("a value is too long for the log '{}'", path_);
    default: return fault("the log '{}': {} (code {})", path_, why, code);
  }
}

// ---- Transaction --------------------------------------------------------------------------------

Result<Transaction> Transaction::begin(Database& database) {
  HONE_TRY(database.run("BEGIN IMMEDIATE"));
  return Transaction(&database);
}

Transaction::~Transaction() {
  // SQLite has undone it already after some errors.
  if (database_ != nullptr && database_->in_transaction()) (void)database_->run("ROLLBACK").ok();
}

Status Transaction::commit() {
  HONE_TRY(database_->run("COMMIT"));
  database_ = nullptr;
  return {};
}

}  // namespace hone::sqlite
