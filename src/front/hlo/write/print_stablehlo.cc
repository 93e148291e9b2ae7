#include <algorithm>
#include <unordered_set>

#include "base/text.h"
#include "front/hlo/reader.h"
#include "front/hlo/write/print.h"

// A program as text of StableHLO. Ops whose operands and result have one type are written as
// 'stablehlo.add %a, %b : t', others in the generic form, which needs no grammar of the op.

namespace hone::hlo {
namespace {

std::string tensor_type_text(Type type) {
  std::string text = "tensor<";
  for (const Dim dim : type.dims())
    text += dim.is_static() ? fmt::format("{}x", dim.value()) : std::string("?x");
  text += stablehlo_element_name(type.dtype());
  return text + ">";
}

// "(t, t)"
std::string tensor_types_text(std::span<const Type> types) {
  std::vector<std::string> texts;
  for (const Type type : types) texts.push_back(tensor_type_text(type));
  return fmt::format("({})", join(texts, ", "));
}

// "b, f, 0, 1" of "bf01"
std::string order_part(std::string_view letters) {
  std::vector<std::string> texts;
  for (const char letter : letters) texts.emplace_back(1, letter);
  return join(texts, ", ");
}

// "[b, f, 0]x[o, i, 0]->[b, f, 0]" of "bf0_oi0->bf0"
std::string order_text(std::string_view order) {
  const size_t middle = order.find('_'), arrow = order.find("->");
  return fmt::format("[{}]x[{}]->[{}]", order_part(order.substr(0, middle)),
                     order_part(order.substr(middle + 1, arrow - middle - 1)),
                     order_part(order.substr(arrow + 2)));
}

std::string record_text(const Attribute& record) {
  std::vector<std::string> fields;
  for (size_t i = 0; i < record.keys.size(); ++i) {
    const Attribute& value = record.items[i];
    if (value.kind == Attribute::Kind::integer)
      fields.push_back(fmt::format("{} = {}", record.keys[i], value.integer));
    else if (!value.items.empty())
      fields.push_back(fmt::format("{} = [{}]", record.keys[i], join(numbers_of(value), ", ")));
  }
  return join(fields, ", ");
}

std::string pairs_text(const Attribute& rows) {
  std::vector<std::string> texts;
  for (const Attribute& row : rows.items)
    texts.push_back(fmt::format("[{}]", join(numbers_of(row), ", ")));
  const size_t columns = rows.items.empty() ? 2 : rows.items[0].items.size();
  return fmt::format("dense<{}> : tensor<{}x{}xi64>",
                     texts.empty() ? "" : fmt::format("[{}]", join(texts, ", ")), texts.size(),
                     columns);
}

std::string attribute_text(std::string_view key, const Attribute& value) {
  const Field& field = field_named(key);
  switch (field.form) {
    case FieldForm::number: return fmt::format("{} : i64", value.integer);
    case FieldForm::flag: return value.integer != 0 ? "true" : "false";
    case FieldForm::mark: return "";
    case FieldForm::numbers:
      return value.items.empty() ? "array<i64>"
                                 : fmt::format("array<i64: {}>", join(numbers_of(value), ", "));
    case FieldForm::pairs: return pairs_text(value);
    case FieldForm::enumeration:
      return fmt::format("#stablehlo<{} {}>", field.mlir_type, value.text);
    case FieldForm::record:
      return fmt::format("#stablehlo{}<{}>", field.mlir_type, record_text(value));
    case FieldForm::order: return fmt::format("#stablehlo.conv<{}>", order_text(value.text));
    case FieldForm::text: return quoted(value.text);
    case FieldForm::symbol: return fmt::format("@{}", plain_name(value.text));
    case FieldForm::dictionary: {
      std::vector<std::string> fields;
      for (size_t i = 0; i < value.keys.size(); ++i)
        fields.push_back(fmt::format("{} = {}", value.keys[i], quoted(value.items[i].text)));
      return fmt::format("{{{}}}", join(fields, ", "));
    }
  }
  HONE_CHECK(false, "a form of attributes has no text");
}

// The name in the language: the row of a convolution's order has a name of its own.
std::string_view written_key(std::string_view key) {
  return key == "conv_dimension_numbers" ? "dimension_numbers" : key;
}

class StablehloPrinter {
 public:
  explicit StablehloPrinter(const Module& module) : module_(module) {}

  std::string print() {
    text_ = fmt::format("module @{} ", plain_name(module_.name));
    std::vector<std::string> given;
    if (!module_.symbols.empty())
      given.push_back(fmt::format("hone.symbols = {}", quoted(module_.symbols)));
    if (module_.grid.partitions > 1)
      given.push_back(fmt::format("mhlo.num_partitions = {} : i32", module_.grid.partitions));
    if (!given.empty()) text_ += fmt::format("attributes {{{}}} ", join(given, ", "));
    text_ += "{\n";
    for (const MeshRef& mesh : module_.meshes)
      text_ += fmt::format("  sdy.mesh @{} = {}\n", mesh->name, mesh_text(*mesh));
    for (const Function& one : module_.functions) function(one);
    return text_ + "}\n";
  }

 private:
  void function(const Function& function) {
    types_ = types_of_values(function);
    names_.assign(function.values, {});
    const Region& body = function.body;
    std::unordered_set<std::string> taken;
    std::vector<std::string> parameters;
    for (size_t i = 0; i < body.parameters.size(); ++i) {
      const std::string wanted = body.names[i].empty() ? "arg" : plain_name(body.names[i]);
      std::string name = wanted;
      for (int k = 1; !taken.insert(name).second; ++k) name = fmt::format("{}_{}", wanted, k);
      const size_t id = body.first_parameter + i;
      names_[id] = "%" + name;
      parameters.push_back(fmt::format("{}: {}{}", names_[id], tensor_type_text(types_[id]),
                                       i < function.parameter_attributes.size()
                                           ? given_text(function.parameter_attributes[i])
                                           : ""));
    }
    std::vector<std::string> results;
    for (size_t i = 0; i < function.results.size(); ++i) {
      AttributeList given;
      if (i < function.result_attributes.size()) given = function.result_attributes[i];
      if (i < function.result_names.size() && !function.result_names[i].empty())
        given.insert(
            given.begin(),
            {"jax.result_info", {.kind = Attribute::Kind::word, .text = function.result_names[i]}});
      results.push_back(tensor_type_text(function.results[i].type) + given_text(given));
    }
    text_ += fmt::format("  func.func {} @{}({}) -> ({}) {{\n",
                         function.is_private ? "private" : "public", plain_name(function.name),
                         join(parameters, ", "), join(results, ", "));
    region(body, 4, "return");
    text_ += "  }\n";
  }

  // The attributes of a parameter or a result: texts, numbers and shardings.
  static std::string given_text(const AttributeList& given) {
    if (given.empty()) return "";
    std::vector<std::string> texts;
    for (const auto& [key, value] : given) {
      if (key == "sdy.sharding")
        texts.push_back(fmt::format("{} = #sdy.sharding{}", key, value.text));
      else if (value.kind == Attribute::Kind::integer)
        texts.push_back(fmt::format("{} = {} : i32", key, value.integer));
      else
        texts.push_back(fmt::format("{} = {}", key, quoted(value.text)));
    }
    return fmt::format(" {{{}}}", join(texts, ", "));
  }

  // "%3, %5#1"
  std::string values(std::span<const uint32_t> ids) const {
    std::vector<std::string> texts;
    for (const uint32_t id : ids) texts.push_back(names_[id]);
    return join(texts, ", ");
  }

  std::vector<Type> types(std::span<const uint32_t> ids) const {
    std::vector<Type> found;
    for (const uint32_t id : ids) found.push_back(types_[id]);
    return found;
  }

  void region(const Region& region, int indent, std::string_view end) {
    for (const Instruction& one : region.instructions) instruction(one, indent);
    std::vector<std::string> texts;
    for (const Type type : types(region.results)) texts.push_back(tensor_type_text(type));
    text_ += fmt::format("{:{}}{}", "", indent, end);
    if (!texts.empty()) text_ += fmt::format(" {} : {}", values(region.results), join(texts, ", "));
    text_ += "\n";
  }

  void instruction(const Instruction& one, int indent) {
    const size_t count = one.results.size();
    if (count == 1) names_[one.first_result] = fmt::format("%{}", next_++);
    if (count > 1) {
      const std::string name = fmt::format("%{}", next_++);
      for (size_t i = 0; i < count; ++i)
        names_[one.first_result + i] = fmt::format("{}#{}", name, i);
      text_ += fmt::format("{:{}}{}:{} = ", "", indent, name, count);
    } else {
      text_ += fmt::format("{:{}}{}", "", indent,
                           count == 1 ? names_[one.first_result] + " = " : std::string());
    }
    if (one.name == "stablehlo.constant") {
      const Attribute& literal = one.attributes[0].second;
      text_ += fmt::format("stablehlo.constant dense<{}> : {}\n", literal.text,
                           tensor_type_text(one.results[0].type));
      return;
    }
    const std::vector<Type> operands = types(one.operands);
    if (is_plain(one, operands)) {
      text_ += fmt::format("{} {} : {}\n", one.name, values(one.operands),
                           tensor_type_text(operands[0]));
      return;
    }
    generic(one, operands, indent);
  }

  // One type throughout, and an op of StableHLO itself.
  static bool is_plain(const Instruction& one, std::span<const Type> operands) {
    return one.attributes.empty() && one.regions.empty() && !operands.empty() &&
           operands.size() <= 2 && one.results.size() == 1 && one.name.starts_with("stablehlo.") &&
           one.name.find("dynamic") == std::string_view::npos &&
           one.name != "stablehlo.get_dimension_size" &&
           std::ranges::all_of(operands, [&](Type type) { return type == one.results[0].type; });
  }

  void generic(const Instruction& one, std::span<const Type> operands, int indent) {
    text_ += fmt::format("\"{}\"({})", one.name, values(one.operands));
    std::string behind;  // attributes that are none of the op's own
    std::vector<std::string> texts;
    for (const auto& [key, attribute] : one.attributes) {
      if (key == "sdy.sharding") {
        behind = fmt::format(" {{sdy.sharding = #sdy.sharding_per_value<[{}]>}}", attribute.text);
      } else if (key == "sharding") {
        texts.push_back(fmt::format("sharding = #sdy.sharding{}", attribute.text));
      } else {
        const std::string value = attribute_text(key, attribute);
        texts.push_back(std::string(written_key(key)) + (value.empty() ? "" : " = " + value));
      }
    }
    if (!texts.empty()) text_ += fmt::format(" <{{{}}}>", join(texts, ", "));
    if (!one.regions.empty()) {
      text_ += " (";
      for (size_t i = 0; i < one.regions.size(); ++i) {
        text_ += i == 0 ? "{\n" : ", {\n";
        block(one.regions[i], indent);
        text_ += fmt::format("{:{}}}}", "", indent);
      }
      text_ += ")";
    }
    text_ += behind;
    std::vector<Type> results;
    for (const ValueType& result : one.results) results.push_back(result.type);
    text_ += fmt::format(" : {} -> {}\n", tensor_types_text(operands), tensor_types_text(results));
  }

  void block(const Region& one, int indent) {
    if (!one.parameters.empty()) {
      std::vector<std::string> texts;
      for (size_t i = 0; i < one.parameters.size(); ++i) {
        const size_t id = one.first_parameter + i;
        names_[id] = fmt::format("%{}", next_++);
        texts.push_back(fmt::format("{}: {}", names_[id], tensor_type_text(types_[id])));
      }
      text_ += fmt::format("{:{}}^bb0({}):\n", "", indent, join(texts, ", "));
    }
    region(one, indent + 2, "stablehlo.return");
  }

  const Module& module_;
  std::string text_;
  std::vector<Type> types_;         // of values, by their number
  std::vector<std::string> names_;  // "%3"; of one of several results "%3#1"
  int64_t next_ = 0;
};

}  // namespace

std::string print_stablehlo(const Module& module) { return StablehloPrinter(module).print(); }

}  // namespace hone::hlo
