#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "front/hlo/importer.h"
#include "front/hlo/write/emit.h"
#include "front/hlo/write/print.h"

// A program as text of HLO. Regions become computations, which stand before their use. They see
// nothing around them: loops and branches take one value, a tuple if there are several.

namespace hone::hlo {
namespace {

std::string shape_text(Type type) {
  std::vector<std::string> dims;
  for (const Dim dim : type.dims()) dims.push_back(fmt::format("{}", dim.value()));
  return fmt::format("{}[{}]", hlo_element_name(type.dtype()), join(dims, ","));
}

// A tuple, if there are several values.
std::string packed_shape_text(std::span<const Type> types) {
  if (types.size() == 1) return shape_text(types[0]);
  std::vector<std::string> texts;
  for (const Type type : types) texts.push_back(shape_text(type));
  return fmt::format("({})", join(texts, ", "));
}

std::string with_crosses(const Ints& numbers) { return join(numbers, "x"); }

Ints numbers_or(const Instruction& one, std::string_view name, const Ints& fallback) {
  const Attribute* found = attribute_named(one, name);
  return found == nullptr ? fallback : numbers_of(*found);
}

// "0_1x2_0"
std::string pairs_with_crosses(const Attribute& pairs) {
  std::vector<std::string> texts;
  for (const Attribute& pair : pairs.items) texts.push_back(join(numbers_of(pair), "_"));
  return join(texts, "x");
}

// window={size=3x3 stride=2x2 pad=0_1x0_1}: what is not 1 or 0 throughout.
std::string window_text(const Instruction& one, const Ints& size) {
  std::vector<std::string> parts;
  if (!size.empty()) parts.push_back("size=" + with_crosses(size));
  const auto add = [&](std::string_view name, const Ints& numbers) {
    if (std::ranges::any_of(numbers, [](int64_t number) { return number != 1; }))
      parts.push_back(fmt::format("{}={}", name, with_crosses(numbers)));
  };
  add("stride", numbers_or(one, "window_strides", {}));
  const Attribute* padding = attribute_named(one, "padding");
  const bool pads =
      padding != nullptr && std::ranges::any_of(padding->items, [](const Attribute& pair) {
        return numbers_of(pair) != Ints{0, 0};
      });
  if (pads) parts.push_back("pad=" + pairs_with_crosses(*padding));
  add("lhs_dilate", numbers_or(one, "lhs_dilation", numbers_or(one, "base_dilations", {})));
  add("rhs_dilate", numbers_or(one, "rhs_dilation", numbers_or(one, "window_dilations", {})));
  return fmt::format("window={{{}}}", join(parts, " "));
}

// The sizes of a convolution's windows: those of the kernel along its spatial dims.
Ints kernel_sizes(std::string_view order, Type kernel) {
  const size_t begin = order.find('_') + 1;
  const std::string_view letters = order.substr(begin, order.find("->") - begin);
  Ints sizes(letters.size() - 2);
  for (size_t i = 0; i < letters.size(); ++i)
    if (letters[i] >= '0' && letters[i] <= '9')
      sizes[static_cast<size_t>(letters[i] - '0')] = kernel.dim(static_cast<int>(i)).value();
  return sizes;
}

// "{{0,1},{1,0}}"
std::string rows_text(const Attribute& rows) {
  std::vector<std::string> texts;
  for (const Attribute& row : rows.items)
    texts.push_back(fmt::format("{{{}}}", join(numbers_of(row), ",")));
  return fmt::format("{{{}}}", join(texts, ","));
}

std::string ranges_text(const Instruction& one) {
  const Ints start = numbers_or(one, "start_indices", {});
  const Ints limit = numbers_or(one, "limit_indices", {});
  const Ints stride = numbers_or(one, "strides", {});
  std::vector<std::string> ranges;
  for (size_t i = 0; i < start.size(); ++i)
    ranges.push_back(stride[i] == 1 ? fmt::format("[{}:{}]", start[i], limit[i])
                                    : fmt::format("[{}:{}:{}]", start[i], limit[i], stride[i]));
  return fmt::format("slice={{{}}}", join(ranges, ", "));
}

std::string padding_text(const Instruction& one) {
  const Ints low = numbers_or(one, "edge_padding_low", {});
  const Ints high = numbers_or(one, "edge_padding_high", {});
  const Ints interior = numbers_or(one, "interior_padding", {});
  std::vector<std::string> dims;
  for (size_t i = 0; i < low.size(); ++i)
    dims.push_back(fmt::format("{}_{}{}", low[i], high[i],
                               interior[i] == 0 ? "" : fmt::format("_{}", interior[i])));
  return fmt::format("padding={}", join(dims, "x"));
}

class HloPrinter {
 public:
  explicit HloPrinter(const Module& module) : module_(module) {}

  std::string print() {
    const Function& entry = module_.functions.front();
    types_ = types_of_values(entry);
    for (size_t i = 0; i < entry.result_names.size(); ++i)
      labels_.emplace(constrained(entry.body, entry.body.results[i]), entry.result_names[i]);
    const std::string body = computation(entry.body, "main", Form::apart);
    std::string head = plain_name(module_.name);
    std::vector<std::string> meshes;
    for (const MeshRef& mesh : module_.meshes)
      meshes.push_back(fmt::format("{} = #sdy.mesh{}", mesh->name, mesh_text(*mesh)));
    if (!meshes.empty())
      head += fmt::format(", frontend_attributes={{xla.sdy.meshes={{{}}}}}", join(meshes, ", "));
    if (module_.grid.partitions > 1)
      head += fmt::format(", num_partitions={}", module_.grid.partitions);
    return fmt::format("HloModule {}\n\n{}ENTRY {}", head, text_, body);
  }

 private:
  // The value that constraints of shardings pass on as this one: names stand where it is made.
  static uint32_t constrained(const Region& region, uint32_t value) {
    for (auto one = region.instructions.rbegin(); one != region.instructions.rend(); ++one)
      if (one->name == "sdy.sharding_constraint" && one->first_result == value)
        value = one->operands[0];
    return value;
  }

  // How a computation takes its values and gives its results.
  enum class Form : uint8_t {
    apart,   // a parameter for each value
    packed,  // one parameter, a tuple if there are several values
  };

  std::vector<Type> types(std::span<const uint32_t> ids) const {
    std::vector<Type> found;
    for (const uint32_t id : ids) found.push_back(types_[id]);
    return found;
  }

  // A name that no input has.
  std::string fresh(std::string_view wanted) {
    std::string name;
    do {
      name = fmt::format("{}.{}", wanted, next_++);
    } while (inputs_.contains(name));
    return name;
  }

  // Computations within it are added to the text before it is returned.
  std::string computation(const Region& region, const std::string& name, Form form,
                          const Ids& captured = {}) {
    std::unordered_map<uint32_t, std::string> outer = std::exchange(names_, {});
    std::string lines = std::exchange(lines_, {});
    Ids own;
    for (size_t i = 0; i < region.parameters.size(); ++i)
      own.push_back(region.first_parameter + static_cast<uint32_t>(i));
    own.insert(own.end(), captured.begin(), captured.end());
    form == Form::packed ? packed_parameter(own) : parameters(own, region);
    for (const Instruction& one : region.instructions) instruction(one);
    root(region.results, root_names(region));
    std::string made = fmt::format("{} {{\n{}}}\n\n", name, lines_);
    names_ = std::move(outer);
    lines_ = std::move(lines);
    return made;
  }

  void parameters(const Ids& own, const Region& region) {
    for (size_t i = 0; i < own.size(); ++i) {
      const std::string wanted =
          i < region.names.size() && !region.names[i].empty() ? plain_name(region.names[i]) : "";
      std::string name = wanted.empty() ? fresh("arg") : wanted;
      while (!wanted.empty() && !inputs_.insert(name).second) name = fresh(wanted);
      names_[own[i]] = name;
      const bool has_attributes =
          is_entry(region) && i < module_.functions.front().parameter_attributes.size();
      line(name, shape_text(types_[own[i]]),
           fmt::format("parameter({}){}", i,
                       has_attributes
                           ? sharding_text(module_.functions.front().parameter_attributes[i])
                           : ""));
    }
  }

  void packed_parameter(const Ids& own) {
    const std::string name = fresh("state");
    line(name, packed_shape_text(types(own)), "parameter(0)");
    unpack(name, own);
  }

  void unpack(const std::string& tuple, const Ids& ids) {
    if (ids.size() == 1) {
      names_[ids[0]] = tuple;
      return;
    }
    for (size_t i = 0; i < ids.size(); ++i) {
      names_[ids[i]] = fresh("get");
      line(names_[ids[i]], shape_text(types_[ids[i]]),
           fmt::format("get-tuple-element({}), index={}{}", tuple, i, label(ids[i])));
    }
  }

  std::string listed(std::span<const uint32_t> ids) const {
    std::vector<std::string> texts;
    for (const uint32_t id : ids) texts.push_back(names_.at(id));
    return join(texts, ", ");
  }

  // The name of all values as one.
  std::string packed(const Ids& ids) {
    if (ids.size() == 1) return names_.at(ids[0]);
    std::string name = fresh("tuple");
    line(name, packed_shape_text(types(ids)), fmt::format("tuple({})", listed(ids)));
    return name;
  }

  // An output has its name as metadata.
  std::string label(uint32_t id) const {
    const auto found = labels_.find(id);
    return found == labels_.end() ? ""
                                  : fmt::format(", metadata={{op_name={}}}", quoted(found->second));
  }

  void line(std::string_view name, std::string_view shape, std::string_view what) {
    lines_ += fmt::format("  {} = {} {}\n", name, shape, what);
  }

  bool is_entry(const Region& region) const { return &region == &module_.functions.front().body; }

  // ", frontend_attributes={...}": the sharding of one value, or nothing.
  static std::string sharding_text(const AttributeList& attributes) {
    for (const auto& [key, value] : attributes)
      if (key == "sdy.sharding" || key == "sharding")
        return fmt::format(", frontend_attributes={{xla.sdy.sharding={}}}",
                           hone::quoted(fmt::format("#sdy.sharding_per_value<[{}]>", value.text)));
    return "";
  }

  void custom_call(const std::string& name, uint32_t value, std::string_view target,
                   const AttributeList& attributes) {
    line(name, shape_text(types_[value]),
         fmt::format("custom-call({}), custom_call_target=\"{}\"{}", names_.at(value), target,
                     sharding_text(attributes)));
  }

  // The values that a computation returns. An output with a sharding is a call of its own.
  std::vector<std::string> root_names(const Region& region) {
    const std::vector<AttributeList>& given = module_.functions.front().result_attributes;
    std::vector<std::string> names;
    for (size_t i = 0; i < region.results.size(); ++i) {
      names.push_back(names_.at(region.results[i]));
      if (!is_entry(region) || i >= given.size() || sharding_text(given[i]).empty()) continue;
      names.back() = fresh("result");
      custom_call(names.back(), region.results[i], "xla.sdy.FuncResultSharding", given[i]);
    }
    return names;
  }

  void root(const Ids& results, const std::vector<std::string>& names) {
    if (results.size() != 1) {
      lines_ += fmt::format("  ROOT {} = {} tuple({})\n", fresh("tuple"),
                            packed_shape_text(types(results)), join(names, ", "));
      return;
    }
    const std::string begin = fmt::format("  {} = ", names[0]);
    const size_t at = lines_.starts_with(begin) ? 0 : lines_.find("\n" + begin) + 1;
    lines_.insert(at + 2, "ROOT ");
  }

  // Adds a computation to the text; its name.
  std::string body(const Region& region, Form form, const Ids& captured = {}) {
    const std::string name = fresh("body");
    std::string made = computation(region, name, form, captured);
    text_ += made;
    return name;
  }

  void instruction(const Instruction& one) {
    if (one.name == "sdy.sharding_constraint") {
      names_[one.first_result] = fresh("sharding");
      custom_call(names_[one.first_result], one.operands[0], "Sharding", one.attributes);
      return;
    }
    const OpRow* row = row_named(one.name);
    HONE_CHECK(row != nullptr, "'{}' has no row", one.name);
    Ids results;
    for (size_t i = 0; i < one.results.size(); ++i)
      results.push_back(one.first_result + static_cast<uint32_t>(i));
    std::string what;
    std::string_view opcode = row->hlo;
    if (one.name == "stablehlo.constant") {
      what = fmt::format("constant({})", one.attributes[0].second.text);
    } else if (one.name == "stablehlo.if") {
      opcode = "conditional";
      const Ids captured = captured_by(one);
      const std::string given = packed(captured);
      what = fmt::format("conditional({}, {}, {}), true_computation={}, false_computation={}",
                         names_.at(one.operands[0]), given, given,
                         body(one.regions[0], Form::packed, captured),
                         body(one.regions[1], Form::packed, captured));
    } else if (one.name == "stablehlo.while") {
      const std::string state = packed(one.operands);
      const std::string condition = body(one.regions[0], Form::packed);
      what = fmt::format("while({}), condition={}, body={}", state, condition,
                         body(one.regions[1], Form::packed));
    } else {
      HONE_CHECK(!opcode.empty(), "HLO has no '{}'", one.name);
      what = fmt::format("{}({}){}", opcode, listed(one.operands), attributes(one));
      if (!one.regions.empty()) what += ", to_apply=" + body(one.regions[0], Form::apart);
    }
    if (results.size() == 1) what += label(results[0]);
    const std::string name = fresh(opcode);
    line(name, packed_shape_text(types(results)), what);
    unpack(name, results);
  }

  // The values that the branches read from around them.
  static Ids captured_by(const Instruction& branch) {
    Ids all;
    for (const Region& region : branch.regions)
      for (const uint32_t id : free_values(region))
        if (std::ranges::find(all, id) == all.end()) all.push_back(id);
    return all;
  }

  std::string attributes(const Instruction& one) const {
    std::string text = sharding_text(one.attributes);
    if (one.name == "stablehlo.slice") text += ", " + ranges_text(one);
    if (one.name == "stablehlo.pad") text += ", " + padding_text(one);
    if (one.name == "stablehlo.reduce_window")
      text += ", " + window_text(one, numbers_or(one, "window_dimensions", {}));
    if (const Attribute* order = attribute_named(one, "conv_dimension_numbers"))
      text += ", " + window_text(one, kernel_sizes(order->text, types_[one.operands[1]]));
    for (const auto& [key, value] : one.attributes)
      if (key != "sdy.sharding") text += attribute(one, key, value);
    return text;
  }

  static std::string attribute(const Instruction& one, std::string_view key,
                               const Attribute& value) {
    const Field& field = field_named(key);
    std::string_view name = field.hlo;
    if (key == "slice_sizes" && one.name == "stablehlo.dynamic_slice") name = "dynamic_slice_sizes";
    switch (field.form) {
      case FieldForm::record: {
        std::string text;
        for (size_t i = 0; i < value.keys.size(); ++i)
          text += attribute(one, value.keys[i], value.items[i]);
        return text;
      }
      case FieldForm::number:
        if (key.ends_with("_group_count") && value.integer == 1) return "";
        if (name.empty()) return "";
        if (name == "dimensions") return fmt::format(", {}={{{}}}", name, value.integer);
        return fmt::format(", {}={}", name, value.integer);
      case FieldForm::flag:
      case FieldForm::mark: return value.integer != 0 ? fmt::format(", {}=true", name) : "";
      case FieldForm::numbers:
        if (name.empty() || (name.find("batch") != std::string_view::npos && value.items.empty()))
          return "";
        return fmt::format(", {}={{{}}}", name, join(numbers_of(value), ","));
      case FieldForm::enumeration:
        if (name == "type" && value.text != "TOTALORDER") return "";
        return fmt::format(", {}={}", name, value.text);
      case FieldForm::order: return fmt::format(", {}={}", name, value.text);
      case FieldForm::pairs:
        return name.empty() ? "" : fmt::format(", {}={}", name, rows_text(value));
      case FieldForm::text:
      case FieldForm::symbol:
      case FieldForm::dictionary: break;  // of composites, which HLO spells out
    }
    return "";
  }

  const Module& module_;
  std::string text_;   // the computations that are done
  std::string lines_;  // of the one at hand
  std::vector<Type> types_;
  std::unordered_map<uint32_t, std::string> names_;
  std::unordered_map<uint32_t, std::string_view> labels_;  // of outputs
  std::unordered_set<std::string> inputs_;                 // their names
  int64_t next_ = 1;
};

}  // namespace

std::string print_hlo(const Module& module) { return HloPrinter(module).print(); }

}  // namespace hone::hlo
