#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "front/onnx/constraints.h"
#include "ir/builder.h"
#include "ir/contents.h"
#include "ir/model.h"

namespace hone::onnx_io {

class Flow;

// A value of the file, where it was made.
struct Slot {
  Flow* flow = nullptr;   // null: a constant
  size_t segment = 0;     // of the flow; SIZE_MAX: from outside, under its name
  Value value = {};       // in that segment's graph
  std::string name = "";  // between segments
  Type type = {};
  Tensor constant = {};      // of a constant
  Elements contents = {};    // known elements of one that comes from outside
  bool is_exported = false;  // later segments find it under its name
  // A sequence of values is known to import alone, as is an optional without a value. (One with a
  // value is that value.)
  enum class Form { tensor, sequence, nothing };
  Form form = Form::tensor;
  std::vector<Slot*> elements = {};  // of a sequence

  bool is_tensor() const { return form == Form::tensor; }
};

// Segments under construction, one after the other: the model's, those of a body, or the single one
// of a region. Values move on their own from where they were made to where they are used.
class Flow {
 public:
  enum class Kind { model, body, region };
  // Why a size is measured, and the ranges of open sizes for which import would know it.
  struct Measurable {
    Bindings known_for;
    std::string why;  // "it ends at n, and has 64 elements (node 'positions' (Slice))"
  };
  // Shared by all flows of a model: names are given once.
  struct Names {
    std::unordered_set<std::string> taken;
    std::unordered_set<std::string> symbols;
    std::unordered_map<std::string, int64_t> counts;
    std::unordered_map<std::string, bool> learned;  // symbols of learn(): whether of a real number
    std::unordered_set<std::string> open_sizes;     // symbols of the model's inputs
    std::unordered_map<std::string, Measurable> measured;  // by symbol, where ranges would do
  };

  Flow(Flow* outside, Kind kind, std::string name);
  // A body whose outside is not at hand; `names` are those that it has.
  Flow(Names names, Kind kind, std::string name);
  Flow(const Flow&) = delete;

  Kind kind() const { return kind_; }
  // Which guess at sizes the flow stands for; null if they are real.
  std::optional<size_t> guess = {};
  // True if open sizes may lose values that a node of the flow does not take. A part that is then
  // imported again with smaller ranges is sure to reach the node in each run.
  bool may_narrow = false;
  // The demands of nodes on open sizes. If there are any, the flow only collects: the
  // graphs that it has made are of no use.
  const std::vector<Constraint>& constraints() const { return constraints_; }
  // Goes on with the sizes of the constraint, behind a node that failed without.
  void constrain(Constraint constraint);
  const Names& names() const { return *names_; }
  bool has_symbols() const;  // of its own or from outside
  // Takes the values that stand for open sizes in this flow and those inside, before it has values.
  void narrow(const Bindings& sizes) { narrowed_ = parts_.back().narrowed = sizes; }
  const Bindings& narrowed() const { return narrowed_; }
  // A type, size or contents of the outside, with the ranges that sizes have in here.
  Type seen(Type type) const;
  Dim seen(Dim dim) const { return dim.bind(narrowed_); }
  Elements seen(Elements contents) const;
  Flow* outside() const { return outside_; }
  Builder& builder() { return *parts_.back().builder; }
  Contents& contents() { return *parts_.back().contents; }
  size_t segment() const { return parts_.size() - 1; }

  // A parameter of the first segment (a region's, a model's input) or a value that the segments see
  // from outside by its name.
  Slot* parameter(std::string name, Type type);
  Slot* external(std::string name, Type type, Elements contents = {});
  Slot* constant(std::string name, Tensor tensor);
  Slot* define(std::string name, Value value);
  // Gives the value of a result of the model the name of the result. It replaces the name that the
  // value had before nodes without effect. An input keeps its name, and a value that is several
  // results has the first one.
  void name_result(const Slot& slot);
  Slot* sequence(std::string name, std::vector<Slot*> elements);
  Slot* nothing(std::string name);
  // The slot's value in the segment at hand. Throws Failure if it is not a tensor.
  Value value_of(Slot& slot);
  // The elements that are known here, wherever the slot lives; empty if nothing is.
  Elements known(const Slot& slot) const;
  // All of a small one of this flow that is computed from constants alone.
  std::optional<Tensor> constant_of(const Slot& slot);

  // Ends the segment: what comes next stands in another.
  void cut();
  // A size that the graph computes: an integer scalar in 0..most.
  struct Measured {
    Value scalar;
    int64_t most = 0;
    std::optional<Dim> wanted = {};  // what it must turn out to be; a run fails where it is not
    std::string what = "";           // to call it then
  };
  // Ends the segment; the sizes are symbols in the next one that are bound by them, or what they
  // must be. `checked` are slots that the next one reads since its types must fit; those of the
  // sizes are added.
  Dims cut_for_sizes(const std::vector<Measured>& sizes, std::vector<Slot*>& checked);
  // Ends the segment; from the next one on other sizes stand for symbols. A run fails where they
  // differ.
  void cut_and_narrow(const Bindings& sizes, std::vector<Slot*>& checked);
  // Ends the segment; the elements of the slot are sizes in the next one. A size is not negative,
  // so integers are shifted, and reals are the bits of a float.
  void learn(Slot& slot);
  static bool can_learn(Type type);
  // The sizes, in the code of learn(), if this flow or one around it has learned the slot. A flow
  // inside has learned it for itself alone, since its symbols mean nothing here.
  const Dims* learned(const Slot& slot) const;
  // The tensor that sizes which have become numbers stand for; null while some have not.
  static std::optional<Tensor> learned_tensor(Type type, const Dims& learned);
  bool has_learned() const { return !names_->learned.empty(); }
  // Numbers that a symbol of learn() may well have; empty for other symbols.
  Ints likely_values(Symbol symbol) const;

  // The first `count` of `value` along an axis; `size` stands for how many. cut() must follow.
  Slot* define_cut(std::string name, Value value, int axis, Value count, Symbol size);
  // Another segment (if, loop, deferred) between the one at hand and the next.
  void append(Segment segment);
  // A name between segments that nobody else has.
  std::string fresh_name(std::string_view wish);
  Symbol fresh_symbol(std::string_view wish, int64_t most);
  // The name of the symbol for a dim of this name, if the name is free.
  static std::string symbol_name(std::string_view wish);
  void reserve_symbol(Symbol symbol) { names_->symbols.insert(symbol.name()); }
  // The sizes of an input that are open.
  void add_open_sizes(Dim dim);
  void add_measured(const Dims& sizes, const Measurable& reason);
  // The slot in whose type the symbol stands as a dim; null if it means nothing here.
  Slot* binder(std::string_view symbol) const;
  // The symbol of the name, with the range that it has here.
  std::optional<Symbol> symbol(std::string_view name) const;
  // True if the very symbol, with its range, means something here.
  bool means(Symbol symbol) const;

  // The findings of this flow's checks, by their numbers (checks.h).
  void add_check(Slot* found, std::span<const int64_t> numbers);
  const std::vector<int64_t>& checks() const { return checks_; }
  // The finding of the first of them; zeros if none has. In the segment at hand.
  Value found();
  // True if the flow is made in a run, of what import could not type.
  bool is_deferred() const;

  // Values of the outside that a region uses, in the order of its parameters.
  const std::vector<Slot*>& captures() const { return captures_; }

  // The name under which later segments and the model's results find the slot.
  std::string export_name(Slot& slot);
  Result<Body> finish(const std::vector<Slot*>& results);
  // The same, with results of the given names.
  Result<Body> finish_as(const std::vector<Slot*>& results, const std::vector<std::string>& names);
  Result<GraphRef> finish_region(const std::vector<Value>& results);

 private:
  // A graph under construction, or a finished segment of another kind.
  struct Part {
    std::unique_ptr<Builder> builder;
    std::unique_ptr<Contents> contents;
    std::vector<std::string> inputs;  // of the parameters
    std::vector<std::pair<std::string, Value>> outputs;
    std::set<std::string> names;  // of values
    std::set<uint32_t> results;   // values that have the names of results
    std::vector<Crop> crops;
    std::unordered_map<const Slot*, Value> imported;
    std::vector<Slot*> checked;  // inputs that are there because their types must fit
    Bindings narrowed;           // what stands for symbols in this part
    std::optional<Segment> other;
  };
  static constexpr size_t kMaxSymbolName = 64;

  void start_part();
  Type seen_in(const Part& part, Type type) const;
  Elements known_own(const Slot& slot) const;
  Slot* cut_output(std::string name, Value value, int axis, Value count, Type type);
  uint32_t output(Part& part, const std::string& name, Value value);
  void bind(Symbol symbol, Slot* slot);
  void bind_all(Slot& slot);
  Value local_constant(const Tensor& tensor, const std::string& name);
  Value import_value(Slot& slot);
  Result<std::vector<Segment>> finish_parts();
  Result<Segment> finish_part(Part& part, bool keeps_inputs);

  Flow* outside_;
  Kind kind_;
  std::string name_;
  std::deque<Slot> slots_;
  std::deque<Part> parts_;
  std::vector<Slot*> captures_;
  std::vector<Slot*> found_;
  std::vector<int64_t> checks_;
  std::map<std::string, Slot*, std::less<>> binders_;  // by symbol
  Bindings narrowed_;
  std::vector<Constraint> constraints_;
  std::unordered_map<const Slot*, Dims> learned_;  // by learn()
  std::shared_ptr<Names> names_;
};

}  // namespace hone::onnx_io
