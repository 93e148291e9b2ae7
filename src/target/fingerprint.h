#pragma once

#include <cstdint>

#include "target/target.h"

namespace hone {

// Hashes all that decides which code is made and how fast it is: the processor's name,
// instructions, the cores in use, sizes and sharing of caches. Rates do not count, because each
// probe measures others; neither does the size of the memory, nor the target's name. The values are
// stable, as are those of Hasher.
uint64_t fingerprint(const Target& target);

// Hashes all that decides how fast one core is. These are the processor's name, its instructions,
// and the sizes of the two caches next to a core. A process sees no more of other cores and caches
// than its own cores do. Machines with one kind of processor have one, whichever part of it they
// use.
uint64_t core_fingerprint(const Target& target);

}  // namespace hone
