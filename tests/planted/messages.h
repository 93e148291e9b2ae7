#pragma once

#include <cstdint>
#include <string>

// Random cases of what devices exchange, and of timelines. The text says what is wrong; empty:
// nothing.

namespace hone::planted_cases {

std::string failed_messages(uint64_t seed);
std::string failed_timeline(uint64_t seed);

}  // namespace hone::planted_cases
