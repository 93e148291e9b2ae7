#pragma once

#include "base/error.h"
#include "session/face.h"

// --memory-limit of the commands that run models.

namespace hone::cli {

class Arguments;
class Console;

// The console's face, with what a run may take by the command line.
Face limited_face(const Arguments& arguments, Console& console);

// An error about a run's memory names the option, if the command has it.
Status name_memory_limit(Status status, const Arguments& arguments);

}  // namespace hone::cli
