#include "prove/foreign.h"

#include <map>

#include "base/text.h"

namespace hone {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kMaxForeignTerms = 256;  // of one side

// ---- Terms as text ------------------------------------------------------------------------------

// Reads one side or more of one line.
class LineParser {
 public:
  explicit LineParser(std::string_view line) : line_(line) {}

  size_t column() const { return at_ + 1; }

  Status side(ForeignSide& side) {
    do side.results.push_back(HONE_TRY(term(side, 0)));
    while (eat(","));
    return {};
  }

  Status arrow() {
    if (eat("=>") || eat("==")) return {};
    return bad_input("expected '=>' between the sides");
  }

  Status end() {
    skip_space();
    if (at_ < line_.size()) return bad_input("expected the end of the line");
    return {};
  }

 private:
  void skip_space() {
    while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t' || line_[at_] == '\r'))
      ++at_;
  }

  bool eat(std::string_view text) {
    skip_space();
    if (line_.substr(at_, text.size()) != text) return false;
    at_ += text.size();
    return true;
  }

  std::string_view word() {
    skip_space();
    const size_t begin = at_;
    while (at_ < line_.size() &&
           (std::isalnum(static_cast<unsigned char>(line_[at_])) != 0 || line_[at_] == '_'))
      ++at_;
    return line_.substr(begin, at_ - begin);
  }

  Result<size_t> add(ForeignSide& side, ForeignTerm term) {
    for (size_t i = 0; i < side.terms.size(); ++i) {
      const ForeignTerm& old = side.terms[i];
      if (old.op == term.op && old.name == term.name && old.parameters == term.parameters &&
          old.operands == term.operands)
        return i;
    }
    if (side.terms.size() >= kMaxForeignTerms)
      return over_limit("a side has more than {} terms", kMaxForeignTerms);
    side.terms.push_back(std::move(term));
    return side.terms.size() - 1;
  }

  Result<size_t> term(ForeignSide& side, int depth) {
    if (depth > kMaxDepth) return over_limit("terms nest deeper than {}", kMaxDepth);
    if (eat("?")) {
      const std::string_view name = word();
      if (name.empty()) return bad_input("expected the name of a variable after '?'");
      return add(side, {.op = "", .name = std::string(name)});
    }
    const bool has_parentheses = eat("(");
    ForeignTerm term = {.op = std::string(word())};
    if (term.op.empty()) return bad_input("expected a term, like (ewadd ?x ?y) or ?x");
    if (!has_parentheses) return add(side, std::move(term));
    while (!eat(")")) {
      skip_space();
      if (at_ == line_.size()) return bad_input("expected ')'");
      const bool is_number =
          line_[at_] == '-' || std::isdigit(static_cast<unsigned char>(line_[at_])) != 0;
      if (is_number)
        HONE_TRY(numbers(term.parameters));
      else
        term.operands.push_back(HONE_TRY(this->term(side, depth + 1)));
    }
    return add(side, std::move(term));
  }

  // "2", or "1_0" for a list.
  Status numbers(std::vector<int64_t>& into) {
    const std::string_view sign = eat("-") ? "-" : "";
    for (std::string_view piece : split(word(), '_'))
      into.push_back(HONE_TRY(parse_int(fmt::format("{}{}", sign, piece))));
    return {};
  }

  std::string_view line_;
  size_t at_ = 0;
};

Status parse_line(std::string_view line, ForeignRule& rule, size_t& column) {
  LineParser parser(line);
  const auto parse = [&]() -> Status {
    HONE_TRY(parser.side(rule.left));
    HONE_TRY(parser.arrow());
    HONE_TRY(parser.side(rule.right));
    return parser.end();
  };
  Status status = parse();
  column = parser.column();
  return status;
}

// ---- TASO's numbers -----------------------------------------------------------------------------

// The types of operators that have a word.
struct TasoWord {
  int64_t type;
  std::string_view word;
  std::vector<int64_t> keys;  // of the parameters that count, in Tensat's order
};

enum TasoKey : int64_t {
  kKernelH = 4,
  kKernelW = 5,
  kStrideH = 6,
  kStrideW = 7,
  kPad = 8,
  kActivation = 9,
  kRank = 10,
  kAxis = 11,
  kPermutation = 12
};

const std::vector<TasoWord>& taso_words() {
  static const std::vector<TasoWord> words = {
      {3, "conv2d", {kStrideH, kStrideW, kPad, kActivation, kKernelH, kKernelW}},
      {6, "poolmax", {kKernelH, kKernelW, kStrideH, kStrideW, kPad, kActivation}},
      {7, "poolavg", {kKernelH, kKernelW, kStrideH, kStrideW, kPad, kActivation}},
      {8, "relu", {}},
      {9, "sigmoid", {}},
      {10, "tanh", {}},
      {12, "concat", {kAxis, kRank}},
      {13, "split", {kAxis}},
      {16, "ewadd", {}},
      {17, "ewmul", {}},
      {18, "matmul", {kActivation}},
      {19, "smul", {}},
      {20, "enlarge", {kKernelH, kKernelW}},
      {28, "ewsub", {}},
      {29, "ewdiv", {}},
      {33, "ewmax", {}},
      {34, "ewmin", {}},
      {49, "exp", {}}};
  return words;
}

class TasoSide {
 public:
  TasoSide(std::span<const TasoOp> ops, ForeignSide& side) : ops_(ops), side_(side) {}

  Status run() {
    for (const TasoOp& op : ops_) HONE_TRY(add(op));
    return {};
  }

  Result<size_t> value(int64_t op, int64_t result) {
    if (op < 0) {
      const std::string name = fmt::format("input_{}", -static_cast<__int128>(op));
      for (size_t i = 0; i < side_.terms.size(); ++i)
        if (side_.terms[i].op.empty() && side_.terms[i].name == name) return i;
      return put({.op = "", .name = name});
    }
    if (op >= static_cast<int64_t>(terms_.size()))
      return bad_input("an operator reads operator {}, which does not come before it", op);
    const size_t term = terms_[static_cast<size_t>(op)];
    if (side_.terms[term].op != "split") {
      if (result != 0) return bad_input("operator {} has no result {}", op, result);
      return term;
    }
    if (result < 0 || result > 1) return bad_input("a split has no result {}", result);
    return put({.op = fmt::format("split_{}", result), .operands = {term}});
  }

 private:
  Result<size_t> put(ForeignTerm term) {
    if (side_.terms.size() >= kMaxForeignTerms)
      return over_limit("a side has more than {} terms", kMaxForeignTerms);
    side_.terms.push_back(std::move(term));
    return side_.terms.size() - 1;
  }

  Status add(const TasoOp& op) {
    ForeignTerm term = {.op = fmt::format("operator {}", op.type)};
    for (const TasoWord& word : taso_words()) {
      if (word.type != op.type) continue;
      term.op = word.word;
      for (int64_t key : word.keys) {
        const auto found = op.parameters.find(key);
        if (found == op.parameters.end())
          return bad_input("operator {} has no parameter {}", op.type, key);
        term.parameters.push_back(found->second);
      }
    }
    for (const TasoOp::Input& input : op.inputs)
      term.operands.push_back(HONE_TRY(value(input.op, input.result)));
    terms_.push_back(HONE_TRY(put(std::move(term))));
    return {};
  }

  std::span<const TasoOp> ops_;
  ForeignSide& side_;
  std::vector<size_t> terms_;  // of the operators so far
};

Result<ForeignRule> foreign_rule(const TasoRule& from) {
  ForeignRule rule;
  TasoSide left(from.source, rule.left), right(from.target, rule.right);
  HONE_TRY(left.run());
  HONE_TRY(right.run());
  for (const TasoRule::Output& output : from.outputs) {
    rule.left.results.push_back(HONE_TRY(left.value(output.source_op, output.source_result)));
    rule.right.results.push_back(HONE_TRY(right.value(output.target_op, output.target_result)));
  }
  if (rule.left.results.empty()) return bad_input("the rule has no results");
  return rule;
}

}  // namespace

Result<std::vector<ForeignRule>> parse_foreign_rules(std::string_view text, std::string_view file,
                                                     bool pairs) {
  std::vector<ForeignRule> rules;
  size_t number = 0;
  bool is_open = false;  // the last rule waits for its second line
  for (std::string_view line : split(text, '\n')) {
    ++number;
    line = line.substr(0, line.find('#'));
    if (trim(line).empty()) continue;
    if (!is_open) rules.push_back({.name = fmt::format("line_{}", number)});
    size_t column = 0;
    if (Status status = parse_line(line, rules.back(), column); !status.ok())
      return std::move(status).error().at(fmt::format("{}:{}:{}", file, number, column));
    is_open = pairs && !is_open;
  }
  if (is_open) return bad_input("{}: the second line of the last pair is missing", file);
  return rules;
}

Result<std::vector<ForeignRule>> foreign_rules(std::span<const TasoRule> rules) {
  std::vector<ForeignRule> all;
  for (size_t i = 0; i < rules.size(); ++i) {
    Result<ForeignRule> rule = foreign_rule(rules[i]);
    if (!rule.ok()) return std::move(rule).error().within(fmt::format("rule {}", i));
    rule->name = fmt::format("rule_{}", i);
    all.push_back(std::move(*rule));
  }
  return all;
}

}  // namespace hone
