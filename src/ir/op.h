#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "tensor/type.h"

// An Op is an opcode with its attributes, interned: a handle of one pointer, immortal, comparable
// by identity. Everything that defines an op hangs on its OpDef (op_def.h).

namespace hone {

enum class Opcode : uint16_t {
#define HONE_OP(id, text, family, op_class, slots) id,
#include "ir/ops.def"
};

#define HONE_OP(id, text, family, op_class, slots) +1
inline constexpr int kOpcodeCount = 0
#include "ir/ops.def"
    ;

std::string_view name(Opcode opcode);
std::optional<Opcode> opcode_from_name(std::string_view text);

enum class AttrKind : uint8_t { flag, integer, real, word, dtype, ints, reals, dims };

// word: a short string, often one of a stated set. dims: sizes that may be symbolic.
using AttrVariant =
    std::variant<bool, int64_t, double, std::string, DType, Ints, std::vector<double>, Dims>;

// A class of its own, so that copying one is a call. Inlined into every source that mentions an
// attribute, the copy took a third of the compile time.
struct AttrValue : AttrVariant {
  using AttrVariant::AttrVariant;
  AttrValue(const AttrValue& other);
  AttrValue(AttrValue&& other) noexcept;
  AttrValue& operator=(const AttrValue& other);
  AttrValue& operator=(AttrValue&& other) noexcept;
  ~AttrValue();
};

// One attribute in an op's schema.
struct AttrSpec {
  std::string_view name;
  AttrKind kind;
  std::string_view default_text;     // in the text format; empty: the attribute is required
  std::string_view doc;              // one sentence; for a word of a stated set, see `words`
  std::string_view words = "";       // "sum|product|max": the allowed words, empty: any
  std::optional<int64_t> each = {};  // a list of this number alone means the same as []
  // Younger than its op: at its default it does not count in hashes, by which logs and data sets
  // name kernels.
  bool came_later = false;
};

struct OpDef;   // op_def.h
struct OpData;  // op.cc

// Attributes by name, in any order; the others take their defaults.
using Attrs = std::vector<std::pair<std::string_view, AttrValue>>;

class Op {
 public:
  Op() = default;

  // Checks names, kinds and words against the schema.
  static Result<Op> make(Opcode opcode, Attrs attrs);
  // For attributes that are known to fit; a bad one is a bug of the caller.
  static Op get(Opcode opcode, Attrs attrs = {});

  explicit operator bool() const { return data_ != nullptr; }
  Opcode opcode() const;
  std::string_view name() const { return hone::name(opcode()); }
  const OpDef& def() const;

  // Attributes; asking for one that the schema does not have is a bug.
  bool flag(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  const std::string& word(std::string_view name) const;
  DType dtype(std::string_view name) const;
  const Ints& ints(std::string_view name) const;
  const std::vector<double>& reals(std::string_view name) const;
  const Dims& dims(std::string_view name) const;
  std::span<const AttrValue> attrs() const;  // in schema order, complete

  bool has_symbols() const;  // some dims attribute is symbolic
  Op bind(const Bindings& bindings) const;
  // The canonical spelling, which nodes use: strides of all 1 become []. The operands must fit the
  // op. make() leaves attributes as they are, so that inference can report a list of a wrong
  // length.
  Op canonical() const;

  // "{axis = 1, eps = 1e-5}" without defaults; empty if nothing is left.
  std::string attrs_to_string() const;
  uint64_t hash() const;  // stable across runs
  bool operator==(const Op&) const = default;

 private:
  explicit Op(const OpData* data) : data_(data) {}
  const OpData* data_ = nullptr;
};

std::string to_string(const AttrValue& value);
// The value of `text` as `kind`, with the symbols in scope for dims.
Result<AttrValue> parse_attr(AttrKind kind, std::string_view text,
                             const std::vector<Symbol>& scope = {});
// "reduce", "reduce {kind = sum, axes = [1]}": what name() and attrs_to_string() print.
Result<Op> parse_op(std::string_view text, const std::vector<Symbol>& scope = {});

}  // namespace hone
