#include "assign/json.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "base/hash.h"
#include "base/text.h"
#include "base/text_lexer.h"
#include "formats/gzip.h"

namespace hone {
namespace {

constexpr int kMaxDepth = 64;  // of values that are skipped

// Walks through a text of JSON. Files have 100 MB, nearly all of it numbers, and each must have a
// place for its error; so this reads what the format needs, and nothing becomes a tree.
class JsonWalk {
 public:
  JsonWalk(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  size_t offset() {
    skip_blanks();
    return at_;
  }

  template <class... Args>
  Error wrong(size_t offset, fmt::format_string<Args...> text, const Args&... args) const {
    return bad_input<Args...>(text, args...)
        .at(fmt::format("{}:{}", name_, line_and_column(text_, offset)));
  }

  Status expect(char c) {
    if (take(c)) return {};
    return wrong(at_, "'{}' is expected, not {}", c, here());
  }

  bool take(char c) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  // Calls item() for each item of an array.
  template <class Item>
  Status array(const Item& item) {
    HONE_TRY(expect('['));
    if (take(']')) return {};
    do HONE_TRY(item());
    while (take(','));
    return expect(']');
  }

  // Calls member(key) for each member of an object.
  template <class Member>
  Status object(const Member& member) {
    HONE_TRY(expect('{'));
    if (take('}')) return {};
    do {
      const size_t begin = offset();
      const std::string key = HONE_TRY(string());
      HONE_TRY(expect(':'));
      HONE_TRY(member(std::string_view(key), begin));
    } while (take(','));
    return expect('}');
  }

  // A whole number that is not negative.
  Result<int64_t> number() {
    skip_blanks();
    int64_t value = 0;
    const char* const end = text_.data() + text_.size();
    const auto [stop, fault] = std::from_chars(text_.data() + at_, end, value);
    if (fault == std::errc::result_out_of_range) return wrong(at_, "a number does not fit 64 bits");
    if (fault != std::errc() || (stop != end && is_of_number(*stop)))
      return wrong(at_, "a whole number is expected, not {}", here());
    if (value < 0) return wrong(at_, "the number {} is negative", value);
    at_ = static_cast<size_t>(stop - text_.data());
    return value;
  }

  Result<std::string> string() {
    const size_t begin = offset();
    if (!take('"')) return wrong(begin, "a string is expected, not {}", here());
    std::string value;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (static_cast<unsigned char>(text_[at_]) < ' ')
        return wrong(at_, "a string contains a control character");
      if (text_[at_] == '\\') {
        if (++at_ == text_.size()) break;
        HONE_TRY(escaped(value));
      } else {
        value += text_[at_];
      }
    }
    if (at_ == text_.size()) return wrong(begin, "a string is not closed");
    ++at_;
    return value;
  }

  // Any value, which means nothing here.
  Status skip(int depth = 0) {
    const size_t begin = offset();
    if (depth == kMaxDepth) return wrong(begin, "more than {} brackets in each other", kMaxDepth);
    if (begin == text_.size()) return wrong(begin, "a value is expected, not {}", here());
    switch (text_[begin]) {
      case '{': return object([&](std::string_view, size_t) { return skip(depth + 1); });
      case '[': return array([&] { return skip(depth + 1); });
      case '"': HONE_TRY(string()); return {};
      default: break;
    }
    while (at_ < text_.size() && is_of_word(text_[at_])) ++at_;
    if (at_ == begin) return wrong(begin, "a value is expected, not {}", here());
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word == "null" || word == "true" || word == "false" || parse_double(word).ok()) return {};
    return wrong(begin, "'{}' is not a value", excerpt(word));
  }

  Status end() {
    if (offset() == text_.size()) return {};
    return wrong(at_, "there is more behind the end of the problem: {}", here());
  }

 private:
  static bool is_of_number(char c) { return c == '.' || c == 'e' || c == 'E'; }
  static bool is_of_word(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '+' || c == '-';
  }

  void skip_blanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }

  std::string here() const {
    if (at_ >= text_.size()) return "the end of the file";
    return fmt::format("'{}'", excerpt(text_.substr(at_, 12)));
  }

  // The part behind a backslash. Characters beyond ASCII become a question mark: only a name and
  // keys are texts.
  Status escaped(std::string& value) {
    constexpr std::string_view kShort = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    if (const size_t i = kShort.find(text_[at_]); i != kShort.npos) {
      value += kMeant[i];
      return {};
    }
    unsigned code = 0;
    if (text_[at_] != 'u' || text_.size() - at_ < 5 ||
        std::from_chars(text_.data() + at_ + 1, text_.data() + at_ + 5, code, 16).ptr !=
            text_.data() + at_ + 5)
      return wrong(at_, "a string contains an unknown escape");
    value += code < 0x80 ? static_cast<char>(code) : '?';
    at_ += 4;
    return {};
  }

  std::string_view text_;
  std::string_view name_;
  size_t at_ = 0;
};

class ProblemParser {
 public:
  ProblemParser(std::string_view text, std::string_view name) : walk_(text, name) {}

  Result<AssignProblem> parse() {
    HONE_TRY(walk_.object([&](std::string_view key, size_t at) -> Status {
      if (key != "problem") return walk_.skip();
      HONE_TRY(once(has_problem_, key, at));
      return problem();
    }));
    HONE_TRY(walk_.end());
    if (!has_problem_) return missing("problem");
    HONE_TRY(check_nodes());
    HONE_TRY(check_edges());
    return std::move(problem_);
  }

 private:
  Status once(bool& seen, std::string_view key, size_t at) {
    if (seen) return walk_.wrong(at, "'{}' is there twice", key);
    seen = true;
    return {};
  }
  Error missing(std::string_view key) {
    return walk_.wrong(0, "there is no '{}'", key)
        .with_hint("docs/formats/assign-json.md describes the format");
  }
  Status count(size_t number, size_t limit, std::string_view what) {
    if (number < limit) return {};
    return over_limit("more than {} {}", limit, what)
        .at(walk_.wrong(walk_.offset(), "{}", what).where());
  }

  Status problem() {
    return walk_.object([&](std::string_view key, size_t at) -> Status {
      if (key == "name") {
        HONE_TRY(once(has_name_, key, at));
        problem_.name = HONE_TRY(walk_.string());
      } else if (key == "usage_limit") {
        HONE_TRY(once(has_limit_, key, at));
        problem_.usage_limit = HONE_TRY(walk_.number());
      } else if (key == "nodes") {
        HONE_TRY(once(has_nodes_, key, at));
        return nodes();
      } else if (key == "edges") {
        HONE_TRY(once(has_edges_, key, at));
        return edges();
      } else {
        return walk_.skip();
      }
      return {};
    });
  }

  Status nodes() {
    return walk_.object([&](std::string_view key, size_t at) -> Status {
      if (key == "intervals") {
        HONE_TRY(once(has_intervals_, key, at));
        return walk_.array([&] { return interval(); });
      }
      if (key == "costs") {
        HONE_TRY(once(has_costs_, key, at));
        return walk_.array([&] { return numbers(costs_, kMaxAssignNodes, "nodes"); });
      }
      if (key == "usages") {
        HONE_TRY(once(has_usages_, key, at));
        return walk_.array([&] { return numbers(usages_, kMaxAssignNodes, "nodes"); });
      }
      return walk_.skip();
    });
  }

  Status edges() {
    return walk_.object([&](std::string_view key, size_t at) -> Status {
      if (key == "nodes") {
        HONE_TRY(once(has_ends_, key, at));
        return walk_.array([&] { return ends(); });
      }
      if (key == "costs") {
        HONE_TRY(once(has_tables_, key, at));
        return walk_.array([&] { return table(); });
      }
      return walk_.skip();
    });
  }

  // "[a, b]"
  Result<std::pair<int64_t, int64_t>> pair() {
    HONE_TRY(walk_.expect('['));
    const int64_t first = HONE_TRY(walk_.number());
    HONE_TRY(walk_.expect(','));
    const int64_t second = HONE_TRY(walk_.number());
    HONE_TRY(walk_.expect(']'));
    return std::pair{first, second};
  }

  Status interval() {
    HONE_TRY(count(intervals_.size(), kMaxAssignNodes, "nodes"));
    const size_t at = walk_.offset();
    intervals_.push_back(HONE_TRY(pair()));
    const auto [begin, end] = intervals_.back();
    if (end >= begin) return {};
    return walk_.wrong(at, "intervals: node {} is alive from {} up to {}, which is before",
                       intervals_.size() - 1, begin, end);
  }

  Status ends() {
    HONE_TRY(count(ends_.size(), kMaxAssignEdges, "edges"));
    const size_t at = walk_.offset();
    ends_.push_back({HONE_TRY(pair()), at});
    return {};
  }

  Status list(std::vector<int64_t>& values, size_t limit, std::string_view what) {
    values.clear();
    return walk_.array([&]() -> Status {
      HONE_TRY(count(values.size(), limit, what));
      values.push_back(HONE_TRY(walk_.number()));
      return {};
    });
  }

  struct Numbers {
    std::vector<int64_t> values;
    size_t at;
  };
  Status numbers(std::vector<Numbers>& lists, size_t limit, std::string_view what) {
    HONE_TRY(count(lists.size(), limit, what));
    const size_t at = walk_.offset();
    HONE_TRY(list(values_, kMaxAssignOptions, "options of a node"));
    HONE_TRY(add_numbers(values_.size()));
    lists.push_back({values_, at});
    return {};
  }

  Status add_numbers(size_t number) {
    numbers_ += number;
    return count(numbers_, kMaxAssignNumbers, "numbers of nodes and different tables");
  }

  Status table() {
    HONE_TRY(count(tables_of_edges_.size(), kMaxAssignEdges, "edges"));
    const size_t at = walk_.offset();
    HONE_TRY(list(values_, kMaxAssignNumbers, "costs of an edge"));
    const uint64_t hash = hash_bytes(std::as_bytes(std::span(values_)));
    std::vector<uint32_t>& alike = by_hash_[hash];
    const auto found =
        std::ranges::find_if(alike, [&](uint32_t i) { return problem_.tables[i] == values_; });
    uint32_t index = 0;
    if (found != alike.end()) {
      index = *found;
    } else {
      HONE_TRY(add_numbers(values_.size()));
      index = static_cast<uint32_t>(problem_.tables.size());
      problem_.tables.push_back(values_);
      alike.push_back(index);
    }
    tables_of_edges_.push_back({index, at});
    return {};
  }

  Status check_nodes() {
    if (!has_nodes_) return missing("nodes");
    if (!has_intervals_) return missing("intervals");
    if (!has_costs_) return missing("costs");
    if (!has_usages_) return missing("usages");
    if (costs_.size() != intervals_.size() || costs_.size() != usages_.size())
      return walk_.wrong(0, "the nodes have {} intervals, {} lists of costs and {} of usages",
                         intervals_.size(), costs_.size(), usages_.size());
    problem_.nodes.reserve(costs_.size());
    for (size_t i = 0; i < costs_.size(); ++i) {
      if (costs_[i].values.empty())
        return walk_.wrong(costs_[i].at, "costs: node {} has no option", i);
      if (costs_[i].values.size() != usages_[i].values.size())
        return walk_.wrong(usages_[i].at, "usages: node {} has {} options, and {} usages", i,
                           costs_[i].values.size(), usages_[i].values.size());
      problem_.nodes.push_back({intervals_[i].first, intervals_[i].second,
                                std::move(costs_[i].values), std::move(usages_[i].values)});
    }
    return {};
  }

  Status check_edges() {
    if (!has_edges_) return missing("edges");
    if (!has_ends_ && !has_tables_) return {};
    if (ends_.size() != tables_of_edges_.size())
      return walk_.wrong(0, "the edges have {} pairs of nodes, and {} lists of costs", ends_.size(),
                         tables_of_edges_.size());
    const auto count = static_cast<int64_t>(problem_.nodes.size());
    for (size_t i = 0; i < ends_.size(); ++i) {
      const auto& [ends, at] = ends_[i];
      const auto [first, second] = ends;
      if (first >= count || second >= count)
        return walk_.wrong(at, "edge {}: there is no node {}: the problem has {}", i,
                           std::max(first, second), count);
      if (first == second)
        return walk_.wrong(at, "edge {}: it joins node {} with itself", i, first);
      const AssignEdge edge = {static_cast<uint32_t>(first), static_cast<uint32_t>(second),
                               tables_of_edges_[i].table};
      const size_t costs = problem_.tables[edge.table].size();
      const size_t rows = problem_.options(edge.first), columns = problem_.options(edge.second);
      if (costs != rows * columns)
        return walk_.wrong(tables_of_edges_[i].at,
                           "edge {}: {} costs for {} x {} options of the nodes {} and {}", i, costs,
                           rows, columns, first, second);
      problem_.edges.push_back(edge);
    }
    return {};
  }

  struct Ends {
    std::pair<int64_t, int64_t> nodes;
    size_t at;
  };
  struct TableOfEdge {
    uint32_t table;
    size_t at;
  };

  JsonWalk walk_;
  AssignProblem problem_;
  std::vector<std::pair<int64_t, int64_t>> intervals_;
  std::vector<Numbers> costs_, usages_;
  std::vector<Ends> ends_;
  std::vector<TableOfEdge> tables_of_edges_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> by_hash_;
  std::vector<int64_t> values_;
  size_t numbers_ = 0;
  bool has_problem_ = false, has_name_ = false, has_limit_ = false, has_nodes_ = false;
  bool has_edges_ = false, has_intervals_ = false, has_costs_ = false, has_usages_ = false;
  bool has_ends_ = false, has_tables_ = false;
};

// "[[1,2],[3]]", of what `item` makes a text.
template <class Range, class Item>
std::string array_text(const Range& range, const Item& item) {
  std::string text = "[";
  for (const auto& value : range) {
    if (text.size() > 1) text += ',';
    text += item(value);
  }
  return text + "]";
}

std::string numbers_text(const std::vector<int64_t>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ","));
}

// A string of JSON.
std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      result += {'\\', c};
    else if (static_cast<unsigned char>(c) < ' ')
      result += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    else
      result += c;
  }
  return result + "\"";
}

}  // namespace

Result<AssignProblem> parse_assign_json(std::string_view bytes, std::string_view name) {
  std::string unpacked;
  if (is_gzip(bytes)) {
    unpacked = HONE_TRY(gunzip(bytes, name, kMaxAssignBytes));
    bytes = unpacked;
  }
  return ProblemParser(bytes, name).parse();
}

std::string print_assign_json(const AssignProblem& problem) {
  using Node = AssignNode;
  using Edge = AssignEdge;
  std::string text = "{\"problem\": {";
  if (!problem.name.empty()) text += fmt::format("\"name\": {},\n", json_string(problem.name));
  if (problem.usage_limit) text += fmt::format("\"usage_limit\": {},\n", *problem.usage_limit);
  text += "\"nodes\": {\"intervals\": ";
  text += array_text(problem.nodes,
                     [](const Node& n) { return fmt::format("[{},{}]", n.begin, n.end); });
  text += ",\n\"costs\": ";
  text += array_text(problem.nodes, [](const Node& n) { return numbers_text(n.costs); });
  text += ",\n\"usages\": ";
  text += array_text(problem.nodes, [](const Node& n) { return numbers_text(n.usages); });
  text += "},\n\"edges\": {\"nodes\": ";
  text += array_text(problem.edges,
                     [](const Edge& e) { return fmt::format("[{},{}]", e.first, e.second); });
  text += ",\n\"costs\": ";
  text += array_text(problem.edges,
                     [&](const Edge& e) { return numbers_text(problem.tables[e.table]); });
  return text + "}}}\n";
}

Result<Assignment> parse_assignment(std::string_view text, std::string_view name) {
  const std::string_view whole = text;
  text = text.substr(0, trim(text).empty() ? 0 : text.find_last_not_of(" \t\r\n") + 1);
  const size_t line = text.rfind('\n') + 1;  // npos + 1 is 0
  // Blanks keep the place of errors.
  std::string last(line, ' ');
  for (size_t i = 0; i < line; ++i)
    if (whole[i] == '\n') last[i] = '\n';
  last += text.substr(line);
  JsonWalk walk(last, name);
  Assignment assignment;
  HONE_TRY(walk.array([&]() -> Status {
    const size_t at = walk.offset();
    const int64_t option = HONE_TRY(walk.number());
    if (option >= static_cast<int64_t>(kMaxAssignOptions))
      return walk.wrong(at, "no node has an option {}", option);
    assignment.push_back(static_cast<uint32_t>(option));
    return {};
  }));
  HONE_TRY(walk.end());
  return assignment;
}

std::string print_assignment(const Assignment& assignment) {
  return fmt::format("[{}]\n", fmt::join(assignment, ", "));
}

}  // namespace hone
