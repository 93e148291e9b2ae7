#pragma once

#include <string_view>

#include "front/hlo/program.h"

namespace hone::hlo {

bool begins_like_hlo_text(std::string_view text);

// Reads the text of an HLO module into `program`, whose source it is: each computation becomes a
// function. Layouts and shardings are left out. Throws Refusal.
void read_hlo_text(Program& program);

}  // namespace hone::hlo
