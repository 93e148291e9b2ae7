#include <algorithm>

#include "base/text.h"
#include "front/hlo/importer.h"

// The graph gets the shardings that a program states of its values.

namespace hone::hlo {
namespace {

constexpr std::string_view kResult = "xla.sdy.FuncResultSharding";
constexpr std::string_view kInString = "xla.sdy.sharding";

const Attribute* listed_attribute(const AttributeList& attributes, std::string_view name) {
  const auto found = std::ranges::find(attributes, name, &AttributeList::value_type::first);
  return found == attributes.end() ? nullptr : &found->second;
}

// Where the key of Shardy's sharding begins in attributes that are kept as text, and not that of
// "xla.sdy.sharding_rule".
size_t key_of_sharding(std::string_view text) {
  const std::string key = fmt::format("{}=", kInString);
  size_t at = text.find(key);
  while (at != std::string_view::npos && at > 0 &&
         std::string_view("{, ").find(text[at - 1]) == std::string_view::npos)
    at = text.find(key, at + 1);
  return at;
}

// Where a sharding begins. Shardy's is the user's word, HLO's follows from it.
std::optional<size_t> place_of(const AttributeList& attributes, std::string_view source) {
  const auto offset_of = [&](std::string_view text) {
    return static_cast<size_t>(text.data() - source.data());
  };
  if (attributes.empty()) return std::nullopt;
  if (const Attribute* found = listed_attribute(attributes, "sdy.sharding")) return found->offset;
  if (const Attribute* found = listed_attribute(attributes, "mhlo.frontend_attributes"))
    for (size_t i = 0; i < found->keys.size(); ++i)
      if (found->keys[i] == kInString) return offset_of(found->items[i].text);
  if (const Attribute* found = listed_attribute(attributes, "frontend_attributes")) {
    const size_t at = key_of_sharding(found->text);
    const size_t quote = at == std::string_view::npos ? at : found->text.find('"', at);
    if (quote != std::string_view::npos) return offset_of(found->text) + quote + 1;
  }
  for (const std::string_view name : {"sharding", "mhlo.sharding"})
    if (const Attribute* found = listed_attribute(attributes, name))
      return found->text.empty() ? found->offset : offset_of(found->text);
  return std::nullopt;
}

// The directions that sdy.propagation_barrier allows: a word, or the number that the generic form
// has for it.
std::optional<AxisPassage> passage_of(const Attribute& direction) {
  constexpr AxisPassage kByNumber[] = {AxisPassage::none, AxisPassage::forward,
                                       AxisPassage::backward, AxisPassage::both};
  constexpr std::string_view kWords[] = {"NONE", "FORWARD", "BACKWARD", "BOTH"};
  for (size_t i = 0; i < std::size(kWords); ++i)
    if (direction.text == kWords[i] ||
        (direction.kind == Attribute::Kind::integer && direction.integer == static_cast<int>(i)))
      return kByNumber[i];
  return std::nullopt;
}

}  // namespace

// Groups and barriers name no mesh: theirs is the first one that has axes. Without it nothing is
// divided, and they say nothing.
std::optional<Sharding> Importer::all_open(Value value) const {
  const auto has_axes = [](const MeshRef& one) { return !one->axes.empty(); };
  const auto mesh = std::ranges::find_if(module_.meshes, has_axes);
  if (mesh == module_.meshes.end()) return std::nullopt;
  const DimSharding open = {.is_open = true};
  return Sharding{.mesh = *mesh,
                  .dims = std::vector<DimSharding>(static_cast<size_t>(value.rank()), open)};
}

std::vector<std::optional<Sharding>> Importer::shardings_of(const AttributeList& attributes,
                                                            std::span<const Value> values) {
  const std::optional<size_t> at = place_of(attributes, *program_.source);
  if (!at) return {};
  std::vector<Type> types;
  for (const Value& one : values) types.push_back(one.type());
  return shardings_at(*at, types);
}

std::vector<std::optional<Sharding>> Importer::shardings_at(size_t offset,
                                                            std::span<const Type> types) {
  if (sharding_reader_ == nullptr)
    sharding_reader_ =
        std::make_unique<ShardingReader>(program_, module_.meshes, module_.grid.devices());
  return sharding_reader_->read(offset, types);
}

void Importer::say(Value value, Sharding sharding) {
  if (checks == nullptr) shardings_[&value.builder()].add(value.id(), std::move(sharding));
}

// On one device an operand is a value of its own: others read what the operand was.
Value Importer::own_value(Frame& frame, const Instruction& instruction, Value value) {
  Held& own = (*frame.held)[instruction.first_result];
  const bool is_operand = std::ranges::any_of(instruction.operands, [&](uint32_t operand) {
    const Held& one = (*frame.held)[operand];
    return one.value && one.value.id() == value.id();
  });
  if (!is_operand || !own.value || !value.type().is_static()) return value;
  own.value = frame.builder->op(Opcode::reshape, {value}, {{"dims", value.dims()}});
  return own.value;
}

void Importer::annotate(Frame& frame, const Instruction& instruction) {
  if (instruction.attributes.empty() || checks != nullptr || frame.lifted != nullptr) return;
  std::vector<Value> values;
  for (size_t i = 0; i < instruction.results.size(); ++i)
    append_leaves((*frame.held)[instruction.first_result + static_cast<uint32_t>(i)], values);
  std::vector<std::optional<Sharding>> all = shardings_of(instruction.attributes, values);
  if (const Attribute* group = listed_attribute(instruction.attributes, "group_id");
      group != nullptr && instruction.name == "sdy.sharding_group") {
    append_leaves((*frame.held)[instruction.operands[0]], values);
    all = {all_open(values[0])};
    if (all[0]) all[0]->group = group->integer;
  }
  if (const Attribute* way = listed_attribute(instruction.attributes, "allowed_direction");
      way != nullptr && instruction.name == "sdy.propagation_barrier") {
    if (all.empty()) all = {all_open(values[0])};
    const std::optional<AxisPassage> passage = passage_of(*way);
    if (!passage)
      refuse(instruction.offset,
             bad_input("'{}' is none of NONE, FORWARD, BACKWARD, BOTH", excerpt(way->text)));
    if (all[0]) all[0]->passage = *passage;
  }
  if (all.size() == 1 && all[0] && all[0]->mesh->single_device())
    values[0] = own_value(frame, instruction, values[0]);
  const Attribute* target = listed_attribute(instruction.attributes, "custom_call_target");
  const bool is_result = target != nullptr && target->text == kResult && frame.builder == top_;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i]) continue;
    if (is_result)
      result_shardings_.emplace_back(values[i].id(), *all[i]);
    else
      shardings_[frame.builder].add(values[i].id(), *all[i]);
  }
}

// The parameters of the function at hand.
void Importer::annotate_parameters(Frame& frame) {
  const Function& function = *frame.function;
  if (checks != nullptr || frame.lifted != nullptr) return;
  for (size_t i = 0; i < function.parameter_attributes.size(); ++i) {
    if (function.parameter_attributes[i].empty()) continue;
    std::vector<Value> values;
    append_leaves((*frame.held)[function.body.first_parameter + static_cast<uint32_t>(i)], values);
    const std::vector<std::optional<Sharding>> all =
        shardings_of(function.parameter_attributes[i], values);
    for (size_t k = 0; k < all.size(); ++k)
      if (all[k]) shardings_[frame.builder].add(values[k].id(), *all[k]);
  }
}

void Importer::keep_output_shardings(Builder& builder, const Function& entry,
                                     std::span<const Value> outputs) {
  if (checks != nullptr) return;
  Shardings& made = shardings_[&builder];
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto index = static_cast<uint32_t>(i);
    for (const auto& [value, sharding] : result_shardings_)
      if (value == outputs[i].id()) made.set_output(index, sharding);
    if (outputs.size() != entry.result_attributes.size()) continue;
    const std::vector<std::optional<Sharding>> all =
        shardings_of(entry.result_attributes[i], outputs.subspan(i, 1));
    if (!all.empty() && all[0]) made.set_output(index, *all[0]);
  }
}

void Importer::keep_shardings(Builder& builder) {
  const auto found = shardings_.find(&builder);
  if (found == shardings_.end()) return;
  if (!found->second.empty())
    builder.set_shardings(std::make_shared<const Shardings>(std::move(found->second)));
  shardings_.erase(found);
}

}  // namespace hone::hlo
