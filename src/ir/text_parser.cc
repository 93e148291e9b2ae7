#include "ir/text_parser.h"

#include <algorithm>

#include "base/checked_math.h"
#include "base/text.h"
#include "ir/text_printer.h"

// Tokens, labels, types and symbols; what graphs and models share.

namespace hone {
namespace {

constexpr size_t kMaxNameBytes = UINT16_MAX;  // what a graph can hold
constexpr size_t kMaxSymbols = 256;
constexpr int64_t kMaxBound = int64_t{1} << 62;  // of dims

constexpr std::string_view kSymbolHint =
    "declare symbols after the results: `-> f32[N] where N in 1..64`";

// A label's number if its digits are the usual ones.
std::optional<uint32_t> plain_number(std::string_view digits) {
  if (digits.size() > 9 || (digits.size() > 1 && digits[0] == '0')) return std::nullopt;
  uint32_t number = 0;
  for (char c : digits) number = number * 10 + static_cast<uint32_t>(c - '0');
  return number;
}

}  // namespace

bool LabelTable::define(std::string_view name, bool is_number, uint32_t value) {
  if (!is_number) return names_.emplace(name, value).second;
  // An unnamed value is usually labelled by its own index, a little more than those before it.
  std::optional<uint32_t> number = plain_number(name);
  if (!number || *number > value) return odd_numbers_.emplace(name, value).second;
  if (*number >= numbers_.size()) numbers_.resize(value + 1);
  if (numbers_[*number] != 0 || odd_numbers_.contains(name)) return false;
  numbers_[*number] = value + 1;
  return true;
}

std::optional<uint32_t> LabelTable::find(std::string_view name, bool is_number) const {
  if (is_number) {
    std::optional<uint32_t> number = plain_number(name);
    if (number && *number < numbers_.size() && numbers_[*number] != 0) return numbers_[*number] - 1;
  }
  const auto& table = is_number ? odd_numbers_ : names_;
  auto found = table.find(name);
  if (found == table.end()) return std::nullopt;
  return found->second;
}

std::string LabelTable::hint(std::string_view name) const {
  constexpr size_t kMaxLength = 64, kMaxCandidates = 10000;  // a hint is worth no more time
  if (name.size() > kMaxLength) return "";
  std::vector<std::string_view> candidates;
  for (const auto& [candidate, value] : names_) {
    if (candidate.size() <= kMaxLength) candidates.push_back(candidate);
    if (candidates.size() == kMaxCandidates) break;
  }
  return did_you_mean(name, candidates);
}

Error TextParser::at(size_t offset, Error error) const {
  return std::move(error).at(
      fmt::format("{}:{}", options_.file, line_and_column(lexer_.source(), offset)));
}

Error TextParser::expected(std::string_view what) const {
  const Token& token = peek();
  if (token.kind == TokenKind::end)
    return at(token, bad_input("expected {}, found the end of the text", what));
  bool is_open = token.kind == TokenKind::bad && token.text == "\"";
  std::string_view shown = token.text.substr(0, 40);
  return at(token, bad_input("expected {}, found {}'{}'", what, is_open ? "an open " : "",
                             token.kind == TokenKind::bad ? escape(shown) : std::string(shown)));
}

Status TextParser::check_depth(std::string_view what) const {
  if (depth_ <= kMaxTextDepth + 1) return {};  // the outermost is inside of nothing
  return at(peek(), over_limit("{} are nested more than {} deep", what, kMaxTextDepth));
}

bool TextParser::eat(std::string_view spelling) {
  if (!peek().is(spelling)) return false;
  take();
  return true;
}

Status TextParser::expect(std::string_view spelling) {
  if (!eat(spelling)) return expected(fmt::format("'{}'", spelling));
  return {};
}

Result<int64_t> TextParser::integer(std::string_view what) {
  if (peek().kind != TokenKind::number) return expected(what);
  Token token = take();
  Result<int64_t> value = parse_int(token.text);
  if (!value.ok()) return at(token, std::move(value).error());
  return value;
}

Result<int64_t> TextParser::integer(std::string_view what, int64_t least, int64_t most) {
  const Token token = peek();
  const int64_t number = HONE_TRY(integer(what));
  if (number < least || number > most)
    return at(token, bad_input("{} is outside of {}..{}", number, least, most));
  return number;
}

Result<Dim> TextParser::dim(std::string_view what) {
  if (!peek().is("[")) return expected(fmt::format("{} in brackets", what));
  size_t offset = peek().offset;
  std::string_view text = lexer_.take_brackets();
  if (text.empty()) return at(offset, bad_input("this bracket is not closed"));
  Result<Dim> dim = parse_dim(trim(text.substr(1, text.size() - 2)), symbols_);
  if (!dim.ok()) return at(offset, std::move(dim).error());
  return dim;
}

Result<std::string> TextParser::header() {
  if (!eat("weights")) return std::string();
  if (peek().kind != TokenKind::string) return expected("a file name in quotes");
  Token token = take();
  Result<std::string> name = unescape(token.text.substr(1, token.text.size() - 2));
  if (!name.ok()) return at(token, std::move(name).error());
  return name;
}

Result<TextParser::Label> TextParser::label(TokenKind kind, std::string_view what) {
  if (peek().kind != kind) return expected(what);
  Token token = take();
  std::string_view name = token.text.substr(1);
  if (name[0] >= '0' && name[0] <= '9') return Label{token, name, true};
  if (name[0] == '"') {
    Result<std::string> plain = unescape(name.substr(1, name.size() - 2));
    if (!plain.ok()) return at(token, std::move(plain).error());
    unquoted_.push_back(std::move(*plain));
    name = unquoted_.back();
    if (name.empty()) return at(token, bad_input("a name must not be empty"));
  }
  if (name.size() > kMaxNameBytes)
    return at(token, bad_input("a name has {} bytes, at most {}", name.size(), kMaxNameBytes));
  return Label{token, name, false};
}

Result<TextParser::TypeText> TextParser::type_text() {
  if (peek().kind != TokenKind::word) return expected("a type");
  Token dtype = take();
  if (!peek().is("[")) return expected(fmt::format("'[' after '{}'", dtype.text.substr(0, 40)));
  std::string_view dims = lexer_.take_brackets();
  if (dims.empty()) return at(dtype, bad_input("this type has no ']'"));
  size_t end = static_cast<size_t>(dims.data() - lexer_.source().data()) + dims.size();
  return TypeText{lexer_.source().substr(dtype.offset, end - dtype.offset), dtype.offset};
}

Result<Type> TextParser::type(const TypeText& text) {
  auto [entry, is_new] = types_.try_emplace(text.text);
  if (!is_new) return entry->second;
  Result<Type> type = uncached_type(text);
  if (type.ok()) {
    entry->second = *type;
  } else {
    types_.erase(entry);
  }
  return type;
}

Result<Type> TextParser::uncached_type(const TypeText& text) {
  size_t bracket = text.text.find('[');
  std::string_view word = trim(text.text.substr(0, bracket));
  std::optional<DType> dtype = dtype_from_name(word);
  if (!dtype) {
    std::vector<std::string_view> names;
    for (int i = 0; i < kDTypeCount; ++i) names.push_back(name(static_cast<DType>(i)));
    return at(text.offset, bad_input("'{}' is not an element type", word.substr(0, 40))
                               .with_hint(did_you_mean(word.substr(0, 40), names)));
  }
  Dims dims;
  std::string_view inside = text.text.substr(bracket + 1, text.text.size() - bracket - 2);
  if (!trim(inside).empty()) {
    for (std::string_view piece : split(inside, ',')) {
      Result<Dim> dim = parse_dim(trim(piece), symbols_);
      if (!dim.ok()) {
        size_t offset = static_cast<size_t>(piece.data() - lexer_.source().data());
        bool is_unknown = dim.error().what().find("is not declared") != std::string::npos;
        return at(offset, std::move(dim).error().with_hint(is_unknown ? kSymbolHint : ""));
      }
      dims.push_back(*dim);
    }
  }
  Result<Type> type = Type::make(*dtype, dims);
  if (!type.ok()) return at(text.offset, std::move(type).error());
  return type;
}

Status TextParser::where() {
  forget_symbols();
  if (!eat("where")) return {};
  do {
    if (peek().kind != TokenKind::word) return expected("the name of a symbol");
    Token name = take();
    HONE_TRY(expect("in"));
    int64_t min = HONE_TRY(integer("the lower bound"));
    HONE_TRY(expect(".."));
    int64_t max = HONE_TRY(integer("the upper bound"));
    int64_t step = eat("step") ? HONE_TRY(integer("the step of the symbol")) : 1;
    HONE_TRY(declare(name, min, max, step));
  } while (eat(","));
  return {};
}

Status TextParser::declare(const Token& name, int64_t min, int64_t max, int64_t step) {
  for (Symbol symbol : symbols_)
    if (symbol.name() == name.text)
      return at(name, bad_input("symbol '{}' is declared twice", name.text));
  if (symbols_.size() == kMaxSymbols)
    return at(name, over_limit("more than {} symbols", kMaxSymbols));
  if (min > max || min < -kMaxBound || max > kMaxBound)
    return at(name, bad_input("symbol '{}' is in {}..{}, which is not a range of sizes", name.text,
                              min, max));
  if (step < 1) return at(name, bad_input("symbol '{}' is a multiple of {}", name.text, step));
  if (ceil_div(min, step) > floor_div(max, step))
    return at(name,
              bad_input("symbol '{}': no multiple of {} is in {}..{}", name.text, step, min, max));
  symbols_.push_back(Symbol::get(name.text, min, max, step));
  return {};
}

void TextParser::forget_symbols() {
  symbols_.clear();
  // Fresh tables: clear() takes as long as the largest content that there ever was.
  if (!types_.empty()) types_ = {};
  for (auto& table : ops_)
    if (!table.empty()) table = {};
}

}  // namespace hone
