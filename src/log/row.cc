#include "log/row.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>

#include "base/hash.h"
#include "base/text.h"

namespace hone {

namespace {

constexpr size_t kOutcomeCount =
#define HONE_OUTCOME(name, doc) 1 +
    HONE_OUTCOMES(HONE_OUTCOME) 0;
#undef HONE_OUTCOME

// The bytes of the character that begins there; 0: it is none, or one that a terminal obeys. Checks
// by the table of well-formed UTF-8 in chapter 3.9 of the Unicode standard, without control
// characters but line breaks and tabs.
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto continues = [&](size_t i, int low = 0x80, int high = 0xbf) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const int first = byte(0);
  if (first == '\n' || first == '\t') return 1;
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  if (first >= 0xc2 && first <= 0xdf) return continues(1, first == 0xc2 ? 0xa0 : 0x80) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const int low = first == 0xe0 ? 0xa0 : 0x80, high = first == 0xed ? 0x9f : 0xbf;
    return continues(1, low, high) && continues(2) ? 3 : 0;
  }
  if (first < 0xf0 || first > 0xf4) return 0;
  const int low = first == 0xf0 ? 0x90 : 0x80, high = first == 0xf4 ? 0x8f : 0xbf;
  return continues(1, low, high) && continues(2) && continues(3) ? 4 : 0;
}

Status check_text(std::string_view what, std::string_view text, size_t most) {
  if (text.size() > most)
    return over_limit("the {} has {} bytes, more than {}", what, text.size(), most);
  for (std::string_view rest = text; !rest.empty();) {
    const size_t length = character_length(rest);
    if (length == 0)
      return bad_input("the {} has the byte 0x{:02x} at {}, which is not text", what,
                       static_cast<unsigned char>(rest[0]), text.size() - rest.size());
    rest.remove_prefix(length);
  }
  return {};
}

Status check_kind(std::string_view kind) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  if (kind.empty() || kind.size() > kMaxKindBytes || !std::ranges::all_of(kind, is_plain))
    return bad_input("'{}' is not a kind: 1 to {} lower case letters, digits, _ and -",
                     excerpt(kind), kMaxKindBytes);
  return {};
}

Status check_time(int64_t time) {
  if (time < 0) return bad_input("the time {} is negative", time);
  return {};
}

Status check_samples(const Record& record) {
  if (record.seconds.size() > kMaxSamples)
    return over_limit("{} samples, more than {}", record.seconds.size(), kMaxSamples);
  for (double sample : record.seconds)
    if (!std::isfinite(sample) || sample < 0)
      return bad_input("{} is not a number of seconds", format_double(sample));
  if ((record.outcome == Outcome::measured) == record.seconds.empty())
    return bad_input(
        "there are {} samples, but the outcome is {}: only measured candidates have samples",
        record.seconds.size(), name(record.outcome));
  return {};
}

}  // namespace

double median(const Record& record) {
  HONE_CHECK(!record.seconds.empty(), "there are no samples");
  std::vector<double> sorted = record.seconds;
  std::ranges::sort(sorted);
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

std::string detail_of(std::string_view bytes) {
  std::string detail;
  while (!bytes.empty()) {
    const size_t length = character_length(bytes);
    const std::string piece = length == 0 ? fmt::format("\\x{:02x}", static_cast<uint8_t>(bytes[0]))
                                          : std::string(bytes.substr(0, length));
    if (detail.size() + piece.size() > kMaxDetailBytes) break;
    detail += piece;
    bytes.remove_prefix(std::max<size_t>(length, 1));
  }
  return detail;
}

Status check(const Record& record) {
  HONE_TRY(check_kind(record.kind));
  HONE_TRY(check_text("choice", record.choice, kMaxChoiceBytes));
  HONE_TRY(check_text("text of the conditions", record.conditions, kMaxConditionsBytes));
  HONE_TRY(check_text("detail", record.detail, kMaxDetailBytes));
  HONE_TRY(check_text("version", record.version, kMaxVersionBytes));
  HONE_TRY(check_time(record.time));
  if (static_cast<size_t>(record.outcome) >= kOutcomeCount)
    return bad_input("there is no outcome {}", static_cast<int>(record.outcome));
  if (!std::isfinite(record.noise) || record.noise < 0)
    return bad_input("{} is not a spread", format_double(record.noise));
  return check_samples(record);
}

Status check(const KnownText& text) {
  HONE_TRY(check_kind(text.kind));
  return check_text("text", text.text, kMaxKnownTextBytes);
}

Status check(const BestPlan& best) {
  HONE_TRY(check_text("plan", best.plan, kMaxChoiceBytes));
  HONE_TRY(check_text("version", best.version, kMaxVersionBytes));
  HONE_TRY(check_time(best.time));
  if (best.threads < 1) return bad_input("{} threads", best.threads);
  for (double gain : {best.gain, best.low, best.high})
    if (!std::isfinite(gain) || gain <= 0)
      return bad_input("{} is not a gain: a gain is a ratio of times", format_double(gain));
  if (best.low > best.gain || best.gain > best.high)
    return bad_input("the gain {} is outside of its interval {} to {}", best.gain, best.low,
                     best.high);
  return {};
}

}  // namespace hone

namespace hone::rows {

namespace {

struct Definition {
  std::string_view name;
  std::string_view sql;
};

// Tables first, as VACUUM makes them: each begins at the same page of every log (salvage.cc).
constexpr Definition kDefinitions[] = {
    {"records",
     "CREATE TABLE records(id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, "
     "subject INTEGER NOT NULL, choice TEXT NOT NULL, code INTEGER NOT NULL, "
     "target INTEGER NOT NULL, conditions TEXT NOT NULL, outcome INTEGER NOT NULL, "
     "detail TEXT NOT NULL, seconds BLOB NOT NULL, median REAL, version TEXT NOT NULL, "
     "time INTEGER NOT NULL, noise REAL NOT NULL, digest INTEGER NOT NULL)"},
    {"texts",
     "CREATE TABLE texts(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, hash INTEGER NOT NULL, "
     "text TEXT NOT NULL, digest INTEGER NOT NULL)"},
    {"plans",
     "CREATE TABLE plans(id INTEGER PRIMARY KEY, graph INTEGER NOT NULL, target INTEGER NOT NULL, "
     "threads INTEGER NOT NULL, plan TEXT NOT NULL, gain REAL NOT NULL, low REAL NOT NULL, "
     "high REAL NOT NULL, version TEXT NOT NULL, time INTEGER NOT NULL, digest INTEGER NOT NULL)"},
    {"records_by_code", "CREATE INDEX records_by_code ON records(code, target)"},
    {"records_by_subject", "CREATE INDEX records_by_subject ON records(subject, target)"},
    {"records_by_digest", "CREATE INDEX records_by_digest ON records(digest)"},
    {"texts_by_hash", "CREATE UNIQUE INDEX texts_by_hash ON texts(hash, kind)"},
    {"plans_by_graph", "CREATE UNIQUE INDEX plans_by_graph ON plans(graph, target, threads)"},
};

// Samples as bytes, the lowest first on every machine.
std::vector<std::byte> bytes_of(std::span<const double> seconds) {
  std::vector<std::byte> bytes;
  bytes.reserve(seconds.size() * sizeof(double));
  for (double sample : seconds) {
    const uint64_t bits = std::bit_cast<uint64_t>(sample);
    for (int shift = 0; shift < 64; shift += 8)
      bytes.push_back(static_cast<std::byte>(bits >> shift));
  }
  return bytes;
}

std::vector<double> seconds_of(std::span<const std::byte> bytes) {
  std::vector<double> seconds;
  seconds.reserve(bytes.size() / sizeof(double));
  for (size_t at = 0; at + sizeof(double) <= bytes.size(); at += sizeof(double)) {
    uint64_t bits = 0;
    for (size_t i = 0; i < sizeof(double); ++i)
      bits |= static_cast<uint64_t>(bytes[at + i]) << (8 * i);
    seconds.push_back(std::bit_cast<double>(bits));
  }
  return seconds;
}

// A row that fits its checksum may still come from a file that someone made on purpose.
template <class Row>
std::optional<Row> checked(Row row, uint64_t stored) {
  if (digest(row) != stored || !check(row).ok()) return std::nullopt;
  return row;
}

}  // namespace

Status make_tables(sqlite::Database& database) {
  for (const Definition& definition : kDefinitions) HONE_TRY(database.run(definition.sql));
  HONE_TRY(database.run(fmt::format("PRAGMA user_version = {}", kFormat)));
  return database.run(fmt::format("PRAGMA application_id = {}", kApplication));
}

Status check_tables(sqlite::Database& database) {
  std::map<std::string_view, std::string_view> wanted;
  for (const Definition& definition : kDefinitions) wanted[definition.name] = definition.sql;
  sqlite::Rows row = HONE_TRY(
      database.query("SELECT name, sql FROM sqlite_schema WHERE name <> 'sqlite_sequence'"));
  while (HONE_TRY(row.next())) {
    const auto at = wanted.find(row.text(0));
    if (at == wanted.end() || at->second != row.text(1))
      return bad_input("'{}' is not a log of hone: it defines '{}' in another way", database.path(),
                       excerpt(row.text(0)));
    wanted.erase(at);
  }
  if (!wanted.empty())
    return bad_input("'{}' is not a log of hone: it lacks '{}'", database.path(),
                     wanted.begin()->first);
  return {};
}

// ---- Checksums ----------------------------------------------------------------------------------

uint64_t digest(const Record& record) {
  Hasher hasher(1);
  hasher.add(record.kind).add(record.subject).add(record.choice).add(record.code);
  hasher.add(record.target).add(record.conditions).add(record.outcome).add(record.detail);
  hasher.add_range(record.seconds).add(record.version).add(record.time).add(record.noise);
  return hasher.value();
}

uint64_t digest(const KnownText& text) {
  return Hasher(2).add(text.kind).add(text.hash).add(text.text).value();
}

uint64_t digest(const BestPlan& best) {
  Hasher hasher(3);
  hasher.add(best.graph).add(best.target).add(best.threads).add(best.plan);
  hasher.add(best.gain).add(best.low).add(best.high).add(best.version).add(best.time);
  return hasher.value();
}

// ---- Reading and writing ------------------------------------------------------------------------

std::optional<Record> read_record(const sqlite::Rows& row) {
  std::optional<Record> record = read_samples(row);
  if (!record) return std::nullopt;
  const bool has_median = !row.is_null(10);
  if (has_median == record->seconds.empty()) return std::nullopt;
  if (has_median && row.real(10) != median(*record)) return std::nullopt;
  return record;
}

std::optional<Record> read_samples(const sqlite::Rows& row) {
  const int64_t outcome = row.integer(7);
  if (outcome < 0 || outcome >= static_cast<int64_t>(kOutcomeCount)) return std::nullopt;
  const std::span<const std::byte> samples = row.bytes(9);
  if (samples.size() > kMaxSamples * sizeof(double)) return std::nullopt;
  Record record = {.id = row.integer(0),
                   .kind = std::string(row.text(1)),
                   .subject = row.hash(2),
                   .choice = std::string(row.text(3)),
                   .code = row.hash(4),
                   .target = row.hash(5),
                   .conditions = std::string(row.text(6)),
                   .outcome = static_cast<Outcome>(outcome),
                   .detail = std::string(row.text(8)),
                   .seconds = seconds_of(samples),
                   .version = std::string(row.text(11)),
                   .time = row.integer(12),
                   .noise = row.real(13)};
  return checked(std::move(record), row.hash(14));
}

std::optional<KnownText> read_text(const sqlite::Rows& row) {
  return checked(
      KnownText{
          .kind = std::string(row.text(1)), .hash = row.hash(2), .text = std::string(row.text(3))},
      row.hash(4));
}

std::optional<BestPlan> read_plan(const sqlite::Rows& row) {
  return checked(BestPlan{.graph = row.hash(1),
                          .target = row.hash(2),
                          .threads = row.integer(3),
                          .plan = std::string(row.text(4)),
                          .gain = row.real(5),
                          .low = row.real(6),
                          .high = row.real(7),
                          .version = std::string(row.text(8)),
                          .time = row.integer(9)},
                 row.hash(10));
}

Status insert(sqlite::Database& database, const Record& record) {
  constexpr std::string_view sql =
      "INSERT INTO records(id, kind, subject, choice, code, target, conditions, outcome, detail, "
      "seconds, median, version, time, noise, digest) "
      "VALUES(nullif(?1, 0), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
  const std::vector<std::byte> samples = bytes_of(record.seconds);
  const auto run = [&](auto median) {
    return database.run(sql, record.id, record.kind, record.subject, record.choice, record.code,
                        record.target, record.conditions, static_cast<int>(record.outcome),
                        record.detail, std::span<const std::byte>(samples), median, record.version,
                        record.time, record.noise, digest(record));
  };
  return record.seconds.empty() ? run(nullptr) : run(median(record));
}

Status insert(sqlite::Database& database, const KnownText& text) {
  return database.run(
      "INSERT OR IGNORE INTO texts(kind, hash, text, digest) VALUES(?1, ?2, ?3, ?4)", text.kind,
      text.hash, text.text, digest(text));
}

Status replace(sqlite::Database& database, const BestPlan& best) {
  return database.run(
      "INSERT OR REPLACE INTO plans(graph, target, threads, plan, gain, low, high, version, time, "
      "digest) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
      best.graph, best.target, best.threads, best.plan, best.gain, best.low, best.high,
      best.version, best.time, digest(best));
}

}  // namespace hone::rows
