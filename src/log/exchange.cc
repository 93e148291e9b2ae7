#include "log/exchange.h"

#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/text.h"
#include "log/hash_text.h"
#include "log/json_fields.h"

namespace hone {

namespace {

using Json = nlohmann::ordered_json;
using Fields = JsonFields;

// The fields of each kind of line, in order: all that is read and written follows from them. A
// uint64_t is a hash.
template <class Row>
constexpr auto kFields = nullptr;
template <>
constexpr auto kFields<Record> =
    std::tuple(std::pair("kind", &Record::kind), std::pair("subject", &Record::subject),
               std::pair("choice", &Record::choice), std::pair("code", &Record::code),
               std::pair("target", &Record::target), std::pair("conditions", &Record::conditions),
               std::pair("outcome", &Record::outcome), std::pair("detail", &Record::detail),
               std::pair("seconds", &Record::seconds), std::pair("version", &Record::version),
               std::pair("time", &Record::time), std::pair("noise", &Record::noise));
template <>
constexpr auto kFields<KnownText> =
    std::tuple(std::pair("kind", &KnownText::kind), std::pair("hash", &KnownText::hash),
               std::pair("text", &KnownText::text));
template <>
constexpr auto kFields<BestPlan> =
    std::tuple(std::pair("graph", &BestPlan::graph), std::pair("target", &BestPlan::target),
               std::pair("threads", &BestPlan::threads), std::pair("plan", &BestPlan::plan),
               std::pair("gain", &BestPlan::gain), std::pair("low", &BestPlan::low),
               std::pair("high", &BestPlan::high), std::pair("version", &BestPlan::version),
               std::pair("time", &BestPlan::time));

template <class Row>
Result<Row> row_of(Fields fields) {
  Row row;
  Status status;
  const auto read = [&](const auto& field) {
    status = fields.read(field.first, row.*field.second);
    return status.ok();
  };
  std::apply([&](const auto&... field) { (read(field) && ...); }, kFields<Row>);
  HONE_TRY(std::move(status));
  HONE_TRY(fields.finish());
  return row;
}

template <class T>
Json json_of(const T& value) {
  return value;
}
Json json_of(uint64_t hash) { return hash_text(hash); }
Json json_of(Outcome outcome) { return name(outcome); }

template <class Row>
std::string line_of(std::string_view kind, const Row& row) {
  Json fields;
  const auto write = [&](const auto& field) { fields[field.first] = json_of(row.*field.second); };
  std::apply([&](const auto&... field) { (write(field), ...); }, kFields<Row>);
  return Json{{std::string(kind), fields}}.dump();
}

// The hashes of what records speak of, when not all of them are wanted.
struct Subjects {
  bool has_all;
  std::set<std::pair<std::string, uint64_t>> known;

  void add(const Record& record) {
    if (has_all) return;
    known.emplace(record.kind, record.subject);
    known.emplace("target", record.target);
  }
  bool has(const KnownText& text) const {
    return has_all || known.contains({text.kind, text.hash});
  }
};

bool is_everything(const Query& query) {
  return !query.kind && !query.subject && !query.code && !query.target && !query.conditions &&
         !query.outcome && !query.version && query.after <= 0 && query.limit == INT64_MAX;
}

}  // namespace

// ---- Lines --------------------------------------------------------------------------------------

std::string json_line(const Record& record) { return line_of("record", record); }
std::string json_line(const KnownText& text) { return line_of("text", text); }
std::string json_line(const BestPlan& best) { return line_of("plan", best); }

Status export_lines(const Log& log, const Query& query,
                    const std::function<Status(std::string_view)>& call) {
  const auto write = [&](const auto& row) { return call(json_line(row) + "\n"); };
  Subjects subjects = {.has_all = is_everything(query), .known = {}};
  HONE_TRY(log.visit(
      query,
      [&](const Record& record) {
        subjects.add(record);
        return write(record);
      }));
  HONE_TRY(log.visit_texts(
      [&](const KnownText& text) { return subjects.has(text) ? write(text) : Status(); }));
  if (!subjects.has_all) return {};
  return log.visit_plans(write);
}

Status import_line(std::string_view line, LogMerge& merge) {
  if (static_cast<int64_t>(line.size()) > kMaxLogLine)
    return over_limit("the line has {} bytes, more than {}", line.size(), kMaxLogLine);
  const Json parsed = HONE_TRY(parse_json(line));
  if (!parsed.is_object() || parsed.size() != 1 || !parsed.begin()->is_object())
    return bad_input("the line must be an object with one object in it: '{}'", excerpt(line));
  const std::string& kind = parsed.begin().key();
  const Fields fields(*parsed.begin());
  if (kind == "record") return merge.take(HONE_TRY(row_of<Record>(fields)));
  if (kind == "text") return merge.take(HONE_TRY(row_of<KnownText>(fields)));
  if (kind == "plan") return merge.take(HONE_TRY(row_of<BestPlan>(fields)));
  return bad_input("'{}' is not one of record, text, plan", excerpt(kind));
}

// ---- Arrays -------------------------------------------------------------------------------------

namespace {

template <class T>
void add_array(std::vector<NamedTensor>& arrays, std::string name, DType dtype,
               const std::vector<T>& values) {
  const Type type = Type::get(dtype, {static_cast<int64_t>(values.size())});
  arrays.push_back({std::move(name), Tensor::of(type, std::span<const T>(values))});
}

// Distinct texts, in the order in which they come, as one array of bytes and one of their ends.
class TextColumn {
 public:
  void add(const std::string& text) {
    const auto [at, is_new] = known_.try_emplace(text, static_cast<int64_t>(known_.size()));
    if (is_new) {
      bytes_.insert(bytes_.end(), text.begin(), text.end());
      ends_.push_back(static_cast<int64_t>(bytes_.size()));
    }
    rows_.push_back(at->second);
  }
  void save(std::vector<NamedTensor>& arrays, const std::string& name) const {
    add_array(arrays, name, DType::i64, rows_);
    add_array(arrays, name + "/bytes", DType::u8, bytes_);
    add_array(arrays, name + "/ends", DType::i64, ends_);
  }

 private:
  std::unordered_map<std::string, int64_t> known_;
  std::vector<int64_t> rows_;
  std::vector<uint8_t> bytes_;
  std::vector<int64_t> ends_;
};

struct RecordColumns {
  std::vector<int64_t> id, time, ends;
  std::vector<uint64_t> subject, code, target;
  std::vector<uint8_t> outcome;
  std::vector<double> noise, seconds;
  TextColumn kind, choice, conditions, detail, version;

  void add(const Record& record) {
    id.push_back(record.id);
    subject.push_back(record.subject);
    code.push_back(record.code);
    target.push_back(record.target);
    outcome.push_back(static_cast<uint8_t>(record.outcome));
    time.push_back(record.time);
    noise.push_back(record.noise);
    seconds.insert(seconds.end(), record.seconds.begin(), record.seconds.end());
    ends.push_back(static_cast<int64_t>(seconds.size()));
    kind.add(record.kind);
    choice.add(record.choice);
    conditions.add(record.conditions);
    detail.add(record.detail);
    version.add(record.version);
  }

  void save(std::vector<NamedTensor>& arrays) const {
    add_array(arrays, "id", DType::i64, id);
    add_array(arrays, "subject", DType::u64, subject);
    add_array(arrays, "code", DType::u64, code);
    add_array(arrays, "target", DType::u64, target);
    add_array(arrays, "outcome", DType::u8, outcome);
    add_array(arrays, "time", DType::i64, time);
    add_array(arrays, "noise", DType::f64, noise);
    add_array(arrays, "seconds", DType::f64, seconds);
    add_array(arrays, "seconds/ends", DType::i64, ends);
    kind.save(arrays, "kind");
    choice.save(arrays, "choice");
    conditions.save(arrays, "conditions");
    detail.save(arrays, "detail");
    version.save(arrays, "version");
  }
};

}  // namespace

Result<std::vector<NamedTensor>> export_arrays(const Log& log, const Query& query) {
  RecordColumns records;
  Subjects subjects = {.has_all = is_everything(query), .known = {}};
  HONE_TRY(log.visit(
      query,
      [&](const Record& record) -> Status {
        subjects.add(record);
        records.add(record);
        return {};
      }));
  std::vector<uint64_t> hash;
  TextColumn kind, text;
  HONE_TRY(log.visit_texts([&](const KnownText& known) -> Status {
    if (!subjects.has(known)) return {};
    hash.push_back(known.hash);
    kind.add(known.kind);
    text.add(known.text);
    return {};
  }));
  std::vector<NamedTensor> arrays;
  records.save(arrays);
  add_array(arrays, "text/hash", DType::u64, hash);
  kind.save(arrays, "text/kind");
  text.save(arrays, "text/text");
  return arrays;
}

}  // namespace hone
