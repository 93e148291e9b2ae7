#pragma once

#include "codegen/emit/instructions.h"
#include "tensor/dtype.h"

// Reals of 16 bits and fewer: f32 in registers, patterns in memory, in integers of 16 or 8 bits.

namespace hone::code {

class SmallReals {
 public:
  // `has_f16`: the machine converts between f16 and f32.
  SmallReals(Instructions& code, bool has_f16) : code_(code), has_f16_(has_f16) {}

  Value decode(DType dtype, Value pattern);
  // The pattern nearest to an f32, or to an f64 with a single rounding.
  Value encode(DType dtype, Value real);
  Value round(DType dtype, Value real) { return decode(dtype, encode(dtype, real)); }

 private:
  Value rounded_to_odd(Value f64);
  Value apart(Value f32);

  Instructions& code_;
  bool has_f16_;
};

}  // namespace hone::code
