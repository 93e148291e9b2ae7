#pragma once

#include <string>

#include "base/error.h"
#include "front/front_end.h"
#include "ir/model.h"

// Models as text of StableHLO and HLO.

namespace hone {

// A model that is one graph. An op that the language lacks is written by other ones.
Result<std::string> print_stablehlo(const Model& model);
Result<std::string> print_hlo(const Model& model);

// The row of front_end.cc for StableHLO; that for HLO is hlo_front_end().
FrontEnd stablehlo_front_end();

}  // namespace hone
