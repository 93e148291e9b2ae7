#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "front/hlo/checks.h"
#include "front/hlo/program.h"
#include "front/hlo/reader.h"
#include "ir/functional.h"

// From a Program to a Graph. An instruction becomes nodes by the function of its row in
// hlo_ops.def. Mistakes are thrown as Refusal, with the place of the instruction.

namespace hone::hlo {

// A value while a graph is built: a tensor, a tuple of such, or nothing: a token.
struct Held {
  Value value = {};
  std::vector<Held> parts = {};
  bool is_tuple = false;
};

// A region that an instruction applies: its own, or a function that it names.
struct Body {
  const Function* function = nullptr;  // whose values its numbers are
  const Region* region = nullptr;
};

class Importer;

// Where instructions are turned into nodes: the values by their number, and the builder that gets
// the nodes.
struct Frame {
  Builder* builder = nullptr;
  const Function* function = nullptr;
  std::unordered_map<uint32_t, Held>* held = nullptr;
  // A body of scalars is applied to whole tensors: each scalar stands for a tensor of these dims.
  const Dims* lifted = nullptr;
};

// One instruction, as the functions of the table see it.
class Node {
 public:
  Node(Importer& importer, Frame& frame, const Instruction& instruction);

  Builder& builder() { return *frame_.builder; }
  const Instruction& instruction() const { return instruction_; }
  Importer& importer() { return importer_; }
  Frame& frame() { return frame_; }

  // ---- Operands: tensors, tuples written out ----
  const std::vector<Value>& operands() const { return operands_; }
  Value in(size_t i = 0);
  void need(size_t count);
  const Held& held(size_t i);
  // The elements of an operand that import knows: a constant.
  std::optional<Tensor> known(Value value);
  Ints known_ints(size_t i);  // an error if they are not known

  // ---- Attributes. The first of several names, divided by |, that is there counts ----
  const Attribute* find(std::string_view names) const;
  Ints ints(std::string_view names, const Ints& fallback);
  Ints ints(std::string_view names);  // an error if there is none
  int64_t integer(std::string_view names, int64_t fallback);
  bool flag(std::string_view names) { return integer(names, 0) != 0; }
  std::string_view word(std::string_view names, std::string_view fallback = "");
  // A field of a record as integers.
  Ints field(std::string_view record, std::string_view names, const Ints& fallback);
  int64_t field(std::string_view record, std::string_view names, int64_t fallback);
  Ints ints_of(const Attribute& attribute);

  // ---- Results ----
  Type result(size_t i = 0);  // of its tensors, tuples written out, as the text states it

  // ---- Regions ----
  // The i-th region, or the function that the attribute names.
  Body body(size_t i, std::string_view attribute);
  // The results of a body. Its scalars stand for tensors of `lifted`, if that is given.
  std::vector<Value> apply(const Body& body, std::span<const Value> arguments,
                           const Dims* lifted = nullptr);
  // The same in a graph of its own, such as the body of a loop. The body must not read values from
  // outside of it.
  std::vector<Value> apply_in(Builder& inner, const Body& body, std::span<const Value> arguments,
                              const Dims& lifted);

  [[noreturn]] void refuse(Error error) const;

 private:
  Importer& importer_;
  Frame& frame_;
  const Instruction& instruction_;
  std::vector<Value> operands_;
};

using ImportFunction = std::vector<Value> (*)(Node&);

struct OpRow {
  std::string_view name;            // of StableHLO
  std::string_view hlo;             // of HLO; "": it has no such op
  ImportFunction import = nullptr;  // null: the importer's own
  bool pointwise = false;           // element by element
};
std::span<const OpRow> op_rows();
const OpRow* row_named(std::string_view stablehlo_name);
const OpRow* row_of_hlo(std::string_view opcode);

class Importer {
 public:
  Importer(const Program& program, const Module& module) : program_(program), module_(module) {}

  // Constants with several elements become parameters, whose values import knows.
  bool opens_constants = false;
  // Gets the checks of the entry; null: they are left out.
  std::vector<Check>* checks = nullptr;
  std::vector<Tensor> opened;  // the values of the parameters
  int64_t checks_left_out = 0;
  std::vector<std::string> inputs_for_elided;  // parameters for constants that the text leaves out

  Graph import(const Function& entry);

  const Program& program() const { return program_; }
  const Module& module() const { return module_; }
  // Runs the instructions of a region whose parameters are held, and returns what it returns.
  std::vector<Held> run(Frame& frame, const Region& region);
  std::vector<Held> call(Frame& frame, const Body& body, std::vector<Held> arguments);
  std::optional<Tensor> known(const Builder& builder, Value value) const;
  // As a node of a region that is a graph of its own: what it reads from outside.
  std::vector<uint32_t> free_values(const Region& region) const;
  void add_check(Node& node, Check check, Value got, Value want);
  // A name that the graph does not have yet.
  std::string fresh(std::string_view wanted);
  const Function& function_named(std::string_view name, size_t offset) const;

  // The builder's first error leaves what is being built, and gets the place of the instruction.
  static void leave_on_failure(Builder& builder);
  [[noreturn]] void refuse(size_t offset, Error error) const;

 private:
  void refuse_unknown(const Function& entry);
  void step(Frame& frame, const Instruction& instruction);
  bool structural(Frame& frame, const Instruction& instruction);
  void constant(Frame& frame, const Instruction& instruction);
  void elided(Frame& frame, const Instruction& instruction, Type type);
  Held packed(const ValueType& type, std::span<const Value>& leaves, const Instruction& instruction,
              bool lifted);

  const Program& program_;
  const Module& module_;
  Builder* top_ = nullptr;
  std::unordered_map<uint32_t, Tensor> known_;      // of values of the top builder
  std::unordered_map<std::string, int64_t> names_;  // and the next number for one that is taken
  std::vector<const Function*> calls_;              // that are being written out
  std::vector<Value> checked_;
  int64_t imported_ = 0;
};

// The tensors of a value, in order.
void append_leaves(const Held& held, std::vector<Value>& leaves);
// A value of this structure from tensors, which are taken from the front.
Held from_leaves(const Held& shape, std::span<const Value>& leaves);

}  // namespace hone::hlo
