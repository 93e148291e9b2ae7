#pragma once

#include "target/target.h"

// Estimates the rates of a machine that nobody has measured: those of an ordinary server core. They
// only have to be in proportion, since they compare plans; `hone target probe` measures.

namespace hone {

// Operations that a core starts in a cycle, with two vector units; 0: there is no unit for the
// type.
double operations_per_cycle(Isa isa, ExtensionSet extensions, DType type);
// Bytes of a vector register.
double vector_bytes(Isa isa);
// Fills peaks, bandwidths and fork_join from isa, extensions, cores and the number of caches.
void estimate_rates(Target& target);

}  // namespace hone
