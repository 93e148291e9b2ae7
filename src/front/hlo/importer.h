#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "front/hlo/checks.h"
#include "front/hlo/program.h"
#include "front/hlo/reader.h"
#include "front/hlo/sharding_text.h"
#include "front/options.h"
#include "ir/contents.h"
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
  // The elements of an operand as sizes: numbers, or expressions of open sizes.
  Dims known_dims(size_t i);
  // Two sizes that must be equal.
  void make_equal(Dim a, Dim b);

  // ---- Attributes. The first of several names, divided by |, that is there counts ----
  const Attribute* find(std::string_view names) const;
  Ints ints(std::string_view names, const Ints& fallback);
  Ints ints(std::string_view names);  // an error if there is none
  int64_t integer(std::string_view names, int64_t fallback);
  bool flag(std::string_view names) { return integer(names, 0) != 0; }
  std::string_view word(std::string_view names, std::string_view fallback = "");
  double real(std::string_view names, double fallback);
  // A field of a record as integers.
  Ints field(std::string_view record, std::string_view names, const Ints& fallback);
  int64_t field(std::string_view record, std::string_view names, int64_t fallback);
  Ints ints_of(const Attribute& attribute);
  // An attribute that nothing asked for could change numbers: an error, unless it is known not to.
  void refuse_unread() const;
  // All attributes are those of a call of something else.
  void read_all() const { asked_ = ~uint64_t{0}; }

  // ---- Results ----
  // The type of a tensor, tuples written out, as the text states it: sizes may be open.
  Type result(size_t i = 0);
  Type static_result(size_t i = 0);  // an error if a size is open

  // ---- Regions ----
  // The i-th region, or the function that the attribute names.
  Body body(size_t i, std::string_view attribute);
  // The results of a body. Its scalars stand for tensors of `lifted`, if that is given.
  std::vector<Value> apply(const Body& body, std::span<const Value> arguments,
                           const Dims* lifted = nullptr);
  // The same in a graph of its own, such as the body of a loop. The body may read scalars from
  // outside of it that are known.
  std::vector<Value> apply_in(Builder& inner, const Body& body, std::span<const Value> arguments,
                              const Dims& lifted);

  [[noreturn]] void refuse(Error error) const;

 private:
  Importer& importer_;
  Frame& frame_;
  const Instruction& instruction_;
  std::vector<Value> operands_;
  mutable uint64_t asked_ = 0;  // bit i: the attribute i was asked for
};

using ImportFunction = std::vector<Value> (*)(Node&);

struct OpRow {
  std::string_view name;              // of StableHLO
  std::string_view hlo;               // of HLO; "": it has no such op
  ImportFunction import = nullptr;    // null: the importer's own
  bool pointwise = false;             // element by element
  bool takes_open = true;             // its operands and results may have open sizes
  std::optional<Opcode> opcode = {};  // of hone, if the row stands for one op in both directions
};
std::span<const OpRow> op_rows();
const OpRow* row_named(std::string_view stablehlo_name);
const OpRow* row_of_hlo(std::string_view opcode);
const OpRow* row_of(Opcode opcode);  // null: no row stands for the op

// An op that works element by element; bools have another one.
std::vector<Value> elementwise_op(Node& n, Opcode of_numbers, Opcode of_bools);

class Importer {
 public:
  Importer(const Program& program, const Module& module)
      : grid(module.grid), program_(program), module_(module) {}

  // Constants with several elements become parameters, whose values import knows.
  bool opens_constants = false;
  // Sizes that are known before the import: of inputs, and of symbols.
  const ImportOptions* given = nullptr;
  // Gets the checks of the entry; null: they are left out.
  std::vector<Check>* checks = nullptr;
  std::vector<Tensor> opened;  // the values of the parameters
  int64_t checks_left_out = 0;
  // Things that the text does not hold, for messages. Inputs stand for them (front_end.h).
  std::vector<std::string> missing;
  // The devices that run what is being imported; `devices`: as many as a program of checks needs.
  DeviceGrid grid;
  int64_t devices = 1;
  // Axes of the mesh along which what is being imported is the program of one device.
  std::vector<std::string> manual_axes;
  // The values that interpreter.probe has seen, in order.
  struct Probed {
    std::string_view id;
    Value value;
  };
  std::vector<Probed> probed;

  Graph import(const Function& entry);

  const Program& program() const { return program_; }
  const Module& module() const { return module_; }
  const Function& entry() const { return *calls_.front(); }
  // Runs the instructions of a region whose parameters are held, and returns what it returns.
  std::vector<Held> run(Frame& frame, const Region& region);
  std::vector<Held> call(Frame& frame, const Body& body, std::vector<Held> arguments);
  std::optional<Tensor> known(const Builder& builder, Value value) const;
  // The elements of a few integers as sizes; none: they depend on data.
  std::optional<Dims> known_dims(const Builder& builder, Value value);
  bool has_open_sizes() const { return has_open_sizes_; }
  // Import begins anew with both as one size. An error if no symbol can stand for the other.
  void make_equal(Dim a, Dim b, size_t offset);
  void add_check(Node& node, Check check, Value got, Value want);
  // The program calls what is not part of it. The graph gets an input that says so.
  void add_foreign_call(std::string_view target, size_t offset);
  // A name that the graph does not have yet.
  std::string fresh(std::string_view wanted);
  const Function& function_named(std::string_view name, size_t offset) const;
  // The shardings in the text there, of values of these types.
  std::vector<std::optional<Sharding>> shardings_at(size_t offset, std::span<const Type> types);
  void say(Value value, Sharding sharding);
  // The graph is complete: it gets what the program says of its values.
  void keep_shardings(Builder& builder);

  // The builder's first error leaves what is being built, and gets the place of the instruction.
  static void leave_on_failure(Builder& builder);
  [[noreturn]] void refuse(size_t offset, Error error) const;

 private:
  // Thrown to begin anew: the symbol is this size.
  struct Merge {
    std::string symbol;
    Dim size;
  };
  Graph built(const Function& entry);
  Held parameters(Builder& builder, const Function& entry, size_t i);
  Type sized(const Function& entry, size_t parameter, std::string_view name, Type type);
  Dim refined(const Function& entry, std::string_view input, size_t axis, Dim size) const;
  static void add_donations(Builder& builder, const Function& entry,
                            const std::unordered_map<uint32_t, Held>& held,
                            std::span<const Value> outputs);
  bool fits_stated(Type made, Type stated, size_t offset);
  // shardings.cc
  std::vector<std::optional<Sharding>> shardings_of(const AttributeList& attributes,
                                                    std::span<const Value> values);
  std::optional<Sharding> all_open(Value value) const;
  void annotate(Frame& frame, const Instruction& instruction);
  static Value own_value(Frame& frame, const Instruction& instruction, Value value);
  void annotate_parameters(Frame& frame);
  void keep_output_shardings(Builder& builder, const Function& entry,
                             std::span<const Value> outputs);

  void refuse_unknown(const Function& entry);
  void check_sizes(Node& node, const OpRow& row, const Instruction& instruction);
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
  bool has_open_sizes_ = false;
  Bindings merged_;                     // symbols that turned out to be other sizes
  std::unique_ptr<Contents> contents_;  // of the top builder
  int64_t imported_ = 0;
  std::unique_ptr<ShardingReader> sharding_reader_;  // made for the first sharding
  std::map<const Builder*, Shardings> shardings_;
  std::vector<std::pair<ValueId, Sharding>>
      result_shardings_;  // that values of the top have as outputs
};

// The values that a region reads from around it.
std::vector<uint32_t> free_values(const Region& region);
// The tensors of a value, in order.
void append_leaves(const Held& held, std::vector<Value>& leaves);
// A value of this structure from tensors, which are taken from the front.
Held from_leaves(const Held& shape, std::span<const Value>& leaves);

}  // namespace hone::hlo
