#pragma once

#include <cstdint>

#include "rules/rule.h"

namespace hone {

// A hash of what a rule says: its sides and its guard, without its name and what was shown.
uint64_t statement_hash(const Rule& rule);

}  // namespace hone
