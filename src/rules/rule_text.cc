#include <algorithm>
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
    while (parser_.peek().kind != TokenKind::end) {
      HONE_TRY(parser_.expect("rule"));
      const TextParser::Label label =
          HONE_TRY(parser_.label(TokenKind::global, "the name of the rule, like @twice"));
      if (parser_.peek().is("for"))
        HONE_TRY(for_each_op(label, rules));
      else
        rules.push_back(HONE_TRY(rule(label.token, std::string(label.name))));
    }
    return rules;
  }

 private:
  // "for op in add, sub", and the rest of the text once for each.
  Status for_each_op(const TextParser::Label& label, std::vector<Rule>& rules) {
    OpChoice choice = {.rule = std::string(label.name), .word = {}, .ops = {}};
    const Token word = HONE_TRY(chosen_ops(choice));
    const Lexer rest = parser_.place();
    for (; choice.at < choice.ops.size(); ++choice.at) {
      const Opcode opcode = choice.ops[choice.at];
      parser_.return_to(rest);
      parser_.let(word.text, opcode);
      rules.push_back(
          HONE_TRY(rule(label.token, fmt::format("{}_{}", choice.rule, hone::name(opcode)))));
      if (parser_.named() == 0)
        return parser_.at(word, bad_input("no op of the rule is '{}'", choice.word));
      rules.back().choice = choice;
    }
    parser_.let({}, {});
    return {};
  }

  Result<Token> chosen_ops(OpChoice& choice) {
    HONE_TRY(parser_.expect("for"));
    if (parser_.peek().kind != TokenKind::word)
      return parser_.expected("a word that stands for an op, like op");
    const Token word = parser_.take();
    choice.word = word.text;
    if (opcode_from_name(word.text))
      return parser_.at(word, bad_input("'{}' is an op already", excerpt(word.text)));
    HONE_TRY(parser_.expect("in"));
    do {
      const Token op = parser_.take();
      const std::optional<Opcode> opcode = opcode_from_name(op.text);
      if (!opcode) return parser_.at(op, bad_input("there is no op '{}'", excerpt(op.text)));
      if (std::ranges::find(choice.ops, *opcode) != choice.ops.end())
        return parser_.at(op, bad_input("'{}' is listed twice", op.text));
      choice.ops.push_back(*opcode);
    } while (parser_.eat(","));
    return word;
  }

  // From the signature on.
  Result<Rule> rule(const Token& token, const std::string& name) {
    if (!names_.insert(name).second)
      return parser_.at(token, bad_input("the file has the rule '{}' twice", name));
    std::vector<Graph> sides = HONE_TRY(parser_.alternatives(name));
    if (sides.size() != 2)
      return parser_.at(
          token, bad_input("rule '{}' has {} sides; write 'left => right'", name, sides.size()));
    Rule rule = {
        .name = name, .left = std::move(sides[0]), .right = std::move(sides[1]), .guard = {}};
    if (parser_.eat("when")) {
      do rule.guard.push_back(HONE_TRY(condition()));
      while (parser_.eat(","));
    }
    if (parser_.eat("by")) HONE_TRY(evidence(rule));
    for (const Graph* side : {&rule.left, &rule.right})
      if (Status good = verify(*side); !good.ok())
        return parser_.at(token, std::move(good).error());
    if (Status good = check(rule); !good.ok())
      return parser_.at(token, std::move(good).error().about(rule.name));
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
        if (token.is(hone::name(rung))) found = true, rule.rung = rung;
      for (FloatEffect effect :
           {FloatEffect::unknown, FloatEffect::exact, FloatEffect::reassociates,
            FloatEffect::finite_only, FloatEffect::real_only})
        if (token.is(hone::name(effect))) found = true, rule.floats = effect;
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
      return parser_.at(label.token,
                        bad_input("'%{}' is listed twice or out of order", label.name));
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

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

// The text for all ops of the choice, as far as this rule tells it.
std::string choice_text(const Rule& rule) {
  const OpChoice& choice = *rule.choice;
  std::string head = "rule ", ops;
  append_label(head, '@', rule.name);
  std::string text = print(rule).substr(head.size());
  replace_all(text, fmt::format(" = {} ", name(choice.ops[choice.at])),
              fmt::format(" = {} ", choice.word));
  head = "rule ";
  append_label(head, '@', choice.rule);
  for (Opcode opcode : choice.ops) ops += (ops.empty() ? "" : ", ") + std::string(name(opcode));
  return fmt::format("{} for {} in {} {}", head, choice.word, ops, text);
}

// Tells whether the first rules are those of one choice, which its text gives again.
bool are_one_text(std::span<const Rule> rules) {
  if (!rules[0].choice || rules.size() < rules[0].choice->ops.size()) return false;
  const Result<std::vector<Rule>> again = parse_rules(choice_text(rules[0]));
  if (!again.ok()) return false;
  for (size_t i = 0; i < again->size(); ++i)
    if (print((*again)[i]) != print(rules[i]) || (*again)[i].choice != rules[i].choice)
      return false;
  return true;
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

std::string print(std::span<const Rule> rules) {
  std::string text;
  while (!rules.empty()) {
    const bool is_choice = are_one_text(rules);
    if (!text.empty()) text += "\n";
    text += is_choice ? choice_text(rules[0]) : print(rules[0]);
    rules = rules.subspan(is_choice ? rules[0].choice->ops.size() : 1);
  }
  return text;
}

}  // namespace hone
