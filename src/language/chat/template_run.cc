#include "language/chat/template_run.h"

#include <algorithm>
#include <deque>
#include <map>

#include "base/text.h"
#include "language/chat/template_functions.h"
#include "language/chat/template_numbers.h"
#include "language/chat/template_tokens.h"

namespace hone {
namespace {

using Made = Result<TemplateValue>;
constexpr int kDeepestRun = 300;  // of nested nodes, macros that call one another included

constexpr std::string_view kFunctions[] = {"range", "namespace", "dict", "raise_exception"};

class TemplateRun {
 public:
  TemplateRun(const TemplateValue::Dict& variables, int64_t work) : budget_(work) {
    scopes_.push_back({variables, nullptr});
    scope_ = &scopes_.back();
  }

  Result<MarkedText> run(const TemplateNode& tree) {
    HONE_TRY(statement(tree));
    return std::move(out_);
  }

 private:
  struct Scope {
    TemplateValue::Dict names;
    Scope* outer;
  };
  enum class Jump : uint8_t { none, leave, next };

  Status enter(const TemplateNode& node) {
    if (depth_ > kDeepestRun)
      return at_line(over_limit("the template runs deeper than {}", kDeepestRun), node.line);
    return budget_.spend(TemplateBudget::kStep);
  }
  template <class T>
  static Result<T> placed(Result<T> made, const TemplateNode& node) {
    if (made.ok() || !made.error().where().empty()) return made;
    return at_line(std::move(made).error(), node.line);
  }

  // ---- Names

  const TemplateValue* find(std::string_view name) const {
    for (const Scope* scope = scope_; scope != nullptr; scope = scope->outer)
      if (const TemplateValue* const found = field_of(scope->names, name)) return found;
    return nullptr;
  }
  Made lookup(const std::string& name) {
    int64_t known = 0;
    for (const Scope* scope = scope_; scope != nullptr; scope = scope->outer)
      known += std::ssize(scope->names) + 1;
    HONE_TRY(budget_.spend(known));
    if (const TemplateValue* const found = find(name)) return *found;
    if (const auto* const function = std::ranges::find(kFunctions, std::string_view(name));
        function != std::end(kFunctions))
      return TemplateValue(TemplateValue::Function{nullptr, *function});
    return TemplateValue(TemplateValue::Undefined{name});
  }
  class Inside {
   public:
    Inside(TemplateRun& run, Scope* outer) : run_(run), before_(run.scope_) {
      run.scopes_.push_back({{}, outer});
      run.scope_ = &run.scopes_.back();
    }
    ~Inside() { run_.scope_ = before_; }
    Inside(const Inside&) = delete;

   private:
    TemplateRun& run_;
    Scope* const before_;
  };

  Status assign(const TemplateNode& target, TemplateValue value) {
    if (target.kind == Syntax::name) {
      set_field(scope_->names, target.name, std::move(value));
      return budget_.spend(std::ssize(scope_->names));
    }
    if (target.kind == Syntax::member) {
      const TemplateValue object = HONE_TRY(lookup(target.parts[0]->name));
      auto* const* const space = object.get<TemplateNamespace*>();
      if (space == nullptr)
        return at_line(bad_input("'{}' is no namespace, so its members cannot be set",
                                 excerpt(target.parts[0]->name)),
                       target.line);
      set_field((*space)->fields, target.name, std::move(value));
      return budget_.spend(std::ssize((*space)->fields));
    }
    const TemplateValue::List items = HONE_TRY(placed(items_of(value, budget_), target));
    if (items.size() != target.parts.size())
      return at_line(
          bad_input("{} values are given to {} names", items.size(), target.parts.size()),
          target.line);
    for (size_t i = 0; i < items.size(); ++i) HONE_TRY(assign(*target.parts[i], items[i]));
    return {};
  }

  // ---- Statements

  Status write(const TemplateValue& value, const TemplateNode& node) {
    Status written = append_text(out_, value, budget_);
    if (!written.ok()) return at_line(std::move(written).error(), node.line);
    return {};
  }

  Status statement(const TemplateNode& node) {
    const TemplateLevel level(depth_);
    HONE_TRY(enter(node));
    switch (node.kind) {
      case Syntax::text: return write(node.value, node);
      case Syntax::print: return write(HONE_TRY(value_of(*node.parts[0])), node);
      case Syntax::block:
        for (const TemplateNodePtr& part : node.parts) {
          HONE_TRY(statement(*part));
          if (jump_ != Jump::none) break;
        }
        return {};
      case Syntax::branch: return branch(node);
      case Syntax::loop: return loop(node);
      case Syntax::assign: return assign(*node.parts[0], HONE_TRY(value_of(*node.parts[1])));
      case Syntax::capture: return capture(node);
      case Syntax::macro:
        macro_scopes_[&node] = scope_;
        set_field(scope_->names, node.name, TemplateValue::Function{&node, node.name});
        return {};
      case Syntax::leave: jump_ = Jump::leave; return {};
      case Syntax::next: jump_ = Jump::next; return {};
      default: HONE_CHECK(false, "{} is no statement", static_cast<int>(node.kind)); return {};
    }
  }

  Status branch(const TemplateNode& node) {
    size_t i = 0;
    for (; i + 1 < node.parts.size(); i += 2)
      if (HONE_TRY(value_of(*node.parts[i])).is_true()) return statement(*node.parts[i + 1]);
    return i < node.parts.size() ? statement(*node.parts[i]) : Status();
  }

  Status loop(const TemplateNode& node) {
    TemplateLoop& state = loops_.emplace_back();
    const TemplateNode& target = *node.parts[0];
    state.items = HONE_TRY(placed(items_of(HONE_TRY(value_of(*node.parts[1])), budget_), node));
    if (node.parts[4] != nullptr) HONE_TRY(keep_those(state.items, target, *node.parts[4]));
    for (state.index = 0; state.index < std::ssize(state.items); ++state.index) {
      const Inside inside(*this, scope_);
      set_field(scope_->names, "loop", TemplateValue(&state));
      HONE_TRY(assign(target, state.items[static_cast<size_t>(state.index)]));
      HONE_TRY(statement(*node.parts[2]));
      if (std::exchange(jump_, Jump::none) == Jump::leave) break;
    }
    if (state.items.empty() && node.parts[3] != nullptr) return statement(*node.parts[3]);
    return {};
  }

  Status keep_those(TemplateValue::List& items, const TemplateNode& target,
                    const TemplateNode& condition) {
    TemplateValue::List kept;
    for (TemplateValue& item : items) {
      const Inside inside(*this, scope_);
      HONE_TRY(assign(target, item));
      if (HONE_TRY(value_of(condition)).is_true()) kept.push_back(std::move(item));
    }
    items = std::move(kept);
    return {};
  }

  // The text that a block writes.
  Result<MarkedText> written_by(const TemplateNode& block) {
    MarkedText before = std::exchange(out_, MarkedText());
    Status ran = statement(block);
    MarkedText made = std::exchange(out_, std::move(before));
    if (!ran.ok()) return std::move(ran).error();
    return made;
  }

  Status capture(const TemplateNode& node) {
    TemplateValue text;
    {
      const Inside inside(*this, scope_);
      text = TemplateValue::of_text(HONE_TRY(written_by(*node.parts[1])));
    }
    if (node.parts[2] != nullptr) {
      const TemplateValue before = std::exchange(captured_, text);
      Made filtered = value_of(*node.parts[2]);
      captured_ = before;
      text = HONE_TRY(std::move(filtered));
    }
    return assign(*node.parts[0], std::move(text));
  }

  // ---- Expressions

  Made value_of(const TemplateNode& node) {
    const TemplateLevel level(depth_);
    HONE_TRY(enter(node));
    return placed(plain_value_of(node), node);
  }

  Made plain_value_of(const TemplateNode& node) {
    switch (node.kind) {
      case Syntax::constant: return node.value;
      case Syntax::captured: return captured_;
      case Syntax::name: return lookup(node.name);
      case Syntax::list: return TemplateValue::of_list(HONE_TRY(values_of(node, 0)));
      case Syntax::tuple: return TemplateValue::of_list(HONE_TRY(values_of(node, 0)), true);
      case Syntax::dict: return dict(node);
      case Syntax::member: return member_of(HONE_TRY(value_of(*node.parts[0])), node.name);
      case Syntax::item: {
        const TemplateValue object = HONE_TRY(value_of(*node.parts[0]));
        return item_of(object, HONE_TRY(value_of(*node.parts[1])), budget_);
      }
      case Syntax::slice: return slice(node);
      case Syntax::call: return call(node);
      case Syntax::filter: {
        const TemplateValue value = HONE_TRY(value_of(*node.parts[0]));
        return apply_filter(node.name, value, HONE_TRY(arguments_of(node)), budget_);
      }
      case Syntax::test: {
        const TemplateValue value = HONE_TRY(value_of(*node.parts[0]));
        const TemplateValue::List given = HONE_TRY(values_of(node, 1));
        return TemplateValue(HONE_TRY(apply_test(node.name, value, given, budget_)));
      }
      default: return operator_value_of(node);
    }
  }

  Made operator_value_of(const TemplateNode& node) {
    switch (node.kind) {
      case Syntax::unary: {
        const TemplateValue operand = HONE_TRY(value_of(*node.parts[0]));
        if (node.name == "not") return TemplateValue(!operand.is_true());
        if (node.name == "-") return negative_value(operand);
        if (!operand.is_number()) return bad_input("'+' takes no {}", operand.kind());
        return operand.integer() ? TemplateValue(*operand.integer()) : operand;
      }
      case Syntax::binary: {
        const TemplateValue left = HONE_TRY(value_of(*node.parts[0]));
        return binary_value(node.name, left, HONE_TRY(value_of(*node.parts[1])), budget_);
      }
      case Syntax::join: {
        MarkedText made;
        for (const TemplateNodePtr& part : node.parts)
          HONE_TRY(append_text(made, HONE_TRY(value_of(*part)), budget_));
        return TemplateValue::of_text(std::move(made));
      }
      case Syntax::either:
      case Syntax::all: {
        TemplateValue value;
        for (const TemplateNodePtr& part : node.parts) {
          value = HONE_TRY(value_of(*part));
          if (value.is_true() == (node.kind == Syntax::either)) break;
        }
        return value;
      }
      case Syntax::compare: return comparison(node);
      case Syntax::choose:
        if (HONE_TRY(value_of(*node.parts[1])).is_true()) return value_of(*node.parts[0]);
        if (node.parts[2] != nullptr) return value_of(*node.parts[2]);
        return TemplateValue(TemplateValue::Undefined{"the value of an 'if' without 'else'"});
      default: HONE_CHECK(false, "{} is no expression", static_cast<int>(node.kind));
    }
    return TemplateValue();
  }

  Result<TemplateValue::List> values_of(const TemplateNode& node, size_t first) {
    TemplateValue::List values;
    for (size_t i = first; i < node.parts.size(); ++i) {
      const TemplateNode& part = *node.parts[i];
      values.push_back(HONE_TRY(value_of(part)));
    }
    return values;
  }
  Result<TemplateArguments> arguments_of(const TemplateNode& node) {
    TemplateArguments made = {.items = HONE_TRY(values_of(node, 1))};
    for (const auto& [name, part] : node.named) {
      TemplateValue value = HONE_TRY(value_of(*part));
      made.named.emplace_back(name, std::move(value));
    }
    return made;
  }

  Made dict(const TemplateNode& node) {
    TemplateValue::Dict fields;
    for (size_t i = 0; i < node.parts.size(); i += 2) {
      const TemplateValue key = HONE_TRY(value_of(*node.parts[i]));
      if (key.text() == nullptr)
        return unsupported("hone knows texts as keys of a dictionary, not {}", key.kind());
      HONE_TRY(budget_.spend(std::ssize(fields)));
      set_field(fields, key.text()->bytes(), HONE_TRY(value_of(*node.parts[i + 1])));
    }
    return TemplateValue::of_dict(std::move(fields));
  }

  Made slice(const TemplateNode& node) {
    const TemplateValue object = HONE_TRY(value_of(*node.parts[0]));
    TemplateValue ends[3] = {TemplateValue::None(), TemplateValue::None(), TemplateValue::None()};
    for (size_t i = 0; i < 3; ++i)
      if (node.parts[i + 1] != nullptr) ends[i] = HONE_TRY(value_of(*node.parts[i + 1]));
    if (object.is_undefined()) return member_of(object, "[:]");
    return slice_of(object, ends[0], ends[1], ends[2], budget_);
  }

  Result<bool> holds(std::string_view sign, const TemplateValue& left, const TemplateValue& right) {
    if (sign == "in") return contains(right, left, budget_);
    if (sign == "not in") return !HONE_TRY(contains(right, left, budget_));
    if (sign == "==") return equal_values(left, right, budget_);
    if (sign == "!=") return !HONE_TRY(equal_values(left, right, budget_));
    const int order = HONE_TRY(compare_values(left, right, budget_));
    if (sign == "<") return order < 0;
    if (sign == "<=") return order <= 0;
    return sign == ">" ? order > 0 : order >= 0;
  }
  Made comparison(const TemplateNode& node) {
    TemplateValue left = HONE_TRY(value_of(*node.parts[0]));
    for (size_t i = 0; i < node.names.size(); ++i) {
      TemplateValue right = HONE_TRY(value_of(*node.parts[i + 1]));
      if (!HONE_TRY(holds(node.names[i], left, right))) return TemplateValue(false);
      left = std::move(right);
    }
    return TemplateValue(true);
  }

  // ---- Calls

  Made call(const TemplateNode& node) {
    const TemplateNode& callee = *node.parts[0];
    if (callee.kind == Syntax::member) {
      const TemplateValue object = HONE_TRY(value_of(*callee.parts[0]));
      const TemplateArguments given = HONE_TRY(arguments_of(node));
      return call_method(object, callee.name, given, budget_);
    }
    const TemplateValue function = HONE_TRY(value_of(callee));
    const TemplateArguments given = HONE_TRY(arguments_of(node));
    if (const auto* const undefined = function.get<TemplateValue::Undefined>())
      return unsupported("hone does not know the function {}",
                         hone::quoted(excerpt(undefined->name)))
          .with_hint(fmt::format("it knows {}", join(kFunctions, ", ")));
    const auto* const known = function.get<TemplateValue::Function>();
    if (known == nullptr) return bad_input("{} is no function", function.kind());
    return known->macro != nullptr ? call_macro(*known->macro, given)
                                   : call_function(known->name, given);
  }

  Made call_macro(const TemplateNode& macro, const TemplateArguments& given) {
    std::vector<std::string_view> names;
    for (const auto& [name, fallback] : macro.named) names.push_back(name);
    const std::vector<const TemplateValue*> bound = HONE_TRY(bound_arguments(given, names, 0));
    const Inside inside(*this, macro_scopes_.at(&macro));
    for (size_t i = 0; i < names.size(); ++i) {
      TemplateValue value = TemplateValue::Undefined{names[i]};
      if (bound[i] != nullptr)
        value = *bound[i];
      else if (macro.named[i].second != nullptr)
        value = HONE_TRY(value_of(*macro.named[i].second));
      set_field(scope_->names, names[i], std::move(value));
    }
    return TemplateValue::of_text(HONE_TRY(written_by(*macro.parts[0])));
  }

  Made call_function(std::string_view name, const TemplateArguments& given) {
    if (name == "range") return range(given);
    if (name == "raise_exception") {
      constexpr std::string_view kNames[] = {"message"};
      const auto bound = HONE_TRY(bound_arguments(given, kNames, 1));
      const MarkedText why = HONE_TRY(text_of(*bound[0], budget_));
      return bad_input("the template refuses these messages: {}", excerpt(why.bytes()));
    }
    TemplateValue::Dict fields;
    if (given.items.size() > 1) return bad_input("{}() takes one dictionary, or names", name);
    if (given.items.size() == 1) {
      if (given.items[0].dict() == nullptr)
        return unsupported("hone knows {}() of a dictionary, not of {}", name,
                           given.items[0].kind());
      fields = *given.items[0].dict();
    }
    HONE_TRY(budget_.spend(TemplateBudget::kItem * std::ssize(fields)));
    for (const auto& [key, value] : given.named) set_field(fields, key, value);
    if (name == "dict") return TemplateValue::of_dict(std::move(fields));
    spaces_.push_back({std::move(fields)});
    return TemplateValue(&spaces_.back());
  }

  Made range(const TemplateArguments& given) {
    constexpr std::string_view kNames[] = {"start", "stop", "step"};
    (void)HONE_TRY(bound_arguments(given, kNames, 0));
    int64_t ends[3] = {0, 0, 1};
    const size_t count = given.items.size();
    if (count == 0 || !given.named.empty()) return bad_input("range() takes 1 to 3 integers");
    for (size_t i = 0; i < count; ++i) {
      const std::optional<int64_t> number = given.items[i].integer();
      if (!number) return bad_input("range() takes no {}", given.items[i].kind());
      ends[count == 1 ? 1 : i] = *number;
    }
    if (ends[2] == 0) return bad_input("the step of range() is 0");
    const double steps = (static_cast<double>(ends[1]) - static_cast<double>(ends[0])) /
                         static_cast<double>(ends[2]);
    HONE_TRY(
        budget_.spend(TemplateBudget::kItem * static_cast<int64_t>(std::clamp(steps, 0.0, 1e12))));
    TemplateValue::List items;
    for (int64_t at = ends[0]; ends[2] > 0 ? at < ends[1] : at > ends[1];) {
      items.emplace_back(at);
      if (__builtin_add_overflow(at, ends[2], &at)) break;
    }
    return TemplateValue::of_list(std::move(items));
  }

  TemplateBudget budget_;
  MarkedText out_;
  int depth_ = 0;
  Jump jump_ = Jump::none;
  TemplateValue captured_;
  // They live as long as the run: values point to them.
  std::deque<Scope> scopes_;
  std::deque<TemplateLoop> loops_;
  std::deque<TemplateNamespace> spaces_;
  std::map<const TemplateNode*, Scope*> macro_scopes_;
  Scope* scope_ = nullptr;
};

}  // namespace

Result<MarkedText> run_template(const TemplateNode& tree, const TemplateValue::Dict& variables,
                                int64_t work) {
  return TemplateRun(variables, work).run(tree);
}

}  // namespace hone
