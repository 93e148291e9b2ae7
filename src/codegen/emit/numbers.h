#pragma once

#include <span>
#include <variant>

#include "codegen/emit/instructions.h"
#include "codegen/emit/machine.h"
#include "codegen/emit/small_reals.h"
#include "ir/op.h"

namespace hone::code {

// hone's elementwise ops as instructions, on numbers or on vectors of them. Each result is rounded
// to its element type.
//
// In registers, reals of 16 bits and fewer are f32, short integers are 8 bits wide, bools one. In
// memory bools are bytes, and such reals are integers of 16 or 8 bits.
class Numbers {
 public:
  Numbers(Instructions& code, const Machine& machine);

  mlir::Type register_type(DType dtype);
  // The type in memory; for elements of fewer than 8 bits the byte that several share.
  mlir::Type memory_type(DType dtype);
  Value from_memory(DType dtype, Value stored);  // of a byte, the lowest bits count
  Value to_memory(DType dtype, Value number);

  Value number(DType dtype, const std::variant<int64_t, double>& value);
  Value compute(Op op, std::span<const DType> types, DType result, std::span<const Value> operands);
  Value fma(DType dtype, Value a, Value b, Value c);
  // The neutral element of `combine`: 0 for add.
  Value identity(DType dtype, Opcode combine);

 private:
  Value real(Op op, DType dtype, std::span<const Value> x);
  Value integer(Op op, DType dtype, std::span<const Value> x);
  Value cast(DType from, DType to, Value x);
  Value bitcast(DType from, DType to, Value x);
  Value compare(DType dtype, std::string_view direction, Value a, Value b);
  Value larger(Value a, Value b);  // reals
  Value smaller(Value a, Value b);
  Value quotient(DType dtype, Value a, Value b, bool wants_rest);
  Value shift(Opcode opcode, DType dtype, Value a, Value by);
  Value power(DType dtype, Value a, Value b);
  Value real_to_integer(DType to, Value x);
  Value is_negative(Value real);
  Value wrapped(DType dtype, Value x);  // integers of fewer than 8 bits, within a byte
  Value rounded(DType dtype, Value x);  // reals of 16 bits and fewer
  Value flag(Value i1, Value like) {
    return code_.select(i1, code_.integer(1, like), code_.integer(0, like));
  }

  Instructions& code_;
  SmallReals small_;
  bool has_fma_;
};

}  // namespace hone::code
