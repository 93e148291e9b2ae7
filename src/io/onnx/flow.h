#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/builder.h"
#include "ir/contents.h"
#include "ir/model.h"

namespace hone::onnx_io {

class Flow;

// A value of the file, where it was made.
struct Slot {
  Flow* flow = nullptr;  // null: a constant
  size_t segment = 0;    // of the flow
  Value value;           // in that segment's graph; absent: it comes from outside under its name
  std::string name;      // between segments
  Type type;
  Tensor constant;               // of a constant
  std::optional<Dims> contents;  // known elements of one that comes from outside
};

// Segments under construction, one after the other: the model's, those of a body, or the single one
// of a region. Values move on their own from where they were made to where they are used.
class Flow {
 public:
  enum class Kind { model, body, region };
  Flow(Flow* outside, Kind kind, std::string name);
  Flow(const Flow&) = delete;

  Kind kind() const { return kind_; }
  Flow* outside() const { return outside_; }
  Builder& builder() { return *parts_.back().builder; }
  Contents& contents() { return *parts_.back().contents; }
  size_t segment() const { return parts_.size() - 1; }

  // A parameter of the first segment (a region's, a model's input) or a value that the segments see
  // from outside by its name.
  Slot* parameter(std::string name, Type type);
  Slot* external(std::string name, Type type, std::optional<Dims> contents = {});
  Slot* constant(std::string name, Tensor tensor);
  Slot* define(std::string name, Value value);
  // The slot's value in the segment at hand.
  Value value_of(Slot& slot);
  // What is known of its elements, wherever it lives.
  std::optional<Dims> known(Slot& slot);

  // Ends the segment: what comes next stands in another.
  void cut();
  // Ends the segment; the scalars are sizes in the next one, symbols that are bound by them.
  Dims cut_for_sizes(const std::vector<Value>& scalars, const std::vector<int64_t>& most);
  // The slot is the first `count` of `value` along an axis. cut() must follow.
  Slot* define_cut(std::string name, Value value, int axis, Value count);
  // Another segment (if, loop, deferred) between the one at hand and the next.
  void append(Segment segment);
  // A name between segments that nobody else has.
  std::string fresh_name(std::string_view wish);
  Symbol fresh_symbol(std::string_view wish, int64_t most);
  // Lets a symbol be bound by the slot, in whose type it stands.
  void bind(Symbol symbol, Slot* slot);

  // Values of the outside that a region uses, in the order of its parameters.
  const std::vector<Slot*>& captures() const { return captures_; }

  // The name under which later segments and the model's results find the slot.
  std::string export_name(Slot& slot);
  Result<Body> finish(const std::vector<Slot*>& results);
  Result<GraphRef> finish_region(const std::vector<Slot*>& results);

 private:
  // A graph under construction, or a finished segment of another kind.
  struct Part {
    std::unique_ptr<Builder> builder;
    std::unique_ptr<Contents> contents;
    std::vector<std::string> inputs;  // of the parameters
    std::vector<std::pair<std::string, Value>> outputs;
    std::vector<Crop> crops;
    std::unordered_map<const Slot*, Value> imported;
    std::optional<Segment> other;
  };
  void start_part();
  size_t output(Part& part, const std::string& name, Value value);
  Status bind_symbols(Part& part);

  Flow* outside_;
  Kind kind_;
  std::string name_;
  std::deque<Slot> slots_;
  std::deque<Part> parts_;
  std::vector<Slot*> captures_;
  std::map<std::string, Slot*, std::less<>> binders_;  // by symbol
  // Shared by all flows of a model: names are given once.
  struct Names;
  std::shared_ptr<Names> names_;
};

}  // namespace hone::onnx_io
