#include "front/hlo/stablehlo_text.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/text.h"
#include "front/hlo/mlir_reader.h"
#include "front/hlo/sharding_text.h"

namespace hone::hlo {
namespace {

using Kind = Attribute::Kind;

// The results of an op under one name: %0:2.
struct Named {
  uint32_t first = 0;
  uint32_t count = 1;
};

struct Name {
  std::string_view name = {};
  uint32_t count = 1;
  size_t offset = 0;
};

class StablehloReader : public MlirReader {
 public:
  explicit StablehloReader(Program& program) : MlirReader(program), program_(program) {}
  void read();

 private:
  // ---- Modules and functions ----
  int64_t device_count(const Attribute& attribute) const;
  void find_ends_of_modules();
  Module& module_at(size_t offset);
  void module();
  void item(Module& module);
  void function(Module& module);
  void results(Function& made);

  // ---- Values ----
  uint32_t add_value();
  void define(const Name& name, Named values);
  uint32_t value();  // a use: "%0#1"
  Name name();

  // ---- Ops ----
  void parameters(Region& region, std::string_view end);
  void region(Region& made);
  void instructions(Region& region);
  void instruction(Region& region);
  void generic_form(Instruction& made);
  void pretty_form(Instruction& made);
  bool pretty_part(Instruction& made, std::vector<uint32_t>& inits);
  void loop(Instruction& made, const std::vector<Name>& names);
  void manual_computation(Instruction& made);
  void reducer(Instruction& made);
  void applied(Instruction& made);
  void types(Instruction& made);
  void give_results(Instruction& made, std::vector<ValueType> stated, bool has_arrow);
  void finish(Region& region, Instruction made, const std::vector<Name>& names);

  Program& program_;
  std::vector<size_t> ends_;  // of modules: the offsets of lines "// -----"
  size_t past_ends_ = 0;
  Function* function_ = nullptr;
  std::vector<std::unordered_map<std::string_view, Named>> scopes_;
  std::vector<ValueType> typed_;  // the types behind the colon
  std::vector<Name> loop_names_;  // the state of a while
  size_t result_names_ = 0;       // values on the left
};

// ---- Modules and functions ----------------------------------------------------------------------

int64_t StablehloReader::device_count(const Attribute& attribute) const {
  if (attribute.kind != Kind::integer || attribute.integer < 1 || attribute.integer > kMostDevices)
    cursor.refuse(attribute.offset,
                  bad_input("the number of replicas or partitions must be 1 to {}", kMostDevices));
  return attribute.integer;
}

void StablehloReader::find_ends_of_modules() {
  constexpr std::string_view kEnd = "\n// -----";
  const std::string_view text = cursor.text();
  for (size_t at = text.find(kEnd); at != std::string_view::npos; at = text.find(kEnd, at + 1))
    ends_.push_back(at);
}

// A new one, if a line has ended the last one.
Module& StablehloReader::module_at(size_t offset) {
  const size_t before = past_ends_;
  while (past_ends_ < ends_.size() && ends_[past_ends_] < offset) ++past_ends_;
  if (program_.modules.empty() || past_ends_ != before) program_.modules.emplace_back();
  return program_.modules.back();
}

void StablehloReader::read() {
  find_ends_of_modules();
  bool written_out = false;  // the last module stands between braces: it gets nothing more
  while (!cursor.at_end()) {
    if (cursor.accept("#") || cursor.accept("!")) {  // an alias: "#loc = loc(...)"
      (void)cursor.need_word("the name of an alias");
      cursor.expect("=", "the name of an alias");
      (void)attribute(true);
      continue;
    }
    const size_t at = cursor.at();
    if (cursor.accept_word("module")) {
      program_.modules.emplace_back();
      while (past_ends_ < ends_.size() && ends_[past_ends_] < at) ++past_ends_;
      module();
      written_out = true;
      continue;
    }
    if (written_out) program_.modules.emplace_back();
    written_out = false;
    item(module_at(at));
  }
}

void StablehloReader::module() {
  Module& made = program_.modules.back();
  if (cursor.peek() == '@') made.name = symbol();
  if (cursor.accept_word("attributes"))
    for (const auto& [key, value] : dictionary()) {
      if (key == "hone.symbols") made.symbols = value.text;
      if (key == "mhlo.num_replicas") made.grid.replicas = device_count(value);
      if (key == "mhlo.num_partitions") made.grid.partitions = device_count(value);
    }
  cursor.expect("{", "module");
  while (!cursor.accept("}")) item(made);
  skip_location();
}

void StablehloReader::item(Module& module) {
  if (cursor.accept_word("func.func")) return function(module);
  if (cursor.accept_word("sdy.mesh")) {
    const std::string_view name = symbol();
    cursor.expect("=", "the name of a mesh");
    (void)cursor.peek();
    const size_t at = cursor.at();
    (void)attribute(false);
    module.meshes.push_back(read_mesh(program_, at, name));
    if (cursor.peek() == '{') (void)dictionary();
    return;
  }
  if (cursor.at_end()) cursor.refuse(bad_input("'}}' is missing: the text ends within a module"));
  cursor.refuse(bad_input("a function is missing: there is {}", cursor.seen())
                    .with_hint("a module holds functions: func.func @main(...) { ... }"));
}

void StablehloReader::function(Module& module) {
  Function& made = module.functions.emplace_back();
  made.is_private = cursor.accept_word("private");
  (void)cursor.accept_word("public");
  made.offset = cursor.at();
  made.name = symbol();
  const auto index = static_cast<uint32_t>(module.functions.size() - 1);
  if (!module.by_name.emplace(made.name, index).second)
    cursor.refuse(made.offset, bad_input("there are two functions '{}'", excerpt(made.name)));
  function_ = &made;
  scopes_.assign(1, {});
  cursor.expect("(", "the name of a function");
  parameters(made.body, ")");
  if (cursor.accept("->")) results(made);
  if (cursor.accept_word("attributes")) (void)dictionary();
  if (cursor.at_end() || cursor.peek() == '-') cursor.expect("{", "the head of a function");
  if (cursor.peek() != '{')
    cursor.refuse(made.offset, unsupported("the function '{}' has no body", excerpt(made.name)));
  cursor.accept("{");
  instructions(made.body);
  skip_location();
  if (made.body.results.size() != made.results.size())
    cursor.refuse(made.offset,
                  bad_input("the function '{}' returns {} values, but states {}",
                            excerpt(made.name), made.body.results.size(), made.results.size()));
}

// "(t {jax.result_info = "name"}, t)" or "t"
void StablehloReader::results(Function& made) {
  if (cursor.peek() != '(') {
    made.results = type_list();
    return;
  }
  cursor.accept("(");
  while (!cursor.accept(")")) {
    made.results.push_back(type());
    made.result_names.emplace_back();
    made.result_attributes.emplace_back();
    if (cursor.peek() == '{') made.result_attributes.back() = dictionary();
    for (const auto& [key, value] : made.result_attributes.back())
      if (key == "jax.result_info") made.result_names.back() = value.text;
    if (!cursor.accept(",") && cursor.peek() != ')') cursor.expect(")", "the results");
  }
}

// ---- Values -------------------------------------------------------------------------------------

uint32_t StablehloReader::add_value() {
  if (function_->values >= kMostValues)
    cursor.refuse(over_limit("a function has more than {} values", kMostValues));
  return function_->values++;
}

Name StablehloReader::name() {
  cursor.expect("%", "this");
  Name made = {.offset = cursor.at() - 1};
  const size_t begin = cursor.at();
  const std::string_view text = cursor.text();
  size_t end = begin;
  const auto in_name = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '$' || (c == '-' && text.substr(end, 2) != "->");
  };
  while (end < text.size() && in_name(text[end])) ++end;
  if (end == begin) cursor.refuse(bad_input("a name is missing behind %"));
  made.name = text.substr(begin, end - begin);
  cursor.go_to(end);
  return made;
}

void StablehloReader::define(const Name& name, Named values) {
  if (!scopes_.back().emplace(name.name, values).second)
    cursor.refuse(name.offset, bad_input("the value %{} is defined twice", excerpt(name.name)));
}

uint32_t StablehloReader::value() {
  const Name used = name();
  int64_t which = 0;
  const bool picks = cursor.text().substr(cursor.at(), 1) == "#";
  if (picks) {
    cursor.accept("#");
    which = cursor.integer();
  }
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto found = scope->find(used.name);
    if (found == scope->end()) continue;
    if (which < 0 || which >= found->second.count)
      cursor.refuse(used.offset, bad_input("%{} has {} results, so there is no #{}",
                                           excerpt(used.name), found->second.count, which));
    return found->second.first + static_cast<uint32_t>(which);
  }
  cursor.refuse(used.offset, bad_input("the value %{} is not defined here", excerpt(used.name)));
}

// ---- Regions ------------------------------------------------------------------------------------

// "%a: t {attributes}, %b: t" and the bracket behind.
void StablehloReader::parameters(Region& region, std::string_view end) {
  region.first_parameter = function_->values;
  while (!cursor.accept(end)) {
    const Name made = name();
    cursor.expect(":", "the name of a parameter");
    region.parameters.push_back(type());
    region.names.push_back(made.name);
    AttributeList given;
    if (cursor.peek() == '{') given = dictionary();
    if (&region == &function_->body) function_->parameter_attributes.push_back(std::move(given));
    skip_location();
    define(made, {add_value(), 1});
    if (!cursor.accept(",") && !cursor.sees(end)) cursor.expect(end, "the parameters");
  }
}

// Behind its "{".
void StablehloReader::region(Region& made) {
  const Depth nested(depth, cursor);
  made.offset = cursor.at();
  scopes_.emplace_back();
  made.first_parameter = function_->values;
  if (cursor.accept("^")) {
    (void)cursor.word();
    if (cursor.accept("(")) parameters(made, ")");
    cursor.expect(":", "the head of a block");
  }
  instructions(made);
  scopes_.pop_back();
}

// To behind the "}".
void StablehloReader::instructions(Region& region) {
  bool ended = false;
  while (!cursor.accept("}")) {
    if (cursor.at_end()) cursor.refuse(bad_input("'}}' is missing: the text ends within a region"));
    if (cursor.peek() == '^')
      cursor.refuse(unsupported("a region of several blocks is not handled"));
    if (ended) cursor.refuse(bad_input("an instruction stands behind the end of its region"));
    instruction(region);
    if (region.instructions.back().name != "return") continue;
    region.results = region.instructions.back().operands;
    region.instructions.pop_back();
    ended = true;
  }
  if (!ended) cursor.refuse(bad_input("a region ends without 'return'"));
}

// ---- Ops ----------------------------------------------------------------------------------------

void StablehloReader::instruction(Region& region) {
  const Depth nested(depth, cursor);
  std::vector<Name> names;
  result_names_ = 0;
  if (cursor.peek() == '%') {
    do {
      Name made = name();
      if (cursor.accept(":")) {
        const int64_t count = cursor.integer();
        if (count < 1 || count > 4096)
          cursor.refuse(made.offset, bad_input("an op has {} results under one name", count));
        made.count = static_cast<uint32_t>(count);
      }
      names.push_back(made);
      result_names_ += made.count;
    } while (cursor.accept(","));
    cursor.expect("=", "the names of results");
  }
  const size_t result_names = result_names_;
  Instruction made;
  (void)cursor.peek();
  made.offset = cursor.at();
  typed_.clear();
  const bool generic = cursor.peek() == '"';
  made.name = generic ? cursor.quoted() : cursor.need_word("the name of an op");
  if (made.name == "func.call" || made.name == "func.return") made.name.remove_prefix(5);
  if (made.name == "stablehlo.return" || made.name == "sdy.return") made.name = "return";
  result_names_ = result_names;
  generic ? generic_form(made) : pretty_form(made);
  skip_location();
  finish(region, std::move(made), names);
}

void StablehloReader::generic_form(Instruction& made) {
  cursor.expect("(", "the name of an op in quotes");
  while (!cursor.accept(")")) {
    made.operands.push_back(value());
    if (!cursor.accept(",") && cursor.peek() != ')') cursor.expect(")", "the operands");
  }
  const auto take = [&](AttributeList entries) {
    for (auto& entry : entries) made.attributes.push_back(std::move(entry));
  };
  if (cursor.accept("<")) {
    take(dictionary());
    cursor.expect(">", "the properties of an op");
  }
  const size_t names = result_names_;
  if (cursor.accept("(")) {
    do {
      cursor.expect("{", "the bracket of the regions");
      Region inner;
      region(inner);
      made.regions.push_back(std::move(inner));
    } while (cursor.accept(","));
    cursor.expect(")", "the regions of an op");
  }
  result_names_ = names;
  if (cursor.peek() == '{') take(dictionary());
  cursor.expect(":", "an op in quotes");
  types(made);
}

// The parts of a pretty form follow each other in any order: operands, names with values, words,
// lists. False: something else comes next.
bool StablehloReader::pretty_part(Instruction& made, std::vector<uint32_t>& inits) {
  const auto add = [&](std::string_view key, Attribute value) {
    made.attributes.emplace_back(key, std::move(value));
  };
  switch (const char next = cursor.peek()) {
    case '%': {
      const bool is_init = !inits.empty() && inits.back() == UINT32_MAX;
      if (is_init)
        inits.back() = value();
      else
        made.operands.push_back(value());
      return true;
    }
    case '@': add("callee", attribute(false)); return true;
    case '[': add("ranges", attribute(false)); return true;
    case '"': add("name", attribute(false)); return true;
    case '#': add("value", attribute(false)); return true;
    case '<':
    case '{': {
      if (next == '<' && made.name.starts_with("sdy.")) {  // a sharding
        add("sharding", attribute(false));
        return true;
      }
      const bool angled = cursor.accept("<");
      for (auto& entry : dictionary()) made.attributes.push_back(std::move(entry));
      if (angled) cursor.expect(">", "the properties of an op");
      return true;
    }
    case '(':
    case ')':
    case ',': cursor.accept(std::string_view(&next, 1)); return true;
    default: break;
  }
  if (cursor.sees_word("dense")) {
    add("value", attribute(false));
    return true;
  }
  const std::string_view word = cursor.word();
  if (word.empty()) return false;
  if (word == "init" && cursor.accept(":")) {
    inits.push_back(UINT32_MAX);
  } else if (cursor.accept("=")) {
    add(word, cursor.peek() == '[' ? lists() : attribute(false));
  } else {
    made.words.push_back(word);
  }
  return true;
}

// "(%x) in_shardings=[...] out_shardings=[...] manual_axes={...} (%a: t) {...} : (t) -> t"
void StablehloReader::manual_computation(Instruction& made) {
  cursor.expect("(", made.name);
  while (!cursor.accept(")")) {
    made.operands.push_back(value());
    if (!cursor.accept(",") && cursor.peek() != ')') cursor.expect(")", "the operands");
  }
  std::vector<uint32_t> inits;
  while (cursor.peek() != '(')
    if (!pretty_part(made, inits)) cursor.expect("(", "the axes of the computation");
  cursor.accept("(");
  const size_t names = result_names_;
  Region body = {.offset = cursor.at()};
  scopes_.emplace_back();
  parameters(body, ")");
  cursor.expect("{", "the parameters of the computation");
  instructions(body);
  scopes_.pop_back();
  made.regions.push_back(std::move(body));
  result_names_ = names;
}

void StablehloReader::pretty_form(Instruction& made) {
  if (made.name == "sdy.manual_computation") manual_computation(made);
  if (made.name == "stablehlo.while") {
    cursor.expect("(", "while");
    loop_names_.clear();
    while (!cursor.accept(")")) {
      loop_names_.push_back(name());
      cursor.expect("=", "the name of a state");
      made.operands.push_back(value());
      if (!cursor.accept(",") && cursor.peek() != ')') cursor.expect(")", "the states");
    }
  }
  std::vector<uint32_t> inits;
  while (cursor.peek() != ':' && cursor.peek() != '}' && !cursor.sees_word("loc"))
    if (!pretty_part(made, inits)) {
      cursor.refuse(bad_input("an op cannot go on with {}", cursor.seen()));
    }
  made.operands.insert(made.operands.end(), inits.begin(), inits.end());
  if (std::ranges::count(inits, UINT32_MAX) > 0)
    cursor.refuse(bad_input("a value is missing behind 'init:'"));
  if (!cursor.accept(":")) {
    give_results(made, {}, false);
    return;
  }
  types(made);
  if (made.name == "stablehlo.while") loop(made, std::vector<Name>(loop_names_));
  if (made.name == "stablehlo.reduce")
    cursor.accept_word("reducer") ? reducer(made) : applied(made);
}

// Behind the colon.
void StablehloReader::types(Instruction& made) {
  std::vector<ValueType> all;
  if (cursor.peek() == '(') {
    all = type_list();
  } else {
    do {
      all.push_back(type());
    } while (cursor.accept(","));
  }
  typed_ = all;
  const bool has_arrow = cursor.accept("->");
  give_results(made, has_arrow ? type_list() : std::move(all), has_arrow);
}

// Without an arrow the types are those of all results, or the last one is.
void StablehloReader::give_results(Instruction& made, std::vector<ValueType> stated,
                                   bool has_arrow) {
  if (has_arrow) {
    made.results = std::move(stated);
  } else if (result_names_ == 0) {
    made.results.clear();
  } else if (result_names_ == 1 && !stated.empty()) {
    made.results.assign(1, stated.back());
  } else {
    made.results = std::move(stated);
  }
  if (result_names_ != 0 && result_names_ != made.results.size())
    cursor.refuse(made.offset, bad_input("the op has {} results, but {} names", made.results.size(),
                                         result_names_));
}

void StablehloReader::loop(Instruction& made, const std::vector<Name>& names) {
  if (names.size() != typed_.size())
    cursor.refuse(made.offset,
                  bad_input("the loop has {} states, but {} types", names.size(), typed_.size()));
  const std::vector<ValueType> states = typed_;
  if (cursor.accept_word("attributes"))
    for (auto& entry : dictionary()) made.attributes.push_back(std::move(entry));
  for (const std::string_view part : {"cond", "do"}) {
    if (!cursor.accept_word(part))
      cursor.refuse(bad_input("'{}' is missing: there is {}", part, cursor.seen()));
    if (part == "cond") (void)cursor.accept_word("attributes");
    cursor.expect("{", part);
    Region inner = {.first_parameter = function_->values, .parameters = states};
    scopes_.emplace_back();
    for (const Name& one : names) {
      inner.names.push_back(one.name);
      define(one, {add_value(), 1});
    }
    const uint32_t first = inner.first_parameter;
    instructions(inner);
    inner.first_parameter = first;
    scopes_.pop_back();
    made.regions.push_back(std::move(inner));
  }
}

// "(%x: t, %y: t) (%z: t, %w: t) {...}": the two sides of each operand. The generic form has all
// left ones first.
void StablehloReader::reducer(Instruction& made) {
  struct Side {
    Name name;
    ValueType type;
  };
  std::vector<Side> left;
  std::vector<Side> right;
  while (cursor.accept("(")) {
    for (std::vector<Side>* sides : {&left, &right}) {
      Name one = name();
      cursor.expect(":", "the name of a parameter");
      sides->push_back({one, type()});
      skip_location();
      if (sides == &left) cursor.expect(",", "the left side");
    }
    cursor.expect(")", "both sides");
  }
  left.insert(left.end(), right.begin(), right.end());
  Region inner = {.first_parameter = function_->values};
  scopes_.emplace_back();
  for (const Side& side : left) {
    inner.parameters.push_back(side.type);
    inner.names.push_back(side.name.name);
    define(side.name, {add_value(), 1});
  }
  cursor.expect("{", "the parameters of a reducer");
  instructions(inner);
  scopes_.pop_back();
  made.regions.push_back(std::move(inner));
}

// "applies stablehlo.add": a body of this op alone.
void StablehloReader::applied(Instruction& made) {
  const auto at = std::ranges::find(made.words, "applies");
  if (at == made.words.end() || at + 1 == made.words.end() || typed_.empty())
    cursor.refuse(made.offset, bad_input("the reduction has no body")
                                   .with_hint("'applies stablehlo.add', or 'reducer(...) {...}'"));
  const ValueType scalar = typed_.back();
  Region inner = {.first_parameter = add_value(), .parameters = {scalar, scalar}};
  inner.names.assign(2, "");
  Instruction body;
  body.name = *(at + 1);
  body.offset = made.offset;
  body.operands = {inner.first_parameter, add_value()};
  body.first_result = add_value();
  body.results = {scalar};
  inner.results = {body.first_result};
  inner.instructions.push_back(std::move(body));
  made.regions.push_back(std::move(inner));
}

void StablehloReader::finish(Region& region, Instruction made, const std::vector<Name>& names) {
  made.first_result = function_->values;
  for (size_t i = 0; i < made.results.size(); ++i) (void)add_value();
  uint32_t next = made.first_result;
  for (const Name& one : names) {
    define(one, {next, one.count});
    next += one.count;
  }
  // The type of a literal stands behind the op.
  for (auto& [key, value] : made.attributes)
    if (value.kind == Kind::literal && value.type.text.empty() && !typed_.empty())
      value.type = typed_.back();
  region.instructions.push_back(std::move(made));
}

}  // namespace

void read_stablehlo(Program& program) { StablehloReader(program).read(); }

}  // namespace hone::hlo
