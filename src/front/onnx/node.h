#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "front/onnx/flow.h"
#include "front/onnx/proto.h"
#include "ir/functional.h"

// One node of the file, as the mapping of its ONNX op sees it. It gives the operands as Values of
// the graph that is being built, and what is known of them before anything runs.
//
//   void map_relu(Node& n) { n.out(relu(n.in())); }
//
// Mappings are one function each, in src/front/onnx/ops, with a row in onnx_ops.def. Mistakes in
// the file and what hone lacks are thrown as Failure, so that a mapping reads like the formula;
// import catches them and says which node it was. Nothing is thrown beyond src/front/onnx.

namespace hone::onnx_io {

class Frame;

struct Failure {
  Error error;
  bool is_structural = false;         // of names alone: no types or sizes would mend it
  std::optional<Demand> demand = {};  // what the op could not prove of sizes
};

// A size depends on data: the segment ends here, and the node is mapped again in the next one,
// where the size is a symbol.
struct NeedSizes {
  std::vector<Flow::Measured> sizes;
  std::optional<Flow::Measurable> reason = {};  // where ranges of open sizes would do instead
};

// Sizes that depend on data must be these: the segment ends here, and the node is mapped again in
// the next one, where they are.
struct NeedNarrowed {
  Bindings sizes;
};

// An integer that may depend on data.
struct Number {
  Number() = default;
  Number(Dim known) : known(known) {}    // NOLINT: implicit
  Number(Value value) : value(value) {}  // NOLINT: implicit
  Number(std::optional<Dim> known, Value value) : known(known), value(value) {}

  std::optional<Dim> known;
  Value value;  // i64[]; absent if it is known

  Value in(Builder& b) const { return known ? size_value(b, *known) : value; }
};

// The elements of a small operand must be known. The segment ends here, and they are sizes in the
// next one, so that they are numbers as soon as sizes are.
struct NeedValue {
  Slot* slot;
};

class Node {
 public:
  // The place of a node in its file: the graph or function that it stands in.
  Node(Frame& frame, Flow& flow, const onnx::NodeProto& proto, int version);

  const onnx::NodeProto& proto() const { return proto_; }
  // The version of its domain that the file or the function imports.
  int version() const { return version_; }
  Frame& frame() { return frame_; }
  Flow& flow() { return flow_; }
  Builder& builder();
  std::string describe() const;  // "node 'conv1' (Conv)"

  // ---- Operands ---------------------------------------------------------------------------------
  // Inputs behind the last one that a mapping asks for are refused after it, so none is ignored
  // unseen.
  size_t inputs() const { return static_cast<size_t>(proto_.input_size()); }
  bool has(size_t i);
  Value in(size_t i = 0);           // a missing one is the file's fault
  Value optional(size_t i);         // an absent Value if there is none
  std::vector<Value> all_inputs();  // of variadic ops
  void ignore_operand(size_t i);    // one without effect here
  Slot& slot(size_t i);             // also of values that are not tensors
  bool holds_strings(size_t i) const;

  // ---- What is known of operands
  // ----------------------------------------------------------------- The elements of an integer
  // operand: numbers or expressions. Null if they depend on data.
  std::optional<Dims> known(size_t i);
  // The same where the mapping cannot do without. Data-dependent ones end the segment and come back
  // as symbols within 0..most; negative numbers are the mapping's to understand.
  Dims sizes(size_t i, int64_t most = kMostSize);
  // Numbers, not expressions: axes, pads. Where they depend on data the rest of the model is typed
  // when they are there.
  Ints integers(size_t i);
  // An operand that is computed from constants alone; others as with integers().
  Tensor constant(size_t i);
  std::optional<Tensor> maybe_constant(size_t i);
  std::vector<double> reals(size_t i);     // of a constant
  double real(size_t i, double fallback);  // a constant with one element, or absent

  // A constant holds only numbers that may be dims, so not 2^62; others are the mapping's to check.
  void refuse_endless(size_t i);

  // A size that the graph computes, an integer scalar in 0..most. If it is not known, the segment
  // ends: ask for sizes first, build afterwards.
  Dim size(Value scalar, int64_t most = kMostSize);
  // All sizes that a mapping asks for go in here, known ones too and in the same order each time it
  // is called. The knowledge of an operand may get less where a segment ends. A run fails where
  // they do not make `product` elements, if that is given; must_be() says whether import knows that
  // they do.
  Dims sizes(const std::vector<Number>& numbers, int64_t most = kMostSize,
             std::optional<Dim> product = {});
  // Sizes that the mapping asks for from here on would be known for these ranges of open sizes.
  void known_for(Flow::Measurable reason) { reason_ = std::move(reason); }
  static constexpr int64_t kMostSize = int64_t{1} << 31;
  static constexpr std::string_view kProduct = "the number of elements";  // what the check is of

  // ---- Sizes that have to fit -------------------------------------------------------------------
  // The node has a meaning only if `size` is `wanted` (`or_one`: or 1). If import cannot say, but
  // for open sizes, a run of the segment that follows fails where it is not. Symbols that depend on
  // data may be other ones in it. `what`: "dim 1 of the input".
  void must_be(Dim size, Dim wanted, std::string_view what, bool or_one = false);
  // The same for an integer scalar that the graph computes.
  void must_be(Value size, Dim wanted, std::string_view what);
  // True if it has symbols that no input has.
  bool depends_on_data(Dim size) const;
  // The size divided by a number of parts. Null if it is not known to be a multiple of it, which
  // the node then must refuse.
  std::optional<Dim> divided(Dim size, Dim parts);

  // ---- Attributes
  // -------------------------------------------------------------------------------- Those that a
  // mapping does not ask for are refused after it, so none is ignored unseen.
  bool has_attribute(std::string_view name);
  int64_t integer(std::string_view name);
  int64_t integer(std::string_view name, int64_t fallback);
  bool flag(std::string_view name, bool fallback = false) { return integer(name, fallback) != 0; }
  double real(std::string_view name);
  double real(std::string_view name, double fallback);
  std::string word(std::string_view name, std::string_view fallback);
  Ints ints(std::string_view name);  // empty if there is none
  std::vector<double> reals(std::string_view name);
  std::vector<std::string> words(std::string_view name);
  // Words that are data: their places in the file's table.
  Ints strings(std::string_view name);
  int64_t string(std::string_view name, std::string_view fallback);
  Tensor tensor(std::string_view name);
  const onnx::GraphProto& graph(std::string_view name);
  const onnx::AttributeProto* attribute(std::string_view name);  // null if there is none
  DType dtype(std::string_view name, DType fallback);            // a TensorProto.DataType
  void ignore(std::string_view name);                            // an attribute without effect here
  // In 0..rank-1; negative ones count from the back.
  int axis(std::string_view name, int rank, int64_t fallback);
  int axis_in(int64_t axis, int rank);  // the same for a number
  Ints axes_in(Ints axes, int rank);    // sorted; repeated ones are the file's fault

  // ---- Results ----------------------------------------------------------------------------------
  size_t outputs() const { return static_cast<size_t>(proto_.output_size()); }
  bool wants(size_t i) const;
  void out(Value value) { out(0, value); }
  void out(size_t i, Value value);
  void out(size_t i, Slot* slot);
  void out_all(const std::vector<Value>& values);
  // A result whose size along an axis depends on data: `value` has room for the most, the first
  // `count` (an integer scalar) are real. The segment ends after the node.
  void out_cut(size_t i, Value value, int axis, Value count);

  // ---- Checks -----------------------------------------------------------------------------------
  // Where the user wants to know: `numbers` that are `wrong` (bools of the same dims) have no
  // meaning. `allowed` says which have one.
  void check(Value numbers, Value wrong, std::string allowed);
  bool is_checked() const;

  // ---- Refusals ---------------------------------------------------------------------------------
  template <class... Args>
  [[noreturn]] void bad(fmt::format_string<Args...> text, Args&&... args) {
    throw Failure{bad_input("{}", fmt::format(text, std::forward<Args>(args)...))};
  }
  template <class... Args>
  [[noreturn]] void unsupported(fmt::format_string<Args...> text, Args&&... args) {
    throw Failure{hone::unsupported("{}", fmt::format(text, std::forward<Args>(args)...))};
  }
  template <class... Args>
  [[noreturn]] void over_limit(fmt::format_string<Args...> text, Args&&... args) {
    throw Failure{hone::over_limit("{}", fmt::format(text, std::forward<Args>(args)...))};
  }
  template <class T>
  T take(Result<T> result) {
    if (!result.ok()) throw Failure{std::move(result).error()};
    return std::move(result).value();
  }
  void require(bool good, std::string_view what) {
    if (!good) bad("{}", what);
  }
  void require_rank(Value v, std::string_view what, int least, int most = kMaxRank);

  // ---- For import -------------------------------------------------------------------------------
  struct Cut {
    size_t output;
    int axis;
    Value count;
  };
  struct Outcome {
    std::vector<Value> values;  // by output
    std::vector<Slot*> slots;   // instead, for values that are in no graph yet
    std::vector<Cut> cuts;
  };
  // Maps the node in the flow's current segment, once.
  Outcome map(const std::function<void(Node&)>& mapping);
  // Takes the values of the sizes that were asked for.
  void resolve(const Dims& sizes);
  // Slots that the segment at hand reads so that a run sees whether sizes fit.
  std::vector<Slot*>& checked() { return checked_; }

 private:
  [[noreturn]] void need_value(size_t i);
  int64_t place_of(std::string_view text);
  const onnx::AttributeProto* typed(std::string_view name,
                                    onnx::AttributeProto::AttributeType type);
  void check_attributes() const;
  void check_operands() const;

  Frame& frame_;
  Flow& flow_;
  const onnx::NodeProto& proto_;
  int version_;
  std::vector<std::string> asked_;  // attributes
  size_t asked_operands_ = 0;       // the mapping knows the op to have this many
  Element known_size(const Number& number);
  Flow::Measured expected(Value size, Dim wanted, std::string_view what) const;

  Elements sizes_;  // in the order in which they were asked for; null: is being measured
  size_t next_size_ = 0;
  std::optional<Flow::Measurable> reason_;
  std::set<std::string, std::less<>> agreed_;  // what a run sees to be as it must
  std::vector<Slot*> checked_;
  Outcome outcome_;
};

}  // namespace hone::onnx_io
