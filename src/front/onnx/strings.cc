#include "front/onnx/strings.h"

#include <algorithm>

#include "base/text.h"
#include "front/onnx/functions.h"
#include "front/onnx/registry.h"

namespace hone::onnx_io {
namespace {

// The use that an op makes of strings among its operands.
enum class Use : uint8_t {
  move,  // its results hold strings, too
  read,  // its results are numbers, unless its attributes have strings (makes_strings)
};

struct OpUse {
  std::string_view domain;
  std::string_view name;
  Use use;
};

constexpr OpUse kUses[] = {
    {default_domain, "Compress", Use::move},
    {default_domain, "Concat", Use::move},
    {default_domain, "Equal", Use::read},
    {default_domain, "Expand", Use::move},
    {default_domain, "Flatten", Use::move},
    {default_domain, "Gather", Use::move},
    {default_domain, "GatherElements", Use::move},
    {default_domain, "GatherND", Use::move},
    {default_domain, "Identity", Use::move},
    {default_domain, "Reshape", Use::move},
    {default_domain, "Shape", Use::read},
    {default_domain, "Size", Use::read},
    {default_domain, "Slice", Use::move},
    {default_domain, "Split", Use::move},
    {default_domain, "Squeeze", Use::move},
    {default_domain, "Tile", Use::move},
    {default_domain, "Transpose", Use::move},
    {default_domain, "Unsqueeze", Use::move},
    {default_domain, "Where", Use::move},
    {ml, "ArrayFeatureExtractor", Use::move},
    {ml, "CategoryMapper", Use::read},
    {ml, "LabelEncoder", Use::read},
    {ml, "OneHotEncoder", Use::read},
};

// The attributes whose strings are data, beside the labels of classes; others are words that say
// what an op does.
constexpr std::string_view kClassLabels = "classlabels_strings";
constexpr std::string_view kTextAttributes[] = {
    "cats_strings",  "classes_strings", "default_string", "default_tensor",
    "keys_strings",  "keys_tensor",     "value",          "value_string",
    "value_strings", "values_strings",  "values_tensor"};

std::optional<Use> use_of(const onnx::NodeProto& node) {
  const std::string domain = canonical_domain(node.domain());
  for (const OpUse& row : kUses)
    if (row.name == node.op_type() && row.domain == domain) return row.use;
  return {};
}

const onnx::AttributeProto* attribute_of(const onnx::NodeProto& node, std::string_view name) {
  for (const onnx::AttributeProto& attribute : node.attribute())
    if (attribute.name() == name) return &attribute;
  return nullptr;
}

bool is_string_tensor(const onnx::AttributeProto& attribute) {
  return attribute.has_t() && attribute.t().data_type() == onnx::TensorProto::STRING;
}

// True if the attribute is there and has strings.
bool has_strings(const onnx::NodeProto& node, std::string_view name) {
  const onnx::AttributeProto* found = attribute_of(node, name);
  return found != nullptr &&
         (found->strings_size() > 0 || found->type() == onnx::AttributeProto::STRING ||
          is_string_tensor(*found));
}

bool is_declared_string(const onnx::ValueInfoProto& info) {
  return info.type().tensor_type().elem_type() == onnx::TensorProto::STRING;
}

bool is_ml(const onnx::NodeProto& node, std::string_view name) {
  return node.op_type() == name && node.domain() == ml;
}

// The keys of the maps that a ZipMap makes.
OnnxLabels::Columns columns_of(const onnx::NodeProto& zip_map) {
  OnnxLabels::Columns columns;
  if (const onnx::AttributeProto* texts = attribute_of(zip_map, kClassLabels))
    columns.names.assign(texts->strings().begin(), texts->strings().end());
  if (!columns.names.empty()) return columns;
  columns.are_numbers = true;
  if (const onnx::AttributeProto* numbers = attribute_of(zip_map, "classlabels_int64s"))
    for (int64_t number : numbers->ints()) columns.names.push_back(std::to_string(number));
  return columns;
}

}  // namespace

Strings::Strings(const onnx::ModelProto& model) {
  add_class_labels(model.graph());
  for (const onnx::ValueInfoProto& info : model.graph().input())
    if (is_declared_string(info)) values_.insert(info.name());
  add_graph(model.graph());
}

void Strings::add(std::string_view text) {
  const auto [at, is_new] = places_.emplace(std::string(text), static_cast<int64_t>(table_.size()));
  if (is_new) table_.push_back(at->first);
}

std::optional<int64_t> Strings::place(std::string_view text) const {
  const auto found = places_.find(std::string(text));
  if (found == places_.end()) return {};
  return found->second;
}

void Strings::add_class_labels(const onnx::GraphProto& graph) {
  for (const onnx::NodeProto& node : graph.node()) {
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.name() == kClassLabels)
        for (const std::string& text : attribute.strings()) add(text);
      if (attribute.has_g()) add_class_labels(attribute.g());
    }
  }
}

void Strings::add_graph(const onnx::GraphProto& graph) {
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    if (tensor.data_type() != onnx::TensorProto::STRING) continue;
    for (const std::string& text : tensor.string_data()) add(text);
    values_.insert(tensor.name());
  }
  for (const onnx::NodeProto& node : graph.node()) add_node(node);
}

void Strings::add_node(const onnx::NodeProto& node) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.has_g()) add_graph(attribute.g());
    if (std::ranges::find(kTextAttributes, attribute.name()) == std::end(kTextAttributes)) continue;
    for (const std::string& text : attribute.strings()) add(text);
    if (attribute.type() == onnx::AttributeProto::STRING) add(attribute.s());
    if (is_string_tensor(attribute))
      for (const std::string& text : attribute.t().string_data()) add(text);
  }
  const bool reads =
      std::ranges::any_of(node.input(), [&](const std::string& name) { return holds(name); });
  bool first = false, all = reads && use_of(node) == Use::move;
  if (is_ml(node, "LabelEncoder") || is_ml(node, "CategoryMapper")) {
    // Mappings of the first version map in both directions, as the operand has it.
    const bool turns = has_strings(node, "cats_strings") || has_strings(node, "classes_strings");
    first =
        turns ? !reads : has_strings(node, "values_strings") || has_strings(node, "values_tensor");
    if (first && attribute_of(node, "default_string") == nullptr) add(kUnused);
  } else if (node.op_type() == "Constant" && canonical_domain(node.domain()).empty()) {
    first = has_strings(node, "value") || has_strings(node, "value_string") ||
            has_strings(node, "value_strings");
  } else if (node.domain() == ml && node.op_type() != "ZipMap") {
    first = has_strings(node, kClassLabels);
  }
  for (int i = 0; i < node.output_size(); ++i)
    if (all || (first && i == 0)) values_.insert(node.output(i));
}

Status Strings::check(const onnx::NodeProto& node) const {
  if (table_.empty() && values_.empty()) return {};
  for (const onnx::AttributeProto& attribute : node.attribute())
    for (const onnx::ValueInfoProto& info : attribute.g().output())
      if (holds(info.name())) return unsupported("a subgraph gives strings");
  if (use_of(node)) return {};
  for (const std::string& name : node.input())
    if (holds(name)) return unsupported("it computes with strings");
  return {};
}

Result<Tensor> Strings::tensor(const onnx::TensorProto& proto) const {
  if (proto.dims_size() > kMaxRank)
    return over_limit("rank {} is above the limit of {}", proto.dims_size(), kMaxRank);
  const Type type =
      HONE_TRY(Type::make(DType::i64, Dims(proto.dims().begin(), proto.dims().end())));
  if (type.static_elements() != proto.string_data_size())
    return bad_input("string_data holds {} strings, but its dims need {}", proto.string_data_size(),
                     type.static_elements());
  Ints places;
  for (const std::string& text : proto.string_data()) {
    const std::optional<int64_t> found = place(text);
    if (!found) return unsupported("strings in a local function are not supported");
    places.push_back(*found);
  }
  return Tensor::from_integers(type, places);
}

OnnxLabels Strings::labels(const onnx::GraphProto& graph) const {
  OnnxLabels labels;
  for (const auto* side : {&graph.input(), &graph.output()})
    for (const onnx::ValueInfoProto& info : *side)
      if (holds(info.name())) labels.values.insert(info.name());
  if (!labels.values.empty()) labels.strings = table_;
  std::unordered_map<std::string, const onnx::NodeProto*> maps;
  for (const onnx::NodeProto& node : graph.node())
    if (is_ml(node, "ZipMap") && node.output_size() > 0) maps.emplace(node.output(0), &node);
  for (const onnx::ValueInfoProto& info : graph.output())
    if (const auto found = maps.find(info.name()); found != maps.end())
      labels.columns.emplace(info.name(), columns_of(*found->second));
  return labels;
}

}  // namespace hone::onnx_io
