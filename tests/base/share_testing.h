#pragma once

#include <gtest/gtest.h>

#include <cstdint>

// Long lists of cases run in parts. `./test` runs one of several parts, another one after each
// commit. `./dev sweep`, which sets HONE_SWEEP, runs all. Scripts have tests/share.bash.

namespace hone::tested {

// True if this run has the item of that number.
bool in_share(uint64_t number, uint64_t parts);
// How many of the cases this run has, where they need no numbers.
uint64_t share_of(uint64_t cases, uint64_t parts);
// True if this run has the test that runs now, one of several by its name.
bool in_share_by_name(uint64_t parts);

}  // namespace hone::tested

// A test that is one long case begins with this: one run of that many has it.
#define HONE_ONE_RUN_OF(parts) \
  if (!hone::tested::in_share_by_name(parts)) GTEST_SKIP() << "another commit runs it"
