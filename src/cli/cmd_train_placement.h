#pragma once

#include "base/error.h"

// The policy of placement: made and judged.

namespace hone::cli {

class Arguments;
class Console;

Status cmd_train_placement(const Arguments& arguments, Console& console);
Status cmd_eval_placement(const Arguments& arguments, Console& console);

}  // namespace hone::cli
