#include "kernel/schedule_text.h"

#include <limits>
#include <map>
#include <optional>
#include <set>
#include <variant>

#include "base/text.h"

namespace hone {

std::string_view name(Algorithm algorithm) {
  switch (algorithm) {
#define HONE_ALGORITHM(member, ...) \
  case Algorithm::member: return #member;
#include "kernel/algorithms.def"
  }
  return "";
}

AlgorithmFields fields_of(Algorithm algorithm) {
  switch (algorithm) {
#define HONE_ALGORITHM(member, Fields, ...) \
  case Algorithm::member: return Fields();
#include "kernel/algorithms.def"
  }
  return {};
}

std::string_view name(Packing packing) {
  switch (packing) {
#define HONE_PACKING(member, doc) \
  case Packing::member: return #member;
#include "kernel/algorithms.def"
  }
  return "";
}
std::string_view name(Products products) {
  switch (products) {
#define HONE_PRODUCTS(member, doc) \
  case Products::member: return #member;
#include "kernel/algorithms.def"
  }
  return "";
}

namespace {

constexpr int64_t kMaxScheduleDim = 255;
constexpr size_t kMaxScheduleList = 64;         // entries
constexpr int64_t kMaxTile = int64_t{1} << 31;  // points

// ---- Printing ----------------------------------------------------------------------------------

std::string text_of(Packing packing) { return std::string(name(packing)); }
std::string text_of(Products products) { return std::string(name(products)); }
std::string text_of(int64_t number) { return fmt::format("{}", number); }
std::string text_of(int number) { return fmt::format("{}", number); }
std::string text_of(const Tile& tile) { return fmt::format("{}:{}", tile.dim, tile.count); }
std::string text_of(const Schedule& stage) { return print(stage); }

template <class T>
std::string text_of(const std::vector<T>& list) {
  std::string text = "[";
  for (const T& each : list) text += (text.size() > 1 ? ", " : "") + text_of(each);
  return text + "]";
}

// ---- Parsing -----------------------------------------------------------------------------------

// Fields may stand before the algorithm that has them, so they wait for the closing brace. Fields
// of one name have one type.
class ScheduleParser {
 public:
  explicit ScheduleParser(TextParser& text) : text_(text) {}

  Status schedule(Schedule& schedule, bool is_stage) {
    HONE_TRY(text_.expect("{"));
    std::optional<Algorithm> algorithm;
    OwnFields own;
    std::set<std::string_view> seen;
    do {
      const Token word = text_.peek();
      if (word.kind != TokenKind::word) return text_.expected("a field of a schedule");
      text_.take();
      if (!seen.insert(word.text).second)
        return text_.at(word, bad_input("{} is decided twice", word.text));
      if (is_stage && word.is("stages"))
        return text_.at(word, bad_input("a stage has no stages of its own"));
      HONE_TRY(field(schedule, algorithm, own, word));
    } while (text_.eat(","));
    if (!algorithm) return text_.expected("the field 'algorithm'");
    HONE_TRY(take_own(schedule, *algorithm, own));
    return text_.expect("}");
  }

 private:
  using OwnField = std::variant<int, Packing, Products, std::vector<Tile>, std::vector<int64_t>,
                                std::vector<Schedule>>;
  using OwnFields = std::map<std::string_view, std::pair<Token, OwnField>>;

  Status field(Schedule& schedule, std::optional<Algorithm>& algorithm, OwnFields& own,
               const Token& word) {
    if (word.is("algorithm")) {
      HONE_TRY(text_.expect("="));
      return read(algorithm.emplace());
    }
#define HONE_SHARED_FIELD(member, ...) \
  if (word.is(#member)) {              \
    HONE_TRY(text_.expect("="));       \
    return read(schedule.member);      \
  }
#define HONE_FIELD(type, member, ...)        \
  if (word.is(#member)) {                    \
    HONE_TRY(text_.expect("="));             \
    OwnField& value = own[word.text].second; \
    own[word.text].first = word;             \
    return read(value.emplace<type>());      \
  }
#define HONE_ALGORITHM(member, Fields, doc, fields) fields
#include "kernel/algorithms.def"
    std::vector<std::string_view> names;
    for (const DecisionInfo& each : schedule_fields()) names.push_back(each.name);
    return text_.at(word, bad_input("a schedule has no field '{}'", excerpt(word.text))
                              .with_hint(did_you_mean(word.text, names)));
  }

  Status take_own(Schedule& schedule, Algorithm algorithm, OwnFields& own) {
    schedule.own = fields_of(algorithm);
    each_own_field(schedule, [&]<class T>(std::string_view name, T& member) {
      const auto found = own.find(name);
      if (found == own.end()) return;
      member = std::get<T>(std::move(found->second.second));
      own.erase(found);
    });
    if (own.empty()) return {};
    const auto& [word, value] = own.begin()->second;
    return text_.at(word, bad_input("algorithm {} has no field '{}'", name(algorithm), word.text));
  }

  Status read(Algorithm& algorithm) {
#define HONE_ALGORITHM(member, ...) \
  if (text_.eat(#member)) {         \
    algorithm = Algorithm::member;  \
    return {};                      \
  }
#include "kernel/algorithms.def"
    return text_.expected("an algorithm");
  }

  Status read(Packing& packing) {
#define HONE_PACKING(member, doc) \
  if (text_.eat(#member)) {       \
    packing = Packing::member;    \
    return {};                    \
  }
#include "kernel/algorithms.def"
    return text_.expected("'no', 'panels' or 'window'");
  }

  Status read(Products& products) {
#define HONE_PRODUCTS(member, doc) \
  if (text_.eat(#member)) {        \
    products = Products::member;   \
    return {};                     \
  }
#include "kernel/algorithms.def"
    return text_.expected("'plain' or 'split'");
  }

  Status read(int& number) {
    number = static_cast<int>(HONE_TRY(text_.integer("a number", 0, kMaxScheduleDim)));
    return {};
  }

  Status read(int64_t& number) {
    number = HONE_TRY(text_.integer("a number", 0, std::numeric_limits<int64_t>::max()));
    return {};
  }

  Status read(Schedule& stage) { return schedule(stage, true); }

  Status read(Tile& tile) {
    HONE_TRY(read(tile.dim));
    HONE_TRY(text_.expect(":"));
    tile.count = HONE_TRY(text_.integer("a number", 1, kMaxTile));
    return {};
  }

  template <class T>
  Status read(std::vector<T>& list) {
    HONE_TRY(text_.expect("["));
    if (text_.eat("]")) return {};
    do {
      if (list.size() == kMaxScheduleList)
        return text_.at(text_.peek(), over_limit("more than {} entries", kMaxScheduleList));
      T each = {};
      HONE_TRY(read(each));
      list.push_back(std::move(each));
    } while (text_.eat(","));
    return text_.expect("]");
  }

  TextParser& text_;
};

}  // namespace

std::span<const DecisionInfo> schedule_fields() {
  static const std::string algorithms = [] {
    std::string names;
    for (Algorithm each : kAlgorithms)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", name(each));
    return names;
  }();
  static const std::vector<DecisionInfo> rows = [] {
    std::vector<DecisionInfo> all;
    all.push_back({"algorithm", "all", algorithms, "generic", "how the kernel is built"});
#define HONE_SHARED_FIELD(member, values, fallback, doc) \
  all.push_back({#member, "all", values, fallback, doc});
#define HONE_FIELD(type, member, initial, values, fallback, doc) \
  all.push_back({#member, owner, values, fallback, doc});
#define HONE_ALGORITHM(member, Fields, doc, fields) \
  {                                                 \
    [[maybe_unused]] const char* owner = #member;   \
    fields                                          \
  }
#include "kernel/algorithms.def"
    return all;
  }();
  return rows;
}

std::string print(const Schedule& schedule) {
  std::string text = fmt::format("algorithm = {}", name(schedule.algorithm()));
  each_field(schedule, [&]<class T>(std::string_view name, const T& value) {
    if (value != T()) text += fmt::format(", {} = {}", name, text_of(value));
  });
  return "{" + text + "}";
}

Result<Schedule> parse_schedule(TextParser& text) {
  Schedule schedule;
  HONE_TRY(ScheduleParser(text).schedule(schedule, false));
  return schedule;
}

}  // namespace hone
