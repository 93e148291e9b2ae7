#include <algorithm>

#include "base/text.h"
#include "front/hlo/importer.h"
#include "front/hlo/literal.h"

namespace hone::hlo {

Node::Node(Importer& importer, Frame& frame, const Instruction& instruction)
    : importer_(importer), frame_(frame), instruction_(instruction) {
  for (const uint32_t id : instruction.operands) {
    const auto found = frame.held->find(id);
    if (found == frame.held->end()) refuse(bad_input("an operand is not defined here"));
    append_leaves(found->second, operands_);
  }
  if (frame.lifted == nullptr) return;
  // Scalars of a body stand for whole tensors.
  for (Value& one : operands_)
    if (one.rank() == 0 && !frame.lifted->empty())
      one = builder().op(Opcode::broadcast, {one}, {{"dims", *frame.lifted}, {"map", Ints{}}});
}

void Node::refuse(Error error) const {
  importer_.refuse(instruction_.offset, std::move(error).about(instruction_.name));
}

Value Node::in(size_t i) {
  if (i >= operands_.size())
    refuse(bad_input("operand {} is missing: there are {}", i, operands_.size()));
  return operands_[i];
}

void Node::need(size_t count) {
  if (operands_.size() != count)
    refuse(bad_input("it takes {} operands, but has {}", count, operands_.size()));
}

const Held& Node::held(size_t i) {
  if (i >= instruction_.operands.size())
    refuse(bad_input("operand {} is missing: there are {}", i, instruction_.operands.size()));
  return frame_.held->at(instruction_.operands[i]);
}

std::optional<Tensor> Node::known(Value value) { return importer_.known(builder(), value); }

Ints Node::known_ints(size_t i) {
  const std::optional<Tensor> tensor = known(in(i));
  if (!tensor || is_real(tensor->dtype()))
    refuse(unsupported("operand {} must be a constant of integers", i));
  Ints numbers(static_cast<size_t>(tensor->elements()));
  tensor->read_integers(0, numbers);
  return numbers;
}

Dims Node::known_dims(size_t i) {
  std::optional<Dims> dims = importer_.known_dims(builder(), in(i));
  if (!dims) refuse(unsupported("operand {} must be numbers or sizes, but it depends on data", i));
  return std::move(*dims);
}

void Node::make_equal(Dim a, Dim b) { importer_.make_equal(a, b, instruction_.offset); }

const Attribute* Node::find(std::string_view names) const {
  for (const std::string_view name : split(names, '|'))
    for (size_t i = 0; i < instruction_.attributes.size(); ++i) {
      const auto& [key, value] = instruction_.attributes[i];
      if (key != name) continue;
      if (i < 64) asked_ |= uint64_t{1} << i;
      return &value;
    }
  return nullptr;
}

void Node::refuse_unread() const {
  // Hints, promises, marks for other tools, and what ops read on some of their ways only.
  constexpr std::string_view kSilent[] = {"accuracy",
                                          "algorithm",
                                          "backend_config",
                                          "channel_handle",
                                          "channel_id",
                                          "compare_type",
                                          "constrain_layout",
                                          "exact",
                                          "frontend_attributes",
                                          "has_side_effect",
                                          "indices_are_sorted",
                                          "inferred_dimension",
                                          "is_stable",
                                          "kind",
                                          "known_expanding_dimensions",
                                          "known_nonexpanding_dimensions",
                                          "metadata",
                                          "operand_precision",
                                          "origin",
                                          "precision",
                                          "precision_config",
                                          "result_accuracy",
                                          "sharding",
                                          "split_count",
                                          "statistics",
                                          "type",
                                          "unique_indices",
                                          "use_global_device_ids"};
  for (size_t i = 0; i < instruction_.attributes.size(); ++i) {
    const std::string_view name = instruction_.attributes[i].first;
    const bool is_of_others = name.find('.') != name.npos || name.find('-') != name.npos;
    if ((i < 64 && (asked_ >> i & 1) != 0) || is_of_others ||
        std::ranges::find(kSilent, name) != std::ranges::end(kSilent))
      continue;
    const size_t at = instruction_.attributes[i].second.offset;
    importer_.refuse(
        at == 0 ? instruction_.offset : at,
        bad_input("'{}' has no attribute '{}'", excerpt(instruction_.name), excerpt(name))
            .with_hint("delete it if it changes no number"));
  }
}

Ints Node::ints_of(const Attribute& attribute) {
  switch (attribute.kind) {
    case Attribute::Kind::integer: return {attribute.integer};
    case Attribute::Kind::list: {
      Ints all;
      for (const Attribute& item : attribute.items)
        for (const int64_t number : ints_of(item)) all.push_back(number);
      return all;
    }
    case Attribute::Kind::literal: {
      const ValueType& type = attribute.type;
      if (type.kind != ValueType::Kind::tensor || is_real(type.type.dtype()) ||
          !type.type.is_static())
        refuse(bad_input("an attribute must be a literal of integers"));
      constexpr int64_t kMost = 1 << 16;
      const int64_t count = type.type.static_elements();
      if (count > kMost) refuse(over_limit("an attribute has {} numbers", count));
      const Literal literal = read_literal(importer_.program(), attribute, type.type);
      Ints numbers(static_cast<size_t>(literal.tensor.elements()));
      literal.tensor.read_integers(0, numbers);
      return literal.splat ? Ints(static_cast<size_t>(count), numbers[0]) : numbers;
    }
    default: refuse(bad_input("an attribute must be integers"));
  }
}

Ints Node::ints(std::string_view names, const Ints& fallback) {
  const Attribute* found = find(names);
  return found == nullptr ? fallback : ints_of(*found);
}

Ints Node::ints(std::string_view names) {
  const Attribute* found = find(names);
  if (found == nullptr)
    refuse(bad_input("the attribute '{}' is missing", names.substr(0, names.find('|'))));
  return ints_of(*found);
}

int64_t Node::integer(std::string_view names, int64_t fallback) {
  const Attribute* found = find(names);
  if (found == nullptr) return fallback;
  const Ints numbers = ints_of(*found);
  if (numbers.size() != 1)
    refuse(bad_input("the attribute '{}' has {} numbers, but must be one",
                     names.substr(0, names.find('|')), numbers.size()));
  return numbers[0];
}

std::string_view Node::word(std::string_view names, std::string_view fallback) {
  const Attribute* found = find(names);
  return found == nullptr ? fallback : found->text;
}

double Node::real(std::string_view names, double fallback) {
  const Attribute* found = find(names);
  if (found == nullptr) return fallback;
  if (found->kind == Attribute::Kind::real) return found->real;
  if (found->kind == Attribute::Kind::integer) return static_cast<double>(found->integer);
  const Result<double> number = parse_double(found->text);
  if (!number.ok()) refuse(bad_input("the attribute '{}' must be a number", names));
  return *number;
}

Ints Node::field(std::string_view record, std::string_view names, const Ints& fallback) {
  const Attribute* found = find(record);
  if (found == nullptr) return ints(names, fallback);
  for (const std::string_view name : split(names, '|'))
    for (size_t i = 0; i < found->keys.size(); ++i)
      if (found->keys[i] == name) return ints_of(found->items[i]);
  return fallback;
}

int64_t Node::field(std::string_view record, std::string_view names, int64_t fallback) {
  const Ints numbers = field(record, names, Ints{fallback});
  if (numbers.size() != 1)
    refuse(bad_input("the field '{}' has {} numbers, but must be one", names, numbers.size()));
  return numbers[0];
}

Type Node::result(size_t i) {
  std::vector<Type> tensors;
  const auto add = [&](const ValueType& type, const auto& self) -> void {
    if (type.kind == ValueType::Kind::foreign)
      refuse(unsupported("the result is {}: hone lacks {}", excerpt(type.text), type.lack));
    if (type.kind == ValueType::Kind::tensor) tensors.push_back(type.type);
    for (const ValueType& part : type.parts) self(part, self);
  };
  for (const ValueType& type : instruction_.results) add(type, add);
  if (i >= tensors.size()) refuse(bad_input("the text states no tensor as result {}", i));
  return tensors[i];
}

Type Node::static_result(size_t i) {
  const Type type = result(i);
  if (!type.is_static()) refuse(unsupported("the result {} has an open size", type.to_string()));
  return type;
}

Body Node::body(size_t i, std::string_view attribute) {
  if (i < instruction_.regions.size()) return {frame_.function, &instruction_.regions[i]};
  const Attribute* found = find(attribute);
  if (found != nullptr && found->kind == Attribute::Kind::list && i < found->items.size())
    found = &found->items[i];
  if (found == nullptr || found->kind != Attribute::Kind::symbol)
    refuse(bad_input("the body {} is missing", i));
  const Function& function = importer_.function_named(found->text, instruction_.offset);
  return {&function, &function.body};
}

std::vector<Value> Node::apply(const Body& body, std::span<const Value> arguments,
                               const Dims* lifted) {
  Frame inner = frame_;
  if (lifted != nullptr) inner.lifted = lifted;
  std::vector<Held> held;
  for (const Value& one : arguments) held.push_back({.value = one});
  std::vector<Value> results;
  for (const Held& one : importer_.call(inner, body, std::move(held))) append_leaves(one, results);
  if (lifted == nullptr) return results;
  for (Value& one : results)
    if (one.rank() == 0 && !lifted->empty())
      one = builder().op(Opcode::broadcast, {one}, {{"dims", *lifted}, {"map", Ints{}}});
  return results;
}

std::vector<Value> Node::apply_in(Builder& inner, const Body& body,
                                  std::span<const Value> arguments, const Dims& lifted) {
  Importer::leave_on_failure(inner);
  std::unordered_map<uint32_t, Held> held;
  if (body.region != &body.function->body)
    for (const uint32_t id : free_values(*body.region)) {
      const auto found = frame_.held->find(id);
      const Value outer = found == frame_.held->end() ? Value() : found->second.value;
      const std::optional<Tensor> number = outer ? known(outer) : std::nullopt;
      if (!number || outer.rank() != 0)
        refuse(
            unsupported("a body that reads other values from outside than constants is not "
                        "handled"));
      held[id].value = inner.constant(*number);
    }
  Frame frame = {&inner, frame_.function, &held, &lifted};
  std::vector<Held> values;
  for (const Value& one : arguments) values.push_back({.value = one});
  std::vector<Value> results;
  for (const Held& one : importer_.call(frame, body, std::move(values)))
    append_leaves(one, results);
  for (Value& one : results)
    if (one.rank() == 0 && !lifted.empty()) one = broadcast(one, lifted, {});
  return results;
}

}  // namespace hone::hlo
