#pragma once

#include <cstdint>

#include "program/program.h"

namespace hone {

// For how many devices it is proved that all of them take the same ways wherever data is exchanged
// in a branch or a while loop; 0: for any number. Such a condition follows from constants and from
// sums and joins over all devices, which have the same bits on each. Error: a condition may differ,
// with the reason. All devices run this program, and their code computes the same bits.
Result<int32_t> devices_that_agree(const Program& program);

}  // namespace hone
