#include <algorithm>

#include "base/text.h"
#include "language/chat/template_syntax.h"
#include "language/chat/template_tokens.h"

namespace hone {
namespace {

using Kind = TemplateToken::Kind;
using Node = Result<TemplateNodePtr>;

class TemplateParser {
 public:
  explicit TemplateParser(std::vector<TemplateToken> tokens) : tokens_(std::move(tokens)) {}

  Node read() {
    TemplateNodePtr all = HONE_TRY(block({}));
    if (now().kind != Kind::end) return unexpected();
    return all;
  }

 private:
  // ---- Tokens
  const TemplateToken& now() const { return tokens_[at_]; }
  const TemplateToken& after() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool is(Kind kind, std::string_view text) const {
    return now().kind == kind && now().text == text;
  }
  bool is_sign(std::string_view text) const { return is(Kind::sign, text); }
  bool is_word(std::string_view text) const { return is(Kind::name, text); }
  bool take(Kind kind, std::string_view text) {
    if (!is(kind, text)) return false;
    ++at_;
    return true;
  }
  bool take_sign(std::string_view text) { return take(Kind::sign, text); }
  bool take_word(std::string_view text) { return take(Kind::name, text); }
  Error error_here(Error error) const { return at_line(std::move(error), now().line); }
  Error unexpected() const {
    static constexpr std::string_view kKinds[] = {"text",   "{{", "}}", "{%", "%}",     "",
                                                  "a text", "",   "",   "",   "the end"};
    const std::string_view kind = kKinds[static_cast<size_t>(now().kind)];
    return error_here(bad_input(
        "{} is not expected here",
        kind.empty() || now().kind == Kind::string ? hone::quoted(excerpt(now().text)) : kind));
  }
  Status need_sign(std::string_view text) {
    if (take_sign(text)) return {};
    return unexpected().with_hint(fmt::format("'{}' was expected", text));
  }
  Result<std::string> need_name() {
    if (now().kind != Kind::name) return unexpected().with_hint("a name was expected");
    return tokens_[at_++].text;
  }
  Status need_block_end() {
    if (now().kind != Kind::block_end) return unexpected();
    ++at_;
    return {};
  }

  // ---- Nodes
  TemplateNodePtr node(Syntax kind) const {
    auto made = std::make_unique<TemplateNode>();
    made->kind = kind;
    made->line = now().line;
    return made;
  }
  template <class... Parts>
  Node node_of(Syntax kind, std::string_view name, Parts... parts) {
    TemplateNodePtr made = node(kind);
    made->name = name;
    (made->parts.push_back(std::move(parts)), ...);
    return checked(std::move(made));
  }
  // Runs of operators make trees that no recursion of the parser bounds.
  static Node checked(TemplateNodePtr made) {
    for (const TemplateNodePtr& part : made->parts)
      if (part != nullptr) made->depth = std::max(made->depth, part->depth + 1);
    for (const auto& [name, part] : made->named)
      if (part != nullptr) made->depth = std::max(made->depth, part->depth + 1);
    if (made->depth > kDeepestTemplate)
      return at_line(over_limit("the template is nested deeper than {}", kDeepestTemplate),
                     made->line);
    return made;
  }
  Status check_level() const {
    if (level_ <= kDeepestTemplate) return {};
    return error_here(over_limit("the template is nested deeper than {}", kDeepestTemplate));
  }

  // ---- Statements

  // Up to a block of one of the names, which is not taken; without names up to the end.
  Node block(std::initializer_list<std::string_view> ends) {
    const TemplateLevel level(level_);
    HONE_TRY(check_level());
    TemplateNodePtr made = node(Syntax::block);
    for (;;) {
      if (now().kind == Kind::end) {
        if (ends.size() == 0) return checked(std::move(made));
        return unexpected().with_hint(fmt::format("{} was expected", *(ends.end() - 1)));
      }
      if (now().kind == Kind::block_begin &&
          std::ranges::find(ends, std::string_view(after().text)) != ends.end() &&
          after().kind == Kind::name)
        return checked(std::move(made));
      if (TemplateNodePtr one = HONE_TRY(statement())) made->parts.push_back(std::move(one));
    }
  }

  // Null for one that does nothing.
  Node statement() {
    if (now().kind == Kind::text) {
      TemplateNodePtr made = node(Syntax::text);
      made->value = TemplateValue::of_text(tokens_[at_++].text);
      return made;
    }
    if (now().kind == Kind::print_begin) {
      ++at_;
      TemplateNodePtr made = HONE_TRY(node_of(Syntax::print, "", HONE_TRY(tuple())));
      if (now().kind != Kind::print_end) return unexpected();
      ++at_;
      return made;
    }
    if (now().kind != Kind::block_begin) return unexpected();
    ++at_;
    const int line = now().line;
    const std::string word = HONE_TRY(need_name());
    if (word == "if") return branch();
    if (word == "for") return loop();
    if (word == "set") return assignment();
    if (word == "macro") return macro();
    if (word == "generation") return generation();
    if (word == "break" || word == "continue") return jump(word == "break", line);
    constexpr std::string_view kOthers[] = {"include", "import",     "from",   "extends",
                                            "block",   "call",       "filter", "with",
                                            "do",      "autoescape", "trans",  "debug"};
    if (std::ranges::find(kOthers, word) != std::end(kOthers))
      return at_line(unsupported("hone does not know the block '{}'", word)
                         .with_hint("it knows if, for, set, macro, break, continue, raw"),
                     line);
    return at_line(bad_input("the block '{}' is not expected here", excerpt(word)), line);
  }

  Status close(std::string_view word) {
    ++at_;  // {%
    if (!take_word(word)) return unexpected();
    return need_block_end();
  }

  Node branch() {
    TemplateNodePtr made = node(Syntax::branch);
    made->parts.push_back(HONE_TRY(tuple()));
    HONE_TRY(need_block_end());
    for (;;) {
      made->parts.push_back(HONE_TRY(block({"elif", "else", "endif"})));
      ++at_;
      if (take_word("endif")) break;
      if (take_word("elif")) {
        made->parts.push_back(HONE_TRY(tuple()));
        HONE_TRY(need_block_end());
        continue;
      }
      ++at_;  // else
      HONE_TRY(need_block_end());
      made->parts.push_back(HONE_TRY(block({"endif"})));
      at_ += 2;
      break;
    }
    HONE_TRY(need_block_end());
    return checked(std::move(made));
  }

  Node loop() {
    TemplateNodePtr made = node(Syntax::loop);
    made->parts.push_back(HONE_TRY(target(false)));
    if (!take_word("in")) return unexpected().with_hint("'in' was expected");
    made->parts.push_back(HONE_TRY(tuple(false)));
    TemplateNodePtr condition;
    if (take_word("if")) condition = HONE_TRY(expression());
    if (is_word("recursive"))
      return error_here(unsupported("hone does not know loops that are recursive"));
    HONE_TRY(need_block_end());
    ++loops_;
    made->parts.push_back(HONE_TRY(block({"else", "endfor"})));
    --loops_;
    TemplateNodePtr nothing;
    if (after().text == "else") {
      at_ += 2;
      HONE_TRY(need_block_end());
      nothing = HONE_TRY(block({"endfor"}));
    }
    HONE_TRY(close("endfor"));
    made->parts.push_back(std::move(nothing));
    made->parts.push_back(std::move(condition));
    return checked(std::move(made));
  }

  Node jump(bool is_break, int line) {
    if (loops_ == 0)
      return at_line(bad_input("'{}' stands in no loop", is_break ? "break" : "continue"), line);
    HONE_TRY(need_block_end());
    return node(is_break ? Syntax::leave : Syntax::next);
  }

  // "a", "a, b" or "(a, b)"; with `has_members` "a.b" as well.
  Node target(bool has_members) {
    const TemplateLevel level(level_);
    HONE_TRY(check_level());
    const auto one = [&]() -> Node {
      if (take_sign("(")) {
        TemplateNodePtr inner = HONE_TRY(target(false));
        HONE_TRY(need_sign(")"));
        return inner;
      }
      TemplateNodePtr made = node(Syntax::name);
      made->name = HONE_TRY(need_name());
      if (!has_members || !take_sign(".")) return made;
      const std::string field = HONE_TRY(need_name());
      return node_of(Syntax::member, field, std::move(made));
    };
    TemplateNodePtr first = HONE_TRY(one());
    if (!is_sign(",")) return first;
    TemplateNodePtr made = node(Syntax::tuple);
    made->parts.push_back(std::move(first));
    while (take_sign(",")) {
      if (now().kind != Kind::name && !is_sign("(")) break;
      made->parts.push_back(HONE_TRY(one()));
    }
    return checked(std::move(made));
  }

  Node assignment() {
    TemplateNodePtr to = HONE_TRY(target(true));
    if (take_sign("=")) {
      TemplateNodePtr value = HONE_TRY(tuple());
      HONE_TRY(need_block_end());
      return node_of(Syntax::assign, "", std::move(to), std::move(value));
    }
    TemplateNodePtr filters;
    if (is_sign("|")) filters = HONE_TRY(postfix(node(Syntax::captured), true));
    HONE_TRY(need_block_end());
    TemplateNodePtr body = HONE_TRY(block({"endset"}));
    HONE_TRY(close("endset"));
    return node_of(Syntax::capture, "", std::move(to), std::move(body), std::move(filters));
  }

  Node macro() {
    TemplateNodePtr made = node(Syntax::macro);
    made->name = HONE_TRY(need_name());
    HONE_TRY(need_sign("("));
    while (!take_sign(")")) {
      if (!made->named.empty()) HONE_TRY(need_sign(","));
      std::string parameter = HONE_TRY(need_name());
      TemplateNodePtr fallback;
      if (take_sign("=")) fallback = HONE_TRY(expression());
      made->named.emplace_back(std::move(parameter), std::move(fallback));
    }
    HONE_TRY(need_block_end());
    const int loops = std::exchange(loops_, 0);
    made->parts.push_back(HONE_TRY(block({"endmacro"})));
    loops_ = loops;
    HONE_TRY(close("endmacro"));
    return checked(std::move(made));
  }

  // Marks what a model writes, for training; it is written as it is.
  Node generation() {
    HONE_TRY(need_block_end());
    TemplateNodePtr made = HONE_TRY(block({"endgeneration"}));
    HONE_TRY(close("endgeneration"));
    return made;
  }

  // ---- Expressions, the loosest first

  bool begins_expression() const {
    switch (now().kind) {
      case Kind::name:
        return !is_word("if") && !is_word("else") && !is_word("in") && !is_word("recursive");
      case Kind::string:
      case Kind::integer:
      case Kind::real: return true;
      case Kind::sign:
        return is_sign("(") || is_sign("[") || is_sign("{") || is_sign("-") || is_sign("+");
      default: return false;
    }
  }

  // "a", or "a, b" as a tuple.
  Node tuple(bool has_choice = true) {
    TemplateNodePtr first = HONE_TRY(has_choice ? expression() : either());
    if (!is_sign(",")) return first;
    TemplateNodePtr made = node(Syntax::tuple);
    made->parts.push_back(std::move(first));
    while (take_sign(",") && begins_expression())
      made->parts.push_back(HONE_TRY(has_choice ? expression() : either()));
    return checked(std::move(made));
  }

  Node expression() {
    const TemplateLevel level(level_);
    HONE_TRY(check_level());
    TemplateNodePtr value = HONE_TRY(either());
    while (take_word("if")) {
      TemplateNodePtr condition = HONE_TRY(either());
      TemplateNodePtr other;
      if (take_word("else")) other = HONE_TRY(expression());
      value = HONE_TRY(
          node_of(Syntax::choose, "", std::move(value), std::move(condition), std::move(other)));
    }
    return value;
  }

  template <class Next>
  Node chain(Syntax kind, std::string_view word, bool is_word, const Next& next) {
    TemplateNodePtr first = HONE_TRY(next());
    if (!is(is_word ? Kind::name : Kind::sign, word)) return first;
    TemplateNodePtr made = node(kind);
    made->parts.push_back(std::move(first));
    while (take(is_word ? Kind::name : Kind::sign, word)) made->parts.push_back(HONE_TRY(next()));
    return checked(std::move(made));
  }
  Node either() {
    return chain(Syntax::either, "or", true,
                 [&] { return chain(Syntax::all, "and", true, [&] { return negation(); }); });
  }

  Node negation() {
    const TemplateLevel level(level_);
    HONE_TRY(check_level());
    if (take_word("not")) return node_of(Syntax::unary, "not", HONE_TRY(negation()));
    return comparison();
  }

  // The comparison that stands here, or nothing.
  std::string comparison_here() {
    for (const char* sign : {"==", "!=", "<=", ">=", "<", ">"})
      if (take_sign(sign)) return sign;
    if (take_word("in")) return "in";
    if (is_word("not") && after().kind == Kind::name && after().text == "in") {
      at_ += 2;
      return "not in";
    }
    return "";
  }

  Node comparison() {
    TemplateNodePtr left = HONE_TRY(sum());
    std::string sign = comparison_here();
    if (sign.empty()) return left;
    TemplateNodePtr made = node(Syntax::compare);
    made->parts.push_back(std::move(left));
    for (; !sign.empty(); sign = comparison_here()) {
      made->names.push_back(sign);
      made->parts.push_back(HONE_TRY(sum()));
    }
    return checked(std::move(made));
  }

  // Operators of one strength, from left to right.
  template <class Next>
  Node run(std::initializer_list<const char*> signs, const Next& next) {
    TemplateNodePtr left = HONE_TRY(next());
    for (;;) {
      const auto* const sign =
          std::ranges::find_if(signs, [&](const char* one) { return is_sign(one); });
      if (sign == signs.end()) return left;
      ++at_;
      TemplateNodePtr right = HONE_TRY(next());
      left = HONE_TRY(node_of(Syntax::binary, *sign, std::move(left), std::move(right)));
    }
  }
  Node sum() {
    return run({"+", "-"}, [&] {
      return chain(Syntax::join, "~", false, [&] {
        return run({"*", "//", "/", "%"},
                   [&] { return run({"**"}, [&] { return signed_value(true); }); });
      });
    });
  }

  Node signed_value(bool has_filters) {
    const TemplateLevel level(level_);
    HONE_TRY(check_level());
    TemplateNodePtr value;
    if (is_sign("-") || is_sign("+")) {
      const std::string sign = tokens_[at_++].text;
      TemplateNodePtr operand = HONE_TRY(signed_value(false));
      value = HONE_TRY(node_of(Syntax::unary, sign, std::move(operand)));
    } else {
      value = HONE_TRY(primary());
    }
    return postfix(std::move(value), has_filters);
  }

  Node primary() {
    const TemplateToken& token = now();
    TemplateNodePtr made = node(Syntax::constant);
    switch (token.kind) {
      case Kind::name: return word();
      case Kind::integer: {
        const Result<int64_t> number = parse_int(token.text);
        if (!number.ok())
          return error_here(unsupported("the number {} is beyond 64 bits", excerpt(token.text)));
        made->value = *number;
        break;
      }
      case Kind::real: made->value = HONE_TRY(parse_double(token.text)); break;
      case Kind::string: {
        std::string text;
        while (now().kind == Kind::string) text += tokens_[at_++].text;
        made->value = TemplateValue::of_text(text);
        return made;
      }
      case Kind::sign:
        if (take_sign("(")) return grouped();
        if (take_sign("[")) return list();
        if (take_sign("{")) return dict();
        return unexpected();
      default: return unexpected();
    }
    ++at_;
    return made;
  }

  Node word() {
    const std::string text = HONE_TRY(need_name());
    TemplateNodePtr made = node(Syntax::constant);
    if (text == "true" || text == "True" || text == "false" || text == "False") {
      made->value = text[0] == 't' || text[0] == 'T';
    } else if (text == "none" || text == "None") {
      made->value = TemplateValue::None();
    } else {
      made->kind = Syntax::name;
      made->name = text;
    }
    return made;
  }

  Node grouped() {
    if (take_sign(")")) return node(Syntax::tuple);
    TemplateNodePtr inner = HONE_TRY(tuple());
    HONE_TRY(need_sign(")"));
    return inner;
  }
  Node list() {
    TemplateNodePtr made = node(Syntax::list);
    while (!take_sign("]")) {
      if (!made->parts.empty()) HONE_TRY(need_sign(","));
      if (take_sign("]")) break;
      made->parts.push_back(HONE_TRY(expression()));
    }
    return checked(std::move(made));
  }
  Node dict() {
    TemplateNodePtr made = node(Syntax::dict);
    while (!take_sign("}")) {
      if (!made->parts.empty()) HONE_TRY(need_sign(","));
      if (take_sign("}")) break;
      made->parts.push_back(HONE_TRY(expression()));
      HONE_TRY(need_sign(":"));
      made->parts.push_back(HONE_TRY(expression()));
    }
    return checked(std::move(made));
  }

  // Members, items, calls, filters and tests behind a value.
  Node postfix(TemplateNodePtr value, bool has_filters) {
    for (;;) {
      if (take_sign(".")) {
        value = HONE_TRY(member(std::move(value)));
      } else if (take_sign("[")) {
        value = HONE_TRY(item(std::move(value)));
      } else if (take_sign("(")) {
        TemplateNodePtr made = node(Syntax::call);
        made->parts.push_back(std::move(value));
        HONE_TRY(arguments(*made));
        value = HONE_TRY(checked(std::move(made)));
      } else if (has_filters && take_sign("|")) {
        TemplateNodePtr made = node(Syntax::filter);
        made->name = HONE_TRY(need_name());
        made->parts.push_back(std::move(value));
        if (take_sign("(")) HONE_TRY(arguments(*made));
        value = HONE_TRY(checked(std::move(made)));
      } else if (has_filters && take_word("is")) {
        value = HONE_TRY(test(std::move(value)));
      } else {
        return value;
      }
    }
  }

  Node member(TemplateNodePtr object) {
    if (now().kind != Kind::integer) {
      const std::string name = HONE_TRY(need_name());
      return node_of(Syntax::member, name, std::move(object));
    }
    TemplateNodePtr index = HONE_TRY(primary());
    return node_of(Syntax::item, "", std::move(object), std::move(index));
  }

  Node item(TemplateNodePtr object) {
    TemplateNodePtr parts[3];
    int colons = 0;
    while (!is_sign("]") && !is_sign(",")) {
      if (take_sign(":")) {
        if (++colons > 2) return unexpected();
        continue;
      }
      if (parts[colons] != nullptr) return unexpected();
      parts[colons] = HONE_TRY(expression());
    }
    if (is_sign(","))
      return error_here(unsupported("hone does not know an item of several indices"));
    ++at_;
    if (colons == 0 && parts[0] == nullptr) return unexpected();
    if (colons == 0) return node_of(Syntax::item, "", std::move(object), std::move(parts[0]));
    return node_of(Syntax::slice, "", std::move(object), std::move(parts[0]), std::move(parts[1]),
                   std::move(parts[2]));
  }

  // "(" was taken.
  Status arguments(TemplateNode& to) {
    for (bool first = true; !take_sign(")"); first = false) {
      if (!first) HONE_TRY(need_sign(","));
      if (take_sign(")")) break;
      if (is_sign("*") || is_sign("**"))
        return error_here(unsupported("hone does not know arguments from a list ('*')"));
      if (now().kind == Kind::name && after().kind == Kind::sign && after().text == "=") {
        std::string name = HONE_TRY(need_name());
        ++at_;
        to.named.emplace_back(std::move(name), HONE_TRY(expression()));
      } else if (!to.named.empty()) {
        return unexpected().with_hint("arguments without a name come first");
      } else {
        to.parts.push_back(HONE_TRY(expression()));
      }
    }
    return {};
  }

  // "is" was taken.
  Node test(TemplateNodePtr value) {
    const bool is_negated = take_word("not");
    TemplateNodePtr made = node(Syntax::test);
    made->name = HONE_TRY(need_name());
    made->parts.push_back(std::move(value));
    const bool ends = is_word("else") || is_word("or") || is_word("and") || is_word("if") ||
                      is_word("not") || is_word("in") || is_word("is") || is_sign("-") ||
                      is_sign("+");
    if (take_sign("(")) {
      HONE_TRY(arguments(*made));
      if (!made->named.empty()) return unexpected();
    } else if (begins_expression() && !ends) {
      made->parts.push_back(HONE_TRY(postfix(HONE_TRY(primary()), false)));
    }
    made = HONE_TRY(checked(std::move(made)));
    if (!is_negated) return made;
    return node_of(Syntax::unary, "not", std::move(made));
  }

  const std::vector<TemplateToken> tokens_;
  size_t at_ = 0;
  int level_ = 0;
  int loops_ = 0;
};

}  // namespace

Result<TemplateNodePtr> parse_template(std::string_view text) {
  return TemplateParser(HONE_TRY(template_tokens(text))).read();
}

}  // namespace hone
