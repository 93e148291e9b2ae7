#include <optional>
#include <set>

#include "base/text.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "rules/rule.h"

namespace hone {
namespace {

class RuleParser {
 public:
  RuleParser(std::string_view text, const ParseOptions& options) : parser_(text, options) {}

  Result<std::vector<Rule>> rules() {
    std::vector<Rule> rules;
    while (parser_.peek().kind != TokenKind::end) rules.push_back(HONE_TRY(rule()));
    return rules;
  }

 private:
  Result<Rule> rule() {
    HONE_TRY(parser_.expect("rule"));
    const TextParser::Label label =
        HONE_TRY(parser_.label(TokenKind::global, "the name of the rule, like @twice"));
    if (!names_.insert(std::string(label.name)).second)
      return parser_.at(label.token, bad_input("rule '{}' stands there twice", label.name));
    std::vector<Graph> sides = HONE_TRY(parser_.alternatives(label.name));
    if (sides.size() != 2)
      return parser_.at(label.token, bad_input("rule '{}' has {} sides; 'left => right' are two",
                                               label.name, sides.size()));
    Rule rule = {.name = std::string(label.name),
                 .left = std::move(sides[0]),
                 .right = std::move(sides[1]),
                 .guard = {}};
    if (parser_.eat("when")) {
      do rule.guard.push_back(HONE_TRY(condition()));
      while (parser_.eat(","));
    }
    if (parser_.eat("by")) HONE_TRY(evidence(rule));
    for (const Graph* side : {&rule.left, &rule.right})
      if (Status good = verify(*side); !good.ok())
        return parser_.at(label.token, std::move(good).error());
    if (Status good = check(rule); !good.ok())
      return parser_.at(label.token, std::move(good).error().about(rule.name));
    return rule;
  }

  bool at_relation() const {
    const Token& token = parser_.peek();
    return token.is("=") || token.is("<") || token.text == "!";
  }

  // The tokens up to one that no dim has.
  Result<Dim> dim() {
    const size_t begin = parser_.peek().offset;
    std::string_view text;
    while (!at_relation() && !parser_.peek().is(",") && !parser_.peek().is("by") &&
           !parser_.peek().is("rule") && parser_.peek().kind != TokenKind::end) {
      const Token token = parser_.take();
      const char* first = text.empty() ? token.text.data() : text.data();
      text = {first, static_cast<size_t>(token.text.data() + token.text.size() - first)};
    }
    Result<Dim> dim = parse_dim(text, parser_.symbols());
    if (!dim.ok()) return parser_.at(begin, std::move(dim).error());
    return dim;
  }

  Result<Condition> condition() {
    const Dim left = HONE_TRY(dim());
    if (!at_relation()) return parser_.expected("one of = != < <=");
    const Token first = parser_.take();
    Relation relation = first.is("=") ? Relation::equal : Relation::less;
    if (first.text == "!") {
      HONE_TRY(parser_.expect("="));
      relation = Relation::unequal;
    } else if (first.is("<") && parser_.eat("=")) {
      relation = Relation::at_most;
    }
    return Condition{left, relation, HONE_TRY(dim())};
  }

  Status evidence(Rule& rule) {
    do {
      const Token& token = parser_.peek();
      bool found = false;
      for (Rung rung : {Rung::none, Rung::sampled, Rung::small, Rung::all_sizes})
        if (token.is(name(rung))) found = true, rule.rung = rung;
      for (FloatEffect effect :
           {FloatEffect::unknown, FloatEffect::exact, FloatEffect::reassociates,
            FloatEffect::finite_only, FloatEffect::real_only})
        if (token.is(name(effect))) found = true, rule.floats = effect;
      if (token.is("within")) {
        HONE_TRY(within(rule));
        continue;
      }
      if (!found)
        return parser_.expected(
            "sampled, small or all_sizes, or exact, reassociates, finite_only or real_only, or "
            "within and a value of the right side");
      parser_.take();
    } while (parser_.eat(","));
    return {};
  }

  Status within(Rule& rule) {
    HONE_TRY(parser_.expect("within"));
    const TextParser::Label label =
        HONE_TRY(parser_.label(TokenKind::value, "a value of the right side, like %y"));
    const std::optional<ValueId> value = named(rule.right, label.name);
    if (!value)
      return parser_.at(label.token,
                        bad_input("the right side has no value '%{}'", excerpt(label.name)));
    if (!rule.within.empty() && !(rule.within.back() < *value))
      return parser_.at(label.token, bad_input("'%{}' stands twice or out of order", label.name));
    rule.within.push_back(*value);
    return {};
  }

  static std::optional<ValueId> named(const Graph& graph, std::string_view label) {
    for (uint32_t v = 0; v < graph.value_count(); ++v)
      if (graph.label(ValueId{v}) == fmt::format("%{}", label)) return ValueId{v};
    return std::nullopt;
  }

  TextParser parser_;
  std::set<std::string> names_;
};

// As in the text of a graph.
void append_value(std::string& text, const Graph& graph, ValueId v) {
  if (graph.name(v).empty())
    text += graph.label(v);
  else
    append_label(text, '%', graph.name(v));
}

}  // namespace

Result<std::vector<Rule>> parse_rules(std::string_view text, const ParseOptions& options) {
  return RuleParser(text, options).rules();
}

std::string print(const Rule& rule) {
  // The head of a graph has no brace, and its word and its name are what a rule has of its own.
  const std::string left = print(rule.left), right = print(rule.right);
  std::string text = "rule ";
  append_label(text, '@', rule.name);
  text += trim(std::string_view(left).substr(left.find('(')));
  text += " => ";
  text += trim(std::string_view(right).substr(right.find('{')));
  for (size_t i = 0; i < rule.guard.size(); ++i)
    text += (i == 0 ? " when " : ", ") + rule.guard[i].to_string();
  if (rule.rung != Rung::none) text += fmt::format(" by {}", name(rule.rung));
  if (rule.floats != FloatEffect::unknown)
    text += fmt::format("{}{}", rule.rung == Rung::none ? " by " : ", ", name(rule.floats));
  const bool says_nothing = rule.rung == Rung::none && rule.floats == FloatEffect::unknown;
  for (size_t i = 0; i < rule.within.size(); ++i) {
    text += says_nothing && i == 0 ? " by within " : ", within ";
    append_value(text, rule.right, rule.within[i]);
  }
  return text + "\n";
}

}  // namespace hone
