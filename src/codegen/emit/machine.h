#pragma once

#include <cstdint>

namespace hone::code {

// The machine that the emitter writes for.
struct Machine {
  int64_t vector_bytes = 0;  // of a vector register; 0: it has none, and no loop is Exec::lanes
  bool has_fma = false;      // rounds once
  bool has_f16 = false;      // converts between f16 and f32
  bool has_vnni = false;     // sums of four products of bytes
  bool has_bf16 = false;     // sums of two products of bf16
};

}  // namespace hone::code
