#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "front/onnx/flow.h"
#include "front/onnx/onnx.h"
#include "front/onnx/proto.h"

// The declared types of a file's inputs and outputs.

namespace hone::onnx_io {

std::set<std::string> initialized_names(const onnx::GraphProto& graph);

// Types of inputs, with the user's bindings and a symbol for each dim that has no number.
class InputTypes {
 public:
  // `symbols`: what the file's metadata tells of some names. `narrowed`: what stands for sizes of
  // which nodes do not take all numbers.
  InputTypes(Flow& flow, const ImportOptions& options, const std::vector<Symbol>& symbols,
             const Bindings& narrowed);

  // Both throw Failure. All inputs come first: a shape that the user gives for one of
  // them decides dims of others.
  void learn(const onnx::ValueInfoProto& info);
  Type of(const onnx::ValueInfoProto& info);
  // Null if the input stays one.
  const Tensor* constant(const std::string& name) const;
  // Every binding of the user named a dim or an input of the file.
  void check_all_used() const;

 private:
  Dims declared_dims(const onnx::ValueInfoProto& info);
  std::optional<Ints> given_shape(const onnx::ValueInfoProto& info);
  // Throws Failure if the user gives the size along the axis by its name, too, as another number.
  void check_named_size(const onnx::ValueInfoProto& info, int axis, int64_t size);
  // The symbol that the user asks for at this axis; null if the file decides.
  std::optional<Dim> wanted_symbol(const std::string& input, int axis, size_t rank);
  Dim named(const std::string& name, int unknown);
  // The type, with lower bounds of sizes that are too large together.
  Result<Type> limited(const onnx::ValueInfoProto& info, DType dtype, Dims dims);
  Dim bound_or(Symbol symbol);
  // "2*N + 1", if its symbols are in the metadata or name dims of inputs.
  std::optional<Dim> expression(const std::string& text, int unknown);
  Dim dim(const onnx::TensorShapeProto::Dimension& dim, const std::string& input, int axis,
          int unknown);

  Flow& flow_;
  const ImportOptions& options_;
  std::vector<Symbol> symbols_;
  const Bindings& narrowed_;
  Bindings given_;  // of symbols, by the shapes that the user gives
  std::map<std::string, Dim> named_;
  std::set<std::string> plain_;  // names of dims that are names of symbols
  std::set<std::string> used_;
  std::vector<std::string> inputs_;  // their names
};

// Tells whether an output is declared as an input is, but for sizes that are open on both sides: it
// may be longer, as the cache of a decoder is. `if_unknown`: whether one without a shape counts.
bool declares_growth(const onnx::GraphProto& graph, bool if_unknown);
// Throws Failure if what is declared of a value contradicts what was found.
void check_declared(const onnx::ValueInfoProto& info, Type found);
// True if the rank or a size that is a number on both sides is another one.
bool has_other_dims(const onnx::ValueInfoProto& info, Type found);
// "f32[1, N, ?]": what is declared.
std::string declared_text(const onnx::ValueInfoProto& info);
// Throws Failure if strings are declared where numbers are, or numbers where strings are.
void check_strings_declared(const onnx::ValueInfoProto& info, bool holds_strings);
// Throws Failure if the element type that is declared contradicts what was found.
void check_element_type(const onnx::ValueInfoProto& info, Type found);

}  // namespace hone::onnx_io
