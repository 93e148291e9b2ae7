#include <algorithm>

#include "base/text.h"
#include "front/hlo/importer.h"

// Sizes that a program leaves open. Each becomes a symbol; where an op needs equal sizes, one takes
// the place of the other, and import begins anew.

namespace hone::hlo {

namespace {

constexpr size_t kMostSymbols = 4096;

// "N 0 64 4; M 1 8 1": name, least, most, multiple.
std::vector<Symbol> stated_symbols(std::string_view text) {
  std::vector<Symbol> symbols;
  for (const std::string_view entry : split(text, ';')) {
    const std::vector<std::string_view> words = split_words(entry);
    if (words.empty()) continue;
    if (words.size() != 4 || !is_symbol_name(words[0]) || symbols.size() >= kMostSymbols)
      throw Refusal{bad_input("hone.symbols: '{}' must be a name, the least, the most and a step",
                              excerpt(entry))};
    int64_t numbers[3];
    for (size_t i = 0; i < 3; ++i) {
      const Result<int64_t> number = parse_int(words[i + 1]);
      if (!number.ok() || *number < 0 || *number > kDimLimit)
        throw Refusal{bad_input("hone.symbols: '{}' is no size", excerpt(words[i + 1]))};
      numbers[i] = *number;
    }
    if (numbers[2] < 1 || numbers[1] / numbers[2] * numbers[2] < numbers[0])
      throw Refusal{bad_input("hone.symbols: '{}' can have no value", excerpt(entry))};
    symbols.push_back(Symbol::get(words[0], numbers[0], numbers[1], numbers[2]));
  }
  return symbols;
}

std::string symbol_name_of(std::string_view parameter, int axis) {
  std::string name;
  for (const char c : parameter) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    const bool is_digit = c >= '0' && c <= '9';
    name += is_letter || is_digit ? c : '_';
  }
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) name.insert(0, "_");
  return fmt::format("{}_{}", name, axis);
}

}  // namespace

// As the user says, if at all.
Dim Importer::refined(const Function& entry, std::string_view input, size_t axis, Dim size) const {
  if (given == nullptr) return size;
  Bindings numbers;
  const auto bind = [&](Symbol symbol, int64_t number) {
    Status fits = check_binding(symbol, number);
    if (!fits.ok()) refuse(entry.offset, std::move(fits).error());
    numbers.emplace(symbol.name(), number);
  };
  const std::vector<Symbol> symbols = size.symbols();
  const auto shape = given->shapes.find(input);
  const bool is_shaped = shape != given->shapes.end() && axis < shape->second.size();
  for (const Symbol symbol : symbols)
    if (const auto found = given->dims.find(symbol.name()); found != given->dims.end())
      bind(symbol, found->second);
    else if (is_shaped && Dim(symbol) == size)
      bind(symbol, shape->second[axis]);
  return size.bind(numbers);
}

// Each open size becomes a symbol, unless the attribute hone.dims says what it is.
Type Importer::sized(const Function& entry, size_t parameter, std::string_view name, Type type) {
  if (type.is_static()) return type;
  has_open_sizes_ = true;
  Dims dims(type.dims().begin(), type.dims().end());
  const auto open = std::ranges::count_if(dims, is_open);
  std::vector<std::string_view> stated;
  if (parameter < entry.parameter_attributes.size())
    for (const auto& [key, value] : entry.parameter_attributes[parameter])
      if (key == "hone.dims") stated = split(value.text, ',');
  if (!stated.empty() && stated.size() != dims.size())
    refuse(entry.offset, bad_input("hone.dims of parameter {} has {} sizes for {} dims", parameter,
                                   stated.size(), dims.size()));
  std::vector<Symbol> scope;
  try {
    if (!stated.empty()) scope = stated_symbols(module_.symbols);
  } catch (Refusal& refusal) {
    refuse(entry.offset, std::move(refusal.error));
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!is_open(dims[i])) continue;
    if (stated.empty()) {
      // At least 1, as JAX has it. Programs compute with sizes in i32, which must not wrap.
      const int64_t most = open == 1 ? int64_t{1} << 24 : int64_t{1} << (30 / open);
      dims[i] = Symbol::get(symbol_name_of(name, static_cast<int>(i)), 1, most);
    } else {
      Result<Dim> dim = parse_dim(trim(stated[i]), scope);
      if (!dim.ok()) refuse(entry.offset, std::move(dim).error());
      dims[i] = *dim;
    }
    dims[i] = refined(entry, name, i, dims[i]).bind(merged_);
  }
  Result<Type> made = Type::make(type.dtype(), dims);
  if (!made.ok()) refuse(entry.offset, std::move(made).error());
  return *made;
}

std::optional<Dims> Importer::known_dims(const Builder& builder, Value value) {
  if (std::optional<Tensor> tensor = known(builder, value)) {
    if (is_real(tensor->dtype())) return std::nullopt;
    Dims dims;
    for (int64_t i = 0; i < tensor->elements(); ++i) dims.emplace_back(tensor->integer_at(i));
    return dims;
  }
  if (&builder == top_) return contents_->of(value.id());
  return Contents(builder.graph()).of(value.id());
}

void Importer::make_equal(Dim a, Dim b, size_t offset) {
  if (a == b) return;
  for (const auto& [symbol_side, other] : {std::pair(a, b), std::pair(b, a)}) {
    const std::vector<Symbol> symbols = symbol_side.symbols();
    if (symbols.size() != 1 || Dim(symbols[0]) != symbol_side) continue;
    const std::vector<Symbol> used = other.symbols();
    const bool is_inside = std::ranges::find(used, symbols[0]) != used.end();
    if (is_inside || !check_binding(symbols[0], other).ok()) continue;
    throw Merge{symbols[0].name(), other};
  }
  refuse(offset, unsupported("the sizes {} and {} must be equal, which cannot be told before a run",
                             a.to_string(), b.to_string()));
}

// Open sizes of the stated type say nothing; numbers decide what a symbol is.
bool Importer::fits_stated(Type made, Type stated, size_t offset) {
  if (made == stated) return true;
  if (made.rank() != stated.rank()) return false;
  for (int i = 0; i < made.rank(); ++i) {
    if (is_open(stated.dim(i)) || made.dim(i) == stated.dim(i)) continue;
    if (made.dim(i).is_static()) return false;
    make_equal(made.dim(i), stated.dim(i), offset);
  }
  return true;
}

// Ops that need to know all sizes are refused; elements side by side have one shape.
void Importer::check_sizes(Node& node, const OpRow& row, const Instruction& instruction) {
  bool open = false;
  for (const Value& one : node.operands()) open = open || !one.type().is_static();
  for (const ValueType& type : instruction.results)
    open = open || (type.kind == ValueType::Kind::tensor && !type.type.is_static());
  if (!open) return;
  if (!row.takes_open)
    refuse(instruction.offset,
           unsupported("'{}' of sizes that are open is not handled", excerpt(instruction.name))
               .with_hint("write the program for sizes that are numbers"));
  if (!row.pointwise) return;
  const Value* first = nullptr;
  for (const Value& one : node.operands()) {
    if (one.rank() == 0) continue;
    if (first == nullptr) first = &one;
    if (one.rank() != first->rank()) return;
    for (int i = 0; i < one.rank(); ++i)
      if (!first->dim(i).is_static() || !one.dim(i).is_static())
        make_equal(one.dim(i), first->dim(i), instruction.offset);
  }
}

}  // namespace hone::hlo
