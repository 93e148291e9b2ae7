#include "front/hlo/importer.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "base/text.h"
#include "base/text_lexer.h"
#include "front/front_end.h"
#include "front/hlo/device_dims.h"
#include "front/hlo/literal.h"

namespace hone::hlo {
namespace {

// Their attributes are those of the library that is called.
bool is_call_of_others(std::string_view name) {
  return name == "stablehlo.custom_call" || name.starts_with("interpreter.") ||
         name.starts_with("check.");
}

// An error of the builder, on its way to the instruction that caused it.
struct BuildFailure {
  Error error;
};

std::string stated(const ValueType& type) {
  return type.kind == ValueType::Kind::tensor ? type.type.to_string() : excerpt(type.text);
}

// Calls `f` for each instruction of a region and of those inside.
template <class F>
void for_each(const Region& region, const F& f) {
  for (const Instruction& one : region.instructions) {
    f(one);
    for (const Region& inner : one.regions) for_each(inner, f);
  }
}

}  // namespace

void append_leaves(const Held& held, std::vector<Value>& leaves) {
  if (held.value) leaves.push_back(held.value);
  for (const Held& part : held.parts) append_leaves(part, leaves);
}

Held from_leaves(const Held& shape, std::span<const Value>& leaves) {
  Held made = {.is_tuple = shape.is_tuple};
  if (shape.value) {
    made.value = leaves.front();
    leaves = leaves.subspan(1);
  }
  for (const Held& part : shape.parts) made.parts.push_back(from_leaves(part, leaves));
  return made;
}

void Importer::refuse(size_t offset, Error error) const {
  throw Refusal{std::move(error).within(program_.place(offset))};
}

void Importer::leave_on_failure(Builder& builder) {
  builder.on_failure([](const Error& error) { throw BuildFailure{error}; });
}

const Function& Importer::function_named(std::string_view name, size_t offset) const {
  const auto found = module_.by_name.find(name);
  if (found == module_.by_name.end())
    refuse(offset, bad_input("there is no function '{}'", excerpt(name)));
  return module_.functions[found->second];
}

std::string Importer::fresh(std::string_view wanted) {
  std::string name(wanted);
  int64_t& number = names_[name];
  if (number++ == 0) return name;
  while (names_.contains(name)) name = fmt::format("{}.{}", wanted, number++);
  names_[name] = 1;
  return name;
}

// ---- Before anything is built -------------------------------------------------------------------

// Names all ops without a row in the functions that the entry reaches.
void Importer::refuse_unknown(const Function& entry) {
  std::map<std::string_view, int64_t> uses;
  size_t first = SIZE_MAX;
  std::unordered_set<const Function*> seen = {&entry};
  std::vector<const Function*> open = {&entry};
  const auto reach = [&](const Attribute& attribute, const auto& self) -> void {
    if (attribute.kind == Attribute::Kind::symbol) {
      const auto found = module_.by_name.find(attribute.text);
      if (found == module_.by_name.end()) return;
      const Function* function = &module_.functions[found->second];
      if (seen.insert(function).second) open.push_back(function);
    }
    for (const Attribute& item : attribute.items) self(item, self);
  };
  while (!open.empty()) {
    const Function* function = open.back();
    open.pop_back();
    for_each(function->body, [&](const Instruction& one) {
      for (const auto& [key, value] : one.attributes) reach(value, reach);
      if (row_named(one.name) != nullptr) return;
      ++uses[one.name];
      first = std::min(first, one.offset);
    });
  }
  if (uses.empty()) return;
  std::vector<std::string> texts;
  for (const auto& [name, count] : uses)
    texts.push_back(fmt::format("'{}' ({} {})", excerpt(name), count, count == 1 ? "use" : "uses"));
  refuse(first, unsupported("ops that hone does not have: {}", join(texts, ", "))
                    .with_hint("docs/hlo-ops.md lists the ops that it has"));
}

// ---- Import -------------------------------------------------------------------------------------

Graph Importer::import(const Function& entry) {
  refuse_unknown(entry);
  // Each time two sizes become one, so it ends.
  while (true) {
    try {
      return built(entry);
    } catch (const Merge& merge) {
      const Bindings one = {{merge.symbol, merge.size}};
      for (auto& [name, size] : merged_) size = size.bind(one);
      if (!merged_.emplace(merge.symbol, merge.size).second)
        refuse(entry.offset, bad_input("the size {} is two things", merge.symbol));
      known_.clear();
      names_.clear();
      calls_.clear();
      checked_.clear();
      opened.clear();
      missing.clear();
      probed.clear();
      shardings_.clear();
      result_shardings_.clear();
      devices = 1;
      if (checks != nullptr) checks->clear();
      imported_ = checks_left_out = 0;
    }
  }
}

Graph Importer::built(const Function& entry) {
  Builder builder(entry.name);
  leave_on_failure(builder);
  top_ = &builder;
  contents_ = std::make_unique<Contents>(builder.graph());
  std::unordered_map<uint32_t, Held> held;
  Frame frame = {&builder, &entry, &held};
  const Region& region = entry.body;
  for (size_t i = 0; i < region.parameters.size(); ++i)
    held[region.first_parameter + static_cast<uint32_t>(i)] = parameters(builder, entry, i);
  annotate_parameters(frame);
  calls_.push_back(&entry);
  const std::vector<Held> results = run(frame, region);
  std::vector<Value> outputs;
  for (size_t i = 0; i < results.size() && i < entry.result_names.size(); ++i) {
    const std::string_view wanted = entry.result_names[i];
    const Value value = results[i].value;
    if (value && !wanted.empty() && builder.graph().name(value.id()).empty())
      value.named(fresh(wanted));
  }
  if (checks == nullptr) {
    for (const Held& one : results) append_leaves(one, outputs);
    add_donations(builder, entry, held, outputs);
  }
  if (checks != nullptr) outputs = checked_;
  keep_output_shardings(builder, entry, outputs);
  keep_shardings(builder);
  Result<Graph> graph = builder.finish(outputs);
  if (!graph.ok()) refuse(entry.offset, std::move(graph).error());
  if (checks != nullptr) return std::move(*graph);
  try {
    return with_single_devices(std::move(*graph), {*this, entry.offset});
  } catch (BuildFailure& failure) {
    refuse(entry.offset, std::move(failure.error));
  }
}

// As JAX writes them: tf.aliasing_output = 0 says that the first output may lie in the input's
// memory.
void Importer::add_donations(Builder& builder, const Function& entry,
                             const std::unordered_map<uint32_t, Held>& held,
                             std::span<const Value> outputs) {
  std::unordered_set<int64_t> taken;
  for (size_t i = 0; i < entry.parameter_attributes.size(); ++i)
    for (const auto& [key, value] : entry.parameter_attributes[i]) {
      if (key != "tf.aliasing_output" || value.kind != Attribute::Kind::integer) continue;
      const Value input = held.at(entry.body.first_parameter + static_cast<uint32_t>(i)).value;
      const int64_t output = value.integer;
      if (!input || output < 0 || output >= static_cast<int64_t>(outputs.size()) ||
          outputs[static_cast<size_t>(output)].type() != input.type() ||
          !taken.insert(output).second)
        continue;
      builder.donate(input, static_cast<int>(output));
      break;
    }
}

// The tensors of a parameter become inputs.
Held Importer::parameters(Builder& builder, const Function& entry, size_t i) {
  const Region& region = entry.body;
  size_t part = 0;
  const auto parameter = [&](const ValueType& one, const auto& self) -> Held {
    if (one.kind == ValueType::Kind::foreign)
      refuse(entry.offset,
             unsupported("the parameter {} is {}: hone lacks {}", i, excerpt(one.text), one.lack));
    Held made = {.is_tuple = one.kind == ValueType::Kind::tuple};
    if (one.kind == ValueType::Kind::tensor) {
      std::string name =
          part == 0 ? std::string(region.names[i]) : fmt::format("{}.{}", region.names[i], part);
      name = fresh(name.empty() ? "input" : name);
      made.value = builder.parameter(name, sized(entry, i, name, one.type));
      ++part;
    }
    for (const ValueType& inner : one.parts) made.parts.push_back(self(inner, self));
    return made;
  };
  return parameter(region.parameters[i], parameter);
}

// ---- Instructions -------------------------------------------------------------------------------

std::vector<Held> Importer::run(Frame& frame, const Region& region) {
  for (const Instruction& one : region.instructions) {
    if (++imported_ > kMostImported)
      refuse(one.offset,
             over_limit("with all calls written out there are more than {} instructions",
                        kMostImported));
    try {
      step(frame, one);
      annotate(frame, one);
    } catch (BuildFailure& failure) {
      refuse(one.offset, std::move(failure.error));
    }
  }
  std::vector<Held> results;
  for (const uint32_t id : region.results) results.push_back(frame.held->at(id));
  return results;
}

std::vector<Held> Importer::call(Frame& frame, const Body& body, std::vector<Held> arguments) {
  if (body.region->parameters.size() != arguments.size())
    refuse(body.region->offset, bad_input("it takes {} values, but gets {}",
                                          body.region->parameters.size(), arguments.size()));
  const auto bind = [&](std::unordered_map<uint32_t, Held>& held) {
    for (size_t i = 0; i < arguments.size(); ++i)
      held[body.region->first_parameter + static_cast<uint32_t>(i)] = std::move(arguments[i]);
  };
  if (body.function == frame.function && body.region != &body.function->body) {
    bind(*frame.held);
    return run(frame, *body.region);
  }
  if (std::ranges::find(calls_, body.function) != calls_.end())
    refuse(body.function->offset,
           bad_input("the function '{}' calls itself", excerpt(body.function->name)));
  if (calls_.size() >= kMostDepth)
    refuse(body.function->offset, over_limit("calls nest more than {} deep", kMostDepth));
  calls_.push_back(body.function);
  std::unordered_map<uint32_t, Held> held;
  Frame inner = {frame.builder, body.function, &held, frame.lifted};
  bind(held);
  annotate_parameters(inner);
  std::vector<Held> results = run(inner, *body.region);
  calls_.pop_back();
  return results;
}

std::optional<Tensor> Importer::known(const Builder& builder, Value value) const {
  const Graph& graph = builder.graph();
  const auto stated = [&](ValueId id) -> std::optional<Tensor> {
    if (const auto found = known_.find(id.index); &builder == top_ && found != known_.end())
      return found->second;
    const NodeId node = graph.producer(id);
    if (graph.opcode(node) == Opcode::constant) return graph.constant(node);
    return std::nullopt;
  };
  if (std::optional<Tensor> tensor = stated(value.id())) return tensor;
  // One number that is spread is known, too.
  ValueId id = value.id();
  std::optional<Tensor> number;
  while (!number) {
    const NodeId node = graph.producer(id);
    const Opcode opcode = graph.opcode(node);
    if (opcode != Opcode::broadcast && opcode != Opcode::reshape) return std::nullopt;
    id = graph.operands(node)[0];
    number = stated(id);
  }
  constexpr int64_t kMost = 1 << 12;
  const Type type = graph.type(value.id());
  if (!type.is_static() || number->elements() != 1 || type.static_elements() > kMost)
    return std::nullopt;
  const auto count = static_cast<size_t>(type.static_elements());
  if (is_real(type.dtype()))
    return Tensor::from_reals(type, std::vector<double>(count, number->real_at(0)));
  return Tensor::from_integers(type, std::vector<int64_t>(count, number->integer_at(0)));
}

std::vector<uint32_t> free_values(const Region& region) {
  std::unordered_set<uint32_t> defined;
  std::unordered_set<uint32_t> seen;
  std::vector<uint32_t> found;
  const auto use = [&](uint32_t id) {
    if (!defined.contains(id) && seen.insert(id).second) found.push_back(id);
  };
  const auto walk = [&](const Region& one, const auto& self) -> void {
    for (uint32_t i = 0; i < one.parameters.size(); ++i) defined.insert(one.first_parameter + i);
    for (const Instruction& each : one.instructions) {
      for (const uint32_t id : each.operands) use(id);
      for (const Region& inner : each.regions) self(inner, self);
      for (uint32_t i = 0; i < each.results.size(); ++i) defined.insert(each.first_result + i);
    }
    for (const uint32_t id : one.results) use(id);
  };
  walk(region, walk);
  return found;
}

void Importer::add_check(Node& node, Check check, Value got, Value want) {
  if (checks == nullptr) {
    ++checks_left_out;
    return;
  }
  if (&node.builder() != top_)
    node.refuse(unsupported("a check within a loop or a branch is not handled"));
  check.place = program_.place(node.instruction().offset);
  checks->push_back(std::move(check));
  checked_.push_back(got);
  checked_.push_back(want);
}

// ---- One instruction ----------------------------------------------------------------------------

void Importer::constant(Frame& frame, const Instruction& instruction) {
  Node node(*this, frame, instruction);
  const Attribute* attribute = node.find("value");
  const Type type = node.static_result();
  if (attribute == nullptr || attribute->kind != Attribute::Kind::literal)
    node.refuse(bad_input("the constant has no literal"));
  if (attribute->text.find("...") != std::string_view::npos)
    return elided(frame, instruction, type);
  const Literal literal = read_literal(program_, *attribute, type);
  constexpr int64_t kMostOpened = 1 << 20;
  Held& held = (*frame.held)[instruction.first_result];
  Builder& b = *frame.builder;
  const Dims dims(type.dims().begin(), type.dims().end());
  if (opens_constants && &b == top_ && frame.lifted == nullptr && type.static_elements() > 0 &&
      type.static_elements() <= kMostOpened) {
    Tensor whole = literal.tensor;
    if (literal.splat) {
      const auto count = static_cast<size_t>(type.static_elements());
      whole = is_real(type.dtype())
                  ? Tensor::from_reals(type, std::vector<double>(count, whole.real_at(0)))
                  : Tensor::from_integers(type, std::vector<int64_t>(count, whole.integer_at(0)));
    }
    held.value = b.parameter(fresh("constant"), type);
    known_.emplace(held.value.id().index, whole);
    opened.push_back(std::move(whole));
    return;
  }
  held.value = b.constant(literal.tensor);
  if (literal.splat)
    held.value = b.op(Opcode::broadcast, {held.value}, {{"dims", dims}, {"map", Ints{}}});
}

// The file does not print its numbers: an input stands for them.
void Importer::elided(Frame& frame, const Instruction& instruction, Type type) {
  if (frame.builder != top_ || frame.lifted != nullptr)
    refuse(instruction.offset,
           unsupported("the numbers of a constant within a loop or a branch are left out"));
  const std::string place = line_and_column(*program_.source, instruction.offset);
  const std::string name = fresh(fmt::format("{}{}", kMissingConstant, place));
  (*frame.held)[instruction.first_result].value = top_->parameter(name, type);
  missing.push_back(
      fmt::format("the numbers of a constant ({})", program_.place(instruction.offset)));
}

void Importer::add_foreign_call(std::string_view target, size_t offset) {
  const std::string name = fmt::format("{}{}", kMissingCall, target);
  if (names_.contains(name)) return;
  (void)top_->parameter(fresh(name), DType::f32, {0});
  missing.push_back(
      fmt::format("what '{}' computes ({})", excerpt(target), program_.place(offset)));
}

// Ops that work on tuples as they are.
bool Importer::structural(Frame& frame, const Instruction& instruction) {
  std::unordered_map<uint32_t, Held>& held = *frame.held;
  const std::string_view name = instruction.name;
  if (name == "stablehlo.constant") {
    constant(frame, instruction);
    return true;
  }
  if (name == "stablehlo.tuple") {
    Held made = {.is_tuple = true};
    for (const uint32_t id : instruction.operands) made.parts.push_back(held.at(id));
    held[instruction.first_result] = std::move(made);
    return true;
  }
  if (name == "stablehlo.get_tuple_element") {
    Node node(*this, frame, instruction);
    const Held& tuple = node.held(0);
    const Ints index = node.ints("index|ranges");
    if (!tuple.is_tuple || index.size() != 1 || index[0] < 0 ||
        index[0] >= static_cast<int64_t>(tuple.parts.size()))
      node.refuse(bad_input("element {} of {}", join(index, ", "),
                            tuple.is_tuple ? fmt::format("a tuple of {}", tuple.parts.size())
                                           : "a value that is no tuple"));
    Held part = tuple.parts[static_cast<size_t>(index[0])];
    held[instruction.first_result] = std::move(part);
    return true;
  }
  if (name == "call" || name == "stablehlo.composite") {
    Node node(*this, frame, instruction);
    const bool is_call = name == "call";
    const Body body = node.body(0, is_call ? "callee|to_apply|calls" : "decomposition|to_apply");
    std::vector<Held> arguments;
    for (const uint32_t id : instruction.operands) arguments.push_back(held.at(id));
    std::vector<Held> results = call(frame, body, std::move(arguments));
    if (results.size() != instruction.results.size())
      node.refuse(bad_input("the function '{}' returns {} values, but {} are named",
                            excerpt(body.function->name), results.size(),
                            instruction.results.size()));
    for (size_t i = 0; i < results.size(); ++i)
      held[instruction.first_result + static_cast<uint32_t>(i)] = std::move(results[i]);
    return true;
  }
  return false;
}

Held Importer::packed(const ValueType& type, std::span<const Value>& leaves,
                      const Instruction& instruction, bool lifted) {
  if (type.kind == ValueType::Kind::foreign)
    refuse(instruction.offset,
           unsupported("'{}' makes {}: hone lacks {}", excerpt(instruction.name),
                       excerpt(type.text), type.lack));
  Held made = {.is_tuple = type.kind == ValueType::Kind::tuple};
  if (type.kind == ValueType::Kind::tensor) {
    if (leaves.empty())
      refuse(instruction.offset, bad_input("'{}' has too many results", excerpt(instruction.name)));
    made.value = leaves.front();
    leaves = leaves.subspan(1);
    const bool fits = made.value.dtype() == type.type.dtype() &&
                      (lifted || fits_stated(made.value.type(), type.type, instruction.offset));
    if (!fits)
      refuse(instruction.offset,
             bad_input("'{}' makes {}, but the text states {}", excerpt(instruction.name),
                       made.value.type().to_string(), stated(type)));
  }
  for (const ValueType& part : type.parts)
    made.parts.push_back(packed(part, leaves, instruction, lifted));
  return made;
}

void Importer::step(Frame& frame, const Instruction& instruction) {
  if (structural(frame, instruction)) return;
  for (const ValueType& type : instruction.results)
    if (type.kind == ValueType::Kind::foreign)
      refuse(instruction.offset,
             unsupported("'{}' makes {}: hone lacks {}", excerpt(instruction.name),
                         excerpt(type.text), type.lack));
  const OpRow* row = row_named(instruction.name);
  HONE_CHECK(row != nullptr && row->import != nullptr, "'{}' has no row", instruction.name);
  if (frame.lifted != nullptr && !row->pointwise)
    refuse(instruction.offset,
           unsupported("'{}' within a body of scalars is not handled", excerpt(instruction.name)));
  Node node(*this, frame, instruction);
  check_sizes(node, *row, instruction);
  const std::vector<Value> made = row->import(node);
  if (!is_call_of_others(instruction.name)) node.refuse_unread();
  std::span<const Value> leaves = made;
  for (size_t i = 0; i < instruction.results.size(); ++i) {
    Held held = packed(instruction.results[i], leaves, instruction, frame.lifted != nullptr);
    if (!instruction.label.empty() && held.value && frame.builder == top_ &&
        frame.builder->graph().name(held.value.id()).empty())
      held.value.named(fresh(instruction.label));
    (*frame.held)[instruction.first_result + static_cast<uint32_t>(i)] = std::move(held);
  }
  if (!leaves.empty())
    refuse(instruction.offset, bad_input("'{}' makes {} more results than the text states",
                                         excerpt(instruction.name), leaves.size()));
}

}  // namespace hone::hlo
