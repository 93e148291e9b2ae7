#pragma once

#include "base/error.h"

// The commands of language models, which the rows of commands.cc run.

namespace hone::cli {

class Arguments;
class Console;

Status cmd_generate(const Arguments& arguments, Console& console);
Status cmd_tokens(const Arguments& arguments, Console& console);
Status cmd_evaluate(const Arguments& arguments, Console& console);

}  // namespace hone::cli
