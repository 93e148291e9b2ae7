#pragma once

#include <string>
#include <vector>

#include "tune/build_data_set.h"

// Programs of data sets, by the names that a user gives them.

namespace hone::cli {

class Console;

// A model as the command line names it.
NamedProgram program_of(const std::string& model, Console& console);
// Large enough to have kernels that take some time.
NamedProgram random_program(int64_t seed);
// One that a set has, of either sort.
NamedProgram program_named(const std::string& name, Console& console);
// All models of `hone zoo list`.
std::vector<NamedProgram> zoo_programs(Console& console);

}  // namespace hone::cli
