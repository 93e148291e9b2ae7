#pragma once

#include <cstdint>

// Long lists of cases run in parts. `./test` runs one of several parts, another one after each
// commit. `./dev sweep`, which sets HONE_SWEEP, runs all. Scripts have tests/share.bash.

namespace hone::tested {

// True if this run has the item of that number.
bool in_share(uint64_t number, uint64_t parts);
// How many of the cases this run has, where they need no numbers.
uint64_t share_of(uint64_t cases, uint64_t parts);

}  // namespace hone::tested
