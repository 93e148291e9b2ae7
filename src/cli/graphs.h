#pragma once

#include "base/error.h"

namespace hone::cli {

class Arguments;
class Console;

// `hone eval` of graphs with configurations, in place of kernels of a data set.
Status eval_graphs(const Arguments& arguments, Console& console);

}  // namespace hone::cli
