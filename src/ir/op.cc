#include "ir/op.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cmath>
#include <unordered_map>

#include "base/hash.h"
#include "base/interner.h"
#include "base/text.h"
#include "ir/op_def.h"

namespace hone {

AttrValue::AttrValue(const AttrValue& other) = default;
AttrValue::AttrValue(AttrValue&& other) noexcept = default;
AttrValue& AttrValue::operator=(const AttrValue& other) = default;
AttrValue& AttrValue::operator=(AttrValue&& other) noexcept = default;
AttrValue::~AttrValue() = default;
namespace {

constexpr std::array<std::string_view, kOpcodeCount> kNames = {
#define HONE_OP(id, text, family, op_class, slots) text,
#include "ir/ops.def"
};

uint64_t hash_of(const AttrValue& value) {
  Hasher hasher(value.index());
  std::visit(
      [&]<class T>(const T& v) {
        if constexpr (std::is_same_v<T, std::string>) {
          hasher.add(std::string_view(v));
        } else if constexpr (std::is_same_v<T, Dims>) {
          for (Dim d : v) hasher.add(d.hash());
          hasher.add(v.size());
        } else if constexpr (std::is_same_v<T, Ints> || std::is_same_v<T, std::vector<double>>) {
          hasher.add_range(v);
        } else {
          hasher.add(v);
        }
      },
      value);
  return hasher.value();
}

size_t attr_index(const OpDef& def, std::string_view name) {
  for (size_t i = 0; i < def.attrs.size(); ++i)
    if (def.attrs[i].name == name) return i;
  return def.attrs.size();
}

// The parsed defaults of an op's schema; a default that does not parse is a bug in the table.
struct Defaults {
  std::vector<std::optional<AttrValue>> values;
  explicit Defaults(const OpDef& def) {
    for (const AttrSpec& spec : def.attrs) {
      // An empty text marks a required attribute; a word that is empty by default is written "".
      if (spec.default_text.empty()) {
        values.emplace_back();
        continue;
      }
      Result<AttrValue> value = parse_attr(spec.kind, spec.default_text);
      HONE_CHECK(value.ok(), "default of {}.{}: {}", name(def.opcode), spec.name,
                 value.error().what());
      values.emplace_back(std::move(*value));
    }
  }
};

const Defaults& defaults_of(Opcode opcode) {
  static std::array<std::atomic<const Defaults*>, kOpcodeCount> table = {};
  std::atomic<const Defaults*>& slot = table[static_cast<size_t>(opcode)];
  if (const Defaults* known = slot.load(std::memory_order_acquire)) return *known;
  const Defaults* fresh = new Defaults(op_def(opcode));
  const Defaults* expected = nullptr;
  if (slot.compare_exchange_strong(expected, fresh, std::memory_order_acq_rel)) return *fresh;
  delete fresh;
  return *expected;
}

}  // namespace

struct OpData {
  Opcode opcode;
  bool has_symbols;
  uint64_t content_hash;
  std::vector<AttrValue> attrs;

  OpData(Opcode code, std::vector<AttrValue> values)
      : opcode(code), has_symbols(false), attrs(std::move(values)) {
    Hasher hasher(hash_string(name(code)));
    for (size_t i = 0; i < attrs.size(); ++i) {
      const AttrValue& value = attrs[i];
      if (op_def(code).attrs[i].came_later && value == defaults_of(code).values[i]) continue;
      hasher.add(hash_of(value));
      if (const Dims* dims = std::get_if<Dims>(&value))
        has_symbols |=
            std::any_of(dims->begin(), dims->end(), [](Dim d) { return !d.is_static(); });
    }
    content_hash = hasher.value();
  }
  size_t hash() const { return content_hash; }
  bool operator==(const OpData& other) const {
    return opcode == other.opcode && attrs == other.attrs;
  }
};

namespace {

Interner<OpData>& interner() {
  static Interner<OpData>& table = *new Interner<OpData>();
  return table;
}

std::string_view kind_name(AttrKind kind) {
  switch (kind) {
    case AttrKind::flag: return "true or false";
    case AttrKind::integer: return "an integer";
    case AttrKind::real: return "a number";
    case AttrKind::word: return "a word";
    case AttrKind::dtype: return "an element type";
    case AttrKind::ints: return "a list of integers";
    case AttrKind::reals: return "a list of numbers";
    case AttrKind::dims: return "a list of dims";
  }
  return "";
}

// Products of an attribute with an offset in memory must not overflow.
constexpr int64_t kMaxAttrInteger = int64_t{1} << 31;

// Accepts what a C++ caller naturally writes: an integer for a real, ints for dims.
Status coerce(const AttrSpec& spec, AttrValue& value) {
  if (spec.kind == AttrKind::real && std::holds_alternative<int64_t>(value))
    value = static_cast<double>(std::get<int64_t>(value));
  if (spec.kind == AttrKind::dims && std::holds_alternative<Ints>(value)) {
    const Ints& ints = std::get<Ints>(value);
    value = Dims(ints.begin(), ints.end());
  }
  if (value.index() != static_cast<size_t>(spec.kind))
    return bad_input("attribute '{}' must be {}", spec.name, kind_name(spec.kind));
  if (spec.kind == AttrKind::real && std::isnan(std::get<double>(value)))
    return bad_input("attribute '{}' must not be NaN", spec.name);
  auto too_large = [](int64_t x) { return x > kMaxAttrInteger || x < -kMaxAttrInteger; };
  const int64_t* integer = std::get_if<int64_t>(&value);
  const Ints* ints = std::get_if<Ints>(&value);
  if ((integer != nullptr && too_large(*integer)) ||
      (ints != nullptr && std::ranges::any_of(*ints, too_large)))
    return over_limit("attribute '{}' holds a number beyond {}", spec.name, kMaxAttrInteger);
  if (spec.kind == AttrKind::word && !spec.words.empty()) {
    const std::string& word = std::get<std::string>(value);
    std::vector<std::string_view> words = split(spec.words, '|');
    if (std::find(words.begin(), words.end(), word) == words.end())
      return bad_input("attribute '{}' is '{}', must be one of {}", spec.name, word,
                       join(words, ", "))
          .with_hint(did_you_mean(word, words));
  }
  return {};
}

bool is_bare_word(std::string_view word) {
  if (word.empty() || !(std::isalpha(static_cast<unsigned char>(word[0])) || word[0] == '_'))
    return false;
  return std::all_of(word.begin(), word.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  });
}

// Splits at commas that stand outside of brackets, parentheses and quotes.
Result<std::vector<std::string_view>> split_list(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  bool in_quotes = false;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (in_quotes) {
      if (c == '\\') ++i;
      if (c == '"') in_quotes = false;
      continue;
    }
    if (c == '"') in_quotes = true;
    if (c == '[' || c == '(' || c == '{') ++depth;
    if (c == ']' || c == ')' || c == '}') --depth;
    if (depth < 0) return bad_input("unbalanced '{}'", c);
    if (c == ',' && depth == 0) {
      parts.push_back(trim(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  if (depth != 0 || in_quotes) return bad_input("unbalanced brackets or quotes");
  std::string_view last = trim(text.substr(begin));
  if (!last.empty() || !parts.empty()) parts.push_back(last);
  return parts;
}

// The items of "[a, b]", each read by `parse`.
template <class T, class Parse>
Result<AttrValue> parse_list(std::string_view text, const Parse& parse) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']')
    return bad_input("expected a list in brackets, found '{}'", text);
  std::vector<std::string_view> items = HONE_TRY(split_list(text.substr(1, text.size() - 2)));
  std::vector<T> values;
  for (std::string_view item : items) values.push_back(HONE_TRY(parse(item)));
  return AttrValue(std::move(values));
}

}  // namespace

std::string_view name(Opcode opcode) { return kNames[static_cast<size_t>(opcode)]; }

std::optional<Opcode> opcode_from_name(std::string_view text) {
  static const auto& table = *[] {
    auto* map = new std::unordered_map<std::string_view, Opcode>();
    for (int i = 0; i < kOpcodeCount; ++i)
      map->emplace(kNames[static_cast<size_t>(i)], static_cast<Opcode>(i));
    return map;
  }();
  auto found = table.find(text);
  if (found == table.end()) return std::nullopt;
  return found->second;
}

Result<Op> Op::make(Opcode opcode, Attrs attrs) {
  const OpDef& def = op_def(opcode);
  const Defaults& defaults = defaults_of(opcode);
  std::vector<AttrValue> values(def.attrs.size());
  std::vector<bool> given(def.attrs.size());
  for (auto& [attr, value] : attrs) {
    size_t i = attr_index(def, attr);
    if (i == def.attrs.size()) {
      std::vector<std::string_view> known;
      for (const AttrSpec& spec : def.attrs) known.push_back(spec.name);
      return bad_input("{} has no attribute '{}'", hone::name(opcode), attr)
          .with_hint(did_you_mean(attr, known));
    }
    if (given[i]) return bad_input("{}: attribute '{}' is given twice", hone::name(opcode), attr);
    if (Status fits = coerce(def.attrs[i], value); !fits.ok())
      return Error(fits.error()).within(hone::name(opcode));
    given[i] = true;
    values[i] = std::move(value);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (given[i]) continue;
    if (!defaults.values[i])
      return bad_input("{}: attribute '{}' is missing", hone::name(opcode), def.attrs[i].name);
    values[i] = *defaults.values[i];
  }
  return Op(interner().intern(OpData(opcode, std::move(values))));
}

Op Op::get(Opcode opcode, Attrs attrs) {
  Result<Op> op = make(opcode, std::move(attrs));
  HONE_CHECK(op.ok(), "{}", op.error().what());
  return *op;
}

Opcode Op::opcode() const { return data_->opcode; }
const OpDef& Op::def() const { return op_def(opcode()); }
bool Op::has_symbols() const { return data_->has_symbols; }
uint64_t Op::hash() const { return data_->content_hash; }
std::span<const AttrValue> Op::attrs() const { return data_->attrs; }

namespace {
template <class T>
const T& attr_as(const OpData& data, std::string_view name) {
  size_t i = attr_index(op_def(data.opcode), name);
  HONE_CHECK(i < data.attrs.size(), "{} has no attribute '{}'", hone::name(data.opcode), name);
  const T* value = std::get_if<T>(&data.attrs[i]);
  HONE_CHECK(value != nullptr, "{}.{} is of another kind", hone::name(data.opcode), name);
  return *value;
}
}  // namespace

bool Op::flag(std::string_view name) const { return attr_as<bool>(*data_, name); }
int64_t Op::integer(std::string_view name) const { return attr_as<int64_t>(*data_, name); }
double Op::real(std::string_view name) const { return attr_as<double>(*data_, name); }
const std::string& Op::word(std::string_view name) const {
  return attr_as<std::string>(*data_, name);
}
DType Op::dtype(std::string_view name) const { return attr_as<DType>(*data_, name); }
const Ints& Op::ints(std::string_view name) const { return attr_as<Ints>(*data_, name); }
const std::vector<double>& Op::reals(std::string_view name) const {
  return attr_as<std::vector<double>>(*data_, name);
}
const Dims& Op::dims(std::string_view name) const { return attr_as<Dims>(*data_, name); }

Op Op::bind(const Bindings& bindings) const {
  if (!has_symbols()) return *this;
  std::vector<AttrValue> values(data_->attrs);
  for (AttrValue& value : values)
    if (Dims* dims = std::get_if<Dims>(&value))
      for (Dim& d : *dims) d = d.bind(bindings);
  return Op(interner().intern(OpData(opcode(), std::move(values))));
}

Op Op::canonical() const {
  const OpDef& op_definition = def();
  Op op = *this;
  for (size_t i = 0; i < op_definition.attrs.size(); ++i) {
    const std::optional<int64_t> each = op_definition.attrs[i].each;
    const Ints* list = each ? std::get_if<Ints>(&op.data_->attrs[i]) : nullptr;
    if (list == nullptr || list->empty()) continue;
    if (std::ranges::any_of(*list, [&](int64_t x) { return x != *each; })) continue;
    std::vector<AttrValue> values(op.data_->attrs);
    values[i] = Ints{};
    op = Op(interner().intern(OpData(opcode(), std::move(values))));
  }
  return op_definition.canonical == nullptr ? op : op_definition.canonical(op);
}

std::string Op::attrs_to_string() const {
  const OpDef& op_definition = def();
  const Defaults& defaults = defaults_of(opcode());
  std::string text;
  for (size_t i = 0; i < data_->attrs.size(); ++i) {
    if (defaults.values[i] && *defaults.values[i] == data_->attrs[i]) continue;
    text += fmt::format("{}{} = {}", text.empty() ? "{" : ", ", op_definition.attrs[i].name,
                        to_string(data_->attrs[i]));
  }
  return text.empty() ? text : text + "}";
}

namespace {

std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(int64_t value) { return fmt::format("{}", value); }
std::string text_of(double value) { return format_double(value); }
std::string text_of(const std::string& value) {
  return is_bare_word(value) ? value : hone::quoted(value);
}
std::string text_of(DType value) { return std::string(name(value)); }
std::string text_of(Dim value) { return value.to_string(); }
template <class T>
std::string text_of(const std::vector<T>& list) {
  std::string text = "[";
  for (size_t i = 0; i < list.size(); ++i) text += (i > 0 ? ", " : "") + text_of(list[i]);
  return text + "]";
}

}  // namespace

std::string to_string(const AttrValue& value) {
  return std::visit([](const auto& v) { return text_of(v); }, value);
}

Result<AttrValue> parse_attr(AttrKind kind, std::string_view text,
                             const std::vector<Symbol>& scope) {
  text = trim(text);
  switch (kind) {
    case AttrKind::flag:
      if (text == "true") return AttrValue(true);
      if (text == "false") return AttrValue(false);
      return bad_input("expected true or false, found '{}'", text);
    case AttrKind::integer: return AttrValue(HONE_TRY(parse_int(text)));
    case AttrKind::real: return AttrValue(HONE_TRY(parse_double(text)));
    case AttrKind::word: {
      if (is_bare_word(text)) return AttrValue(std::string(text));
      if (text.size() < 2 || text.front() != '"' || text.back() != '"')
        return bad_input("expected a word or a quoted string, found '{}'", text);
      return AttrValue(HONE_TRY(unescape(text.substr(1, text.size() - 2))));
    }
    case AttrKind::dtype: {
      std::optional<DType> dtype = dtype_from_name(text);
      if (!dtype) return bad_input("'{}' is not an element type", text);
      return AttrValue(*dtype);
    }
    case AttrKind::ints: return parse_list<int64_t>(text, parse_int);
    case AttrKind::reals: return parse_list<double>(text, parse_double);
    case AttrKind::dims:
      return parse_list<Dim>(text, [&](std::string_view item) { return parse_dim(item, scope); });
  }
  return bad_input("unknown attribute kind");
}

Result<Op> parse_op(std::string_view text, const std::vector<Symbol>& scope) {
  text = trim(text);
  size_t brace = text.find('{');
  std::string_view op_name = trim(text.substr(0, brace));
  std::optional<Opcode> opcode = opcode_from_name(op_name);
  if (!opcode)
    return bad_input("there is no op '{}'", op_name).with_hint(did_you_mean(op_name, kNames));
  Attrs attrs;
  if (brace != std::string_view::npos) {
    if (text.back() != '}') return bad_input("{}: expected '}}' after the attributes", op_name);
    const OpDef& def = op_def(*opcode);
    std::string_view inside = text.substr(brace + 1, text.size() - brace - 2);
    for (std::string_view item : HONE_TRY(split_list(inside))) {
      size_t equals = item.find('=');
      if (equals == std::string_view::npos)
        return bad_input("{}: expected 'name = value', found '{}'", op_name, item);
      std::string_view attr = trim(item.substr(0, equals));
      size_t i = attr_index(def, attr);
      if (i == def.attrs.size()) {
        attrs.emplace_back(attr, AttrValue(false));  // make() says what is wrong with the name
        continue;
      }
      Result<AttrValue> value = parse_attr(def.attrs[i].kind, item.substr(equals + 1), scope);
      if (!value.ok())
        return std::move(value).error().within(fmt::format("{}, attribute '{}'", op_name, attr));
      attrs.emplace_back(def.attrs[i].name, std::move(*value));
    }
  }
  return Op::make(*opcode, std::move(attrs));
}

}  // namespace hone
