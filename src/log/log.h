#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

// The log: all that was ever measured on a machine, in one file. docs/log.md says what it is for,
// when a record may be reused, and how the file is built.

namespace hone {

// The outcome for a candidate: samples, or why there are none.
#define HONE_OUTCOMES(X)                                     \
  X(measured, "there are samples")                           \
  X(wrong, "its results differ from the reference")          \
  X(crashed, "a signal ended it")                            \
  X(timed_out, "it took longer than it may")                 \
  X(out_of_memory, "it wanted more memory than it may have") \
  X(refused, "it cannot be compiled, or does not fit the target")

enum class Outcome : uint8_t {
#define HONE_OUTCOME(name, doc) name,
  HONE_OUTCOMES(HONE_OUTCOME)
#undef HONE_OUTCOME
};
std::string_view name(Outcome outcome);
std::optional<Outcome> outcome_from_name(std::string_view name);

// One measurement of one candidate.
struct Record {
  int64_t id = 0;         // given by add(), in order of arrival: the clock is not trusted for order
  std::string kind = {};  // "kernel": a launch alone; "graph": a run of a whole graph
  uint64_t subject = 0;   // kernel_hash() of the body, or structural_hash() of the prepared graph
  std::string choice = {};      // the schedule or the plan, as text
  uint64_t code = 0;            // of all that the machine code depends on; equal: the same code
  uint64_t target = 0;          // fingerprint() of the processor, and of what of it is used
  std::string conditions = {};  // "threads=1 cache=warm": only equal ones compare
  Outcome outcome = Outcome::measured;
  std::string detail = {};           // why there are no samples
  std::vector<double> seconds = {};  // raw samples, in the order in which they were taken
  std::string version = {};          // of hone
  int64_t time = 0;  // seconds of Unix, for people and for gc(); 0: when add() was called
  double noise = 0;  // relative spread of the machine when it was measured; 0: unknown

  bool operator==(const Record&) const = default;
};
double median(const Record& record);  // of one that was measured

// A text by its hash: the kernel or graph of a subject, the target of a fingerprint.
struct KnownText {
  std::string kind = {};  // "kernel", "graph", "target"
  uint64_t hash = 0;
  std::string text = {};

  bool operator==(const KnownText&) const = default;
};

// The best plan known of a graph on a target, as it was confirmed against the default plan in
// turns.
struct BestPlan {
  uint64_t graph = 0;  // structural_hash() of the prepared graph
  uint64_t target = 0;
  int64_t threads = 1;
  std::string plan = {};
  double gain = 1;  // the default plan's time for one of this
  double low = 1;   // the interval of the gain
  double high = 1;
  std::string version = {};
  int64_t time = 0;  // as in Record

  bool operator==(const BestPlan&) const = default;
};

// Bounds of what a log takes. All texts are UTF-8 without control characters but line breaks and
// tabs, since people look at them on terminals.
inline constexpr size_t kMaxKindBytes = 32;          // lower case letters, digits, _ and -
inline constexpr size_t kMaxChoiceBytes = 16 << 20;  // also of a plan
inline constexpr size_t kMaxKnownTextBytes = 64 << 20;
inline constexpr size_t kMaxConditionsBytes = 1000;
inline constexpr size_t kMaxDetailBytes = 64 << 10;
inline constexpr size_t kMaxVersionBytes = 200;
inline constexpr size_t kMaxSamples = 1 << 16;
// Any bytes, such as what a process has said, as a detail: cut, and with \xHH for bytes that are
// not text.
std::string detail_of(std::string_view bytes);
Status check(const Record& record);
Status check(const KnownText& text);
Status check(const BestPlan& best);

// Which records are wanted. A field that is not set matches everything.
struct Query {
  std::optional<std::string> kind = {};
  std::optional<uint64_t> subject = {};  // this or `code` makes it a matter of microseconds
  std::optional<uint64_t> code = {};
  std::optional<uint64_t> target = {};
  std::optional<std::string> conditions = {};
  std::optional<Outcome> outcome = {};
  std::optional<std::string> version = {};
  int64_t after = 0;          // records with a larger id
  int64_t limit = INT64_MAX;  // the most records
};

struct LogCounts {
  int64_t records = 0, texts = 0, plans = 0;
  bool operator==(const LogCounts&) const = default;
};

// A line of a survey: records of one subject on one target under equal conditions.
struct LogGroup {
  std::string kind = {};
  uint64_t subject = 0, target = 0;
  std::string conditions = {};
  int64_t records = 0;
  int64_t choices = 0;              // different ones
  int64_t failed = 0;               // records without samples
  std::optional<double> best = {};  // the lowest median
  int64_t last_time = 0;
};

// The repair of a damaged log.
struct Salvaged {
  LogCounts kept = {};
  int64_t lost = 0;           // rows that could not be read, or did not fit their checksum
  bool may_be_more = false;   // that were lost: not everything could be looked for
  std::string old_file = {};  // where the damaged file is kept
};

struct LogCheck {
  LogCounts good = {};
  std::vector<std::string> damage = {};  // what is wrong, the first 100 things
  int64_t damaged = 0;                   // how many there are
};

struct GcRules {
  std::optional<int64_t> before = {};       // removes records from before that time
  std::optional<int64_t> bytes = {};        // keeps the newest records, up to this size in bytes
  std::optional<std::string> version = {};  // removes records of that version of hone
  bool dry_run = false;                     // only counts
};
struct Collected {
  int64_t records = 0;  // removed
  int64_t texts = 0;    // removed: nothing refers to them any more
  int64_t kept = 0;     // records
  int64_t bytes = 0;    // of the file, afterwards
};

// A log may be used by any number of threads and processes at once, and be killed while it is.
// Several versions of hone may use one, too. It is not carried over a fork().
class Log {
 public:
  enum class Mode : uint8_t {
    use,   // makes the file and its folder; if the log is damaged, keeps what is good (salvaged())
    read,  // changes nothing; the file must be there
  };
  // Errors: the file is not a log, or is one of a newer format, which stays as it is. The file
  // cannot be read or made. Another process repairs it.
  static Result<std::unique_ptr<Log>> open(const std::string& path, Mode mode = Mode::use);
  ~Log();

  // When it returns ok, all of them survive kill -9 and power loss; after an error none is there.
  // Batches are quicker: each call waits for the disk once. The ids of the records do not matter.
  Status add(std::span<const Record> records, std::span<const KnownText> texts = {});
  // The first text of a hash stays. One that is known costs no write.
  Status know(std::string_view kind, uint64_t hash, std::string_view text);
  Status set_best(const BestPlan& best);

  // In order of arrival. Rows that do not fit their checksum count as absent; verify() finds them.
  Result<std::vector<Record>> find(const Query& query = {}) const;
  Result<std::optional<std::string>> text(std::string_view kind, uint64_t hash) const;
  Result<std::optional<BestPlan>> best(uint64_t graph, uint64_t target, int64_t threads) const;

  // Everything, piece by piece; the calls may use the log.
  Status visit(Query query, const std::function<Status(const Record&)>& call) const;
  Status visit_texts(const std::function<Status(const KnownText&)>& call) const;
  Status visit_plans(const std::function<Status(const BestPlan&)>& call) const;

  Result<LogCounts> counts() const;
  // The groups of the records that are asked for, those with the latest ones first.
  Result<std::vector<LogGroup>> groups(const Query& query = {}) const;
  Result<int64_t> bytes() const;  // of the file and of what is to go into it

  // Puts what is in the journal into the file, as far as others let it.
  Status empty_journal();

  Result<LogCheck> verify() const;
  Result<Collected> gc(const GcRules& rules);

  const std::string& path() const;
  const std::optional<Salvaged>& salvaged() const;  // by open()

  struct Impl;  // of this folder

 private:
  friend class LogMerge;
  explicit Log(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Moves the good part of a damaged log into a new file in its place, and keeps the old one beside
// it. Nobody else may have the log open.
Result<Salvaged> salvage_log(const std::string& path);

// Adds records from elsewhere. Records that the log has already are not added again, and a text
// that it has stays. If there are two best plans, the one with the higher lower end of its gain
// stays. Records that were taken before finish() may be there or not; after it they are.
class LogMerge {
 public:
  explicit LogMerge(Log& log);
  ~LogMerge();

  Status take(const Record& record);
  Status take(const KnownText& text);
  Status take(const BestPlan& best);
  Status take_all(const Log& other);

  struct Counts {
    LogCounts added;
    LogCounts known;
  };
  Result<Counts> finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hone
