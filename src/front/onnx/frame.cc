#include "front/onnx/frame.h"

#include "front/onnx/registry.h"

namespace hone::onnx_io {
namespace {

Failure structural(Error error) { return {.error = std::move(error), .is_structural = true}; }

}  // namespace

Frame::Frame(std::shared_ptr<const Source> source, Opsets opsets, ImportUse use)
    : source_(std::move(source)),
      opsets_(std::move(opsets)),
      depth_(use.depth),
      node_count_(std::move(use.nodes)) {}

Frame::Frame(Frame& around)
    : source_(around.source_),
      around_(&around),
      opsets_(around.opsets_),
      attributes_(around.attributes_),
      is_function_(around.is_function_),
      prefix_(around.prefix_),
      depth_(around.depth_ + 1),
      node_count_(around.node_count_) {}

Frame::Frame(Frame& caller, Opsets opsets, Attributes attributes, std::string prefix)
    : source_(caller.source_),
      opsets_(std::move(opsets)),
      attributes_(std::move(attributes)),
      is_function_(true),
      prefix_(std::move(prefix)),
      depth_(caller.depth_ + 1),
      node_count_(caller.node_count_) {}

std::optional<Slot*> Frame::lookup(std::string_view name) {
  std::string key(name);
  for (Frame* frame = this; frame != nullptr; frame = frame->around_) {
    auto at = frame->names_.find(key);
    if (at != frame->names_.end()) return at->second;
  }
  return {};
}

Slot* Frame::find_or_null(std::string_view name) { return lookup(name).value_or(nullptr); }

Slot* Frame::find_optional(std::string_view name) {
  if (std::optional<Slot*> slot = lookup(name)) return *slot;
  throw structural(bad_input("value '{}' is used before it is given, or nothing gives it", name));
}

Slot* Frame::find(std::string_view name) {
  if (Slot* slot = find_optional(name)) return slot;
  throw Failure{bad_input("value '{}' is an operand that the call leaves out", name)};
}

void Frame::define(std::string_view name, Slot* slot) {
  if (!names_.emplace(std::string(name), slot).second)
    throw structural(bad_input("value '{}' is given twice", name));
}

// A domain that is not imported has the newest version, as ONNX Runtime has it. A file that imports
// nothing may be of any time.
int Frame::version(std::string_view domain) const {
  auto at = opsets_.find(domain);
  if (at != opsets_.end()) return at->second;
  const std::string_view shown = domain.empty() ? "ai.onnx" : domain;
  const std::optional<int> newest = newest_version(domain);
  if (opsets_.empty() || !newest)
    throw structural(bad_input("domain '{}' is used, but no opset of it is imported", shown));
  source_->note(fmt::format("domain '{}' is used, but no opset of it is imported: {} is taken",
                            shown, *newest));
  return *newest;
}

const onnx::AttributeProto* Frame::resolve(const onnx::AttributeProto& attribute) const {
  if (attribute.ref_attr_name().empty()) return &attribute;
  if (!is_function_)
    throw Failure{bad_input("attribute '{}' refers to '{}' of a function, outside of one",
                            attribute.name(), attribute.ref_attr_name())};
  auto at = attributes_.find(attribute.ref_attr_name());
  return at != attributes_.end() ? at->second : nullptr;
}

}  // namespace hone::onnx_io
