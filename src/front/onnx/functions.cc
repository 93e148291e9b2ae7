#include "front/onnx/functions.h"

#include <deque>
#include <set>

#include "front/onnx/import.h"
#include "front/onnx/newer.h"
#include "front/onnx/registry.h"

namespace hone::onnx_io {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

// Calls `visit` for every node, those in subgraphs too.
template <class Visit>
void each_node(const Nodes& nodes, const Visit& visit) {
  for (const onnx::NodeProto& node : nodes) {
    visit(node);
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) each_node(attribute.g().node(), visit);
      for (const onnx::GraphProto& graph : attribute.graphs()) each_node(graph.node(), visit);
    }
  }
}

std::string function_name(const onnx::FunctionProto& function) {
  return function.domain().empty() ? function.name()
                                   : fmt::format("{}.{}", function.domain(), function.name());
}

// Depth-first: a function that is met again while it is being looked at calls itself.
class CycleCheck {
 public:
  explicit CycleCheck(const Source& source) : source_(source) {}

  void visit(const onnx::FunctionProto& function) {
    if (done_.contains(&function)) return;
    if (!open_.insert(&function).second)
      throw Failure{bad_input("function '{}' calls itself", function_name(function))};
    if (static_cast<int64_t>(open_.size()) > source_.options.limits.nesting)
      throw Failure{over_limit("functions call each other more than {} deep",
                               source_.options.limits.nesting)};
    each_node(function.node(), [&](const onnx::NodeProto& node) {
      if (const onnx::FunctionProto* called = find_function(source_, node)) visit(*called);
    });
    open_.erase(&function);
    done_.insert(&function);
  }

 private:
  const Source& source_;
  std::set<const onnx::FunctionProto*> open_, done_;
};

}  // namespace

std::string canonical_domain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string() : std::string(domain);
}

Frame::Opsets opsets_of(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports,
                        int64_t ir_version) {
  Frame::Opsets opsets;
  // Before IR version 3 files did not say; there was one version then.
  if (imports.empty() && ir_version < 3) opsets.emplace("", 1);
  for (const onnx::OperatorSetIdProto& import : imports) {
    std::string domain = canonical_domain(import.domain());
    Status good = check_domain(domain, import.version());
    if (!good.ok()) throw Failure{std::move(good).error()};
    int version = static_cast<int>(std::min<int64_t>(import.version(), INT32_MAX));
    auto [at, is_new] = opsets.emplace(domain, version);
    if (!is_new && at->second != version)
      throw Failure{bad_input("opsets {} and {} of domain '{}' are both imported", at->second,
                              version, import.domain())};
  }
  return opsets;
}

std::shared_ptr<const Source> make_source(std::shared_ptr<const ModelFile> file,
                                          const ImportOptions& options) {
  auto source = std::make_shared<Source>();
  const onnx::ModelProto& model = file->model();
  source->file = std::move(file);
  source->options = options;
  source->options.notice = nullptr;  // whoever it is for may be gone when the rest is imported
  for (const onnx::FunctionProto& function : model.functions()) {
    std::tuple key(canonical_domain(function.domain()), function.name(), overload_of(function));
    if (!source->functions.emplace(key, &function).second)
      throw Failure{bad_input("function '{}' is given twice", function_name(function))};
  }
  CycleCheck cycles(*source);
  for (const onnx::FunctionProto& function : model.functions()) cycles.visit(function);
  return source;
}

const onnx::FunctionProto* find_function(const Source& source, const onnx::NodeProto& node) {
  if (source.functions.empty()) return nullptr;
  auto at =
      source.functions.find({canonical_domain(node.domain()), node.op_type(), overload_of(node)});
  return at != source.functions.end() ? at->second : nullptr;
}

void import_call(Frame& frame, Flow& flow, const onnx::NodeProto& node,
                 const onnx::FunctionProto& function) {
  if (frame.depth() > frame.source()->options.limits.nesting)
    throw Failure{over_limit("graphs and functions are nested more than {} deep",
                             frame.source()->options.limits.nesting)};
  if (node.input_size() > function.input_size() || node.output_size() > function.output_size())
    throw Failure{bad_input("the function has {} inputs and {} outputs, the call {} and {}",
                            function.input_size(), function.output_size(), node.input_size(),
                            node.output_size())};
  Frame::Attributes attributes;
  std::deque<onnx::AttributeProto> defaults;
  Result<std::vector<onnx::AttributeProto>> given = default_attributes(function);
  if (!given.ok()) throw Failure{std::move(given).error()};
  for (onnx::AttributeProto& attribute : *given) defaults.push_back(std::move(attribute));
  for (const onnx::AttributeProto& attribute : defaults) attributes[attribute.name()] = &attribute;
  for (const onnx::AttributeProto& attribute : node.attribute())
    if (const onnx::AttributeProto* found = frame.resolve(attribute))
      attributes[attribute.name()] = found;
  std::string name = node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name();
  Frame inside(frame, opsets_of(function.opset_import(), INT64_MAX), std::move(attributes),
               fmt::format("{}{}/", frame.prefix(), name));
  for (int i = 0; i < function.input_size(); ++i) {
    bool has = i < node.input_size() && !node.input(i).empty();
    inside.define(function.input(i), has ? frame.find_optional(node.input(i)) : nullptr);
  }
  for (const onnx::NodeProto& inner : function.node()) import_node(inside, flow, inner);
  for (int i = 0; i < node.output_size(); ++i)
    if (!node.output(i).empty()) frame.define(node.output(i), inside.find(function.output(i)));
}

}  // namespace hone::onnx_io
