#include "front/hlo/hlo_text.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "front/hlo/device_list.h"
#include "front/hlo/importer.h"
#include "front/hlo/reader.h"
#include "front/hlo/sharding_text.h"

namespace hone::hlo {
namespace {

using Kind = Attribute::Kind;

// Values are numbered from here on; below are the parameters by their number.
constexpr uint32_t kFirstValue = 1U << 20U;

class HloReader {
 public:
  explicit HloReader(Program& program) : program_(program), cursor_(program) {}
  void read();

 private:
  void head();
  void table();
  void computation();
  void instruction(Function& function);
  void operands(Instruction& made);
  void attributes(Instruction& made);
  void attribute(Instruction& made);
  void window(Instruction& made);
  void padding(Instruction& made);
  void bitcast(Instruction& made, std::string_view layout);
  void metadata(Instruction& made);
  ValueType shape();
  std::string_view name();
  uint32_t used();
  Attribute braces();
  Attribute device_groups();
  // Digits between x: "2x2", "1_1x0_1".
  Attribute numbers();
  std::string_view raw_value();
  void skip_line();

  Program& program_;
  Cursor cursor_;
  int depth_ = 0;
  Module* module_ = nullptr;
  std::unordered_map<std::string_view, uint32_t> values_;
  // The layouts that the text states of values, where they are not row-major.
  std::unordered_map<uint32_t, std::string_view> layouts_;
  std::string_view layout_;  // of the shape that was read last: "1,0"
  // The result of the computation at hand, and whether ROOT says so.
  std::optional<uint32_t> root_;
  bool root_is_named_ = false;
};

// "2,1,0", or none is stated.
bool is_row_major(std::string_view layout) {
  for (size_t i = 0; i + 2 < layout.size(); i += 2)
    if (layout[i + 1] != ',' || layout[i] != layout[i + 2] + 1) return false;
  return layout.empty() || layout.back() == '0';
}

// ---- Words --------------------------------------------------------------------------------------

std::string_view HloReader::name() {
  (void)cursor_.accept("%");
  return cursor_.need_word("a name", true);
}

// To the comma or the end of the line.
std::string_view HloReader::raw_value() {
  (void)cursor_.peek();
  const std::string_view text = cursor_.text();
  const size_t begin = cursor_.at();
  size_t at = begin;
  while (at < text.size() && text[at] != ',' && text[at] != '\n' && text[at] != ' ' &&
         text[at] != '}') {
    if (text[at] == '{' || text[at] == '[' || text[at] == '(' || text[at] == '"') {
      cursor_.go_to(at);
      text[at] == '"' ? cursor_.quoted() : cursor_.brackets(false);
      at = cursor_.at();
    } else {
      ++at;
    }
  }
  cursor_.go_to(at);
  return text.substr(begin, at - begin);
}

void HloReader::skip_line() {
  cursor_.go_to(std::min(cursor_.text().find('\n', cursor_.at()), cursor_.text().size()));
}

ValueType HloReader::shape() {
  const Depth nested(depth_, cursor_);
  (void)cursor_.peek();
  const size_t begin = cursor_.at();
  if (cursor_.accept("(")) {
    ValueType tuple = {.kind = ValueType::Kind::tuple};
    while (!cursor_.accept(")")) {
      tuple.parts.push_back(shape());
      if (!cursor_.accept(",") && cursor_.peek() != ')') cursor_.expect(")", "a tuple of shapes");
    }
    tuple.text = cursor_.from(begin);
    return tuple;
  }
  const std::string_view element = cursor_.need_word("a shape");
  cursor_.expect("[", "the type of elements");
  Dims dims;
  bool bounded = false;
  while (!cursor_.accept("]")) {
    if (cursor_.accept("?")) {
      dims.push_back(open_dim());
    } else {
      bounded = cursor_.accept("<=") || bounded;
      dims.push_back(cursor_.integer());
    }
    if (!cursor_.accept(",") && cursor_.peek() != ']') cursor_.expect("]", "the sizes");
  }
  const size_t end = cursor_.at();
  layout_ = {};
  if (end < cursor_.text().size() && cursor_.text()[end] == '{') {
    layout_ = cursor_.brackets(false);
    layout_ = layout_.substr(1, layout_.size() - 2);
  }
  const std::string_view text = cursor_.text().substr(begin, end - begin);
  if (element == "token") return {.kind = ValueType::Kind::token, .text = text};
  const std::optional<DType> type = hlo_element(element);
  const std::string_view lack = bounded                                 ? "sizes with a bound"
                                : element == "c64" || element == "c128" ? "complex numbers"
                                : !type                                 ? "elements of this type"
                                                                        : "";
  if (!lack.empty()) return {.kind = ValueType::Kind::foreign, .text = text, .lack = lack};
  Result<Type> made = Type::make(*type, dims);
  if (!made.ok()) cursor_.refuse(begin, std::move(made).error());
  return {.kind = ValueType::Kind::tensor, .type = *made, .text = text};
}

// ---- Modules ------------------------------------------------------------------------------------

void HloReader::head() {
  module_->name = name();
  while (cursor_.accept(",")) {
    (void)cursor_.peek();
    const size_t at = cursor_.at();
    const std::string_view key = cursor_.need_word("an attribute of the module");
    if (!cursor_.accept("=")) continue;
    const std::string_view value = raw_value();
    constexpr std::string_view kMeshes = "xla.sdy.meshes=";
    if (const size_t begin = value.find(kMeshes);
        key == "frontend_attributes" && begin != std::string_view::npos)
      module_->meshes =
          read_meshes(program_, static_cast<size_t>(value.data() - cursor_.text().data()) + begin +
                                    kMeshes.size());
    if (key != "replica_count" && key != "num_partitions") continue;
    const Result<int64_t> count = parse_int(value);
    if (!count.ok() || *count < 1 || *count > kMostDevices)
      cursor_.refuse(at, bad_input("{} must be 1 to {}", key, kMostDevices));
    (key == "replica_count" ? module_->grid.replicas : module_->grid.partitions) = *count;
  }
}

// Sources of the program, which metadata points into: a number at the start of each line.
void HloReader::table() {
  while (cursor_.peek() >= '0' && cursor_.peek() <= '9') skip_line();
}

void HloReader::read() {
  if (!cursor_.accept_word("HloModule"))
    cursor_.refuse(bad_input("'HloModule' is missing: there is {}", cursor_.seen()));
  module_ = &program_.modules.emplace_back();
  head();
  while (!cursor_.at_end()) {
    bool is_table = false;
    for (const std::string_view word :
         {"FileNames", "FunctionNames", "FileLocations", "StackFrames"})
      if (!is_table && cursor_.accept_word(word)) {
        table();
        is_table = true;
      }
    if (!is_table) computation();
  }
}

void HloReader::computation() {
  const bool is_entry = cursor_.accept_word("ENTRY");
  Function& made = module_->functions.emplace_back();
  (void)cursor_.peek();
  made.offset = cursor_.at();
  made.name = name();
  made.is_private = !is_entry;
  const auto index = static_cast<uint32_t>(module_->functions.size() - 1);
  if (!module_->by_name.emplace(made.name, index).second)
    cursor_.refuse(made.offset, bad_input("there are two computations '{}'", excerpt(made.name)));
  if (is_entry) module_->entry = index;
  if (cursor_.peek() == '(') {  // its signature
    cursor_.brackets(false);
    cursor_.expect("->", "the parameters of a computation");
    (void)shape();
  }
  cursor_.expect("{", "the name of a computation");
  values_.clear();
  layouts_.clear();
  made.values = kFirstValue;
  made.body.offset = made.offset;
  root_.reset();
  root_is_named_ = false;
  while (!cursor_.accept("}")) {
    if (cursor_.at_end())
      cursor_.refuse(bad_input("'}}' is missing: the text ends within a computation"));
    instruction(made);
  }
  if (!root_) cursor_.refuse(made.offset, bad_input("the computation has no instruction"));
  made.body.results = {*root_};
  for (size_t i = 0; i < made.body.parameters.size(); ++i)
    if (made.body.parameters[i].text.empty())
      cursor_.refuse(made.offset, bad_input("the computation has no parameter {}", i));
}

// ---- Instructions -------------------------------------------------------------------------------

void HloReader::instruction(Function& function) {
  const bool is_root = cursor_.accept_word("ROOT");
  Instruction made;
  (void)cursor_.peek();
  const size_t at = cursor_.at();
  const std::string_view result = name();
  cursor_.expect("=", "the name of a value");
  ValueType type = shape();
  const std::string_view layout = layout_;
  (void)cursor_.peek();
  made.offset = cursor_.at();
  const std::string_view opcode = cursor_.need_word("the name of an op", true);
  made.label = result;
  uint32_t id = 0;
  if (opcode == "parameter") {
    cursor_.expect("(", opcode);
    const int64_t number = cursor_.integer();
    cursor_.expect(")", "the number of a parameter");
    if (number < 0 || number >= int64_t{kFirstValue} / 16)
      cursor_.refuse(made.offset, bad_input("there can be no parameter {}", number));
    attributes(made);
    id = static_cast<uint32_t>(number);
    Region& body = function.body;
    if (body.parameters.size() <= id) {
      body.parameters.resize(id + 1);
      body.names.resize(id + 1);
    }
    if (!body.parameters[id].text.empty())
      cursor_.refuse(made.offset, bad_input("there are two parameters {}", number));
    body.parameters[id] = std::move(type);
    body.names[id] = made.label;
    function.parameter_attributes.resize(body.parameters.size());
    function.parameter_attributes[id] = std::move(made.attributes);
  } else {
    const OpRow* row = row_of_hlo(opcode == "fusion" ? "call" : opcode);
    made.name = row == nullptr ? opcode : row->name;
    made.results = {std::move(type)};
    operands(made);
    if (opcode == "bitcast") bitcast(made, layout);
    attributes(made);
    if (function.values >= kMostValues)
      cursor_.refuse(over_limit("a computation has more than {} values", kMostValues));
    id = function.values++;
    made.first_result = id;
    function.body.instructions.push_back(std::move(made));
  }
  if (!is_row_major(layout)) layouts_.emplace(id, layout);
  if (!values_.emplace(result, id).second)
    cursor_.refuse(at, bad_input("the value '{}' is defined twice", excerpt(result)));
  // Without ROOT the last one is the result.
  if (is_root || !root_is_named_) root_ = id;
  root_is_named_ = root_is_named_ || is_root;
}

// A bitcast reads memory, so it gets both layouts as attributes.
void HloReader::bitcast(Instruction& made, std::string_view layout) {
  const auto add = [&](std::string_view key, std::string_view text) {
    if (is_row_major(text)) return;
    Attribute list = {.kind = Kind::list, .offset = made.offset};
    for (const std::string_view digits : split(text, ',')) {
      const Result<int64_t> dim = parse_int(trim(digits));
      if (!dim.ok())  // tiles, spaces of memory: "1,0:T(8,128)"
        cursor_.refuse(made.offset,
                       unsupported("a bitcast of the layout {{{}}} is not handled", excerpt(text)));
      list.items.push_back({.kind = Kind::integer, .integer = *dim, .offset = made.offset});
    }
    made.attributes.emplace_back(key, std::move(list));
  };
  add("result_layout", layout);
  if (made.operands.size() != 1) return;
  const auto found = layouts_.find(made.operands[0]);
  if (found != layouts_.end()) add("operand_layout", found->second);
}

uint32_t HloReader::used() {
  (void)cursor_.peek();
  const size_t at = cursor_.at();
  const std::string_view found = name();
  const auto value = values_.find(found);
  if (value == values_.end())
    cursor_.refuse(at, bad_input("the value '{}' is not defined here", excerpt(found)));
  return value->second;
}

void HloReader::operands(Instruction& made) {
  if (cursor_.peek() != '(') cursor_.expect("(", made.name);
  if (made.name == "stablehlo.constant") {
    const std::string_view whole = cursor_.brackets(false);
    Attribute literal = {.kind = Kind::literal, .text = trim(whole.substr(1, whole.size() - 2))};
    literal.offset = static_cast<size_t>(literal.text.data() - cursor_.text().data());
    literal.type = made.results[0];
    made.attributes.emplace_back("value", std::move(literal));
    return;
  }
  cursor_.accept("(");
  while (!cursor_.accept(")")) {
    // Its shape may stand in front.
    const size_t at = cursor_.at();
    bool shaped = cursor_.peek() == '(';
    if (!shaped && cursor_.peek() != '%') {
      (void)cursor_.word(true);
      shaped = cursor_.text().substr(cursor_.at(), 1) == "[";
      cursor_.go_to(at);
    }
    if (shaped) (void)shape();
    made.operands.push_back(used());
    if (!cursor_.accept(",") && cursor_.peek() != ')') cursor_.expect(")", "the operands");
  }
}

void HloReader::attributes(Instruction& made) {
  while (cursor_.accept(",")) attribute(made);
}

// "{1, 2}", "{[0:4], [1:9:2]}", "{a, b}" of computations.
Attribute HloReader::braces() {
  Attribute made = {.kind = Kind::list, .offset = cursor_.at()};
  cursor_.expect("{", "a list");
  while (!cursor_.accept("}")) {
    Attribute item = {.offset = cursor_.at()};
    if (cursor_.peek() == '{') {  // {{0,1},{1,0}}
      const Depth nested(depth_, cursor_);
      item = braces();
    } else if (cursor_.accept("[")) {
      item.kind = Kind::list;
      do {
        item.items.push_back({.kind = Kind::integer, .integer = cursor_.integer()});
      } while (cursor_.accept(":"));
      cursor_.expect("]", "a range");
    } else if (cursor_.peek() == '-' || (cursor_.peek() >= '0' && cursor_.peek() <= '9')) {
      item.kind = Kind::integer;
      item.integer = cursor_.integer();
    } else {
      item.kind = Kind::symbol;
      item.text = name();
    }
    made.items.push_back(std::move(item));
    if (!cursor_.accept(",") && cursor_.peek() != '}') cursor_.expect("}", "a list");
  }
  return made;
}

// "[2,4]<=[8]": two groups of four devices.
Attribute HloReader::device_groups() {
  Attribute made = {.kind = Kind::list, .offset = cursor_.at()};
  const DeviceList list = read_device_list(cursor_);
  if (list.dims.size() != 2)
    cursor_.refuse(made.offset,
                   bad_input("groups of devices have 2 dims, not {}", list.dims.size()));
  for (int64_t g = 0; g < list.dims[0]; ++g) {
    Attribute& group = made.items.emplace_back();
    group.kind = Kind::list;
    for (int64_t i = 0; i < list.dims[1]; ++i)
      group.items.push_back({.kind = Kind::integer,
                             .integer = list.devices[static_cast<size_t>(g * list.dims[1] + i)]});
  }
  return made;
}

Attribute HloReader::numbers() {
  Attribute made = {.kind = Kind::list, .offset = cursor_.at()};
  do {
    made.items.push_back({.kind = Kind::integer, .integer = cursor_.integer()});
  } while (cursor_.accept("x") || cursor_.accept("_"));
  return made;
}

void HloReader::window(Instruction& made) {
  Attribute record = {.kind = Kind::record, .offset = cursor_.at()};
  cursor_.expect("{", "window=");
  while (!cursor_.accept("}")) {
    record.keys.push_back(cursor_.need_word("a field of the window"));
    cursor_.expect("=", "a field of the window");
    record.items.push_back(numbers());
  }
  made.attributes.emplace_back("window", std::move(record));
}

// "0_1x-1_2_3": low, high and perhaps interior of each dim.
void HloReader::padding(Instruction& made) {
  Attribute low = {.kind = Kind::list, .offset = cursor_.at()};
  Attribute high = low, interior = low;
  if (cursor_.peek() == '-' || (cursor_.peek() >= '0' && cursor_.peek() <= '9')) {
    do {
      Ints each = {cursor_.integer()};
      while (cursor_.accept("_")) each.push_back(cursor_.integer());
      if (each.size() < 2 || each.size() > 3)
        cursor_.refuse(
            bad_input("the padding of a dim has {} numbers, but must have 2 or 3", each.size()));
      low.items.push_back({.kind = Kind::integer, .integer = each[0]});
      high.items.push_back({.kind = Kind::integer, .integer = each[1]});
      interior.items.push_back({.kind = Kind::integer, .integer = each.size() == 3 ? each[2] : 0});
    } while (cursor_.accept("x"));
  }
  made.attributes.emplace_back("low", std::move(low));
  made.attributes.emplace_back("high", std::move(high));
  made.attributes.emplace_back("interior", std::move(interior));
}

// Its op_name is a name for the value.
void HloReader::metadata(Instruction& made) {
  const std::string_view whole = cursor_.brackets(false);
  constexpr std::string_view kName = "op_name=\"";
  const size_t at = whole.find(kName);
  if (at == std::string_view::npos) return;
  const std::string_view rest = whole.substr(at + kName.size());
  std::string found(rest.substr(0, rest.find('"')));
  std::erase(found, '\\');  // params[\'w\']
  if (!found.empty()) made.label = program_.made.emplace_back(std::move(found));
}

void HloReader::attribute(Instruction& made) {
  const std::string_view key = cursor_.need_word("the name of an attribute", true);
  cursor_.expect("=", "the name of an attribute");
  const char next = cursor_.peek();
  if (key == "window") return window(made);
  if (key == "padding") return padding(made);
  if (key == "metadata" && next == '{') return metadata(made);
  Attribute value = {.offset = cursor_.at()};
  constexpr std::string_view kLists[] = {
      "dims",         "dimensions",          "map",           "sizes", "slice",
      "computations", "source_target_pairs", "replica_groups"};
  constexpr std::string_view kBodies[] = {
      "to_apply", "calls",   "condition",        "body",
      "select",   "scatter", "true_computation", "false_computation"};
  if (next == '{' && std::ranges::any_of(kLists, [&](auto end) { return key.ends_with(end); })) {
    value = braces();
  } else if (next == '[' && key == "replica_groups") {
    value = device_groups();
  } else if (std::ranges::find(kBodies, key) != std::ranges::end(kBodies)) {
    value.kind = Kind::symbol;
    value.text = name();
  } else if (next == '"') {
    value.kind = Kind::word;
    value.text = cursor_.quoted();
  } else {
    value.text = raw_value();
    value.kind = Kind::word;
    if (const Result<int64_t> number = parse_int(value.text); number.ok()) {
      value.kind = Kind::integer;
      value.integer = *number;
    } else if (value.text == "true" || value.text == "false") {
      value.kind = Kind::integer;
      value.integer = value.text == "true" ? 1 : 0;
    }
  }
  made.attributes.emplace_back(key == "slice" ? "ranges" : key, std::move(value));
}

}  // namespace

bool begins_like_hlo_text(std::string_view text) { return trim(text).starts_with("HloModule"); }

void read_hlo_text(Program& program) { HloReader(program).read(); }

}  // namespace hone::hlo
