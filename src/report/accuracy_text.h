#pragma once

#include <span>
#include <string>

#include "oracle/accuracy_runs.h"

// How accurate native code is, for people.

namespace hone {

// A row per output: how far it is from wide, how far it may be, "ok" or "WRONG". With the modes of
// the reference, a row for each comes before it: how far these are, in the first run.
std::string accuracy_table(std::span<const std::string> names, const ContestResult& result,
                           bool with_modes);

}  // namespace hone
