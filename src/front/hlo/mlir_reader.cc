#include "front/hlo/mlir_reader.h"

#include <array>
#include <optional>
#include <utility>

#include "base/text.h"

namespace hone::hlo {
namespace {

using Kind = Attribute::Kind;

}  // namespace

ValueType MlirReader::foreign(size_t begin, std::string_view lack) {
  if (cursor.peek() == '<') cursor.brackets();
  return {.kind = ValueType::Kind::foreign, .text = trim(cursor.from(begin)), .lack = lack};
}

ValueType MlirReader::type() {
  const Depth nested(depth, cursor);
  (void)cursor.peek();
  const size_t begin = cursor.at();
  if (cursor.accept("!")) {
    const std::string_view name = cursor.need_word("the name of a type");
    if (name.ends_with(".token"))
      return {.kind = ValueType::Kind::token, .text = cursor.from(begin)};
    return foreign(begin, name.starts_with("quant") ? "quantized numbers" : "such types");
  }
  if (cursor.peek() == '(') {
    cursor.brackets();
    cursor.expect("->", "the arguments of a function's type");
    (void)type_list();
    return foreign(begin, "functions as values");
  }
  const std::string_view name = cursor.need_word("a type");
  if (name == "tensor" && cursor.accept("<")) return tensor_type(begin);
  if (name == "tuple" && cursor.accept("<")) {
    ValueType tuple = {.kind = ValueType::Kind::tuple};
    while (!cursor.accept(">")) {
      tuple.parts.push_back(type());
      if (!cursor.accept(",") && cursor.peek() != '>') cursor.expect(">", "the types of a tuple");
    }
    tuple.text = cursor.from(begin);
    return tuple;
  }
  return foreign(begin, "values that are no tensors");
}

// Behind "tensor<".
ValueType MlirReader::tensor_type(size_t begin) {
  Dims dims;
  std::string_view lack;
  const size_t inside = cursor.at();
  while (cursor.peek() == '?' || (cursor.peek() >= '0' && cursor.peek() <= '9')) {
    dims.push_back(cursor.accept("?") ? open_dim() : Dim(cursor.integer()));
    cursor.expect("x", "a size");
  }
  (void)cursor.accept("!");
  const std::string_view word = cursor.need_word("the type of a tensor's elements");
  const std::optional<DType> element = stablehlo_element(word);
  if (word == "complex") lack = "complex numbers";
  if (word.starts_with("quant")) lack = "quantized numbers";
  if (!element && lack.empty()) lack = "elements of this type";
  cursor.go_to(inside - 1);
  cursor.brackets();
  const std::string_view text = cursor.from(begin);
  if (!lack.empty()) return {.kind = ValueType::Kind::foreign, .text = text, .lack = lack};
  Result<Type> made = Type::make(*element, dims);
  if (!made.ok()) cursor.refuse(begin, std::move(made).error());
  return {.kind = ValueType::Kind::tensor, .type = *made, .text = text};
}

std::vector<ValueType> MlirReader::type_list() {
  std::vector<ValueType> types;
  if (!cursor.accept("(")) {
    types.push_back(type());
    return types;
  }
  while (!cursor.accept(")")) {
    types.push_back(type());
    if (cursor.peek() == '{') (void)dictionary();
    if (!cursor.accept(",") && cursor.peek() != ')') cursor.expect(")", "a list of types");
  }
  return types;
}

std::string_view MlirReader::symbol() {
  const auto part = [&] {
    cursor.expect("@", "the name of a function");
    return cursor.peek() == '"' ? cursor.quoted() : cursor.need_word("a name behind @", true);
  };
  const std::string_view name = part();
  while (cursor.sees("::@")) {
    cursor.accept("::");
    (void)part();
  }
  return name;
}

AttributeList MlirReader::dictionary() {
  const Depth nested(depth, cursor);
  AttributeList entries;
  cursor.expect("{", "this");
  while (!cursor.accept("}")) {
    const std::string_view name =
        cursor.peek() == '"' ? cursor.quoted() : cursor.need_word("the name of an attribute", true);
    Attribute value = {.offset = cursor.at()};
    if (cursor.accept("=")) value = attribute(true);
    entries.emplace_back(name, std::move(value));
    if (!cursor.accept(",") && cursor.peek() != '}') cursor.expect("}", "the attributes");
  }
  return entries;
}

void MlirReader::skip_location() {
  if (!cursor.accept_word("loc")) return;
  if (cursor.peek() != '(') cursor.expect("(", "loc");
  cursor.brackets();
}

Attribute MlirReader::list() {
  const Depth nested(depth, cursor);
  Attribute made = {.kind = Kind::list, .offset = cursor.at()};
  cursor.expect("[", "this");
  while (!cursor.accept("]")) {
    // The ranges of a slice: 1:4:2 is a list of its own.
    Attribute item = attribute(false);
    if (item.kind == Kind::integer && cursor.peek() == ':') {
      Attribute range = {.kind = Kind::list, .offset = item.offset};
      range.items.push_back(std::move(item));
      while (cursor.accept(":")) {
        (void)cursor.peek();
        const size_t at = cursor.at();
        const std::string_view name = cursor.word();  // "1 : i64"
        if (name.empty())
          range.items.push_back({.kind = Kind::integer, .integer = cursor.integer(), .offset = at});
      }
      item = range.items.size() == 1 ? Attribute(range.items.front()) : std::move(range);
    } else if (cursor.accept(":")) {  // dense<[0, 1]> : tensor<2xindex>
      item.type = type();
    }
    made.items.push_back(std::move(item));
    if (!cursor.accept(",") && cursor.peek() != ']') cursor.expect("]", "a list");
  }
  return made;
}

Attribute MlirReader::lists() {
  (void)cursor.peek();
  const size_t begin = cursor.at();
  Attribute first = list();
  Attribute all = {.kind = Kind::list, .offset = begin};
  while (cursor.sees("x") || cursor.sees("->")) {
    const size_t back = cursor.at();
    if (!cursor.accept("->")) cursor.accept("x");
    if (cursor.peek() != '[') {
      cursor.go_to(back);
      break;
    }
    if (all.items.empty()) all.items.push_back(first);
    all.items.push_back(list());
  }
  return all.items.empty() ? first : all;
}

// "array<i64: 1, 2>", behind "array".
Attribute MlirReader::array() {
  Attribute made = {.kind = Kind::list, .offset = cursor.at()};
  cursor.expect("<", "array");
  (void)cursor.need_word("the type of an array's elements");
  if (cursor.accept(":")) do {
      made.items.push_back(attribute(false));
    } while (cursor.accept(","));
  cursor.expect(">", "the elements of an array");
  return made;
}

// "dense<...>", behind "dense". Its type may follow; else the op knows it.
Attribute MlirReader::literal() {
  Attribute made = {.kind = Kind::literal, .offset = cursor.at()};
  if (cursor.peek() != '<') cursor.expect("<", "dense");
  const std::string_view whole = cursor.brackets();
  made.text = trim(whole.substr(1, whole.size() - 2));
  made.offset = static_cast<size_t>(made.text.data() - cursor.text().data());
  return made;
}

Attribute MlirReader::number(bool typed) {
  Attribute made = {.offset = cursor.at()};
  const std::string_view text = cursor.number();
  if (text.empty()) cursor.refuse(bad_input("a value is missing: there is {}", cursor.seen()));
  if (const Result<int64_t> integer = parse_int(text); integer.ok()) {
    made.kind = Kind::integer;
    made.integer = *integer;
  } else if (const Result<double> real = parse_double(text); real.ok()) {
    made.kind = Kind::real;
    made.real = *real;
  } else {
    made.kind = Kind::word;
  }
  made.text = text;
  if (typed && cursor.accept(":")) (void)type();
  return made;
}

// "#stablehlo.gather<offset_dims = [0]>", "#stablehlo<precision DEFAULT>",
// "#stablehlo.conv<[b]x..."
Attribute MlirReader::dialect_attribute() {
  Attribute made = {.kind = Kind::word, .offset = cursor.at()};
  cursor.expect("#", "this");
  made.text = cursor.word();
  if (cursor.peek() != '<') return made;
  const size_t open = cursor.at();
  cursor.accept("<");
  if (cursor.peek() == '[') {
    made = lists();
    if (cursor.accept(">")) return made;
  } else if (const std::string_view first = cursor.word(); !first.empty()) {
    if (cursor.peek() == '=') {
      made.kind = Kind::record;
      cursor.go_to(open + 1);
      while (!cursor.accept(">")) {
        made.keys.push_back(cursor.need_word("the name of a field"));
        cursor.expect("=", "the name of a field");
        made.items.push_back(cursor.peek() == '[' ? lists() : attribute(false));
        if (!cursor.accept(",") && cursor.peek() != '>') cursor.expect(">", "the fields");
      }
      return made;
    }
    const std::string_view second = cursor.word();
    made.text = second.empty() ? first : second;
    if (cursor.accept(">")) return made;
  }
  cursor.go_to(open);
  made = {.kind = Kind::word, .text = cursor.brackets(), .offset = made.offset};
  return made;
}

Attribute MlirReader::named_attribute(bool typed) {
  Attribute made = {.kind = Kind::word, .offset = cursor.at()};
  const size_t begin = cursor.at();
  if (cursor.accept_word("dense")) {
    made = literal();
    if (typed && cursor.accept(":")) made.type = type();
    return made;
  }
  if (cursor.accept_word("array")) return array();
  for (const bool value : {false, true})
    if (cursor.accept_word(value ? "true" : "false")) {
      made.kind = Kind::integer;
      made.integer = value ? 1 : 0;
      made.text = value ? "true" : "false";
      return made;
    }
  made.text = cursor.need_word("a value", true);
  if (cursor.peek() == '<' || (cursor.peek() == '(' && made.text == "loc")) cursor.brackets();
  made.text = trim(cursor.from(begin));
  return made;
}

Attribute MlirReader::attribute(bool typed) {
  const Depth nested(depth, cursor);
  const char next = cursor.peek();
  Attribute made = {.offset = cursor.at()};
  switch (next) {
    case '"':
      made.kind = Kind::word;
      made.text = cursor.quoted();
      if (typed && cursor.accept(":")) (void)type();
      return made;
    case '@':
      made.kind = Kind::symbol;
      made.text = symbol();
      return made;
    case '[': return list();
    case '{': {
      made.kind = Kind::record;
      for (auto& [name, value] : dictionary()) {
        made.keys.push_back(name);
        made.items.push_back(std::move(value));
      }
      return made;
    }
    case '#': return dialect_attribute();
    case '!': {
      made.kind = Kind::word;
      made.text = type().text;
      return made;
    }
    case '<': {
      made.kind = Kind::word;
      made.text = cursor.brackets();
      return made;
    }
    default: break;
  }
  if ((next >= '0' && next <= '9') || next == '-' || next == '+') return number(typed);
  return named_attribute(typed);
}

}  // namespace hone::hlo
