#include "front/onnx/deferred.h"

#include <map>

#include "front/onnx/functions.h"
#include "front/onnx/write/graph_writer.h"

// Nodes that could not be typed yet: they are written as they were read, under new names.

namespace hone::onnx_io {
namespace {

using Renames = std::map<std::string, std::string, std::less<>>;  // in the file read -> written

class NodeCopy {
 public:
  NodeCopy(FileWriter& file, const Source& source, const Frame::Opsets& opsets)
      : file_(file), source_(source), opsets_(opsets) {}

  // Results that `names` has already get these names.
  void node(const onnx::NodeProto& from, Renames& names, onnx::NodeProto& to);

 private:
  static const std::string& renamed(const Renames& names, const std::string& name) {
    const auto at = names.find(name);
    if (at == names.end())
      throw Failure{bad_input("value '{}' is used before it is given, or nothing gives it", name)};
    return at->second;
  }

  // Bytes of tensors are not in the message, and graphs have names in them.
  void attribute(const onnx::AttributeProto& from, const Renames& names, onnx::AttributeProto& to) {
    if (from.has_sparse_tensor() || from.sparse_tensors_size() > 0 || from.graphs_size() > 0)
      throw Failure{
          unsupported("attribute '{}' of a node that is typed when its input sizes are "
                      "known holds sparse tensors or several graphs",
                      from.name())};
    if (from.has_t()) fill(*to.mutable_t(), source_.file->tensor(from.t()), from.t().name());
    for (int i = 0; i < from.tensors_size(); ++i)
      fill(*to.mutable_tensors(i), source_.file->tensor(from.tensors(i)), from.tensors(i).name());
    if (from.has_g()) graph(from.g(), names, *to.mutable_g());
  }

  void fill(onnx::TensorProto& to, Result<Tensor> tensor, const std::string& name) {
    if (!tensor.ok()) throw Failure{std::move(tensor).error()};
    to.Clear();
    fill_tensor(*tensor, to);
    to.set_name(name);
  }

  // Sees the names around it.
  void graph(const onnx::GraphProto& from, Renames names, onnx::GraphProto& to) {
    to.Clear();
    to.set_name(file_.fresh_name(from.name()));
    auto fresh = [&](const std::string& name) {
      return names.insert_or_assign(name, file_.fresh_name(name)).first->second;
    };
    for (const onnx::ValueInfoProto& input : from.input()) {
      onnx::ValueInfoProto& info = *to.add_input();
      info = input;
      info.set_name(fresh(input.name()));
    }
    for (const onnx::TensorProto& tensor : from.initializer())
      fill(*to.add_initializer(), source_.file->tensor(tensor), fresh(tensor.name()));
    for (const onnx::SparseTensorProto& tensor : from.sparse_initializer())
      fill(*to.add_initializer(), source_.file->tensor(tensor), fresh(tensor.values().name()));
    for (const onnx::NodeProto& inner : from.node()) node(inner, names, *to.add_node());
    for (const onnx::ValueInfoProto& output : from.output()) {
      onnx::ValueInfoProto& info = *to.add_output();
      info = output;
      info.set_name(renamed(names, output.name()));
    }
  }

  void use_domain(const std::string& domain) {
    if (domain.empty()) return;
    const auto wanted = opsets_.find(domain);
    const int64_t version = wanted != opsets_.end() ? wanted->second : 1;
    if (file_.domains.try_emplace(domain, version).first->second != version)
      throw Failure{unsupported("versions {} and {} of the domain '{}' in one file", version,
                                file_.domains[domain], domain)};
  }

  FileWriter& file_;
  const Source& source_;
  const Frame::Opsets& opsets_;
};

void NodeCopy::node(const onnx::NodeProto& from, Renames& names, onnx::NodeProto& to) {
  if (find_function(source_, from) != nullptr)
    throw Failure{unsupported("node '{}' calls the local function '{}', and is typed when its "
                              "input sizes are known",
                              from.name(), from.op_type())
                      .with_hint("bind them with --dim or --shape")};
  use_domain(canonical_domain(from.domain()));
  to = from;
  to.clear_doc_string();
  to.set_name(file_.fresh_name(from.name().empty() ? from.op_type() : from.name()));
  for (std::string& name : *to.mutable_input())
    if (!name.empty()) name = renamed(names, name);
  for (int i = 0; i < from.attribute_size(); ++i)
    attribute(from.attribute(i), names, *to.mutable_attribute(i));
  for (std::string& name : *to.mutable_output())
    if (!name.empty()) name = names.try_emplace(name, file_.fresh_name(name)).first->second;
}

}  // namespace

void GraphWriter::segment(const DeferredSegment& segment, Values& values) {
  const auto fail = [&](Error error) {
    throw Failure{std::move(error).within(segment.source->describe())};
  };
  const auto* rest = dynamic_cast<const FileRest*>(segment.source.get());
  if (rest == nullptr)
    return fail(unsupported("it is typed when its input sizes are known")
                    .with_hint("bind them with --dim or --shape"));
  const FileRest::Nodes nodes = rest->nodes();
  const auto opset = nodes.opsets.find("");
  if (opset != nodes.opsets.end() && opset->second != file_.opset)
    return fail(
        unsupported("it is typed when its input sizes are known, and is of opset {}, not {}",
                    opset->second, file_.opset)
            .with_hint("write the opset that the model has, or bind sizes with --dim or "
                       "--shape"));
  Renames names;
  for (const auto& [name, tensor] : nodes.constants) names[name] = constant(tensor, name);
  for (size_t i = 0; i < nodes.inputs.size(); ++i)
    if (!nodes.inputs[i].empty()) names[nodes.inputs[i]] = values.at(segment.inputs[i]);
  for (size_t i = 0; i < nodes.results.size(); ++i) {
    const std::string& name = segment.results[i];
    values[name] = names[nodes.results[i]] = file_.claim(name);
  }
  try {
    NodeCopy copy(file_, *nodes.source, nodes.opsets);
    for (int i : nodes.indices) copy.node(nodes.graph.node(i), names, *proto_.add_node());
  } catch (Failure& failure) {
    fail(std::move(failure.error));
  }
}

}  // namespace hone::onnx_io
