#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "front/onnx/flow.h"
#include "front/onnx/node.h"
#include "front/onnx/onnx.h"

namespace hone::onnx_io {

// The state that the whole import shares; outlives it where segments are deferred.
struct Source {
  std::shared_ptr<const ModelFile> file;
  ImportOptions options;
  // Local functions by domain, name and overload.
  std::map<std::tuple<std::string, std::string, std::string>, const onnx::FunctionProto*> functions;
  // Notes for the user, once the file is read; each once, as parts may be read again.
  std::shared_ptr<std::vector<std::string>> notes = std::make_shared<std::vector<std::string>>();

  void note(std::string text) const {
    if (std::ranges::find(*notes, text) == notes->end()) notes->push_back(std::move(text));
  }
};

// The share of the limits that an import has used, when a deferred segment is imported within it.
struct ImportUse {
  int depth = 0;
  std::shared_ptr<int64_t> nodes = std::make_shared<int64_t>(0);
};

// Where names mean something: a graph, a subgraph (which sees the names around it) or the body of a
// function (which does not).
class Frame {
 public:
  using Opsets = std::map<std::string, int, std::less<>>;
  using Attributes = std::map<std::string, const onnx::AttributeProto*, std::less<>>;

  // The model's graph, or the rest of it.
  Frame(std::shared_ptr<const Source> source, Opsets opsets, ImportUse use = {});
  // A subgraph of a node of `around`.
  explicit Frame(Frame& around);
  // A function called in `caller`.
  Frame(Frame& caller, Opsets opsets, Attributes attributes, std::string prefix);

  const std::shared_ptr<const Source>& source() const { return source_; }
  const ModelFile& file() const { return *source_->file; }
  int depth() const { return depth_; }
  const std::string& prefix() const { return prefix_; }  // of the names of values: "block1/"

  // Throw Failure: for a name that nothing has, or that is given twice.
  Slot* find(std::string_view name);
  Slot* find_optional(std::string_view name);  // null for an operand that the call leaves out
  Slot* find_or_null(std::string_view name);   // null also for a name that nothing has
  void define(std::string_view name, Slot* slot);
  int version(std::string_view domain) const;
  const Opsets& opsets() const { return opsets_; }
  bool is_function() const { return is_function_; }
  // The attribute itself, or the one of the call that it refers to; null if the call has none.
  const onnx::AttributeProto* resolve(const onnx::AttributeProto& attribute) const;

  ImportUse use() const { return {depth_, node_count_}; }
  int64_t& node_count() { return *node_count_; }  // of the whole import

 private:
  std::optional<Slot*> lookup(std::string_view name);

  std::shared_ptr<const Source> source_;
  Frame* around_ = nullptr;
  Opsets opsets_;
  Attributes attributes_;
  bool is_function_ = false;
  std::string prefix_;
  int depth_ = 0;
  std::shared_ptr<int64_t> node_count_;
  std::unordered_map<std::string, Slot*> names_;
};

}  // namespace hone::onnx_io
