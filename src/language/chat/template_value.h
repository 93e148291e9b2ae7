#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "language/chat/marked_text.h"

// Expressions of chat templates compute with these: the values of Python that templates use.

namespace hone {

// Bounds what a template does: each step, byte and item costs some.
class TemplateBudget {
 public:
  static constexpr int64_t kStep = 100, kItem = 50, kByte = 1;
  explicit TemplateBudget(int64_t work) : left_(work) {}
  Status spend(int64_t work);

 private:
  int64_t left_;
};

struct TemplateNode;
struct TemplateNamespace;
struct TemplateLoop;

// Texts, lists and dictionaries do not change once they are made, so none contains itself.
class TemplateValue {
 public:
  struct Undefined {
    std::string_view name;  // what was asked for; a part of the template, or a fixed text
  };
  struct None {};
  // A macro of the template, or a function that every template has.
  struct Function {
    const TemplateNode* macro;  // null: one of the functions
    std::string_view name;
  };
  using List = std::vector<TemplateValue>;
  using Dict = std::vector<std::pair<std::string, TemplateValue>>;  // in order; few keys
  template <class T>
  struct Held {
    T items;
    int64_t depth;  // of nesting
    bool is_tuple = false;
  };
  using Text = std::shared_ptr<const MarkedText>;
  using Items = std::shared_ptr<const Held<List>>;
  using Fields = std::shared_ptr<const Held<Dict>>;

  TemplateValue() : value_(Undefined{"a value"}) {}
  TemplateValue(bool value) : value_(value) {}                 // NOLINT: implicit
  TemplateValue(int64_t value) : value_(value) {}              // NOLINT: implicit
  TemplateValue(double value) : value_(value) {}               // NOLINT: implicit
  TemplateValue(Undefined value) : value_(value) {}            // NOLINT: implicit
  TemplateValue(None value) : value_(value) {}                 // NOLINT: implicit
  TemplateValue(Function value) : value_(value) {}             // NOLINT: implicit
  TemplateValue(TemplateNamespace* value) : value_(value) {}   // NOLINT: implicit
  TemplateValue(const TemplateLoop* value) : value_(value) {}  // NOLINT: implicit
  TemplateValue(const void*) = delete;
  static TemplateValue of_text(MarkedText text);
  static TemplateValue of_text(std::string_view text, bool is_given = false) {
    return of_text(MarkedText(text, is_given));
  }
  // Refused: nested too deeply.
  static Result<TemplateValue> of_list(List items, bool is_tuple = false);
  static Result<TemplateValue> of_dict(Dict fields);

  template <class T>
  const T* get() const {
    return std::get_if<T>(&value_);
  }
  const MarkedText* text() const {
    const Text* const found = get<Text>();
    return found == nullptr ? nullptr : found->get();
  }
  const List* list() const {
    const Items* const found = get<Items>();
    return found == nullptr ? nullptr : &(*found)->items;
  }
  const Dict* dict() const {
    const Fields* const found = get<Fields>();
    return found == nullptr ? nullptr : &(*found)->items;
  }
  bool is_undefined() const { return get<Undefined>() != nullptr; }
  bool is_none() const { return get<None>() != nullptr; }
  bool is_number() const;                  // bools too, as in Python
  std::optional<int64_t> integer() const;  // of a bool 0 or 1
  std::optional<double> real() const;      // of any number

  bool is_true() const;
  std::string_view kind() const;  // for messages: "a text"

 private:
  int64_t depth() const;

  std::variant<Undefined, None, bool, int64_t, double, Text, Items, Fields, Function,
               TemplateNamespace*, const TemplateLoop*>
      value_;
};

struct TemplateNamespace {
  TemplateValue::Dict fields;
};

const TemplateValue* field_of(const TemplateValue::Dict& dict, std::string_view name);
void set_field(TemplateValue::Dict& dict, std::string_view name, TemplateValue value);

Result<bool> equal_values(const TemplateValue& a, const TemplateValue& b, TemplateBudget& budget);
// Below, equal or above 0. Refused: values that have no order.
Result<int> compare_values(const TemplateValue& a, const TemplateValue& b, TemplateBudget& budget);

// As Python's str() and, where `is_nested`, repr() write it.
Status append_text(MarkedText& out, const TemplateValue& value, TemplateBudget& budget,
                   bool is_nested = false);
struct JsonStyle {
  std::optional<int64_t> indent = {};  // nothing: on one line
  bool ascii = false;
  bool sorted = false;
};
// As Python's json.dumps() writes it.
Status append_json(MarkedText& out, const TemplateValue& value, const JsonStyle& style,
                   TemplateBudget& budget, int64_t level = 0);

// Refused: other texts than JSON, and numbers beyond 64 bits.
Result<TemplateValue> template_value_of_json(std::string_view json);

}  // namespace hone
