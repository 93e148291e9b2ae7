#pragma once

#include "base/error.h"

// `hone bench` across time: sessions that are recorded in a file, and a later look whether models
// have become slower.

namespace hone::cli {

class Arguments;
class Console;

// --record FILE: adds sessions of MODEL, under the options of the command line.
Status record_sessions(const Arguments& arguments, Console& console);
// --baseline FILE: measures its models again, or MODEL alone. A mismatch if one of them is slower.
Status check_baseline(const Arguments& arguments, Console& console);

}  // namespace hone::cli
