#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "language/characters.h"
#include "language/chat/template_value.h"

namespace hone {
namespace {

// The shortest digits that give the number, as Python writes them: with an exponent below 1e-4
// and from 1e16 on.
std::string python_real(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const double size = std::abs(value);
  const bool has_exponent = size != 0 && (size < 1e-4 || size >= 1e16);
  std::array<char, 400> buffer = {};
  const std::to_chars_result end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                    has_exponent ? std::chars_format::scientific : std::chars_format::fixed);
  std::string text(buffer.data(), end.ptr);
  if (!has_exponent && text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::string json_real(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return python_real(value);
}

constexpr char32_t kDelete = 0x7F, kLastControl = 0x9F, kPlanes = 0x10000;

// How Python writes a character between quotes; nothing: as it is. Characters that Unicode has not
// assigned are written as they are.
std::string python_escape(char32_t code, char quote) {
  switch (code) {
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    case '\\': return "\\\\";
    default: break;
  }
  if (code == static_cast<char32_t>(quote)) return fmt::format("\\{}", quote);
  if (code < ' ' || (code >= kDelete && code <= kLastControl) ||
      (code > ' ' && code < 0x100 && kind_of(code) == CharacterKind::blank))
    return fmt::format("\\x{:02x}", static_cast<uint32_t>(code));
  if (code > ' ' && kind_of(code) == CharacterKind::blank)
    return fmt::format("\\u{:04x}", static_cast<uint32_t>(code));
  return "";
}

std::string json_escape(char32_t code, bool ascii) {
  switch (code) {
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    case '\b': return "\\b";
    case '\f': return "\\f";
    case '"': return "\\\"";
    case '\\': return "\\\\";
    default: break;
  }
  const auto number = static_cast<uint32_t>(code);
  if (code < ' ' || (ascii && code >= kDelete && code < kPlanes && code != kDelete))
    return fmt::format("\\u{:04x}", number);
  if (ascii && code >= kPlanes && code != kNoCharacter)
    return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((number - kPlanes) >> 10),
                       0xDC00 + ((number - kPlanes) & 0x3FF));
  return "";
}

template <class Escape>
void append_escaped(MarkedText& out, const MarkedText& text, const Escape& escape) {
  for (size_t at = 0; at < text.size();) {
    const Character next = first_character(text.bytes().substr(at));
    const std::string changed = escape(next.code);
    if (changed.empty())
      out.append(text, at, next.bytes);
    else
      out.append(changed, text.is_given(at, next.bytes));
    at += next.bytes;
  }
}

void append_python_text(MarkedText& out, const MarkedText& text) {
  const bool has_single = text.bytes().find('\'') != std::string_view::npos;
  const bool has_double = text.bytes().find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  out.append({&quote, 1}, false);
  append_escaped(out, text, [&](char32_t code) { return python_escape(code, quote); });
  out.append({&quote, 1}, false);
}

void append_json_text(MarkedText& out, const MarkedText& text, bool ascii) {
  out.append("\"", false);
  append_escaped(out, text, [&](char32_t code) { return json_escape(code, ascii); });
  out.append("\"", false);
}

Status append_list(MarkedText& out, const TemplateValue::Held<TemplateValue::List>& list,
                   TemplateBudget& budget) {
  out.append(list.is_tuple ? "(" : "[", false);
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) out.append(", ", false);
    HONE_TRY(append_text(out, list.items[i], budget, true));
  }
  if (list.is_tuple && list.items.size() == 1) out.append(",", false);
  out.append(list.is_tuple ? ")" : "]", false);
  return {};
}

Status append_dict(MarkedText& out, const TemplateValue::Dict& dict, TemplateBudget& budget) {
  out.append("{", false);
  for (size_t i = 0; i < dict.size(); ++i) {
    if (i > 0) out.append(", ", false);
    append_python_text(out, MarkedText(dict[i].first));
    out.append(": ", false);
    HONE_TRY(append_text(out, dict[i].second, budget, true));
  }
  out.append("}", false);
  return {};
}

// "[1, 2]" on one line, or each item on its own, indented.
class JsonItems {
 public:
  JsonItems(MarkedText& out, const JsonStyle& style, int64_t level, std::string_view ends)
      : out_(out), style_(style), level_(level), ends_(ends) {
    out_.append(ends_.substr(0, 1), false);
  }
  void next() {
    if (count_++ > 0) out_.append(style_.indent ? "," : ", ", false);
    line(level_ + 1);
  }
  void close() {
    if (count_ > 0) line(level_);
    out_.append(ends_.substr(1), false);
  }

 private:
  void line(int64_t level) {
    if (style_.indent)
      out_.append("\n" + std::string(static_cast<size_t>(*style_.indent * level), ' '), false);
  }
  MarkedText& out_;
  const JsonStyle& style_;
  const int64_t level_;
  const std::string_view ends_;
  int64_t count_ = 0;
};

Status append_json_dict(MarkedText& out, TemplateValue::Dict dict, const JsonStyle& style,
                        TemplateBudget& budget, int64_t level) {
  if (style.sorted)
    std::ranges::sort(dict, {}, [](const auto& one) -> const std::string& { return one.first; });
  JsonItems items(out, style, level, "{}");
  for (const auto& [name, value] : dict) {
    items.next();
    append_json_text(out, MarkedText(name), style.ascii);
    out.append(": ", false);
    HONE_TRY(append_json(out, value, style, budget, level + 1));
  }
  items.close();
  return {};
}

}  // namespace

Status append_text(MarkedText& out, const TemplateValue& value, TemplateBudget& budget,
                   bool is_nested) {
  HONE_TRY(budget.spend(TemplateBudget::kItem));
  if (const MarkedText* const text = value.text()) {
    HONE_TRY(budget.spend(static_cast<int64_t>(text->size())));
    if (is_nested)
      append_python_text(out, *text);
    else
      out.append(*text);
  } else if (value.is_undefined()) {
    if (is_nested) out.append("Undefined", false);
  } else if (value.is_none()) {
    out.append("None", false);
  } else if (const bool* const flag = value.get<bool>()) {
    out.append(*flag ? "True" : "False", false);
  } else if (const int64_t* const number = value.get<int64_t>()) {
    out.append(fmt::format("{}", *number), false);
  } else if (const double* const number = value.get<double>()) {
    out.append(python_real(*number), false);
  } else if (const auto* const items = value.get<TemplateValue::Items>()) {
    return append_list(out, **items, budget);
  } else if (const TemplateValue::Dict* const fields = value.dict()) {
    return append_dict(out, *fields, budget);
  } else {
    return bad_input("{} has no text", value.kind());
  }
  return {};
}

Status append_json(MarkedText& out, const TemplateValue& value, const JsonStyle& style,
                   TemplateBudget& budget, int64_t level) {
  HONE_TRY(budget.spend(TemplateBudget::kItem + style.indent.value_or(0) * level));
  if (const MarkedText* const text = value.text()) {
    HONE_TRY(budget.spend(static_cast<int64_t>(text->size())));
    append_json_text(out, *text, style.ascii);
  } else if (value.is_none()) {
    out.append("null", false);
  } else if (const bool* const flag = value.get<bool>()) {
    out.append(*flag ? "true" : "false", false);
  } else if (const int64_t* const number = value.get<int64_t>()) {
    out.append(fmt::format("{}", *number), false);
  } else if (const double* const number = value.get<double>()) {
    out.append(json_real(*number), false);
  } else if (const TemplateValue::List* const list = value.list()) {
    JsonItems items(out, style, level, "[]");
    for (const TemplateValue& one : *list) {
      items.next();
      HONE_TRY(append_json(out, one, style, budget, level + 1));
    }
    items.close();
  } else if (const TemplateValue::Dict* const fields = value.dict()) {
    return append_json_dict(out, *fields, style, budget, level);
  } else {
    return bad_input("{} cannot be written as JSON", value.kind());
  }
  return {};
}

}  // namespace hone
