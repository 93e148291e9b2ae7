#pragma once

#include "front/hlo/program.h"

namespace hone::hlo {

// Reads the text of StableHLO modules, in pretty and in generic form, into `program`, whose source
// it is. A line `// -----` ends a module, as in files of tests. Throws Refusal.
void read_stablehlo(Program& program);

}  // namespace hone::hlo
